//! How long known clients and libraries wait when nobody has set anything.
//!
//! A row stands here only where a source says so; the comment names project and setting. Clients
//! change: what a row says held for the versions of 2026, and a user's own policy goes first.

use std::sync::LazyLock;

use super::Subject;
use super::clock::ClockPolicy;
use super::pattern::Pattern;
use crate::spec::transport::Transport;
use crate::time::Ms;

/// A known default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Row {
    name: &'static str,
    clients: &'static [&'static str],
    methods: &'static [&'static str],
    transports: &'static [Transport],
    idle_ms: Option<u64>,
    max_ms: Option<u64>,
    silence_ms: Option<u64>,
    resets_on_progress: bool,
    checks_max_on_progress: bool,
    setting: &'static str,
}

/// No limit, for every call of everybody.
const NONE: Row = Row {
    name: "",
    clients: &[],
    methods: &[],
    transports: &[],
    idle_ms: None,
    max_ms: None,
    silence_ms: None,
    resets_on_progress: false,
    checks_max_on_progress: false,
    setting: "",
};

const CALL: &[&str] = &["tools/call"];

// MCP Python SDK, mcp/shared/_httpx_utils.py: MCP_DEFAULT_SSE_READ_TIMEOUT. A request itself has
// no limit there (read_timeout_seconds is None).
const PYTHON_HTTP: Row = Row {
    name: "MCP Python SDK",
    transports: &[Transport::Http],
    silence_ms: Some(300_000),
    setting: "httpx timeout (read)",
    ..NONE
};

/// Clients that tell their name. The first that fits counts.
const CLIENTS: &[Row] = &[
    // MCP Inspector, client/src/lib/constants.ts: MCP_SERVER_REQUEST_TIMEOUT,
    // MCP_REQUEST_TIMEOUT_RESET_ON_PROGRESS, MCP_REQUEST_MAX_TOTAL_TIMEOUT; the TypeScript SDK
    // below it looks at the maximum only when progress comes.
    Row {
        name: "MCP Inspector",
        clients: &["mcp-inspector", "inspector-client"],
        idle_ms: Some(300_000),
        max_ms: Some(60_000),
        resets_on_progress: true,
        checks_max_on_progress: true,
        setting: "Configuration: Request Timeout",
        ..NONE
    },
    // Claude Code, page "mcp" of its documentation: idle window of 5 minutes on remote transports
    // and 30 minutes on stdio, wall clock of about 28 hours unless MCP_TOOL_TIMEOUT is set.
    Row {
        name: "Claude Code",
        clients: &["claude-code"],
        methods: CALL,
        transports: &[Transport::Http],
        idle_ms: Some(300_000),
        max_ms: Some(100_000_000),
        resets_on_progress: true,
        setting: "CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT",
        ..NONE
    },
    Row {
        name: "Claude Code",
        clients: &["claude-code"],
        methods: CALL,
        transports: &[Transport::Stdio],
        idle_ms: Some(1_800_000),
        max_ms: Some(100_000_000),
        resets_on_progress: true,
        setting: "CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT",
        ..NONE
    },
    // Gemini CLI, packages/core/src/tools/mcp-client.ts: MCP_DEFAULT_TIMEOUT_MSEC.
    Row {
        name: "Gemini CLI",
        clients: &["gemini-cli-mcp-client*"],
        idle_ms: Some(600_000),
        setting: "mcpServers.NAME.timeout",
        ..NONE
    },
    // Codex, codex-rs/codex-mcp/src/rmcp_client.rs: DEFAULT_TOOL_TIMEOUT.
    Row {
        name: "Codex",
        clients: &["codex-mcp-client"],
        methods: CALL,
        max_ms: Some(300_000),
        setting: "mcp_servers.NAME.tool_timeout_sec",
        ..NONE
    },
    // Cline, src/shared/mcp.ts: DEFAULT_MCP_TIMEOUT_SECONDS; its own questions to a server,
    // src/services/mcp/McpHub.ts: DEFAULT_REQUEST_TIMEOUT_MS.
    Row {
        name: "Cline",
        clients: &["Cline"],
        methods: CALL,
        idle_ms: Some(60_000),
        setting: "mcpServers.NAME.timeout",
        ..NONE
    },
    Row {
        name: "Cline",
        clients: &["Cline"],
        methods: &["tools/list", "resources/list", "resources/templates/list"],
        idle_ms: Some(5_000),
        ..NONE
    },
    // Roo Code, src/services/mcp/McpHub.ts: BaseConfigSchema.timeout.
    Row {
        name: "Roo Code",
        clients: &["Roo Code"],
        methods: CALL,
        idle_ms: Some(60_000),
        setting: "mcpServers.NAME.timeout",
        ..NONE
    },
    // Zed, crates/context_server/src/client.rs: DEFAULT_REQUEST_TIMEOUT.
    Row {
        name: "Zed",
        clients: &["Zed"],
        max_ms: Some(60_000),
        setting: "context_servers.NAME.timeout",
        ..NONE
    },
    // MCP Java SDK, McpClient.java: requestTimeout; the name is the one it gives by default.
    Row {
        name: "MCP Java SDK",
        clients: &["Java SDK MCP Client"],
        max_ms: Some(20_000),
        setting: "requestTimeout",
        ..NONE
    },
    // MCP PHP SDK, src/Client/Builder.php: requestTimeout, with its default name.
    Row {
        name: "MCP PHP SDK",
        clients: &["mcp-php-client"],
        max_ms: Some(120_000),
        setting: "setRequestTimeout",
        ..NONE
    },
    // MCP Python SDK with its default name, mcp/client/session.py: DISCOVER_TIMEOUT_SECONDS.
    Row {
        name: "MCP Python SDK",
        clients: &["mcp"],
        methods: &["server/discover"],
        max_ms: Some(10_000),
        ..NONE
    },
    Row { clients: &["mcp"], ..PYTHON_HTTP },
];

/// Libraries under clients of any name: candidates to explain a call that was cut at this age.
const LIBRARIES: &[Row] = &[
    // MCP TypeScript SDK, shared/protocol: DEFAULT_REQUEST_TIMEOUT_MSEC; resetTimeoutOnProgress is
    // off and maxTotalTimeout is not set by default.
    Row { name: "MCP TypeScript SDK", idle_ms: Some(60_000), setting: "RequestOptions.timeout", ..NONE },
    // MCP Kotlin SDK, Protocol.kt: DEFAULT_REQUEST_TIMEOUT.
    Row { name: "MCP Kotlin SDK", max_ms: Some(60_000), setting: "RequestOptions.timeout", ..NONE },
    // MCP Java SDK under another name.
    Row { name: "MCP Java SDK", max_ms: Some(20_000), setting: "requestTimeout", ..NONE },
    PYTHON_HTTP,
];

static CLIENT_CLOCKS: LazyLock<Vec<ClockPolicy>> = LazyLock::new(|| CLIENTS.iter().map(Row::clock).collect());
static LIBRARY_CLOCKS: LazyLock<Vec<ClockPolicy>> =
    LazyLock::new(|| LIBRARIES.iter().map(Row::clock).collect());

/// Clients that tell their name, with their defaults.
#[must_use]
pub fn clients() -> &'static [ClockPolicy] {
    &CLIENT_CLOCKS
}

/// Libraries whose defaults a client of any name may have. They cannot be told apart on the wire,
/// so that none of them is anybody's policy: they can only explain an age at which a call was cut.
#[must_use]
pub fn libraries() -> &'static [ClockPolicy] {
    &LIBRARY_CLOCKS
}

/// The default of the client of this call, where its name is known.
#[must_use]
pub fn of(subject: &Subject<'_>) -> Option<&'static ClockPolicy> {
    clients().iter().find(|clock| clock.is_for(subject))
}

impl Row {
    fn clock(&self) -> ClockPolicy {
        let patterns = |names: &[&str]| names.iter().map(|name| Pattern::new(name)).collect();
        ClockPolicy {
            name: self.name.to_owned(),
            clients: patterns(self.clients),
            user_agents: Vec::new(),
            servers: Vec::new(),
            methods: patterns(self.methods),
            tools: Vec::new(),
            transports: self.transports.to_vec(),
            idle: self.idle_ms.map(Ms),
            max: self.max_ms.map(Ms),
            silence: self.silence_ms.map(Ms),
            resets_on_progress: self.resets_on_progress,
            checks_max_on_progress: self.checks_max_on_progress,
            setting: (!self.setting.is_empty()).then(|| self.setting.to_owned()),
        }
    }
}

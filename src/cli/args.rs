//! What may stand on the command line.

pub(super) mod auth;
pub(super) mod call;
pub(super) mod check;
pub(super) mod selftest;
pub(super) mod steering;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::app::sockets::SocketAt;
use crate::machine::buffer::Buffer;
use call::{CallArgs, ProbeArgs};
use check::CheckArgs;
use selftest::SelftestArgs;
use steering::{CtlArgs, FaultsArgs, ServerSteering};

/// Sits between an MCP client and an MCP server and shows what really passes.
#[derive(Debug, Parser)]
#[command(
    name = "midwire",
    version,
    about,
    after_help = "\
Examples:
  midwire demo                                     ten minutes of trouble, offline, no set-up
  midwire stdio -- python server.py                put this where the client has the server's command
  midwire http --upstream http://127.0.0.1:3000/mcp   then point the client at the address it prints
  midwire                                          watch running taps, open saved recordings

Exit codes: 0 clean, 1 findings, 2 usage or set-up, 3 internal; `stdio`: the server's own."
)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Option<Command>,
    #[command(flatten)]
    pub(super) screen: Screen,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Show midwire at work: reference client, tap and server in one process, offline
    Demo(DemoArgs),
    /// Tap a stdio server: stands where the client has the server's command
    Stdio(StdioArgs),
    /// Tap an HTTP server: a reverse proxy on loopback, with the viewer when on a terminal
    Http(HttpArgs),
    /// Open recordings in the viewer
    Open(OpenArgs),
    /// List running taps and saved recordings
    Ls(LsArgs),
    /// Judge recordings: what went wrong, who was at fault, by which rule
    Check(CheckArgs),
    /// List the rules of `check`, or explain one
    Rules(RulesArgs),
    /// Run the reference server
    Serve(ServeArgs),
    /// Call a server with the reference client
    Call(Box<CallArgs>),
    /// Give orders to a running tap: hold, cancel, delay, disconnect, retry and more
    Ctl(CtlArgs),
    /// Read a recipe of faults and say what it does
    Faults(FaultsArgs),
    /// Look at any server from outside: its era, and the points of its transport
    Probe(ProbeArgs),
    /// Play twelve statements about reliability through real taps, and judge them by what was recorded
    Selftest(SelftestArgs),
}

/// How the screen looks.
#[derive(Debug, Clone, Args)]
pub(super) struct Screen {
    /// Theme: dark, light, high-contrast, no-colour, or a theme file
    #[arg(long, value_name = "NAME|FILE", global = true)]
    pub(super) theme: Option<String>,
    /// Draw with ASCII characters only
    #[arg(long, global = true)]
    pub(super) ascii: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  midwire demo
  midwire demo --headless --speed 4 --record tour.mw.jsonl

Without a terminal it runs the tour once, says what it does, and ends.")]
pub(super) struct DemoArgs {
    /// Pace of the tour: 2 is twice as fast
    #[arg(long, value_name = "N", default_value_t = 1.0, value_parser = positive)]
    pub(super) speed: f64,
    /// No screen: run the tour once, say what it does, and end
    #[arg(long)]
    pub(super) headless: bool,
    /// Where the recording goes; `off`: nowhere (needs --headless)
    #[arg(long, value_name = "FILE|off")]
    pub(super) record: Option<String>,
}

impl Default for DemoArgs {
    fn default() -> DemoArgs {
        DemoArgs { speed: 1.0, headless: false, record: None }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  midwire open session.mw.jsonl
  zstdcat old.mw.jsonl.zst | midwire open -

Several recordings are shown as one, in the order given.")]
pub(super) struct OpenArgs {
    /// Recordings: several that are not of one server are listed; `-`: standard input
    #[arg(required = true, value_name = "TRACE")]
    pub(super) traces: Vec<PathBuf>,
}

/// What both kinds of tap take.
#[derive(Debug, Args)]
pub(super) struct TapArgs {
    /// Where the recording goes (`.zst` is compressed); `off`: nowhere; default: a file of its own
    #[arg(long, value_name = "FILE|off")]
    pub(super) record: Option<String>,
    /// A name for this tap in lists
    #[arg(long, value_name = "NAME")]
    pub(super) label: Option<String>,
    /// Let the server tell about its work on a local socket (docs/telemetry.md)
    #[arg(long, value_name = "SOCKET", num_args = 0..=1, require_equals = true,
        default_missing_value = "")]
    pub(super) telemetry: Option<SocketAt>,
    /// Where orders are taken (`midwire ctl` gives them); `off`: nowhere; default: a socket of its own
    #[arg(long, value_name = "SOCKET|off")]
    pub(super) control: Option<String>,
    /// Make the trouble that this recipe describes (docs/recipes.md)
    #[arg(long, value_name = "FILE")]
    pub(super) faults: Option<PathBuf>,
    /// What the random numbers of faults come from; default: as the recipe says, else 0
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,
    /// What tools do, so that orders know which calls may be sent again (docs/policy.md)
    #[arg(long, value_name = "FILE")]
    pub(super) policy: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  midwire stdio -- npx -y @modelcontextprotocol/server-everything
  midwire stdio --label files -- python server.py --root /srv

Its standard input and output belong to the client; watch it with `midwire` in another terminal.
The exit status is the server's (128+n for a signal); 2 when the server cannot be started.")]
pub(super) struct StdioArgs {
    #[command(flatten)]
    pub(super) tap: TapArgs,
    /// How long the server may run on after its input was closed, before SIGTERM
    #[arg(long, value_name = "MS", default_value_t = 10_000)]
    pub(super) eof_wait_ms: u64,
    /// How long the server may run on after SIGTERM, before SIGKILL
    #[arg(long, value_name = "MS", default_value_t = 5000)]
    pub(super) term_wait_ms: u64,
    /// The server's command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(super) command: Vec<OsString>,
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own on the command line")]
#[command(after_help = "\
Examples:
  midwire http --upstream http://127.0.0.1:3000/mcp
  midwire http --upstream https://mcp.example.com/mcp --listen 127.0.0.1:7000 --headless

The path is passed on as the client sends it: only scheme, host and port are the tap's.")]
pub(super) struct HttpArgs {
    /// The URL of the server
    #[arg(long, value_name = "URL")]
    pub(super) upstream: String,
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:7000")]
    pub(super) listen: SocketAddr,
    /// Allow an address that others on the network can reach
    #[arg(long)]
    pub(super) listen_anywhere: bool,
    /// A name, beside the loopback ones, under which clients reach the tap; may be repeated
    #[arg(long, value_name = "HOST")]
    pub(super) allow_host: Vec<String>,
    /// No screen, even on a terminal
    #[arg(long)]
    pub(super) headless: bool,
    /// Speak HTTP/2 to a plain-text upstream without asking first
    #[arg(long)]
    pub(super) http2: bool,
    /// Another root certificate (PEM) to trust for an https upstream
    #[arg(long, value_name = "FILE")]
    pub(super) ca: Option<PathBuf>,
    /// Make OAuth metadata name this listener instead of the upstream; recorded
    #[arg(long)]
    pub(super) rewrite_origin: bool,
    #[command(flatten)]
    pub(super) tap: TapArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  midwire rules
  midwire rules cancel stdio
  midwire rules CAN-05

Exit code 1: no rule has all of the words.")]
pub(super) struct RulesArgs {
    /// The id of a rule, to explain it; or words that rules must have
    #[arg(value_name = "ID|WORD")]
    pub(super) words: Vec<String>,
    /// Print one JSON array
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  midwire ls --json")]
pub(super) struct LsArgs {
    /// Print one JSON object
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  midwire stdio -- midwire serve stdio
  midwire serve http --listen 127.0.0.1:3000

docs/serve.md says what it offers and how it answers.")]
pub(super) struct ServeArgs {
    /// List the faults that --fault takes, and end
    #[arg(long)]
    pub(super) faults: bool,
    #[command(subcommand)]
    pub(super) transport: Option<ServeTransport>,
}

#[derive(Debug, Subcommand)]
pub(super) enum ServeTransport {
    /// On standard input and output
    Stdio(ServerArgs),
    /// On Streamable HTTP, endpoint /mcp
    Http {
        /// Where to listen; port 0 takes a free one
        #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:3000")]
        listen: SocketAddr,
        /// Allow an address that others on the network can reach
        #[arg(long)]
        listen_anywhere: bool,
        /// An origin that browsers may call from; may be repeated
        #[arg(long, value_name = "ORIGIN")]
        allow_origin: Vec<String>,
        /// How requests are answered
        #[arg(long, value_enum, default_value_t = Answers::Auto)]
        answers: Answers,
        /// Silence on an event stream after which a comment is sent
        #[arg(long, value_name = "MS", default_value_t = 15_000)]
        keep_alive_ms: u64,
        #[command(flatten)]
        server: ServerArgs,
    },
}

/// What both transports of the reference server take.
#[derive(Debug, Args)]
pub(super) struct ServerArgs {
    /// Most progress notifications a second for each call, `flood` excepted; 0: no limit
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(super) max_progress: u32,
    /// Messages that may wait for a slow reader (2 or more); beyond that progress is merged and dropped,
    /// and an answer for which there is no room ends the channel; default: 64, and answers wait
    #[arg(long, value_name = "N", value_parser = at_least_two)]
    pub(super) buffer: Option<usize>,
    /// Items on one page of a list
    #[arg(long, value_name = "N")]
    pub(super) page_size: Option<usize>,
    /// Where effects and their keys are kept; `memory`: nowhere; default: a file in the state folder
    #[arg(long, value_name = "FILE|memory")]
    pub(super) ledger: Option<PathBuf>,
    /// How long cleanup after a cancel may take before it is cut off
    #[arg(long, value_name = "MS", default_value_t = 5000)]
    pub(super) cleanup_limit_ms: u64,
    #[command(flatten)]
    pub(super) steering: ServerSteering,
    /// Which revisions of MCP are spoken
    #[arg(long, value_enum, default_value_t = SpokenEra::Modern)]
    pub(super) era: SpokenEra,
    /// Servers with the same content of this file go on with each other's rounds of questions
    #[arg(long, value_name = "FILE")]
    pub(super) state_key: Option<PathBuf>,
    /// Also offer what the conformance suite of MCP looks for
    #[arg(long)]
    pub(super) conformance: bool,
}

/// Which revisions the reference server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum SpokenEra {
    /// 2026-07-28
    Modern,
    /// 2024-11-05 to 2025-11-25, with their handshake
    Legacy,
    /// All of them, told apart message by message
    Dual,
    /// As legacy, but requests before the handshake are answered
    LenientLegacy,
    /// As legacy, but requests before the handshake get no answer at all
    SilentLegacy,
}

/// How the reference server answers on HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Answers {
    /// JSON; an event stream as soon as there is progress
    Auto,
    /// Always an event stream
    Sse,
    /// Always one JSON body
    Json,
    /// One JSON body, and a client that leaves does not reach the handler
    JsonDeaf,
    /// As auto, and a client that leaves does not reach the handler
    LegacyStateless,
}

fn at_least_two(text: &str) -> Result<usize, String> {
    let count: usize = text.parse().map_err(|_| format!("{text} is no number"))?;
    match Buffer::<(), ()>::new(count) {
        Ok(_) => Ok(count),
        Err(error) => Err(error.to_string()),
    }
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && value > 0.0 => Ok(value),
        _ => Err(format!("{text} is not a number above 0")),
    }
}

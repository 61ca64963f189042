//! Arguments of the reference client: `call` and `probe`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::auth::AuthArgs;
use super::steering::ClientSteering;
use crate::app::policy;
use crate::peer::client::era::{EraPolicy, EraRule};
use crate::spec::logging::Level;
use crate::time::Ms;

/// Longest wait for the answer to the first question, where a process has to start first, ms.
// ours: interpreters take a second or two, a package runner that downloads takes longer.
const START_MS: u64 = 10_000;

/// How the era of a server is found out.
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own on the command line")]
pub(in crate::cli) struct EraArgs {
    /// This server may be of an older era: where it does not prove to be modern, one `initialize`
    #[arg(long, group = "era_rule")]
    pub(in crate::cli) allow_legacy: bool,
    /// Take whatever does not answer as a modern server for an older one, as the specification has it
    #[arg(long, group = "era_rule")]
    pub(in crate::cli) lenient: bool,
    /// Speak an older era without asking: `initialize` is the first message
    #[arg(long, group = "era_rule")]
    pub(in crate::cli) legacy: bool,
    /// Speak the modern era without asking
    #[arg(long, group = "era_rule")]
    pub(in crate::cli) modern: bool,
    /// Longest wait for the answer to `server/discover`; default: 1000, for a command 10000
    #[arg(long, value_name = "MS")]
    pub(in crate::cli) discover_limit: Option<u64>,
    /// Longest wait for the answer to `initialize`; default: 1000, for a command 10000
    #[arg(long, value_name = "MS")]
    pub(in crate::cli) initialize_limit: Option<u64>,
    /// Policy file: servers that may be old (`allow_legacy`), and contracts of tools
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) policy: Option<PathBuf>,
}

impl EraArgs {
    /// The policy for one server, which is named by its URL or its command.
    ///
    /// # Errors
    /// When the policy file cannot be read.
    pub(in crate::cli) fn for_server(&self, server: &str, is_command: bool) -> anyhow::Result<EraPolicy> {
        let is_listed = match &self.policy {
            None => false,
            // One server is allowed by its whole name; a pattern would allow servers nobody has seen.
            Some(path) => policy::load(path)?
                .allow_legacy
                .iter()
                .flatten()
                .any(|name| !name.as_str().contains('*') && name.matches(server)),
        };
        let rule = match self {
            EraArgs { modern: true, .. } => EraRule::Modern,
            EraArgs { legacy: true, .. } => EraRule::Legacy,
            EraArgs { lenient: true, .. } => EraRule::Lenient,
            EraArgs { allow_legacy: true, .. } => EraRule::Allowed,
            _ if is_listed => EraRule::Allowed,
            _ => EraRule::Strict,
        };
        let defaults = EraPolicy { rule, ..EraPolicy::default() };
        let start = if is_command { Ms(START_MS) } else { Ms(0) };
        let limit = |given: Option<u64>, default: Ms| given.map_or(default.max(start), |ms| Ms(ms.max(1)));
        Ok(EraPolicy {
            probe_limit: limit(self.discover_limit, defaults.probe_limit),
            initialize_limit: limit(self.initialize_limit, defaults.initialize_limit),
            ..defaults
        })
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  midwire probe http://127.0.0.1:3000/mcp
  midwire probe --allow-legacy --json -- npx -y @modelcontextprotocol/server-everything

Exit codes: 0 modern or allowed older and no point violated, 1 otherwise, 2 cannot be reached.")]
pub(in crate::cli) struct ProbeArgs {
    /// The server's URL
    #[arg(value_name = "URL", conflicts_with = "command", required_unless_present = "command")]
    pub(in crate::cli) url: Option<String>,
    #[command(flatten)]
    pub(in crate::cli) era: EraArgs,
    /// Longest wait for each answer
    #[arg(long, value_name = "MS", default_value_t = 5000)]
    pub(in crate::cli) timeout: u64,
    /// Print one JSON object
    #[arg(long)]
    pub(in crate::cli) json: bool,
    /// The server's command and its arguments, instead of a URL
    #[arg(last = true, value_name = "CMD")]
    pub(in crate::cli) command: Vec<String>,
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own on the command line")]
#[command(after_help = "\
Examples:
  midwire call list --url http://127.0.0.1:3000/mcp
  midwire call slow --arg steps=5 --progress --url http://127.0.0.1:3000/mcp
  midwire call ask_user --answer name='{\"action\":\"decline\"}' --url http://127.0.0.1:3000/mcp
  midwire call read demo://notes -- midwire serve stdio
  midwire call listen --watch tools --for 60000 --url http://127.0.0.1:3000/mcp
  midwire call list --peer a=http://127.0.0.1:3000/mcp --peer b='midwire serve stdio'

docs/call.md describes all of it.
Exit codes: 0 an answer, 1 an error, a tool error or no answer, 2 cannot be sent or no token for it.")]
pub(in crate::cli) struct CallArgs {
    /// A word (discover, list, prompts, resources, templates, prompt, read, complete, listen, tool), or
    /// the name of a tool
    #[arg(value_name = "WORD|TOOL", required_unless_present_any = ["method", "conformance", "faults"])]
    pub(in crate::cli) what: Option<String>,
    /// What the word is about: a prompt, a URI, a tool
    #[arg(value_name = "NAME|URI")]
    pub(in crate::cli) target: Option<String>,
    /// Any method instead of a word
    #[arg(long, value_name = "NAME", conflicts_with = "what")]
    pub(in crate::cli) method: Option<String>,
    /// Its parameters, as a JSON object
    #[arg(long, value_name = "OBJECT", requires = "method")]
    pub(in crate::cli) params: Option<String>,
    /// The server's URL
    #[arg(long, value_name = "URL", conflicts_with_all = ["command", "peer"],
        required_unless_present_any = ["command", "peer", "conformance", "faults"])]
    pub(in crate::cli) url: Option<String>,
    /// One of several servers, by a name; may be repeated
    #[arg(long, value_name = "NAME=URL|NAME=CMD", value_parser = name_and_value, conflicts_with = "command")]
    pub(in crate::cli) peer: Vec<(String, String)>,
    /// Where two of them have a tool of one name
    #[arg(long, value_enum, default_value_t = Clashing::Prefix)]
    pub(in crate::cli) collisions: Clashing,
    /// An argument of the tool or prompt; a value that is JSON is sent as such, anything else as a string
    #[arg(long = "arg", value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub(in crate::cli) args: Vec<(String, String)>,
    /// All arguments, as a JSON object
    #[arg(long, value_name = "OBJECT", conflicts_with = "args")]
    pub(in crate::cli) arguments: Option<String>,
    /// What is said when the server asks: by the key of the question, or by its method
    #[arg(long = "answer", value_name = "KEY=JSON", value_parser = name_and_value)]
    pub(in crate::cli) answer: Vec<(String, String)>,
    /// A file with such answers, as one JSON object
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) answers: Option<PathBuf>,
    /// Accept forms that nothing else is said about, with their defaults
    #[arg(long)]
    pub(in crate::cli) fill_forms: bool,
    /// What the client declares, as a JSON object; default: what it has answers for, and tasks
    #[arg(long, value_name = "OBJECT")]
    pub(in crate::cli) capabilities: Option<String>,
    /// Do not declare tasks, so that no call becomes one
    #[arg(long)]
    pub(in crate::cli) no_tasks: bool,
    /// Ask for log messages from this level on, and print them
    #[arg(long, value_name = "LEVEL", value_parser = level)]
    pub(in crate::cli) log_level: Option<Level>,
    /// Ask for progress and print it
    #[arg(long)]
    pub(in crate::cli) progress: bool,
    /// Give up after this long without progress
    #[arg(long, value_name = "MS", default_value_t = 60_000)]
    pub(in crate::cli) timeout: u64,
    /// Give up after this long, whatever comes; a task is watched as long again
    #[arg(long, value_name = "MS", default_value_t = 300_000)]
    pub(in crate::cli) max: u64,
    /// Cancel, in the way of the transport, after this long; a task by tasks/cancel
    #[arg(long, value_name = "MS")]
    pub(in crate::cli) cancel_after: Option<u64>,
    /// Break the connection without a word after this long
    #[arg(long, value_name = "MS")]
    pub(in crate::cli) drop_after: Option<u64>,
    /// Times that a lost call is made again, if the contract of its tool (--policy) allows it
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(in crate::cli) retries: u32,
    /// Name from which the waits between attempts come, so that they are the same each time; default: chance
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) spread: Option<String>,
    /// listen: tools, prompts, resources, task:ID, or the URI of a resource; may be repeated
    #[arg(long, value_name = "WHAT")]
    pub(in crate::cli) watch: Vec<String>,
    /// listen: end after this long
    #[arg(long = "for", value_name = "MS")]
    pub(in crate::cli) listen_for: Option<u64>,
    /// listen: end after so many changes
    #[arg(long, value_name = "N")]
    pub(in crate::cli) changes: Option<u64>,
    /// listen: times that a lost subscription is opened again
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(in crate::cli) reconnects: u32,
    #[command(flatten)]
    pub(in crate::cli) era: EraArgs,
    /// Be the client that a scenario of the conformance suite asks for, against this URL
    #[arg(long, value_name = "URL", conflicts_with_all = ["what", "method", "url", "peer", "command"])]
    pub(in crate::cli) conformance: Option<String>,
    #[command(flatten)]
    pub(in crate::cli) steering: ClientSteering,
    #[command(flatten)]
    pub(in crate::cli) auth: AuthArgs,
    /// Print the outcome as one JSON object; `listen`: one for each event
    #[arg(long)]
    pub(in crate::cli) json: bool,
    /// The server's command and its arguments, instead of --url
    #[arg(last = true, value_name = "CMD")]
    pub(in crate::cli) command: Vec<String>,
}

/// What is done where two servers have a tool of one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Clashing {
    /// The first keeps it, later ones get the name of their server before it
    Prefix,
    /// An error
    Reject,
}

fn level(text: &str) -> Result<Level, String> {
    Level::from_name(text).ok_or_else(|| {
        let names: Vec<&str> = Level::ALL.iter().map(|level| level.as_str()).collect();
        format!("{text} is no level; there are {}", names.join(", "))
    })
}

fn name_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("{text} is not NAME=VALUE")),
    }
}

//! What may stand on the command line.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

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
    pub(super) command: Command,
    #[command(flatten)]
    pub(super) screen: Screen,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Tap a stdio server: stands where the client has the server's command
    Stdio(StdioArgs),
    /// Tap an HTTP server: a reverse proxy on loopback, with the viewer when on a terminal
    Http(HttpArgs),
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

/// What both kinds of tap take.
#[derive(Debug, Args)]
pub(super) struct TapArgs {
    /// Where the recording goes (`.zst` is compressed); `off`: nowhere; default: a file of its own
    #[arg(long, value_name = "FILE|off")]
    pub(super) record: Option<String>,
    /// A name for this tap in lists
    #[arg(long, value_name = "NAME")]
    pub(super) label: Option<String>,
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
    /// The server, such as http://127.0.0.1:3000/mcp
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
    #[command(flatten)]
    pub(super) screen: Screen,
}

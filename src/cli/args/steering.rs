//! What makes the reference peers do wrong, and how they are told to while they run.

use std::path::PathBuf;

use clap::Args;

use crate::app::sockets::SocketAt;
use crate::peer::faults::Fault;

/// How the reference server is steered beside the wire.
#[derive(Debug, Args)]
pub(in crate::cli) struct ServerSteering {
    /// Do this wrong on purpose; several are separated by commas (`midwire serve --faults` lists them)
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(in crate::cli) fault: Vec<Fault>,
    /// Tell a tap about the work, on its socket; default: the one that `$MIDWIRE_TELEMETRY` names
    #[arg(long, value_name = "SOCKET", num_args = 0..=1, require_equals = true,
        default_missing_value = "")]
    pub(in crate::cli) telemetry: Option<SocketAt>,
    /// Take orders on a local socket; default: one in the state folder (`midwire ctl` gives them)
    #[arg(long, value_name = "SOCKET", num_args = 0..=1, require_equals = true,
        default_missing_value = "")]
    pub(in crate::cli) control: Option<SocketAt>,
}

/// What the reference client does wrong.
#[derive(Debug, Args)]
pub(in crate::cli) struct ClientSteering {
    /// Do this wrong on purpose; several are separated by commas
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(in crate::cli) fault: Vec<Fault>,
    /// List the faults that --fault takes, and end
    #[arg(long)]
    pub(in crate::cli) faults: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  midwire ctl - status
  midwire ctl files hold on='tool:charge kind:result'
  midwire ctl files release all reverse
  midwire ctl files cancel on='id:7' client=error
  midwire ctl 4711 delay on='kind:progress' ms=300 jitter=100 times=always seed=7
  midwire ctl - race on='tool:slow' first=cancel times=20
  midwire ctl verbs                 all verbs; `midwire ctl verbs delay`: all about one
  midwire ctl --serve /tmp/server.ctl fault late_answer on
  midwire ctl --serve /tmp/server.ctl faults

TAP: its label, the number of its process, the beginning of its session's name, its socket, or `-`
for the only one. docs/hands.md explains the verbs.
Exit codes: 0 done, 1 refused, 2 nobody listens there, or the order cannot be read.")]
pub(in crate::cli) struct CtlArgs {
    /// The tap, and the order: a verb and what it takes
    #[arg(value_name = "TAP ORDER", num_args = 0..)]
    pub(in crate::cli) words: Vec<String>,
    /// Give the order to the reference server with this control socket instead
    #[arg(long, value_name = "SOCKET")]
    pub(in crate::cli) serve: Option<PathBuf>,
    /// Print the answer as one JSON object
    #[arg(long)]
    pub(in crate::cli) json: bool,
    /// Print the words that may stand next in this line of an order, for shells
    #[arg(long, value_name = "LINE", conflicts_with_all = ["serve", "words"])]
    pub(in crate::cli) complete: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  midwire faults plans/dying-server.toml
  midwire stdio --faults plans/dying-server.toml --record run.mw.jsonl -- python server.py
  midwire check --faults plans/dying-server.toml run.mw.jsonl

Exit code 2: it is no recipe; line and column are told.")]
pub(in crate::cli) struct FaultsArgs {
    /// The recipe
    #[arg(value_name = "FILE")]
    pub(in crate::cli) file: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

//! What makes the reference peers do wrong, and how they are told to while they run.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

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
  midwire serve http --control=/tmp/server.ctl
  midwire ctl --serve /tmp/server.ctl fault late_answer on
  midwire ctl --serve /tmp/server.ctl faults

Exit codes: 0 done, 1 refused, 2 nobody listens there.")]
pub(in crate::cli) struct CtlArgs {
    /// The control socket of a reference server
    #[arg(long, value_name = "SOCKET")]
    pub(in crate::cli) serve: PathBuf,
    #[command(subcommand)]
    pub(in crate::cli) order: Order,
}

#[derive(Debug, Clone, Subcommand)]
pub(in crate::cli) enum Order {
    /// Turn a fault on or off
    Fault {
        /// Its name
        #[arg(value_name = "NAME")]
        name: Fault,
        /// What it becomes
        #[arg(value_name = "on|off")]
        to: OnOff,
    },
    /// List the faults, and which are on
    Faults,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum OnOff {
    /// Do it wrong
    On,
    /// Do it right
    Off,
}

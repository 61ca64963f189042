//! Arguments of the self-test.

use std::path::PathBuf;

use clap::Args;

use crate::peer::faults::Fault;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  midwire selftest
  midwire selftest 3 12 --json
  midwire selftest 7 --fault check_then_act        see it fail
  midwire selftest --keep /tmp/recordings          and look at what passed

Exit codes: 0 all of them hold, 1 one does not. docs/selftest.md says what each is judged by.")]
pub(in crate::cli) struct SelftestArgs {
    /// Numbers of statements; default: all twelve
    #[arg(value_name = "N", value_parser = clap::value_parser!(u8).range(1..=12))]
    pub(in crate::cli) only: Vec<u8>,
    /// Print one JSON object
    #[arg(long)]
    pub(in crate::cli) json: bool,
    /// Have the reference server or client do this wrong; several are separated by commas
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(in crate::cli) fault: Vec<Fault>,
    /// Keep the recordings in this folder
    #[arg(long, value_name = "FOLDER")]
    pub(in crate::cli) keep: Option<PathBuf>,
}

//! Arguments → `app` → exit code. The only room that prints.
//!
//! Exit codes: 0 clean · 1 findings or a failed check · 2 usage or set-up error · 3 internal.
//! `midwire stdio` ends with the status of the command that it wraps. A broken pipe on standard
//! output is a quiet end.

mod args;
mod call;
mod check;
mod ctl;
mod faults;
mod ls;
mod probe;
mod rules;
mod selftest;
mod serve;
mod tap;
mod view;

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use clap::Parser;

use crate::app::log;
use crate::report::harmless;
use args::{Cli, Command};

/// Everything is as it should be.
const CLEAN: u8 = 0;
/// Findings, or a call without a good answer.
const FINDINGS: u8 = 1;
/// Wrong usage, unreadable input, or a set-up that does not work.
const USAGE: u8 = 2;
/// A fault of midwire's own.
const INTERNAL: u8 = 3;

/// Runs the program with the process's arguments.
#[must_use]
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let code = if error.use_stderr() { USAGE } else { CLEAN };
            // A closed standard output (`midwire --help | head -1`) is no error.
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    log::start();
    // The terminal is the viewer's to restore; what a panic says was printed by then.
    let ran = catch_unwind(AssertUnwindSafe(|| run(cli)));
    let Ok(ran) = ran else { return ExitCode::from(INTERNAL) };
    match ran {
        Ok(code) => ExitCode::from(code),
        Err(error) if is_broken_pipe(&error) => ExitCode::from(CLEAN),
        Err(error) => {
            say(&one_line(&error));
            ExitCode::from(USAGE)
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<u8> {
    let Some(command) = cli.command else { return view::home(&cli.screen) };
    match command {
        Command::Demo(args) => view::demo(&args, &cli.screen),
        Command::Open(args) => view::open(&args, &cli.screen),
        Command::Stdio(args) => tap::stdio(&args),
        Command::Http(args) => tap::http(&args, &cli.screen),
        Command::Ls(args) => ls::ls(&args),
        Command::Check(args) => check::check(&args),
        Command::Rules(args) => rules::rules(&args),
        Command::Serve(args) => serve::serve(&args),
        Command::Call(args) => call::call(&args),
        Command::Ctl(args) => ctl::ctl(&args),
        Command::Faults(args) => faults::faults(&args),
        Command::Probe(args) => probe::probe(&args),
        Command::Selftest(args) => selftest::selftest(&args),
    }
}

/// The error and its causes in one line, each said once.
fn one_line(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        if !text.contains(&cause) {
            if !text.is_empty() {
                text.push_str(": ");
            }
            text.push_str(&cause);
        }
    }
    text.replace('\n', " ")
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|io| io.kind() == std::io::ErrorKind::BrokenPipe)
}

/// One line for the person, in which nothing foreign steers the terminal; a standard error that is
/// gone is no reason to stop.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "midwire: {}", harmless(text));
}

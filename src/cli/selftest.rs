//! `midwire selftest`: twelve statements about reliability, played and judged here and now.

use std::io::Write as _;

use anyhow::bail;
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};

use super::args::selftest::SelftestArgs;
use super::{CLEAN, FINDINGS};
use crate::app::selftest::{self, Line, Options};
use crate::time::{Ms, TimerClock};

/// Prints one line a statement, as each is there.
pub(super) fn selftest(args: &SelftestArgs) -> anyhow::Result<u8> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        // Whatever ends it, nothing is left behind: what runs is dropped, and with that ended.
        tokio::select! {
            code = run(args) => code,
            _ = interrupt.recv() => bail!("interrupted"),
            _ = terminate.recv() => bail!("ended by a signal"),
        }
    })
}

async fn run(args: &SelftestArgs) -> anyhow::Result<u8> {
    let options = Options { only: args.only.clone(), faults: args.fault.clone(), keep: args.keep.clone() };
    let clock = TimerClock::start();
    let mut printed = Ok(());
    let lines = selftest::run(options, |line| {
        if !args.json && printed.is_ok() {
            printed = writeln!(std::io::stdout(), "{}", text(line));
        }
    })
    .await?;
    printed?;
    let passed = lines.iter().all(Line::passed);
    if args.json {
        writeln!(std::io::stdout(), "{:#}", json(&lines, passed, clock.now()))?;
    }
    Ok(if passed { CLEAN } else { FINDINGS })
}

fn text(line: &Line) -> String {
    let word = if line.passed() { "passed" } else { "FAILED" };
    let evidence: Vec<String> = line
        .runs
        .iter()
        .map(|run| {
            // Where only one of two failed it is seen which.
            let mark = if run.passed || line.runs.len() == 1 { "" } else { "FAILED: " };
            format!("{}: {mark}{}", run.on.as_str(), run.evidence)
        })
        .collect();
    format!("{word} {:>2}  {}  [{} ms]  {}", line.number, line.says, line.took().0, evidence.join("; "))
}

fn json(lines: &[Line], passed: bool, took: Ms) -> Value {
    let lines: Vec<Value> = lines
        .iter()
        .map(|line| {
            let runs: Vec<Value> = line
                .runs
                .iter()
                .map(|run| {
                    json!({
                        "transport": run.on.as_str(),
                        "passed": run.passed,
                        "evidence": run.evidence,
                        "ms": run.took.0,
                    })
                })
                .collect();
            json!({
                "number": line.number,
                "says": line.says,
                "passed": line.passed(),
                "ms": line.took().0,
                "runs": runs,
            })
        })
        .collect();
    json!({ "passed": passed, "ms": took.0, "statements": lines })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::selftest::Run;
    use crate::spec::transport::Transport;

    #[test]
    fn a_line_says_which_of_its_runs_failed() {
        let run = |on, passed: bool| {
            let evidence = if passed { "well" } else { "badly" }.to_owned();
            Run { on, passed, evidence, took: Ms(40) }
        };
        let (stdio, http) = (Transport::Stdio, Transport::Http);
        for (runs, expected) in [
            (vec![run(stdio, true)], "passed  3  it holds  [40 ms]  stdio: well"),
            (vec![run(http, false)], "FAILED  3  it holds  [40 ms]  http: badly"),
            (
                vec![run(stdio, true), run(http, false)],
                "FAILED  3  it holds  [80 ms]  stdio: well; http: FAILED: badly",
            ),
        ] {
            let line = Line { number: 3, says: "it holds", runs };
            assert_eq!(text(&line), expected);
            let json = json(std::slice::from_ref(&line), line.passed(), Ms(80));
            assert_eq!(json["passed"], json!(line.passed()));
            assert_eq!(json["statements"][0]["runs"].as_array().unwrap().len(), line.runs.len());
        }
    }
}

//! `midwire probe`: a server looked at from outside.

use std::io::Write;

use serde_json::{Value, json};

use super::args::call::ProbeArgs;
use super::{CLEAN, FINDINGS};
use crate::peer::client::Client;
use crate::peer::client::era::EraReport;
use crate::peer::client::probe::{self, PointState, ProbeReport};
use crate::report::harmless;
use crate::time::Ms;

/// Looks at the server and prints what was found out.
pub(super) fn probe(args: &ProbeArgs) -> anyhow::Result<u8> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let report = runtime.block_on(run(args))?;
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", as_json(&report))?;
    } else {
        print(&mut out, &report)?;
    }
    Ok(if report.is_clean() { CLEAN } else { FINDINGS })
}

async fn run(args: &ProbeArgs) -> anyhow::Result<ProbeReport> {
    let name = args.url.clone().unwrap_or_else(|| args.command.join(" "));
    let policy = args.era.for_server(&name, args.url.is_none())?;
    let client = match &args.url {
        Some(url) => Client::http(url)?,
        None => Client::spawn(&args.command)?,
    };
    Ok(probe::probe(client, &policy, Ms(args.timeout.max(1))).await?)
}

fn print(out: &mut impl Write, report: &ProbeReport) -> std::io::Result<()> {
    writeln!(out, "era: {}", harmless(&era(&report.era)))?;
    for step in &report.era.steps {
        writeln!(out, "  {} -> {}", harmless(&step.sent), harmless(&step.came))?;
        writeln!(out, "    {}", harmless(&step.conclusion))?;
    }
    for point in &report.points {
        let glyph = match point.state {
            PointState::Ok => "✓",
            PointState::Violated => "✗",
            PointState::NotObserved => "?",
        };
        let (name, rule, state) = (point.name, point.rule, point.state.as_str());
        let (sent, came) = (harmless(&point.sent), harmless(&point.came));
        writeln!(out, "{glyph} {name:<14} {state:<12} {rule:<8} {sent} -> {came}")?;
    }
    Ok(())
}

/// The era and who it is, in one line.
pub(super) fn era(report: &EraReport) -> String {
    let Some(settled) = &report.settled else { return "not established".to_owned() };
    let info = settled.server_info().map(|info| format!(", server {info}")).unwrap_or_default();
    format!("{}{info}", settled.speech.version)
}

fn as_json(report: &ProbeReport) -> Value {
    let points = report.points.iter().map(|point| {
        json!({
            "point": point.name,
            "rule": point.rule,
            "sent": point.sent,
            "came": point.came,
            "state": point.state.as_str(),
        })
    });
    json!({ "era": era_json(&report.era), "points": points.collect::<Vec<_>>(), "clean": report.is_clean() })
}

/// The evidence of an era, as JSON.
pub(super) fn era_json(report: &EraReport) -> Value {
    let steps = report
        .steps
        .iter()
        .map(|step| json!({ "sent": step.sent, "came": step.came, "conclusion": step.conclusion }));
    let settled = report.settled.as_ref();
    let info = settled.and_then(|settled| serde_json::from_str(settled.server_info()?.get()).ok());
    json!({
        "version": settled.map(|settled| settled.speech.version.clone()),
        "server": info.unwrap_or(Value::Null),
        "steps": steps.collect::<Vec<_>>(),
    })
}

//! `midwire call`: the reference client.

use std::io::Write;

use anyhow::Context as _;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::args::call::CallArgs;
use super::{CLEAN, FINDINGS, say};
use crate::peer::client::era::EraReport;
use crate::peer::client::{CallOptions, Client, Outcome, Progress, Report};
use crate::report;
use crate::time::Ms;
use crate::wire::jsonrpc::{self, Id};

/// Makes one call and prints what came of it.
pub(super) fn call(args: &CallArgs) -> anyhow::Result<u8> {
    let arguments = arguments(args)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let report = runtime.block_on(run(args, &arguments))?;
    let mut out = std::io::stdout().lock();
    if args.json {
        print_json(&mut out, &report)?;
    } else {
        print_text(&mut out, &report)?;
    }
    Ok(if is_good(&report.outcome) { CLEAN } else { FINDINGS })
}

async fn run(args: &CallArgs, arguments: &RawValue) -> anyhow::Result<Report> {
    let client = match &args.url {
        Some(url) => Client::http(url)?,
        None => Client::spawn(&args.command)?,
    };
    let options = CallOptions {
        idle: Ms(args.timeout),
        max: Ms(args.max.max(args.timeout)),
        wants_progress: args.progress,
        cancel_after: args.cancel_after.map(Ms),
        drop_after: args.drop_after.map(Ms),
        ..CallOptions::default()
    };
    let name = args.url.clone().unwrap_or_else(|| args.command.join(" "));
    let policy = args.era.for_server(&name, args.url.is_none())?;
    let era = client.settle(&policy, &options).await?;
    if era.settled.is_none() {
        client.close().await?;
        return Ok(unsettled(era));
    }
    let report = match args.what.as_str() {
        "discover" => client.discover(&options).await,
        "list" => client.list(None, &options).await,
        tool => client.call(tool, arguments, &options, tell).await,
    };
    if let Some(exit) = client.close().await?
        && exit.was_forced
    {
        say("the server did not end when its input was closed, and was ended by a signal");
    }
    Ok(report?)
}

/// Nothing is asked of a server whose era is not known: the question for it is how it went.
fn unsettled(era: EraReport) -> Report {
    for step in &era.steps {
        say(&format!("{}: {}; {}", step.sent, step.came, step.conclusion));
    }
    let outcome = era.last.unwrap_or_else(|| Outcome::Lost("the era is not known".to_owned()));
    Report {
        id: Id::from(1),
        outcome: match outcome {
            Outcome::Complete(_) => Outcome::Invalid("the era of the server is not established".to_owned()),
            other => other,
        },
        status: era.status,
        progress: 0,
        rejected: 0,
        elapsed: Ms(0),
        faults: Vec::new(),
    }
}

fn tell(progress: &Progress) {
    let total = progress.total.map(|total| format!(" of {total}")).unwrap_or_default();
    let message = progress.message.as_deref().map(|message| format!("  {message}")).unwrap_or_default();
    say(&format!("progress {}{total}{message}", progress.value));
}

/// The tool's arguments as one JSON object.
fn arguments(args: &CallArgs) -> anyhow::Result<Box<RawValue>> {
    if let Some(text) = &args.arguments {
        let raw: Box<RawValue> = serde_json::from_str(text)
            .with_context(|| format!("cannot read --arguments {text}: it must be a JSON object"))?;
        anyhow::ensure!(raw.get().starts_with('{'), "--arguments {text} is no JSON object");
        return Ok(raw);
    }
    let mut object = serde_json::Map::new();
    for (name, value) in &args.args {
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.clone()));
        object.insert(name.clone(), value);
    }
    Ok(serde_json::value::to_raw_value(&object)?)
}

fn is_good(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Complete(result) => !is_tool_error(result),
        Outcome::InputRequired(_) => true,
        _ => false,
    }
}

fn is_tool_error(result: &RawValue) -> bool {
    jsonrpc::at(result, &["isError"]).is_some_and(|raw| raw.get() == "true")
}

fn print_text(out: &mut impl Write, report: &Report) -> std::io::Result<()> {
    match &report.outcome {
        Outcome::Complete(result) | Outcome::InputRequired(result) => writeln!(out, "{}", result.get())?,
        other => writeln!(out, "{}", one_line(&words(other, report.status)))?,
    }
    for fault in &report.faults {
        say(&format!("the server: {fault}"));
    }
    Ok(())
}

/// Foreign text as one line that steers no terminal.
fn one_line(text: &str) -> String {
    report::harmless(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// How a call ended that has no result.
fn words(outcome: &Outcome, status: Option<u16>) -> String {
    match outcome {
        Outcome::Complete(_) => "complete".to_owned(),
        Outcome::InputRequired(_) => "input required".to_owned(),
        Outcome::Task(_) => "a task".to_owned(),
        Outcome::TaskCancelled => "the task has ended cancelled".to_owned(),
        Outcome::Error { code, message, data } => {
            let data = data.as_ref().map(|data| format!(" {data}")).unwrap_or_default();
            format!("error {code}: {message}{data}")
        }
        Outcome::Refused { body } => {
            let status = status.map(|status| format!(" with status {status}")).unwrap_or_default();
            format!("refused{status}, without an MCP answer; is this the URL of an MCP server? {body}")
        }
        Outcome::GivenUp(reason) => format!("given up: {}", reason.as_str()),
        Outcome::Lost(why) => format!("lost: {why}"),
        Outcome::Invalid(why) => format!("invalid answer: {why}"),
    }
}

fn print_json(out: &mut impl Write, report: &Report) -> std::io::Result<()> {
    let parse = |raw: &RawValue| serde_json::from_str::<Value>(raw.get()).unwrap_or(Value::Null);
    let (outcome, detail) = match &report.outcome {
        Outcome::Complete(result) => ("complete", parse(result)),
        Outcome::InputRequired(result) => ("input_required", parse(result)),
        Outcome::Task(task) => ("task", parse(task)),
        Outcome::TaskCancelled => ("task_cancelled", Value::Null),
        Outcome::Error { code, message, data } => {
            let data = data.as_ref().map(|data| parse(data));
            ("error", json!({"code": code, "message": message, "data": data}))
        }
        Outcome::Refused { body } => ("refused", json!(body)),
        Outcome::GivenUp(reason) => ("given_up", json!(reason.as_str())),
        Outcome::Lost(why) => ("lost", json!(why)),
        Outcome::Invalid(why) => ("invalid", json!(why)),
    };
    let object = json!({
        "id": report.id.to_string(),
        "outcome": outcome,
        "detail": detail,
        "status": report.status,
        "progress": report.progress,
        "rejected": report.rejected,
        "elapsed_ms": report.elapsed.0,
        "faults": report.faults,
    });
    writeln!(out, "{object}")
}

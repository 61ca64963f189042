//! How a call went, as text and as JSON.

use std::io::Write;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::cli::args::call::CallArgs;
use crate::cli::probe::era_json;
use crate::cli::say;
use crate::peer::client::era::EraReport;
use crate::peer::client::lists::Walk;
use crate::peer::client::peer::Conversation;
use crate::peer::client::{Outcome, Report};
use crate::report;
use crate::wire::jsonrpc;

/// A call from its first request to its end; true: it ended well.
pub(super) fn conversation(args: &CallArgs, era: &EraReport, talk: &Conversation) -> std::io::Result<bool> {
    let mut out = std::io::stdout().lock();
    let is_good = super::is_good(talk);
    let last = talk.reports.last();
    if args.json {
        let mut object = last.map_or_else(|| json!({}), report_json);
        let (outcome, detail) = outcome_json(&talk.outcome);
        object["outcome"] = json!(outcome);
        object["detail"] = detail;
        object["era"] = era_json(era);
        object["requests"] = talk.reports.iter().map(report_json).collect();
        object["class"] = json!(talk.class.0.as_str());
        object["class_why"] = json!(talk.class.1.as_str());
        object["retries"] = json!(talk.retries);
        object["task"] = talk.task.as_ref().map_or(Value::Null, |task| {
            let (id, state) = (&task.id, task.state.as_str());
            json!({ "id": id, "state": state, "polls": task.polls, "cancel_sent": task.was_cancel_sent })
        });
        writeln!(out, "{object}")?;
    } else {
        text(&mut out, &talk.outcome, last.and_then(|last| last.status))?;
        for fault in talk.reports.iter().flat_map(|report| &report.faults) {
            say(&format!("the server: {fault}"));
        }
    }
    Ok(is_good)
}

/// A list, page by page as it came.
pub(super) fn walk(args: &CallArgs, era: &EraReport, walk: &Walk) -> std::io::Result<bool> {
    let mut out = std::io::stdout().lock();
    let dropped = walk.list.as_ref().map(|list| &list.dropped);
    for (name, why) in dropped.into_iter().flatten() {
        say(&format!("{name} is not used: {why}"));
    }
    if !args.json {
        for report in &walk.reports {
            text(&mut out, &report.outcome, report.status)?;
        }
        return Ok(walk.list.is_some());
    }
    let mut object = walk.reports.last().map_or_else(|| json!({}), report_json);
    if let Some(list) = &walk.list {
        let scope = if list.hints.is_public { "public" } else { "private" };
        let items: Vec<Value> = list.items.values().map(|item| parse(item)).collect();
        object["detail"] = json!({
            "items": items, "dropped": list.dropped, "ttlMs": list.hints.ttl.0, "cacheScope": scope,
        });
    }
    object["era"] = era_json(era);
    object["requests"] = walk.reports.iter().map(report_json).collect();
    writeln!(out, "{object}")?;
    Ok(walk.list.is_some())
}

/// Nothing is asked of a server whose era is not known: the question for it is how it went.
pub(super) fn unsettled(args: &CallArgs, era: &EraReport) -> std::io::Result<bool> {
    let mut out = std::io::stdout().lock();
    let unknown = Outcome::Invalid("the era of the server is not established".to_owned());
    let outcome = match &era.last {
        None | Some(Outcome::Complete(_)) => &unknown,
        Some(other) => other,
    };
    if args.json {
        let (outcome, detail) = outcome_json(outcome);
        let era_told = era_json(era);
        writeln!(
            out,
            "{}",
            json!({ "outcome": outcome, "detail": detail, "status": era.status, "era": era_told })
        )?;
        return Ok(false);
    }
    text(&mut out, outcome, era.status)?;
    for step in &era.steps {
        say(&format!("{} -> {}; {}", step.sent, step.came, step.conclusion));
    }
    Ok(false)
}

fn text(out: &mut impl Write, outcome: &Outcome, status: Option<u16>) -> std::io::Result<()> {
    match outcome {
        Outcome::Complete(result) | Outcome::InputRequired(result) => writeln!(out, "{}", result.get()),
        other => writeln!(out, "{}", one_line(&words(other, status))),
    }
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
        Outcome::Task(task) => format!("a task: {task}"),
        Outcome::TaskCancelled => "the task has ended cancelled".to_owned(),
        Outcome::Error { code, message, data } => {
            let data = data.as_ref().map(|data| format!(" {data}")).unwrap_or_default();
            format!("error {code}: {message}{data}")
        }
        Outcome::Refused { body } if status == Some(401) => {
            format!("refused with status 401: the server wants authorization; {body}")
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

fn parse(raw: &RawValue) -> Value {
    serde_json::from_str(raw.get()).unwrap_or(Value::Null)
}

fn outcome_json(outcome: &Outcome) -> (&'static str, Value) {
    match outcome {
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
    }
}

fn report_json(report: &Report) -> Value {
    let (outcome, detail) = outcome_json(&report.outcome);
    json!({
        "id": report.id.to_string(),
        "outcome": outcome,
        "detail": detail,
        "status": report.status,
        "progress": report.progress,
        "rejected": report.rejected,
        "elapsed_ms": report.elapsed.0,
        "faults": report.faults,
    })
}

/// A tool result that says that the tool has failed.
pub(super) fn is_tool_error(result: &RawValue) -> bool {
    jsonrpc::at(result, &["isError"]).is_some_and(|raw| raw.get() == "true")
}

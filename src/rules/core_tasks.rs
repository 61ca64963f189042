//! Tasks as the 2025-11-25 core has them (TSL-01..07). There a cancel is strict: its answer already
//! says `cancelled`, the opposite of the extension's cancel.

use std::collections::HashMap;

use crate::model::tasks::{TaskState, TaskStatus, Told};
use crate::model::{CallIdx, Name, ScopeIdx};
use crate::rules::book::{Book, On};
use crate::rules::case::{Case, number, short};
use crate::rules::findings::Out;
use crate::rules::tasks::{history, is_after, too_often};
use crate::wire::json::Value;

const STATUS: &str = "notifications/tasks/status";

/// Key of `_meta` that names the task a message belongs to.
const RELATED: &str = "io.modelcontextprotocol/related-task";

/// Tasks whose result was fetched that are remembered. ours.
const FETCHED_LIMIT: usize = 10_000;

pub(super) fn rules(book: &mut Book) {
    book.rule("TSL-01", &[On::Result, On::NotificationOf(STATUS)], edges);
    book.rule(
        "TSL-02",
        &[On::ResultOf("tasks/cancel"), On::ResultOf("tasks/get"), On::NotificationOf(STATUS)],
        cancelled,
    );
    book.rule("TSL-03", &[On::ResultOf("tasks/cancel")], cancel_of_ended);
    book.rule("TSL-04", &[On::ResultOf("tasks/result")], related);
    book.rule("TSL-05", &[On::RequestOf("tools/call")], as_declared);
    book.rule("TSL-06", &[On::ResultOf("tasks/result"), On::ResultOf("tasks/get")], result_too_early());
    book.rule("TSL-07", &[On::RequestOf("tasks/get")], too_often);
}

fn event(case: &Case<'_>, state: &TaskState) -> u64 {
    number(case.model, state.row).unwrap_or_default()
}

fn edges(case: &Case<'_>, out: &mut Out<'_>) {
    let Some((task, now, before)) = history(case) else { return };
    let id = short(case.model.text(task.id));
    let Some(is) = now.status else { return };
    if now.told == Told::Handle && is != TaskStatus::Working {
        out.say(case, format!("the new task {id} begins as {}", is.as_str()));
    }
    // What a cancel's answer says is judged by TSL-02 and TSL-03.
    if now.told == Told::CancelAnswer {
        return;
    }
    let Some(ended) = before.iter().find(|state| state.status.is_some_and(TaskStatus::is_terminal)) else {
        return;
    };
    let Some(was) = ended.status.filter(|was| *was != is && *was != TaskStatus::Cancelled) else { return };
    if is_after(case, now, ended) {
        let sentence = format!("task {id} is {}, after it had been {}", is.as_str(), was.as_str());
        out.draft(case).and_event(event(case, ended)).say(out, sentence);
    }
}

fn cancelled(case: &Case<'_>, out: &mut Out<'_>) {
    let Some((task, now, before)) = history(case) else { return };
    let id = short(case.model.text(task.id));
    let Some(is) = now.status.filter(|status| *status != TaskStatus::Cancelled) else { return };
    if now.told == Told::CancelAnswer {
        out.say(case, format!("the cancel of task {id} was answered with the status {}", is.as_str()));
        return;
    }
    let earlier = before.iter().find(|state| state.status == Some(TaskStatus::Cancelled));
    if let Some(earlier) = earlier.filter(|earlier| is_after(case, now, earlier)) {
        let sentence = format!("task {id} is {}, after it had been cancelled", is.as_str());
        out.draft(case).and_event(event(case, earlier)).say(out, sentence);
    }
}

fn cancel_of_ended(case: &Case<'_>, out: &mut Out<'_>) {
    let Some((task, now, before)) = history(case) else { return };
    let ended = before.iter().find(|state| state.status.is_some_and(TaskStatus::is_terminal));
    if let Some(ended) = ended.filter(|ended| now.asked > ended.delivered) {
        let was = ended.status.map_or("", TaskStatus::as_str);
        let sentence = format!(
            "the cancel of task {} was accepted, though it was {was}",
            short(case.model.text(task.id))
        );
        out.draft(case).and_event(event(case, ended)).say(out, sentence);
    }
}

fn related(case: &Case<'_>, out: &mut Out<'_>) {
    if case.result().is_some_and(Value::is_object) && case.meta(RELATED).is_none() {
        out.say(case, format!("{} was answered without the related-task mark", case.subject()));
    }
}

/// What a tool says about being called as a task, and what the server says.
fn as_declared(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(server) = case.server_capabilities() else { return };
    let asks_task = case.params().is_some_and(|params| params.get("task").is_some());
    let offers = server.at(&["tasks", "requests", "tools", "call"]).is_some();
    if asks_task && !offers {
        out.say(
            case,
            format!("{} asks for a task, which the server does not offer for tools", case.subject()),
        );
        return;
    }
    if !offers {
        return;
    }
    let Some(definition) = case.seen.call.and_then(|idx| case.model.definition(idx)) else { return };
    let support = definition.value.at(&["execution", "taskSupport"]).and_then(Value::text);
    let sentence = match (support.as_deref(), asks_task) {
        (Some("required"), false) => {
            format!("{} is no task, and the tool can only be called as one", case.subject())
        }
        (None | Some("forbidden"), true) => {
            format!("{} asks for a task, and the tool cannot be called as one", case.subject())
        }
        _ => return,
    };
    out.say(case, sentence);
}

/// The result of a task was given out, and a later poll says that the task still runs.
fn result_too_early() -> impl FnMut(&Case<'_>, &mut Out<'_>) + Send {
    let mut fetched: HashMap<(ScopeIdx, Name), CallIdx> = HashMap::new();
    move |case, out| {
        let Some(target) = case.call().and_then(|call| call.target) else { return };
        let key = (case.seen.scope, target);
        if case.method() == "tasks/result" {
            if fetched.len() >= FETCHED_LIMIT {
                fetched.clear();
            }
            fetched.extend(case.seen.call.map(|call| (key, call)));
            return;
        }
        let Some(earlier) = fetched.get(&key).copied() else { return };
        let delivered = case.model.call(earlier).and_then(|call| call.ended);
        let Some((_, now, _)) = history(case) else { return };
        let runs = now.status.is_some_and(|status| !status.is_terminal());
        if runs && delivered.is_some_and(|delivered| now.asked > delivered) {
            fetched.remove(&key);
            let id = short(case.model.text(target));
            let status = now.status.map_or("", TaskStatus::as_str);
            let sentence = format!("the result of task {id} was given out, and a later poll says {status}");
            out.draft(case).and_call(case.model, earlier).say(out, sentence);
        }
    }
}

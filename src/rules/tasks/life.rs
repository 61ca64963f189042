//! What a task goes through: it exists at once, ends once, and its times run forward.

use std::collections::HashMap;

use chrono::DateTime;

use super::{INVALID_PARAMS, MISSING_CAPABILITY, NOTIFIED, declares, id, state};
use crate::machine::fingerprint::compact;
use crate::model::tasks::{Task, TaskState, TaskStatus, Told};
use crate::model::{CallIdx, Name, ScopeIdx};
use crate::rules::book::{Book, On};
use crate::rules::case::{Case, short};
use crate::rules::findings::Out;
use crate::rules::{Blame, Severity};
use crate::spec::methods::LISTEN;
use crate::wire::json::Value;

/// Keys of input requests kept for all tasks. ours.
const KEYS_LIMIT: usize = 10_000;

/// Ids shorter than this can be guessed. ours: 8 characters of hexadecimal are 32 bits.
const SHORT_ID: usize = 8;

pub(super) fn rules(book: &mut Book) {
    let told = [On::ResultOf("tasks/get"), On::NotificationOf(NOTIFIED)];
    let answers = [
        On::ResultOf("tasks/get"),
        On::ResultOf("tasks/update"),
        On::ResultOf("tasks/cancel"),
        On::ErrorOf("tasks/get"),
        On::ErrorOf("tasks/update"),
        On::ErrorOf("tasks/cancel"),
    ];
    book.rule("TSK-06", &told, changed_after_end);
    book.rule("TSK-07", &[On::ErrorOf("tasks/get")], not_there);
    book.rule("TSK-12", &told, moved_after_cancel);
    book.rule("TSK-13", &answers, served_undeclared);
    book.rule("TSK-16", &told, key_used_again());
    book.rule("TSK-19", &[On::ErrorOf("tasks/get")], unknown_with_other_code);
    book.rule(
        "TSK-20",
        &[On::NotificationOf("notifications/subscriptions/acknowledged"), On::NotificationOf(NOTIFIED)],
        unasked(),
    );
    book.rule("TSK-23", &[On::Result, On::NotificationOf(NOTIFIED)], times);
    book.rule("TSK-24", &[On::Result], guessable());
    book.rule("TSK-25", &[On::ErrorOf("tasks/get")], gone_early);
}

/// The task of a case, with the state told now and those before it.
pub(in crate::rules) fn history<'a>(case: &Case<'a>) -> Option<(&'a Task, &'a TaskState, &'a [TaskState])> {
    let task = case.model.task(case.seen.scope, &id(case)?)?;
    let (now, before) = task.states.split_last()?;
    (Some(now.row) == case.seen.row).then_some((task, now, before))
}

/// What was asked for (a poll), or told (a notification), certainly after `earlier` had arrived.
pub(in crate::rules) fn is_after(case: &Case<'_>, now: &TaskState, earlier: &TaskState) -> bool {
    let slack = if now.told == Told::Notification { case.window_ns() } else { 0 };
    now.asked.0 > earlier.delivered.0.saturating_add(slack)
}

fn changed_after_end(case: &Case<'_>, out: &mut Out<'_>) {
    let Some((_, now, before)) = history(case) else { return };
    let Some(ended) = before.iter().find(|state| state.status.is_some_and(TaskStatus::is_terminal)) else {
        return;
    };
    let (Some(was), Some(is)) = (ended.status, now.status) else { return };
    if was != is && is_after(case, now, ended) {
        let id = id(case).unwrap_or_default();
        let draft = out.draft(case);
        let draft = match case.model.row(ended.row) {
            Some(row) => draft.and_event(row.n),
            None => draft,
        };
        draft.say(out, format!("task {} is {}, after it had been {}", short(&id), is.as_str(), was.as_str()));
    }
}

/// The task that an error answers for, with the error's code.
fn refused<'a>(case: &Case<'a>) -> Option<(Option<&'a Task>, i64)> {
    let code = case.call()?.error_code?;
    Some((case.model.task(case.seen.scope, &id(case)?), code))
}

/// The task was never read: its handle is all that is known.
fn is_unread(task: &Task) -> bool {
    task.made_by.is_some() && task.states.iter().all(|state| state.told == Told::Handle)
}

/// The server may keep the task no longer.
fn is_expired(case: &Case<'_>, task: &Task) -> bool {
    let Some(Some(ttl_ms)) = task.ttl_ms else { return false };
    case.seen.at.ns_since(task.first_seen) >= ttl_ms.saturating_mul(1_000_000)
}

fn not_there(case: &Case<'_>, out: &mut Out<'_>) {
    let Some((Some(task), INVALID_PARAMS)) = refused(case) else { return };
    let authorization = case.seen.stream.and_then(|stream| case.model.authorization_of(stream));
    let delivered = task.states.first().map(|state| state.delivered);
    let asked_after = case.call().zip(delivered).is_some_and(|(call, delivered)| call.started > delivered);
    if is_unread(task) && asked_after && !is_expired(case, task) && authorization == task.authorization {
        let sentence =
            format!("task {} was handed out, and is unknown to its server", short(case.model.text(task.id)));
        let draft = out.draft(case);
        let draft = task.made_by.into_iter().fold(draft, |draft, idx| draft.and_call(case.model, idx));
        draft.say(out, sentence);
    }
}

fn gone_early(case: &Case<'_>, out: &mut Out<'_>) {
    let Some((Some(task), INVALID_PARAMS)) = refused(case) else { return };
    let (Some(Some(ttl_ms)), Some(read)) = (task.ttl_ms, task.states.last()) else { return };
    let asked_after = case.call().is_some_and(|call| call.started > read.delivered);
    if !is_unread(task) && asked_after && !is_expired(case, task) {
        let age = Case::ms(case.seen.at.ns_since(task.first_seen));
        let id = short(case.model.text(task.id));
        out.say(case, format!("task {id} is gone {age} after it was made; it was to be kept {ttl_ms} ms"));
    }
}

/// D-14: an acknowledged cancel is no outcome. Nobody is at fault.
fn moved_after_cancel(case: &Case<'_>, out: &mut Out<'_>) {
    let Some((task, now, before)) = history(case) else { return };
    let Some(acknowledged) = task.cancel_acknowledged.filter(|at| now.asked > *at) else { return };
    let Some(is) = now.status.filter(|status| *status != TaskStatus::Cancelled && status.is_terminal())
    else {
        return;
    };
    if before.iter().any(|state| state.status.is_some_and(TaskStatus::is_terminal)) {
        return;
    }
    let id = short(case.model.text(task.id));
    let after = Case::ms(now.asked.ns_since(acknowledged));
    out.draft(case).blame(Blame::Unknown).say(
        out,
        format!("the cancel of task {id} was acknowledged, and {after} later the task is {}", is.as_str()),
    );
}

fn served_undeclared(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(call) = case.call() else { return };
    if case.request().is_none() || declares(case.client_capabilities()) {
        return;
    }
    let scope = case.seen.scope;
    let has_handles = case.model.tasks().iter().any(|task| task.scope == scope && task.made_by.is_some());
    let offers = has_handles || declares(case.server_capabilities());
    if !offers {
        return;
    }
    let sentence = match call.error_code {
        None => format!("{} was served, but did not declare the tasks extension", case.subject()),
        Some(MISSING_CAPABILITY) => return,
        Some(code) => {
            format!("{} did not declare the tasks extension, and was refused with {code}", case.subject())
        }
    };
    out.say(case, sentence);
}

/// Hash of a question's text, by task and key.
fn key_used_again() -> impl FnMut(&Case<'_>, &mut Out<'_>) + Send {
    let mut asked: HashMap<(ScopeIdx, Name, String), String> = HashMap::new();
    move |case, out| {
        let Some(requests) = state(case).and_then(|state| state.get("inputRequests")) else { return };
        let Some((task, ..)) = history(case) else { return };
        for (key, question) in requests.members() {
            if asked.len() >= KEYS_LIMIT {
                asked.clear();
            }
            let text = compact(question.raw(), None).unwrap_or_else(|_| question.raw().to_owned());
            let entry = asked.entry((task.scope, task.id, key.to_string()));
            let before = entry.or_insert_with(|| text.clone());
            if *before != text {
                *before = text;
                let id = short(case.model.text(task.id));
                out.say(case, format!("task {id} uses the key {} again for another question", short(&key)));
            }
        }
    }
}

fn unknown_with_other_code(case: &Case<'_>, out: &mut Out<'_>) {
    let Some((None, code)) = refused(case) else { return };
    // Refusals that are about the request and not about the task say nothing about its id.
    let is_other = matches!(code, INVALID_PARAMS | MISSING_CAPABILITY | -32601 | -32600 | -32020 | -32022);
    if case.is_full() && !is_other {
        let id = id(case).unwrap_or_default();
        out.say(case, format!("task {} was never handed out, and asking for it gives {code}", short(&id)));
    }
}

/// What each listen was granted is remembered while its call is open.
fn unasked() -> impl FnMut(&Case<'_>, &mut Out<'_>) + Send {
    let mut granted: HashMap<CallIdx, Vec<String>> = HashMap::new();
    move |case, out| {
        let Some(listen) =
            case.seen.call.filter(|_| case.call().is_some_and(|call| case.model.text(call.method) == LISTEN))
        else {
            return;
        };
        if case.method() != NOTIFIED {
            granted.retain(|idx, _| case.model.call(*idx).is_some_and(|call| !call.state.is_terminal()));
            let ids = case.params().and_then(|params| params.at(&["notifications", "taskIds"]));
            let ids = ids
                .map_or_else(Vec::new, |ids| ids.items().filter_map(Value::text).map(Into::into).collect());
            granted.insert(listen, ids);
            return;
        }
        let (Some(ids), Some(id)) = (granted.get(&listen), id(case)) else { return };
        if !ids.iter().any(|known| *known == id) {
            let subject = case.subject();
            let id = short(&id);
            out.gather(case, (listen, id.clone()), |_| {
                format!("{subject} brought states of task {id}, which it was not granted")
            });
        }
    }
}

fn times(case: &Case<'_>, out: &mut Out<'_>) {
    let Some((task, now, before)) = history(case) else { return };
    let text = |name: Option<Name>| name.map(|name| case.model.text(name));
    let time = |name| text(name).and_then(|text| DateTime::parse_from_rfc3339(text).ok());
    let id = short(case.model.text(task.id));
    let unread = [now.created, now.updated].into_iter().find(|name| name.is_some() && time(*name).is_none());
    let earlier = before.iter().rev().find(|state| is_after(case, now, state));
    let sentence = if let Some(name) = unread {
        format!("task {id} has a time that is none: {}", short(text(name).unwrap_or_default()))
    } else if time(now.updated) < time(now.created) && now.updated.is_some() {
        format!("task {id} was last updated before it was created")
    } else if let Some(earlier) = earlier {
        if earlier.created.is_some() && now.created.is_some() && time(earlier.created) != time(now.created) {
            format!("the creation of task {id} has moved")
        } else if now.updated.is_some() && time(now.updated) < time(earlier.updated) {
            format!("the last update of task {id} runs backwards")
        } else {
            return;
        }
    } else {
        return;
    };
    out.gather(case, (task.scope, task.id), |_| sentence.clone());
}

/// Ids that follow each other, or are very short.
fn guessable() -> impl FnMut(&Case<'_>, &mut Out<'_>) + Send {
    let mut last: HashMap<ScopeIdx, (String, u64)> = HashMap::new();
    move |case, out| {
        if case.call().is_none_or(|call| !call.is_task) {
            return;
        }
        let Some(id) = state(case).and_then(|state| state.get("taskId")).and_then(Value::text) else {
            return;
        };
        let digits = id.bytes().rev().take_while(u8::is_ascii_digit).count();
        let (head, tail) = id.split_at_checked(id.len() - digits).unwrap_or((&id, ""));
        let follows = tail.parse().ok().and_then(|number: u64| {
            let before = last.insert(case.seen.scope, (head.to_owned(), number))?;
            (before.0 == head && before.1.checked_add(1) == Some(number)).then_some(())
        });
        if follows.is_some() || id.len() < SHORT_ID {
            let what = if follows.is_some() { "follow each other" } else { "are very short" };
            let sample = short(&id);
            out.draft(case).at_most(Severity::Hint).gather(out, case.seen.scope, |_| {
                format!("task ids {what}, such as {sample}: they can be guessed")
            });
        }
    }
}

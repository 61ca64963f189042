//! How clients ask for tasks: as often as they were told, until the end, and only what was asked.

use std::collections::{HashMap, HashSet};

use super::{id, is_one_client};
use crate::model::tasks::Task;
use crate::model::{Name, ScopeIdx, Sight};
use crate::rules::Blame;
use crate::rules::book::{Book, On, SightKind};
use crate::rules::case::{Case, number, short};
use crate::rules::findings::Out;
use crate::spec::methods::LISTEN;
use crate::time::Mono;
use crate::wire::json::Value;

/// Time between polls when the server says none, in milliseconds. ours: for TSK-10 only.
const INTERVAL_MS: u64 = 5_000;

/// Intervals without any sign after which a task counts as forgotten (TSK-10).
const FORGOTTEN: u64 = 10;

/// Tasks whose input keys are remembered. ours.
const TASKS_LIMIT: usize = 1_000;

pub(super) fn rules(book: &mut Book) {
    book.rule("TSK-08", &[On::RequestOf("tasks/get")], too_often);
    book.rule("TSK-09", &[On::RequestOf("tasks/get")], after_end);
    book.rule("TSK-10", &[On::RequestOf(LISTEN), On::Sight(SightKind::Ended)], forgotten());
    book.rule(
        "TSK-17",
        &[On::Result, On::NotificationOf(super::NOTIFIED), On::RequestOf("tasks/update")],
        answers(),
    );
}

fn task<'a>(case: &Case<'a>) -> Option<&'a Task> {
    case.model.task(case.seen.scope, &id(case)?)
}

pub(in crate::rules) fn too_often(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(task) = task(case) else { return };
    let (Some(interval_ms), [Some(_), Some(before)]) = (task.poll_interval_ms, task.last_polls) else {
        return;
    };
    let (Some(now), Some(earlier)) = (case.call(), case.model.call(before)) else { return };
    let gap_ns = now.started.ns_since(earlier.started);
    // A poll that follows an update or a notification asks because something happened.
    let is_nudged = task.nudged.is_some_and(|at| at >= earlier.started);
    // A poll whose answer was lost is asked again at once.
    let is_repeat = earlier.state.is_unanswered();
    if gap_ns >= interval_ms.saturating_mul(900_000)
        || is_nudged
        || is_repeat
        || !is_one_client(case, Some(before))
    {
        return;
    }
    let id = short(case.model.text(task.id));
    let gap = Case::ms(gap_ns);
    out.draft(case).and_call(case.model, before).gather(out, (task.scope, task.id), |times| match times {
        1 => format!("task {id} was polled {gap} after the poll before; its server asked for {interval_ms} ms"),
        _ => format!("task {id} was polled too early {times} times, last {gap} after the poll before; its server asked for {interval_ms} ms"),
    });
}

fn after_end(case: &Case<'_>, out: &mut Out<'_>) {
    let Some((task, ended)) = task(case).and_then(|task| Some((task, task.ended()?))) else { return };
    let late_ns = case.call().map_or(0, |call| call.started.ns_since(ended.delivered));
    if late_ns <= case.window_ns() || ended.delivered > case.seen.at {
        return;
    }
    let id = short(case.model.text(task.id));
    let status = ended.status.map_or("", |status| status.as_str());
    out.gather(case, (task.scope, task.id), |times| match times {
        1 => format!("task {id} was polled {} after it was told to be {status}", Case::ms(late_ns)),
        _ => format!("task {id} was polled {times} times after it was told to be {status}"),
    });
}

/// Tasks that nobody asks for any more, at the end of the recording.
fn forgotten() -> impl FnMut(&Case<'_>, &mut Out<'_>) + Send {
    let mut watched: HashSet<(ScopeIdx, String)> = HashSet::new();
    move |case, out| {
        if !matches!(case.what(), Sight::Ended { .. }) {
            let ids = case.params().and_then(|params| params.at(&["notifications", "taskIds"]));
            let ids = ids.into_iter().flat_map(Value::items).filter_map(Value::text);
            watched.extend(ids.take(TASKS_LIMIT).map(|id| (case.seen.scope, id.into_owned())));
            return;
        }
        let mine = case.model.tasks().iter().filter(|task| task.scope == case.seen.scope && !task.is_core);
        for task in mine {
            let name = case.model.text(task.id);
            let is_over = task.ended().is_some() || task.cancel.is_some();
            if is_over || watched.contains(&(task.scope, name.to_owned())) {
                continue;
            }
            let polled = task.last_polls[0].and_then(|idx| case.model.call(idx)).map(|call| call.started);
            let told = task.states.last().map(|state| state.delivered);
            let last: Mono = polled.max(told).unwrap_or(task.first_seen);
            let interval_ms = task.poll_interval_ms.unwrap_or(INTERVAL_MS);
            let quiet_ns = case.seen.at.ns_since(last);
            if quiet_ns > interval_ms.saturating_mul(FORGOTTEN * 1_000_000) {
                let status = task.status().map_or("open", |status| status.as_str());
                let mut draft = out.draft(case).blame(Blame::Client);
                if let Some(idx) = task.made_by {
                    draft = draft.and_call(case.model, idx);
                }
                if let Some(n) = task.states.last().and_then(|state| number(case.model, state.row)) {
                    draft = draft.and_event(n);
                }
                let quiet = Case::ms(quiet_ns);
                draft.say(
                    out,
                    format!("task {} is {status}, and nobody asked for it in the last {quiet}", short(name)),
                );
            }
        }
    }
}

/// Keys that a task has asked for, and those that were answered.
#[derive(Default)]
struct Keys {
    asked: HashSet<String>,
    answered: HashSet<String>,
}

fn answers() -> impl FnMut(&Case<'_>, &mut Out<'_>) + Send {
    let mut tasks: HashMap<(ScopeIdx, Name), Keys> = HashMap::new();
    move |case, out| {
        let Some(task) = task(case) else { return };
        let is_update = case.method() == "tasks/update";
        if is_update && case.result().is_some() {
            return;
        }
        if tasks.len() >= TASKS_LIMIT && !tasks.contains_key(&(task.scope, task.id)) {
            tasks.clear();
        }
        if !is_update {
            let asked = super::state(case).and_then(|state| state.get("inputRequests"));
            let names = asked.into_iter().flat_map(Value::members).map(|(name, _)| name.into_owned());
            let names: Vec<String> = names.take(TASKS_LIMIT).collect();
            if !names.is_empty() {
                tasks.entry((task.scope, task.id)).or_default().asked.extend(names);
            }
            return;
        }
        let given = case.params().and_then(|params| params.get("inputResponses"));
        let keys = tasks.entry((task.scope, task.id)).or_default();
        let (mut unknown, mut again) = (Vec::new(), Vec::new());
        for (name, _) in given.into_iter().flat_map(Value::members) {
            if !keys.asked.contains(&*name) {
                unknown.push(short(&name));
            } else if !keys.answered.insert(name.clone().into_owned()) {
                again.push(short(&name));
            }
        }
        let sentence = match (unknown.as_slice(), again.as_slice()) {
            ([], []) => return,
            ([], again) => format!(
                "an update of task {} answers {} again",
                short(case.model.text(task.id)),
                again.join(", ")
            ),
            (unknown, _) => {
                format!(
                    "an update of task {} answers {}, which it never asked",
                    short(case.model.text(task.id)),
                    unknown.join(", ")
                )
            }
        };
        if case.is_full() {
            out.say(case, sentence);
        }
    }
}

//! Listen requests and their acknowledgements (SUB-01, SUB-02, SUB-04, SUB-16, SUB-20..23).

use std::collections::VecDeque;

use super::{subscription, words};
use crate::event::Transport;
use crate::model::{Call, CallIdx, CallState, Exchange, Filter, Kinds, Model, Sight};
use crate::rules::book::{Book, Look, On, SightKind};
use crate::rules::case::{Case, short};
use crate::rules::findings::Out;
use crate::rules::{Blame, Severity};
use crate::spec::methods::{ACKNOWLEDGED, LISTEN};
use crate::time::Mono;
use crate::wire::json::Value;

/// An acknowledgement that takes longer is late (SUB-20). In nanoseconds.
const SOON_NS: u64 = 5_000_000_000;

/// Listen requests watched for their acknowledgement at once. ours.
const WATCH_LIMIT: usize = 256;

pub(super) fn rules(book: &mut Book) {
    book.rule("SUB-01", &[On::RequestOf(LISTEN)], filter_shape);
    book.rule("SUB-02", &[On::Sight(SightKind::Subscription), On::ResultOf(LISTEN)], begins_otherwise);
    book.rule("SUB-04", &[On::NotificationOf(ACKNOWLEDGED)], grants_more);
    book.rule("SUB-16", &[On::NotificationOf(ACKNOWLEDGED)], grants_undeclared);
    book.rule("SUB-20", &[On::RequestOf(LISTEN), On::Clock], Unacknowledged::default());
    book.rule("SUB-21", &[On::Sight(SightKind::Subscription)], acknowledged_again);
    book.rule("SUB-22", &[On::ResultOf(LISTEN)], answered_as_json);
    book.rule("SUB-23", &[On::RequestOf(LISTEN)], asks_for_nothing);
}

const FLAGS: [&str; 3] = ["toolsListChanged", "promptsListChanged", "resourcesListChanged"];
const LISTS: [&str; 2] = ["resourceSubscriptions", "taskIds"];

fn filter_shape(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(body) = case.body() else { return };
    let Some(filter) = body.at(&["params", "notifications"]).filter(|filter| filter.is_object()) else {
        out.say(case, format!("{} has no object `notifications` that says what it wants", case.subject()));
        return;
    };
    let is_list = |list: Value<'_>| list.is_array() && list.items().all(|item| item.text().is_some());
    let flag = FLAGS.into_iter().find(|name| filter.get(name).is_some_and(|flag| flag.bool().is_none()));
    let list = LISTS.into_iter().find(|name| filter.get(name).is_some_and(|list| !is_list(list)));
    if let Some(name) = flag {
        out.say(case, format!("{} has `{name}`, which is neither true nor false", case.subject()));
    } else if let Some(name) = list {
        out.say(case, format!("{} has `{name}`, which is no list of strings", case.subject()));
    }
}

fn asks_for_nothing(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(filter) = case.params().and_then(|params| params.get("notifications")) else { return };
    let is_nothing = |value: Value<'_>| {
        value.is_null() || value.bool() == Some(false) || (value.is_array() && value.is_empty())
    };
    if filter.is_object() && filter.members().all(|(_, value)| is_nothing(value)) {
        out.say(case, format!("{} asks for no kind of notification", case.subject()));
    }
}

/// A gap in the recording may have swallowed the acknowledgement.
fn begins_otherwise(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(found) = subscription(case) else { return };
    let what = match case.what() {
        Sight::Subscription { nth: 0 } if case.method() != ACKNOWLEDGED => case.method(),
        // A result that is no event stream is SUB-22.
        Sight::Message
            if found.messages == 0
                && case.call().is_some_and(|call| call.state == CallState::AnsweredOk)
                && case.exchange().is_none_or(Exchange::is_event_stream) =>
        {
            "its closing result"
        }
        _ => return,
    };
    let draft = out.draft(case);
    let draft = if case.is_full() { draft } else { draft.at_most(Severity::Hint) };
    let sentence = format!("{} began with {}, not with its acknowledgement", case.subject(), short(what));
    draft.gather(out, case.seen.call, |_| sentence.clone());
}

fn acknowledged_again(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(found) = subscription(case).filter(|_| case.method() == ACKNOWLEDGED) else { return };
    if found.acknowledgements > 1 {
        let times = found.acknowledgements;
        out.gather(case, case.seen.call, |_| format!("{} was acknowledged {times} times", case.subject()));
    }
}

/// What the first acknowledgement grants; later ones are SUB-21.
fn granted<'a>(case: &Case<'a>) -> Option<(&'a Filter, &'a Filter)> {
    let found = subscription(case).filter(|found| found.acknowledgements == 1)?;
    let granted = found.granted.as_ref()?;
    (!granted.is_cut && !found.asked.is_cut).then_some((granted, &found.asked))
}

fn grants_more(case: &Case<'_>, out: &mut Out<'_>) {
    let Some((granted, asked)) = granted(case) else { return };
    let kinds = granted.kinds.without(asked.kinds);
    if !kinds.is_none() {
        let subject = case.subject();
        out.say(case, format!("{subject} was granted {}, for which it had not asked", words(kinds)));
        return;
    }
    let uri = granted.uris.iter().find(|uri| !asked.uris.contains(uri));
    let task = granted.task_ids.iter().find(|id| !asked.task_ids.contains(id));
    if let Some(name) = uri.or(task) {
        let name = short(case.model.text(*name));
        out.say(case, format!("{} was granted {name}, for which it had not asked", case.subject()));
    }
}

/// Lists of tasks are the business of their extension.
fn grants_undeclared(case: &Case<'_>, out: &mut Out<'_>) {
    let (Some((granted, _)), Some(declared)) = (granted(case), case.server_capabilities()) else { return };
    let says = |group: &str, name: &str| declared.at(&[group, name]).and_then(Value::bool) == Some(true);
    let declared = Kinds {
        tools: says("tools", "listChanged"),
        prompts: says("prompts", "listChanged"),
        resources: says("resources", "listChanged"),
        updates: says("resources", "subscribe"),
        tasks: true,
    };
    let undeclared = granted.kinds.without(declared);
    if !undeclared.is_none() {
        let sentence = format!(
            "{} was granted {}, which the server does not say it can announce",
            case.subject(),
            words(undeclared)
        );
        out.say(case, sentence);
    }
}

fn answered_as_json(case: &Case<'_>, out: &mut Out<'_>) {
    if case.exchange().is_some_and(|exchange| !exchange.is_event_stream()) {
        out.say(case, format!("{} was answered with one result instead of an event stream", case.subject()));
    }
}

/// Listen requests whose acknowledgement is awaited, oldest first.
#[derive(Debug, Default)]
struct Unacknowledged {
    waiting: VecDeque<(Mono, CallIdx)>,
}

impl Look for Unacknowledged {
    fn look(&mut self, case: &Case<'_>, _out: &mut Out<'_>) {
        if let Some(idx) = case.seen.call.filter(|_| self.waiting.len() < WATCH_LIMIT) {
            self.waiting.push_back((case.seen.at, idx));
        }
    }

    fn wait(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        let is_due = |(asked, _): &(Mono, CallIdx)| case.seen.at.ns_since(*asked) > SOON_NS;
        while let Some((asked, idx)) = self.waiting.front().copied().filter(is_due) {
            self.waiting.pop_front();
            if let Some(how) = lateness(case.model, idx, asked, case.seen.at) {
                let sentence = format!("{} {how}", case.name(idx));
                let blame = if has_answered(case.model, idx) { Blame::Server } else { Blame::Unknown };
                out.about(case.model, idx).blame(blame).say(out, sentence);
            }
        }
    }
}

/// Whether it is the server that is silent: over HTTP only once its stream has begun, since before
/// that something on the way may hold the request or the head of the answer.
fn has_answered(model: &Model, idx: CallIdx) -> bool {
    let is_begun = |call: &Call| call.transport == Transport::Stdio || call.status == Some(200);
    model.call(idx).is_some_and(is_begun)
}

/// How the acknowledgement of a listen is late; `None`: it is not, or the listen was over in time.
fn lateness(model: &Model, idx: CallIdx, asked: Mono, now: Mono) -> Option<String> {
    let (call, found) = (model.call(idx)?, model.subscription(idx)?);
    let is_late = |at: Mono| at.ns_since(asked) > SOON_NS;
    let after = |at: Mono| Case::ms(at.ns_since(asked));
    match (found.acknowledged, call.ended) {
        (Some(at), _) => is_late(at).then(|| format!("was acknowledged after {}", after(at))),
        // What came in the place of the acknowledgement is SUB-02.
        (None, _) if found.messages > 0 => None,
        (None, Some(ended)) if !is_late(ended) => None,
        (None, ended) => Some(format!("had no acknowledgement for {}", after(ended.unwrap_or(now)))),
    }
}

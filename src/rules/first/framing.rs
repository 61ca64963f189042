//! Envelopes: messages that are badly formed
//! (RPC-01..04, RPC-11, RPC-13, RPC-18, RPC-19, RPC-22, RPC-26).

use crate::event::Transport;
use crate::model::{CallIdx, FrameFault, RowKind, Sight};
use crate::rules::Judge;
use crate::rules::case::{Case, count};

pub(in crate::rules) fn look(case: &Case<'_>, judge: &mut Judge) {
    let Sight::Frame { dir, fault } = &case.seen.what else { return };
    let is_stdio = case.row().is_some_and(|row| row.transport == Transport::Stdio);
    let is_invalid = case.row().is_some_and(|row| row.kind == RowKind::Invalid);
    let is_request = case.row().is_some_and(|row| row.kind == RowKind::Request);
    match fault {
        // JSON on a pipe that is no message at all is noise there (STD-01).
        FrameFault::NoKind if is_stdio => {}
        FrameFault::BadVersion if is_invalid => {}
        FrameFault::NotUtf8 => one(case, judge, "RPC-26", format!("{} is not UTF-8", what(case))),
        FrameFault::Batch { items } => batch(case, judge, *items),
        FrameFault::BadVersion => gather(case, judge, "RPC-01", *dir, |times| {
            format!("{} without jsonrpc \"2.0\"", count(times, "message"))
        }),
        FrameFault::NoKind => {
            one(case, judge, "RPC-02", format!("{} says no method, result or error, or several", what(case)));
        }
        FrameFault::ResultAndError => {
            one(case, judge, "RPC-03", "an answer holds both a result and an error".to_owned());
        }
        FrameFault::BadId(raw) if is_request => {
            one(case, judge, "RPC-04", format!("a request has the id {raw}, neither string nor integer"));
        }
        FrameFault::NotificationWithId => {
            one(case, judge, "RPC-11", format!("{} has an id", what(case)));
        }
        FrameFault::BadError => {
            one(case, judge, "RPC-13", "an error lacks an integer code or a message".to_owned());
        }
        FrameFault::ResultNotObject => one(case, judge, "RPC-18", "a result is no object".to_owned()),
        FrameFault::ParamsNotObject => {
            one(case, judge, "RPC-19", format!("the params of {} are no object", what(case)));
        }
        _ => {}
    }
}

/// The message of a row, in words.
fn what(case: &Case<'_>) -> String {
    let method = case.row().and_then(|row| row.method).map(|name| case.model.text(name));
    match (case.seen.call, method) {
        (Some(idx), _) => format!("a message of {}", case.name(idx)),
        (None, Some(method)) => method.to_owned(),
        (None, None) => "a message".to_owned(),
    }
}

fn one(case: &Case<'_>, judge: &mut Judge, rule: &str, sentence: String) {
    if let Some(draft) = case.draft(rule) {
        draft.find(case, judge, sentence);
    }
}

fn gather(
    case: &Case<'_>,
    judge: &mut Judge,
    rule: &str,
    subject: impl std::hash::Hash,
    sentence: impl Fn(u32) -> String,
) {
    if let Some(draft) = case.draft(rule) {
        draft.gather(case, judge, (case.seen.scope, subject), sentence);
    }
}

/// The items of a batch stand in rows of one event, one after the other.
fn batch(case: &Case<'_>, judge: &mut Judge, items: u32) {
    let Some((mut draft, first)) = case.draft("RPC-22").zip(case.seen.row) else { return };
    let rows = case.model.rows().get(first.0 as usize..).unwrap_or_default();
    let calls: Vec<CallIdx> = rows.iter().take(items as usize).filter_map(|row| row.call).collect();
    for idx in calls {
        draft = draft.and_call(case.model, idx);
    }
    draft.find(case, judge, format!("{} in one JSON array", count(items, "message")));
}

//! JSON-RPC: envelopes and their form; ids, answers, error codes and digits have rooms of their own
//! (RPC-01..29, REL-18).

mod answers;
mod digits;
mod errors;
mod ids;
mod methods;

use crate::event::Dir;
use crate::model::{CallIdx, FrameFault, RowKind, Sight};
use crate::rules::book::{Book, On, SightKind};
use crate::rules::case::{Case, count, short};
use crate::rules::findings::Out;
use crate::spec::methods::INITIALIZE;
use crate::wire::jsonrpc::Id;

pub(super) fn rules(book: &mut Book) {
    let frame = [On::Sight(SightKind::Frame)];
    book.rule("RPC-01", &frame, no_version);
    book.rule("RPC-02", &frame, no_kind);
    book.rule("RPC-03", &frame, result_and_error);
    book.rule("RPC-04", &frame, bad_id);
    book.rule("RPC-11", &frame, notification_with_id);
    book.rule("RPC-13", &frame, bad_error);
    book.rule("RPC-18", &frame, odd_result);
    book.rule("RPC-19", &frame, odd_params);
    book.rule("RPC-22", &frame, batch);
    book.rule("RPC-23", &[On::RequestOf(INITIALIZE)], initialize_in_batch);
    book.rule("RPC-26", &frame, not_utf8);
    ids::rules(book);
    answers::rules(book);
    errors::rules(book);
    methods::rules(book);
    digits::rules(book);
}

/// A progress token lost digits on its way: RPC-29 tells of it.
pub(super) fn is_rounded_token(case: &Case<'_>, token: &Id, asker: Dir) -> bool {
    digits::rounded_from(case, token, asker, |call| call.token.as_ref()).is_some()
}

fn fault<'a>(case: &Case<'a>) -> Option<&'a FrameFault> {
    match case.what() {
        Sight::Frame { fault, .. } => Some(fault),
        _ => None,
    }
}

/// The message of a row, in words.
fn what(case: &Case<'_>) -> String {
    let method = case.row().and_then(|row| row.method).map(|name| case.model.text(name));
    match (case.seen.call, method) {
        (Some(_), _) if is_request(case) => case.subject(),
        (Some(idx), _) => format!("a message of {}", case.name(idx)),
        (None, Some(method)) if !method.is_empty() => short(method),
        (None, _) => "a message".to_owned(),
    }
}

fn is_request(case: &Case<'_>) -> bool {
    case.row().is_some_and(|row| row.kind == RowKind::Request)
}

/// An object that is nothing else of a message either is told as RPC-02 or as noise.
fn no_version(case: &Case<'_>, out: &mut Out<'_>) {
    let is_message = case.row().is_some_and(|row| row.kind != RowKind::Invalid);
    if fault(case) == Some(&FrameFault::BadVersion) && is_message {
        let dir = case.row().map(|row| row.dir);
        out.gather(case, (case.seen.scope, dir), |times| {
            format!("{} without jsonrpc \"2.0\"", count(times, "message"))
        });
    }
}

fn no_kind(case: &Case<'_>, out: &mut Out<'_>) {
    if fault(case) == Some(&FrameFault::NoKind) && !case.is_noise() {
        out.say(case, format!("{} has no method, result or error, or several of them", what(case)));
    }
}

fn result_and_error(case: &Case<'_>, out: &mut Out<'_>) {
    if fault(case) == Some(&FrameFault::ResultAndError) {
        out.say(case, "an answer holds both a result and an error");
    }
}

fn bad_id(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(FrameFault::BadId(raw)) = fault(case) else { return };
    if is_request(case) {
        let method = short(case.method());
        out.say(case, format!("a request {method} has the id {}, neither string nor integer", short(raw)));
    }
}

fn notification_with_id(case: &Case<'_>, out: &mut Out<'_>) {
    if fault(case) == Some(&FrameFault::NotificationWithId) {
        out.say(case, format!("{} has an id", short(case.method())));
    }
}

fn bad_error(case: &Case<'_>, out: &mut Out<'_>) {
    if fault(case) != Some(&FrameFault::BadError) {
        return;
    }
    let Some(error) = case.error() else { return };
    // 7.0 is an integer, and integers may be longer than any machine's.
    let has_code = error.get("code").is_some_and(|code| matches!(code.id(), Some(Id::Int(_))));
    let has_message = error.get("message").is_some_and(|message| message.text().is_some());
    let lacks = match (has_code, has_message) {
        (true, true) => return,
        (false, true) => "an integer code",
        (true, false) => "a message",
        (false, false) => "an integer code and a message",
    };
    out.say(case, format!("the error for {} lacks {lacks}", case.subject()));
}

fn odd_result(case: &Case<'_>, out: &mut Out<'_>) {
    if fault(case) == Some(&FrameFault::ResultNotObject) {
        let result = case.result().map_or_else(String::new, |result| short(result.raw()));
        out.say(case, format!("the result for {} is {result}, no object", case.subject()));
    }
}

fn odd_params(case: &Case<'_>, out: &mut Out<'_>) {
    if fault(case) == Some(&FrameFault::ParamsNotObject) {
        out.say(case, format!("the params of {} are no object", what(case)));
    }
}

fn not_utf8(case: &Case<'_>, out: &mut Out<'_>) {
    if fault(case) == Some(&FrameFault::NotUtf8) {
        out.say(case, format!("{} is not UTF-8", what(case)));
    }
}

/// The items of a batch stand in rows of one event, one after the other.
fn batch(case: &Case<'_>, out: &mut Out<'_>) {
    let (Some(FrameFault::Batch { items }), Some(first)) = (fault(case), case.seen.row) else { return };
    let rows = case.model.rows().get(first.0 as usize..).unwrap_or_default();
    let calls: Vec<CallIdx> = rows.iter().take(*items as usize).filter_map(|row| row.call).collect();
    let mut draft = out.draft(case);
    for idx in calls {
        draft = draft.and_call(case.model, idx);
    }
    draft.say(out, format!("{} in one JSON array", count(*items, "message")));
}

fn initialize_in_batch(case: &Case<'_>, out: &mut Out<'_>) {
    // An item of an array does not stand where its text begins.
    if case.body().is_some_and(|body| body.position() > 0) {
        out.say(case, format!("{} stands in a JSON array", case.subject()));
    }
}

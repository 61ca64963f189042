//! Cancels: of the right request, by the right signal (CAN-01..03, CAN-07..10, CAN-13..16, CAN-19,
//! CAN-20); what comes after them is in `after`.

mod after;

use crate::event::Dir;
use crate::model::{Call, CallState, MarkKind, Name, Sight};
use crate::rules::Severity;
use crate::rules::book::{Book, On, SightKind};
use crate::rules::case::{Case, count, short};
use crate::rules::findings::Out;
use crate::spec::methods::CANCELLED;
use crate::time::Mono;

pub(super) fn rules(book: &mut Book) {
    let cancel = [On::NotificationOf(CANCELLED)];
    let unknown = On::Sight(SightKind::CancelUnknown);
    let by_server = On::Sight(SightKind::CancelByServer);
    let after_end = [On::Sight(SightKind::CancelAfterEnd)];
    book.rule("CAN-01", &[unknown], names_nothing);
    book.rule("CAN-02", &[On::Sight(SightKind::CancelOtherType)], other_type);
    book.rule("CAN-03", &after_end, long_answered);
    book.rule("CAN-07", &[by_server, unknown], server_cancels);
    book.rule("CAN-08", &[by_server], listen_over_http);
    book.rule("CAN-09", &cancel, malformed);
    book.rule("CAN-10", &cancel, posted);
    book.rule("CAN-13", &cancel, of_initialize);
    book.rule("CAN-14", &cancel, of_core_task);
    book.rule("CAN-15", &after_end, of_task);
    book.rule("CAN-16", &[by_server, unknown], of_other_side);
    book.rule("CAN-19", &after_end, again);
    book.rule("CAN-20", &cancel, without_reason);
    after::rules(book);
}

fn is_from(case: &Case<'_>, dir: Dir) -> bool {
    case.row().is_some_and(|row| row.dir == dir)
}

/// A cancel that names no request of its sender: its id as JSON.
fn stray(case: &Case<'_>) -> Option<(String, bool)> {
    match case.what() {
        Sight::CancelUnknown { id: Some(id), is_of_other_side } => Some((id.to_string(), *is_of_other_side)),
        _ => None,
    }
}

/// How bad a "never seen" may be: without the beginning it could have been sent before.
fn never_seen(case: &Case<'_>) -> Severity {
    if case.is_full() { Severity::Error } else { Severity::Hint }
}

fn names_nothing(case: &Case<'_>, out: &mut Out<'_>) {
    let Some((id, is_of_other_side)) = stray(case) else { return };
    // CAN-07 and CAN-16 say more.
    let is_told = if case.is_modern() { is_from(case, Dir::S2c) } else { is_of_other_side };
    if is_told {
        return;
    }
    let sentence = format!("a cancel names the id {}, which no request of its sender has", short(&id));
    out.draft(case).and_id(id).at_most(never_seen(case)).say(out, sentence);
}

fn other_type(case: &Case<'_>, out: &mut Out<'_>) {
    let Sight::CancelOtherType { id } = case.what() else { return };
    let sentence = format!(
        "the cancel for {} names the id {}, and cancels nothing",
        case.subject(),
        short(&id.to_string())
    );
    out.say(case, sentence);
}

/// When the answer of a call had been handed to the one who asked.
fn delivered(case: &Case<'_>, call: &Call) -> Option<Mono> {
    let is_answer = |kind| matches!(kind, MarkKind::Result | MarkKind::InputRequired | MarkKind::Error);
    let mark = call.marks.iter().rev().find(|mark| is_answer(mark.kind))?;
    Some(case.model.row(mark.row)?.out.unwrap_or(mark.at))
}

/// How long the answer of the cancelled call had been with the canceller, where no crossing explains
/// the cancel.
fn late_by(case: &Case<'_>, call: &Call) -> Option<u64> {
    if !call.state.is_answered() {
        return None;
    }
    let since_ns = case.seen.at.ns_since(delivered(case, call)?);
    (since_ns > case.window_ns()).then_some(since_ns)
}

fn long_answered(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(call) = case.call().filter(|call| !call.is_task) else { return };
    if let Some(since_ns) = late_by(case, call) {
        let sentence = format!("{} was cancelled {} after its answer", case.subject(), Case::ms(since_ns));
        out.say(case, sentence);
    }
}

fn of_task(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(call) = case.call().filter(|call| call.is_task) else { return };
    if let Some(since_ns) = late_by(case, call) {
        let since = Case::ms(since_ns);
        let sentence = format!("a cancel names {}, which had become a task {since} before", case.subject());
        out.say(case, sentence);
    }
}

fn server_cancels(case: &Case<'_>, out: &mut Out<'_>) {
    let draft = match stray(case) {
        Some((id, _)) if is_from(case, Dir::S2c) => {
            let sentence = format!("the server cancelled the id {}, which no request has", short(&id));
            Some((out.draft(case).at_most(never_seen(case)).and_id(id), sentence))
        }
        None if case.call().is_some_and(|call| call.method != Name::LISTEN) => {
            Some((out.draft(case), format!("the server cancelled {}", case.subject())))
        }
        _ => None,
    };
    if let Some((draft, sentence)) = draft {
        let draft = if case.is_dual() { draft.at_most(Severity::Hint) } else { draft };
        draft.say(out, sentence);
    }
}

fn listen_over_http(case: &Case<'_>, out: &mut Out<'_>) {
    if case.call().is_some_and(|call| call.method == Name::LISTEN) {
        let sentence = format!("the server took back {} by a cancel, over HTTP", case.subject());
        out.say(case, sentence);
    }
}

fn malformed(case: &Case<'_>, out: &mut Out<'_>) {
    if case.body().is_none() {
        return;
    }
    let member = |name| case.params().and_then(|params| params.get(name));
    let sentence = match (member("requestId"), member("reason")) {
        (None, _) => "a cancel has no requestId".to_owned(),
        (Some(id), _) if id.id().is_none() => {
            format!("a cancel has the requestId {}, neither a string nor an integer", short(id.raw()))
        }
        (_, Some(reason)) if reason.text().is_none() => {
            format!("the reason of a cancel is {}, not a string", short(reason.raw()))
        }
        _ => return,
    };
    out.say(case, sentence);
}

/// In the modern era the signal on HTTP is the closed stream.
fn posted(case: &Case<'_>, out: &mut Out<'_>) {
    // Some clients close the stream of a subscription and post a cancel as well.
    if !is_from(case, Dir::C2s) || case.call().is_some_and(|call| call.method == Name::LISTEN) {
        return;
    }
    let id = || case.params()?.get("requestId")?.id().map(|id| id.to_string());
    let Some(call) = case.call() else {
        if let Some(id) = id() {
            let sentence = format!("a cancel for the id {} was posted", short(&id));
            out.draft(case).and_id(id).say(out, sentence);
        }
        return;
    };
    let (how, most) = match call.state {
        CallState::AbandonedByDisconnect => ("after its stream had been closed", Severity::Hint),
        state if state.is_terminal() => ("after its end", Severity::Warning),
        _ => ("and its stream left open", Severity::Warning),
    };
    let sentence = format!("the cancel for {} was posted, {how}", case.subject());
    out.draft(case).at_most(most).say(out, sentence);
}

fn of_initialize(case: &Case<'_>, out: &mut Out<'_>) {
    if case.call().is_some_and(|call| call.method == Name::INITIALIZE) && is_from(case, Dir::C2s) {
        out.say(case, "initialize was cancelled");
    }
}

/// A receiver without the capability carries the request out as if it had not asked for a task; then a
/// cancel is right.
fn of_core_task(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(call) = case.call().filter(|call| call.is_task) else { return };
    let receiver =
        if call.sender == Dir::C2s { case.server_capabilities() } else { case.client_capabilities() };
    let most = match receiver {
        None => Severity::Hint,
        Some(can) if can.get("tasks").is_some() => Severity::Error,
        Some(_) => return,
    };
    let sentence = format!("{}, which asked to run as a task, was cancelled as a request", case.subject());
    out.draft(case).at_most(most).say(out, sentence);
}

fn of_other_side(case: &Case<'_>, out: &mut Out<'_>) {
    let draft = out.draft(case).at_most(never_seen(case));
    let (draft, subject) = match (stray(case), case.call()) {
        (Some((id, true)), _) => {
            let subject = format!("the id {}", short(&id));
            (draft.and_id(id), subject)
        }
        (None, Some(_)) => (draft, case.subject()),
        _ => return,
    };
    let side = if is_from(case, Dir::S2c) { "server" } else { "client" };
    draft.say(out, format!("the {side} cancelled {subject}, a request of the other side"));
}

fn again(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(call) = case.call() else { return };
    // The cancel that ended the call is not among those after its end.
    let is_again = match call.state {
        CallState::CancelledByClient => call.after.late_cancels > 0,
        _ => call.after.late_cancels > 1,
    };
    if is_again {
        let subject = case.subject();
        out.gather(case, case.seen.call, |times| {
            format!("{subject} was cancelled {}", count(times.saturating_add(1), "time"))
        });
    }
}

fn without_reason(case: &Case<'_>, out: &mut Out<'_>) {
    let has_reason = case.params().is_some_and(|params| params.get("reason").is_some());
    if is_from(case, Dir::C2s) && case.body().is_some() && !has_reason {
        out.gather(case, case.seen.scope, |times| format!("{} without a reason", count(times, "cancel")));
    }
}

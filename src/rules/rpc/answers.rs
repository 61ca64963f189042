//! Who may ask and who may answer, and what an answer must say (RPC-12, RPC-20, RPC-21, RPC-24,
//! RPC-25, RPC-27).

use std::collections::HashSet;

use super::ids::is_refusal;
use crate::event::Dir;
use crate::machine::task;
use crate::model::{RowKind, ScopeIdx, Sight};
use crate::rules::Severity;
use crate::rules::book::{Book, Look, On, SightKind};
use crate::rules::case::{Case, count, short};
use crate::rules::findings::Out;
use crate::spec::codes;
use crate::spec::methods::INITIALIZE;

/// Lines between a notification and its answer. ours: further apart they are not known to belong
/// together.
const NEAR_ROWS: usize = 64;

pub(super) fn rules(book: &mut Book) {
    let no_id = On::Sight(SightKind::AnswerNoId);
    book.rule("RPC-12", &[no_id, On::Sight(SightKind::Frame)], NotificationAnswered::default());
    book.rule("RPC-20", &[On::Result], without_type);
    book.rule("RPC-21", &[On::Result], unknown_type);
    book.rule("RPC-24", &[On::Request], server_asks);
    book.rule("RPC-25", &[On::Result, On::Error], client_answers);
    book.rule("RPC-27", &[no_id, On::Sight(SightKind::AnswerUnknown)], wrong_id);
}

/// Answers to notifications.
#[derive(Default)]
struct NotificationAnswered {
    /// Sides that wrote something which could not be read: an error without an id may mean that.
    malformed: HashSet<(ScopeIdx, Dir)>,
}

impl Look for NotificationAnswered {
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        if let Sight::Frame { dir, .. } = case.what() {
            self.malformed.insert((case.seen.scope, *dir));
            return;
        }
        let (Some(at), Some(row)) = (case.seen.row, case.row()) else { return };
        let other = if row.dir == Dir::C2s { Dir::S2c } else { Dir::C2s };
        let may_mean_more = self.malformed.contains(&(case.seen.scope, other))
            || case.model.open_in(case.seen.scope).next().is_some();
        if row.kind != RowKind::Error || !case.is_full() || may_mean_more {
            return;
        }
        let before = case.model.rows().get(..at.0 as usize).unwrap_or_default();
        let Some(asked) = before.iter().rev().take(NEAR_ROWS).find(|row| row.dir == other) else { return };
        let is_notification =
            matches!(asked.kind, RowKind::Notification | RowKind::Progress | RowKind::Cancelled);
        if let Some(method) = asked.method.filter(|_| is_notification) {
            let sentence = format!("an error without an id answers {}", short(case.model.text(method)));
            out.draft(case).and_event(asked.n).say(out, sentence);
        }
    }
}

fn without_type(case: &Case<'_>, out: &mut Out<'_>) {
    let (Some(call), Some(result)) = (case.call(), case.result()) else { return };
    let is_named = result.get("resultType").is_some_and(|name| name.text().is_some());
    if is_named || !case.is_from_server() || case.model.text(call.method) == INITIALIZE || !result.is_object()
    {
        return;
    }
    // A server that knows nothing of the modern era answers as it always did.
    let severity = match case.speaks() {
        speaks if speaks.modern => Severity::Error,
        speaks if speaks.legacy => return,
        _ => Severity::Warning,
    };
    let subject = case.subject();
    out.draft(case).at_most(severity).gather(out, case.seen.scope, |times| {
        format!("{} without resultType; last: that of {subject}", count(times, "result"))
    });
}

fn unknown_type(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(name) = case.result().and_then(|result| result.get("resultType")?.text()) else { return };
    if matches!(&*name, "complete" | "input_required") || !case.is_from_server() {
        return;
    }
    let extensions = case.client_capabilities().and_then(|declared| declared.get("extensions"));
    let has_tasks = extensions.is_some_and(|declared| declared.get(task::EXTENSION).is_some());
    // An extension that midwire does not know may bring values of its own.
    let may_be_known = extensions.is_some_and(|declared| !declared.is_empty());
    let (severity, why) = match &*name {
        "task" if has_tasks => return,
        "task" => (Severity::Error, "without the extension that defines it"),
        _ if may_be_known => (Severity::Hint, "which MCP does not define"),
        _ => (Severity::Error, "which nothing defines"),
    };
    let sentence = format!("the result of {} has the type {}, {why}", case.subject(), short(&name));
    out.draft(case).at_most(severity).say(out, sentence);
}

/// Beside a legacy session a server may act for that session.
fn at_most_dual(case: &Case<'_>) -> Severity {
    if case.is_dual() { Severity::Hint } else { Severity::Error }
}

fn server_asks(case: &Case<'_>, out: &mut Out<'_>) {
    if case.is_from_server() {
        let sentence = format!("the server sent a request of its own, {}", case.subject());
        out.draft(case).at_most(at_most_dual(case)).say(out, sentence);
    }
}

fn client_answers(case: &Case<'_>, out: &mut Out<'_>) {
    if !case.is_from_client() {
        return;
    }
    let is_error = case.row().is_some_and(|row| row.kind == RowKind::Error);
    // To refuse a request that must not be is the least a client can do.
    let severity = if is_error && case.seen.call.is_some() { Severity::Hint } else { at_most_dual(case) };
    let sentence = match case.seen.call {
        Some(_) => format!("the client answered {}", case.subject()),
        None => "the client sent an answer".to_owned(),
    };
    out.draft(case).at_most(severity).say(out, sentence);
}

/// Errors that come before the request was read cannot name it; where the code shows that it was
/// read, they can.
fn wrong_id(case: &Case<'_>, out: &mut Out<'_>) {
    if !case.is_from_server() || case.row().is_none_or(|row| row.kind != RowKind::Error) {
        return;
    }
    let was_read = case.code() == Some(codes::METHOD_NOT_FOUND);
    let is_late = matches!(
        case.code(),
        Some(
            codes::INVALID_PARAMS
                | codes::MISSING_REQUIRED_CLIENT_CAPABILITY
                | codes::UNSUPPORTED_PROTOCOL_VERSION
        )
    );
    match case.what() {
        Sight::AnswerNoId => {
            let Some(call) = case.call() else { return };
            let severity = match call.status {
                Some(200) => Severity::Warning,
                _ if was_read => Severity::Warning,
                _ if is_late => Severity::Hint,
                _ => return,
            };
            let sentence = format!("the error that answers {} has no id", case.subject());
            out.draft(case).at_most(severity).say(out, sentence);
        }
        Sight::AnswerUnknown { id } if is_refusal(case) => {
            let asked = case.exchange().and_then(|exchange| exchange.calls().first().copied());
            let Some(asked) = asked else { return };
            let severity = if was_read { Severity::Warning } else { Severity::Hint };
            let id = id.to_string();
            let sentence = format!("the error that refuses {} has the id {}", case.name(asked), short(&id));
            out.draft(case).at_most(severity).and_call(case.model, asked).and_id(id).say(out, sentence);
        }
        _ => {}
    }
}

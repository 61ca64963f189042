//! Ids: every answer to its request, every request its own id (RPC-05..10).

use std::collections::HashSet;

use super::digits;
use crate::event::Dir;
use crate::model::{CallIdx, Exchange, FrameFault, RowKind, ScopeIdx, Sight};
use crate::rules::Severity;
use crate::rules::book::{Book, Look, On, SightKind};
use crate::rules::case::{Case, short};
use crate::rules::findings::Out;
use crate::spec::meta;

/// Ids of notifications that are remembered. ours: one is a mistake already.
const ODD_IDS: usize = 256;

pub(super) fn rules(book: &mut Book) {
    let in_flight = On::Sight(SightKind::IdInFlight);
    let no_id = On::Sight(SightKind::AnswerNoId);
    let unknown = [On::Sight(SightKind::AnswerUnknown), no_id, On::Sight(SightKind::Frame)];
    book.rule("RPC-05", &[in_flight], |case: &Case<'_>, out: &mut Out<'_>| {
        if let Sight::IdInFlight { other } = case.what() {
            taken(case, out, *other, Severity::Error);
        }
    });
    book.rule("RPC-06", &[in_flight], |case: &Case<'_>, out: &mut Out<'_>| {
        if let Sight::IdInFlight { other } = case.what()
            && is_one_client(case, *other)
        {
            taken(case, out, *other, Severity::Hint);
        }
    });
    book.rule("RPC-07", &[in_flight, On::Sight(SightKind::IdAgain)], again);
    book.rule("RPC-08", &unknown, Unknown::default());
    book.rule("RPC-09", &[On::Sight(SightKind::AnswerOtherType), no_id], other_type);
    book.rule("RPC-10", &[On::Sight(SightKind::AnswerAgain)], answered_again);
}

fn taken(case: &Case<'_>, out: &mut Out<'_>, other: CallIdx, severity: Severity) {
    let sentence = format!("{} has the id of {}, which is still open", case.subject(), case.name(other));
    out.draft(case).at_most(severity).and_call(case.model, other).say(out, sentence);
}

/// Several clients behind one port count alike. Two requests are of one client when they share a
/// connection, or both the credentials and the name.
fn is_one_client(case: &Case<'_>, other: CallIdx) -> bool {
    if case.is_one_connection(other) {
        return true;
    }
    let stream = |idx: CallIdx| case.model.exchange_of(case.model.call(idx)?.stream?);
    let credentials = |idx: CallIdx| stream(idx)?.headers().get("authorization");
    let name = |idx: CallIdx| {
        let info = case.model.request_of(idx)?.at(&["params", "_meta", meta::CLIENT_INFO])?;
        Some(info.raw())
    };
    let Some(mine) = case.seen.call else { return false };
    let is_same = |a: Option<&str>, b: Option<&str>| a.is_some() && a == b;
    is_same(credentials(mine), credentials(other)) && is_same(name(mine), name(other))
}

fn again(case: &Case<'_>, out: &mut Out<'_>) {
    let (other, how) = match case.what() {
        Sight::IdInFlight { other } => (*other, ", which is still open"),
        Sight::IdAgain { earlier } => (*earlier, " before"),
        _ => return,
    };
    // A new `initialize` begins a new count.
    let began = case.scope().and_then(|scope| scope.handshake.asked);
    if began.is_some_and(|began| other < began) {
        return;
    }
    // HTTP requests outside a session may come from several clients.
    let severity = if case.seen.scope == ScopeIdx(0) { Severity::Hint } else { Severity::Error };
    let sentence = format!("{} has the id that {} had{how}", case.subject(), case.name(other));
    out.draft(case).at_most(severity).and_call(case.model, other).say(out, sentence);
}

/// Answers that no request of the other side asked for.
#[derive(Default)]
struct Unknown {
    /// Ids that came with notifications: an answer to one is no invention of its sender.
    odd: HashSet<(ScopeIdx, Dir, String)>,
}

impl Look for Unknown {
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        let Some(row) = case.row() else { return };
        match case.what() {
            Sight::Frame { dir, fault: FrameFault::NotificationWithId } => {
                let id = case.body().and_then(|body| body.get("id"));
                if let Some(id) = id.filter(|_| self.odd.len() < ODD_IDS) {
                    self.odd.insert((case.seen.scope, *dir, id.raw().to_owned()));
                }
            }
            // A result on a stream of its own has a call all the same.
            Sight::AnswerNoId if row.kind == RowKind::Result && case.seen.call.is_none() => {
                out.say(case, "a result has no id");
            }
            Sight::AnswerUnknown { id } => {
                let asker = if row.dir == Dir::C2s { Dir::S2c } else { Dir::C2s };
                let text = id.to_string();
                // The wrong id of an HTTP refusal is told as RPC-27, lost digits as RPC-29.
                if is_refusal(case)
                    || self.odd.contains(&(case.seen.scope, asker, text.clone()))
                    || digits::rounded_from(case, id, asker, |call| Some(&call.id)).is_some()
                {
                    return;
                }
                let severity = if case.is_full() { Severity::Error } else { Severity::Hint };
                let sentence =
                    format!("an answer has the id {}, which no request of the other side had", short(&text));
                out.draft(case).at_most(severity).and_id(text).say(out, sentence);
            }
            _ => {}
        }
    }
}

/// It is an error that came with a refusing HTTP status.
pub(super) fn is_refusal(case: &Case<'_>) -> bool {
    let is_error = case.row().is_some_and(|row| row.kind == RowKind::Error);
    is_error && case.exchange().and_then(Exchange::status).is_some_and(|status| status >= 400)
}

fn other_type(case: &Case<'_>, out: &mut Out<'_>) {
    match case.what() {
        Sight::AnswerOtherType { id } => {
            let id = short(&id.to_string());
            out.say(case, format!("{} was answered with the id {id}", case.subject()));
        }
        Sight::AnswerNoId if case.seen.call.is_some() && case.result().is_some() => {
            out.say(case, format!("the result for {} has no id", case.subject()));
        }
        _ => {}
    }
}

fn answered_again(case: &Case<'_>, out: &mut Out<'_>) {
    let subject = case.subject();
    out.gather(case, case.seen.call, |_| format!("{subject} was answered again"));
}

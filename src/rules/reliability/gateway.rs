//! Answers of something between the peers (REL-19).

use crate::model::{CallIdx, CallState, Exchange, Name, Sight};
use crate::rules::book::{Book, On, SightKind};
use crate::rules::case::Case;
use crate::rules::findings::Out;
use crate::rules::{Blame, Severity};
use crate::time::Span;

/// Limits after which hops give up, or answer for the server, in seconds.
const ROUND_S: [u64; 5] = [30, 60, 100, 120, 300];

/// A hop that answers at its limit is this late at most, in percent.
const LATE_PERCENT: u64 = 2;

/// A stream that has a message to begin with, and whose head comes only after this, was held back:
/// subscriptions are acknowledged at once. ours.
const HELD_NS: u64 = 10_000_000_000;

pub(super) fn rules(book: &mut Book) {
    book.rule("REL-19", &[On::Sight(SightKind::ExchangeEnd), On::Sight(SightKind::HttpHead)], look);
}

fn look(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(exchange) = case.exchange().filter(|exchange| !exchange.calls().is_empty()) else { return };
    match case.what() {
        Sight::HttpHead => late_head(case, exchange, out),
        _ => foreign_answer(case, exchange, out),
    }
}

/// An answer that no server of ours gave: a status of hops that cannot reach it or wait no longer, or
/// a page for people.
fn foreign_answer(case: &Case<'_>, exchange: &Exchange, out: &mut Out<'_>) {
    let Some(status) = exchange.status() else { return };
    let is_hop = matches!(status, 502..=504);
    let kind = exchange.answer_headers().and_then(|headers| headers.get("content-type")).unwrap_or_default();
    let is_page = kind.trim_start().to_ascii_lowercase().starts_with("text/html");
    let is_unread = |idx: &&CallIdx| {
        case.model.call(**idx).is_some_and(|call| {
            call.error_code.is_none() && matches!(call.state, CallState::AnsweredError | CallState::Lost)
        })
    };
    let calls: Vec<CallIdx> = exchange.calls().iter().filter(is_unread).copied().collect();
    let (Some(first), true) = (calls.first(), is_hop || is_page) else { return };
    let waited = exchange.started().zip(exchange.headed()).map_or(0, |(from, to)| to.ns_since(from));
    let page = if is_page { "a page for people" } else { "no message" };
    let sentence =
        format!("{} was answered with status {status} and {page} after {}", case.name(*first), Span(waited));
    let draft = calls.iter().fold(out.draft(case), |draft, idx| draft.and_call(case.model, *idx));
    // A page with another status may be the server's own, at a wrong address.
    let draft = if is_hop { draft } else { draft.at_most(Severity::Hint) };
    draft.blame(Blame::Intermediary).say(out, sentence);
}

/// The head of a stream that came only when a limit of a hop was reached, or long after a
/// subscription was asked for.
fn late_head(case: &Case<'_>, exchange: &Exchange, out: &mut Out<'_>) {
    let Some(started) = exchange.started().filter(|_| exchange.is_event_stream()) else { return };
    let waited_ns = case.seen.at.ns_since(started);
    let is_at_limit = ROUND_S
        .iter()
        .map(|seconds| seconds * 1_000_000_000)
        .any(|limit_ns| waited_ns >= limit_ns && waited_ns - limit_ns <= limit_ns / 100 * LATE_PERCENT);
    let is_listen = case.call().is_some_and(|call| call.method == Name::LISTEN);
    if !(is_at_limit || is_listen && waited_ns >= HELD_NS) {
        return;
    }
    let sentence =
        format!("the head of the stream of {} came only after {}", case.subject(), Span(waited_ns));
    out.draft(case).at_most(Severity::Hint).blame(Blame::Unknown).say(out, sentence);
}

//! Streams that are cut for being quiet, comments taken for work, streams held back by a compressor
//! (REL-08, REL-17, REL-22, TMO-06).

use hashbrown::HashMap;

use crate::event::Dir;
use crate::machine::policy::presets;
use crate::model::flow::Flow;
use crate::model::row::Coding;
use crate::model::{Call, CallIdx, Exchange, Name, ScopeIdx, Sight};
use crate::rules::book::{Book, Look, On, SightKind};
use crate::rules::case::{Case, number};
use crate::rules::findings::{Draft, Out};
use crate::rules::{Blame, Severity};
use crate::time::{Mono, Span};

/// Limits that servers and hops cut quiet streams at, in seconds.
const ROUND_S: [u64; 6] = [30, 60, 100, 120, 300, 600];

/// How far the age of a cut may lie from such a limit, in percent.
const NEAR_PERCENT: u64 = 3;

/// Streams of different requests that were cut at ages this close, in percent, met one limit (TMO-06).
const SAME_PERCENT: u64 = 2;

/// A shorter silence than this is no quiet phase. ours.
const QUIET_NS: u64 = 10_000_000_000;

/// A compressor that let nothing through for so long has held it. ours: as bursts.
const HELD_NS: u64 = 2_000_000_000;

pub(super) fn rules(book: &mut Book) {
    let closed = On::Sight(SightKind::StreamClosed);
    book.rule("REL-08", &[On::Sight(SightKind::SseComment)], only_comments);
    book.rule("REL-17", &[closed, On::Sight(SightKind::ExchangeEnd)], CutWhileQuiet::default());
    book.rule("TMO-06", &[closed], CutAlike::default());
    book.rule("REL-22", &[closed, On::Sight(SightKind::HttpHead)], compressed);
}

/// A limit of idleness passed with nothing but comments, and the client waits on.
fn only_comments(case: &Case<'_>, out: &mut Out<'_>) {
    let first = case.exchange().filter(|exchange| exchange.client_left().is_none());
    let Some(idx) = first.and_then(|exchange| exchange.calls().first().copied()) else { return };
    let is_waiting = |call: &&Call| call.method != Name::LISTEN && !call.state.is_terminal();
    let Some(call) = case.model.call(idx).filter(is_waiting) else { return };
    let subject = case.model.subject(call);
    let Some(clock) = case.policy.clock(&subject).or_else(|| presets::of(&subject)) else { return };
    let Some(limit) = clock.idle else { return };
    let restarted = call.progress.last_at.filter(|_| clock.resets_on_progress);
    let idle_ns = case.seen.at.ns_since(restarted.unwrap_or(call.started));
    if idle_ns <= limit.to_ns() + case.window_ns().max(limit.to_ns() / 100 * NEAR_PERCENT) {
        return;
    }
    let sentence = format!(
        "{} has had only comments for {}, past the idle limit of {} of {}, and its client neither cancelled nor left",
        case.name(idx),
        Span(idle_ns),
        Span(limit.to_ns()),
        clock.name
    );
    let draft = out.draft(case).and_call(case.model, idx).blame(Blame::Client);
    draft.gather(out, idx, |_| sentence.clone());
}

/// The limit near which a silence ended.
fn round_limit(silence_ns: u64) -> Option<u64> {
    let near = |limit_ns: u64| silence_ns.abs_diff(limit_ns) <= limit_ns / 100 * NEAR_PERCENT;
    ROUND_S.into_iter().find(|seconds| near(seconds * 1_000_000_000))
}

/// An end of a stream after silence.
struct Cut {
    by: Dir,
    silence_ns: u64,
    /// A request that waits for its answer on it.
    pending: Option<CallIdx>,
    /// It can be taken up again, so that its end may be meant.
    is_resumable: bool,
}

impl Cut {
    fn of_stream(case: &Case<'_>, flow: &Flow) -> Option<Cut> {
        let (by, at) = flow.ended()?;
        let call = flow.call.and_then(|idx| case.model.call(idx));
        if call.is_some_and(|call| call.state.is_answered()) || flow.answered.is_some() {
            return None;
        }
        let is_request = call.is_some_and(|call| call.method != Name::LISTEN);
        Some(Cut {
            by,
            silence_ns: flow.silence_ns(at),
            pending: flow.call.filter(|_| is_request),
            is_resumable: flow.has_event_ids,
        })
    }

    /// An exchange that ended without even a head.
    fn of_exchange(case: &Case<'_>, exchange: &Exchange) -> Option<Cut> {
        let started = exchange.started().filter(|_| exchange.headed().is_none())?;
        let pending = exchange.calls().first().copied()?;
        let is_lost = case.model.call(pending).is_some_and(|call| call.ended == Some(case.seen.at));
        (is_lost && exchange.client_left().is_none()).then(|| Cut {
            by: Dir::S2c,
            silence_ns: case.seen.at.ns_since(started),
            pending: Some(pending),
            is_resumable: false,
        })
    }
}

/// The first cut at each limit, which alone may be chance.
#[derive(Default)]
struct CutWhileQuiet(HashMap<(ScopeIdx, u64, Dir), Option<u64>>);

impl Look for CutWhileQuiet {
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        // At the end of the recording nobody cuts anything.
        if case.row().is_none() {
            return;
        }
        let cut = match case.what() {
            Sight::StreamClosed { flow } => {
                case.model.flow(*flow).and_then(|flow| Cut::of_stream(case, flow))
            }
            _ => case.exchange().and_then(|exchange| Cut::of_exchange(case, exchange)),
        };
        let Some(cut) = cut else { return };
        let Some(limit_s) = round_limit(cut.silence_ns) else { return };
        // A client that leaves its own request gives up by its own clock, which REL-13 tells.
        if cut.by == Dir::C2s && cut.pending.is_some() {
            return;
        }
        let blame = if cut.by == Dir::C2s { Blame::Client } else { Blame::Server };
        let draft = out.draft(case).blame(blame);
        let draft = cut.pending.into_iter().fold(draft, |draft, idx| draft.and_call(case.model, idx));
        let silence = Span(cut.silence_ns);
        if let Some(idx) = cut.pending.filter(|_| !cut.is_resumable) {
            let sentence = format!("the stream of {} was cut after {silence} without a byte", case.name(idx));
            draft.say(out, sentence);
            return;
        }
        let by = if cut.by == Dir::C2s { "the client" } else { "the server" };
        let key = (case.seen.scope, limit_s, cut.by);
        let row = case.seen.row.and_then(|row| number(case.model, row));
        match self.0.get_mut(&key) {
            // Once may be chance, and a stream that can be taken up again may be meant to end.
            None => {
                self.0.insert(key, row);
                let sentence = format!("{by} ended a stream after {silence} without a byte");
                draft.at_most(Severity::Hint).say(out, sentence);
            }
            Some(first) => {
                let draft = first.take().into_iter().fold(draft, Draft::and_event);
                let draft = if cut.is_resumable { draft.at_most(Severity::Hint) } else { draft };
                draft.gather(out, key, |times| {
                    format!(
                        "{by} ended {} streams after {limit_s} s without a byte, the last after {silence}",
                        times + 1
                    )
                });
            }
        }
    }
}

/// Ages at which streams of requests were cut by the other side, the latest of each scope.
#[derive(Default)]
struct CutAlike(HashMap<ScopeIdx, (u64, CallIdx)>);

impl Look for CutAlike {
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        let Sight::StreamClosed { flow } = case.what() else { return };
        let Some(cut) = case.model.flow(*flow).and_then(|flow| Cut::of_stream(case, flow)) else { return };
        let call = case.seen.call.filter(|_| cut.by == Dir::S2c && cut.silence_ns >= QUIET_NS);
        let Some(idx) = call.filter(|_| !cut.is_resumable) else { return };
        let before = self.0.insert(case.seen.scope, (cut.silence_ns, idx));
        let Some((silence_ns, other)) = before else { return };
        if silence_ns.abs_diff(cut.silence_ns) > silence_ns / 100 * SAME_PERCENT {
            return;
        }
        let silence = Span(cut.silence_ns);
        let draft = out.draft(case).and_call(case.model, other).blame(Blame::Intermediary);
        draft.gather(out, case.seen.scope, |times| {
            format!("{} streams of different requests were cut after {silence} without a byte", times + 1)
        });
    }
}

/// A compressed event stream that its client had not offered to read, or that came in one piece.
fn compressed(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(exchange) = case.exchange().filter(|exchange| exchange.is_event_stream()) else { return };
    let coding = exchange.answer_headers().and_then(|headers| headers.get("content-encoding"));
    let Some(coding) = coding.map(str::trim).filter(|coding| !matches!(*coding, "" | "identity")) else {
        return;
    };
    let offered = exchange.headers().get("accept-encoding").unwrap_or_default().to_ascii_lowercase();
    let is_offered = exchange.head().is_none()
        || offered
            .split([',', ';'])
            .any(|word| word.trim() == "*" || word.trim() == coding.to_ascii_lowercase());
    let (subject, ids) = match exchange.calls().first() {
        Some(idx) => (format!("the stream of {}", case.name(*idx)), Some(*idx)),
        None => ("a stream".to_owned(), None),
    };
    let draft = ids.into_iter().fold(out.draft(case), |draft, idx| draft.and_call(case.model, idx));
    let draft = draft.blame(Blame::Server);
    match case.what() {
        Sight::StreamClosed { flow } if is_offered => {
            let Some(held) = case.model.flow(*flow).and_then(held) else { return };
            let sentence =
                format!("{subject} is compressed ({coding}), and nothing of it came for {}", Span(held));
            draft.say(out, sentence);
        }
        Sight::HttpHead if !is_offered => {
            draft.say(
                out,
                format!("{subject} is compressed ({coding}), which its client did not offer to read"),
            );
        }
        _ => {}
    }
}

/// How long a compressed stream held several messages back.
fn held(flow: &Flow) -> Option<u64> {
    let burst = flow.burst().map(|burst| burst.after_ns);
    // All of it at once, at its end.
    let at_once = (flow.messages > 1).then_some(flow.longest_silence_ns);
    let ended = flow.ended().map_or(Mono(0), |(_, at)| at);
    let is_at_end = ended.ns_since(flow.opened) <= flow.longest_silence_ns + HELD_NS / 20;
    let is_compressed = flow.coding != Coding::Identity;
    burst.or(at_once.filter(|_| is_at_end)).filter(|held_ns| is_compressed && *held_ns >= HELD_NS)
}

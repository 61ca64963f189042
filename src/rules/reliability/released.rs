//! Streams that outlive what they were for (REL-21).

use std::collections::BTreeSet;

use hashbrown::HashMap;

use crate::event::Dir;
use crate::model::flow::Flow;
use crate::model::{Call, CallIdx, CallState, Exchange, FlowIdx, ScopeIdx, Sight};
use crate::rules::book::{Book, Look, On, SightKind};
use crate::rules::case::{Case, number};
use crate::rules::findings::{Draft, Out};
use crate::rules::{Blame, Severity};
use crate::time::{Mono, Span};

/// A stream whose answer has passed is closed by then. ours: far beyond any flush or lag.
const CLOSE_NS: u64 = 10_000_000_000;

/// A single stream may be forgotten for other reasons; it counts after this. ours.
const LONG_NS: u64 = 60_000_000_000;

/// So many at once are a habit. ours.
const MANY: usize = 3;

pub(super) fn rules(book: &mut Book) {
    let when = [
        On::Sight(SightKind::Answered),
        On::Sight(SightKind::Cancel),
        On::Sight(SightKind::StreamClosed),
        On::Sight(SightKind::ExchangeEnd),
        On::Sight(SightKind::Ended),
    ];
    book.rule("REL-21", &when, Streams::default());
}

/// Open streams whose call is over.
#[derive(Default)]
struct Streams(HashMap<ScopeIdx, BTreeSet<FlowIdx>>);

impl Look for Streams {
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        match case.what() {
            Sight::Answered | Sight::Cancel => self.call_ended(case),
            Sight::StreamClosed { flow } => {
                let open = self.0.get_mut(&case.seen.scope);
                if open.is_some_and(|open| open.remove(flow)) {
                    cancelled(case, out, *flow, case.seen.at);
                }
            }
            Sight::ExchangeEnd => written_after_left(case, out),
            Sight::Ended { .. } => self.ended(case, out),
            _ => {}
        }
    }
}

impl Streams {
    fn call_ended(&mut self, case: &Case<'_>) {
        let call = case.call().filter(|call| call.sender == Dir::C2s && call.state.is_terminal());
        let stream = call.filter(|call| call.stream.is_some());
        let open = |flow: &FlowIdx| case.model.flow(*flow).is_some_and(|flow| flow.ended().is_none());
        if let Some(flow) = stream.and_then(|call| case.model.flow_of(call)).filter(open) {
            self.0.entry(case.seen.scope).or_default().insert(flow);
        }
    }

    fn ended(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        let now = case.seen.at;
        let Some(open) = self.0.remove(&case.seen.scope) else { return };
        let mut kept: Vec<(CallIdx, u64)> = Vec::new();
        for idx in open {
            let Some(flow) = case.model.flow(idx) else { continue };
            match (flow.call, flow.answered.map(|answered| now.ns_since(answered))) {
                (Some(call), Some(open_ns)) if is_over(case, call) && open_ns >= CLOSE_NS => {
                    kept.push((call, open_ns));
                }
                _ => cancelled(case, out, idx, now),
            }
        }
        let longest_ns = kept.iter().map(|(_, open_ns)| *open_ns).max().unwrap_or(0);
        if kept.is_empty() || (kept.len() < MANY && longest_ns < LONG_NS) {
            return;
        }
        let draft = kept.iter().fold(out.draft(case), |draft, (idx, _)| draft.and_call(case.model, *idx));
        let longest = Span(longest_ns);
        let (draft, sentence) = match kept.as_slice() {
            [(idx, _)] => (
                draft.at_most(Severity::Hint),
                format!("the stream of {} is still open {longest} after its answer", case.name(*idx)),
            ),
            many => {
                let sentence = format!(
                    "{} streams are still open after their answers, the oldest for {longest}",
                    many.len()
                );
                (if many.len() < MANY { draft.at_most(Severity::Hint) } else { draft }, sentence)
            }
        };
        draft.blame(Blame::Server).say(out, sentence);
    }
}

/// Every request of the exchange of a call has its answer.
fn is_over(case: &Case<'_>, idx: CallIdx) -> bool {
    let stream = case.model.call(idx).and_then(|call| call.stream);
    let exchange = stream.and_then(|stream| case.model.exchange_of(stream));
    let calls = exchange.map_or(&[][..], Exchange::calls);
    calls.iter().all(|idx| case.model.call(*idx).is_some_and(|call| call.state.is_terminal()))
}

/// The stream of a call that was cancelled by a message, and stayed open for long without an answer.
fn cancelled(case: &Case<'_>, out: &mut Out<'_>, idx: FlowIdx, until: Mono) {
    let Some(flow) = case.model.flow(idx) else { return };
    let is_cancelled =
        |call: &&Call| call.state == CallState::CancelledByClient && call.after.late_answers == 0;
    let Some(call) = flow.call.and_then(|idx| case.model.call(idx)).filter(is_cancelled) else { return };
    let open_ns = call.ended.map_or(0, |ended| until.ns_since(ended));
    if open_ns < LONG_NS {
        return;
    }
    let name = flow.call.map_or_else(String::new, |idx| case.name(idx));
    let comments = match flow.comments {
        0 => "",
        _ => ", kept alive by comments",
    };
    let sentence =
        format!("the stream of {name} stayed open for {} after its cancel{comments}", Span(open_ns));
    let draft = flow.call.into_iter().fold(out.draft(case), |draft, idx| draft.and_call(case.model, idx));
    draft.blame(Blame::Server).say(out, sentence);
}

/// A server that went on writing to a stream whose client had left.
fn written_after_left(case: &Case<'_>, out: &mut Out<'_>) {
    let flow = case.exchange().and_then(Exchange::flow).and_then(|flow| case.model.flow(flow));
    let Some(flow) = flow.filter(|flow: &&Flow| flow.bytes_after_left() > 0) else { return };
    let Some(left) = flow.client_left else { return };
    let wrote_ns = flow.last_at.ns_since(left);
    if wrote_ns <= case.window_ns() {
        return;
    }
    let stream =
        flow.call.map_or_else(|| "a stream".to_owned(), |idx| format!("the stream of {}", case.name(idx)));
    let sentence = format!(
        "the server wrote {} more bytes to {stream}, the last {} after its client had left",
        flow.bytes_after_left(),
        Span(wrote_ns)
    );
    let draft = flow.call.into_iter().fold(out.draft(case), |draft, idx| draft.and_call(case.model, idx));
    let left = flow.end_row.and_then(|row| number(case.model, row));
    let draft = left.into_iter().fold(draft, Draft::and_event);
    draft.blame(Blame::Server).say(out, sentence);
}

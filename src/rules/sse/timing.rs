//! When the events of a stream come, and when it ends (SSE-05, SSE-08, SSE-13).

use std::collections::HashMap;

use super::modern_stream;
use crate::model::{Exchange, Name, Sight};
use crate::rules::Blame;
use crate::rules::book::{Book, Look, On, SightKind};
use crate::rules::case::Case;
use crate::rules::findings::Out;
use crate::time::Mono;

/// How long a stream may stay open after its answer (SSE-05).
const CLOSE_NS: u64 = 2_000_000_000;

/// Progress that came in one burst together with its answer, after a silence of this long, was
/// gathered on the way (SSE-13). ours: a quick loop after slow work looks the same, so it takes several.
const BURST_SILENCE_NS: u64 = 2_000_000_000;
const BURST_NS: u64 = 50_000_000;
const BURST_EVENTS: u32 = 5;

pub(super) fn rules(book: &mut Book) {
    let (end, left) = (On::Sight(SightKind::ExchangeEnd), On::Sight(SightKind::ExchangeLeft));
    book.rule("SSE-05", &[end, left], left_open);
    let (head, output) = (On::Sight(SightKind::HttpHead), On::Sight(SightKind::ServerOutput));
    book.rule("SSE-08", &[head, output, end, left], Quiet::default());
    book.rule("SSE-13", &[On::Sight(SightKind::Answered)], burst);
}

fn left_open(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(call) = case.call().filter(|call| call.state.is_answered()) else { return };
    let open_ns = call.ended.map_or(0, |ended| case.seen.at.ns_since(ended));
    if open_ns > CLOSE_NS && modern_stream(case).is_some() {
        let (subject, open) = (case.subject(), Case::ms(open_ns));
        let sentence = format!("the stream of {subject} stayed open for {open} after its answer");
        out.draft(case).blame(Blame::Server).say(out, sentence);
    }
}

/// When the last byte of each open stream came.
#[derive(Default)]
struct Quiet(HashMap<u64, Mono>);

impl Look for Quiet {
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        let (Some(stream), now) = (case.seen.stream, case.seen.at) else { return };
        let before = match case.what() {
            Sight::HttpHead if modern_stream(case).is_some() => {
                self.0.insert(stream, now);
                return;
            }
            Sight::HttpHead => return,
            Sight::ServerOutput => self.0.get_mut(&stream).map(|last| std::mem::replace(last, now)),
            _ => self.0.remove(&stream),
        };
        let limit_ns = case.policy.limits.keep_alive.to_ns();
        let Some(before) = before.filter(|before| now.ns_since(*before) > limit_ns) else { return };
        // What stays open after its answer is told by SSE-05.
        let first = case.exchange().and_then(|exchange| exchange.calls().first().copied());
        let call = first.and_then(|idx| case.model.call(idx));
        if call.is_some_and(|call| call.ended.is_some_and(|ended| ended <= before)) {
            return;
        }
        let subject = first.map_or_else(|| "a request".to_owned(), |idx| case.name(idx));
        let quiet = Case::ms(now.ns_since(before));
        let mut draft = out.draft(case).blame(Blame::Server);
        if let Some(idx) = first {
            draft = draft.and_call(case.model, idx);
        }
        draft.and_event(case.event_number()).gather(out, stream, |times| match times {
            1 => format!("the stream of {subject} was without a byte for {quiet}"),
            _ => format!("the stream of {subject} was quiet for long {times} times, last for {quiet}"),
        });
    }
}

fn burst(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(call) = case.call().filter(|call| call.method != Name::LISTEN) else { return };
    let progress = call.progress;
    let (Some(first), true) = (progress.first_at, progress.count >= BURST_EVENTS) else { return };
    let silent_ns = first.ns_since(call.started);
    let burst_ns = case.seen.at.ns_since(first);
    let is_stream = case.exchange().is_some_and(Exchange::is_event_stream);
    if is_stream && silent_ns >= BURST_SILENCE_NS && burst_ns <= BURST_NS {
        let sentence = format!(
            "{} was silent for {}; then {} progress and the answer came within {}",
            case.subject(),
            Case::ms(silent_ns),
            progress.count,
            Case::ms(burst_ns)
        );
        out.draft(case).blame(Blame::Unknown).say(out, sentence);
    }
}

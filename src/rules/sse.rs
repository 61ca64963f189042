//! Event streams (SSE-01..13).

mod timing;

use std::collections::HashMap;

use crate::model::{CallIdx, Exchange, FrameFault, Name, Sight};
use crate::rules::Blame;
use crate::rules::book::{Book, Look, On, SightKind};
use crate::rules::case::{Case, count, short};
use crate::rules::findings::Out;
use crate::spec::headers;

/// An event that a client left unfinished is the server's fault only when it had lain there this
/// long: a client that cancels by leaving cuts events anywhere. ours.
const TAIL_NS: u64 = 2_000_000_000;

/// Notifications that are about no request; progress elsewhere is told by PRG-04, logs by LOG rules.
const ABOUT_NO_REQUEST: [&str; 6] = [
    "notifications/tools/list_changed",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
    "notifications/resources/updated",
    "notifications/subscriptions/acknowledged",
    "notifications/tasks",
];

pub(super) fn rules(book: &mut Book) {
    let (frame, event) = ([On::Sight(SightKind::Frame)], [On::Sight(SightKind::SseEvent)]);
    book.rule("SSE-01", &frame, not_message);
    book.rule("SSE-02", &ABOUT_NO_REQUEST.map(On::NotificationOf), about_no_request);
    book.rule("SSE-03", &[On::Sight(SightKind::AnswerElsewhere)], foreign_answer);
    let (answered, ended) = (On::Sight(SightKind::Answered), On::Sight(SightKind::ExchangeEnd));
    let left = On::Sight(SightKind::ExchangeLeft);
    book.rule("SSE-04", &[answered, event[0], ended, left], AfterAnswer::default());
    book.rule("SSE-06", &[On::Sight(SightKind::StreamEnded)], ended_early);
    book.rule("SSE-07", &[On::Sight(SightKind::HttpHead)], may_be_buffered);
    book.rule("SSE-09", &event, has_id);
    book.rule("SSE-10", &frame, unterminated);
    book.rule("SSE-11", &event, other_type);
    book.rule("SSE-12", &event, empty);
    timing::rules(book);
}

/// The stream, where it answers a request of the modern era.
fn modern_stream<'a>(case: &Case<'a>) -> Option<&'a Exchange> {
    let exchange = case.exchange().filter(|exchange| exchange.is_event_stream())?;
    let of_call = exchange.calls().first().and_then(|idx| case.model.call(*idx)).and_then(|call| call.era);
    of_call.or(exchange.era()).is_some_and(crate::spec::era::Era::is_modern).then_some(exchange)
}

fn not_message(case: &Case<'_>, out: &mut Out<'_>) {
    if matches!(case.what(), Sight::Frame { fault: FrameFault::SseNotMessage, .. }) {
        out.say(case, "an event's data is no message");
    }
}

fn about_no_request(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(idx) = modern_stream(case).and_then(|exchange| exchange.calls().first()) else { return };
    if case.model.call(*idx).is_none_or(|call| call.method == Name::LISTEN) {
        return;
    }
    let (method, stream_of) = (case.method(), case.name(*idx));
    let draft = out.draft(case).and_call(case.model, *idx);
    draft.gather(out, (case.seen.stream, method), |times| {
        format!("{method} came {} on the stream of {stream_of}", count(times, "time"))
    });
}

fn foreign_answer(case: &Case<'_>, out: &mut Out<'_>) {
    if modern_stream(case).is_none() {
        return;
    }
    let other = case.exchange().and_then(|exchange| exchange.calls().first().copied());
    let whose = other.map_or_else(|| "another request".to_owned(), |other| case.name(other));
    let sentence = format!("the answer to {} came on the stream of {whose}", case.subject());
    let draft = out.draft(case);
    match other {
        Some(other) => draft.and_call(case.model, other).say(out, sentence),
        None => draft.say(out, sentence),
    };
}

/// Streams whose answer has come. Order on one stream is certain.
#[derive(Default)]
struct AfterAnswer(HashMap<u64, CallIdx>);

impl Look for AfterAnswer {
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        let Some(stream) = case.seen.stream else { return };
        match case.what() {
            Sight::Answered => {
                let on_its_stream = case.call().is_some_and(|call| call.stream == Some(stream));
                let is_alone = modern_stream(case).is_some_and(|exchange| exchange.calls().len() == 1);
                if let Some(idx) = case.seen.call.filter(|_| on_its_stream && is_alone) {
                    self.0.insert(stream, idx);
                }
            }
            Sight::SseEvent(field) if field.has_data && !field.is_empty => {
                let Some(idx) = self.0.get(&stream) else { return };
                let answered = case.name(*idx);
                let draft = out.draft(case).blame(Blame::Server).and_event(case.event_number());
                draft.gather(out, stream, |times| {
                    format!("{} on the stream of {answered} after its answer", count(times, "event"))
                });
            }
            Sight::SseEvent(_) => {}
            _ => {
                self.0.remove(&stream);
            }
        }
    }
}

/// A subscription that ends is told by SUB-14, an answer that is no stream by HTTP-17 and HTTP-18.
fn ended_early(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(call) = case.call().filter(|call| call.method != Name::LISTEN) else { return };
    let (subject, after) = (case.subject(), Case::ms(case.seen.at.ns_since(call.started)));
    match case.exchange() {
        Some(exchange) if exchange.is_event_stream() => {
            out.say(case, format!("the stream of {subject} ended after {after} without its answer"));
        }
        Some(exchange) if exchange.status().is_some() => {}
        _ => {
            out.say(case, format!("the connection of {subject} ended after {after}, before an answer began"));
        }
    }
}

fn may_be_buffered(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(fields) = modern_stream(case).and_then(Exchange::answer_headers) else { return };
    if fields.get(headers::ACCEL_BUFFERING).is_none_or(|value| !value.trim().eq_ignore_ascii_case("no")) {
        out.gather(case, case.seen.scope, |times| {
            format!("{} without X-Accel-Buffering: no", count(times, "event stream"))
        });
    }
}

fn has_id(case: &Case<'_>, out: &mut Out<'_>) {
    let Sight::SseEvent(field) = case.what() else { return };
    if (field.id.is_some() || field.retry.is_some()) && modern_stream(case).is_some() {
        let draft = out.draft(case).blame(Blame::Server).and_event(case.event_number());
        draft.gather(out, case.seen.scope, |times| {
            format!("{} with an id or a retry time, which nobody can use", count(times, "event"))
        });
    }
}

fn unterminated(case: &Case<'_>, out: &mut Out<'_>) {
    let Sight::Frame { fault: FrameFault::SseUnterminated { is_message, by_client }, .. } = case.what()
    else {
        return;
    };
    let lay_ns = case.row().map_or(0, |row| case.seen.at.ns_since(row.at));
    if *by_client && !(*is_message && lay_ns > TAIL_NS) {
        return;
    }
    let held = if *is_message { "it holds a whole message" } else { "what came of it is lost" };
    let sentence = format!("the event stream of {} ended inside an event; {held}", case.subject());
    out.draft(case).blame(Blame::Server).say(out, sentence);
}

fn other_type(case: &Case<'_>, out: &mut Out<'_>) {
    let Sight::SseEvent(field) = case.what() else { return };
    let Some(kind) = field.event.as_deref().filter(|kind| !kind.is_empty() && *kind != "message") else {
        return;
    };
    if field.has_data && modern_stream(case).is_some() {
        let kind = short(kind);
        let draft = out.draft(case).blame(Blame::Server).and_event(case.event_number());
        draft.gather(out, (case.seen.scope, &kind), |times| {
            format!("{} of the type {kind}, not message", count(times, "event"))
        });
    }
}

fn empty(case: &Case<'_>, out: &mut Out<'_>) {
    let Sight::SseEvent(field) = case.what() else { return };
    if field.is_empty && modern_stream(case).is_some() {
        let draft = out.draft(case).blame(Blame::Server).and_event(case.event_number());
        draft.gather(out, case.seen.scope, |times| format!("{} without data in it", count(times, "event")));
    }
}

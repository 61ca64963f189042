//! Bodies of answers: none to a notification, one message to a request (HTTP-16, HTTP-18).

use std::collections::HashMap;

use super::{may_be_http_sse, posted};
use crate::event::Dir;
use crate::model::{Exchange, FrameFault, Name, Sight};
use crate::rules::Blame;
use crate::rules::book::{Book, Look, On, SightKind};
use crate::rules::case::{Case, short};
use crate::rules::findings::Out;
use crate::spec::headers;

pub(super) fn rules(book: &mut Book) {
    let (head, output) = (On::Sight(SightKind::HttpHead), On::Sight(SightKind::ServerOutput));
    let (end, left) = (On::Sight(SightKind::ExchangeEnd), On::Sight(SightKind::ExchangeLeft));
    let posted = [On::Notification, On::Result, On::Error];
    book.rule("HTTP-16", &[posted[0], posted[1], posted[2], head, output, end, left], Unanswered::default());
    let (elsewhere, frame) = (On::Sight(SightKind::AnswerElsewhere), On::Sight(SightKind::Frame));
    let ended = On::Sight(SightKind::StreamEnded);
    book.rule("HTTP-18", &[On::Notification, elsewhere, frame, ended], one_response);
}

/// POSTs that want no answer, until theirs is seen: what they hold, and the event that brought them.
#[derive(Default)]
struct Unanswered(HashMap<u64, Posted>);

struct Posted {
    what: String,
    event: u64,
    status: Option<u16>,
}

impl Look for Unanswered {
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        let Some(stream) = case.seen.stream else { return };
        match case.what() {
            Sight::Message => {
                if wants_no_answer(case) {
                    let what = case.message().and_then(|message| message.method);
                    let what = what.map_or("a response".to_owned(), |name| short(case.model.text(name)));
                    self.0.insert(stream, Posted { what, event: case.event_number(), status: None });
                }
            }
            Sight::HttpHead => {
                let Some(posted) = self.0.get_mut(&stream) else { return };
                posted.status = case.exchange().and_then(Exchange::status);
                let wrong = posted.status.filter(|status| (200..300).contains(status) && *status != 202);
                if let Some(status) = wrong {
                    let (what, event) = (&posted.what, posted.event);
                    out.draft(case).and_event(event).gather(out, (case.seen.scope, what, status), |times| {
                        format!("{what} was answered with status {status}, not 202{}", so_often(times))
                    });
                    self.0.remove(&stream);
                }
            }
            Sight::ServerOutput => {
                let has_body = case.exchange().is_some_and(|exchange| exchange.answer_bytes() > 0);
                let is_accepted = |posted: &Posted| posted.status == Some(202);
                let found = self.0.get(&stream).is_some_and(is_accepted) && has_body;
                let Some(Posted { what, event, .. }) = found.then(|| self.0.remove(&stream)).flatten() else {
                    return;
                };
                let draft = out.draft(case).blame(Blame::Server).and_event(event);
                draft.gather(out, (case.seen.scope, &what), |times| {
                    format!("the 202 that answers {what} has a body{}", so_often(times))
                });
            }
            _ => {
                self.0.remove(&stream);
            }
        }
    }
}

fn so_often(times: u32) -> String {
    if times == 1 { String::new() } else { format!(", {times} times") }
}

/// A notification, or in a legacy era a response, alone in its POST. One with an id is ambiguous.
fn wants_no_answer(case: &Case<'_>) -> bool {
    let Some(exchange) = posted(case).filter(|_| !may_be_http_sse(case)) else { return false };
    let is_notification = case.message().is_some_and(|message| message.method.is_some());
    let has_id = case.body().is_some_and(|body| body.get("id").is_some());
    let is_known = if is_notification { !has_id } else { !case.is_modern() };
    is_known && exchange.calls().is_empty()
}

/// A JSON body holds the response to its request, and nothing else. A response under an id that nobody
/// used is told by RPC-08.
fn one_response(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(exchange) = case.exchange().filter(|exchange| !exchange.is_event_stream()) else { return };
    let Some(idx) = exchange.calls().first() else { return };
    let (asked, from_server) = (case.name(*idx), case.row().is_some_and(|row| row.dir == Dir::S2c));
    let sentence = match case.what() {
        Sight::Message if from_server => {
            format!("{} came as the JSON answer to {asked}", short(case.method()))
        }
        Sight::AnswerElsewhere => format!("the JSON answer to {asked} is that to {}", case.subject()),
        Sight::Frame { dir: Dir::S2c, fault: FrameFault::Batch { .. } } => {
            format!("the JSON answer to {asked} is an array")
        }
        Sight::StreamEnded if is_json(exchange) && exchange.answer_bytes() > 0 => {
            format!("the JSON answer to {asked} holds no message")
        }
        _ => return,
    };
    // A subscription's answer is told by SUB-22.
    if case.model.call(*idx).is_some_and(|call| call.method != Name::LISTEN) {
        out.draft(case).blame(Blame::Server).and_call(case.model, *idx).say(out, sentence);
    }
}

fn is_json(exchange: &Exchange) -> bool {
    let declared = exchange.answer_headers().and_then(|fields| fields.get("content-type"));
    let is_success = exchange.status().is_some_and(|status| (200..300).contains(&status));
    is_success && declared.is_some_and(|declared| headers::is_media_type(declared, headers::JSON))
}

//! Event streams of a session: how they are asked for, what they carry, how they end
//! (LEG-07..10, LEG-14..16).

use std::collections::{HashMap, HashSet, VecDeque};

use super::calls;
use crate::event::{Dir, Transport};
use crate::model::{CallIdx, Name, ScopeIdx, Sight};
use crate::rules::Blame;
use crate::rules::book::{Book, On, SightKind};
use crate::rules::case::{Case, count};
use crate::rules::findings::Out;
use crate::spec::headers::{EVENT_STREAM, LAST_EVENT_ID, is_media_type};
use crate::time::Mono;
use crate::wire::jsonrpc::Kind;

/// The same notification on two streams this close together is one that was sent twice (LEG-10).
const TWICE_NS: u64 = 50_000_000;

/// Messages of a session that are remembered for that. ours.
const RECENT: usize = 32;

pub(super) fn rules(book: &mut Book) {
    book.rule("LEG-07", &[On::Sight(SightKind::HttpRequest)], accept);
    book.rule("LEG-08", &[On::Sight(SightKind::HttpHead)], get_answer);
    book.rule("LEG-09", &[On::Result, On::Error], response_on_get);
    book.rule("LEG-10", &[On::Message], on_two_streams());
    book.rule(
        "LEG-14",
        &[
            On::Sight(SightKind::SseEvent),
            On::Sight(SightKind::StreamEndedResumable),
            On::Sight(SightKind::ExchangeEnd),
        ],
        unannounced(),
    );
    book.rule(
        "LEG-15",
        &[On::Sight(SightKind::StreamEnded), On::Sight(SightKind::StreamEndedResumable)],
        closed_early,
    );
    book.rule("LEG-16", &[On::Sight(SightKind::SseEvent), On::Sight(SightKind::ExchangeEnd)], unprimed());
}

/// It is a GET of the session's endpoint.
fn is_get(case: &Case<'_>) -> bool {
    let is_get = case.exchange().is_some_and(|exchange| exchange.method() == "GET");
    is_get && case.seen.scope != ScopeIdx(0) && !case.is_http_sse()
}

fn accept(case: &Case<'_>, out: &mut Out<'_>) {
    if !is_get(case) {
        return;
    }
    let Some(exchange) = case.exchange() else { return };
    let accepts = exchange.headers().all("accept").flat_map(|list| list.split(','));
    let names: Vec<&str> = accepts.map(|part| part.split(';').next().unwrap_or_default().trim()).collect();
    let is_named = names.iter().any(|name| {
        name.eq_ignore_ascii_case(EVENT_STREAM) || name.eq_ignore_ascii_case("text/*") || *name == "*/*"
    });
    if !is_named {
        out.gather(case, case.seen.scope, |times| {
            format!("{} without text/event-stream in Accept", count(times, "GET"))
        });
    }
}

/// Statuses that are right for a GET without a stream, and those of others: sessions, gateways,
/// limits, redirections.
fn is_fitting(status: u16) -> bool {
    matches!(status, 400 | 401 | 403 | 404 | 405 | 429 | 300..=399 | 500..=599)
}

fn get_answer(case: &Case<'_>, out: &mut Out<'_>) {
    if !is_get(case) {
        return;
    }
    let Some((exchange, status)) = case.exchange().and_then(|exchange| Some((exchange, exchange.status()?)))
    else {
        return;
    };
    let kind = exchange.answer_headers().and_then(|headers| headers.get("content-type")).unwrap_or_default();
    let is_stream = (200..300).contains(&status) && is_media_type(kind, EVENT_STREAM);
    if is_stream || is_fitting(status) {
        return;
    }
    let what =
        if kind.is_empty() { String::new() } else { format!(" and {}", crate::rules::case::short(kind)) };
    out.gather(case, (case.seen.scope, status), |times| {
        format!("{} of the session answered with status {status}{what}", count(times, "GET"))
    });
}

fn response_on_get(case: &Case<'_>, out: &mut Out<'_>) {
    if !is_get(case) || case.row().is_none_or(|row| row.dir != Dir::S2c) {
        return;
    }
    let is_resumed = case.exchange().is_some_and(|exchange| exchange.headers().get(LAST_EVENT_ID).is_some());
    if !is_resumed {
        let sentence = format!("the answer to {} came on a GET stream that resumes nothing", case.subject());
        out.say(case, sentence);
    }
}

/// A message that a session's server has sent.
struct Sent {
    text: u64,
    stream: u64,
    at: Mono,
    is_request: bool,
}

fn on_two_streams() -> impl FnMut(&Case<'_>, &mut Out<'_>) + Send {
    use std::hash::BuildHasher;
    let hasher = std::hash::BuildHasherDefault::<std::hash::DefaultHasher>::default();
    let mut recent: HashMap<ScopeIdx, VecDeque<Sent>> = HashMap::new();
    move |case, out| {
        let Some(stream) = case.seen.stream.filter(|_| case.transport() == Transport::Http) else { return };
        let is_ours = case.seen.scope != ScopeIdx(0) && case.row().is_some_and(|row| row.dir == Dir::S2c);
        let kind = case.message().map(|message| message.kind);
        let is_request = kind == Some(Kind::Request);
        let is_resumed =
            case.exchange().is_some_and(|exchange| exchange.headers().get(LAST_EVENT_ID).is_some());
        if !is_ours || is_resumed || !(is_request || kind == Some(Kind::Notification)) {
            return;
        }
        let Some(body) = case.body() else { return };
        let text = hasher.hash_one(body.raw());
        let sent = recent.entry(case.seen.scope).or_default();
        let twin = sent.iter().find(|sent| {
            sent.text == text
                && sent.stream != stream
                && (sent.is_request || case.seen.at.ns_since(sent.at) <= TWICE_NS)
        });
        if let Some(twin) = twin {
            let other = twin.stream;
            let method = case.method();
            out.gather(case, (case.seen.scope, method), |times| match times {
                1 => format!("one {method} came on two streams, of exchanges {other} and {stream}"),
                _ => format!("{method} came on two streams {times} times"),
            });
        }
        if sent.len() >= RECENT {
            sent.pop_front();
        }
        sent.push_back(Sent { text, stream, at: case.seen.at, is_request });
    }
}

/// A stream with event ids is closed before its answer, and no `retry` said when to come back.
fn unannounced() -> impl FnMut(&Case<'_>, &mut Out<'_>) + Send {
    let mut retries: HashSet<u64> = HashSet::new();
    move |case, out| {
        let Some(stream) = case.seen.stream else { return };
        match case.what() {
            Sight::SseEvent(event) if event.retry.is_some() => {
                retries.insert(stream);
            }
            Sight::StreamEndedResumable if !retries.contains(&stream) => {
                let is_post = case.exchange().is_some_and(|exchange| exchange.method() == "POST");
                if is_post && case.call().is_some_and(|call| call.is_resumable) {
                    let sentence = format!(
                        "the stream of {} was closed before its answer, without a retry",
                        case.subject()
                    );
                    out.say(case, sentence);
                }
            }
            Sight::ExchangeEnd => {
                retries.remove(&stream);
            }
            _ => {}
        }
    }
}

fn closed_early(case: &Case<'_>, out: &mut Out<'_>) {
    let is_post = case.exchange().is_none_or(|exchange| {
        exchange.method() == "POST" && (exchange.is_event_stream() || exchange.status().is_none())
    });
    if !is_post || case.call().is_none_or(|call| call.method == Name::LISTEN) {
        return;
    }
    let after = case.call().map_or(0, |call| case.seen.at.ns_since(call.started));
    let sentence =
        format!("the stream of {} was closed after {} without its answer", case.subject(), Case::ms(after));
    out.draft(case).blame(Blame::Server).say(out, sentence);
}

/// The first event of a POST stream is no priming event. One finding for a session.
fn unprimed() -> impl FnMut(&Case<'_>, &mut Out<'_>) + Send {
    let mut begun: HashSet<u64> = HashSet::new();
    move |case, out| {
        let Some(stream) = case.seen.stream else { return };
        let Sight::SseEvent(event) = case.what() else {
            begun.remove(&stream);
            return;
        };
        let is_post = case.exchange().is_some_and(|exchange| exchange.method() == "POST");
        if !is_post || !begun.insert(stream) {
            return;
        }
        if event.id.is_none() || !event.is_empty {
            let calls: Vec<CallIdx> = calls(case).to_vec();
            let draft = calls.iter().fold(out.draft(case), |draft, idx| draft.and_call(case.model, *idx));
            draft.blame(Blame::Server).gather(out, case.seen.scope, |times| {
                format!("{} began without an event that has an id and no data", count(times, "stream"))
            });
        }
    }
}

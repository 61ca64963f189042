//! HTTP+SSE of 2024-11-05: the endpoint event, where messages are posted, and how they come back
//! (LEG-17..19).

use std::collections::{HashMap, HashSet};

use super::path;
use crate::model::{ScopeIdx, Sight};
use crate::rules::Blame;
use crate::rules::book::{Book, On, SightKind};
use crate::rules::case::{Case, count, short};
use crate::rules::findings::Out;

pub(super) fn rules(book: &mut Book) {
    let event = On::Sight(SightKind::SseEvent);
    let end = On::Sight(SightKind::ExchangeEnd);
    book.rule_of_any_era("LEG-17", &[event, end], endpoint_first());
    book.rule_of_any_era(
        "LEG-18",
        &[On::Sight(SightKind::Endpoint), On::Sight(SightKind::HttpRequest), end],
        posted_elsewhere(),
    );
    book.rule_of_any_era("LEG-19", &[On::Sight(SightKind::Endpoint), event, end], other_types());
}

/// An `endpoint` event that is not the first of its stream. Whether a stream without any is one of
/// HTTP+SSE cannot be told.
fn endpoint_first() -> impl FnMut(&Case<'_>, &mut Out<'_>) + Send {
    let mut events: HashMap<u64, u32> = HashMap::new();
    move |case, out| {
        let Some(stream) = case.seen.stream else { return };
        let Sight::SseEvent(event) = case.what() else {
            events.remove(&stream);
            return;
        };
        if case.exchange().is_none_or(|exchange| exchange.method() != "GET") {
            return;
        }
        let before = events.entry(stream).or_default();
        *before += 1;
        if event.event.as_deref() != Some("endpoint") {
            return;
        }
        let sentence = if *before > 1 {
            format!("the endpoint event is number {before} of its stream")
        } else if event.is_empty {
            "the endpoint event names no URI".to_owned()
        } else {
            return;
        };
        out.draft(case).blame(Blame::Server).say(out, sentence);
    }
}

/// A session of HTTP+SSE: the path of its stream, and the one that its endpoint event names.
struct Session {
    stream_path: String,
    endpoint: String,
    /// Its client has found the endpoint. An `initialize` that is posted to the stream's own path after
    /// that is of another client, which does not know yet what kind of server it has met.
    is_begun: bool,
}

/// Messages are posted to the path of the stream, though the endpoint is another one.
fn posted_elsewhere() -> impl FnMut(&Case<'_>, &mut Out<'_>) + Send {
    let mut open: HashMap<u64, Session> = HashMap::new();
    move |case, out| {
        let (Some(stream), Some(exchange)) = (case.seen.stream, case.exchange()) else { return };
        let target = exchange.head().map_or("", |head| head.path.as_str());
        match case.what() {
            Sight::Endpoint { path: endpoint } => {
                let (stream_path, endpoint) = (path(target).to_owned(), endpoint.clone());
                let session = Session { stream_path, endpoint, is_begun: false };
                open.insert(stream, session);
            }
            Sight::ExchangeEnd => {
                open.remove(&stream);
            }
            _ if exchange.method() == "POST" && exchange.era().is_none() => {
                // With one session there is no doubt whose message it is.
                if open.len() != 1 {
                    return;
                }
                let Some(session) = open.values_mut().next() else { return };
                if path(target) == path(&session.endpoint) {
                    session.is_begun = true;
                } else if path(target) == session.stream_path
                    && !(session.is_begun && super::is_initialize(case))
                {
                    let (to, endpoint) = (short(target), short(&session.endpoint));
                    let draft = super::calls(case)
                        .iter()
                        .fold(out.draft(case), |draft, idx| draft.and_call(case.model, *idx));
                    draft.blame(Blame::Client).gather(out, (ScopeIdx(0), &to), |times| {
                        format!(
                            "{} posted to {to}; the endpoint event says {endpoint}",
                            count(times, "message")
                        )
                    });
                }
            }
            _ => {}
        }
    }
}

/// Events of HTTP+SSE that carry a message under another type.
fn other_types() -> impl FnMut(&Case<'_>, &mut Out<'_>) + Send {
    let mut open: HashSet<u64> = HashSet::new();
    move |case, out| {
        let Some(stream) = case.seen.stream else { return };
        match case.what() {
            Sight::Endpoint { .. } => {
                open.insert(stream);
            }
            Sight::SseEvent(event) if open.contains(&stream) && event.has_data && event.holds_message => {
                let name = event.event.as_deref().unwrap_or("message");
                if name != "message" && name != "endpoint" {
                    let name = short(name);
                    out.draft(case).blame(Blame::Server).gather(out, (stream, &name), |times| {
                        format!("{} came as event type {name}, not as message", count(times, "message"))
                    });
                }
            }
            Sight::ExchangeEnd => {
                open.remove(&stream);
            }
            _ => {}
        }
    }
}

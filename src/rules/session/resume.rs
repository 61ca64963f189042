//! Resume by event id: ids are unique, a replay stays on its stream, and `retry` is waited for
//! (LEG-11..13).

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use crate::event::Dir;
use crate::model::{ScopeIdx, Sight};
use crate::rules::Blame;
use crate::rules::book::{Book, On, SightKind};
use crate::rules::case::{Case, short};
use crate::rules::findings::Out;
use crate::spec::headers::LAST_EVENT_ID;
use crate::time::Mono;

/// Event ids of a session that are remembered. ours.
const IDS_LIMIT: usize = 20_000;

pub(super) fn rules(book: &mut Book) {
    let event = On::Sight(SightKind::SseEvent);
    book.rule("LEG-11", &[event, On::Message], ids_unique());
    book.rule("LEG-12", &[event], replay_elsewhere());
    book.rule(
        "LEG-13",
        &[event, On::Sight(SightKind::ExchangeEnd), On::Sight(SightKind::HttpRequest)],
        retry_respected(),
    );
}

fn hash(text: &str) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(text)
}

/// Ids of a session, with something about each.
#[derive(Default)]
struct Ids<T>(HashMap<u64, T>);

impl<T> Ids<T> {
    fn remember(&mut self, id: u64, value: T) {
        if self.0.len() >= IDS_LIMIT {
            self.0.clear();
        }
        self.0.insert(id, value);
    }
}

/// An event id comes before its message: it waits until the message is read.
fn ids_unique() -> impl FnMut(&Case<'_>, &mut Out<'_>) + Send {
    let mut pending: Option<(u64, String)> = None;
    let mut sessions: HashMap<ScopeIdx, Ids<u64>> = HashMap::new();
    move |case, out| {
        let Some(stream) = case.seen.stream.filter(|_| case.seen.scope != ScopeIdx(0)) else { return };
        if let Sight::SseEvent(event) = case.what() {
            pending = event.id.clone().filter(|id| !id.is_empty() && !event.is_empty).map(|id| (stream, id));
            return;
        }
        if case.row().is_none_or(|row| row.dir != Dir::S2c) {
            return;
        }
        let (Some((_, id)), Some(body)) = (pending.take().filter(|(of, _)| *of == stream), case.body())
        else {
            return;
        };
        let (key, text) = (hash(&id), hash(body.raw()));
        let known = sessions.entry(case.seen.scope).or_default();
        if known.0.get(&key).is_some_and(|before| *before != text) {
            let id = short(&id);
            out.gather(case, (case.seen.scope, key), |times| {
                format!("the event id {id} stands for {} different messages of the session", times + 1)
            });
        }
        known.remember(key, text);
    }
}

/// The stream on which an id was first used; a resumed one counts as the stream that it resumes.
fn replay_elsewhere() -> impl FnMut(&Case<'_>, &mut Out<'_>) + Send {
    let mut sessions: HashMap<ScopeIdx, Ids<u64>> = HashMap::new();
    move |case, out| {
        let Sight::SseEvent(event) = case.what() else { return };
        let (Some(stream), Some(exchange)) = (case.seen.stream, case.exchange()) else { return };
        let Some(id) = event.id.as_deref().filter(|id| !id.is_empty()) else { return };
        let known = sessions.entry(case.seen.scope).or_default();
        let resumed = exchange.headers().get(LAST_EVENT_ID).map(hash);
        let origin = resumed.and_then(|last| known.0.get(&last)).copied();
        if let (Some(origin), Some(first)) = (origin, known.0.get(&hash(id)).copied())
            && first != origin
        {
            let asked = exchange.resumes();
            let draft = asked.into_iter().fold(out.draft(case), |draft, idx| draft.and_call(case.model, idx));
            draft.blame(Blame::Server).gather(out, (case.seen.scope, stream), |times| match times {
                1 => format!(
                    "a stream that resumes that of exchange {origin} replays an event of exchange {first}"
                ),
                _ => format!(
                    "a stream that resumes that of exchange {origin} replays {times} events of other streams"
                ),
            });
            return;
        }
        if !known.0.contains_key(&hash(id)) {
            known.remember(hash(id), origin.unwrap_or(stream));
        }
    }
}

/// When a stream with `retry` may be taken up again.
#[derive(Default)]
struct Retry {
    /// The last `retry` of each open stream, in milliseconds.
    open: HashMap<u64, u64>,
    /// Streams of a session that ended: when, and how long to wait.
    ended: HashMap<ScopeIdx, (Mono, u64)>,
}

fn retry_respected() -> impl FnMut(&Case<'_>, &mut Out<'_>) + Send {
    let mut state = Retry::default();
    move |case, out| {
        let Some(stream) = case.seen.stream else { return };
        match case.what() {
            Sight::SseEvent(event) => {
                if let Some(ms) = event.retry {
                    state.open.insert(stream, ms);
                }
            }
            Sight::ExchangeEnd => {
                if let Some(ms) = state.open.remove(&stream) {
                    state.ended.insert(case.seen.scope, (case.seen.at, ms));
                }
            }
            Sight::HttpRequest => {
                let resumes = case.exchange().is_some_and(|exchange| {
                    exchange.method() == "GET" && exchange.headers().get(LAST_EVENT_ID).is_some()
                });
                let Some((at, ms)) = state.ended.get(&case.seen.scope).copied().filter(|_| resumes) else {
                    return;
                };
                let waited_ns = case.seen.at.ns_since(at);
                state.ended.remove(&case.seen.scope);
                if waited_ns < ms.saturating_mul(950_000) {
                    let waited = Case::ms(waited_ns);
                    out.draft(case).blame(Blame::Client).gather(out, case.seen.scope, |times| match times {
                        1 => format!("the stream was taken up again after {waited}; its retry says {ms} ms"),
                        _ => format!("streams were taken up again too early {times} times, last after {waited} of {ms} ms"),
                    });
                }
            }
            _ => {}
        }
    }
}

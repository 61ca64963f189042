//! Fetching what is still fresh, and fetching as soon as it is not (CCH-06, 07).

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use super::{CACHED, complete, ttl_ns};
use crate::event::Transport;
use crate::model::{CallIdx, ScopeIdx};
use crate::rules::book::{Book, Look, On};
use crate::rules::case::{Case, count};
use crate::rules::findings::Out;
use crate::time::{Mono, Span};
use crate::wire::jsonrpc::Kind;

/// Requests that are remembered; of more, all are forgotten. ours.
const REQUESTS: usize = 1_024;

/// Rounds in the rhythm of the time to live before it is told.
const ROUNDS: u32 = 5;

/// The rhythm is kept this closely: one part in so many (5 %).
const CLOSE: u64 = 20;

pub(super) fn rules(book: &mut Book) {
    let both = [CACHED.map(On::RequestOf), CACHED.map(On::ResultOf)].concat();
    let disturbed = super::stale::CHANGES.map(On::NotificationOf);
    let reuse = [&both[..], &disturbed, &[On::Error]].concat();
    book.rule("CCH-06", &reuse, Fetches::new(again));
    book.rule("CCH-07", &both, Fetches::new(polls));
}

/// The last fetch of one thing by one client.
#[derive(Clone, Copy)]
struct Fetch {
    call: CallIdx,
    asked: Mono,
    read: Mono,
    ttl_ns: u64,
    /// Fetches in a row that came as soon as the one before was stale.
    rounds: u32,
}

type Judge = fn(&Case<'_>, &mut Out<'_>, u64, &mut Fetch);

struct Fetches {
    last: HashMap<u64, Fetch>,
    /// When a change was told, or a request failed.
    disturbed: HashMap<ScopeIdx, Mono>,
    judge: Judge,
}

impl Fetches {
    fn new(judge: Judge) -> Fetches {
        Fetches { last: HashMap::new(), disturbed: HashMap::new(), judge }
    }
}

impl Look for Fetches {
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        match case.message().map(|message| message.kind) {
            Some(Kind::Request) => {
                let Some(key) = key(case) else { return };
                let disturbed = self.disturbed.get(&case.seen.scope);
                if let Some(fetch) = self.last.get_mut(&key)
                    && disturbed.is_none_or(|at| *at < fetch.read)
                {
                    (self.judge)(case, out, key, fetch);
                }
            }
            Some(Kind::Result) => self.fetched(case),
            _ => {
                self.disturbed.insert(case.seen.scope, case.seen.at);
            }
        }
    }
}

impl Fetches {
    fn fetched(&mut self, case: &Case<'_>) {
        let (Some(key), Some(idx), Some(call)) = (key(case), case.seen.call, case.call()) else { return };
        let ttl = complete(case).and_then(ttl_ns).filter(|ttl| *ttl > 0);
        let Some(ttl_ns) = ttl else {
            self.last.remove(&key);
            return;
        };
        if self.last.len() >= REQUESTS {
            self.last.clear();
        }
        let rounds = self.last.get(&key).map_or(0, |fetch| fetch.rounds);
        self.last.insert(key, Fetch { call: idx, asked: call.started, read: case.seen.at, ttl_ns, rounds });
    }
}

/// Who asks for what: one client is known by its pipe, or its connection.
fn key(case: &Case<'_>) -> Option<u64> {
    let params = case.request_params();
    // A further round of one request is no new one.
    if params
        .is_some_and(|params| params.get("inputResponses").is_some() || params.get("requestState").is_some())
    {
        return None;
    }
    let call = case.call()?;
    if case.transport() == Transport::Http && call.conn.is_none() {
        return None;
    }
    let asked: Vec<_> = params.map(|params| params.members().collect()).unwrap_or_default();
    let asked = asked.iter().filter(|(name, _)| name != "_meta").map(|(name, value)| (name, value.raw()));
    let viewer = case.model.viewer(case.seen.call?)?;
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    Some(hasher.hash_one((viewer, call.conn, call.method, asked.collect::<Vec<_>>())))
}

fn again(case: &Case<'_>, out: &mut Out<'_>, key: u64, fetch: &mut Fetch) {
    let age = case.seen.at.ns_since(fetch.read);
    if age >= fetch.ttl_ns {
        return;
    }
    let subject = case.subject();
    let (age, ttl) = (Span(age), Span(fetch.ttl_ns));
    out.draft(case).and_call(case.model, fetch.call).gather(out, key, |times| {
        let often = count(times, "time");
        format!("{subject} fetches what is still fresh ({often}): last read {age} before, good for {ttl}")
    });
}

fn polls(case: &Case<'_>, out: &mut Out<'_>, key: u64, fetch: &mut Fetch) {
    let is_close = |ns: u64| ns.abs_diff(fetch.ttl_ns) <= fetch.ttl_ns / CLOSE;
    let is_round =
        is_close(case.seen.at.ns_since(fetch.read)) || is_close(case.seen.at.ns_since(fetch.asked));
    fetch.rounds = if is_round { fetch.rounds + 1 } else { 0 };
    let (rounds, ttl) = (fetch.rounds, Span(fetch.ttl_ns));
    if rounds < ROUNDS {
        return;
    }
    let subject = case.subject();
    out.draft(case).and_call(case.model, fetch.call).gather(out, key, |_| {
        format!("{subject} is fetched every {ttl}, as soon as it is stale, {rounds} times in a row")
    });
}

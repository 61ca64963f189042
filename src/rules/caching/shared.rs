//! What is called public is the same for everybody (CCH-05).

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use super::{CACHED, complete, ttl_ns};
use crate::model::CallIdx;
use crate::rules::Severity;
use crate::rules::book::{Book, Look, On};
use crate::rules::case::Case;
use crate::rules::findings::Out;
use crate::time::{Mono, Span};
use crate::wire::jsonrpc::Kind;

/// Requests whose answers are remembered; of more, all are forgotten. ours.
const REQUESTS: usize = 512;

/// Callers whose answers to one request are remembered. ours.
const CALLERS: usize = 4;

/// Members of a result that may differ although it tells the same.
const ASIDE: [&str; 3] = ["_meta", "ttlMs", "nextCursor"];

pub(super) fn rules(book: &mut Book) {
    let changes = super::stale::CHANGES.map(On::NotificationOf);
    book.rule("CCH-05", &[&CACHED.map(On::ResultOf)[..], &changes].concat(), Public::default());
}

/// Public answers that still hold, by path, method and parameters.
#[derive(Default)]
struct Public {
    answers: HashMap<u64, Vec<Answer>>,
}

#[derive(Clone, Copy)]
struct Answer {
    /// Stands for the authorisation that asked.
    caller: u64,
    content: u64,
    call: CallIdx,
    /// When this caller was first told this.
    since: Mono,
    until: Mono,
}

impl Look for Public {
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        if case.message().is_some_and(|message| message.kind == Kind::Notification) {
            // Something has changed: nothing that was told before counts.
            self.answers.clear();
        } else if let Some((key, answer)) = answer(case) {
            if self.answers.len() >= REQUESTS {
                self.answers.clear();
            }
            compare(case, out, self.answers.entry(key).or_default(), answer);
        }
    }
}

fn compare(case: &Case<'_>, out: &mut Out<'_>, known: &mut Vec<Answer>, mut now: Answer) {
    let mine = known.iter().position(|answer| answer.caller == now.caller);
    let before = mine.map(|at| known.swap_remove(at)).filter(|before| before.content == now.content);
    now.since = before.map_or(now.since, |before| before.since);
    let at = case.seen.at;
    let differs = |answer: &&Answer| answer.content != now.content && at < answer.until;
    if let Some(other) = known.iter().find(differs).copied() {
        // This caller is told the same as before the other one was: it is not the list that changed.
        let is_certain = before.is_some_and(|before| before.since < other.since);
        let level = if is_certain { Severity::Warning } else { Severity::Hint };
        let (subject, then) = (case.subject(), case.name(other.call));
        let ago = Span(at.ns_since(other.since));
        let draft = out.draft(case).at_most(level).and_call(case.model, other.call);
        draft.say(
            out,
            format!("{subject} is public, and another caller was told something else {ago} before: {then}"),
        );
    }
    if known.len() >= CALLERS {
        known.remove(0);
    }
    known.push(now);
}

/// The case as a public answer, and what was asked.
fn answer(case: &Case<'_>) -> Option<(u64, Answer)> {
    let result =
        complete(case).filter(|result| result.get("cacheScope").is_some_and(|s| s.is_text("public")))?;
    let ttl = ttl_ns(result).filter(|ttl| *ttl > 0)?;
    let exchange = case.exchange()?;
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    let params = case.request_params();
    let asked: Vec<_> = params.map(|params| params.members().collect()).unwrap_or_default();
    let asked = asked.iter().filter(|(name, _)| name != "_meta").map(|(name, value)| (name, value.raw()));
    let path = exchange.head().map(|head| head.path.as_str());
    let key = hasher.hash_one((path, case.method(), asked.collect::<Vec<_>>()));
    let told: Vec<_> = result.members().filter(|(name, _)| !ASIDE.contains(&&**name)).collect();
    let told: Vec<_> = told.iter().map(|(name, value)| (name, value.raw())).collect();
    let answer = Answer {
        caller: hasher.hash_one(exchange.headers().get("authorization")),
        content: hasher.hash_one(told),
        call: case.seen.call?,
        since: case.seen.at,
        until: Mono(case.seen.at.0.saturating_add(ttl)),
    };
    Some((key, answer))
}

//! Authorization (AUT-01..06). What a token says is never looked at, and never told.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::model::{Exchange, Name, ScopeIdx, Sight};
use crate::rules::Blame;
use crate::rules::book::{Book, Look, On, SightKind};
use crate::rules::case::{Case, count, short};
use crate::rules::findings::{Draft, Out};
use crate::spec::meta;
use crate::time::Mono;

/// Tokens and clients that are remembered. ours: more are no longer told apart.
const LIMIT: usize = 1024;

/// Challenges for one target before they are too many (AUT-05).
const CHALLENGES: u32 = 3;

/// Two tokens that were first used this close together were fetched side by side (AUT-06). ours.
const TOGETHER_NS: u64 = 5_000_000_000;

pub(super) fn rules(book: &mut Book) {
    let (request, head) = (On::Sight(SightKind::HttpRequest), On::Sight(SightKind::HttpHead));
    book.rule("AUT-01", &[request, On::Request, On::Notification], InQuery::default());
    book.rule("AUT-02", &[head, request, On::Request, On::Notification], Omitted::default());
    book.rule("AUT-03", &[head], challenge_without_metadata);
    book.rule("AUT-04", &[head], refusal_without_scope);
    book.rule("AUT-05", &[head], StepUp::default());
    book.rule("AUT-06", &[head], Raced::default());
}

/// The bearer token of a request, as a hash.
fn token(exchange: &Exchange) -> Option<u64> {
    let (scheme, token) = exchange.headers().get("authorization")?.trim().split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| hash(token.trim()))
}

fn hash(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// A token in a query is seen by every log on the way.
#[derive(Default)]
struct InQuery {
    tokens: HashSet<u64>,
    told: Option<u64>,
}

impl Look for InQuery {
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        let Some(exchange) = case.exchange() else { return };
        if let Some(token) = token(exchange).filter(|_| self.tokens.len() < LIMIT) {
            self.tokens.insert(token);
        }
        let Some((path, query)) = exchange.head().and_then(|head| head.path.split_once('?')) else { return };
        let is_token = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            name == "access_token" || self.tokens.contains(&hash(value))
        };
        if !query.split('&').any(is_token) || self.told == case.seen.stream {
            return;
        }
        self.told = case.seen.stream;
        let (method, path) = (short(exchange.method()), short(path));
        let draft = out.draft(case).blame(Blame::Client).and_event(case.event_number());
        draft.gather(out, (case.seen.scope, &path), |times| {
            format!("{} to {path} with an access token in the query", count(times, &method))
        });
    }
}

/// Clients whose tokens were accepted, and where.
#[derive(Default)]
struct Omitted(HashSet<u64>);

impl Look for Omitted {
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        let Some(exchange) = case.exchange() else { return };
        let Some(head) = exchange.head() else { return };
        // Requests with messages are looked at when those are read.
        if matches!(case.what(), Sight::HttpRequest) && exchange.method() == "POST" {
            return;
        }
        let Some(client) = client(case) else { return };
        let client = hash((client, head.path.split('?').next()));
        if matches!(case.what(), Sight::HttpHead) {
            let is_accepted = exchange.status().is_some_and(|status| (200..300).contains(&status));
            if is_accepted && token(exchange).is_some() && self.0.len() < LIMIT {
                self.0.insert(client);
            }
        } else if exchange.headers().get("authorization").is_none() && self.0.contains(&client) {
            let subject = match case.seen.call {
                Some(idx) => case.name(idx),
                None if case.method().is_empty() => exchange.method().to_owned(),
                None => short(case.method()),
            };
            let draft = out.draft(case).blame(Blame::Client).and_event(case.event_number());
            draft.gather(out, client, |times| {
                let requests = count(times, "request");
                format!("{requests} without Authorization after others had it; the last: {subject}")
            });
        }
    }
}

/// Who asks: by session, by connection, or (where a recording names none) by what it calls itself.
fn client(case: &Case<'_>) -> Option<u64> {
    match (case.seen.scope, case.seen.conn) {
        (ScopeIdx(0), Some(conn)) => Some(hash(("connection", conn))),
        (ScopeIdx(0), None) => {
            let params = case.params().or_else(|| case.request_params())?;
            Some(hash(params.at(&["_meta", meta::CLIENT_INFO])?.raw()))
        }
        (session, _) => Some(hash(session)),
    }
}

/// The parameters of the challenges of an answer.
fn challenges(exchange: &Exchange) -> impl Iterator<Item = &str> {
    exchange.answer_headers().into_iter().flat_map(|fields| fields.all("www-authenticate"))
}

/// Other servers refuse in their own ways: only what answers a request of ours is judged.
fn refused<'a>(case: &Case<'a>, status: u16) -> Option<&'a Exchange> {
    case.exchange().filter(|exchange| exchange.status() == Some(status) && !exchange.calls().is_empty())
}

fn challenge_without_metadata(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(exchange) = refused(case, 401) else { return };
    if !challenges(exchange).any(|challenge| challenge.contains("resource_metadata")) {
        out.gather(case, case.seen.scope, |times| {
            format!("{} with status 401 and no resource_metadata in WWW-Authenticate", count(times, "answer"))
        });
    }
}

fn is_about_scope(exchange: &Exchange) -> bool {
    challenges(exchange).any(|challenge| challenge.contains("insufficient_scope"))
}

/// A request from a page may be refused for its origin.
fn refusal_without_scope(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(exchange) = refused(case, 403) else { return };
    let has_origin = exchange.headers().get("origin").is_some();
    if token(exchange).is_some() && !has_origin && !is_about_scope(exchange) {
        out.gather(case, case.seen.scope, |times| {
            format!(
                "{} with status 403 and no insufficient_scope in WWW-Authenticate",
                count(times, "answer")
            )
        });
    }
}

/// How often each target was refused for its scope.
#[derive(Default)]
struct StepUp(HashMap<(ScopeIdx, Name, Option<Name>), u32>);

impl Look for StepUp {
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        let (Some(call), Some(exchange)) = (case.call(), refused(case, 403)) else { return };
        let target = (call.scope, call.method, call.target);
        if !is_about_scope(exchange) || (self.0.len() >= LIMIT && !self.0.contains_key(&target)) {
            return;
        }
        let times = self.0.entry(target).or_default();
        *times = times.saturating_add(1);
        let times = *times;
        if times > CHALLENGES {
            let subject = case.subject();
            out.draft(case).blame(Blame::Client).gather(out, target, |_| {
                format!("{subject} is attempt {times} that was refused for its scope")
            });
        }
    }
}

/// Two requests without a token are challenged side by side, each fetches its own, and the later one
/// ends the earlier one.
#[derive(Default)]
struct Raced {
    /// The end of the latest challenge, and whether another one ran beside it.
    challenged: Option<Mono>,
    are_two: bool,
    tokens: HashMap<u64, Use>,
}

/// How a token fared.
struct Use {
    first: Mono,
    fate: Fate,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Open,
    Accepted,
    /// Refused by the event of this number.
    Refused(u64),
    Told,
}

impl Look for Raced {
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        let Some(exchange) = case.exchange() else { return };
        let (Some(status), Some(started)) = (exchange.status(), exchange.started()) else { return };
        let Some(token) = token(exchange) else {
            if status == 401 && exchange.headers().get("authorization").is_none() {
                self.are_two |= self.challenged.is_some_and(|before| started < before);
                self.challenged = Some(case.seen.at);
            }
            return;
        };
        if !self.are_two || (self.tokens.len() >= LIMIT && !self.tokens.contains_key(&token)) {
            return;
        }
        let usage = self.tokens.entry(token).or_insert(Use { first: started, fate: Fate::Open });
        usage.fate = match (usage.fate, status) {
            (Fate::Open, 401) => Fate::Refused(case.event_number()),
            (Fate::Open, 200..=299) => Fate::Accepted,
            (fate, _) => fate,
        };
        if matches!(usage.fate, Fate::Accepted | Fate::Refused(_)) {
            self.tell(case, out, token);
        }
    }
}

impl Raced {
    /// Tells a token that was refused at its first use beside one that was accepted.
    fn tell(&mut self, case: &Case<'_>, out: &mut Out<'_>, token: u64) {
        let Some(Use { first, fate }) = self.tokens.get(&token) else { return };
        let (first, fate) = (*first, *fate);
        let is_together =
            |other: &Use| other.first.ns_since(first).max(first.ns_since(other.first)) <= TOGETHER_NS;
        let other = self.tokens.iter_mut().find(|(other, usage)| {
            let is_pair = match fate {
                Fate::Accepted => matches!(usage.fate, Fate::Refused(_)),
                _ => usage.fate == Fate::Accepted,
            };
            **other != token && is_pair && is_together(usage)
        });
        let Some((_, other)) = other else { return };
        let proof = [fate, other.fate].into_iter().find_map(|fate| match fate {
            Fate::Refused(event) => Some(event),
            _ => None,
        });
        other.fate = Fate::Told;
        let draft = out.draft(case).blame(Blame::Client);
        let draft = proof.into_iter().fold(draft, Draft::and_event);
        draft.say(
            out,
            "two requests were challenged side by side, and of the two tokens that came back one was refused",
        );
    }
}

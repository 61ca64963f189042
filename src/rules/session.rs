//! Sessions, GET streams and resume of the legacy eras (LEG-01..21): here the session id and the
//! version header; `streams`, `resume`, `endpoint` and `questions` have the rest.

mod endpoint;
mod questions;
mod resume;
mod streams;

use std::collections::{HashMap, HashSet};

use crate::model::{CallIdx, ScopeIdx, Sight};
use crate::rules::book::{Book, On, SightKind};
use crate::rules::case::{Case, short};
use crate::rules::findings::Out;
use crate::rules::{Blame, Severity};
use crate::spec::era::Era;
use crate::spec::headers::{PROTOCOL_VERSION, SESSION_ID};
use crate::time::Mono;

/// Connections whose session is remembered. ours.
const CONNECTIONS_LIMIT: usize = 10_000;

pub(super) fn rules(book: &mut Book) {
    let request = On::Sight(SightKind::HttpRequest);
    let head = On::Sight(SightKind::HttpHead);
    book.rule_of_any_era("LEG-01", &[head, request], session_left_out());
    book.rule("LEG-02", &[head], visible_ascii);
    book.rule("LEG-03", &[request, head], dead_session_used());
    book.rule("LEG-04", &[head], dead_session_served());
    book.rule("LEG-05", &[On::RequestOf("initialize"), request], version_header());
    book.rule("LEG-06", &[head], version_that_is_none);
    streams::rules(book);
    resume::rules(book);
    endpoint::rules(book);
    questions::rules(book);
}

/// The session id of the exchange's request.
fn session<'a>(case: &Case<'a>) -> Option<&'a str> {
    case.exchange()?.headers().get(SESSION_ID)
}

/// The path of a request without its query.
fn path(target: &str) -> &str {
    target.split('?').next().unwrap_or_default()
}

/// The requests in the exchange's body.
fn calls<'a>(case: &Case<'a>) -> &'a [CallIdx] {
    case.exchange().map_or(&[], |exchange| exchange.calls())
}

fn is_initialize(case: &Case<'_>) -> bool {
    let call = calls(case).first().and_then(|idx| case.model.call(*idx));
    call.is_some_and(|call| case.model.text(call.method) == "initialize")
}

/// Who sends on a connection was given a session, and where.
struct Given {
    path: String,
    session: String,
    at: Mono,
}

/// A client that was given a session leaves its id out. Clients are told apart by connection, or by
/// `Authorization`; without either nothing is said.
fn session_left_out() -> impl FnMut(&Case<'_>, &mut Out<'_>) + Send {
    let mut given: HashMap<(Option<u64>, Option<u64>), Given> = HashMap::new();
    move |case, out| {
        let Some(exchange) = case.exchange() else { return };
        let authorization = case.seen.stream.and_then(|stream| case.model.authorization_of(stream));
        let client = match authorization {
            Some(_) => (authorization, None),
            None => (None, case.seen.conn),
        };
        if client == (None, None) {
            return;
        }
        let target = exchange.head().map_or("", |head| path(&head.path));
        if matches!(case.what(), Sight::HttpHead) {
            let minted = exchange.answer_headers().and_then(|headers| headers.get(SESSION_ID));
            if let Some(minted) = minted.filter(|_| is_initialize(case)) {
                if given.len() >= CONNECTIONS_LIMIT {
                    given.clear();
                }
                given.insert(
                    client,
                    Given { path: target.to_owned(), session: minted.to_owned(), at: case.seen.at },
                );
            }
            let is_ended = exchange.method() == "DELETE" || exchange.status() == Some(404);
            if is_ended && given.get(&client).is_some_and(|known| session(case) == Some(&known.session)) {
                given.remove(&client);
            }
            return;
        }
        let is_modern = exchange.era().is_some_and(Era::is_modern);
        if session(case).is_some() || is_modern || is_initialize(case) {
            return;
        }
        let Some(known) = given.get(&client).filter(|known| known.path == target && known.at < case.seen.at)
        else {
            return;
        };
        // A modern request stands alone; what a body without a version header is, is not known.
        let is_message = exchange.method() == "GET" || !calls(case).is_empty();
        let is_legacy = calls(case)
            .iter()
            .all(|idx| case.model.call(*idx).is_some_and(|call| !call.era.is_some_and(Era::is_modern)));
        if is_message && is_legacy {
            let what = exchange.method();
            let id = short(&known.session);
            let draft =
                calls(case).iter().fold(out.draft(case), |draft, idx| draft.and_call(case.model, *idx));
            draft.blame(Blame::Client).gather(out, &id, |times| match times {
                1 => format!("a {what} came without the session id {id}, which its client had been given"),
                _ => format!(
                    "{times} requests came without the session id {id}, which their client had been given"
                ),
            });
        }
    }
}

fn visible_ascii(case: &Case<'_>, out: &mut Out<'_>) {
    let minted = case
        .exchange()
        .and_then(|exchange| exchange.answer_headers())
        .and_then(|headers| headers.get(SESSION_ID));
    if minted.is_some_and(|id| id.is_empty() || !id.bytes().all(|byte| (0x21..=0x7e).contains(&byte))) {
        out.say(case, "the session id holds characters that are not visible ASCII");
    }
}

/// What is known of a session that an answer has declared dead.
#[derive(Default)]
struct Dead {
    /// When the first answer said so.
    since: Mono,
    /// It was served again later: it was never dead, only unknown to some of the servers.
    flaps: bool,
}

/// A dead session goes on being used. Whether its server really has lost it shows when a later request
/// is answered; LEG-04 turns the finding into its own when it has not.
fn dead_session_used() -> impl FnMut(&Case<'_>, &mut Out<'_>) + Send {
    let mut dead: HashMap<ScopeIdx, Dead> = HashMap::new();
    move |case, out| {
        let (Some(exchange), Some(id)) = (case.exchange(), session(case)) else { return };
        let scope = case.seen.scope;
        let window_ns = case.window_ns();
        if matches!(case.what(), Sight::HttpRequest) {
            let is_dead = dead.get(&scope).is_some_and(|dead| case.seen.at.ns_since(dead.since) > window_ns);
            if is_dead && is_initialize(case) {
                let sentence = format!("initialize carries the session id {}, which is dead", short(id));
                with_calls(case, out).blame(Blame::Client).say(out, sentence);
            }
            return;
        }
        let started = exchange.started().unwrap_or(case.seen.at);
        match exchange.status() {
            Some(404) if is_initialize(case) => {}
            Some(404) => {
                let entry = dead.entry(scope).or_insert_with(|| Dead { since: case.seen.at, flaps: false });
                if !entry.flaps && started.ns_since(entry.since) > window_ns {
                    let id = short(id);
                    with_calls(case, out).blame(Blame::Client).gather(out, scope, |times| match times {
                        1 => format!("the session {id} was used again after it had been answered with 404"),
                        _ => format!(
                            "the session {id} was used {times} times after it had been answered with 404"
                        ),
                    });
                }
            }
            Some(200..=299) if exchange.method() != "DELETE" => {
                if let Some(dead) = dead.get_mut(&scope).filter(|dead| started > dead.since) {
                    dead.flaps = true;
                }
            }
            _ => {}
        }
    }
}

/// The finding begun about all requests of the exchange.
fn with_calls(case: &Case<'_>, out: &Out<'_>) -> crate::rules::findings::Draft {
    calls(case).iter().fold(out.draft(case), |draft, idx| draft.and_call(case.model, *idx))
}

/// When a session was ended, and the requests that were told so.
struct Ended {
    at: Mono,
    by_delete: bool,
    refused: Vec<CallIdx>,
}

/// A session that was answered with 404, or deleted, is served again.
fn dead_session_served() -> impl FnMut(&Case<'_>, &mut Out<'_>) + Send {
    let mut ended: HashMap<ScopeIdx, Ended> = HashMap::new();
    let mut served: HashSet<ScopeIdx> = HashSet::new();
    move |case, out| {
        let (Some(exchange), Some(id)) = (case.exchange(), session(case)) else { return };
        let scope = case.seen.scope;
        let is_delete = exchange.method() == "DELETE";
        let started = exchange.started().unwrap_or(case.seen.at);
        let id = short(id);
        let sentence = |times: u32| match times {
            1 => format!("the session {id} was served again after it had ended"),
            _ => format!("the session {id} is found and not found by turns"),
        };
        match exchange.status() {
            Some(404) if !is_initialize(case) => {
                if served.contains(&scope) {
                    with_calls(case, out).blame(Blame::Server).gather(out, scope, sentence);
                    return;
                }
                let entry = ended.entry(scope).or_insert_with(|| Ended {
                    at: case.seen.at,
                    by_delete: false,
                    refused: Vec::new(),
                });
                entry.refused.extend(calls(case));
            }
            Some(200..=299) if is_delete => {
                let fresh = || Ended { at: case.seen.at, by_delete: true, refused: Vec::new() };
                ended.entry(scope).or_insert_with(fresh);
            }
            Some(200..=299) if exchange.calls().is_empty() && exchange.method() == "POST" => {}
            Some(200..=299) => {
                let Some(known) = ended.get(&scope).filter(|known| started > known.at) else { return };
                if !served.insert(scope) {
                    return;
                }
                // Those that were refused are the ones in trouble; after a DELETE the one served is.
                let mine = if known.by_delete { calls(case) } else { known.refused.as_slice() };
                let draft = mine
                    .iter()
                    .fold(out.draft(case).about_nothing(), |draft, idx| draft.and_call(case.model, *idx));
                let blamed = known.refused.iter().find_map(|idx| out.findings.about("LEG-03", *idx));
                if let Some(at) = blamed.or_else(|| out.findings.within("LEG-03", scope)) {
                    out.findings.turn(at, out.entry, Blame::Server, sentence(2));
                }
                draft.blame(Blame::Server).gather(out, scope, sentence);
            }
            _ => {}
        }
    }
}

/// The session's version stands in every request after its handshake (from 2025-06-18 on).
fn version_header() -> impl FnMut(&Case<'_>, &mut Out<'_>) + Send {
    let mut settled: HashMap<ScopeIdx, CallIdx> = HashMap::new();
    move |case, out| match case.what() {
        Sight::Message => settled.extend(case.seen.call.map(|call| (case.seen.scope, call))),
        _ => version_disagrees(case, out, settled.get(&case.seen.scope).copied()),
    }
}

fn version_disagrees(case: &Case<'_>, out: &mut Out<'_>, settled: Option<CallIdx>) {
    let Some(exchange) = case.exchange().filter(|exchange| exchange.head().is_some()) else { return };
    let scope = case.scope().filter(|_| case.seen.scope != ScopeIdx(0));
    let Some(agreed) = scope.and_then(|scope| scope.negotiated) else { return };
    if is_initialize(case) || session(case).is_none() {
        return;
    }
    let (sentence, severity) = match exchange.headers().get(PROTOCOL_VERSION) {
        None => {
            (format!("requests of a {} session lack MCP-Protocol-Version", agreed.as_str()), Severity::Error)
        }
        Some(version) if version == agreed.as_str() => return,
        Some(version) => (
            format!("requests say MCP-Protocol-Version {}; {} was agreed", short(version), agreed.as_str()),
            Severity::Warning,
        ),
    };
    let draft = settled.into_iter().fold(with_calls(case, out), |draft, idx| draft.and_call(case.model, idx));
    draft
        .blame(Blame::Client)
        .at_most(severity)
        .gather(out, (case.seen.scope, &sentence), |_| sentence.clone());
}

/// A version that is no date at all was accepted.
fn version_that_is_none(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(exchange) = case.exchange() else { return };
    let Some(version) = exchange.headers().get(PROTOCOL_VERSION) else { return };
    let is_date = version.len() == 10
        && version
            .bytes()
            .enumerate()
            .all(|(at, byte)| if at == 4 || at == 7 { byte == b'-' } else { byte.is_ascii_digit() });
    if !is_date && matches!(exchange.status(), Some(200..=299)) {
        let sentence = format!("a request with MCP-Protocol-Version {} was served", short(version));
        out.gather(case, (case.seen.scope, version), |_| sentence.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_ends_at_its_query() {
        assert_eq!(path("/mcp?x=1"), "/mcp");
        assert_eq!(path(""), "");
    }
}

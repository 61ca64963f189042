//! Heads of answers: statuses, types and fields (HTTP-14, HTTP-15, HTTP-17, HTTP-19, HTTP-21, HTTP-23).

use super::{Endpoints, may_be_http_sse};
use crate::event::Headers;
use crate::model::{CallState, Exchange, Name, Sight};
use crate::rules::book::{Book, Look, On, SightKind};
use crate::rules::case::{Case, count, short};
use crate::rules::findings::Out;
use crate::rules::{Blame, Severity};
use crate::spec::{codes, headers};

pub(super) fn rules(book: &mut Book) {
    let head = On::Sight(SightKind::HttpHead);
    book.rule("HTTP-14", &[On::Error], unknown_method);
    book.rule("HTTP-15", &[On::Sight(SightKind::ExchangeEnd)], bare_not_found);
    book.rule("HTTP-17", &[head, On::Sight(SightKind::StreamEnded)], request_answer);
    book.rule("HTTP-19", &[On::Request, head], NotAllowed::default());
    book.rule("HTTP-21", &[head], mints_session);
    book.rule("HTTP-23", &[head], foreign_origin);
}

fn unknown_method(case: &Case<'_>, out: &mut Out<'_>) {
    let code = case.error().and_then(|error| error.get("code")?.integer());
    let Some(exchange) = case.exchange().filter(|_| code == Some(codes::METHOD_NOT_FOUND)) else { return };
    let Some(status) = exchange.status().filter(|status| *status != 404) else { return };
    // The head of a stream may have been written before the method was looked at.
    let severity = if exchange.is_event_stream() { Severity::Warning } else { Severity::Error };
    let sentence = format!("{} got the error -32601 under status {status}", case.subject());
    out.draft(case).at_most(severity).say(out, sentence);
}

fn bare_not_found(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(call) = case.call().filter(|call| call.error_code.is_none()) else { return };
    let is_whole = case.row().is_some() && call.state == CallState::AnsweredError;
    if is_whole && case.exchange().and_then(Exchange::status) == Some(404) {
        let subject = case.subject();
        out.draft(case).blame(Blame::Server).gather(out, case.seen.scope, |times| {
            format!("{} with status 404 and no message; the last to {subject}", count(times, "answer"))
        });
    }
}

/// The answer to a request is a message or a stream of them.
fn request_answer(case: &Case<'_>, out: &mut Out<'_>) {
    let (Some(exchange), Some(idx)) = (case.exchange(), case.seen.call) else { return };
    let status = exchange.status().unwrap_or(0);
    let is_first = exchange.calls().first() == Some(&idx);
    if !(200..300).contains(&status) || !is_first || may_be_http_sse(case) {
        return;
    }
    let subject = case.subject();
    let declared = exchange.answer_headers().and_then(|fields| fields.get("content-type"));
    let is_one_of_both = |declared: &str| {
        [headers::JSON, headers::EVENT_STREAM].iter().any(|known| headers::is_media_type(declared, known))
    };
    let sentence = match case.what() {
        Sight::HttpHead if matches!(status, 202 | 204) => {
            format!("{subject} was answered with status {status}, which is for notifications")
        }
        // What has no type may have no body: that is told at its end.
        Sight::HttpHead => match declared {
            Some(declared) if !is_one_of_both(declared) => {
                format!("{subject} was answered with {}", short(declared))
            }
            _ => return,
        },
        _ if exchange.is_event_stream() || out.findings.about("HTTP-17", idx).is_some() => return,
        _ if exchange.answer_bytes() == 0 => {
            format!("{subject} was answered with status {status} and no body")
        }
        _ if declared.is_none() => format!("{subject} was answered without a Content-Type"),
        _ => return,
    };
    out.draft(case).blame(Blame::Server).say(out, sentence);
}

/// What a server without GET and DELETE says to them.
#[derive(Default)]
struct NotAllowed(Endpoints);

impl Look for NotAllowed {
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        let Some(exchange) = self.0.asked(case) else { return };
        let method = exchange.method();
        if !matches!(method, "GET" | "DELETE") || !self.0.has(exchange) {
            return;
        }
        // A server of both eras serves them; an intermediary refuses for reasons of its own.
        let is_dual = || case.model.scopes().iter().any(|scope| scope.negotiated.is_some());
        let Some(status) = exchange.status().filter(|status| !matches!(status, 401 | 403 | 405 | 429)) else {
            return;
        };
        if status < 500 && !is_dual() {
            out.gather(case, (case.seen.scope, method, status), |times| {
                format!("{} answered with status {status}, not 405", count(times, method))
            });
        }
    }
}

fn mints_session(case: &Case<'_>, out: &mut Out<'_>) {
    let is_modern_call = case.call().is_some_and(|call| call.method != Name::INITIALIZE);
    let fields = case.exchange().filter(|_| is_modern_call).and_then(Exchange::answer_headers);
    if fields.is_some_and(|fields| fields.get(headers::SESSION_ID).is_some()) {
        out.gather(case, case.seen.scope, |times| format!("{} with Mcp-Session-Id", count(times, "answer")));
    }
}

/// Which origins a server allows is not known; a page of another host on a local one is suspicious.
fn foreign_origin(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(exchange) = case.exchange() else { return };
    let Some((origin, host)) = foreign_host(exchange.headers()) else { return };
    if exchange.status().is_some_and(|status| (200..300).contains(&status)) {
        let (origin, host) = (short(origin), short(host));
        out.gather(case, (case.seen.scope, &origin), |times| {
            format!("{} from a page of {origin} served at {host}", count(times, "request"))
        });
    }
}

/// Host of the origin and host asked for, where a page of elsewhere asks a local server.
fn foreign_host(fields: &Headers) -> Option<(&str, &str)> {
    let (_, origin) = fields.get("origin")?.trim().split_once("://")?;
    let host = fields.get("host")?.trim();
    (is_loopback(host) && !is_loopback(origin) && origin != host).then_some((origin, host))
}

/// A host, with or without its port, that is this machine.
fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let name = name.to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost") || name == "::1" || name.starts_with("127.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_of_this_machine_is_known() {
        let cases = [
            ("localhost:3000", true),
            ("app.localhost", true),
            ("127.0.0.1", true),
            ("127.8.0.1:1", true),
            ("[::1]:8080", true),
            ("LOCALHOST", true),
            ("evil.example", false),
            ("localhost.evil.example", false),
            ("128.0.0.1", false),
            ("", false),
        ];
        for (host, expected) in cases {
            assert_eq!(is_loopback(host), expected, "{host}");
        }
    }
}

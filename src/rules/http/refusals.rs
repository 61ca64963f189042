//! Requests that are refused for their headers, or ought to be (HTTP-10..13, HTTP-29, HTTP-31).

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::mirror::{agrees, encodable, param};
use super::{params, posted};
use crate::model::{CallIdx, CallState, Exchange, Name, Sight};
use crate::rules::Blame;
use crate::rules::Severity;
use crate::rules::book::{Book, Look, On, SightKind};
use crate::rules::case::{Case, count};
use crate::rules::findings::Out;
use crate::spec::era::Era;
use crate::spec::{codes, headers, meta};
use crate::wire::json::Value;

/// Refused calls that are remembered (HTTP-29). ours: a client retries at once or not at all.
const REFUSED_LIMIT: usize = 64;

/// What is wrong with the mirrored fields of a request.
const MIRROR_RULES: [&str; 5] = ["HTTP-03", "HTTP-04", "HTTP-05", "HTTP-06", "HTTP-07"];

/// Errors that a server may find first, or give instead, where the pages of the specification
/// disagree.
const OTHER_REASONS: [i64; 6] = [
    codes::HEADER_MISMATCH,
    codes::MISSING_REQUIRED_CLIENT_CAPABILITY,
    codes::UNSUPPORTED_PROTOCOL_VERSION,
    codes::METHOD_NOT_FOUND,
    codes::INVALID_PARAMS,
    codes::PARSE_ERROR,
];

/// Statuses that refuse for another reason than the headers, before they are compared.
const OTHER_STATUSES: [u16; 9] = [401, 403, 404, 405, 406, 413, 415, 421, 429];

pub(super) fn rules(book: &mut Book) {
    book.rule("HTTP-10", &[On::Result], served);
    book.rule("HTTP-11", &[On::Error, On::Sight(SightKind::Answered)], refused_otherwise);
    book.rule("HTTP-12", &[On::Error], mismatch_status);
    book.rule("HTTP-13", &[On::Error], mismatch_of_nothing);
    let (list, call) = (On::RequestOf("tools/list"), On::RequestOf("tools/call"));
    book.rule("HTTP-29", &[On::ErrorOf("tools/call"), list, call], Resent::default());
    book.rule("HTTP-31", &[On::Error, On::RequestOf("initialize")], Fallback::default());
}

/// What was found about the mirrored fields of this call's request.
fn broken(case: &Case<'_>, out: &Out<'_>) -> Option<usize> {
    let call = case.seen.call?;
    let exchange = case.exchange()?;
    let found = out.findings.about_any(&MIRROR_RULES, call);
    found.or_else(|| {
        // A server need not know the parameter of a field that is damaged.
        let name = exchange.headers().get(headers::NAME)?;
        headers::decode(name.trim()).is_err().then(|| out.findings.about("HTTP-08", call))?
    })
}

fn code(case: &Case<'_>) -> Option<i64> {
    case.error()?.get("code")?.integer()
}

fn served(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(fault) = broken(case, out) else { return };
    let subject = case.subject();
    out.draft(case).because(Some(fault)).gather(out, case.seen.scope, |times| {
        let requests = count(times, "request");
        format!("{requests} whose header fields do not mirror the body got a result; the last: {subject}")
    });
}

fn refused_otherwise(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(status) = case.exchange().and_then(Exchange::status) else { return };
    if OTHER_STATUSES.contains(&status) || status >= 500 {
        return;
    }
    let code = match case.what() {
        Sight::Message => code(case),
        // Only an answer that holds no message.
        _ => match case.call() {
            Some(call) if call.state == CallState::AnsweredError && call.error_code.is_none() => None,
            _ => return,
        },
    };
    if code.is_some_and(|code| OTHER_REASONS.contains(&code)) {
        return;
    }
    let Some(fault) = broken(case, out) else { return };
    let (draft, how) = if let Some(code) = code {
        (out.draft(case), format!("{status} and code {code}"))
    } else {
        // An intermediary may have refused it.
        let draft = out.draft(case).at_most(Severity::Hint).blame(Blame::Unknown);
        (draft, format!("{status} and no message"))
    };
    let subject = case.subject();
    draft.because(Some(fault)).gather(out, (case.seen.scope, status, code), |times| {
        let requests = count(times, "request");
        format!("{requests} refused for header fields with status {how}; the last: {subject}")
    });
}

fn mismatch_status(case: &Case<'_>, out: &mut Out<'_>) {
    let status = case.exchange().and_then(Exchange::status);
    if let Some(status) = status.filter(|status| *status != 400 && code(case) == Some(codes::HEADER_MISMATCH))
    {
        out.say(case, format!("{} got the error -32020 under status {status}", case.subject()));
    }
}

/// A server may want header fields of a tool's parameters: its definition must be known.
fn mismatch_of_nothing(case: &Case<'_>, out: &mut Out<'_>) {
    let (Some(exchange), Some(request)) = (case.exchange(), case.request()) else { return };
    if code(case) != Some(codes::HEADER_MISMATCH) || exchange.head().is_none() || request.position() != 0 {
        return;
    }
    let is_settled = match case.method() {
        "tools/call" => params::agree(case) == Some(true),
        _ => !encodable(exchange).any(|(name, _)| param(name).is_some()),
    };
    if is_settled && agrees(exchange, request) {
        out.say(
            case,
            format!("{} got the error -32020, and its header fields mirror the body", case.subject()),
        );
    }
}

/// Calls that were refused for header fields of parameters, as they were sent.
#[derive(Default)]
struct Resent(HashMap<(u64, Option<Name>), (u64, CallIdx)>);

impl Look for Resent {
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        let (Some(exchange), Some(idx)) = (case.exchange(), case.seen.call) else { return };
        let (Some(request), Some(call)) = (case.request(), case.call()) else { return };
        let client = client_of(exchange, request);
        if code(case).is_some() {
            let is_about_params = code(case) == Some(codes::HEADER_MISMATCH) && agrees(exchange, request);
            if is_about_params && self.0.len() < REFUSED_LIMIT {
                self.0.insert((client, call.target), (fields_of(exchange), idx));
            }
        } else if case.method() == "tools/list" {
            self.0.retain(|(of, _), _| *of != client);
        } else if let Some((fields, refused)) = self.0.remove(&(client, call.target))
            && posted(case).is_some()
            && fields == fields_of(exchange)
        {
            let sentence = format!(
                "{} repeats {}, which was refused with -32020, with the same header fields and no tools/list before",
                case.subject(),
                case.name(refused)
            );
            out.draft(case).and_call(case.model, refused).say(out, sentence);
        }
    }
}

/// Who asks, as far as requests tell.
fn client_of(exchange: &Exchange, request: Value<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    exchange.headers().get("authorization").hash(&mut hasher);
    request.at(&["params", "_meta", meta::CLIENT_INFO]).map(Value::raw).hash(&mut hasher);
    hasher.finish()
}

/// The fields that mirror parameters, in any order.
fn fields_of(exchange: &Exchange) -> u64 {
    encodable(exchange).fold(0, |sum, (name, value)| {
        let mut hasher = DefaultHasher::new();
        (name.to_ascii_lowercase(), value).hash(&mut hasher);
        sum.wrapping_add(hasher.finish())
    })
}

/// A modern refusal that a client was given, until it falls back to `initialize`.
#[derive(Default)]
struct Fallback(Option<Refusal>);

struct Refusal {
    call: CallIdx,
    code: i64,
    conn: Option<u64>,
    client: Option<String>,
}

impl Look for Fallback {
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        let Some(idx) = case.seen.call else { return };
        let Some(code) = code(case) else {
            let Some(refusal) = self.0.take_if(|refusal| refusal.is_to(case)) else { return };
            let sentence = format!(
                "the client fell back to initialize after {} had been refused with {}, which only a modern server says",
                case.name(refusal.call),
                refusal.code
            );
            out.draft(case).and_call(case.model, refusal.call).say(out, sentence);
            return;
        };
        let is_modern_error = match code {
            codes::HEADER_MISMATCH | codes::MISSING_REQUIRED_CLIENT_CAPABILITY => true,
            // Its list may offer a version that begins with initialize.
            codes::UNSUPPORTED_PROTOCOL_VERSION => !offers_legacy(case),
            _ => false,
        };
        if is_modern_error && case.exchange().and_then(Exchange::status) == Some(400) {
            let params = case.request_params();
            let client = params.and_then(|params| params.at(&["_meta", meta::CLIENT_INFO, "name"]));
            let client = client.map(|name| name.raw().to_owned());
            self.0 = Some(Refusal { call: idx, code, conn: case.seen.conn, client });
        }
    }
}

impl Refusal {
    /// It went to the client of this `initialize`: by its name, else by its connection.
    fn is_to(&self, case: &Case<'_>) -> bool {
        let name = case.params().and_then(|params| params.at(&["clientInfo", "name"])).map(Value::raw);
        match (self.client.as_deref(), name) {
            (Some(refused), Some(name)) => refused == name,
            _ => self.conn.is_some() && self.conn == case.seen.conn,
        }
    }
}

fn offers_legacy(case: &Case<'_>) -> bool {
    let supported = case.error().and_then(|error| error.at(&["data", "supported"]));
    supported.is_none_or(|list| {
        list.items()
            .filter_map(Value::text)
            .any(|version| Era::from_name(&version).is_some_and(|era| !era.is_modern()))
    })
}

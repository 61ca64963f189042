//! Streamable HTTP as the revisions 2025-03-26 to 2025-11-25 have it: POST, GET and DELETE on one
//! endpoint, sessions, and streams that a client may come back to. A connection that breaks is
//! not a cancel here.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use hyper::header::{ACCEPT, ALLOW, HeaderName, HeaderValue};
use hyper::{HeaderMap, Method, Response as HttpResponse};

use super::negotiation::{Negotiated, legacy};
use super::said::Said;
use super::session::Session;
use super::sessions::{Held, Sessions};
use super::stream::{Read, Reader, Stream};
use super::{batch, is_modern, is_modern_name};
use crate::peer::server::calls::Calls;
use crate::peer::server::core::Outgoing;
use crate::peer::server::http::answer::{self, Answer};
use crate::peer::server::message::{self, Incoming, Message, Refusal, Request};
use crate::peer::server::outlet::{Outflow, outlet};
use crate::peer::server::{AnswerMode, ServerEra, SharedCore};
use crate::spec::era::Era;
use crate::spec::{codes, headers, methods};
use crate::time::Ms;

/// Most open calls in one session. ours.
const CALLS_MOST: usize = 1000;
/// After the server has closed a stream, how long the client is to wait before it comes back, ms
/// (spec 2025-11-25 `basic/transports#sending-messages-to-the-server`). ours: 500.
const RETRY_MS: u64 = 500;

/// The message is one of the older revisions: in a server of both, whatever does not say that it
/// is modern, neither in its header fields nor in its body (VER-11).
pub(in crate::peer::server) fn is_legacy(era: ServerEra, fields: &HeaderMap, body: &[u8]) -> bool {
    match era {
        ServerEra::Modern => return false,
        ServerEra::Dual => {}
        _ => return true,
    }
    let version = field(fields, headers::PROTOCOL_VERSION);
    match message::read(body) {
        Ok(Message::Request(request)) if is_modern(&request) => false,
        Ok(Message::Request(request)) => {
            request.method == methods::INITIALIZE || !version.is_some_and(is_modern_name)
        }
        // Only the head can tell.
        _ => {
            !version.is_some_and(is_modern_name)
                && (version.is_some() || fields.contains_key(headers::SESSION_ID))
        }
    }
}

/// Answers a POST.
pub(in crate::peer::server) async fn post(
    core: SharedCore,
    fields: &HeaderMap,
    body: &[u8],
    peer: Option<SocketAddr>,
) -> HttpResponse<Answer> {
    let incoming = match message::read_any(body) {
        Ok(incoming) => incoming,
        Err(refusal) => return answer::refusal(&refusal),
    };
    if let Incoming::One(Message::Request(request)) = &incoming
        && request.method == methods::INITIALIZE
    {
        return initialize(&core, request).await;
    }
    let held = match find(&core, fields).await {
        Ok(held) => held,
        Err((status, text)) => {
            let id = match &incoming {
                Incoming::One(Message::Request(request)) => Some(&request.id),
                _ => None,
            };
            return answer::refusal(&Refusal { status, ..Refusal::new(id, codes::INVALID_REQUEST, text) });
        }
    };
    let messages = match incoming {
        Incoming::One(message) => vec![Ok(message)],
        Incoming::Many(messages) if held.session.agreed.era == Era::V2025_03_26 => {
            return take(&core, &held, messages, true, peer).await;
        }
        Incoming::Many(_) => {
            let text = "batches exist in revision 2025-03-26 only";
            return answer::refusal(&Refusal::new(None, codes::INVALID_REQUEST, text));
        }
    };
    take(&core, &held, messages, false, peer).await
}

/// Answers a GET or a DELETE, and refuses any other method.
pub(in crate::peer::server) async fn other(
    core: &SharedCore,
    method: &Method,
    fields: &HeaderMap,
) -> HttpResponse<Answer> {
    let is_stateless = core.options.mode == AnswerMode::LegacyStateless;
    let is_known = matches!(*method, Method::GET | Method::DELETE) && !is_stateless;
    if !is_known {
        return not_allowed(if is_stateless { "POST" } else { "GET, POST, DELETE" });
    }
    // No session of this revision has these methods (HTTP-19).
    if field(fields, headers::PROTOCOL_VERSION).is_some_and(is_modern_name)
        && core.options.era == ServerEra::Dual
    {
        return not_allowed("POST");
    }
    if field(fields, headers::SESSION_ID).is_none() {
        return answer::plain(400, "Mcp-Session-Id is missing");
    }
    let held = match find(core, fields).await {
        Ok(held) => held,
        Err((status, text)) => return answer::plain(status, text),
    };
    if method == Method::GET {
        return get(core, &held, fields);
    }
    if let Some(name) = &held.session.name {
        core.sessions.end(name, "the client ended the session");
    }
    answer::empty(204)
}

fn not_allowed(allowed: &'static str) -> HttpResponse<Answer> {
    let mut response = answer::plain(405, "POST, and GET and DELETE in sessions");
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    response
}

/// The GET stream, or one that a client comes back to.
fn get(core: &SharedCore, held: &Held, fields: &HeaderMap) -> HttpResponse<Answer> {
    let accepts = fields.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    if !accepts
        .flat_map(|value| value.split(','))
        .any(|one| headers::is_media_type(one, headers::EVENT_STREAM))
    {
        return answer::plain(406, "Accept must list text/event-stream");
    }
    let Some(last) = field(fields, headers::LAST_EVENT_ID) else {
        return events(core, held, held.standing.read(), None, true);
    };
    let place =
        last.split_once('-').and_then(|(stream, event)| Some((stream.parse().ok()?, event.parse().ok()?)));
    match place.and_then(|(stream, event)| Some((held.find(stream)?, event))) {
        Some((stream, event)) => events(core, held, stream.resume(event), None, false),
        None => answer::plain(400, "this session keeps no stream with that event"),
    }
}

fn field<'a>(fields: &'a HeaderMap, name: &str) -> Option<&'a str> {
    // What is not text is no name that was given out.
    fields.get(name).map(|value| value.to_str().unwrap_or_default())
}

/// The session of an exchange, or the status and the reason for which it is refused.
async fn find(core: &SharedCore, fields: &HeaderMap) -> Result<Arc<Held>, (u16, &'static str)> {
    let version = field(fields, headers::PROTOCOL_VERSION);
    let is_without = core.options.mode == AnswerMode::LegacyStateless;
    let name = field(fields, headers::SESSION_ID).filter(|_| !is_without);
    let Some(name) = name else {
        if is_without || core.options.era == ServerEra::LenientLegacy {
            let era = version.map(|version| legacy(version).ok_or((400, UNSUPPORTED))).transpose()?;
            return Ok(Held::new(Session::passing(Negotiated::assumed(era), Calls::default())));
        }
        if core.options.era == ServerEra::SilentLegacy {
            // Until the client gives up.
            std::future::pending::<()>().await;
        }
        return Err((400, "Mcp-Session-Id is missing; initialize first"));
    };
    let held =
        core.sessions.find(name).ok_or((404, "there is no session of this name; initialize a new one"))?;
    let era = held.session.agreed.era;
    // 2025-03-26 has no such field: whatever it holds means nothing.
    if era >= Era::V2025_06_18 && version.is_some_and(|version| version != era.as_str()) {
        return Err((400, UNSUPPORTED));
    }
    Ok(held)
}

const UNSUPPORTED: &str = "MCP-Protocol-Version names another revision than the one that is spoken";

/// Opens a session.
async fn initialize(core: &SharedCore, request: &Request) -> HttpResponse<Answer> {
    let agreed = match Negotiated::read(request) {
        Ok(agreed) => agreed,
        Err(refusal) => return answer::refusal(&refusal),
    };
    let body = message::result(&request.id, agreed.result(), agreed.era);
    let name = (core.options.mode != AnswerMode::LegacyStateless).then(Sessions::name);
    let session = match &name {
        Some(name) => Session::new(Some(name.clone()), agreed, Calls::default(), &core.hub),
        None => Session::passing(agreed, Calls::default()),
    };
    let held = Held::new(session);
    if let Some(name) = &name {
        core.sessions.insert(name, held.clone());
        core.handlers.spawn(forward(core.clone(), held.clone()));
    }
    let stream = held.open();
    say_answer(&held, &stream, body);
    let mut response = answer(core, &held, &stream).await;
    if let Some(value) = name.and_then(|name| HeaderValue::from_str(&name).ok()) {
        response.headers_mut().insert(HeaderName::from_static("mcp-session-id"), value);
    }
    response
}

/// Puts changes on the stream for what belongs to no request, until the session ends.
async fn forward(core: SharedCore, held: Arc<Held>) {
    while let Some(outgoing) = held.session.next_change(&core).await {
        let said = Said::new(outgoing, &held.session.calls, true);
        held.standing.say_now(said.kind(), said);
    }
    // A client that could not be told everything learns it so.
    held.standing.end();
}

/// Puts an answer that is there already on a stream.
fn say_answer(held: &Held, stream: &Stream<Said>, body: Bytes) {
    let said = Said::new(Outgoing::new(None, body, Some(200)), &held.session.calls, true);
    stream.say_now(said.kind(), said);
}

/// Takes what one POST holds, and answers it.
async fn take(
    core: &SharedCore,
    held: &Arc<Held>,
    messages: Vec<Result<Message, Refusal>>,
    is_batch: bool,
    peer: Option<SocketAddr>,
) -> HttpResponse<Answer> {
    let (sink, said) = outlet(core.options.buffer);
    let (answers, handlers) = held.session.take(core, messages, peer, sink, CALLS_MOST);
    if answers.is_empty() && handlers.is_empty() {
        return answer::accepted();
    }
    let stream = held.open();
    for handler in handlers {
        core.handlers.spawn(handler);
    }
    if is_batch {
        let (to, together) = outlet(core.options.buffer);
        core.handlers.spawn(batch::gather(answers, said, to, held.session.calls.clone()));
        core.handlers.spawn(carry(core.options.mode, held.clone(), stream.clone(), together));
    } else {
        for body in answers {
            say_answer(held, &stream, body);
        }
        core.handlers.spawn(carry(core.options.mode, held.clone(), stream.clone(), said));
    }
    answer(core, held, &stream).await
}

/// Carries what handlers say to the stream of their POST, whether it is read or not.
async fn carry(mode: AnswerMode, held: Arc<Held>, stream: Arc<Stream<Said>>, mut from: Outflow) {
    while let Some(outgoing) = from.recv().await {
        if outgoing.is_pause() {
            stream.let_go();
            continue;
        }
        let is_answer = outgoing.status.is_some();
        let said = Said::new(outgoing, &held.session.calls, true);
        let is_said = if is_answer || !is_one_body(mode) {
            stream.say(said.kind(), said).await
        } else if said.is_question() {
            // One body has no room for it.
            held.standing.say(said.kind(), said).await
        } else {
            true
        };
        if !is_said {
            break;
        }
    }
    stream.end();
}

fn is_one_body(mode: AnswerMode) -> bool {
    matches!(mode, AnswerMode::Json | AnswerMode::JsonDeaf)
}

/// Answers a POST with what comes on its stream: one body, or events.
async fn answer(core: &SharedCore, held: &Held, stream: &Arc<Stream<Said>>) -> HttpResponse<Answer> {
    let quiet = core.options.keep_alive;
    let mut reader = stream.read();
    let first = match core.options.mode {
        AnswerMode::Sse => None,
        mode => loop {
            match reader.next(quiet).await {
                Read::Event(_, text, true) => {
                    held.forget(stream);
                    return answer::json(200, text);
                }
                Read::Event(..) | Read::Quiet if is_one_body(mode) => {}
                // It was cancelled, or goes on without the client for a while: nothing is said.
                Read::Over => break None,
                first => break Some(first),
            }
        },
    };
    events(core, held, reader, first, true)
}

/// An event stream. `is_new`: it begins with the event that says where it is.
fn events(
    core: &SharedCore,
    held: &Held,
    reader: Reader<Said>,
    first: Option<Read>,
    is_new: bool,
) -> HttpResponse<Answer> {
    let number = reader.stream().number;
    // spec 2025-11-25 basic/transports: at once an event with an id and no data. Clients of older
    // revisions may take it for a broken message.
    let has_start = is_new && held.session.agreed.era >= Era::V2025_11_25;
    let start = has_start.then(|| format!("id: {number}-0\nretry: {RETRY_MS}\ndata:\n\n"));
    let start = start.into_iter().map(Bytes::from);
    let first = first.and_then(|read| event(number, read));
    let waiting = Events { reader, quiet: core.options.keep_alive };
    let rest = futures_util::stream::unfold(waiting, |mut events| async move {
        let data = event(events.reader.stream().number, events.reader.next(events.quiet).await)?;
        Some((data, events))
    });
    let begin = futures_util::stream::iter(start.chain(first));
    answer::event_stream(futures_util::StreamExt::chain(begin, rest))
}

struct Events {
    reader: Reader<Said>,
    quiet: Ms,
}

/// What is written for what was read; `None`: the stream ends.
fn event(stream: u64, read: Read) -> Option<Bytes> {
    match read {
        Read::Event(number, text, _) => {
            let mut event = format!("id: {stream}-{number}\ndata: ").into_bytes();
            event.extend_from_slice(&text);
            event.extend_from_slice(b"\n\n");
            Some(Bytes::from(event))
        }
        Read::Quiet => Some(answer::COMMENT),
        Read::Over => None,
    }
}

#[cfg(test)]
mod tests;

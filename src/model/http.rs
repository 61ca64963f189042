//! HTTP: exchanges put together from heads and pieces of bodies, sessions, streams taken up again.

mod close;
mod exchange;
mod stream;

pub use exchange::Exchange;

use std::collections::HashMap;
use std::hash::BuildHasher;

use bytes::Bytes;
use serde_json::value::RawValue;

use super::call::{CallIdx, CallState, MarkKind, ServerView};
use super::flow::{FlowIdx, OpenStream};
use super::fold::At;
use super::reading::Reading;
use super::row::{Coding, RowIdx, RowKind};
use super::scope::ScopeIdx;
use super::seen::{FrameFault, Sight};
use super::track::Piece;
use super::{Model, Name, Source};
use crate::event::{Dir, Event, Headers, RequestHead, Transport};
use crate::spec::era::Era;
use crate::time::Mono;
use exchange::{Answer, Body};

/// Everything HTTP that is under way.
#[derive(Debug, Default)]
pub(super) struct Http {
    exchanges: HashMap<u64, Box<Exchange>>,
    /// Sessions by their id.
    sessions: HashMap<Name, ScopeIdx>,
    /// HTTP+SSE: where to post, by path and query.
    endpoints: HashMap<Name, ScopeIdx>,
    /// Exchanges that the event folded last has ended.
    pub(super) ended: Vec<(u64, Box<Exchange>)>,
}

impl Http {
    /// The calls of an exchange; none when it is over or unknown.
    pub(super) fn calls_of(&self, stream: u64) -> &[CallIdx] {
        self.exchanges.get(&stream).map_or(&[], |exchange| &exchange.calls)
    }

    pub(super) fn scope_of(&self, stream: u64) -> ScopeIdx {
        self.exchanges.get(&stream).map_or(ScopeIdx(0), |exchange| exchange.scope)
    }

    pub(super) fn set_scope(&mut self, stream: u64, scope: ScopeIdx) {
        if let Some(exchange) = self.exchanges.get_mut(&stream) {
            exchange.scope = scope;
        }
    }

    /// The flow of an exchange that is answered by an event stream.
    pub(super) fn flow_of(&self, stream: u64) -> Option<FlowIdx> {
        self.exchanges.get(&stream)?.open_stream.as_ref().map(|open| open.flow)
    }

    pub(super) fn open_stream(&mut self, stream: u64) -> Option<&mut OpenStream> {
        self.exchanges.get_mut(&stream)?.open_stream.as_mut()
    }

    pub(super) fn set_open_stream(&mut self, stream: u64, open: OpenStream) {
        if let Some(exchange) = self.exchanges.get_mut(&stream) {
            exchange.open_stream = Some(open);
        }
    }

    /// When the last byte of the answer of an exchange was read.
    pub(super) fn heard(&self, stream: u64) -> Option<Mono> {
        self.exchanges.get(&stream)?.heard
    }

    pub(super) fn add_call(&mut self, stream: u64, call: CallIdx) {
        if let Some(exchange) = self.exchanges.get_mut(&stream) {
            exchange.calls.push(call);
        }
    }
}

impl Model {
    /// An exchange by its number, while it is under way or was ended by the event folded last.
    #[must_use]
    pub fn exchange_of(&self, stream: u64) -> Option<&Exchange> {
        let ended =
            || self.http.ended.iter().find(|(number, _)| *number == stream).map(|(_, exchange)| exchange);
        self.http.exchanges.get(&stream).or_else(ended).map(AsRef::as_ref)
    }

    /// The exchange of an event; one that began before the recording is made up.
    fn exchange(&mut self, event: &Event) -> &mut Exchange {
        let stream = event.stream.unwrap_or(0);
        self.http.exchanges.entry(stream).or_insert_with(|| Box::new(Exchange::new(ScopeIdx(0))))
    }

    fn at_of(&mut self, event: &Event, idx: u32) -> At {
        let exchange = self.exchange(event);
        let (scope, era, is_replay) = (exchange.scope, exchange.era, exchange.is_resumption);
        At { era, is_replay, ..At::event(event, idx, scope) }
    }

    pub(super) fn http_request(&mut self, event: &Event, idx: u32, head: &RequestHead) {
        // A number used again: what was open under it can get no answer any more.
        if let Some(stream) = event.stream
            && self.http.exchanges.contains_key(&stream)
        {
            self.http_server_closed_silently(event, idx);
        }
        let named = head.headers.get("mcp-protocol-version").and_then(Era::from_name);
        let scope = self.scope_of_request(head, named);
        if let Some(agent) = head.headers.get("user-agent") {
            let agent = self.names.intern(agent);
            if let Some(scope) = self.scope_mut(scope) {
                scope.user_agent = Some(agent);
            }
        }
        let mut exchange = Exchange::new(scope);
        exchange.era = self.era.or(named);
        exchange.started = Some(event.at);
        exchange.head = Some(RequestHead {
            body: None,
            method: head.method.clone(),
            path: head.path.clone(),
            headers: head.headers.clone(),
        });
        exchange.is_delete = head.method.eq_ignore_ascii_case("DELETE");
        if let Some(id) = head.headers.get("last-event-id") {
            let hash = self.hasher.hash_one(id);
            exchange.is_resumption = true;
            exchange.resumes = self.scope(scope).and_then(|scope| scope.event_ids.get(&hash)).copied();
        }
        exchange.expect_body(&head.headers);
        self.http.exchanges.insert(event.stream.unwrap_or(0), Box::new(exchange));
        let has_body = head.body.as_ref().is_some_and(|body| !body.is_empty());
        if let Some(body) = head.body.as_ref().filter(|_| has_body) {
            let at = self.at_of(event, idx);
            let source = Source { first: idx, last: idx, len: body.len() as u64, ..Source::default() };
            self.request_body(at.frame(source, event.at), body, &head.method, &head.path);
            self.exchange(event).request = None;
        } else if self.exchange(event).request.is_none() {
            self.bare_request(event, idx, &head.method, &head.path);
        } else if let Some(request) = &mut self.exchange(event).request {
            request.title = format!("{} {}", head.method, head.path);
        }
        let at = self.at_of(event, idx);
        self.see(at, None, None, Sight::HttpRequest);
    }

    /// A session by its header or by the path that an `endpoint` event named; otherwise the
    /// requests that belong to none. Modern requests never belong to a session (HTTP-22).
    fn scope_of_request(&mut self, head: &RequestHead, era: Option<Era>) -> ScopeIdx {
        if era.is_some_and(Era::is_modern) {
            return ScopeIdx(0);
        }
        if let Some(id) = head.headers.get("mcp-session-id") {
            let name = self.names.intern(id);
            if let Some(scope) = self.http.sessions.get(&name) {
                return *scope;
            }
            let scope = self.new_scope(Transport::Http, self.overview.last);
            self.http.sessions.insert(name, scope);
            return scope;
        }
        let posted = self.names.find(path_of(&head.path)).and_then(|path| self.http.endpoints.get(&path));
        posted.copied().unwrap_or(ScopeIdx(0))
    }

    /// A request without a message.
    fn bare_request(&mut self, event: &Event, idx: u32, method: &str, path: &str) {
        let at = self.at_of(event, idx);
        let detail = self.names.detail(&format!("{method} {path}"));
        let call = self.exchange(event).resumes;
        self.push_row(at, RowKind::HttpRequest, None, detail, call);
    }

    /// A whole request body.
    fn request_body(&mut self, at: At, body: &Bytes, method: &str, path: &str) {
        match Reading::of(body) {
            // An object without any member of ours is another protocol's, such as a registration
            // with an authorisation server.
            Reading::Message(part) if part.shape.is_meant => {
                self.message(at, part);
            }
            Reading::Batch(parts) if parts.iter().any(|part| part.shape.is_meant) => {
                self.batch(at, parts);
            }
            other => {
                let detail = self.names.detail(&format!("{method} {path}"));
                let row = self.push_row(at, RowKind::HttpRequest, None, detail, None);
                if matches!(other, Reading::NotUtf8) {
                    self.see_fault(at, row, FrameFault::NotUtf8);
                } else if let Some(messages) = concatenated(body) {
                    self.see_fault(at, row, FrameFault::Concatenated { messages });
                }
            }
        }
    }

    /// A piece of a request body that came after its head.
    pub(super) fn http_request_body(&mut self, event: &Event, idx: u32, bytes: &Bytes) {
        let at = self.at_of(event, idx);
        let exchange = self.exchange(event);
        let Some(request) = &mut exchange.request else {
            self.push_row(at, RowKind::HttpBody, None, None, None);
            return;
        };
        request.body.push(Piece { idx, at: event.at, len: bytes.len() }, bytes);
        if request.is_whole() {
            self.finish_request(event, idx);
        }
    }

    /// The request body is whole, or nothing more of it will come.
    fn finish_request(&mut self, event: &Event, idx: u32) {
        let at = self.at_of(event, idx);
        let Some(request) = self.exchange(event).request.take() else { return };
        let at = At { dir: Dir::C2s, ..at };
        let (method, path) = request.title.split_once(' ').unwrap_or_default();
        if let Some((source, first)) = request.body.place() {
            let body = Bytes::from(request.body.bytes);
            self.request_body(at.frame(source, first), &body, method, path);
        } else {
            let detail = self.names.detail(&request.title);
            self.push_row(at, RowKind::HttpRequest, None, detail, None);
        }
    }

    pub(super) fn http_response_head(&mut self, event: &Event, idx: u32, status: u16, headers: &Headers) {
        self.finish_request(event, idx);
        let kind = headers.get("content-type").unwrap_or_default();
        let is_sse = exchange::is_event_stream(kind);
        let coding = coding_of(headers.get("content-encoding"));
        let exchange = self.exchange(event);
        exchange.status = Some(status);
        exchange.headed = Some(event.at);
        exchange.answer_headers = Some(headers.clone());
        let length = headers.get("content-length").and_then(|text| text.trim().parse().ok());
        exchange.answer = match (is_sse, length) {
            (true, _) => Answer::sse(coding),
            (false, Some(0)) => Answer::None,
            (false, length) => Answer::Body(Box::new(Body::new(coding, length))),
        };
        exchange.heard = Some(event.at);
        let (scope, is_delete, calls) = (exchange.scope, exchange.is_delete, exchange.calls.clone());
        let at = self.at_of(event, idx);
        let detail = self.names.detail(format!("{status} {kind}").trim());
        let row = self.push_row(at, RowKind::HttpHead, None, detail, calls.first().copied());
        if is_sse {
            self.begin_stream(at, calls.first().copied(), Some(row), coding);
        }
        for call in &calls {
            self.mark(*call, MarkKind::Head, event.at, row);
            if let Some(call) = self.call_mut(*call) {
                call.status = Some(status);
                if call.server == ServerView::Unknown && status < 300 && status != 202 {
                    call.server = ServerView::Working;
                }
            }
        }
        self.see(at, Some(row), calls.first().copied(), Sight::HttpHead);
        if let Some(id) = headers.get("mcp-session-id")
            && scope != ScopeIdx(0)
        {
            let name = self.names.intern(id);
            self.http.sessions.entry(name).or_insert(scope);
        }
        if is_delete && (200..300).contains(&status) && scope != ScopeIdx(0) {
            let calls = self.end_scope(at, row);
            self.see(at, Some(row), None, Sight::SessionEnded { calls });
        }
    }

    /// A piece of an answer's body.
    pub(super) fn http_body(&mut self, event: &Event, idx: u32, bytes: &Bytes, is_sse: bool) {
        let piece = Piece { idx, at: event.at, len: bytes.len() };
        let at = self.at_of(event, idx);
        self.see(at, None, None, Sight::ServerOutput);
        let exchange = self.exchange(event);
        exchange.heard = Some(event.at);
        exchange.answer_bytes += bytes.len() as u64;
        let call = exchange.calls.first().copied();
        let is_new = is_sse && !matches!(exchange.answer, Answer::Sse(_));
        if is_new {
            exchange.answer = Answer::sse(Coding::Identity);
            self.begin_stream(at, call, None, Coding::Identity);
        }
        self.stream_bytes(event, bytes.len());
        let exchange = self.exchange(event);
        match &mut exchange.answer {
            Answer::Sse(stream) => {
                for (block, source, first) in stream.push(piece, bytes) {
                    self.sse_block(event, at.frame(source, first), &block);
                }
            }
            Answer::Body(body) => {
                body.push(piece, bytes);
                if body.is_whole() {
                    self.finish_answer_body(event, idx);
                }
            }
            Answer::None => {
                let mut body = Body::new(Coding::Identity, None);
                body.push(piece, bytes);
                exchange.answer = Answer::Body(Box::new(body));
            }
        }
    }

    /// A body that is no event stream is whole, or nothing more of it will come.
    fn finish_answer_body(&mut self, event: &Event, idx: u32) {
        let at = self.at_of(event, idx);
        let exchange = self.exchange(event);
        let Answer::Body(mut body) = std::mem::replace(&mut exchange.answer, Answer::None) else { return };
        let call = exchange.calls.first().copied();
        let Some((source, first)) = body.place() else { return };
        let at = At { dir: Dir::S2c, ..at.frame(source, first) };
        let text = Bytes::from(std::mem::take(&mut body.bytes));
        match Reading::of(&text) {
            Reading::Message(part) if part.shape.has_version => self.message(at, part),
            Reading::Batch(parts) if parts.iter().any(|part| part.shape.is_meant) => self.batch(at, parts),
            Reading::NotUtf8 => {
                let row = self.odd_body(at, call, &text);
                self.see_fault(at, row, FrameFault::NotUtf8);
                row
            }
            _ => self.odd_body(at, call, &text),
        };
    }

    fn odd_body(&mut self, at: At, call: Option<CallIdx>, body: &[u8]) -> RowIdx {
        let head = body.get(..body.len().min(480)).unwrap_or_default();
        let detail = self.names.detail(String::from_utf8_lossy(head).trim());
        self.push_row(at, RowKind::HttpBody, None, detail, call)
    }

    /// The recording ended: refused requests whose end was not seen are answered all the same,
    /// and unfinished frames are shown.
    pub(super) fn http_end_all(&mut self, end: At) {
        let mut open: Vec<u64> = self.http.exchanges.keys().copied().collect();
        open.sort_unstable();
        for stream in open {
            let Some(exchange) = self.http.exchanges.remove(&stream) else { continue };
            for idx in exchange.calls.clone() {
                let is_open = self.state_of(idx).is_some_and(|state| !state.is_terminal());
                if is_open && exchange.status.is_some_and(|status| status >= 400) {
                    self.finish(idx, CallState::AnsweredError, end.now);
                }
            }
            let call = exchange.calls.first().copied();
            self.http.ended.push((stream, exchange));
            self.see(
                At { stream: Some(stream), transport: Transport::Http, ..end },
                None,
                call,
                Sight::ExchangeEnd,
            );
        }
    }
}

/// How many messages a body holds one after the other, when it holds several and nothing else.
fn concatenated(body: &[u8]) -> Option<u32> {
    let values = serde_json::Deserializer::from_slice(body).into_iter::<&RawValue>();
    let mut messages = 0;
    for value in values {
        match Reading::of(&Bytes::copy_from_slice(value.ok()?.get().as_bytes())) {
            Reading::Message(part) if part.shape.is_meant => messages += 1,
            _ => return None,
        }
    }
    (messages > 1).then_some(messages)
}

/// Path and query of a URL or of a request target.
fn path_of(url: &str) -> &str {
    let after_scheme = url.split_once("://").map_or(url, |(_, rest)| rest);
    if after_scheme.len() == url.len() {
        return url;
    }
    after_scheme.find('/').and_then(|at| after_scheme.get(at..)).unwrap_or("/")
}

fn coding_of(value: Option<&str>) -> Coding {
    match value.map(str::trim) {
        None | Some("" | "identity") => Coding::Identity,
        Some(name) if name.eq_ignore_ascii_case("gzip") || name.eq_ignore_ascii_case("x-gzip") => {
            Coding::Gzip
        }
        Some(name) if name.eq_ignore_ascii_case("deflate") => Coding::Deflate,
        Some(_) => Coding::Unknown,
    }
}

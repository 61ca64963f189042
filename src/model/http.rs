//! HTTP: exchanges put together from heads and pieces of bodies, sessions, streams taken up again.

mod exchange;

use std::collections::HashMap;
use std::hash::BuildHasher;

use bytes::Bytes;

use super::call::{CallIdx, CallState, ClientView, MarkKind, ServerView};
use super::fold::{At, close_word};
use super::row::{Coding, RowIdx, RowKind};
use super::scope::ScopeIdx;
use super::seen::{FrameFault, Sight};
use super::track::Piece;
use super::{Model, Name, Source};
use crate::event::{Close, Dir, Event, Headers, RequestHead, Transport};
use crate::spec::era::Era;
use crate::wire::jsonrpc::{self, Frame};
use crate::wire::sse::{SseEvent, SseFault};
use exchange::{Answer, Body, Exchange};

/// Everything HTTP that is under way.
#[derive(Debug, Default)]
pub(super) struct Http {
    exchanges: HashMap<u64, Box<Exchange>>,
    /// Sessions by their id.
    sessions: HashMap<Name, ScopeIdx>,
    /// HTTP+SSE: where to post, by path and query.
    endpoints: HashMap<Name, ScopeIdx>,
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

    pub(super) fn add_call(&mut self, stream: u64, call: CallIdx) {
        if let Some(exchange) = self.exchanges.get_mut(&stream) {
            exchange.calls.push(call);
        }
    }
}

impl Model {
    /// The exchange of an event; one that began before the recording is made up.
    fn exchange(&mut self, event: &Event) -> &mut Exchange {
        let stream = event.stream.unwrap_or(0);
        self.http.exchanges.entry(stream).or_insert_with(|| Box::new(Exchange::new(ScopeIdx(0))))
    }

    fn at_of(&mut self, event: &Event, idx: u32) -> At {
        let exchange = self.exchange(event);
        let (scope, era, is_replay) = (exchange.scope, exchange.era, exchange.resumes.is_some());
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
        let mut exchange = Exchange::new(scope);
        exchange.era = named;
        exchange.is_get = head.method.eq_ignore_ascii_case("GET");
        exchange.is_delete = head.method.eq_ignore_ascii_case("DELETE");
        if let Some(id) = head.headers.get("last-event-id") {
            let hash = self.hasher.hash_one(id);
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
    fn request_body(&mut self, at: At, body: &[u8], method: &str, path: &str) {
        match jsonrpc::read(body) {
            Frame::Message(envelope) => {
                self.message(at, &envelope);
            }
            Frame::Batch(items) => {
                self.batch(at, &items);
            }
            other => {
                let detail = self.names.detail(&format!("{method} {path}"));
                let row = self.push_row(at, RowKind::HttpRequest, None, detail, None);
                if matches!(other, Frame::NotUtf8 { .. }) {
                    self.see_fault(at, row, FrameFault::NotUtf8);
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
        match request.body.place() {
            Some((source, first)) => {
                let at = at.frame(source, first);
                self.request_body(at, &request.body.bytes, method, path);
            }
            None => {
                let detail = self.names.detail(&request.title);
                self.push_row(at, RowKind::HttpRequest, None, detail, None);
            }
        }
    }

    pub(super) fn http_response_head(&mut self, event: &Event, idx: u32, status: u16, headers: &Headers) {
        self.finish_request(event, idx);
        let kind = headers.get("content-type").unwrap_or_default();
        let is_sse =
            kind.trim_start().get(..17).is_some_and(|head| head.eq_ignore_ascii_case("text/event-stream"));
        let coding = coding_of(headers.get("content-encoding"));
        let exchange = self.exchange(event);
        exchange.status = Some(status);
        let length = headers.get("content-length").and_then(|text| text.trim().parse().ok());
        exchange.answer = match (is_sse, length) {
            (true, _) => Answer::sse(coding),
            (false, Some(0)) => Answer::None,
            (false, length) => Answer::Body(Body::new(coding, length)),
        };
        let (scope, is_delete, calls) = (exchange.scope, exchange.is_delete, exchange.calls.clone());
        let at = self.at_of(event, idx);
        let detail = self.names.detail(format!("{status} {kind}").trim());
        let row = self.push_row(at, RowKind::HttpHead, None, detail, calls.first().copied());
        for call in &calls {
            self.mark(*call, MarkKind::Head, event.at, row);
            if let Some(call) = self.call_mut(*call) {
                call.status = Some(status);
                if call.server == ServerView::Unknown && status < 300 && status != 202 {
                    call.server = ServerView::Working;
                }
            }
        }
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
        if is_sse && !matches!(exchange.answer, Answer::Sse(_)) {
            exchange.answer = Answer::sse(Coding::Identity);
        }
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
                exchange.answer = Answer::Body(body);
            }
        }
    }

    /// One block of an event stream.
    fn sse_block(&mut self, event: &Event, at: At, block: &SseEvent) {
        if let Some(id) = &block.id {
            self.note_event_id(event, id);
        }
        let Some(data) = &block.data else {
            if block.faults.contains(&SseFault::OverLimit) {
                let row = self.push_row(at, RowKind::Invalid, None, None, None);
                self.see_fault(at, row, FrameFault::OverLimit);
                return;
            }
            let text = block.comments.first().map(String::as_str).unwrap_or_default();
            let detail = self.names.detail(text.trim());
            let kind = if block.comments.is_empty() { RowKind::SseOther } else { RowKind::SseComment };
            let call = self.exchange(event).calls.first().copied();
            self.push_row(at, kind, None, detail, call);
            return;
        };
        if block.event.as_deref() == Some("endpoint") {
            self.endpoint(event, at, data);
            return;
        }
        let is_unterminated = block.faults.contains(&SseFault::Unterminated);
        let frame = jsonrpc::read(data);
        if is_unterminated {
            let is_message = matches!(&frame, Frame::Message(_) | Frame::Batch(_));
            self.sse_unterminated(event, at, is_message);
            return;
        }
        let call = self.exchange(event).calls.first().copied();
        match frame {
            Frame::Message(envelope) => {
                self.message(at, &envelope);
            }
            Frame::Batch(items) => {
                self.batch(at, &items);
            }
            Frame::NotUtf8 { .. } => {
                let text = String::from_utf8_lossy(data);
                let row = match jsonrpc::read(text.as_bytes()) {
                    Frame::Message(envelope) => self.message(at, &envelope),
                    _ => self.push_row(at, RowKind::Invalid, None, None, call),
                };
                self.see_fault(at, row, FrameFault::NotUtf8);
            }
            // An empty event primes a stream (2025-11-25); other event types are not messages.
            Frame::Blank => {
                self.push_row(at, RowKind::SseOther, None, None, call);
            }
            Frame::OtherJson | Frame::NotJson { .. } => {
                let detail = self.names.detail(&String::from_utf8_lossy(data));
                let is_message_event = block.event.as_deref().is_none_or(|name| name == "message");
                let kind = if is_message_event { RowKind::Invalid } else { RowKind::SseOther };
                let row = self.push_row(at, kind, None, detail, call);
                if is_message_event {
                    self.see_fault(at, row, FrameFault::SseNotMessage);
                }
            }
        }
    }

    /// By the standard an event without its blank line is dropped: its message never arrived.
    fn sse_unterminated(&mut self, event: &Event, at: At, is_message: bool) {
        let call = self.exchange(event).calls.first().copied();
        let row = self.push_row(at, RowKind::Invalid, None, None, call);
        if let Some(call) = call {
            self.mark(call, MarkKind::Error, at.now, row);
        }
        self.see_fault(at, row, FrameFault::SseUnterminated { is_message });
    }

    /// The stream can be taken up again after this event.
    fn note_event_id(&mut self, event: &Event, id: &str) {
        let hash = self.hasher.hash_one(id);
        let exchange = self.exchange(event);
        let before = exchange.last_event_id.replace(hash);
        let scope = exchange.scope;
        let Some(call) = exchange.resumes.or_else(|| exchange.calls.first().copied()) else { return };
        if let Some(scope) = self.scope_mut(scope) {
            if let Some(before) = before {
                scope.event_ids.remove(&before);
            }
            scope.event_ids.insert(hash, call);
        }
        if let Some(call) = self.call_mut(call) {
            call.is_resumable = true;
        }
    }

    /// HTTP+SSE: the first event says where to post; the stream is the session.
    fn endpoint(&mut self, event: &Event, at: At, data: &[u8]) {
        let text = String::from_utf8_lossy(data);
        let path = self.names.intern(path_of(text.trim()));
        let mut scope = at.scope;
        if scope == ScopeIdx(0) {
            scope = self.new_scope(Transport::Http, at.first);
            self.exchange(event).scope = scope;
        }
        self.exchange(event).is_session = true;
        self.http.endpoints.insert(path, scope);
        let detail = self.names.detail(&text);
        self.push_row(At { scope, ..at }, RowKind::SseOther, None, detail, None);
    }

    /// A body that is no event stream is whole, or nothing more of it will come.
    fn finish_answer_body(&mut self, event: &Event, idx: u32) {
        let at = self.at_of(event, idx);
        let exchange = self.exchange(event);
        let Answer::Body(body) = std::mem::replace(&mut exchange.answer, Answer::None) else { return };
        let call = exchange.calls.first().copied();
        let Some((source, first)) = body.place() else { return };
        let at = At { dir: Dir::S2c, ..at.frame(source, first) };
        let row = match jsonrpc::read(&body.bytes) {
            Frame::Message(envelope) if !envelope.members.is_empty() => {
                let is_message = envelope.member("jsonrpc").is_some();
                if is_message { self.message(at, &envelope) } else { self.odd_body(at, call, &body) }
            }
            Frame::Batch(items) => self.batch(at, &items),
            Frame::NotUtf8 { .. } => {
                let row = self.odd_body(at, call, &body);
                self.see_fault(at, row, FrameFault::NotUtf8);
                row
            }
            _ => self.odd_body(at, call, &body),
        };
        let _ = row;
    }

    fn odd_body(&mut self, at: At, call: Option<CallIdx>, body: &Body) -> RowIdx {
        let head = body.bytes.get(..body.bytes.len().min(480)).unwrap_or_default();
        let detail = self.names.detail(String::from_utf8_lossy(head).trim());
        self.push_row(at, RowKind::HttpBody, None, detail, call)
    }

    /// The client left an exchange before its end, or closed a connection.
    pub(super) fn http_client_closed(&mut self, event: &Event, idx: u32, how: Option<Close>) {
        if event.stream.is_none() {
            let at = At::event(event, idx, ScopeIdx(0));
            let detail = self.names.detail(close_word(how));
            self.push_row(at, RowKind::ClientClosed, None, detail, None);
            return;
        }
        let is_known = event.stream.is_some_and(|stream| self.http.exchanges.contains_key(&stream));
        if is_known {
            self.finish_request(event, idx);
            self.finish_answer(event, idx);
        }
        let at = if is_known { self.at_of(event, idx) } else { At::event(event, idx, ScopeIdx(0)) };
        let calls = event.stream.map_or_else(Vec::new, |stream| self.http.calls_of(stream).to_vec());
        let detail = self.names.detail(close_word(how));
        let row = self.push_row(at, RowKind::ClientClosed, None, detail, calls.first().copied());
        for idx in calls {
            if self.state_of(idx).is_none_or(CallState::is_terminal) {
                continue;
            }
            self.mark(idx, MarkKind::Disconnect, event.at, row);
            self.see(at, Some(row), Some(idx), Sight::ClientLeft);
            let Some(call) = self.call(idx) else { continue };
            // In the legacy eras a dropped stream is no cancel, and may be taken up again by event
            // id; without one no answer can reach the client any more.
            let may_come_back = call.is_resumable && !call.era.is_some_and(Era::is_modern);
            if !may_come_back && !self.has_side_channel(idx) {
                self.abandon(idx, event.at);
            }
        }
        if !is_known {
            return;
        }
        let exchange = self.exchange(event);
        exchange.is_left = true;
        exchange.answer = exchange.answer.emptied();
        if exchange.is_session {
            self.end_session(event, at, row);
        }
    }

    /// The answer may come on another stream: HTTP+SSE answers every request there.
    fn has_side_channel(&self, idx: CallIdx) -> bool {
        let Some(call) = self.call(idx) else { return false };
        call.status == Some(202) && call.scope != ScopeIdx(0)
    }

    /// What is left in the decoders comes out.
    fn finish_answer(&mut self, event: &Event, idx: u32) {
        let at = At { dir: Dir::S2c, ..self.at_of(event, idx) };
        let exchange = self.exchange(event);
        match &mut exchange.answer {
            Answer::Sse(stream) => {
                if let Some((block, source, first)) = stream.finish(idx) {
                    self.sse_block(event, at.frame(source, first.unwrap_or(at.first)), &block);
                }
            }
            Answer::Body(_) => self.finish_answer_body(event, idx),
            Answer::None => {}
        }
    }

    /// The server ended an answer.
    pub(super) fn http_server_closed(&mut self, event: &Event, idx: u32, how: Option<Close>) {
        let is_known = event.stream.is_some_and(|stream| self.http.exchanges.contains_key(&stream));
        if !is_known {
            let at = At::event(event, idx, ScopeIdx(0));
            let detail = self.names.detail(close_word(how));
            self.push_row(at, RowKind::ServerClosed, None, detail, None);
            return;
        }
        self.finish_request(event, idx);
        self.finish_answer(event, idx);
        let at = self.at_of(event, idx);
        let Some(exchange) = event.stream.and_then(|stream| self.http.exchanges.remove(&stream)) else {
            return;
        };
        let detail = self.names.detail(close_word(how));
        let row = self.push_row(at, RowKind::ServerClosed, None, detail, exchange.calls.first().copied());
        for call in &exchange.calls {
            self.settle_closed(at, *call, &exchange, row);
        }
        if let Some(call) = exchange.resumes
            && self.state_of(call).is_some_and(|state| !state.is_terminal())
        {
            self.mark(call, MarkKind::Disconnect, event.at, row);
            self.see(at, Some(row), Some(call), Sight::ResumeEmpty);
        }
        if exchange.is_session {
            self.end_session(event, at, row);
        }
    }

    /// A call whose exchange the server has ended.
    fn settle_closed(&mut self, at: At, idx: CallIdx, exchange: &Exchange, row: RowIdx) {
        if self.state_of(idx).is_none_or(CallState::is_terminal) {
            return;
        }
        let is_refused = exchange.status.is_some_and(|status| status >= 400);
        if is_refused {
            self.mark(idx, MarkKind::Error, at.now, row);
            if let Some(call) = self.call_mut(idx) {
                call.server = ServerView::Completed;
                call.client = ClientView::Answered;
            }
            self.finish(idx, CallState::AnsweredError, at.now);
            self.see(at, Some(row), Some(idx), Sight::Answered);
            return;
        }
        let call = self.call(idx);
        let is_modern = call.is_some_and(|call| call.era.is_some_and(Era::is_modern));
        let may_come_back = call.is_some_and(|call| call.is_resumable) && !is_modern;
        if may_come_back || (self.has_side_channel(idx) && !is_modern) {
            self.mark(idx, MarkKind::Disconnect, at.now, row);
            self.see(at, Some(row), Some(idx), Sight::StreamEndedResumable);
            return;
        }
        self.lose(idx, at.now, row);
        self.see(at, Some(row), Some(idx), Sight::StreamEnded);
    }

    /// HTTP+SSE: with its stream the session ends.
    fn end_session(&mut self, event: &Event, at: At, row: RowIdx) {
        let calls = self.end_scope(at, row);
        self.see(at, Some(row), None, Sight::SessionEnded { calls });
        if event.what == (crate::event::What::ClientClosed { how: None }) {
            self.http.endpoints.retain(|_, scope| *scope != at.scope);
        }
    }

    /// The number of an exchange is used again without an end in between.
    fn http_server_closed_silently(&mut self, event: &Event, idx: u32) {
        let at = self.at_of(event, idx);
        let calls = event.stream.map_or_else(Vec::new, |stream| self.http.calls_of(stream).to_vec());
        let row = self.push_row(at, RowKind::Note, None, None, calls.first().copied());
        for call in calls {
            self.lose(call, at.now, row);
        }
    }

    /// The recording ended: refused requests whose end was not seen are answered all the same,
    /// and unfinished frames are shown.
    pub(super) fn http_end_all(&mut self, end: At) {
        let mut open: Vec<u64> = self.http.exchanges.keys().copied().collect();
        open.sort_unstable();
        for stream in open {
            let Some(mut exchange) = self.http.exchanges.remove(&stream) else { continue };
            let calls = std::mem::take(&mut exchange.calls);
            for idx in calls {
                let is_open = self.state_of(idx).is_some_and(|state| !state.is_terminal());
                if is_open && exchange.status.is_some_and(|status| status >= 400) {
                    self.finish(idx, CallState::AnsweredError, end.now);
                }
            }
        }
    }
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

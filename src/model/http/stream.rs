//! Blocks of an event stream: messages, comments, event ids, endpoints.

use std::hash::BuildHasher;

use bytes::Bytes;

use super::path_of;
use crate::event::{Event, Transport, What};
use crate::model::Model;
use crate::model::call::MarkKind;
use crate::model::fold::At;
use crate::model::reading::Reading;
use crate::model::row::RowKind;
use crate::model::scope::ScopeIdx;
use crate::model::seen::{FrameFault, Sight, SseField};
use crate::wire::sse::{SseEvent, SseFault};

impl Model {
    /// One block of an event stream.
    pub(super) fn sse_block(&mut self, event: &Event, at: At, block: &SseEvent) {
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
            let row = self.push_row(at, kind, None, detail, call);
            let sight = if block.comments.is_empty() {
                Sight::SseEvent(SseField::of(block, false, false))
            } else {
                self.stream_comment(event.stream.unwrap_or(0), at.now);
                Sight::SseComment
            };
            self.see(at, Some(row), call, sight);
            return;
        };
        if block.event.as_deref() == Some("endpoint") {
            self.endpoint(event, at, data);
            return;
        }
        let is_unterminated = block.faults.contains(&SseFault::Unterminated);
        let reading = Reading::of(data);
        if is_unterminated {
            self.sse_unterminated(event, at, reading.holds_message());
            return;
        }
        let call = self.exchange(event).calls.first().copied();
        let field = SseField::of(block, matches!(reading, Reading::Blank), reading.holds_message());
        self.see(at, None, call, Sight::SseEvent(field));
        match reading {
            Reading::Message(part) => {
                let row = self.message(at, part);
                self.stream_message(event.stream.unwrap_or(0), at.now, row);
            }
            Reading::Batch(parts) => {
                let row = self.batch(at, parts);
                self.stream_message(event.stream.unwrap_or(0), at.now, row);
            }
            Reading::NotUtf8 => {
                let text = Bytes::from(String::from_utf8_lossy(data).into_owned());
                let row = match Reading::of(&text) {
                    Reading::Message(part) => self.message(at, part),
                    _ => self.push_row(at, RowKind::Invalid, None, None, call),
                };
                self.see_fault(at, row, FrameFault::NotUtf8);
            }
            // An empty event primes a stream (2025-11-25); other event types are not messages.
            Reading::Blank => {
                self.push_row(at, RowKind::SseOther, None, None, call);
            }
            Reading::OtherJson | Reading::NotJson => {
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
        let by_client = matches!(event.what, What::ClientClosed { .. });
        self.see_fault(at, row, FrameFault::SseUnterminated { is_message, by_client });
    }

    /// The stream can be taken up again after this event.
    fn note_event_id(&mut self, event: &Event, id: &str) {
        let hash = self.hasher.hash_one(id);
        self.stream_has_ids(event.stream.unwrap_or(0));
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
        if let Some(scope) = self.scope_mut(scope) {
            scope.is_http_sse = true;
        }
        let named = self.names.text(path).to_owned();
        self.http.endpoints.insert(path, scope);
        let field = SseField {
            event: Some("endpoint".to_owned()),
            has_data: true,
            is_empty: named.is_empty(),
            ..SseField::default()
        };
        self.see(At { scope, ..at }, None, None, Sight::SseEvent(field));
        self.see(At { scope, ..at }, None, None, Sight::Endpoint { path: named });
        let detail = self.names.detail(&text);
        self.push_row(At { scope, ..at }, RowKind::SseOther, None, detail, None);
    }
}

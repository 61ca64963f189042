//! The end of an exchange, from either side, and what it means for its calls.

use super::exchange::{Answer, Exchange};
use crate::event::{Close, Dir, Event, What};
use crate::model::call::{CallIdx, CallState, ClientView, MarkKind, ServerView};
use crate::model::fold::{At, close_word};
use crate::model::row::{RowIdx, RowKind};
use crate::model::scope::ScopeIdx;
use crate::model::seen::Sight;
use crate::model::{Model, Signal};
use crate::spec::era::Era;

impl Model {
    /// The client left an exchange before its end, or closed a connection.
    pub(in crate::model) fn http_client_closed(&mut self, event: &Event, idx: u32, how: Option<Close>) {
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
        self.end_stream(Dir::C2s, at, row);
        for idx in calls {
            let Some(call) = self.call(idx) else { continue };
            let is_modern = call.era.is_some_and(Era::is_modern);
            if call.state.is_answered() && is_modern {
                self.cancel_lost(idx, Signal::Disconnect, event.at, row);
            }
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
                self.abandon(idx, event.at, row);
            }
        }
        if !is_known {
            return;
        }
        let first = self.exchange(event).calls.first().copied();
        self.see(at, Some(row), first, Sight::ExchangeLeft);
        let exchange = self.exchange(event);
        exchange.client_left.get_or_insert(event.at);
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
    pub(in crate::model) fn http_server_closed(&mut self, event: &Event, idx: u32, how: Option<Close>) {
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
        let calls = event.stream.map_or_else(Vec::new, |stream| self.http.calls_of(stream).to_vec());
        let detail = self.names.detail(close_word(how));
        let row = self.push_row(at, RowKind::ServerClosed, None, detail, calls.first().copied());
        self.end_stream(Dir::S2c, at, row);
        for call in calls {
            self.note_heard(call);
        }
        let Some(exchange) = event.stream.and_then(|stream| self.http.exchanges.remove(&stream)) else {
            return;
        };
        for call in &exchange.calls {
            self.settle_closed(at, *call, &exchange, row);
            self.race_stream_ended(*call);
        }
        if let Some(call) = exchange.resumes
            && self.state_of(call).is_some_and(|state| !state.is_terminal())
        {
            self.mark(call, MarkKind::Disconnect, event.at, row);
            self.see(at, Some(row), Some(call), Sight::ResumeEmpty);
        }
        let (is_session, first) = (exchange.is_session, exchange.calls.first().copied());
        self.http.ended.push((event.stream.unwrap_or(0), exchange));
        self.see(at, Some(row), first, Sight::ExchangeEnd);
        if is_session {
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
            self.note_refused(idx, exchange.status);
            self.see(at, Some(row), Some(idx), Sight::Answered);
            return;
        }
        let call = self.call(idx);
        let is_modern = call.is_some_and(|call| call.era.is_some_and(Era::is_modern));
        let may_come_back = call.is_some_and(|call| call.is_resumable) && !is_modern;
        if may_come_back || (self.has_side_channel(idx) && !is_modern) {
            self.mark(idx, MarkKind::Disconnect, at.now, row);
            // Whose client has left had nobody to write to: its end says nothing about the server.
            if exchange.client_left.is_none() {
                self.see(at, Some(row), Some(idx), Sight::StreamEndedResumable);
            }
            return;
        }
        self.lose(idx, at.now, row);
        self.see(at, Some(row), Some(idx), Sight::StreamEnded);
    }

    /// HTTP+SSE: with its stream the session ends. What the client left open when it went is not
    /// lost: nobody waits for it any more.
    fn end_session(&mut self, event: &Event, at: At, row: RowIdx) {
        if matches!(event.what, What::ClientClosed { .. }) {
            let mut left = self.open_calls(at.scope);
            left.retain(|idx| self.call(*idx).is_some_and(|call| call.sender == Dir::C2s));
            for idx in left {
                self.mark(idx, MarkKind::Disconnect, event.at, row);
                self.see(at, Some(row), Some(idx), Sight::ClientLeft);
                self.abandon(idx, event.at, row);
            }
        }
        let calls = self.end_scope(at, row);
        self.see(at, Some(row), None, Sight::SessionEnded { calls });
    }

    /// The number of an exchange is used again without an end in between.
    pub(super) fn http_server_closed_silently(&mut self, event: &Event, idx: u32) {
        let at = self.at_of(event, idx);
        let calls = event.stream.map_or_else(Vec::new, |stream| self.http.calls_of(stream).to_vec());
        let row = self.push_row(at, RowKind::Note, None, None, calls.first().copied());
        for call in calls {
            self.lose(call, at.now, row);
        }
    }
}

//! How calls end: one terminal state each, first come, and what their end is remembered for.

use super::call::{CallIdx, CallState, ClientView, MarkKind, ServerView};
use super::content::Content;
use super::fold::At;
use super::message::Said;
use super::row::RowIdx;
use super::scope::ScopeIdx;
use super::seen::{Seen, Sight};
use super::{Model, Name, Signal};
use crate::event::{Dir, Transport};
use crate::spec::era::Era;
use crate::time::Mono;

impl Model {
    /// Keeps when the other side was last heard on the carrier of a call.
    pub(super) fn note_heard(&mut self, idx: CallIdx) {
        let heard = self.call(idx).and_then(|call| self.heard(call));
        if let Some(call) = self.call_mut(idx) {
            call.heard = call.heard.max(heard.unwrap_or(call.started));
        }
    }

    /// Ends a call. Nothing happens when it has ended before.
    pub(super) fn finish(&mut self, idx: CallIdx, state: CallState, at: Mono) {
        if self.state_of(idx).is_none_or(CallState::is_terminal) {
            return;
        }
        self.note_heard(idx);
        if state.is_answered() {
            self.flow_answered(idx, at);
        }
        let Some(call) = self.calls.get_mut(idx.0 as usize) else { return };
        call.state = state;
        call.ended = Some(at);
        call.marks.shrink_to_fit();
        let (scope, sender, row, method) = (call.scope, call.sender, call.row, call.method);
        let took = at.ns_since(call.started);
        let is_error = state == CallState::AnsweredError || call.is_tool_error;
        let is_gateway = state == CallState::AnsweredError
            && call.error_code.is_none()
            && matches!(call.status, Some(502..=504));
        let counts = &mut self.overview.counts;
        counts.open = counts.open.saturating_sub(1);
        counts.errors += u64::from(is_error);
        counts.lost += u64::from(state == CallState::Lost);
        counts.cancelled +=
            u64::from(matches!(state, CallState::CancelledByClient | CallState::AbandonedByDisconnect));
        let Some(scope) = self.scopes.get_mut(scope.0 as usize) else { return };
        let Some(open) = scope.open.remove(&idx) else { return };
        if let Some(request) = open.request {
            self.ended.push((idx, request));
        }
        if state.is_answered() {
            if open.is_quick {
                scope.note_round_trip(took);
            }
            if sender == Dir::C2s {
                scope.witness = scope.witness.max(Some(row));
            }
        }
        // A gateway that answers for the server does not know what became of the call.
        if state.is_unanswered() || is_gateway {
            self.unanswered.insert(open.fingerprint, idx);
        }
        if state == CallState::Lost && method == Name::LISTEN {
            self.note_loss(idx);
        }
    }

    /// Equal for the same method, target and arguments, whatever the id; only while a call is open.
    #[must_use]
    pub fn fingerprint(&self, idx: CallIdx) -> Option<u64> {
        let call = self.call(idx)?;
        self.scope(call.scope)?.open.get(&idx).map(|open| open.fingerprint)
    }

    /// A process or a session ended: its open calls can get no answer any more. Returns them.
    pub(super) fn end_scope(&mut self, at: At, row: RowIdx) -> Vec<CallIdx> {
        let calls = self.open_calls(at.scope);
        for idx in &calls {
            self.lose(*idx, at.now, row);
        }
        if let Some(scope) = self.scope_mut(at.scope) {
            scope.ended.get_or_insert(at.now);
            scope.event_ids.clear();
        }
        calls
    }

    /// The stream or process of a call ended before its answer.
    pub(super) fn lose(&mut self, idx: CallIdx, at: Mono, row: RowIdx) {
        if self.state_of(idx).is_none_or(CallState::is_terminal) {
            return;
        }
        if let Some(call) = self.call_mut(idx)
            && call.sender == Dir::C2s
        {
            call.server = ServerView::Gone;
        }
        self.mark(idx, MarkKind::Lost, at, row);
        self.finish(idx, CallState::Lost, at);
    }

    /// The client left the exchange of a call for good. In the modern era that is its cancel.
    pub(super) fn abandon(&mut self, idx: CallIdx, at: Mono, row: RowIdx) {
        let Some(call) = self.call_mut(idx) else { return };
        call.client = ClientView::Abandoned;
        if call.era.is_some_and(Era::is_modern) {
            self.cancel_leads(idx, Signal::Disconnect, at, row);
        }
        self.finish(idx, CallState::AbandonedByDisconnect, at);
    }

    /// The recording ended: what is open stays unresolved.
    pub(super) fn end_all(&mut self, now: Mono, row: Option<(At, RowIdx)>) {
        let end = row.map_or_else(|| self.last_place(now), |(at, _)| at);
        self.end_pipe(end, Dir::C2s, false);
        self.end_pipe(end, Dir::S2c, false);
        self.http_end_all(end);
        for number in 0..self.scopes.len() {
            let scope = ScopeIdx(u32::try_from(number).unwrap_or(u32::MAX));
            let calls = self.open_calls(scope);
            for idx in &calls {
                self.finish(*idx, CallState::Unresolved, now);
            }
            let row = row.map(|(_, row)| row);
            let transport = self.scope(scope).map_or(Transport::Http, |scope| scope.transport);
            let (stream, conn, what) = (None, None, Sight::Ended { calls });
            self.seen.push(Seen { row, call: None, scope, stream, conn, transport, at: now, what });
        }
    }

    /// A place for what is found at the end of a recording that has no last event.
    fn last_place(&self, now: Mono) -> At {
        let last = self.rows.last();
        At {
            n: last.map_or(0, |row| row.n),
            first: now,
            now,
            out: None,
            dir: Dir::Tap,
            transport: crate::event::Transport::Stdio,
            stream: None,
            conn: None,
            scope: self.stdio.scope.unwrap_or(ScopeIdx(0)),
            source: last.map_or_else(super::Source::default, |row| row.source),
            era: None,
            is_replay: false,
            is_ours: false,
        }
    }

    /// Links a new call to the one that it repeats or continues.
    pub(super) fn link(&mut self, idx: CallIdx, said: &Said<'_>, content: Option<&Content>) {
        let round = self.go_on(idx, said, content);
        let id = self.call(idx).map(|call| call.id.clone());
        let retry = match round {
            Some(_) => None,
            None => self.unanswered.remove(&said.fingerprint),
        };
        let retry = retry.filter(|earlier| self.call(*earlier).map(|call| &call.id) != id.as_ref());
        if let Some(earlier) = retry {
            self.retried.insert(earlier, idx);
        }
        if let Some(call) = self.call_mut(idx) {
            call.round_of = round;
            call.retry_of = retry;
        }
    }

    /// Every attempt at what a call asks for, in order: the same method, target and arguments under
    /// another id, each made after the one before had ended without an answer. Of a call that is
    /// no retry and was not retried: itself.
    #[must_use]
    pub fn attempts(&self, idx: CallIdx) -> Vec<CallIdx> {
        let before = std::iter::successors(Some(idx), |idx| self.call(*idx)?.retry_of);
        let mut attempts: Vec<CallIdx> = before.collect();
        attempts.reverse();
        let after = |idx: CallIdx| self.retried.get(&idx).copied();
        attempts.extend(std::iter::successors(after(idx), |idx| after(*idx)));
        attempts
    }

    /// Whether a method may be told again by `tools/list` and the like without meaning a retry.
    pub(super) fn is_retry_worth(method: Name) -> bool {
        method != Name::INITIALIZE && method != Name::LISTEN
    }
}

//! Answers: to an open call, after its end, or to nobody.

use super::{opposite, other_type};
use crate::event::{Dir, Transport};
use crate::model::call::{CallIdx, CallState, ClientView, MarkKind, ServerView};
use crate::model::content::Content;
use crate::model::fold::At;
use crate::model::message::Said;
use crate::model::row::{RowIdx, RowKind};
use crate::model::scope::{Peer, ScopeIdx};
use crate::model::seen::Sight;
use crate::model::{Model, Name};
use crate::spec::era::Era;

/// How far back an answer is looked for among what came after it. ours: what comes later than so
/// much else has been told before.
const LATE_MARKS: usize = 64;

impl Model {
    pub(super) fn answer(
        &mut self,
        at: At,
        said: &Said<'_>,
        kind: RowKind,
        content: Option<&Content>,
    ) -> RowIdx {
        let sender = opposite(at.dir);
        let found = match &said.id {
            Some(id) => self
                .find_on_stream(at, |call| call.sender == sender && call.id == *id)
                .or_else(|| self.find_call(at.scope, sender, id)),
            // An error that could not name its request still ends the exchange that it came on.
            None => self.find_on_stream(at, |call| call.sender == sender && !call.state.is_terminal()),
        };
        let Some(idx) = found else { return self.stray_answer(at, said, kind, sender) };
        let (method, era) = self.call(idx).map_or((None, None), |call| (Some(call.method), call.era));
        let detail = match kind {
            RowKind::Error => said.message.as_deref().and_then(|text| self.names.detail(text)),
            _ => None,
        };
        let row = self.push_row(at, kind, method, detail, Some(idx));
        self.set_row_era(row, era);
        self.note_server(at.scope, said);
        let stream = self.call(idx).and_then(|call| call.stream);
        let is_modern = era.is_some_and(Era::is_modern);
        if is_modern && at.stream.is_some() && at.dir == Dir::S2c && stream != at.stream {
            self.see(at, Some(row), Some(idx), Sight::AnswerElsewhere);
        }
        if said.id.is_none() {
            self.see(at, Some(row), Some(idx), Sight::AnswerNoId);
        }
        match self.state_of(idx) {
            Some(state) if !state.is_terminal() => {
                if kind == RowKind::Result && said.asks_input() {
                    self.ask(at, said, idx, content);
                }
                self.answer_open(at, said, kind, idx, row);
            }
            Some(state) => self.answer_ended(at, idx, row, state),
            None => {}
        }
        row
    }

    fn answer_open(&mut self, at: At, said: &Said<'_>, kind: RowKind, idx: CallIdx, row: RowIdx) {
        let (state, mark) = match kind {
            RowKind::Error => (CallState::AnsweredError, MarkKind::Error),
            _ if said.asks_input() => (CallState::InputRequired, MarkKind::InputRequired),
            _ => (CallState::AnsweredOk, MarkKind::Result),
        };
        let Some(call) = self.call_mut(idx) else { return };
        call.is_tool_error = said.is_tool_error;
        call.error_code = said.code;
        call.is_task |= said.result_type.as_deref() == Some("task");
        if call.client == ClientView::Waiting {
            call.client = ClientView::Answered;
        }
        call.server = ServerView::Completed;
        let (method, scope) = (call.method, call.scope);
        self.mark(idx, mark, at.now, row);
        self.finish(idx, state, at.now);
        if method == Name::INITIALIZE && state == CallState::AnsweredOk {
            self.settle(idx, scope, said);
        }
        self.see(at, Some(row), Some(idx), Sight::Answered);
        if state == CallState::InputRequired {
            self.see(at, Some(row), Some(idx), Sight::InputRequired);
        }
    }

    /// The result of `initialize` settles the era of its session.
    fn settle(&mut self, idx: CallIdx, scope: ScopeIdx, said: &Said<'_>) {
        let era = said.era();
        if let Some(scope) = self.scope_mut(scope) {
            scope.negotiated = era;
        }
        let forced = self.era;
        if let Some(call) = self.call_mut(idx) {
            call.era = forced.or(era).or(call.era);
        }
    }

    fn note_server(&mut self, scope: ScopeIdx, said: &Said<'_>) {
        let Some((name, version)) = &said.peer else { return };
        let peer = Peer { name: self.names.intern(name), version: self.names.intern(version) };
        if let Some(scope) = self.scope_mut(scope) {
            scope.server = Some(peer);
        }
    }

    fn answer_ended(&mut self, at: At, idx: CallIdx, row: RowIdx, state: CallState) {
        match state {
            _ if state.is_unanswered() && self.call(idx).is_some_and(|call| call.race.is_some()) => {
                self.answer_cancelled(at, idx, row);
            }
            CallState::AnsweredOk | CallState::AnsweredError | CallState::InputRequired => {
                let Some(call) = self.call_mut(idx) else { return };
                // A subscription may be ended by a cancel and a closing result, one after the other.
                let closes_listen = call.method == Name::LISTEN && call.server == ServerView::Cancelled;
                if closes_listen {
                    call.server = ServerView::Completed;
                    self.mark(idx, MarkKind::Result, at.now, row);
                    return;
                }
                call.after.duplicate_answers += 1;
                let is_same_channel = self.is_channel_of_answer(at, idx);
                self.mark(idx, MarkKind::Late, at.now, row);
                if is_same_channel && !at.is_replay {
                    self.see(at, Some(row), Some(idx), Sight::AnswerAgain);
                }
            }
            _ => {
                if let Some(call) = self.call_mut(idx) {
                    call.after.late_answers += 1;
                }
                self.mark(idx, MarkKind::Late, at.now, row);
            }
        }
    }

    /// What comes here is in order with the answer of a call: on its pipe, or on the stream that
    /// brought the answer (which need not be that of the request).
    pub(super) fn is_channel_of_answer(&self, at: At, idx: CallIdx) -> bool {
        if at.transport == Transport::Stdio {
            return true;
        }
        let is_answer = |kind| matches!(kind, MarkKind::Result | MarkKind::InputRequired | MarkKind::Error);
        let marks = self.call(idx).map_or(&[][..], |call| call.marks.as_slice());
        let answer = marks.iter().rev().take(LATE_MARKS).find(|mark| is_answer(mark.kind));
        answer.and_then(|mark| self.row(mark.row)).is_some_and(|row| row.stream == at.stream)
    }

    /// An answer after the client's cancel: crossed it, or late.
    fn answer_cancelled(&mut self, at: At, idx: CallIdx, row: RowIdx) {
        let lateness = self.lateness(at, idx);
        let Some(call) = self.call_mut(idx) else { return };
        let is_first = call.after.late_answers == 0;
        call.after.late_answers += 1;
        call.server = ServerView::Completed;
        if is_first {
            self.answer_races(idx, lateness, row);
        }
        self.mark(idx, MarkKind::Late, at.now, row);
        self.see(at, Some(row), Some(idx), Sight::AnswerAfterCancel(lateness));
    }

    /// An answer that no request asked for.
    fn stray_answer(&mut self, at: At, said: &Said<'_>, kind: RowKind, sender: Dir) -> RowIdx {
        let detail = said.message.as_deref().and_then(|text| self.names.detail(text));
        let Some(id) = &said.id else {
            let row = self.push_row(at, kind, None, detail, None);
            self.see(at, Some(row), None, Sight::AnswerNoId);
            return row;
        };
        let era = self.channel_era(at);
        let other = other_type(id);
        let meant = other.and_then(|other| {
            self.find_on_stream(at, |call| call.sender == sender && call.id == other)
                .or_else(|| self.find_call(at.scope, sender, &other))
                .filter(|idx| self.state_of(*idx).is_some_and(|state| !state.is_terminal()))
        });
        let row = self.push_row(at, kind, None, detail, meant);
        self.set_row_era(row, era);
        match meant {
            Some(idx) => {
                self.mark(idx, MarkKind::Late, at.now, row);
                if let Some(call) = self.call_mut(idx) {
                    call.server = ServerView::Completed;
                }
                self.see(at, Some(row), meant, Sight::AnswerOtherType { id: id.clone() });
            }
            None => self.see(at, Some(row), None, Sight::AnswerUnknown { id: id.clone() }),
        }
        row
    }
}

//! Messages find their call: requests, answers, progress, cancels, subscriptions.

use super::call::{After, Call, CallIdx, CallState, ClientView, MarkKind, Progress, Race, ServerView};
use super::fold::At;
use super::message::Said;
use super::row::{RowIdx, RowKind};
use super::scope::{Listen, Open, Peer, ScopeIdx};
use super::seen::{FrameFault, Sight};
use super::{Model, Name};
use crate::event::{Dir, Transport};
use crate::spec::era::Era;
use crate::wire::jsonrpc::{Envelope, EnvelopeFault, Id, Kind};

use std::hash::BuildHasher;

impl Model {
    /// One message: its row, its call, and what is wrong with it. Returns the row.
    pub(super) fn message(&mut self, at: At, envelope: &Envelope<'_>) -> RowIdx {
        let said = Said::read(envelope, &self.hasher);
        let is_notification = envelope.kind == Kind::Notification
            || said.method.as_deref().is_some_and(|method| method.starts_with("notifications/"));
        let row = match envelope.kind {
            Kind::Request | Kind::Notification if is_notification => self.notification(at, &said),
            Kind::Request => self.request(at, &said),
            Kind::Result => self.answer(at, &said, RowKind::Result),
            Kind::Error => self.answer(at, &said, RowKind::Error),
            Kind::Notification | Kind::Invalid => self.push_row(at, RowKind::Invalid, None, None, None),
        };
        if is_notification && envelope.kind == Kind::Request {
            self.see_fault(at, row, FrameFault::NotificationWithId);
        }
        for fault in &envelope.faults {
            if let Some(fault) = envelope_fault(fault, is_notification) {
                self.see_fault(at, row, fault);
            }
        }
        if said.has_odd_body {
            let fault = match envelope.kind {
                Kind::Result => FrameFault::ResultNotObject,
                Kind::Error => FrameFault::BadError,
                _ => FrameFault::ParamsNotObject,
            };
            self.see_fault(at, row, fault);
        } else if envelope.kind == Kind::Error && (said.code.is_none() || said.message.is_none()) {
            self.see_fault(at, row, FrameFault::BadError);
        }
        row
    }

    /// A JSON array of messages. Returns the row of the first.
    pub(super) fn batch(&mut self, at: At, items: &[Envelope<'_>]) -> RowIdx {
        let mut first = None;
        for item in items {
            let row = self.message(at, item);
            first.get_or_insert(row);
        }
        let row = first.unwrap_or_else(|| self.push_row(at, RowKind::Invalid, None, None, None));
        let items = u32::try_from(items.len()).unwrap_or(u32::MAX);
        self.see_fault(at, row, FrameFault::Batch { items });
        row
    }

    /// Something is wrong with the frame of a row.
    pub(super) fn see_fault(&mut self, at: At, row: RowIdx, fault: FrameFault) {
        let call = self.row(row).and_then(|row| row.call);
        self.see(at, Some(row), call, Sight::Frame { dir: at.dir, fault });
    }

    fn request(&mut self, at: At, said: &Said<'_>) -> RowIdx {
        let method = self.names.intern(said.method.as_deref().unwrap_or_default());
        let target = said.target.as_deref().map(|target| self.names.intern(target));
        let at = self.place_of_request(at, method);
        let era = self.era_of_request(at, said);
        let Some(id) = said.id.clone() else {
            let row = self.push_row(at, RowKind::Request, Some(method), target, None);
            self.set_row_era(row, era);
            return row;
        };
        let idx = CallIdx(u32::try_from(self.calls.len()).unwrap_or(u32::MAX));
        let row = self.push_row(at, RowKind::Request, Some(method), target, Some(idx));
        self.set_row_era(row, era);
        let prior = self.find_call(at.scope, at.dir, &id);
        let prior_token = said.token.as_ref().and_then(|token| self.find_token(at.scope, at.dir, token));
        self.calls.push(Call {
            id,
            sender: at.dir,
            transport: at.transport,
            scope: at.scope,
            stream: at.stream,
            conn: at.conn,
            method,
            target,
            era,
            row,
            started: at.first,
            ended: None,
            state: CallState::Delivered,
            client: ClientView::Waiting,
            server: ServerView::Unknown,
            token: said.token.clone(),
            progress: Progress::default(),
            is_tool_error: false,
            is_task: said.has_task,
            error_code: None,
            status: None,
            cancel_reason: None,
            race: None,
            cancelled_at: None,
            after: After::default(),
            is_injected: false,
            is_resumable: false,
            retry_of: None,
            round_of: None,
            marks: Vec::with_capacity(2),
        });
        self.overview.counts.calls += 1;
        self.overview.counts.open += 1;
        self.index_call(idx, prior);
        if said.token.is_some() {
            self.index_token(idx, prior_token);
        }
        self.open(idx, said);
        if Model::is_retry_worth(method) {
            self.link(idx, said.fingerprint, said.request_state, said.has_input_responses);
        }
        self.mark(idx, MarkKind::Sent, at.first, row);
        if at.dir == Dir::C2s {
            self.note_client(at.scope, said);
        }
        self.see(at, Some(row), Some(idx), Sight::Request);
        if let Some(other) = prior {
            let is_open = self.state_of(other).is_some_and(|state| !state.is_terminal());
            let sight = if is_open { Sight::IdInFlight { other } } else { Sight::IdAgain { earlier: other } };
            self.see(at, Some(row), Some(idx), sight);
        }
        if let Some(other) = prior_token
            && self.state_of(other).is_some_and(|state| !state.is_terminal())
        {
            self.see(at, Some(row), Some(idx), Sight::TokenInFlight { other });
        }
        row
    }

    /// Enters a new call where open calls are kept.
    fn open(&mut self, idx: CallIdx, said: &Said<'_>) {
        let Some(call) = self.calls.get(idx.0 as usize) else { return };
        let (method, stream, sender) = (call.method, call.stream, call.sender);
        if let Some(scope) = self.scopes.get_mut(call.scope.0 as usize) {
            let is_quick = scope.is_quick(method);
            scope.open.insert(idx, Open { fingerprint: said.fingerprint, is_quick });
            if method == Name::LISTEN && sender == Dir::C2s {
                scope.listens.insert(idx, Listen { asked: said.kinds, messages: 0 });
            }
        }
        if let (Some(stream), Dir::C2s) = (stream, sender) {
            self.http.add_call(stream, idx);
        }
    }

    /// An HTTP `initialize` outside a session begins one.
    fn place_of_request(&mut self, at: At, method: Name) -> At {
        let begins = method == Name::INITIALIZE
            && at.transport == Transport::Http
            && at.scope == ScopeIdx(0)
            && at.dir == Dir::C2s;
        if !begins {
            return at;
        }
        let scope = self.new_scope(Transport::Http, at.first);
        if let Some(stream) = at.stream {
            self.http.set_scope(stream, scope);
        }
        At { scope, ..at }
    }

    /// protocol.md section 10: header, `_meta`, then what `initialize` settled.
    fn era_of_request(&mut self, at: At, said: &Said<'_>) -> Option<Era> {
        let named = at.era.or_else(|| said.era());
        let is_modern = named.is_some_and(Era::is_modern) || (named.is_none() && said.has_meta_version);
        let forced = self.era;
        let scope = self.scope_mut(at.scope)?;
        scope.has_modern |= is_modern;
        scope.has_legacy |= named.is_some_and(|era| !era.is_modern());
        forced.or(named).or(scope.negotiated)
    }

    fn note_client(&mut self, scope: ScopeIdx, said: &Said<'_>) {
        let Some((name, version)) = &said.peer else { return };
        let peer = Peer { name: self.names.intern(name), version: self.names.intern(version) };
        if let Some(scope) = self.scope_mut(scope) {
            scope.client = Some(peer);
        }
    }

    /// The latest call with this id of this sender.
    pub(super) fn find_call(&self, scope: ScopeIdx, sender: Dir, id: &Id) -> Option<CallIdx> {
        let hash = self.hasher.hash_one((scope, sender, id));
        let is_it = |idx: &CallIdx| {
            self.call(*idx).is_some_and(|call| call.scope == scope && call.sender == sender && call.id == *id)
        };
        self.by_id.find(hash, is_it).copied()
    }

    fn find_token(&self, scope: ScopeIdx, sender: Dir, token: &Id) -> Option<CallIdx> {
        let hash = self.hasher.hash_one((scope, sender, token));
        let is_it = |idx: &CallIdx| {
            self.call(*idx).is_some_and(|call| {
                call.scope == scope && call.sender == sender && call.token.as_ref() == Some(token)
            })
        };
        self.by_token.find(hash, is_it).copied()
    }

    /// Makes `idx` the call of its id, in the place of `prior`.
    fn index_call(&mut self, idx: CallIdx, prior: Option<CallIdx>) {
        let Model { calls, hasher, by_id, .. } = self;
        let hash_of = |idx: &CallIdx| match calls.get(idx.0 as usize) {
            Some(call) => hasher.hash_one((call.scope, call.sender, &call.id)),
            None => 0,
        };
        let hash = hash_of(&idx);
        match prior.and_then(|prior| by_id.find_mut(hash, |known| *known == prior)) {
            Some(known) => *known = idx,
            None => {
                by_id.insert_unique(hash, idx, hash_of);
            }
        }
    }

    /// Makes `idx` the call of its token, in the place of `prior`.
    fn index_token(&mut self, idx: CallIdx, prior: Option<CallIdx>) {
        let Model { calls, hasher, by_token, .. } = self;
        let hash_of = |idx: &CallIdx| match calls.get(idx.0 as usize) {
            Some(call) => {
                call.token.as_ref().map_or(0, |token| hasher.hash_one((call.scope, call.sender, token)))
            }
            None => 0,
        };
        let hash = hash_of(&idx);
        match prior.and_then(|prior| by_token.find_mut(hash, |known| *known == prior)) {
            Some(known) => *known = idx,
            None => {
                by_token.insert_unique(hash, idx, hash_of);
            }
        }
    }

    /// A call of the exchange that a message came on, chosen by `is_it`.
    fn find_on_stream(&self, at: At, is_it: impl Fn(&Call) -> bool) -> Option<CallIdx> {
        let calls = self.http.calls_of(at.stream?);
        calls.iter().copied().find(|idx| self.call(*idx).is_some_and(&is_it))
    }

    fn answer(&mut self, at: At, said: &Said<'_>, kind: RowKind) -> RowIdx {
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
            Some(state) if !state.is_terminal() => self.answer_open(at, said, kind, idx, row),
            Some(state) => self.answer_ended(at, idx, row, state),
            None => {}
        }
        row
    }

    fn answer_open(&mut self, at: At, said: &Said<'_>, kind: RowKind, idx: CallIdx, row: RowIdx) {
        let asks_input = said.result_type.as_deref() == Some("input_required");
        let (state, mark) = match kind {
            RowKind::Error => (CallState::AnsweredError, MarkKind::Error),
            _ if asks_input => (CallState::InputRequired, MarkKind::InputRequired),
            _ => (CallState::AnsweredOk, MarkKind::Result),
        };
        if asks_input && let Some(fingerprint) = self.fingerprint(idx) {
            self.rounds.insert(said.request_state.unwrap_or(fingerprint), idx);
        }
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
    }

    /// The result of `initialize` settles the era of its session.
    fn settle(&mut self, idx: CallIdx, scope: ScopeIdx, said: &Said<'_>) {
        let era = said.era();
        if let Some(scope) = self.scope_mut(scope) {
            scope.negotiated = era;
        }
        if let Some(call) = self.call_mut(idx) {
            call.era = era.or(call.era);
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
            CallState::CancelledByClient | CallState::AbandonedByDisconnect => {
                self.answer_cancelled(at, idx, row);
            }
            CallState::AnsweredOk | CallState::AnsweredError | CallState::InputRequired => {
                let Some(call) = self.call_mut(idx) else { return };
                // A subscription may be ended by a cancel and a closing result, one after the other.
                let closes_listen = call.method == Name::LISTEN && call.server == ServerView::Cancelled;
                let stream = call.stream;
                if closes_listen {
                    call.server = ServerView::Completed;
                    self.mark(idx, MarkKind::Result, at.now, row);
                    return;
                }
                call.after.duplicate_answers += 1;
                self.mark(idx, MarkKind::Late, at.now, row);
                let is_same_channel = at.transport == Transport::Stdio || stream == at.stream;
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

    /// An answer after the client's cancel: crossed it, or late.
    fn answer_cancelled(&mut self, at: At, idx: CallIdx, row: RowIdx) {
        let (margin_ns, window_ns, has_witness) = self.margin(at, idx);
        let is_late = has_witness || margin_ns > window_ns;
        let is_first = self.call(idx).is_some_and(|call| call.after.late_answers == 0);
        if let Some(call) = self.call_mut(idx) {
            call.after.late_answers += 1;
            call.server = ServerView::Completed;
            if is_first {
                call.race = Some(if is_late { Race::Late } else { Race::Crossed });
            }
        }
        if is_first && is_late {
            self.overview.counts.late += 1;
        }
        self.mark(idx, MarkKind::Late, at.now, row);
        let sight = Sight::AnswerAfterCancel { margin_ns, window_ns, has_witness };
        self.see(at, Some(row), Some(idx), sight);
    }

    /// How long after the cancel of a call something passed, the window, and whether a witness
    /// proves that the server had read the cancel.
    fn margin(&self, at: At, idx: CallIdx) -> (u64, u64, bool) {
        let Some(call) = self.call(idx) else { return (0, u64::MAX, false) };
        let margin_ns = call.cancelled_at.map_or(0, |cancelled| at.first.ns_since(cancelled));
        let scope = self.scope(call.scope);
        let window_ns = scope.map_or(u64::MAX, super::Scope::window_ns);
        let cancel_row = call.marks.iter().find(|mark| mark.kind == MarkKind::Cancel).map(|mark| mark.row);
        let has_witness = call.transport == Transport::Stdio
            && call.sender == Dir::C2s
            && cancel_row.is_some_and(|cancel| scope.is_some_and(|scope| scope.witness > Some(cancel)));
        (margin_ns, window_ns, has_witness)
    }

    /// An answer that no request asked for.
    fn stray_answer(&mut self, at: At, said: &Said<'_>, kind: RowKind, sender: Dir) -> RowIdx {
        let detail = said.message.as_deref().and_then(|text| self.names.detail(text));
        let Some(id) = &said.id else {
            let row = self.push_row(at, kind, None, detail, None);
            self.see(at, Some(row), None, Sight::AnswerNoId);
            return row;
        };
        let other = other_type(id);
        let meant = other.and_then(|other| {
            self.find_on_stream(at, |call| call.sender == sender && call.id == other)
                .or_else(|| self.find_call(at.scope, sender, &other))
                .filter(|idx| self.state_of(*idx).is_some_and(|state| !state.is_terminal()))
        });
        let row = self.push_row(at, kind, None, detail, meant);
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

    fn notification(&mut self, at: At, said: &Said<'_>) -> RowIdx {
        let name = said.method.as_deref().unwrap_or_default();
        let method = self.names.intern(name);
        match name {
            "notifications/progress" => self.progress(at, said, method),
            "notifications/cancelled" => self.cancel(at, said, method),
            _ => self.other_notification(at, said, method),
        }
    }

    fn progress(&mut self, at: At, said: &Said<'_>, method: Name) -> RowIdx {
        let sender = opposite(at.dir);
        let found = said.token.as_ref().and_then(|token| {
            self.find_on_stream(at, |call| call.sender == sender && call.token.as_ref() == Some(token))
                .or_else(|| self.find_token(at.scope, sender, token))
        });
        let era = found.and_then(|idx| self.call(idx)).map_or_else(|| self.channel_era(at), |call| call.era);
        let detail = said.progress.and_then(|now| self.names.detail(&progress_text(now, said.total)));
        let row = self.push_row(at, RowKind::Progress, Some(method), detail, found);
        self.set_row_era(row, era);
        let Some(idx) = found else {
            self.see(at, Some(row), None, Sight::ProgressUnknown { token: said.token.clone() });
            return row;
        };
        let Some(call) = self.call(idx) else { return row };
        if at.stream.is_some() && at.stream != call.stream && at.dir == Dir::S2c {
            let stream_of = self.find_on_stream(at, |_| true);
            self.see(at, Some(row), found, Sight::ProgressElsewhere { stream_of });
            if era.is_some_and(Era::is_modern) {
                self.mark(idx, MarkKind::Progress, at.now, row);
                return row;
            }
        }
        match self.state_of(idx) {
            Some(state) if !state.is_terminal() => self.progress_open(at, said, idx, row),
            Some(CallState::CancelledByClient | CallState::AbandonedByDisconnect) => {
                let (margin_ns, window_ns, has_witness) = self.margin(at, idx);
                self.progress_late(at, idx, row);
                let sight = Sight::ProgressAfterCancel { margin_ns, window_ns, has_witness };
                self.see(at, Some(row), found, sight);
            }
            Some(CallState::AnsweredOk | CallState::AnsweredError | CallState::InputRequired) => {
                self.progress_late(at, idx, row);
                let is_same_channel = at.transport == Transport::Stdio
                    || self.call(idx).is_some_and(|call| call.stream == at.stream);
                if is_same_channel && !at.is_replay {
                    self.see(at, Some(row), found, Sight::ProgressAfterAnswer);
                }
            }
            _ => self.progress_late(at, idx, row),
        }
        row
    }

    fn progress_late(&mut self, at: At, idx: CallIdx, row: RowIdx) {
        if let Some(call) = self.call_mut(idx) {
            call.after.late_progress += 1;
        }
        self.mark(idx, MarkKind::Late, at.now, row);
    }

    fn progress_open(&mut self, at: At, said: &Said<'_>, idx: CallIdx, row: RowIdx) {
        self.mark(idx, MarkKind::Progress, at.now, row);
        let Some(call) = self.call_mut(idx) else { return };
        let Some(now) = said.progress else { return };
        let progress = &mut call.progress;
        if let Some(last) = progress.last.filter(|last| now <= *last) {
            progress.rejected += 1;
            if !at.is_replay {
                self.see(at, Some(row), Some(idx), Sight::ProgressStuck { last, now });
            }
            return;
        }
        progress.count += 1;
        progress.last = Some(now);
        progress.total = said.total.or(progress.total);
        progress.first_at.get_or_insert(at.now);
        progress.last_at = Some(at.now);
        call.state = CallState::Progressing;
        call.server = ServerView::Working;
        self.see(at, Some(row), Some(idx), Sight::Progress);
    }

    fn cancel(&mut self, at: At, said: &Said<'_>, method: Name) -> RowIdx {
        let named = said.request_id.as_ref();
        let found = named.and_then(|id| self.find_call(at.scope, at.dir, id));
        // A modern server's cancel names the client's listen.
        let by_server = match (found, at.dir, named) {
            (None, Dir::S2c, Some(id)) => self.find_call(at.scope, Dir::C2s, id),
            _ => None,
        };
        let meant = found.or(by_server);
        let era =
            at.era.or_else(|| meant.and_then(|idx| self.call(idx)?.era)).or_else(|| self.channel_era(at));
        let detail = said.reason.as_deref().and_then(|text| self.names.detail(text));
        let row = self.push_row(at, RowKind::Cancelled, Some(method), detail, meant);
        self.set_row_era(row, era);
        if by_server.is_some() {
            self.cancel_by_server(at, by_server, row);
            return row;
        }
        let Some(idx) = found else {
            self.stray_cancel(at, named, row);
            return row;
        };
        let is_open = self.state_of(idx).is_some_and(|state| !state.is_terminal());
        self.mark(idx, MarkKind::Cancel, at.now, row);
        if !is_open {
            if let Some(call) = self.call_mut(idx) {
                call.after.late_cancels += 1;
                if !call.state.is_unanswered() {
                    call.race.get_or_insert(Race::CompleteWon);
                }
            }
            self.see(at, Some(row), found, Sight::CancelAfterEnd);
            return row;
        }
        // In the modern era the signal on HTTP is the closed stream; a posted cancel says what the
        // client wants and binds nobody.
        let is_signal = at.transport == Transport::Stdio || !era.is_some_and(Era::is_modern);
        if let Some(call) = self.call_mut(idx) {
            call.client = ClientView::Abandoned;
            call.cancel_reason = detail;
            if is_signal {
                call.cancelled_at = Some(at.out.unwrap_or(at.now));
            }
        }
        if is_signal {
            self.finish(idx, CallState::CancelledByClient, at.now);
        }
        self.see(at, Some(row), found, Sight::Cancel);
        row
    }

    /// A server takes back its listen, or (a fault) another of the client's requests.
    fn cancel_by_server(&mut self, at: At, found: Option<CallIdx>, row: RowIdx) {
        let Some(idx) = found else { return };
        self.mark(idx, MarkKind::Cancel, at.now, row);
        if let Some(call) = self.call_mut(idx)
            && call.method == Name::LISTEN
            && !call.state.is_terminal()
        {
            call.client = ClientView::Answered;
            call.server = ServerView::Cancelled;
            self.finish(idx, CallState::AnsweredOk, at.now);
        }
        self.see(at, Some(row), found, Sight::CancelByServer);
    }

    fn stray_cancel(&mut self, at: At, named: Option<&Id>, row: RowIdx) {
        let Some(id) = named else {
            self.see(at, Some(row), None, Sight::CancelUnknown { id: None, is_of_other_side: false });
            return;
        };
        let meant = other_type(id)
            .and_then(|other| self.find_call(at.scope, at.dir, &other))
            .filter(|idx| self.state_of(*idx).is_some_and(|state| !state.is_terminal()));
        if meant.is_some() {
            self.see(at, Some(row), meant, Sight::CancelOtherType { id: id.clone() });
            return;
        }
        let is_of_other_side = self.find_call(at.scope, opposite(at.dir), id).is_some();
        self.see(at, Some(row), None, Sight::CancelUnknown { id: Some(id.clone()), is_of_other_side });
    }

    fn other_notification(&mut self, at: At, said: &Said<'_>, method: Name) -> RowIdx {
        let by_tag = said.subscription.as_ref().and_then(|id| {
            self.find_on_stream(at, |call| call.id == *id && call.method == Name::LISTEN)
                .or_else(|| self.find_call(at.scope, Dir::C2s, id))
        });
        let on_stream = || match at.dir {
            Dir::S2c => self.find_on_stream(at, |_| true),
            _ => None,
        };
        let found = by_tag.or_else(on_stream);
        let named = at.era.or_else(|| said.era());
        let era = match (named, found.and_then(|idx| self.call(idx)?.era)) {
            (Some(era), _) | (None, Some(era)) => Some(era),
            (None, None) if said.subscription.is_some() => Some(Era::V2026_07_28),
            (None, None) => self.channel_era(at),
        };
        let detail = said.target.as_deref().and_then(|text| self.names.detail(text));
        let row = self.push_row(at, RowKind::Notification, Some(method), detail, found);
        self.set_row_era(row, era);
        let name = said.method.as_deref().unwrap_or_default();
        let is_acknowledgement = name == "notifications/subscriptions/acknowledged";
        if let Some(idx) = found {
            let kind = if is_acknowledgement { MarkKind::Acknowledged } else { MarkKind::Notification };
            self.mark(idx, kind, at.now, row);
        }
        self.see(at, Some(row), found, Sight::Notification);
        match (&said.subscription, by_tag) {
            (Some(_), Some(idx)) => {
                let Some(listen) = self.scope_mut(at.scope).and_then(|scope| scope.listens.get_mut(&idx))
                else {
                    return row;
                };
                let nth = listen.messages;
                listen.messages += 1;
                let was_asked = listen.asked.allows(name);
                let sight = Sight::Subscription { nth, is_acknowledgement, was_asked };
                self.see(at, Some(row), by_tag, sight);
            }
            (Some(id), None) => {
                self.see(at, Some(row), None, Sight::SubscriptionUnknown { id: id.clone() });
            }
            (None, _) => {}
        }
        row
    }

    /// The era of a message that belongs to no request.
    fn channel_era(&self, at: At) -> Option<Era> {
        at.era.or_else(|| self.scope(at.scope).and_then(super::Scope::channel_era))
    }
}

/// The other side.
fn opposite(dir: Dir) -> Dir {
    if dir == Dir::C2s { Dir::S2c } else { Dir::C2s }
}

/// The id that a sloppy peer could have meant: `7` for `"7"` and the reverse.
fn other_type(id: &Id) -> Option<Id> {
    match id {
        Id::Int(digits) => Some(Id::Str(digits.clone())),
        Id::Str(text) => Id::from_raw(text).filter(|id| matches!(id, Id::Int(_))),
    }
}

fn progress_text(now: f64, total: Option<f64>) -> String {
    match total {
        Some(total) => format!("{now} of {total}"),
        None => now.to_string(),
    }
}

fn envelope_fault(fault: &EnvelopeFault, is_notification: bool) -> Option<FrameFault> {
    Some(match fault {
        EnvelopeFault::BadVersion => FrameFault::BadVersion,
        EnvelopeFault::NoKind | EnvelopeFault::MethodNotString => FrameFault::NoKind,
        EnvelopeFault::ResultAndError => FrameFault::ResultAndError,
        // Told as a notification with an id.
        EnvelopeFault::BadId(_) if is_notification => return None,
        EnvelopeFault::BadId(raw) => FrameFault::BadId(raw.clone()),
        EnvelopeFault::DuplicateMember(name) => FrameFault::DuplicateMember(name.clone()),
        EnvelopeFault::OverLimit(_) => FrameFault::OverLimit,
    })
}

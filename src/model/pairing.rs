//! Messages find their call: requests here, answers and notifications in rooms of their own.

mod answer;
mod index;
mod notify;

use super::call::{After, Call, CallIdx, CallState, ClientView, MarkKind, Progress, ServerView};
use super::content::{Content, Message};
use super::fold::At;
use super::message::Said;
use super::reading::Part;
use super::row::{RowIdx, RowKind};
use super::scope::{Open, Peer, ScopeIdx};
use super::seen::{FrameFault, Sight};
use super::{Model, Name};
use crate::event::{Dir, Transport};
use crate::spec::era::Era;
use crate::wire::jsonrpc::{EnvelopeFault, Id, Kind};

use std::hash::BuildHasher;

pub(super) use index::CallIndex;

impl Model {
    /// One message: its row, its call, and what is wrong with it. Returns the row.
    pub(super) fn message(&mut self, at: At, part: Part) -> RowIdx {
        let said = Said::read(&part, &self.hasher);
        let content = part.content.as_ref();
        let is_notification = part.kind() == Kind::Notification
            || said.method.as_deref().is_some_and(|method| method.starts_with("notifications/"));
        let row = match part.kind() {
            Kind::Request | Kind::Notification if is_notification => self.notification(at, &said, content),
            Kind::Request => self.request(at, &said, content),
            Kind::Result => self.answer(at, &said, RowKind::Result, content),
            Kind::Error => self.answer(at, &said, RowKind::Error, content),
            Kind::Notification | Kind::Invalid => self.push_row(at, RowKind::Invalid, None, None, None),
        };
        if is_notification && part.kind() == Kind::Request {
            self.see_fault(at, row, FrameFault::NotificationWithId);
        }
        for fault in &part.shape.faults {
            if let Some(fault) = envelope_fault(fault, is_notification) {
                self.see_fault(at, row, fault);
            }
        }
        if said.has_odd_body {
            let fault = match part.kind() {
                Kind::Result => FrameFault::ResultNotObject,
                Kind::Error => FrameFault::BadError,
                _ => FrameFault::ParamsNotObject,
            };
            self.see_fault(at, row, fault);
        } else if part.kind() == Kind::Error && (said.code.is_none() || said.message.is_none()) {
            self.see_fault(at, row, FrameFault::BadError);
        }
        let kind = if is_notification { Kind::Notification } else { part.kind() };
        let (method, call) = self.row(row).map_or((None, None), |row| (row.method, row.call));
        self.note_handshake(at, kind, method, call, &said);
        if let Some(content) = content {
            self.note_capabilities(kind, call, content);
            self.note_lists(at, kind, row, content);
        }
        self.messages.push(Message { row, kind, method, content: part.content });
        // An HTTP initialize begins the session that it belongs to.
        let at = At { scope: call.and_then(|idx| self.call(idx)).map_or(at.scope, |call| call.scope), ..at };
        self.note_task(at, row, call);
        self.see(at, Some(row), call, Sight::Message);
        row
    }

    /// A JSON array of messages. Returns the row of the first.
    pub(super) fn batch(&mut self, at: At, parts: Vec<Part>) -> RowIdx {
        let items = u32::try_from(parts.len()).unwrap_or(u32::MAX);
        let mut first = None;
        for part in parts {
            let row = self.message(at, part);
            first.get_or_insert(row);
        }
        let row = first.unwrap_or_else(|| self.push_row(at, RowKind::Invalid, None, None, None));
        self.see_fault(at, row, FrameFault::Batch { items });
        row
    }

    /// Something is wrong with the frame of a row.
    pub(super) fn see_fault(&mut self, at: At, row: RowIdx, fault: FrameFault) {
        let call = self.row(row).and_then(|row| row.call);
        self.see(at, Some(row), call, Sight::Frame { dir: at.dir, fault });
    }

    fn request(&mut self, at: At, said: &Said<'_>, content: Option<&Content>) -> RowIdx {
        let method = self.names.intern(said.method.as_deref().unwrap_or_default());
        let target = said.target.as_deref().map(|target| self.names.intern(target));
        let at = self.place_of_request(at, method);
        let era = self.era_of_request(at, method, said);
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
            logs: said.logs,
            progress: Progress::default(),
            is_tool_error: false,
            is_task: said.has_task,
            error_code: None,
            status: None,
            heard: at.first,
            cancel_reason: None,
            race: None,
            told: None,
            after: After::default(),
            is_injected: self.is_felt_by_all(),
            is_resumable: false,
            retry_of: None,
            round_of: None,
            marks: smallvec::SmallVec::new(),
        });
        self.overview.counts.calls += 1;
        self.overview.counts.open += 1;
        self.index_call(idx, prior);
        if said.token.is_some() {
            self.index_token(idx, prior_token);
        }
        self.open(idx, said, content.cloned());
        if Model::is_retry_worth(method) {
            self.link(idx, said, content);
        }
        self.mark(idx, MarkKind::Sent, at.first, row);
        if at.dir == Dir::C2s {
            self.note_client(at.scope, said);
            self.note_return(at, said, idx);
            if method == Name::LISTEN {
                self.listen(at, said, idx, content);
            }
        }
        self.see(at, Some(row), Some(idx), Sight::Request);
        self.see_given(at, row, said, idx);
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
    fn open(&mut self, idx: CallIdx, said: &Said<'_>, request: Option<Content>) {
        let Some(call) = self.calls.get(idx.0 as usize) else { return };
        let (method, stream, sender) = (call.method, call.stream, call.sender);
        if let Some(scope) = self.scopes.get_mut(call.scope.0 as usize) {
            let is_quick = scope.is_quick(method);
            scope.open.insert(idx, Open { fingerprint: said.fingerprint, is_quick, request });
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

    /// docs/semantics.md, eras: header, `_meta`, then what `initialize` settled, then the channel.
    fn era_of_request(&mut self, at: At, method: Name, said: &Said<'_>) -> Option<Era> {
        let named = at.era.or_else(|| said.era());
        let begins = method == Name::INITIALIZE && at.dir == Dir::C2s;
        let forced = self.era;
        let scope = self.scope_mut(at.scope)?;
        scope.has_modern |= named.is_some_and(Era::is_modern);
        scope.has_legacy |= begins || named.is_some_and(|era| !era.is_modern());
        // HTTP requests without a session may be of several clients, each with an era of its own.
        let of_channel = !begins && (at.dir == Dir::S2c || at.transport == Transport::Stdio);
        let settled = if at.dir == Dir::S2c { None } else { scope.negotiated };
        let settled = settled.or_else(|| scope.channel_era().filter(|_| of_channel));
        forced.or(named).or(settled)
    }

    fn note_client(&mut self, scope: ScopeIdx, said: &Said<'_>) {
        let Some((name, version)) = &said.peer else { return };
        let peer = Peer { name: self.names.intern(name), version: self.names.intern(version) };
        if let Some(scope) = self.scope_mut(scope) {
            scope.client = Some(peer);
        }
    }

    /// The latest call with this id of this sender.
    #[must_use]
    pub fn find_call(&self, scope: ScopeIdx, sender: Dir, id: &Id) -> Option<CallIdx> {
        let is_it = |call: &Call| call.scope == scope && call.sender == sender && call.id == *id;
        let hash = self.hasher.hash_one((scope, sender, id));
        self.by_id.find(hash, |idx| self.call(idx).is_some_and(is_it))
    }

    fn find_token(&self, scope: ScopeIdx, sender: Dir, token: &Id) -> Option<CallIdx> {
        let is_it =
            |call: &Call| call.scope == scope && call.sender == sender && call.token.as_ref() == Some(token);
        let hash = self.hasher.hash_one((scope, sender, token));
        self.by_token.find(hash, |idx| self.call(idx).is_some_and(is_it))
    }

    /// Makes `idx` the call of its id, in the place of `prior`.
    fn index_call(&mut self, idx: CallIdx, prior: Option<CallIdx>) {
        let Some(call) = self.calls.get(idx.0 as usize) else { return };
        self.by_id.set(self.hasher.hash_one((call.scope, call.sender, &call.id)), idx, prior);
    }

    /// Makes `idx` the call of its token, in the place of `prior`.
    fn index_token(&mut self, idx: CallIdx, prior: Option<CallIdx>) {
        let Some(call) = self.calls.get(idx.0 as usize) else { return };
        let Some(token) = &call.token else { return };
        self.by_token.set(self.hasher.hash_one((call.scope, call.sender, token)), idx, prior);
    }

    /// A call of the exchange that a message came on, chosen by `is_it`.
    pub(super) fn find_on_stream(&self, at: At, is_it: impl Fn(&Call) -> bool) -> Option<CallIdx> {
        let calls = self.http.calls_of(at.stream?);
        calls.iter().copied().find(|idx| self.call(*idx).is_some_and(&is_it))
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
pub(super) fn other_type(id: &Id) -> Option<Id> {
    match id {
        Id::Int(digits) => Some(Id::Str(digits.clone())),
        Id::Str(text) => Id::from_raw(text).filter(|id| matches!(id, Id::Int(_))),
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

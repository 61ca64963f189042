//! The calls that are open in the path, and the latest that have ended: what a cancel or a retry
//! needs to know.

use std::collections::VecDeque;

use bytes::Bytes;

use super::message::{Message, Place};
use crate::event::{Dir, Transport};
use crate::spec::era::Era;
use crate::wire::jsonrpc::{Id, Kind};

/// Ended calls that are kept for a retry. ours: as many as a person looks back over.
const ENDED_LIMIT: usize = 64;

/// Bytes of a request that are kept for a retry. ours: a longer one is not retried.
const TEXT_LIMIT_BYTES: usize = 1 << 20;

/// A request on its way.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenCall {
    /// Who asked.
    pub sender: Dir,
    /// Its id.
    pub id: Id,
    /// Its method.
    pub method: String,
    /// What it is about.
    pub target: Option<String>,
    /// Its progress token.
    pub token: Option<Id>,
    /// The revision that it names.
    pub era: Option<Era>,
    /// How the peers are joined.
    pub transport: Transport,
    /// HTTP: its exchange.
    pub stream: Option<u64>,
    /// HTTP: its connection.
    pub conn: Option<u64>,
    /// The request, without a line ending; `None`: too long to be kept.
    pub text: Option<Bytes>,
    /// Progress that came for it.
    pub progress: u64,
    /// A cancel for it has passed.
    pub is_cancelled: bool,
    /// midwire sent it; its answer goes to nobody else.
    pub is_ours: bool,
}

/// All that is open, oldest first, and what ended lately.
#[derive(Debug, Default)]
pub struct Book {
    open: Vec<OpenCall>,
    ended: VecDeque<OpenCall>,
    /// The latest revision that was named on this path.
    era: Option<Era>,
    /// Ids of integers and the highest of them, so that a fresh one is above all.
    highest: i64,
}

impl Book {
    /// Takes a message in, before its end is noted. Returns the call that it belongs to.
    pub fn note(&mut self, place: Place, message: &Message) -> Option<&OpenCall> {
        if let Some(era) = message.era.or(place.era) {
            self.era = Some(era);
        }
        if let (Some(Id::Int(digits)), Kind::Request) = (&message.id, message.kind)
            && let Ok(number) = digits.parse::<i64>()
        {
            self.highest = self.highest.max(number);
        }
        if let (Kind::Request, Some(id), Some(method)) = (message.kind, &message.id, &message.method) {
            let era = message.era.or(place.era).or(self.era);
            self.open.push(OpenCall {
                sender: place.dir,
                id: id.clone(),
                method: method.clone(),
                target: message.target.clone(),
                token: message.token.clone(),
                era,
                transport: place.transport,
                stream: place.stream,
                conn: place.conn,
                text: (message.text.len() <= TEXT_LIMIT_BYTES).then(|| message.text.clone()),
                progress: 0,
                is_cancelled: false,
                is_ours: false,
            });
            return self.open.last();
        }
        let at = self.place_of(place, message)?;
        let call = self.open.get_mut(at)?;
        if message.cancels.is_some() {
            call.is_cancelled = true;
        } else if message.token.is_some() {
            call.progress += 1;
        }
        self.open.get(at)
    }

    /// The open call that an answer, progress or a cancel belongs to; `None` for a request.
    #[must_use]
    pub fn call_of(&self, place: Place, message: &Message) -> Option<&OpenCall> {
        if message.kind == Kind::Request {
            return None;
        }
        self.place_of(place, message).and_then(|at| self.open.get(at))
    }

    /// The call that an answer, progress or cancel belongs to.
    fn place_of(&self, place: Place, message: &Message) -> Option<usize> {
        let is_here = |call: &OpenCall| place.stream.is_none() || call.stream == place.stream;
        let pick = |picks: &dyn Fn(&OpenCall) -> bool| {
            let here = self.open.iter().rposition(|call| is_here(call) && picks(call));
            here.or_else(|| self.open.iter().rposition(picks))
        };
        if message.is_final() {
            let id = message.id.as_ref()?;
            return pick(&|call| call.sender != place.dir && call.id == *id);
        }
        if let Some(id) = &message.cancels {
            return pick(&|call| call.sender == place.dir && call.id == *id);
        }
        let token = message.token.as_ref()?;
        pick(&|call| call.sender != place.dir && call.token.as_ref() == Some(token))
    }

    /// The call that a final answer has ended is open no longer.
    pub fn end(&mut self, place: Place, message: &Message) {
        if message.is_final()
            && let Some(at) = self.place_of(place, message)
        {
            let call = self.open.remove(at);
            self.remember(call);
        }
    }

    /// The exchange is over, with or without an answer.
    pub fn end_stream(&mut self, stream: u64) {
        while let Some(at) = self.open.iter().position(|call| call.stream == Some(stream)) {
            let call = self.open.remove(at);
            self.remember(call);
        }
    }

    /// The process is over, and all that it owed.
    pub fn end_all(&mut self) {
        for call in std::mem::take(&mut self.open) {
            self.remember(call);
        }
    }

    fn remember(&mut self, call: OpenCall) {
        if self.ended.len() == ENDED_LIMIT {
            self.ended.pop_front();
        }
        self.ended.push_back(call);
    }

    /// Calls that were open before anything was noted here, oldest first; one that is known already
    /// is left out.
    pub fn seed(&mut self, calls: Vec<OpenCall>) {
        let is_known = |call: &OpenCall| {
            let is_same = |other: &OpenCall| {
                other.sender == call.sender && other.id == call.id && other.stream == call.stream
            };
            self.open.iter().any(is_same) || self.ended.iter().any(is_same)
        };
        let mut earlier: Vec<OpenCall> = calls.into_iter().filter(|call| !is_known(call)).collect();
        self.era = self.era.or(earlier.iter().rev().find_map(|call| call.era));
        earlier.append(&mut self.open);
        self.open = earlier;
    }

    /// Marks a call as sent by midwire: its answer goes to nobody else.
    pub fn mark_ours(&mut self, id: &Id) {
        if let Some(call) = self.open.iter_mut().rev().find(|call| call.id == *id) {
            call.is_ours = true;
        }
    }

    /// Calls that wait for an answer, oldest first.
    #[must_use]
    pub fn open(&self) -> &[OpenCall] {
        &self.open
    }

    /// Open calls and then ended ones, the newest of each first.
    pub fn newest_first(&self) -> impl Iterator<Item = &OpenCall> {
        self.open.iter().rev().chain(self.ended.iter().rev())
    }

    /// An id that no request of either side has had on this path, and none of the client's will
    /// have soon. // ours: a string, since clients count in integers
    #[must_use]
    pub fn fresh_id(&self, number: u64) -> Id {
        Id::Str(format!("midwire-{}-{number}", self.highest).into())
    }

    /// The latest revision that was named.
    #[must_use]
    pub fn era(&self) -> Option<Era> {
        self.era
    }
}

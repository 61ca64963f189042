//! Sorting events: what is a piece of a stream, what is a row of its own.

use super::call::{Call, CallIdx, CallState, Mark, MarkKind};
use super::flow::Whose;
use super::overview::Capture;
use super::row::{Row, RowIdx, RowKind, Source};
use super::scope::ScopeIdx;
use super::seen::{Seen, Sight};
use super::{Model, Name};
use crate::event::{Close, Dir, Event, Transport, What};
use crate::spec::era::Era;
use crate::time::Mono;

/// Where and when something passed.
#[derive(Debug, Clone, Copy)]
pub(super) struct At {
    /// Causal number of the event that completed it.
    pub n: u64,
    /// When its first byte was read.
    pub first: Mono,
    /// When its last byte was read.
    pub now: Mono,
    /// When its last byte had been handed on.
    pub out: Option<Mono>,
    pub dir: Dir,
    pub transport: Transport,
    pub stream: Option<u64>,
    pub conn: Option<u64>,
    pub scope: ScopeIdx,
    pub source: Source,
    /// The era that the HTTP header of its exchange names.
    pub era: Option<Era>,
    /// It came on a stream that took up an earlier one by event id, so it may be told twice.
    pub is_replay: bool,
    /// midwire sent it.
    pub is_ours: bool,
}

impl At {
    /// A whole event, with no bytes of its own.
    pub(super) fn event(event: &Event, idx: u32, scope: ScopeIdx) -> At {
        At {
            n: event.n,
            first: event.at,
            now: event.at,
            out: event.out,
            dir: event.dir,
            transport: event.transport,
            stream: event.stream,
            conn: event.conn,
            scope,
            source: Source { first: idx, last: idx, ..Source::default() },
            era: None,
            is_replay: false,
            is_ours: false,
        }
    }

    /// The same, for a frame cut from a stream.
    pub(super) fn frame(self, source: Source, first: Mono) -> At {
        At { first, source, ..self }
    }
}

impl Model {
    /// Takes the next event. O(1) amortised. `event_idx` is the event's position in the
    /// recording, from 0, which rows point back to.
    pub fn fold(&mut self, event: &Event, event_idx: u32) {
        self.forget_last();
        self.overview.note(event);
        match &event.what {
            What::Bytes { bytes, .. } => self.stdio_bytes(event, event_idx, bytes),
            What::Spawn { pid, command } => self.stdio_spawn(event, event_idx, *pid, command),
            What::Signal { signal, why } => self.stdio_signal(event, event_idx, signal, why),
            What::Request(head) => self.http_request(event, event_idx, head),
            What::ResponseHead { status, headers } => {
                self.http_response_head(event, event_idx, *status, headers);
            }
            What::SseChunk(bytes) => self.http_body(event, event_idx, bytes, true),
            What::Body(bytes) if event.dir == Dir::C2s => self.http_request_body(event, event_idx, bytes),
            What::Body(bytes) => self.http_body(event, event_idx, bytes, false),
            What::ClientClosed { how } => match event.transport {
                Transport::Stdio => self.stdio_client_closed(event, event_idx),
                Transport::Http => self.http_client_closed(event, event_idx, *how),
            },
            What::ServerClosed { how, exit_code, signal } => match event.transport {
                Transport::Stdio => self.stdio_server_closed(event, event_idx, *exit_code, *signal),
                Transport::Http => self.http_server_closed(event, event_idx, *how),
            },
            What::CaptureEnd { complete, .. } => self.capture_end(event, event_idx, *complete),
            What::Telemetry(text) => {
                let at = At::event(event, event_idx, self.scope_of_event(event));
                self.telemetry(event, at, text);
            }
            What::Clock { wall } => self.overview.wall = Some((event.at, wall.clone())),
            other => self.note(event, event_idx, other),
        }
    }

    /// The recording stops here without saying so: what is open stays unresolved.
    pub fn cut(&mut self) {
        self.forget_last();
        if self.overview.capture == Capture::Live {
            self.overview.capture = Capture::Cut;
            self.end_all(self.overview.last, None);
        }
    }

    /// What was kept of the event folded before.
    fn forget_last(&mut self) {
        self.seen.clear();
        self.messages.clear();
        self.ended.clear();
        self.http.ended.clear();
    }

    /// Rows of events that belong to no stream.
    fn note(&mut self, event: &Event, idx: u32, what: &What) {
        let scope = self.scope_of_event(event);
        let at = At::event(event, idx, scope);
        match what {
            What::Queue(reading) => {
                let row = self.push_row(at, RowKind::Queue, None, None, None);
                self.flow_queue(at, Whose::Tap, *reading, row);
                row
            }
            What::Inject { what, target, sent, .. } => self.inject(event, at, (what, target), sent.as_ref()),
            What::Gap { lost, bytes, why } => {
                self.overview.is_full = false;
                self.overview.counts.gaps += 1;
                self.overview.counts.gap_events += lost;
                self.overview.counts.gap_bytes += bytes;
                let detail = self.names.detail(why);
                self.push_row(at, RowKind::Gap, None, detail, None)
            }
            What::Mark(text) => {
                let detail = self.names.detail(text);
                self.push_row(at, RowKind::Mark, None, detail, None)
            }
            What::Unknown { event: name } => {
                let detail = self.names.detail(name);
                self.push_row(at, RowKind::Note, None, detail, None)
            }
            _ => self.push_row(at, RowKind::Note, None, None, None),
        };
    }

    fn scope_of_event(&self, event: &Event) -> ScopeIdx {
        match (event.transport, event.stream) {
            (Transport::Stdio, _) => self.stdio.scope.unwrap_or(ScopeIdx(0)),
            (Transport::Http, Some(stream)) => self.http.scope_of(stream),
            (Transport::Http, None) => ScopeIdx(0),
        }
    }

    /// Adds a row.
    pub(super) fn push_row(
        &mut self,
        at: At,
        kind: RowKind,
        method: Option<Name>,
        detail: Option<Name>,
        call: Option<CallIdx>,
    ) -> RowIdx {
        let idx = RowIdx(u32::try_from(self.rows.len()).unwrap_or(u32::MAX));
        if kind == RowKind::Invalid {
            self.overview.counts.invalid += 1;
        }
        self.rows.push(Row {
            n: at.n,
            at: at.first,
            out: at.out,
            dir: at.dir,
            transport: at.transport,
            stream: at.stream,
            kind,
            method,
            detail,
            call,
            era: self.era.or(at.era),
            source: at.source,
            is_ours: at.is_ours,
        });
        idx
    }

    /// Sets the era that the newest row was judged under.
    pub(super) fn set_row_era(&mut self, row: RowIdx, era: Option<Era>) {
        if let Some(row) = self.rows.get_mut(row.0 as usize) {
            row.era = self.era.or(era);
        }
    }

    /// Puts something on the lane of a call.
    pub(super) fn mark(&mut self, call: CallIdx, kind: MarkKind, at: Mono, row: RowIdx) {
        if let Some(call) = self.calls.get_mut(call.0 as usize) {
            call.marks.push(Mark { at, kind, row });
        }
    }

    /// Tells what was noticed.
    pub(super) fn see(&mut self, at: At, row: Option<RowIdx>, call: Option<CallIdx>, what: Sight) {
        let (stream, conn, transport) = (at.stream, at.conn, at.transport);
        self.seen.push(Seen { row, call, scope: at.scope, stream, conn, transport, at: at.now, what });
    }

    /// A call by its position; positions are given out by this model only.
    pub(super) fn call_mut(&mut self, idx: CallIdx) -> Option<&mut Call> {
        self.calls.get_mut(idx.0 as usize)
    }

    pub(super) fn scope_mut(&mut self, idx: ScopeIdx) -> Option<&mut super::Scope> {
        self.scopes.get_mut(idx.0 as usize)
    }

    /// Open requests of both sides in a process or session, oldest first.
    pub fn open_of(&self, scope: ScopeIdx) -> impl Iterator<Item = CallIdx> + '_ {
        self.scope(scope).into_iter().flat_map(|scope| scope.open.keys().copied())
    }

    /// Open calls of a scope, oldest first.
    pub(super) fn open_calls(&self, scope: ScopeIdx) -> Vec<CallIdx> {
        self.scope(scope).map_or_else(Vec::new, |scope| scope.open.keys().copied().collect())
    }

    /// The only open request of a sender, subscriptions aside.
    #[must_use]
    pub fn lone_call(&self, scope: ScopeIdx, sender: Dir) -> Option<CallIdx> {
        let open = self.scope(scope)?.open.keys().copied();
        let mut others = open.filter(|idx| {
            self.call(*idx).is_some_and(|call| call.sender == sender && call.method != Name::LISTEN)
        });
        others.next().filter(|_| others.next().is_none())
    }

    pub(super) fn state_of(&self, idx: CallIdx) -> Option<CallState> {
        self.call(idx).map(|call| call.state)
    }
}

/// How a side ended, in a word; empty where it is not known.
pub(super) fn close_word(how: Option<Close>) -> &'static str {
    match how {
        Some(Close::Eof) => "eof",
        Some(Close::HalfClose) => "half-close",
        Some(Close::Reset) => "reset",
        Some(Close::Timeout) => "timeout",
        None => "",
    }
}

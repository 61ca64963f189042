//! Flow: what passes on each event stream and pipe, how it is paced, and what waits.
//!
//! A gauge says whose queue it shows: this tap's own, or the server's where it tells. The queue of
//! a server that tells nothing is never known; a burst only says that something held back what
//! had been ready before.

use super::call::{CallIdx, MarkKind};
use super::fold::At;
use super::row::{Coding, RowIdx};
use super::scope::ScopeIdx;
use super::seen::Sight;
use super::{Call, Model};
use crate::event::{Dir, Event, Queue, Transport};
use crate::time::{Mono, Ms};

/// Nothing for so long, and then several messages at once, is a burst. ours: longer than live work
/// pauses between two reports, shorter than anybody's limit.
const PAUSE: Ms = Ms(2_000);

/// What comes within this of the first message of a burst belongs to it. ours: one buffer that is
/// let go, with room for a slow link.
const AT_ONCE: Ms = Ms(50);

/// Position in `Model::flows`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowIdx(pub u32);

/// One event stream, or one pipe of a process, from its first byte to its last.
#[derive(Debug, Clone)]
pub struct Flow {
    /// Which way it goes.
    pub dir: Dir,
    /// Process, session or upstream.
    pub scope: ScopeIdx,
    /// HTTP: number of the exchange; `None`: a pipe.
    pub stream: Option<u64>,
    /// The first call that it answers; `None`: a pipe, or a stream that answers no request.
    pub call: Option<CallIdx>,
    /// The row of its head, where it has one.
    pub row: Option<RowIdx>,
    /// How it is encoded.
    pub coding: Coding,
    /// When its head, or its first byte, was read.
    pub opened: Mono,
    /// When its last byte was read; when it was opened, if none came.
    pub last_at: Mono,
    /// The longest time without a byte, in nanoseconds; of a flow that is over, up to its end.
    pub longest_silence_ns: u64,
    /// Bytes on the wire.
    pub bytes: u64,
    /// Messages.
    pub messages: u32,
    /// Comments, which say only that the stream is alive.
    pub comments: u32,
    /// Its events carry ids: where sessions are, it may be taken up again after them.
    pub has_event_ids: bool,
    /// When the latest of its calls was answered.
    pub answered: Option<Mono>,
    /// When the client left it.
    pub client_left: Option<Mono>,
    /// When the server ended it.
    pub server_ended: Option<Mono>,
    /// The row that shows its end, by whoever ended it first; `None`: it is open, or a pipe.
    pub end_row: Option<RowIdx>,
    rare: Option<Box<Rare>>,
}

/// What only some flows have.
#[derive(Debug, Clone, Default)]
struct Rare {
    /// The tap's and the server's, the one that was read last first.
    gauges: [Option<Gauge>; 2],
    burst: Option<Burst>,
    comments: Option<(Mono, Mono)>,
    bytes_after_left: u64,
    slowest_write: Option<SlowWrite>,
}

/// Whose queue a gauge shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Whose {
    /// This tap's own.
    Tap,
    /// The server's, by what it tells.
    Server,
}

/// The queue of a flow, as it was told last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gauge {
    /// Whose queue.
    pub whose: Whose,
    /// The last reading.
    pub last: Queue,
    /// The row of the last reading.
    pub row: RowIdx,
    /// The longest time its writer was blocked between two readings, in milliseconds.
    pub longest_block_ms: u64,
    /// The most events that were seen waiting.
    pub high_events: u64,
    /// The most bytes that were seen waiting.
    pub high_bytes: u64,
    /// How many readings in a row were each higher than the one before.
    pub rising: u32,
    /// When the reading passed from which on it rose.
    pub rising_since: Mono,
}

/// Bytes that waited between being read and being handed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlowWrite {
    /// How long, in nanoseconds.
    pub ns: u64,
    /// Number of the event.
    pub n: u64,
}

/// Several messages that came at once after a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Burst {
    /// How long no message had come before, in nanoseconds.
    pub after_ns: u64,
    /// How many messages.
    pub messages: u32,
    /// How many of them were accepted progress: steps that lay apart when they were reported.
    pub progress: u32,
    /// The row of the first.
    pub row: RowIdx,
}

/// An event stream that is open: its flow, and its pace.
#[derive(Debug)]
pub(super) struct OpenStream {
    pub flow: FlowIdx,
    pace: Pace,
}

/// The pace of an event stream.
#[derive(Debug, Clone, Copy, Default)]
struct Pace {
    /// When the last message passed.
    last_message: Option<Mono>,
    /// The burst that may be growing, and when it began.
    burst: Option<(Mono, Burst)>,
}

impl Flow {
    fn new(at: At, dir: Dir) -> Flow {
        Flow {
            dir,
            scope: at.scope,
            stream: at.stream,
            call: None,
            row: None,
            coding: Coding::Identity,
            opened: at.now,
            last_at: at.now,
            longest_silence_ns: 0,
            bytes: 0,
            messages: 0,
            comments: 0,
            has_event_ids: false,
            answered: None,
            client_left: None,
            server_ended: None,
            end_row: None,
            rare: None,
        }
    }

    /// Who ended it first, and when; `None`: it is open.
    #[must_use]
    pub fn ended(&self) -> Option<(Dir, Mono)> {
        let by_client = self.client_left.map(|at| (Dir::C2s, at));
        let by_server = self.server_ended.map(|at| (Dir::S2c, at));
        by_client.into_iter().chain(by_server).min_by_key(|(_, at)| *at)
    }

    /// How long no byte has come at `now`, or had when it ended, in nanoseconds.
    #[must_use]
    pub fn silence_ns(&self, now: Mono) -> u64 {
        self.ended().map_or(now, |(_, at)| at).ns_since(self.last_at)
    }

    /// Its queue that was read last, where anything was told of one.
    #[must_use]
    pub fn gauge(&self) -> Option<&Gauge> {
        let [last, _] = &self.rare.as_deref()?.gauges;
        last.as_ref()
    }

    /// The queue of one side, where anything was told of it.
    #[must_use]
    pub fn gauge_of(&self, whose: Whose) -> Option<&Gauge> {
        self.rare.as_deref()?.gauges.iter().flatten().find(|gauge| gauge.whose == whose)
    }

    /// The burst that held the most progress, then the most messages.
    #[must_use]
    pub fn burst(&self) -> Option<Burst> {
        self.rare.as_deref()?.burst
    }

    /// The mean time from one comment to the next, in nanoseconds.
    #[must_use]
    pub fn comment_cadence_ns(&self) -> Option<u64> {
        let (first, last) = self.rare.as_deref()?.comments?;
        Some(last.ns_since(first) / u64::from(self.comments.checked_sub(1).filter(|gaps| *gaps > 0)?))
    }

    /// Bytes that the server went on writing after the client had left.
    #[must_use]
    pub fn bytes_after_left(&self) -> u64 {
        self.rare.as_deref().map_or(0, |rare| rare.bytes_after_left)
    }

    /// The bytes that waited the longest for their receiver, where both times are known.
    #[must_use]
    pub fn slowest_write(&self) -> Option<SlowWrite> {
        self.rare.as_deref()?.slowest_write
    }

    fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// Bytes passed.
    fn note_bytes(&mut self, event: &Event, len: usize) {
        self.longest_silence_ns = self.longest_silence_ns.max(event.at.ns_since(self.last_at));
        self.last_at = event.at;
        self.bytes += len as u64;
        if self.client_left.is_some() {
            self.rare().bytes_after_left += len as u64;
        }
        let waited = event.out.map_or(0, |out| out.ns_since(event.at));
        let slowest = self.slowest_write().map_or(WORTH_A_WORD.to_ns(), |slow| slow.ns);
        if waited > slowest {
            self.rare().slowest_write = Some(SlowWrite { ns: waited, n: event.n });
        }
    }

    fn note_comment(&mut self, at: Mono) {
        self.comments += 1;
        let comments = &mut self.rare().comments;
        *comments = Some((comments.map_or(at, |(first, _)| first), at));
    }

    fn note_queue(&mut self, whose: Whose, reading: Queue, row: RowIdx, at: Mono) {
        let size = |queue: &Queue| (queue.events, queue.bytes);
        let [last, other] = &mut self.rare().gauges;
        if last.as_ref().is_some_and(|gauge| gauge.whose != whose) {
            std::mem::swap(last, other);
        }
        let gauge = last.get_or_insert(Gauge {
            whose,
            last: reading,
            row,
            longest_block_ms: reading.blocked_ms,
            high_events: 0,
            high_bytes: 0,
            rising: 0,
            rising_since: at,
        });
        let blocked_ms = reading.blocked_ms.saturating_sub(gauge.last.blocked_ms);
        gauge.longest_block_ms = gauge.longest_block_ms.max(blocked_ms);
        let is_higher = size(&reading) > size(&gauge.last);
        if !is_higher {
            gauge.rising_since = at;
        }
        gauge.rising = if is_higher { gauge.rising + 1 } else { 0 };
        gauge.high_events = gauge.high_events.max(reading.events);
        gauge.high_bytes = gauge.high_bytes.max(reading.bytes);
        (gauge.last, gauge.row) = (reading, row);
    }

    fn end(&mut self, by: Dir, at: Mono) {
        if self.ended().is_none() {
            self.longest_silence_ns = self.longest_silence_ns.max(at.ns_since(self.last_at));
        }
        let end = if by == Dir::C2s { &mut self.client_left } else { &mut self.server_ended };
        end.get_or_insert(at);
    }
}

/// A wait that is shorter is not kept. ours: what scheduling of a busy machine explains.
const WORTH_A_WORD: Ms = Ms(100);

impl Pace {
    /// A message passed. Returns the burst that it belongs to, if it makes one.
    fn note(&mut self, opened: Mono, at: Mono, row: RowIdx, is_progress: bool) -> Option<Burst> {
        let since = at.ns_since(self.last_message.unwrap_or(opened));
        self.last_message = Some(at);
        let progress = u32::from(is_progress);
        if since >= PAUSE.to_ns() {
            self.burst = Some((at, Burst { after_ns: since, messages: 1, progress, row }));
            return None;
        }
        let (_, burst) = self.burst.as_mut().filter(|(began, _)| at.ns_since(*began) <= AT_ONCE.to_ns())?;
        burst.messages += 1;
        burst.progress += progress;
        Some(*burst)
    }
}

impl Model {
    /// Event streams and pipes, in the order of their beginning.
    #[must_use]
    pub fn flows(&self) -> &[Flow] {
        &self.flows
    }

    /// One flow.
    #[must_use]
    pub fn flow(&self, idx: FlowIdx) -> Option<&Flow> {
        self.flows.get(idx.0 as usize)
    }

    /// The flow that carries the answer of a call while it is open, where that is an event stream or
    /// a pipe.
    #[must_use]
    pub fn flow_of(&self, call: &Call) -> Option<FlowIdx> {
        match call.stream {
            Some(stream) => self.exchange_of(stream)?.flow(),
            None => self.scope(call.scope)?.pipe(if call.sender == Dir::C2s { Dir::S2c } else { Dir::C2s }),
        }
    }

    /// The events of a stream carry ids.
    pub(super) fn stream_has_ids(&mut self, stream: u64) {
        let idx = self.http.flow_of(stream);
        if let Some(flow) = idx.and_then(|idx| self.flow_mut(idx)) {
            flow.has_event_ids = true;
        }
    }

    fn flow_mut(&mut self, idx: FlowIdx) -> Option<&mut Flow> {
        self.flows.get_mut(idx.0 as usize)
    }

    fn open_flow(&mut self, at: At, dir: Dir) -> FlowIdx {
        let idx = FlowIdx(u32::try_from(self.flows.len()).unwrap_or(u32::MAX));
        self.flows.push(Flow::new(at, dir));
        idx
    }

    /// An event stream begins, with its head or without.
    pub(super) fn begin_stream(
        &mut self,
        at: At,
        call: Option<CallIdx>,
        row: Option<RowIdx>,
        coding: Coding,
    ) {
        let Some(stream) = at.stream.filter(|stream| self.http.flow_of(*stream).is_none()) else { return };
        let idx = self.open_flow(at, Dir::S2c);
        if let Some(flow) = self.flow_mut(idx) {
            (flow.call, flow.row, flow.coding) = (call, row, coding);
        }
        self.http.set_open_stream(stream, OpenStream { flow: idx, pace: Pace::default() });
    }

    /// The flow of a pipe, which begins when something is first known of it.
    fn pipe_flow(&mut self, at: At, dir: Dir) -> FlowIdx {
        if let Some(idx) = self.scope(at.scope).and_then(|scope| scope.pipe(dir)) {
            return idx;
        }
        let idx = self.open_flow(at, dir);
        if let Some(scope) = self.scope_mut(at.scope) {
            scope.set_pipe(dir, idx);
        }
        idx
    }

    /// Bytes of a pipe.
    pub(super) fn pipe_bytes(&mut self, event: &Event, at: At, len: usize) {
        let idx = self.pipe_flow(at, event.dir);
        if let Some(flow) = self.flow_mut(idx) {
            flow.note_bytes(event, len);
        }
    }

    /// Bytes of an event stream.
    pub(super) fn stream_bytes(&mut self, event: &Event, len: usize) {
        let idx = event.stream.and_then(|stream| self.http.flow_of(stream));
        if let Some(flow) = idx.and_then(|idx| self.flow_mut(idx)) {
            flow.note_bytes(event, len);
        }
    }

    /// A comment of an event stream.
    pub(super) fn stream_comment(&mut self, stream: u64, at: Mono) {
        let idx = self.http.flow_of(stream);
        if let Some(flow) = idx.and_then(|idx| self.flow_mut(idx)) {
            flow.note_comment(at);
        }
    }

    /// A message of a pipe.
    pub(super) fn pipe_message(&mut self, at: At) {
        let pipe = self.scope(at.scope).and_then(|scope| scope.pipe(at.dir));
        if let Some(flow) = pipe.and_then(|pipe| self.flow_mut(pipe)) {
            flow.messages += 1;
        }
    }

    /// A message of an event stream, shown by `row`.
    pub(super) fn stream_message(&mut self, stream: u64, at: Mono, row: RowIdx) {
        let call = self.row(row).and_then(|row| self.call(row.call?));
        let mark = call.and_then(|call| call.marks.last());
        let is_progress = mark.is_some_and(|mark| mark.kind == MarkKind::Progress && mark.row == row);
        let Model { flows, http, .. } = self;
        let Some(open) = http.open_stream(stream) else { return };
        let Some(flow) = flows.get_mut(open.flow.0 as usize) else { return };
        flow.messages += 1;
        let Some(burst) = open.pace.note(flow.opened, at, row, is_progress) else { return };
        let size = |burst: &Burst| (burst.progress, burst.messages);
        let most = &mut flow.rare().burst;
        if most.as_ref().is_none_or(|most| size(most) < size(&burst)) {
            *most = Some(burst);
        }
    }

    /// A call was answered on its own event stream.
    pub(super) fn flow_answered(&mut self, idx: CallIdx, at: Mono) {
        let stream = self.call(idx).and_then(|call| call.stream);
        let flow = stream.and_then(|stream| self.http.flow_of(stream));
        if let Some(flow) = flow.and_then(|flow| self.flow_mut(flow)) {
            flow.answered = Some(at);
        }
    }

    /// A queue was read; it stands before the stream that is named, or before the pipe that goes
    /// the way of the event.
    pub(super) fn flow_queue(&mut self, at: At, whose: Whose, reading: Queue, row: RowIdx) {
        let idx = match at.stream {
            Some(stream) => {
                self.begin_stream(at, self.http.calls_of(stream).first().copied(), None, Coding::Identity);
                self.http.flow_of(stream)
            }
            None if at.transport == Transport::Stdio => {
                // Whoever only says that something waits means what waits for the client.
                Some(self.pipe_flow(at, if at.dir == Dir::C2s { Dir::C2s } else { Dir::S2c }))
            }
            None => None,
        };
        if let Some(idx) = idx
            && let Some(flow) = self.flow_mut(idx)
        {
            flow.note_queue(whose, reading, row, at.now);
            let call = flow.call;
            self.see(at, Some(row), call, Sight::Queue { flow: idx });
        }
    }

    /// One side ended an event stream.
    pub(super) fn end_stream(&mut self, by: Dir, at: At, row: RowIdx) {
        let Some(idx) = at.stream.and_then(|stream| self.http.flow_of(stream)) else { return };
        let Some(flow) = self.flow_mut(idx) else { return };
        let was_open = flow.ended().is_none();
        flow.end(by, at.now);
        let call = flow.call;
        if was_open {
            flow.end_row = Some(row);
            self.see(at, Some(row), call, Sight::StreamClosed { flow: idx });
        }
    }

    /// A pipe ended.
    pub(super) fn close_pipe(&mut self, scope: ScopeIdx, pipe: Dir, at: Mono) {
        let idx = self.scope(scope).and_then(|scope| scope.pipe(pipe));
        if let Some(flow) = idx.and_then(|idx| self.flow_mut(idx)) {
            flow.end(if pipe == Dir::C2s { Dir::C2s } else { Dir::S2c }, at);
        }
    }
}

#[cfg(test)]
mod tests;

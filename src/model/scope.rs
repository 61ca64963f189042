//! Where an id counts: one process, one session, or the modern HTTP requests of one upstream.

use std::collections::{BTreeMap, HashMap};

use super::{CallIdx, Capabilities, FlowIdx, Handshake, Name, RowIdx, Speaks};
use crate::event::{Dir, Transport};
use crate::spec::era::Era;
use crate::time::Mono;

/// Position in `Model::scopes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScopeIdx(pub u32);

/// Quick round trips kept for the median.
const ROUND_TRIPS: usize = 63;

/// The smallest grace window between a cancel and an answer (docs/semantics.md, races).
const WINDOW_MIN_NS: u64 = 500_000_000;

/// One process (stdio), one session (legacy HTTP), or everything else on HTTP.
#[expect(clippy::struct_excessive_bools, reason = "independent facts, none of them a state")]
#[derive(Debug, Clone)]
pub struct Scope {
    /// How the peers are joined.
    pub transport: Transport,
    /// What `initialize` settled.
    pub negotiated: Option<Era>,
    /// A request with modern `_meta` or header was seen.
    pub has_modern: bool,
    /// A legacy request was seen.
    pub has_legacy: bool,
    /// The client, as it names itself.
    pub client: Option<Peer>,
    /// The server, as it names itself.
    pub server: Option<Peer>,
    /// How far its handshake has come.
    pub handshake: Handshake,
    /// Which eras its server has shown to speak.
    pub speaks: Speaks,
    /// What both say they can do.
    pub(super) capabilities: Capabilities,
    /// stdio: the process.
    pub process: Process,
    /// The `User-Agent` of the latest request that named one.
    pub user_agent: Option<Name>,
    /// HTTP: the session of 2024-11-05, whose answers come on the stream of its GET.
    pub is_http_sse: bool,
    /// The first event seen.
    pub started: Mono,
    /// The process, or the session, ended.
    pub ended: Option<Mono>,
    /// Its stdin, stdout and stderr.
    pipes: [Option<FlowIdx>; 3],
    /// Open requests of both sides.
    pub(super) open: BTreeMap<CallIdx, Open>,
    /// The row of the latest request of the client that has been answered: whatever was written
    /// to an ordered pipe before it has been read.
    pub(super) witness: Option<RowIdx>,
    /// The call whose stream gave an event id last, by the hash of the id.
    pub(super) event_ids: HashMap<u64, CallIdx>,
    quick: Vec<u64>,
    quick_next: usize,
    has_first_request: bool,
}

/// What must be known of a call only while it is open.
#[derive(Debug, Clone)]
pub(super) struct Open {
    /// Equal for the same method, target and arguments.
    pub fingerprint: u64,
    /// Its round trip says how quick the channel is.
    pub is_quick: bool,
    /// What its request holds.
    pub request: Option<super::Content>,
}

/// How a peer names itself; unverified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// Its name.
    pub name: Name,
    /// Its version.
    pub version: Name,
}

/// What is known of a server process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Process {
    /// Process id.
    pub pid: Option<u32>,
    /// Its command line.
    pub command: Option<Name>,
    /// The process that ran before it for the same client.
    pub before: Option<ScopeIdx>,
    /// When it was started.
    pub spawned: Option<Mono>,
    /// When its stdin was closed.
    pub stdin_closed: Option<Mono>,
    /// When a signal was first sent to it.
    pub signalled: Option<Mono>,
    /// How many signals were sent to it.
    pub signals: u32,
    /// When the client first sent it a signal that asks a process to end.
    pub dismissed: Option<Mono>,
    /// When it ended, or closed its stdout.
    pub exited: Option<Mono>,
    /// Exit status.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub exit_signal: Option<i32>,
    /// Bytes written to stderr.
    pub stderr_bytes: u64,
}

impl Scope {
    pub(super) fn new(transport: Transport, started: Mono) -> Scope {
        Scope {
            transport,
            negotiated: None,
            has_modern: false,
            has_legacy: false,
            client: None,
            server: None,
            handshake: Handshake::default(),
            speaks: Speaks::default(),
            capabilities: Capabilities::default(),
            process: Process::default(),
            is_http_sse: false,
            user_agent: None,
            pipes: [None; 3],
            started,
            ended: None,
            open: BTreeMap::new(),
            witness: None,
            event_ids: HashMap::new(),
            quick: Vec::new(),
            quick_next: 0,
            has_first_request: false,
        }
    }

    /// The flow of its stdin (`C2s`), stdout (`S2c`) or stderr.
    #[must_use]
    pub fn pipe(&self, dir: Dir) -> Option<FlowIdx> {
        self.pipes.get(pipe_place(dir)?).copied().flatten()
    }

    pub(super) fn set_pipe(&mut self, dir: Dir, flow: FlowIdx) {
        if let Some(pipe) = pipe_place(dir).and_then(|place| self.pipes.get_mut(place)) {
            *pipe = Some(flow);
        }
    }

    /// How many of its requests are open.
    #[must_use]
    pub fn open_calls(&self) -> usize {
        self.open.len()
    }

    /// The era of a message that names none and belongs to no request: that of the channel, where
    /// the channel has only one (docs/semantics.md, eras).
    #[must_use]
    pub fn channel_era(&self) -> Option<Era> {
        match (self.negotiated, self.has_modern) {
            (Some(era), false) => Some(era),
            (None, true) if !self.has_legacy => Some(Era::V2026_07_28),
            _ => None,
        }
    }

    /// Whether the next request counts for the median round trip: everything but `tools/call`,
    /// and not the first request after a start, which pays for the start.
    pub(super) fn is_quick(&mut self, method: Name) -> bool {
        let is_first = !std::mem::replace(&mut self.has_first_request, true);
        let is_slow = method == Name::TOOLS_CALL || method == Name::LISTEN;
        !is_first && !is_slow
    }

    /// One quick request took this long.
    pub(super) fn note_round_trip(&mut self, ns: u64) {
        if self.quick.len() < ROUND_TRIPS {
            self.quick.push(ns);
        } else if let Some(oldest) = self.quick.get_mut(self.quick_next) {
            *oldest = ns;
            self.quick_next = (self.quick_next + 1) % ROUND_TRIPS;
        }
    }

    /// The grace window W as round trips tell it: the larger of 500 ms and three median round trips of the latest quick requests
    /// (docs/semantics.md, races). In nanoseconds.
    pub(super) fn window_ns(&self) -> u64 {
        let mut sorted = self.quick.clone();
        sorted.sort_unstable();
        let median = sorted.get(sorted.len() / 2).copied().unwrap_or(0);
        WINDOW_MIN_NS.max(median.saturating_mul(3))
    }
}

fn pipe_place(dir: Dir) -> Option<usize> {
    match dir {
        Dir::C2s => Some(0),
        Dir::S2c => Some(1),
        Dir::Stderr => Some(2),
        Dir::Tap => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_500_ms_until_quick_requests_are_slow() {
        let mut scope = Scope::new(Transport::Stdio, Mono(0));
        assert_eq!(scope.window_ns(), 500_000_000);
        for _ in 0..200 {
            scope.note_round_trip(400_000_000);
        }
        assert_eq!(scope.window_ns(), 1_200_000_000);
        for _ in 0..200 {
            scope.note_round_trip(1_000);
        }
        assert_eq!(scope.window_ns(), 500_000_000);
    }

    #[test]
    fn the_first_request_and_tool_calls_are_not_quick() {
        let mut scope = Scope::new(Transport::Stdio, Mono(0));
        assert!(!scope.is_quick(Name::INITIALIZE));
        assert!(scope.is_quick(Name::INITIALIZE));
        assert!(!scope.is_quick(Name::TOOLS_CALL));
    }

    #[test]
    fn a_channel_with_both_eras_has_none() {
        let mut scope = Scope::new(Transport::Stdio, Mono(0));
        assert_eq!(scope.channel_era(), None);
        scope.has_modern = true;
        assert_eq!(scope.channel_era(), Some(Era::V2026_07_28));
        scope.negotiated = Some(Era::V2025_11_25);
        assert_eq!(scope.channel_era(), None);
        scope.has_modern = false;
        assert_eq!(scope.channel_era(), Some(Era::V2025_11_25));
    }
}

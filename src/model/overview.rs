//! Counts and facts about the whole, kept while folding.

use crate::event::{Dir, Event, Transport, What};
use crate::time::Mono;

/// How many of what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Events folded.
    pub events: u64,
    /// Requests of both sides.
    pub calls: u64,
    /// Requests without a terminal state.
    pub open: u64,
    /// Calls that ended by a JSON-RPC error, a refusing status, or a tool error.
    pub errors: u64,
    /// Calls whose client cancelled or left.
    pub cancelled: u64,
    /// Calls that were answered later than any crossing can explain.
    pub late: u64,
    /// Calls whose stream or process ended before an answer.
    pub lost: u64,
    /// Places where the recording says that something is missing.
    pub gaps: u64,
    /// Events missing there.
    pub gap_events: u64,
    /// Bytes missing there.
    pub gap_bytes: u64,
    /// Frames that are no message.
    pub invalid: u64,
    /// Bytes of standard error.
    pub stderr_bytes: u64,
}

/// How the recording stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Capture {
    /// More may come.
    #[default]
    Live,
    /// It ended in order.
    Ended {
        /// Whether it says that nothing is missing; `None`: it does not say.
        complete: Option<bool>,
    },
    /// It stops without an end: the tap was cut off.
    Cut,
}

/// What a status line says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overview {
    /// How many of what.
    pub counts: Counts,
    /// How the recording stands.
    pub capture: Capture,
    /// Everything since the first event is there: no gap, and the numbering begins at 1.
    pub is_full: bool,
    /// stdio traffic was seen.
    pub has_stdio: bool,
    /// HTTP traffic was seen.
    pub has_http: bool,
    /// When the first event was read.
    pub first: Option<Mono>,
    /// When the last event was read.
    pub last: Mono,
    /// When the client was last heard.
    pub last_client: Option<Mono>,
    /// When the server was last heard, stderr included.
    pub last_server: Option<Mono>,
    /// The last anchor to wall time: moment and wall time.
    pub wall: Option<(Mono, String)>,
}

impl Default for Overview {
    fn default() -> Overview {
        Overview {
            counts: Counts::default(),
            capture: Capture::default(),
            is_full: true,
            has_stdio: false,
            has_http: false,
            first: None,
            last: Mono(0),
            last_client: None,
            last_server: None,
            wall: None,
        }
    }
}

impl Overview {
    /// An event was read.
    pub(super) fn note(&mut self, event: &Event) {
        if self.first.is_none() {
            self.first = Some(event.at);
            self.is_full = event.n <= 1;
        }
        self.counts.events += 1;
        self.last = self.last.max(event.at);
        let is_traffic = !matches!(event.what, What::CaptureEnd { .. } | What::Unknown { .. });
        match event.dir {
            _ if !is_traffic => {}
            Dir::C2s => self.last_client = Some(event.at),
            Dir::S2c | Dir::Stderr => self.last_server = Some(event.at),
            Dir::Tap => {}
        }
        if is_traffic && event.dir != Dir::Tap {
            match event.transport {
                Transport::Stdio => self.has_stdio = true,
                Transport::Http => self.has_http = true,
            }
        }
        if !matches!(event.what, What::CaptureEnd { .. }) {
            self.capture = Capture::Live;
        }
    }
}

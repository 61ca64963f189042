//! The reader: has the open recording, hands its events out in batches, and finds them again.
//!
//! It never waits for the screen with its hands full: while the batches have no room it still
//! answers requests, so that a screen that is held still can open messages.

use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::Duration;

use tokio::sync::mpsc::Sender;
use tokio::sync::mpsc::error::TrySendError;

use super::hands;
use super::source::Source;
use crate::event::{Event, What};
use crate::model::RowIdx;
use crate::time::{self, Mono};
use crate::trace::{POLL, Place};
use crate::ui::msg::{Msg, Recording};

/// Most events of a batch. ours: folding them takes a few milliseconds, well under a frame.
const BATCH_EVENTS: usize = 2048;

/// Bytes of traffic after which a batch is full.
const BATCH_BYTES: usize = 1 << 20;

/// Bytes of one message beyond which it is not brought to the screen.
/// ours: the tree of a message takes a multiple of its text.
const FETCH_LIMIT_BYTES: usize = 64 << 20;

/// How long to wait for room among the batches.
const FULL_WAIT: Duration = Duration::from_millis(2);

/// Time between two readings of the clock while a session is live.
const CLOCK_NS: u64 = 100_000_000;

/// What the reader can be asked.
pub(super) enum Request {
    /// Another recording in place of the one that is open.
    Open(Box<Source>),
    /// The events of a row, by the positions of the first and the last one.
    Fetch { row: RowIdx, first: u32, last: u32 },
}

/// Where the reader's messages go.
pub(super) struct Outlet {
    /// What belongs to a session, in order.
    pub events: Sender<Msg>,
    /// What can overtake it.
    pub other: Sender<Msg>,
    /// Who gives orders to the tap of the session.
    pub hands: std::sync::mpsc::Sender<hands::Request>,
}

/// The reader's thread; ends when nobody can ask any more.
pub(super) fn run(first: Option<Source>, requests: &Receiver<Request>, outlet: &Outlet) {
    let mut desk = first.map(|source| Desk::open(source, outlet));
    loop {
        let wait = desk.as_mut().map_or(Some(Duration::MAX), |desk| desk.step(outlet));
        let request = match wait {
            None => match requests.try_recv() {
                Ok(request) => Some(request),
                Err(TryRecvError::Empty) => None,
                Err(TryRecvError::Disconnected) => return,
            },
            Some(wait) => match requests.recv_timeout(wait) {
                Ok(request) => Some(request),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            },
        };
        match (request, &desk) {
            (Some(Request::Open(source)), _) => desk = Some(Desk::open(*source, outlet)),
            (Some(Request::Fetch { row, first, last }), Some(desk)) => {
                let events = desk.fetch(first, last);
                if outlet.other.blocking_send(Msg::Fetched { row, events }).is_err() {
                    return;
                }
            }
            (Some(Request::Fetch { .. }) | None, _) => {}
        }
    }
}

/// An open recording and how far it was handed out.
struct Desk {
    source: Source,
    places: Vec<Place>,
    /// Made and not yet taken by the screen.
    waiting: Option<Msg>,
    told: Option<Recording>,
    clock: Mono,
    is_failed: bool,
}

impl Desk {
    fn open(source: Source, outlet: &Outlet) -> Desk {
        // They end after this thread, with the screen.
        let _ = outlet.hands.send(hands::Request::Session(source.session().map(str::to_owned)));
        let waiting = Some(Msg::Opened(source.facts().clone()));
        Desk { source, places: Vec::new(), waiting, told: None, clock: Mono(0), is_failed: false }
    }

    /// Hands out what can be handed out; says how long nothing can be done after that (`None`:
    /// there is more to do at once).
    fn step(&mut self, outlet: &Outlet) -> Option<Duration> {
        self.tell_clock(outlet);
        let waiting = self.waiting.take().or_else(|| self.batch()).or_else(|| self.news());
        let Some(msg) = waiting else {
            let rest = if self.source.is_growing() { POLL } else { Duration::MAX };
            return Some(rest);
        };
        match outlet.events.try_send(msg) {
            Ok(()) => None,
            Err(TrySendError::Full(msg)) => {
                self.waiting = Some(msg);
                Some(FULL_WAIT)
            }
            // The screen is gone, and soon the requests are.
            Err(TrySendError::Closed(_)) => Some(POLL),
        }
    }

    /// The next events.
    fn batch(&mut self) -> Option<Msg> {
        let (mut events, mut bytes) = (Vec::new(), 0);
        while !self.is_failed && events.len() < BATCH_EVENTS && bytes < BATCH_BYTES {
            match self.source.next() {
                Ok(Some((event, place))) => {
                    bytes += len(&event);
                    self.places.push(place);
                    events.push(event);
                }
                Ok(None) => break,
                Err(error) => {
                    self.is_failed = true;
                    self.waiting = Some(Msg::Trouble(error.to_string()));
                }
            }
        }
        (!events.is_empty()).then_some(Msg::Events(events)).or_else(|| self.waiting.take())
    }

    /// What is known about the recording, if that has changed.
    fn news(&mut self) -> Option<Msg> {
        let standing = self.source.standing();
        if self.told.as_ref() == Some(&standing) {
            return None;
        }
        self.told = Some(standing.clone());
        Some(Msg::Recording(standing))
    }

    fn tell_clock(&mut self, outlet: &Outlet) {
        let Some(since_ns) = self.source.live_since_ns() else { return };
        let now = Mono(time::boot_ns().saturating_sub(since_ns));
        if now.ns_since(self.clock) >= CLOCK_NS {
            self.clock = now;
            // The next one comes soon.
            let _ = outlet.other.try_send(Msg::Clock(now));
        }
    }

    /// The events at some positions, inclusive.
    fn fetch(&self, first: u32, last: u32) -> Result<Vec<Event>, String> {
        let places = self.places.get(first as usize..=last as usize);
        let places = places.ok_or_else(|| "the recording does not go as far".to_owned())?;
        let size: usize = places.iter().map(|place| place.len as usize).sum();
        if size > FETCH_LIMIT_BYTES {
            let (size, limit) = (size >> 20, FETCH_LIMIT_BYTES >> 20);
            return Err(format!("{size} MiB are too much to show, the limit is {limit} MiB"));
        }
        places.iter().map(|place| self.source.read_at(*place).map_err(|error| error.to_string())).collect()
    }
}

/// Bytes of traffic in an event.
fn len(event: &Event) -> usize {
    match &event.what {
        What::Bytes { bytes, .. } | What::SseChunk(bytes) | What::Body(bytes) => bytes.len(),
        What::Request(head) => head.body.as_ref().map_or(0, bytes::Bytes::len),
        _ => 0,
    }
}

//! The tape: where everything that happens in the path gets its place in one order.
//!
//! A forwarding thread calls [`Tape::push`] between reading and writing on, and
//! [`Tape::handed_on`] after the last byte was written. Both take one short lock and never wait
//! for the recorder. The recorder drains the tape in order with [`TapeReader::wait`].
//!
//! The place in the order is taken under the lock, so it is causal: what was read before
//! something else was written stands before its answer. The integer `n` follows from the place;
//! it is given by the recorder, because one read of a pipe can hold many lines.
//!
//! The tape is bounded by bytes. When the recorder is too slow for that bound, items keep their
//! place and lose their body copy; the loss is counted in the item (`lost_bytes`) and becomes a
//! `gap` in the recording. The path itself is never slowed.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;

use super::{Dir, Transport, What};
use crate::time::{Clock, Mono};

/// How long the recorder lets items gather before it takes them: long enough that a busy path
/// does not wake it for each message, short against the promise that everything older than
/// 100 ms is in the file.
pub const GATHER: Duration = Duration::from_millis(10);

/// Bytes on the tape at which the recorder is told to hurry: it moves them to a file before it goes
/// on. What the tape may hold beyond is for the time in which that file cannot be written.
const RELIEF_BYTES: usize = 16 << 20;

/// What one entry costs beside its bytes, counted against the tape's limit.
const ENTRY_COST: usize = 256;

/// The place of an item in the order, for saying later when it was handed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// One thing that happened, in its place; not yet numbered.
#[derive(Debug, Clone, PartialEq)]
pub struct Taped {
    /// Its place in the order.
    pub ticket: Ticket,
    /// When it was read.
    pub at: Mono,
    /// Which way it went.
    pub dir: Dir,
    /// How the peers are joined.
    pub transport: Transport,
    /// HTTP: number of the exchange.
    pub stream: Option<u64>,
    /// HTTP: number of the downstream connection.
    pub conn: Option<u64>,
    /// What it was. For stdio, [`What::Bytes`] is one whole read, which the recorder splits at
    /// line ends; its `read` number is set by the tap.
    pub what: What,
    /// Bytes of the body that were given up because the tape was full; 0 in health.
    pub lost_bytes: u64,
}

/// What the recorder takes from the tape at one time.
#[derive(Debug, Default)]
pub struct Batch {
    /// Items in order.
    pub items: Vec<Taped>,
    /// Items (of this or an earlier batch) whose last byte was handed on, and when.
    pub handed_on: Vec<(Ticket, Mono)>,
    /// When they were taken: no earlier than any of them, no later than what comes after.
    pub taken_at: Mono,
    /// Every `Tape` is gone, or the tape was closed: nothing more will come.
    pub is_end: bool,
}

/// The writing end. Cheap to clone; shared by all forwarding threads of a tap.
#[derive(Debug, Clone)]
pub struct Tape {
    shared: Arc<Shared>,
    _alive: Arc<Alive>,
}

/// The reading end; one for each tape.
#[derive(Debug)]
pub struct TapeReader {
    shared: Arc<Shared>,
}

/// Ends the recording while writing ends are still held, as by a thread that blocks in a read.
#[derive(Debug, Clone)]
pub struct Closer(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    clock: Clock,
    limit_bytes: usize,
    queue: Mutex<Queue>,
    filled: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    items: Vec<Taped>,
    handed_on: Vec<(Ticket, Mono)>,
    bytes: usize,
    next: u64,
    is_reader_waiting: bool,
    is_reader_gone: bool,
    is_closed: bool,
}

/// Closes the tape when the last writing end is dropped.
#[derive(Debug)]
struct Alive(Arc<Shared>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Closer {
    /// The reader gets what is there, as the end; what is pushed later is not recorded.
    pub fn close(&self) {
        self.0.close();
    }
}

impl Shared {
    fn close(&self) {
        self.lock().is_closed = true;
        self.filled.notify_all();
    }

    /// A panic elsewhere cannot leave the queue half-changed, so a poisoned lock is still good.
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tape {
    /// A tape and its reader; `limit_bytes` bounds what may wait for the reader.
    #[must_use]
    pub fn new(clock: Clock, limit_bytes: usize) -> (Tape, TapeReader) {
        let shared = Arc::new(Shared { clock, limit_bytes, queue: Mutex::default(), filled: Condvar::new() });
        let alive = Arc::new(Alive(shared.clone()));
        (Tape { shared: shared.clone(), _alive: alive }, TapeReader { shared })
    }

    /// The clock of the session.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.shared.clock
    }

    /// Takes the next place in the order for something on stdio, stamped now.
    pub fn push_stdio(&self, dir: Dir, what: What) -> Ticket {
        self.push(dir, Transport::Stdio, None, None, what)
    }

    /// Takes the next place in the order for something on HTTP, stamped now.
    pub fn push_http(&self, dir: Dir, stream: Option<u64>, conn: Option<u64>, what: What) -> Ticket {
        self.push(dir, Transport::Http, stream, conn, what)
    }

    /// Takes the next place in the order, stamped now. Call it after the read and before the
    /// first byte is written on.
    pub fn push(
        &self,
        dir: Dir,
        transport: Transport,
        stream: Option<u64>,
        conn: Option<u64>,
        mut what: What,
    ) -> Ticket {
        let mut queue = self.shared.lock();
        let at = self.shared.clock.now();
        queue.next += 1;
        let ticket = Ticket(queue.next);
        if queue.is_reader_gone {
            return ticket;
        }
        let size = body_len(&what);
        let mut lost_bytes = 0;
        let bytes_before = queue.bytes;
        if size > 0 && queue.bytes.saturating_add(size) > self.shared.limit_bytes {
            give_up_body(&mut what);
            lost_bytes = size as u64;
            queue.bytes += ENTRY_COST;
        } else {
            queue.bytes += size + ENTRY_COST;
        }
        queue.items.push(Taped { ticket, at, dir, transport, stream, conn, what, lost_bytes });
        self.shared.wake(queue, bytes_before);
        ticket
    }

    /// Says that the last byte of an item was handed to the receiver now.
    pub fn handed_on(&self, ticket: Ticket) {
        let mut queue = self.shared.lock();
        if queue.is_reader_gone {
            return;
        }
        let at = self.shared.clock.now();
        queue.handed_on.push((ticket, at));
    }
}

impl Shared {
    fn relief_bytes(&self) -> usize {
        RELIEF_BYTES.min(self.limit_bytes / 2)
    }

    /// Wakes the reader if it sleeps with nothing to do; a reader that is gathering is left alone
    /// until the tape is filling.
    fn wake(&self, mut queue: MutexGuard<'_, Queue>, bytes_before: usize) {
        let relief = self.relief_bytes();
        if queue.is_reader_waiting || (bytes_before < relief && queue.bytes >= relief) {
            queue.is_reader_waiting = false;
            drop(queue);
            self.filled.notify_one();
        }
    }
}

impl TapeReader {
    /// Waits until there is something or until `limit` has passed, then takes all that is there.
    /// An empty batch that is not the end means that the limit passed.
    pub fn wait(&mut self, limit: Duration) -> Batch {
        self.wait_and_gather(limit, Duration::ZERO)
    }

    /// Waits until there is something or until `limit` has passed; then, if there is something,
    /// lets more gather for the time `gather` (less if the tape fills or ends), and takes it all.
    pub fn wait_and_gather(&mut self, limit: Duration, gather: Duration) -> Batch {
        let Shared { clock, filled, .. } = &*self.shared;
        let relief = self.shared.relief_bytes();
        let mut queue = self.shared.lock();
        if queue.items.is_empty() && queue.handed_on.is_empty() && !queue.is_closed {
            queue.is_reader_waiting = true;
            queue = filled.wait_timeout(queue, limit).unwrap_or_else(PoisonError::into_inner).0;
            queue.is_reader_waiting = false;
        }
        let has_some = !queue.items.is_empty() || !queue.handed_on.is_empty();
        if has_some && !gather.is_zero() {
            let is_calm = |queue: &mut Queue| !queue.is_closed && queue.bytes < relief;
            queue =
                filled.wait_timeout_while(queue, gather, is_calm).unwrap_or_else(PoisonError::into_inner).0;
        }
        queue.bytes = 0;
        Batch {
            items: std::mem::take(&mut queue.items),
            handed_on: std::mem::take(&mut queue.handed_on),
            taken_at: clock.now(),
            is_end: queue.is_closed,
        }
    }

    /// Whether so much waits that it should be taken at once, whatever else is to be done.
    #[must_use]
    pub fn is_filling(&self) -> bool {
        self.shared.lock().bytes >= self.shared.relief_bytes()
    }

    /// A handle that ends the recording from outside.
    #[must_use]
    pub fn closer(&self) -> Closer {
        Closer(self.shared.clone())
    }

    /// The clock of the session.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.shared.clock
    }
}

impl Drop for TapeReader {
    fn drop(&mut self) {
        let mut queue = self.shared.lock();
        queue.is_reader_gone = true;
        queue.items = Vec::new();
        queue.handed_on = Vec::new();
    }
}

fn body_len(what: &What) -> usize {
    match what {
        What::Bytes { bytes, .. } | What::SseChunk(bytes) | What::Body(bytes) => bytes.len(),
        What::Request(head) => head.body.as_ref().map_or(0, Bytes::len),
        What::Inject { sent, .. } => sent.as_ref().map_or(0, Bytes::len),
        What::Telemetry(text) => text.len(),
        _ => 0,
    }
}

fn give_up_body(what: &mut What) {
    match what {
        What::Bytes { bytes, .. } | What::SseChunk(bytes) | What::Body(bytes) => *bytes = Bytes::new(),
        What::Request(head) => head.body = None,
        What::Inject { sent, .. } => *sent = None,
        What::Telemetry(text) => text.clear(),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &'static str) -> What {
        What::Bytes { bytes: Bytes::from_static(text.as_bytes()), read: None }
    }

    #[test]
    fn items_come_in_the_order_of_their_tickets() {
        let (tape, mut reader) = Tape::new(Clock::start(), 1 << 20);
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let tape = tape.clone();
                std::thread::spawn(move || {
                    for _ in 0..1000 {
                        let ticket = tape.push_stdio(Dir::C2s, bytes("x"));
                        tape.handed_on(ticket);
                    }
                })
            })
            .collect();
        drop(tape);
        let (mut tickets, mut handed_on) = (Vec::new(), 0);
        loop {
            let batch = reader.wait(Duration::from_secs(5));
            tickets.extend(batch.items.iter().map(|i| i.ticket.0));
            handed_on += batch.handed_on.len();
            if batch.is_end {
                break;
            }
        }
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(tickets, (1..=4000).collect::<Vec<u64>>());
        assert_eq!(handed_on, 4000);
    }

    #[test]
    fn a_full_tape_gives_up_bodies_but_never_places() {
        let (tape, mut reader) = Tape::new(Clock::start(), 540);
        let first = tape.push_stdio(Dir::S2c, bytes("0123456789"));
        for _ in 0..3 {
            tape.push_stdio(Dir::S2c, bytes("0123456789"));
        }
        let batch = reader.wait(Duration::ZERO);
        assert_eq!(batch.items.len(), 4);
        assert_eq!(batch.items[0].ticket, first);
        assert_eq!(batch.items.iter().map(|i| i.lost_bytes).collect::<Vec<_>>(), [0, 0, 10, 10]);
        assert_eq!(batch.items[3].what, What::Bytes { bytes: Bytes::new(), read: None });
    }

    #[test]
    fn a_closed_tape_ends_although_it_is_still_held() {
        let (tape, mut reader) = Tape::new(Clock::start(), 1 << 20);
        tape.push_stdio(Dir::C2s, bytes("x"));
        reader.closer().close();
        let batch = reader.wait_and_gather(Duration::from_mins(1), Duration::from_mins(1));
        assert_eq!((batch.items.len(), batch.is_end), (1, true));
        assert!(batch.items[0].at <= batch.taken_at);
    }

    #[test]
    fn gathering_ends_early_when_the_tape_is_filling() {
        let (tape, mut reader) = Tape::new(Clock::start(), 4 * ENTRY_COST);
        tape.push_stdio(Dir::C2s, bytes(""));
        let pusher = std::thread::spawn(move || {
            for _ in 0..3 {
                tape.push_stdio(Dir::C2s, bytes(""));
            }
            tape
        });
        let batch = reader.wait_and_gather(Duration::from_mins(1), Duration::from_mins(1));
        assert!(batch.items.len() >= 2 && !batch.is_end);
        drop(pusher.join().unwrap());
    }

    #[test]
    fn a_tape_without_a_reader_costs_nothing_and_never_grows() {
        let (tape, reader) = Tape::new(Clock::start(), 600);
        drop(reader);
        for _ in 0..10 {
            tape.push_stdio(Dir::S2c, bytes("x"));
        }
        assert!(tape.shared.lock().items.is_empty());
    }
}

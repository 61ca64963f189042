//! How much a client holds the server back, told in samples.

use crate::event::tape::Tape;
use crate::event::{Dir, Queue, What};
use crate::time::{Mono, Ms};

/// Least time between two samples. // ours: design, at most ten a second for each queue
const PAUSE: Ms = Ms(100);

/// The gauge of one connection; counts for one exchange at a time.
#[derive(Debug, Default)]
pub(super) struct Gauge {
    stream: Option<u64>,
    blocked_since: Option<Mono>,
    blocked_ns: u64,
    last_sample: Option<Mono>,
}

impl Gauge {
    /// The client takes no more; `waiting_bytes` of this exchange are held for it. May be told
    /// again and again while that lasts.
    pub(super) fn block(&mut self, tape: &Tape, conn: u64, stream: Option<u64>, waiting_bytes: usize) {
        if self.blocked_since.is_some() {
            return;
        }
        if self.stream != stream {
            *self = Gauge { stream, ..Gauge::default() };
        }
        let now = tape.clock().now();
        self.blocked_since = Some(now);
        self.sample(tape, conn, waiting_bytes, now);
    }

    /// Nothing is held any more.
    pub(super) fn release(&mut self, tape: &Tape, conn: u64) {
        if let Some(since) = self.blocked_since.take() {
            let now = tape.clock().now();
            self.blocked_ns += now.ns_since(since);
            self.sample(tape, conn, 0, now);
        }
    }

    fn sample(&mut self, tape: &Tape, conn: u64, waiting_bytes: usize, now: Mono) {
        if self.last_sample.is_some_and(|last| now < last.plus(PAUSE)) {
            return;
        }
        self.last_sample = Some(now);
        let queue = Queue {
            bytes: waiting_bytes as u64,
            blocked_ms: Mono(self.blocked_ns).to_ms().0,
            ..Queue::default()
        };
        tape.push_http(Dir::S2c, self.stream, Some(conn), What::Queue(queue));
    }
}

//! Numbers what comes off the tape, cuts reads of a pipe into lines, and writes it all; what
//! cannot be kept is counted and told in a `gap`.

use bytes::Bytes;

use super::Limits;
use super::disk::Disk;
use super::held::body_len;
use super::sink::Sink;
use super::status::Shared;
use crate::event::tape::Taped;
use crate::event::{Dir, Event, Transport, What};
use crate::time::{Mono, Ms};
use crate::trace::Header;
use crate::trace::encode::encode_event;

/// Text that is gathered before it is written. ours: large enough that the cost of a write does
/// not matter.
const WRITE_BYTES: usize = 256 << 10;

/// Standard error is free text: a larger read of it is kept as one event. ours: a person's log lines
/// come singly, a flood of short ones would grow tenfold as events of their own.
const STDERR_FLOOD_BYTES: usize = 4 << 10;

/// How often a failing write is tried again.
pub(super) const RETRY: Ms = Ms(1000);

// Why a gap is there.
const TAPE_FULL: &str = "the recorder fell behind the traffic";
const DISK_LOW: &str = "the disk is nearly full, so bodies are not kept";
const WRITE_FAILED: &str = "the recording could not be written";

/// Writes events in order.
pub(super) struct Pen {
    sink: Sink,
    header: Header,
    limits: Limits,
    disk: Disk,
    status: Shared,
    text: Vec<u8>,
    next_n: u64,
    /// Losses that follow each other, not yet told.
    gap: Option<Gap>,
    /// When a failed write is tried again.
    retry_at: Mono,
    /// When the file was begun, and the bytes of those before it.
    part_began: Mono,
    earlier_bytes: u64,
    lost_events: u64,
}

/// What is missing at one place.
struct Gap {
    at: Mono,
    dir: Dir,
    transport: Transport,
    stream: Option<u64>,
    lost: u64,
    bytes: u64,
    why: String,
}

impl Pen {
    /// A pen that begins `sink` with the header.
    pub(super) fn new(sink: Sink, header: Header, limits: Limits, status: Shared) -> Pen {
        let mut pen = Pen {
            sink,
            header,
            disk: Disk::new(&limits),
            limits,
            status,
            text: Vec::with_capacity(WRITE_BYTES),
            next_n: 1,
            gap: None,
            retry_at: Mono(0),
            part_began: Mono(0),
            earlier_bytes: 0,
            lost_events: 0,
        };
        pen.header.encode(&mut pen.text);
        pen.flush(Mono(0));
        pen
    }

    /// Writes an item as one event or several.
    pub(super) fn write(&mut self, taped: Taped, out: Option<Mono>) {
        let Taped { at, dir, transport, stream, conn, mut what, mut lost_bytes, .. } = taped;
        let mut why = TAPE_FULL;
        let len = body_len(&what) as u64;
        if len > 0 && self.disk.is_low() {
            (lost_bytes, why) = (len, DISK_LOW);
            if let What::Request(head) = &mut what {
                head.body = None;
            }
        }
        if let What::Gap { lost, bytes, why } = what {
            return self.lose(Gap { at, dir, transport, stream, lost, bytes, why });
        }
        let event = Event { n: 0, at, out, dir, transport, stream, conn, what };
        if lost_bytes == 0 {
            self.split(event);
            return;
        }
        if matches!(event.what, What::Request(_)) {
            self.event(event);
        }
        self.lose(Gap { at, dir, transport, stream, lost: 1, bytes: lost_bytes, why: why.to_owned() });
    }

    /// One event for each line of a read; every other event as it is, and a flood of stderr too.
    fn split(&mut self, event: Event) {
        let What::Bytes { bytes, read } = &event.what else { return self.event(event) };
        if event.dir == Dir::Stderr && bytes.len() > STDERR_FLOOD_BYTES {
            return self.event(event);
        }
        let (mut rest, read): (Bytes, _) = (bytes.clone(), *read);
        while let Some(end) = memchr::memchr(b'\n', &rest).filter(|end| end + 1 < rest.len()) {
            let line = rest.split_to(end + 1);
            self.event(Event { what: What::Bytes { bytes: line, read }, ..event.clone() });
        }
        self.event(Event { what: What::Bytes { bytes: rest, read }, ..event });
    }

    /// Numbers an event and adds it to the text, after what was lost before it.
    fn event(&mut self, event: Event) {
        if self.sink.is_failing() {
            let Event { at, dir, transport, stream, .. } = event;
            let bytes = body_len(&event.what) as u64;
            self.next_n += 1;
            self.lose(Gap { at, dir, transport, stream, lost: 1, bytes, why: WRITE_FAILED.to_owned() });
            return;
        }
        if self.gap.is_some() {
            self.tell_gap();
        }
        self.number(event);
    }

    fn number(&mut self, mut event: Event) {
        event.n = self.next_n;
        self.next_n += 1;
        encode_event(&event, &mut self.text);
        if self.text.len() >= WRITE_BYTES {
            self.flush(event.at);
        }
    }

    /// Counts a loss; losses in a row become one gap.
    fn lose(&mut self, more: Gap) {
        self.lost_events += more.lost;
        self.status.change(|status| {
            status.lost_events += more.lost;
            status.lost_bytes += more.bytes;
        });
        let is_failing = self.sink.is_failing();
        match &mut self.gap {
            Some(gap) if is_failing || gap.why == more.why => {
                gap.lost += more.lost;
                gap.bytes += more.bytes;
                gap.why = more.why;
                if gap.dir != more.dir {
                    gap.dir = Dir::Tap;
                }
                if gap.stream != more.stream {
                    gap.stream = None;
                }
            }
            _ => {
                self.tell_gap();
                self.gap = Some(more);
            }
        }
    }

    fn tell_gap(&mut self) {
        if self.sink.is_failing() {
            return;
        }
        let Some(Gap { at, dir, transport, stream, lost, bytes, why }) = self.gap.take() else { return };
        let what = What::Gap { lost, bytes, why };
        self.number(Event { n: 0, at, out: None, dir, transport, stream, conn: None, what });
    }

    /// The batch is through: all of it goes into the file. Failed writes are tried again, the
    /// disk is looked at, and a file that is large or old enough is followed by the next.
    pub(super) fn settle(&mut self, now: Mono) {
        if self.sink.is_failing() && self.retry_at <= now {
            let result = self.sink.retry();
            self.note(result, now);
        }
        self.tell_gap();
        self.flush(now);
        self.disk.look(self.sink.file());
        let age_ns = now.ns_since(self.part_began);
        let is_full = self.sink.written_bytes() >= self.limits.part_bytes
            || age_ns >= self.limits.part_age.0.saturating_mul(1_000_000);
        if is_full && !self.sink.is_failing() {
            self.turn(now);
        }
        self.status.change(|status| {
            status.events = self.next_n - 1;
            status.written_bytes = self.earlier_bytes + self.sink.written_bytes();
            status.is_failing = self.sink.is_failing();
            status.is_disk_low = self.disk.is_low();
        });
    }

    /// Ends the recording.
    pub(super) fn finish(&mut self, now: Mono) {
        self.retry_at = now;
        self.settle(now);
        let transport = self.transport();
        let (events, complete) = (Some(self.next_n - 1), Some(self.lost_events == 0));
        let what = What::CaptureEnd { events, complete };
        self.event(Event {
            n: 0,
            at: now,
            out: None,
            dir: Dir::Tap,
            transport,
            stream: None,
            conn: None,
            what,
        });
        self.flush(now);
        let result = self.sink.finish();
        self.note(result, now);
        self.settle(now);
        self.status.change(|status| status.is_finished = true);
    }

    /// Goes on in the next part; if that cannot be made, in this one.
    fn turn(&mut self, now: Mono) {
        self.part_began = now;
        let number = self.header.part.unwrap_or(1) + 1;
        match self.sink.next_part(number) {
            Ok(next) => {
                let mut full = std::mem::replace(&mut self.sink, next);
                let result = full.finish();
                self.earlier_bytes += full.written_bytes();
                self.note(result, now);
                self.header.part = Some(number);
                self.header.encode(&mut self.text);
                self.flush(now);
                self.status.change(|status| status.path = Some(self.sink.path().to_owned()));
            }
            Err(error) => self.status.change(|status| status.last_error = Some(error.to_string())),
        }
    }

    /// When a failed write is tried again, if one failed.
    pub(super) fn retry_at(&self) -> Option<Mono> {
        self.sink.is_failing().then_some(self.retry_at)
    }

    /// How the peers are joined, for what the recorder itself has to say.
    pub(super) fn transport(&self) -> Transport {
        self.header.transport.unwrap_or(Transport::Stdio)
    }

    fn flush(&mut self, now: Mono) {
        if self.text.is_empty() {
            return;
        }
        let result = self.sink.write(&self.text);
        self.text.clear();
        self.note(result, now);
    }

    fn note(&mut self, result: std::io::Result<()>, now: Mono) {
        if let Err(error) = result {
            self.retry_at = now.plus(RETRY);
            let path = self.sink.path().display();
            let text = format!("cannot write the recording {path}: {error}");
            self.status.change(|status| status.last_error = Some(text));
        }
    }
}

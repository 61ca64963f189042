//! Writing a recording: one thread that drains the tape of a tap into a file.
//!
//! tape → [`intake`] (spills when writing falls behind) → [`held`] (waits for "handed on", puts
//! bodies into their requests) → [`pen`] (numbers, cuts lines, tells gaps, turns to the next part)
//! → [`sink`] (the file). The tap never waits for any of it.

mod disk;
#[cfg(test)]
mod disk_tests;
mod held;
mod intake;
mod pen;
mod sink;
mod spill;
mod status;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use chrono::SecondsFormat;

use self::held::Held;
use self::intake::Intake;
use self::pen::Pen;
use self::sink::Sink;
use self::status::Shared;
use super::{Header, TraceError};
use crate::event::tape::{Closer, TapeReader, Taped, Ticket};
use crate::event::{Dir, What};
use crate::time::{self, Clock, Mono, Ms};

pub(super) use self::sink::part_path;
pub use self::status::RecorderStatus;

/// How often wall time is written down.
const ANCHOR: Ms = Ms(10_000);

/// A sleep of the machine longer than this is written down at once.
const SUSPEND_NS: u64 = 1_000_000_000;

/// How long the end of a session waits for the recording. ours: what is still queued then fits
/// into this on any working disk, and a hanging one must not hold up an exit status for ever.
const FINISH: Duration = Duration::from_secs(10);

/// Where a recording stops growing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// A file of this size is followed by the next part.
    pub part_bytes: u64,
    /// So is a file of this age.
    pub part_age: Ms,
    /// Below this much free space (or a twentieth of a small disk) no bodies are kept.
    pub keep_free_bytes: u64,
}

impl Default for Limits {
    /// ours: 1 GiB and a day; 512 MiB stay free.
    fn default() -> Limits {
        Limits { part_bytes: 1 << 30, part_age: Ms(24 * 3600 * 1000), keep_free_bytes: 512 << 20 }
    }
}

/// The thread that writes a recording.
pub struct Recorder {
    clock: Clock,
    intake: Intake,
    held: Held,
    pen: Pen,
    next_anchor: Mono,
    slept_ns: u64,
}

/// The owner's end of a recorder. Dropping it ends the recording.
#[derive(Debug)]
pub struct RecorderHandle {
    status: Shared,
    closer: Closer,
    done: mpsc::Receiver<()>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Recorder {
    /// Starts to record what comes off the tape. `path` `None`: nothing is kept, and the tape is
    /// let go. A path that ends in `.zst` is compressed; a name that is taken gets a number.
    ///
    /// # Errors
    /// When the file cannot be made. The tape is then let go, and the path is not disturbed: go on
    /// without a recording, or ask for another place.
    pub fn start(
        header: Header,
        path: Option<&Path>,
        tape: TapeReader,
        limits: Limits,
    ) -> Result<RecorderHandle, TraceError> {
        let (status, closer) = (Shared::default(), tape.closer());
        let (tell_done, done) = mpsc::channel();
        let Some(path) = path else {
            status.change(|status| status.is_finished = true);
            return Ok(RecorderHandle { status, closer, done, thread: None });
        };
        let sink = Sink::create(path)?;
        status.change(|status| status.path = Some(sink.path().to_owned()));
        let folder = sink.path().parent().map_or_else(PathBuf::new, Path::to_owned);
        let recorder = Recorder {
            clock: tape.clock(),
            intake: Intake::new(tape, folder, status.clone()),
            held: Held::default(),
            pen: Pen::new(sink, header, limits, status.clone()),
            next_anchor: Mono(0).plus(ANCHOR),
            slept_ns: time::slept_ns(),
        };
        let run = move || {
            recorder.run();
            // Nobody waits any more when the handle is gone.
            let _ = tell_done.send(());
        };
        let thread = thread::Builder::new().name("recorder".to_owned()).spawn(run);
        let thread = thread.map_err(|source| TraceError::Thread { source })?;
        Ok(RecorderHandle { status, closer, done, thread: Some(thread) })
    }

    fn run(mut self) {
        loop {
            let batch = self.intake.next(self.patience());
            let (now, is_end) = (batch.taken_at, batch.is_end);
            self.held.add(batch);
            self.anchor(now);
            while let Some((taped, out)) = self.held.pop(now, is_end) {
                self.pen.write(taped, out);
                self.intake.relieve();
            }
            self.pen.settle(now);
            if is_end {
                self.pen.finish(self.clock.now());
                return;
            }
        }
    }

    /// How long nothing needs to be done if nothing comes.
    fn patience(&self) -> Duration {
        let now = self.clock.now();
        let due = [Some(self.next_anchor), self.held.due(), self.pen.retry_at()].into_iter().flatten().min();
        let patience = due.map_or(0, |due| due.ns_since(now));
        // A wait of nothing would turn the loop into a spin while an item is about to be due.
        Duration::from_nanos(patience.max(1_000_000))
    }

    /// Writes wall time down, every ten seconds and after the machine slept.
    fn anchor(&mut self, now: Mono) {
        let slept_ns = time::slept_ns();
        let has_slept = slept_ns.saturating_sub(self.slept_ns) >= SUSPEND_NS;
        self.slept_ns = slept_ns;
        if now < self.next_anchor && !has_slept {
            return;
        }
        self.next_anchor = now.plus(ANCHOR);
        let wall = time::wall_now().to_rfc3339_opts(SecondsFormat::Millis, true);
        self.held.add_own(Taped {
            ticket: Ticket(0),
            at: now,
            dir: Dir::Tap,
            transport: self.pen.transport(),
            stream: None,
            conn: None,
            what: What::Clock { wall },
            lost_bytes: 0,
        });
    }
}

impl RecorderHandle {
    /// How the recording is going.
    #[must_use]
    pub fn status(&self) -> RecorderStatus {
        self.status.get()
    }

    /// Ends the recording in order: all that is on the tape is written, then `capture_end`. What
    /// happens later is not recorded. Waits at most ten seconds for a disk that hangs.
    #[must_use = "it says whether anything is missing; drop the handle if nobody wants to know"]
    pub fn finish(mut self) -> RecorderStatus {
        self.end();
        self.status.get()
    }

    fn end(&mut self) {
        self.closer.close();
        let Some(thread) = self.thread.take() else { return };
        // A disconnected channel means that the thread is gone, with or without a word.
        if !matches!(self.done.recv_timeout(FINISH), Err(mpsc::RecvTimeoutError::Timeout)) {
            // A panic of the recorder was reported by its thread; the recording is cut, not the exit.
            let _ = thread.join();
        }
    }
}

impl Drop for RecorderHandle {
    fn drop(&mut self) {
        self.end();
    }
}

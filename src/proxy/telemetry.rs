//! Where a server may tell about its own work: a local socket beside the path. What comes is put on
//! the tape line by line, in the order of arrival.
//!
//! Nothing here touches the path. A server that tells too much loses lines, never time, and so does
//! nobody else: lines beyond a budget are counted and owned up to. What is no JSON object is
//! recorded as a string.

use std::collections::HashMap;
use std::io::{self, ErrorKind, Read as _};
use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use rustix::event::{PollFd, PollFlags, poll};

use super::ProxyError;
use crate::event::tape::Tape;
use crate::event::telemetry::{LINE_LIMIT_BYTES, dropped};
use crate::event::{Dir, Transport, What};
use crate::time::{Mono, Ms};
use crate::wire::lines::{Line, LineDecoder};

/// Processes that may tell at once: a server and some helpers. ours.
const TELLERS: usize = 16;

/// Lines that are recorded in one second. ours: far above what a server has to tell about calls
/// that people wait for, and no burden for the recorder.
const LINES_PER_S: u32 = 5000;

/// The time of one budget of lines.
const BUDGET_TIME: Ms = Ms(1000);

/// Bytes asked for in one read.
const READ_BYTES: usize = 16 << 10;

/// Reads of each teller before the others, and the end, are looked at again. ours: together more than
/// a socket holds, so that what was told before the end is taken, and one that never pauses is not
/// waited for.
const READS: usize = 64;

/// Which exchange came last on each connection to the server, by the port at the tap's end: a
/// server that names it says which client's request it means. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Callers(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    is_wanted: AtomicBool,
    /// Port → (exchange, connection of the client). One entry a port, so it cannot grow for long.
    by_port: Mutex<HashMap<u16, (u64, u64)>>,
}

impl Callers {
    /// From now on somebody asks.
    fn want(&self) {
        self.0.is_wanted.store(true, Ordering::Relaxed);
    }

    /// An exchange begins on the connection to the server whose end here has this address.
    pub(super) fn note(&self, local: SocketAddr, stream: u64, conn: u64) {
        if self.0.is_wanted.load(Ordering::Relaxed) {
            self.lock().insert(local.port(), (stream, conn));
        }
    }

    fn find(&self, port: u16) -> Option<(u64, u64)> {
        self.lock().get(&port).copied()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u16, (u64, u64)>> {
        self.0.by_port.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The reader of what servers tell; ends when this is dropped, after it has taken what was told
/// by then.
#[derive(Debug)]
pub struct Telemetry {
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl Telemetry {
    /// Reads whatever comes to `listener`. `callers`: of an HTTP tap.
    ///
    /// # Errors
    /// When the tap lacks a thread or a descriptor.
    pub fn start(
        listener: UnixListener,
        tape: Tape,
        callers: Option<Callers>,
    ) -> Result<Telemetry, ProxyError> {
        let failed = |source| ProxyError::CannotSetUp { what: "the socket for telemetry", source };
        listener.set_nonblocking(true).map_err(failed)?;
        let (stop, stopped) = UnixStream::pair().map_err(failed)?;
        if let Some(callers) = &callers {
            callers.want();
        }
        let mut reader = Reader::new(listener, tape, callers);
        let thread = thread::Builder::new().name("telemetry".to_owned()).spawn(move || reader.run(&stopped));
        Ok(Telemetry { stop: Some(stop), thread: Some(thread.map_err(failed)?) })
    }
}

impl Drop for Telemetry {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic was reported by the thread.
            let _ = thread.join();
        }
    }
}

/// One process that tells.
struct Teller {
    stream: UnixStream,
    lines: LineDecoder,
}

struct Reader {
    listener: UnixListener,
    tape: Tape,
    callers: Option<Callers>,
    tellers: Vec<Teller>,
    budget: Budget,
}

impl Reader {
    fn new(listener: UnixListener, tape: Tape, callers: Option<Callers>) -> Reader {
        let budget = Budget { since: tape.clock().now(), taken: 0, dropped: 0 };
        Reader { listener, tape, callers, tellers: Vec::new(), budget }
    }

    /// Until `stopped` hangs up.
    fn run(&mut self, stopped: &UnixStream) {
        loop {
            let is_over = {
                let mut fds = vec![
                    PollFd::from_borrowed_fd(stopped.as_fd(), PollFlags::IN),
                    PollFd::from_borrowed_fd(self.listener.as_fd(), PollFlags::IN),
                ];
                fds.extend(
                    self.tellers
                        .iter()
                        .map(|teller| PollFd::from_borrowed_fd(teller.stream.as_fd(), PollFlags::IN)),
                );
                match poll(&mut fds, None) {
                    Ok(_) => fds.first().is_some_and(|fd| !fd.revents().is_empty()),
                    Err(rustix::io::Errno::INTR) => false,
                    Err(_) => true,
                }
            };
            self.accept();
            self.read();
            if is_over {
                self.own_up();
                return;
            }
        }
    }

    fn accept(&mut self) {
        while let Ok((stream, _)) = self.listener.accept() {
            // More than so many are turned away.
            if self.tellers.len() < TELLERS && stream.set_nonblocking(true).is_ok() {
                self.tellers.push(Teller { stream, lines: LineDecoder::new(LINE_LIMIT_BYTES) });
            }
        }
    }

    /// Takes what is there, one read of each at a time, so that none keeps the others waiting.
    fn read(&mut self) {
        let mut tellers = std::mem::take(&mut self.tellers);
        let mut buf = [0; READ_BYTES];
        for _ in 0..READS {
            let mut is_idle = true;
            tellers.retain_mut(|teller| {
                let (lines, is_there) = match teller.stream.read(&mut buf) {
                    Ok(0) => (teller.lines.finish().into_iter().collect(), false),
                    Ok(len) => {
                        is_idle = false;
                        (teller.lines.push(buf.get(..len).unwrap_or_default()), true)
                    }
                    Err(error) => (Vec::new(), is_for_now(&error)),
                };
                for line in &lines {
                    self.line(line);
                }
                is_there
            });
            if is_idle {
                break;
            }
        }
        self.tellers = tellers;
    }

    fn line(&mut self, line: &Line) {
        let now = self.tape.clock().now();
        if self.budget.is_over(now) {
            self.own_up();
            self.budget.since = now;
            self.budget.taken = 0;
        }
        if line.is_over_limit || self.budget.taken >= LINES_PER_S {
            self.budget.dropped += 1;
            return;
        }
        self.budget.taken += 1;
        let text = String::from_utf8_lossy(&line.body).into_owned();
        if !text.trim().is_empty() {
            self.push(text);
        }
    }

    fn push(&self, text: String) {
        let Some(callers) = &self.callers else {
            self.tape.push(Dir::S2c, Transport::Stdio, None, None, What::Telemetry(text));
            return;
        };
        let (stream, conn) = peer_port(&text).and_then(|port| callers.find(port)).unzip();
        self.tape.push_http(Dir::S2c, stream, conn, What::Telemetry(text));
    }

    /// Says how many lines were dropped since it was last said.
    fn own_up(&mut self) {
        let lines = std::mem::take(&mut self.budget.dropped);
        if lines > 0 {
            self.push(dropped("tap", lines));
        }
    }
}

fn is_for_now(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// How many lines may still be recorded now.
struct Budget {
    since: Mono,
    taken: u32,
    dropped: u64,
}

impl Budget {
    fn is_over(&self, now: Mono) -> bool {
        self.since.plus(BUDGET_TIME) <= now
    }
}

/// The port of the member `peer`, which holds the address that the server saw. The line is searched
/// and not parsed: nothing that a server tells may cost more than its length.
fn peer_port(line: &str) -> Option<u16> {
    let (_, rest) = line.split_once("\"peer\":\"")?;
    let (address, _) = rest.split_once('"')?;
    address.rsplit_once(':')?.1.parse().ok()
}

#[cfg(test)]
mod tests;

//! One direction of the path: read, take a place on the tape, write on. No framing, and no copy
//! of more than [`COPY_BYTES`] for the recorder.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::event::tape::Tape;
use crate::event::{Close, Dir, What};

/// The most that one read takes: the capacity of a Linux pipe, so that what a sender wrote in
/// one go is not cut in two.
const CHUNK_BYTES: usize = 64 << 10;

/// Reads up to this size are copied for the recorder, so that the reading buffer stays warm and
/// a waiting event holds no more memory than its bytes; larger ones give their buffer away, of
/// which at most a quarter is empty.
const COPY_BYTES: usize = 48 << 10;

/// What stands between reading and writing on. The default, [`Direct`], is nothing.
///
/// The seam for holding, editing or delaying traffic: a gate sees each chunk after it has its
/// place on the tape, and writes to the receiver what it lets pass.
pub(super) trait Gate: Send {
    /// Hands a chunk on; returns when its last byte was written, or with the receiver's error.
    fn hand_on(&mut self, chunk: &[u8], receiver: BorrowedFd<'_>) -> Result<(), Errno>;
}

/// No gate: every chunk is written on at once, as it was read.
#[derive(Debug)]
pub(super) struct Direct;

impl Gate for Direct {
    #[inline]
    fn hand_on(&mut self, chunk: &[u8], receiver: BorrowedFd<'_>) -> Result<(), Errno> {
        write_all(receiver, chunk)
    }
}

/// How far a lane has come; read by the deciding thread.
#[derive(Debug, Default)]
pub(super) struct Progress {
    read: AtomicU64,
    forwarded: AtomicU64,
}

impl Progress {
    /// Bytes read from the sender.
    pub(super) fn read_bytes(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// Bytes written on.
    pub(super) fn forwarded_bytes(&self) -> u64 {
        self.forwarded.load(Ordering::Relaxed)
    }
}

/// Why a lane moves no more bytes.
#[derive(Debug)]
pub(super) enum LaneEnd {
    /// The sender ended. The way to the receiver comes along, still open where the end must be
    /// passed on later.
    Sender(OwnedFd),
    /// The sender ended, and the end has been passed on.
    Both,
    /// The receiver takes no more; the sender has been told by closing its pipe.
    Receiver,
}

/// One direction: where from, where to, and what stands between.
pub(super) struct Lane<G> {
    dir: Dir,
    from: Arc<OwnedFd>,
    to: OwnedFd,
    tape: Tape,
    progress: Arc<Progress>,
    gate: G,
}

impl<G: Gate> Lane<G> {
    pub(super) fn new(
        dir: Dir,
        from: Arc<OwnedFd>,
        to: OwnedFd,
        tape: Tape,
        progress: Arc<Progress>,
        gate: G,
    ) -> Lane<G> {
        Lane { dir, from, to, tape, progress, gate }
    }

    /// Moves bytes until one side ends, and records that end before it is passed on.
    pub(super) fn run(mut self) -> LaneEnd {
        match self.forward() {
            Ok(how) if self.dir == Dir::C2s => {
                self.tape.push_stdio(Dir::C2s, What::ClientClosed { how: Some(how) });
                LaneEnd::Both
            }
            Ok(_) => LaneEnd::Sender(self.to),
            Err(Refused { error, bytes }) => {
                self.record_refusal(error, bytes);
                LaneEnd::Receiver
            }
        }
    }

    /// Until the sender ends (and how), or the receiver refuses.
    fn forward(&mut self) -> Result<Close, Refused> {
        let mut buf = Vec::with_capacity(CHUNK_BYTES);
        let mut read = 0;
        loop {
            let len = match read_some(self.from.as_fd(), &mut buf) {
                Ok(0) => return Ok(Close::Eof),
                Ok(len) => len,
                Err(_) => return Ok(Close::Reset),
            };
            self.progress.read.fetch_add(len as u64, Ordering::Relaxed);
            read += 1;
            let given = (len > COPY_BYTES)
                .then(|| Bytes::from(std::mem::replace(&mut buf, Vec::with_capacity(CHUNK_BYTES))));
            let copy = given.clone().unwrap_or_else(|| Bytes::copy_from_slice(&buf));
            let ticket = self.tape.push_stdio(self.dir, What::Bytes { bytes: copy, read: Some(read) });
            let chunk = given.as_deref().unwrap_or(&buf);
            match self.gate.hand_on(chunk, self.to.as_fd()) {
                Ok(()) => self.tape.handed_on(ticket),
                // A log that cannot take more (a full disk, a terminal that has gone) is no
                // reason to stop the server; a reader that has left is, as without a tap.
                Err(error) if self.dir == Dir::Stderr && error != Errno::PIPE => {}
                Err(error) => return Err(Refused { error, bytes: len }),
            }
            self.progress.forwarded.fetch_add(len as u64, Ordering::Relaxed);
            buf.clear();
        }
    }

    fn record_refusal(&self, error: Errno, bytes: usize) {
        let receiver = match self.dir {
            Dir::C2s => "the server closed its stdin",
            Dir::Stderr => "the client closed the server's stderr",
            Dir::S2c | Dir::Tap => {
                self.tape.push_stdio(Dir::S2c, What::ClientClosed { how: Some(Close::Reset) });
                "the client closed the server's stdout"
            }
        };
        let error = io::Error::from(error);
        let text = format!("{receiver}: {error}; of the last {bytes} bytes not all were taken");
        self.tape.push_stdio(Dir::Tap, What::Mark(text));
    }
}

/// The receiver took no more.
struct Refused {
    error: Errno,
    /// Size of the chunk that was not wholly taken.
    bytes: usize,
}

/// Appends what one read returns to `buf`; 0: the sender ended.
fn read_some(from: BorrowedFd<'_>, buf: &mut Vec<u8>) -> Result<usize, Errno> {
    loop {
        match rustix::io::read(from, spare_capacity(buf)) {
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => wait_until(from, PollFlags::IN)?,
            other => return other,
        }
    }
}

/// Writes all of `bytes`; a partial write goes on where it stopped.
fn write_all(to: BorrowedFd<'_>, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match rustix::io::write(to, bytes) {
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => wait_until(to, PollFlags::OUT)?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Waits for a descriptor that its other owner has set to non-blocking; the flag belongs to both,
/// so it is left as it is.
fn wait_until(fd: BorrowedFd<'_>, what: PollFlags) -> Result<(), Errno> {
    match poll(&mut [PollFd::from_borrowed_fd(fd, what)], None) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;

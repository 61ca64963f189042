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

use crate::event::tape::{Tape, Ticket};
use crate::event::{Close, Dir, What};

/// The most that one read takes: the capacity of a Linux pipe, so that what a sender wrote in
/// one go is not cut in two.
const CHUNK_BYTES: usize = 64 << 10;

/// Reads up to this size are copied for the recorder, so that the reading buffer stays warm and
/// a waiting event holds no more memory than its bytes; larger ones give their buffer away, of
/// which at most a quarter is empty.
const COPY_BYTES: usize = 48 << 10;

/// What stands between reading and writing on. The least, [`Direct`], is nothing.
pub(super) trait Gate: Send {
    /// Whether what is read gets its places on the tape line by line.
    fn cuts_lines(&self) -> bool;

    /// Hands on what has its places on the tape, and says when it is out. Returns when the sender
    /// may be read further, or with the receiver's error.
    fn hand_on(
        &mut self,
        pieces: &[(Ticket, Bytes)],
        tape: &Tape,
        sender: BorrowedFd<'_>,
    ) -> Result<(), Errno>;

    /// The sender is not to be heard any more.
    fn is_cut(&self) -> bool;

    /// The sender has ended: what still waits passes.
    fn finish(&mut self);

    /// The receiver is told the end.
    fn close(&mut self);
}

/// No gate: every chunk is written on at once, as it was read.
#[derive(Debug)]
pub(super) struct Direct(pub(super) Option<OwnedFd>);

impl Gate for Direct {
    fn cuts_lines(&self) -> bool {
        false
    }

    fn hand_on(
        &mut self,
        pieces: &[(Ticket, Bytes)],
        tape: &Tape,
        _sender: BorrowedFd<'_>,
    ) -> Result<(), Errno> {
        for (ticket, bytes) in pieces {
            write_all(self.0.as_ref().ok_or(Errno::PIPE)?.as_fd(), bytes)?;
            tape.handed_on(*ticket);
        }
        Ok(())
    }

    fn is_cut(&self) -> bool {
        false
    }

    fn finish(&mut self) {}

    fn close(&mut self) {
        self.0 = None;
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LaneEnd {
    /// The sender ended; the receiver is told later.
    Sender,
    /// The sender ended, or was cut off, and the receiver has been told.
    Both,
    /// The receiver takes no more; the sender has been told by closing its pipe.
    Receiver,
    /// The sender was cut off by an order; the receiver is told nothing.
    Cut,
}

/// One direction: where from, and what stands before the receiver.
pub(super) struct Lane<G> {
    dir: Dir,
    from: Arc<OwnedFd>,
    tape: Tape,
    progress: Arc<Progress>,
    gate: G,
}

impl<G: Gate> Lane<G> {
    pub(super) fn new(dir: Dir, from: Arc<OwnedFd>, tape: Tape, progress: Arc<Progress>, gate: G) -> Lane<G> {
        Lane { dir, from, tape, progress, gate }
    }

    /// Moves bytes until one side ends, and records that end before it is passed on.
    pub(super) fn run(mut self) -> LaneEnd {
        let end = self.forward();
        let is_to_server = self.dir == Dir::C2s;
        match end {
            Ok(end) => {
                if let (Some(how), true) = (end, is_to_server) {
                    self.tape.push_stdio(Dir::C2s, What::ClientClosed { how: Some(how) });
                }
                self.gate.finish();
                if is_to_server {
                    self.gate.close();
                }
                match (is_to_server, end) {
                    (true, _) => LaneEnd::Both,
                    (false, Some(_)) => LaneEnd::Sender,
                    (false, None) => LaneEnd::Cut,
                }
            }
            Err(Refused { error, bytes }) => {
                self.record_refusal(error, bytes);
                self.gate.close();
                LaneEnd::Receiver
            }
        }
    }

    /// Until the sender ends (and how) or is cut off (`None`), or the receiver refuses.
    fn forward(&mut self) -> Result<Option<Close>, Refused> {
        let mut buf = Vec::with_capacity(CHUNK_BYTES);
        let mut read = 0;
        loop {
            let len = match read_some(self.from.as_fd(), &mut buf) {
                Ok(0) => return Ok(Some(Close::Eof)),
                Ok(len) => len,
                Err(_) => return Ok(Some(Close::Reset)),
            };
            self.progress.read.fetch_add(len as u64, Ordering::Relaxed);
            read += 1;
            let chunk = if len > COPY_BYTES {
                Bytes::from(std::mem::replace(&mut buf, Vec::with_capacity(CHUNK_BYTES)))
            } else {
                Bytes::copy_from_slice(&buf)
            };
            let result = if self.gate.cuts_lines() {
                let lines = self.tape_lines(&chunk, read);
                if self.gate.is_cut() {
                    return Ok(None);
                }
                self.gate.hand_on(&lines, &self.tape, self.from.as_fd())
            } else {
                let what = What::Bytes { bytes: chunk.clone(), read: Some(read) };
                let ticket = self.tape.push_stdio(self.dir, what);
                self.gate.hand_on(&[(ticket, chunk)], &self.tape, self.from.as_fd())
            };
            match result {
                // A log that cannot take more (a full disk, a terminal that has gone) is no
                // reason to stop the server; a reader that has left is, as without a tap.
                Err(error) if self.dir != Dir::Stderr || error == Errno::PIPE => {
                    return Err(Refused { error, bytes: len });
                }
                _ => {}
            }
            self.progress.forwarded.fetch_add(len as u64, Ordering::Relaxed);
            buf.clear();
        }
    }

    /// Gives each line of a chunk, or piece of one, its place on the tape.
    fn tape_lines(&self, chunk: &Bytes, read: u64) -> Vec<(Ticket, Bytes)> {
        let lines = chunk.split_inclusive(|byte| *byte == b'\n').map(|line| {
            let bytes = chunk.slice_ref(line);
            let what = What::Bytes { bytes: bytes.clone(), read: Some(read) };
            (self.tape.push_stdio(self.dir, what), bytes)
        });
        lines.collect()
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
pub(super) fn write_all(to: BorrowedFd<'_>, mut bytes: &[u8]) -> Result<(), Errno> {
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

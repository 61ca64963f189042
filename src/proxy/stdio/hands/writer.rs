//! The thread that writes one direction once there are orders: alone, so that nothing comes
//! between the bytes of a line.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::Hands;
use super::item::Item;
use super::way::Pace;
use crate::event::Dir;
use crate::event::tape::Ticket;
use crate::time::{Mono, Ms};

/// The most that a pipe takes without blocking when it takes anything (POSIX: `PIPE_BUF`).
const PIECE_BYTES: usize = 4096;

/// How often a writer whose receiver takes nothing looks for orders.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// What the writer does next.
enum Step {
    Write(Box<Item>),
    /// The receiver is told the end.
    Close,
    /// There is another receiver.
    Open(OwnedFd),
    /// Nothing more will be written.
    Over,
}

/// Why a message was not wholly written.
enum Stopped {
    /// By an order.
    Ordered,
    Refused(Errno),
}

impl Hands {
    /// Writes until the way is closed. `receiver` and whether it is between two lines.
    pub(super) fn write_out(&self, dir: Dir, mut receiver: Option<OwnedFd>, mut is_at_boundary: bool) {
        loop {
            match self.next_step(dir, receiver.is_some(), is_at_boundary) {
                Step::Over => return,
                Step::Close => receiver = None,
                Step::Open(other) => {
                    receiver = Some(other);
                    is_at_boundary = true;
                }
                Step::Write(item) => {
                    let ends_line = item.ends_line;
                    let told = item.event.clone().map(|event| self.lock().push(dir, event));
                    let result = match &receiver {
                        Some(receiver) => self.write_item(dir, receiver.as_fd(), &item),
                        None => Err(Stopped::Ordered),
                    };
                    is_at_boundary = ends_line;
                    self.finish_item(dir, *item, told, &result);
                }
            }
        }
    }

    fn next_step(&self, dir: Dir, has_receiver: bool, is_at_boundary: bool) -> Step {
        let mut state = self.lock();
        loop {
            if state.mature() {
                // The other writer and the lanes may wait for just that.
                self.changed.notify_all();
            }
            let now = state.now();
            let way = state.way_mut(dir);
            if way.is_over {
                return Step::Over;
            }
            if let Some(receiver) = way.replacement.take() {
                return Step::Open(receiver);
            }
            if has_receiver && (way.is_cut || way.error.is_some()) {
                return Step::Close;
            }
            if let Some(item) = way.next(is_at_boundary, now) {
                return Step::Write(Box::new(item));
            }
            let due = state.next_due(dir);
            state = self.wait(state, due.map(|due| due.ns_since(now)));
        }
    }

    /// Writes one message at the pace of its way.
    fn write_item(&self, dir: Dir, to: BorrowedFd<'_>, item: &Item) -> Result<(), Stopped> {
        let mut rest = &item.bytes[..];
        while !rest.is_empty() {
            let is_start = rest.len() == item.bytes.len();
            let mut piece = self.piece(dir, rest.len(), is_start)?;
            if let Some((bytes, gap)) = item.slice {
                if !is_start {
                    self.pause(dir, gap)?;
                }
                piece = piece.min(bytes);
            }
            let (now, later) = rest.split_at_checked(piece).unwrap_or((rest, &[]));
            self.write_piece(dir, to, now)?;
            rest = later;
        }
        Ok(())
    }

    /// How many bytes may be written, once any may.
    fn piece(&self, dir: Dir, left: usize, is_start: bool) -> Result<usize, Stopped> {
        let mut state = self.lock();
        loop {
            let now = state.now();
            let way = state.way_mut(dir);
            if way.is_closed() || way.is_paused {
                return Err(Stopped::Ordered);
            }
            match way.pace(left, is_start, now) {
                Pace::Bytes(bytes) => return Ok(bytes),
                Pace::Wait(until) => state = self.wait(state, until.map(|until| until.ns_since(now))),
            }
        }
    }

    /// Lets time pass.
    fn pause(&self, dir: Dir, gap: Ms) -> Result<(), Stopped> {
        let mut state = self.lock();
        let until = state.now().plus(gap);
        loop {
            let now: Mono = state.now();
            if state.way(dir).is_closed() {
                return Err(Stopped::Ordered);
            }
            if now >= until {
                return Ok(());
            }
            state = self.wait(state, Some(until.ns_since(now)));
        }
    }

    /// Writes so that an order can stop it while the receiver takes nothing.
    fn write_piece(&self, dir: Dir, to: BorrowedFd<'_>, mut bytes: &[u8]) -> Result<(), Stopped> {
        while !bytes.is_empty() {
            match poll(&mut [PollFd::from_borrowed_fd(to, PollFlags::OUT)], Some(&LOOK)) {
                Ok(0) | Err(Errno::INTR) => {
                    let state = self.lock();
                    if state.way(dir).is_closed() || state.way(dir).is_paused {
                        return Err(Stopped::Ordered);
                    }
                    continue;
                }
                Ok(_) => {}
                Err(error) => return Err(Stopped::Refused(error)),
            }
            let piece = bytes.get(..PIECE_BYTES).unwrap_or(bytes);
            match rustix::io::write(to, piece) {
                Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(error) => return Err(Stopped::Refused(error)),
            }
        }
        Ok(())
    }

    /// A message is out, or will never be.
    fn finish_item(&self, dir: Dir, mut item: Item, told: Option<Ticket>, result: &Result<(), Stopped>) {
        let mut state = self.lock();
        state.way_mut(dir).written();
        match result {
            Ok(()) => {
                item.tickets.extend(told);
                state.handed_on(&item.tickets);
                let then = std::mem::take(&mut item.then);
                state.follow(then);
                if state.holds.has_promises()
                    && let Some(seen) = &item.seen
                {
                    let kept = state.holds.passed(&seen.passing());
                    state.release(kept, &super::item::Why::own(), "what it waited for has passed");
                }
            }
            Err(Stopped::Ordered) => state.lose(dir, item),
            Err(Stopped::Refused(error)) => {
                if !state.way(dir).is_paused {
                    state.way_mut(dir).error = Some(*error);
                    state.lose_all(dir);
                }
                state.lose(dir, item);
            }
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Waits until something changes or the time has passed.
    pub(super) fn wait<'a>(
        &self,
        state: std::sync::MutexGuard<'a, super::State>,
        ns: Option<u64>,
    ) -> std::sync::MutexGuard<'a, super::State> {
        use std::sync::PoisonError;
        match ns {
            Some(ns) => {
                let limit = Duration::from_nanos(ns);
                self.changed.wait_timeout(state, limit).unwrap_or_else(PoisonError::into_inner).0
            }
            None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
        }
    }
}

//! Between a lane and its receiver.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use memchr::memchr;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::Hands;
use super::item::Item;
use crate::event::Dir;
use crate::event::tape::{Tape, Ticket};
use crate::proxy::stdio::lane::Gate;
use crate::wire::lines::LINE_LIMIT_BYTES;

/// How often a lane that may write nothing looks whether its sender is still there.
const LOOK: Duration = Duration::from_millis(100);

/// The way to a receiver that orders may be for.
#[derive(Debug)]
pub(in crate::proxy::stdio) struct Through {
    hands: Arc<Hands>,
    dir: Dir,
    /// The beginning of a line, and its places on the tape.
    kept: Vec<u8>,
    tickets: Vec<Ticket>,
    /// The line whose beginning is out already goes on unseen.
    is_unseen: bool,
}

impl Through {
    pub(in crate::proxy::stdio) fn new(hands: Arc<Hands>, dir: Dir) -> Through {
        Through { hands, dir, kept: Vec::new(), tickets: Vec::new(), is_unseen: false }
    }

    /// Bytes that follow those taken before. A piece may hold several lines; its place on the tape
    /// goes with the last.
    fn take(&mut self, ticket: Ticket, piece: &Bytes) {
        let mut rest = piece.clone();
        while !rest.is_empty() {
            let end = memchr(b'\n', &rest).map(|at| at + 1);
            let part = rest.split_to(end.unwrap_or(rest.len()));
            if rest.is_empty() {
                self.tickets.push(ticket);
            }
            if self.is_unseen {
                self.is_unseen = end.is_none();
                self.push_unseen(part, end.is_some(), true);
            } else if end.is_some() {
                let line = if self.kept.is_empty() {
                    part
                } else {
                    self.kept.extend_from_slice(&part);
                    Bytes::from(std::mem::take(&mut self.kept))
                };
                self.hands.lock().take_line(self.dir, &line, std::mem::take(&mut self.tickets));
            } else {
                self.kept.extend_from_slice(&part);
                if self.kept.len() > LINE_LIMIT_BYTES {
                    let part = Bytes::from(std::mem::take(&mut self.kept));
                    self.is_unseen = true;
                    self.push_unseen(part, false, false);
                }
            }
        }
        self.hands.changed.notify_all();
    }

    /// A piece of a line that is not looked at; `is_rest`: not its first.
    fn push_unseen(&mut self, part: Bytes, ends_line: bool, is_rest: bool) {
        let tickets = std::mem::take(&mut self.tickets);
        let item = Item { tickets, ..Item::new(part, ends_line, "line".to_owned()) };
        let mut state = self.hands.lock();
        let now = state.now();
        if !state.way(self.dir).is_closed() {
            // Only whole lines are ever refused.
            let _ = state.way_mut(self.dir).push(item, is_rest, now);
        }
    }

    /// Until what was taken is out, so that a slow receiver holds the sender back.
    fn wait_for_room(&self, sender: BorrowedFd<'_>) -> Result<(), Errno> {
        let mut state = self.hands.lock();
        loop {
            let way = state.way(self.dir);
            if let Some(error) = way.error {
                return Err(error);
            }
            if way.is_closed() || !state.is_full(self.dir) {
                return Ok(());
            }
            if !way.stands_still() || way.is_finishing {
                state = self.hands.wait(state, None);
                continue;
            }
            state = self.hands.wait(state, u64::try_from(LOOK.as_nanos()).ok());
            if has_left(sender) {
                state.sender_ended(self.dir);
                self.hands.changed.notify_all();
            }
        }
    }

    /// Until nothing waits any more.
    fn drain(&self) {
        let mut state = self.hands.lock();
        while !state.way(self.dir).is_closed() && !state.is_drained(self.dir) {
            state = self.hands.wait(state, None);
        }
    }
}

impl Gate for Through {
    fn cuts_lines(&self) -> bool {
        self.hands.is_active()
    }

    fn hand_on(
        &mut self,
        pieces: &[(Ticket, Bytes)],
        tape: &Tape,
        sender: BorrowedFd<'_>,
    ) -> Result<(), Errno> {
        if let [(ticket, bytes)] = pieces
            && !self.hands.is_active()
            && self.hands.write_direct(self.dir, bytes)?
        {
            tape.handed_on(*ticket);
            self.is_unseen = !bytes.ends_with(b"\n");
            return Ok(());
        }
        for (ticket, piece) in pieces {
            self.take(*ticket, piece);
        }
        self.wait_for_room(sender)
    }

    fn is_cut(&self) -> bool {
        let is_active = self.hands.is_active();
        let state = is_active.then(|| self.hands.lock());
        let from_client = self.dir == Dir::C2s;
        state.is_some_and(|state| if from_client { state.is_client_cut } else { state.is_server_cut })
    }

    fn finish(&mut self) {
        if !self.hands.is_active() {
            return;
        }
        if self.dir == Dir::S2c && self.hands.lock().way(Dir::C2s).is_paused {
            // The server is started again: a line that it has not ended has no end.
            if self.is_unseen {
                self.push_unseen(Bytes::from_static(b"\n"), true, true);
                self.hands.changed.notify_all();
            }
            return;
        }
        self.hands.sender_ended(self.dir);
        self.drain();
        if !self.kept.is_empty() {
            // A last line without its end: nothing can follow it.
            let line = Bytes::from(std::mem::take(&mut self.kept));
            self.hands.lock().take_line(self.dir, &line, std::mem::take(&mut self.tickets));
            self.hands.changed.notify_all();
            self.drain();
        }
    }

    fn close(&mut self) {
        self.hands.close(self.dir);
    }
}

/// Nobody holds the other end of the pipe any more.
fn has_left(sender: BorrowedFd<'_>) -> bool {
    let mut polled = [PollFd::from_borrowed_fd(sender, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let told = poll(&mut polled, Some(&now));
    told.is_ok() && polled.iter().any(|fd| fd.revents().contains(PollFlags::HUP))
}

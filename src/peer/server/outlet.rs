//! The bounded queue before one reader: one for each event stream, one for all that a pipe carries.
//!
//! Progress and logs never hold their handler up: where the reader is slow, newer progress takes the
//! place of older, and what may be dropped is dropped ([`Buffer`]). Everything else waits for room, an
//! answer also in the place of progress. A server that was given its bound keeps to it to the letter:
//! there an answer for which nothing can give way is refused, and with that the channel ends.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::core::Outgoing;
use crate::machine::buffer::{Buffer, Counters, Kind, Refused};
use crate::wire::jsonrpc::Id;

/// Messages that may wait for one reader, unless it is said how many: enough to keep a pipe full,
/// small enough that a slow reader does not fill the memory.
const CAPACITY: usize = 64;

/// What belongs together in a queue: the progress of one token.
pub(super) type Sort = Kind<Id>;

/// Nobody reads any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Closed;

/// How a queue stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Level {
    /// Messages that wait.
    pub(super) waiting: usize,
    /// How many may.
    pub(super) capacity: usize,
    /// What was given up so far.
    pub(super) counters: Counters,
}

/// A queue and its reader. `bound`: how many may wait, where that is said.
pub(super) fn outlet(bound: Option<usize>) -> (Outlet, Outflow) {
    let capacity = bound.unwrap_or(CAPACITY).max(2);
    let Ok(buffer) = Buffer::new(capacity) else { unreachable!("there is room for at least two") };
    let state = State { buffer, writers: 1, is_read: true };
    let shared = Arc::new(Shared {
        state: Mutex::new(state),
        has_more: Notify::new(),
        has_room: Notify::new(),
        is_strict: bound.is_some(),
        refused: CancellationToken::new(),
    });
    (Outlet(shared.clone()), Outflow(shared))
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    has_more: Notify,
    has_room: Notify,
    is_strict: bool,
    /// Fires when an answer was refused.
    refused: CancellationToken,
}

#[derive(Debug)]
struct State {
    buffer: Buffer<Id, Outgoing>,
    writers: usize,
    is_read: bool,
}

impl Shared {
    /// A poisoned lock is still good: no step can stop midway.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `is_so` finds something after a message was taken, or the reader is gone.
    async fn wait<T>(&self, mut is_so: impl FnMut(&mut State) -> Option<T>) -> Result<T, Closed> {
        loop {
            let mut taken = pin!(self.has_room.notified());
            taken.as_mut().enable();
            {
                let mut state = self.lock();
                if !state.is_read || self.refused.is_cancelled() {
                    return Err(Closed);
                }
                if let Some(found) = is_so(&mut state) {
                    return Ok(found);
                }
            }
            taken.await;
        }
    }
}

impl State {
    fn has_place(&self) -> bool {
        self.buffer.waiting().len() < self.buffer.capacity()
    }

    /// A message that may not be dropped has a place, be it that of one which may.
    fn can_take(&self) -> bool {
        self.has_place()
            || self.buffer.waiting().any(|(kind, _)| matches!(kind, Kind::Progress(_) | Kind::Log))
    }
}

/// The end into which messages go. The queue ends when the last one is dropped.
#[derive(Debug)]
pub(super) struct Outlet(Arc<Shared>);

impl Outlet {
    /// Puts a message into the queue. Progress and logs are merged and dropped as they may be; all
    /// else waits for a place, but for an answer that has to be refused.
    pub(super) async fn send(&self, outgoing: Outgoing) -> Result<(), Closed> {
        let shared = &*self.0;
        let is_droppable = matches!(outgoing.sort, Kind::Progress(_) | Kind::Log);
        let is_at_once = is_droppable || (shared.is_strict && outgoing.status.is_some());
        if !is_at_once {
            let mut outgoing = Some(outgoing);
            return shared
                .wait(|state| {
                    let ready = if state.can_take() { outgoing.take() } else { None };
                    ready.map(|outgoing| self.push(state, outgoing))
                })
                .await?;
        }
        let mut state = shared.lock();
        if !state.is_read || shared.refused.is_cancelled() {
            return Err(Closed);
        }
        self.push(&mut state, outgoing)
    }

    fn push(&self, state: &mut State, outgoing: Outgoing) -> Result<(), Closed> {
        let pushed = state.buffer.push(outgoing.sort.clone(), outgoing);
        self.0.has_more.notify_one();
        pushed.map_err(|Refused(_)| {
            // The reader is owed what cannot be kept for it: it learns so by the end.
            self.0.refused.cancel();
            self.0.has_room.notify_waiters();
            Closed
        })
    }

    /// Puts a message into the queue if there is a free place, and gives it back if not.
    pub(super) fn try_send(&self, outgoing: Outgoing) -> Result<(), Outgoing> {
        let mut state = self.0.lock();
        if !state.is_read || !state.has_place() {
            return Err(outgoing);
        }
        // There is a place, so nothing is refused.
        let _ = self.push(&mut state, outgoing);
        Ok(())
    }

    /// Waits for a free place.
    pub(super) async fn has_room(&self) -> Result<(), Closed> {
        self.0.wait(|state| state.has_place().then_some(())).await
    }

    /// Waits until no progress of this token waits any more.
    pub(super) async fn is_taken(&self, token: &Id) -> Result<(), Closed> {
        let is_own = |kind: &Sort| matches!(kind, Kind::Progress(other) if other == token);
        self.0.wait(|state| (!state.buffer.waiting().any(|(kind, _)| is_own(kind))).then_some(())).await
    }

    /// How it stands.
    pub(super) fn level(&self) -> Level {
        let state = self.0.lock();
        let buffer = &state.buffer;
        Level { waiting: buffer.waiting().len(), capacity: buffer.capacity(), counters: buffer.counters() }
    }

    /// Fires when an answer was refused: the channel cannot keep its promise and is to be ended.
    pub(super) fn refused(&self) -> CancellationToken {
        self.0.refused.clone()
    }
}

impl Clone for Outlet {
    fn clone(&self) -> Outlet {
        self.0.lock().writers += 1;
        Outlet(self.0.clone())
    }
}

impl Drop for Outlet {
    fn drop(&mut self) {
        self.0.lock().writers -= 1;
        self.0.has_more.notify_one();
    }
}

/// The end out of which messages come.
#[derive(Debug)]
pub(super) struct Outflow(Arc<Shared>);

impl Outflow {
    /// The next message; `None`: there will be none. Nothing is lost when the wait is given up.
    pub(super) async fn recv(&mut self) -> Option<Outgoing> {
        loop {
            let mut more = pin!(self.0.has_more.notified());
            more.as_mut().enable();
            {
                let mut state = self.0.lock();
                if let Some((_, outgoing)) = state.buffer.pop() {
                    self.0.has_room.notify_waiters();
                    return Some(outgoing);
                }
                if state.writers == 0 || self.0.refused.is_cancelled() {
                    return None;
                }
            }
            more.await;
        }
    }

    /// The next message, if there is one now.
    pub(super) fn try_recv(&mut self) -> Option<Outgoing> {
        let (_, outgoing) = self.0.lock().buffer.pop()?;
        self.0.has_room.notify_waiters();
        Some(outgoing)
    }

    /// Nothing waits while one more message is under way: the bound was given.
    pub(super) fn is_strict(&self) -> bool {
        self.0.is_strict
    }
}

impl Drop for Outflow {
    fn drop(&mut self) {
        self.0.lock().is_read = false;
        self.0.has_room.notify_waiters();
    }
}

#[cfg(test)]
mod tests;

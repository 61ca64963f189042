//! The queue before a slow reader: bounded, and honest about what it gives up.
//!
//! Progress is state that the next value replaces, so it may be merged and dropped; a response is
//! a promise, so it never is. One queue stands before each HTTP response stream, one before the
//! shared stdout of a stdio server (`// ours:`).
//!
//! It does not know which requests are over: progress of a request whose response is queued or
//! sent is held back before it comes here (see [`crate::machine::request`]).

use std::collections::VecDeque;

use thiserror::Error;

/// What a message is for the queue. `K` tells what belongs together: a token, a list, a URI, a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind<K> {
    /// Progress under a token. It replaces a value of the same token right before it, and may be
    /// dropped.
    Progress(K),
    /// A log message: may be dropped, never merged (`// ours:`).
    Log,
    /// A cue that something changed, or a snapshot of a task that runs: takes the place of an older
    /// one of its key, and is never dropped (`// ours:`).
    Latest(K),
    /// The terminal snapshot of a task: takes the place of an older one of its key, and nothing
    /// takes its own (`// ours:`).
    Last(K),
    /// A response or an acknowledgement: stays until it is delivered.
    Final,
}

impl<K> Kind<K> {
    fn is_droppable(&self) -> bool {
        matches!(self, Kind::Progress(_) | Kind::Log)
    }
}

/// What was given up so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Counters {
    /// Messages whose place a newer one of their kind took.
    pub coalesced: u64,
    /// Droppable messages that made room.
    pub evicted: u64,
    /// Droppable messages for which there was no room.
    pub discarded: u64,
    /// Messages that may not be dropped and were turned away.
    pub refused: u64,
}

impl Counters {
    /// Messages that the reader will never see, but for those turned away.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.coalesced + self.evicted + self.discarded
    }
}

/// A queue of this size makes no sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a queue of {0} holds no progress beside a response; give it room for at least 2")]
pub struct TooSmall(pub usize);

/// There is no room, and nothing in the queue may go. The stream cannot keep its promise: its owner
/// ends it, and the outcome of what was to be told is unknown to the reader (`// ours:`).
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the queue is full of messages that may not be dropped")]
pub struct Refused<T>(pub T);

/// The queue.
#[derive(Debug, Clone)]
pub struct Buffer<K, T> {
    queue: VecDeque<(Kind<K>, T)>,
    capacity: usize,
    counters: Counters,
    needs_refetch: bool,
}

impl<K: PartialEq, T> Buffer<K, T> {
    /// An empty queue for so many messages.
    ///
    /// # Errors
    /// When it would hold fewer than two.
    pub fn new(capacity: usize) -> Result<Buffer<K, T>, TooSmall> {
        if capacity < 2 {
            return Err(TooSmall(capacity));
        }
        let queue = VecDeque::new();
        Ok(Buffer { queue, capacity, counters: Counters::default(), needs_refetch: false })
    }

    /// Puts a message into the queue, or gives it up as its kind allows.
    ///
    /// # Errors
    /// When it may not be dropped and there is no room for it; the queue is as it was.
    pub fn push(&mut self, kind: Kind<K>, message: T) -> Result<(), Refused<T>> {
        if let Some(at) = self.replaced_by(&kind) {
            self.counters.coalesced += 1;
            // A cue says no less for being merged; a value of progress is gone.
            self.needs_refetch |= matches!(kind, Kind::Progress(_));
            if let Some(place) = self.queue.get_mut(at) {
                *place = (kind, message);
            }
            return Ok(());
        }
        if self.queue.len() == self.capacity && !self.evict() {
            if !kind.is_droppable() {
                self.counters.refused += 1;
                return Err(Refused(message));
            }
            self.counters.discarded += 1;
            self.needs_refetch = true;
            return Ok(());
        }
        self.queue.push_back((kind, message));
        Ok(())
    }

    /// Takes the next message for delivery.
    pub fn pop(&mut self) -> Option<(Kind<K>, T)> {
        self.queue.pop_front()
    }

    /// The messages that wait, oldest first.
    #[must_use]
    pub fn waiting(&self) -> impl ExactSizeIterator<Item = &(Kind<K>, T)> {
        self.queue.iter()
    }

    /// The most that may wait.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// What was given up so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Something was lost that only a fresh read brings back. Emptying the queue does not.
    #[must_use]
    pub fn needs_refetch(&self) -> bool {
        self.needs_refetch
    }

    /// The reader has read afresh.
    pub fn refetched(&mut self) {
        self.needs_refetch = false;
    }

    /// The place of the message that this one replaces. Progress looks at its neighbour only, so
    /// that it never overtakes a message of another request.
    fn replaced_by(&self, kind: &Kind<K>) -> Option<usize> {
        match kind {
            Kind::Progress(_) => {
                let last = self.queue.len().checked_sub(1)?;
                self.queue.get(last).is_some_and(|(other, _)| other == kind).then_some(last)
            }
            Kind::Latest(key) | Kind::Last(key) => {
                self.queue.iter().position(|(other, _)| matches!(other, Kind::Latest(other) if other == key))
            }
            Kind::Log | Kind::Final => None,
        }
    }

    /// Drops the oldest message that may be; false: there is none.
    fn evict(&mut self) -> bool {
        let Some(at) = self.queue.iter().position(|(kind, _)| kind.is_droppable()) else { return false };
        self.queue.remove(at);
        self.counters.evicted += 1;
        self.needs_refetch = true;
        true
    }
}

#[cfg(test)]
mod tests;

//! One event stream of a legacy session, which outlives the connections that read it.
//!
//! What is said waits here until a reader takes it, and stays for a while after that, so that a
//! client can come back with `Last-Event-ID` and get what it missed on this stream and on no other
//! (spec 2025-11-25 `basic/transports#resumability-and-redelivery`).

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::Notify;

use crate::machine::buffer::{Buffer, Kind};
use crate::time::Ms;

/// Messages that wait for a reader. A writer waits while there is one and this many are ahead of
/// it; without a reader what may be dropped is.
const WAITING_MOST: usize = 64;
/// Events kept for a client that comes back. ours.
const KEPT_MOST: usize = 256;
/// Bytes of them; a larger event is read once. ours.
const KEPT_BYTES: usize = 1 << 20;

/// What a stream carries.
pub(super) trait Carried {
    /// Called when it is about to be written: its text, or `None` when it may not leave any more.
    fn leave(&self) -> Option<Bytes>;
    /// Nothing follows it on this stream.
    fn is_last(&self) -> bool;
    /// Bytes of it.
    fn size(&self) -> usize;
}

/// What belongs together while it waits: all progress of this stream, or all cues of one name.
pub(super) type Key = String;

/// The stream. `T`: a message on its way out.
#[derive(Debug)]
pub(super) struct Stream<T> {
    /// Its place among the streams of its session; the first half of its event ids.
    pub(super) number: u64,
    state: Mutex<State<T>>,
    /// Something changed: for writers and readers alike.
    changed: Notify,
}

/// An event for those who come back: its number, its text, whether it is the last.
type Kept = (u64, Bytes, bool);

#[derive(Debug)]
struct State<T> {
    waiting: Buffer<Key, T>,
    kept: VecDeque<Kept>,
    kept_bytes: usize,
    /// The number of the next event; the priming event has none of its own.
    next: u64,
    /// The reader whose turn it is; those before it are out.
    reader: u64,
    is_attached: bool,
    /// Nothing comes after what waits.
    is_over: bool,
    /// The reader is to be let go as soon as nothing waits.
    is_let_go: bool,
}

impl<T: Carried> Stream<T> {
    /// An empty stream without a reader.
    pub(super) fn new(number: u64) -> Arc<Stream<T>> {
        let Ok(waiting) = Buffer::new(WAITING_MOST) else {
            unreachable!("there is room for more than two");
        };
        let state = State {
            waiting,
            kept: VecDeque::new(),
            kept_bytes: 0,
            next: 1,
            reader: 0,
            is_attached: false,
            is_over: false,
            is_let_go: false,
        };
        Arc::new(Stream { number, state: Mutex::new(state), changed: Notify::new() })
    }

    /// A poisoned lock is still good: no step can stop midway.
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says something; waits while a reader is there and slow. False: the stream is over, or full
    /// of what may not be dropped, which ends it.
    pub(super) async fn say(&self, kind: Kind<Key>, message: T) -> bool {
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            {
                let mut state = self.lock();
                if state.is_over {
                    return false;
                }
                let has_room = state.waiting.waiting().len() < state.waiting.capacity();
                if has_room || !state.is_attached {
                    return self.put(&mut state, kind, message);
                }
            }
            changed.await;
        }
    }

    /// Says something at once, merging and dropping what may be. False: as [`Stream::say`].
    pub(super) fn say_now(&self, kind: Kind<Key>, message: T) -> bool {
        let mut state = self.lock();
        !state.is_over && self.put(&mut state, kind, message)
    }

    fn put(&self, state: &mut State<T>, kind: Kind<Key>, message: T) -> bool {
        let is_last = message.is_last();
        let is_put = state.waiting.push(kind, message).is_ok();
        // ours: a stream that cannot keep its promise ends; its client learns it by the end.
        state.is_over |= is_last || !is_put;
        self.changed.notify_waiters();
        is_put
    }

    /// Nothing is said any more; what waits is still delivered.
    pub(super) fn end(&self) {
        self.lock().is_over = true;
        self.changed.notify_waiters();
    }

    /// The reader is let go once it has what waits; it may come back for the rest (2025-11-25).
    pub(super) fn let_go(&self) {
        self.lock().is_let_go = true;
        self.changed.notify_waiters();
    }

    /// Nothing is said on it any more.
    pub(super) fn is_over(&self) -> bool {
        self.lock().is_over
    }

    /// Bytes that wait or are kept.
    pub(super) fn size(&self) -> usize {
        let state = self.lock();
        state.waiting.waiting().map(|(_, message)| message.size()).sum::<usize>() + state.kept_bytes
    }

    /// Somebody reads it.
    pub(super) fn is_attached(&self) -> bool {
        self.lock().is_attached
    }

    /// Reads on from what waits. A reader that was there before is out.
    pub(super) fn read(self: &Arc<Self>) -> Reader<T> {
        self.attach(None)
    }

    /// Reads again what came after the event of this number, as far as it is kept, then on. A
    /// reader that was there before is out.
    pub(super) fn resume(self: &Arc<Self>, after: u64) -> Reader<T> {
        self.attach(Some(after))
    }

    fn attach(self: &Arc<Self>, after: Option<u64>) -> Reader<T> {
        let mut state = self.lock();
        state.reader += 1;
        state.is_attached = true;
        state.is_let_go = false;
        let missed = state.kept.iter().filter(|(number, ..)| after.is_some_and(|after| *number > after));
        let missed = missed.cloned().collect();
        let turn = state.reader;
        drop(state);
        self.changed.notify_waiters();
        Reader { stream: self.clone(), turn, missed }
    }
}

/// What a reader gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Read {
    /// A message: the number of its event, its text, and whether it is the last.
    Event(u64, Bytes, bool),
    /// Nothing came for the time given.
    Quiet,
    /// Nothing more comes to this reader.
    Over,
}

/// One connection that reads a stream. Dropping it leaves the stream as it is.
#[derive(Debug)]
pub(super) struct Reader<T: Carried> {
    stream: Arc<Stream<T>>,
    /// Which of those who came it is.
    turn: u64,
    missed: VecDeque<Kept>,
}

impl<T: Carried> Reader<T> {
    /// The next event; [`Read::Quiet`] when none comes for so long.
    pub(super) async fn next(&mut self, quiet: Ms) -> Read {
        tokio::time::timeout(quiet.into(), self.wait()).await.unwrap_or(Read::Quiet)
    }

    /// Safe to drop at any time: an event is taken in the same step in which it is returned.
    async fn wait(&mut self) -> Read {
        let stream = self.stream.clone();
        loop {
            let mut changed = pin!(stream.changed.notified());
            changed.as_mut().enable();
            if let Some(read) = self.take() {
                return read;
            }
            changed.await;
        }
    }

    fn take(&mut self) -> Option<Read> {
        let mut state = self.stream.lock();
        if state.reader != self.turn {
            return Some(Read::Over);
        }
        if let Some((number, text, is_last)) = self.missed.pop_front() {
            return Some(Read::Event(number, text, is_last));
        }
        while let Some((_, message)) = state.waiting.pop() {
            // A writer may be waiting for the place.
            self.stream.changed.notify_waiters();
            if let Some(text) = message.leave() {
                let is_last = message.is_last();
                return Some(Read::Event(state.keep(&text, is_last), text, is_last));
            }
        }
        if !state.is_over && !state.is_let_go {
            return None;
        }
        // No writer waits for a connection that is being closed.
        state.is_attached = false;
        self.stream.changed.notify_waiters();
        Some(Read::Over)
    }

    /// The stream that it reads.
    pub(super) fn stream(&self) -> &Arc<Stream<T>> {
        &self.stream
    }
}

impl<T: Carried> Drop for Reader<T> {
    fn drop(&mut self) {
        let mut state = self.stream.lock();
        if state.reader == self.turn {
            state.is_attached = false;
        }
        drop(state);
        self.stream.changed.notify_waiters();
    }
}

impl<T> State<T> {
    /// Keeps an event for a client that comes back; its number.
    fn keep(&mut self, text: &Bytes, is_last: bool) -> u64 {
        let number = self.next;
        self.next += 1;
        if text.len() > KEPT_BYTES {
            return number;
        }
        self.kept.push_back((number, text.clone(), is_last));
        self.kept_bytes += text.len();
        while self.kept.len() > KEPT_MOST || self.kept_bytes > KEPT_BYTES {
            let gone = self.kept.pop_front().map_or(0, |(_, text, _)| text.len());
            self.kept_bytes -= gone;
        }
        number
    }
}

#[cfg(test)]
mod tests;

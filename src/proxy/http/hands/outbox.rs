//! What waits on its way to one side of a connection: held, delayed, slowed down, in order.
//!
//! It is told what the time is and writes nothing itself. A part of a stream that waits lets later
//! parts pass; a barrier, such as the end of a body, waits for all before it. In a strict outbox
//! nothing passes anything.

use std::collections::VecDeque;

use bytes::Bytes;

use super::Then;
use super::body::Shape;
use crate::command::Rate;
use crate::event::tape::Ticket;
use crate::proxy::http::requests::Refused;
use crate::time::{Mono, Ms};

/// Pieces of a throttled stream that pass in a second. ours: smooth for an eye, cheap for the tap.
const TICKS_A_SECOND: u64 = 20;

/// When something may pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::proxy::http) enum Ready {
    /// At once.
    Now,
    /// From then on.
    At(Mono),
    /// When its fate is told; it is asked for again at that time.
    Held(u64, Mono),
    /// When another has passed.
    AfterNext,
}

/// What something is on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::proxy::http) enum Form {
    /// Bytes that pass as they are.
    Raw,
    /// A part of a chunked body, without the framing of its chunk.
    Chunk,
    /// The end of a chunked body.
    End,
}

/// Something that is to pass.
#[derive(Debug)]
pub(in crate::proxy::http) struct Entry {
    /// Its exchange.
    pub(in crate::proxy::http) stream: Option<u64>,
    /// Its bytes.
    pub(in crate::proxy::http) bytes: Bytes,
    /// What they are.
    pub(in crate::proxy::http) form: Form,
    /// How a message stands in them.
    pub(in crate::proxy::http) shape: Shape,
    /// The tap answers it instead.
    pub(in crate::proxy::http) refused: Option<Refused>,
    /// It is a message, for what is counted in messages.
    pub(in crate::proxy::http) is_message: bool,
    /// When it may pass.
    pub(in crate::proxy::http) ready: Ready,
    /// It passes none, and none passes it.
    pub(in crate::proxy::http) is_barrier: bool,
    /// It passes in pieces of this many bytes, with a gap between them.
    pub(in crate::proxy::http) slice: Option<(usize, Ms)>,
    /// What is on the tape for it.
    pub(in crate::proxy::http) tickets: Vec<Ticket>,
    /// What is done right before it passes.
    pub(in crate::proxy::http) first: Vec<Then>,
    /// What is done when it has passed.
    pub(in crate::proxy::http) then: Vec<Then>,
}

impl Entry {
    /// Bytes that pass as they are.
    pub(in crate::proxy::http) fn raw(stream: Option<u64>, bytes: Bytes) -> Entry {
        Entry {
            stream,
            bytes,
            form: Form::Raw,
            shape: Shape::Other,
            refused: None,
            is_message: false,
            ready: Ready::Now,
            is_barrier: true,
            slice: None,
            tickets: Vec::new(),
            first: Vec::new(),
            then: Vec::new(),
        }
    }

    /// A message in a body.
    pub(in crate::proxy::http) fn part(stream: Option<u64>, form: Form, bytes: Bytes) -> Entry {
        Entry { form, is_message: true, is_barrier: false, ..Entry::raw(stream, bytes) }
    }
}

/// What slows a stream down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::proxy::http) enum Brake {
    /// So much passes in a second.
    Rate(Rate),
    /// What comes is gathered until there are so many bytes, or that long.
    Gather(usize, Ms),
}

/// All that waits on one way.
#[derive(Debug, Default)]
pub(in crate::proxy::http) struct Outbox {
    waiting: VecDeque<Entry>,
    /// What may pass, in order, as fast as the brakes let it.
    leaving: VecDeque<Entry>,
    is_strict: bool,
    /// Rules that slow it down.
    brakes: Vec<(u64, Brake)>,
    /// Nothing more leaves before.
    next_at: Mono,
    /// Since when something is gathered.
    gathering_since: Option<Mono>,
}

impl Outbox {
    /// In which nothing passes anything.
    pub(in crate::proxy::http) fn strict() -> Outbox {
        Outbox { is_strict: true, ..Outbox::default() }
    }

    /// It waits from now on.
    pub(in crate::proxy::http) fn push(&mut self, entry: Entry) {
        self.waiting.push_back(entry);
    }

    /// The last that was pushed, if it still waits.
    pub(in crate::proxy::http) fn last(&mut self) -> Option<&mut Entry> {
        self.waiting.back_mut()
    }

    /// A rule slows it down from now on.
    pub(in crate::proxy::http) fn brake(&mut self, rule: u64, brake: Brake) {
        self.brakes.retain(|(other, _)| *other != rule);
        self.brakes.push((rule, brake));
    }

    /// Only those rules still slow it down of which this is true.
    pub(in crate::proxy::http) fn keep_brakes(&mut self, mut is_armed: impl FnMut(u64) -> bool) {
        let before = self.brakes.len();
        self.brakes.retain(|(rule, _)| is_armed(*rule));
        if self.brakes.len() != before {
            self.next_at = Mono(0);
        }
    }

    pub(in crate::proxy::http) fn has_brakes(&self) -> bool {
        !self.brakes.is_empty()
    }

    /// One that is held passes from now on, as it is or with other bytes.
    pub(in crate::proxy::http) fn release(&mut self, number: u64, bytes: Option<Bytes>) {
        if let Some(entry) = self.held(number) {
            entry.ready = Ready::Now;
            if let Some(bytes) = bytes {
                entry.bytes = bytes;
            }
        }
    }

    /// Whether something has been held long enough.
    pub(in crate::proxy::http) fn has_held_due(&self, now: Mono) -> bool {
        self.waiting.iter().any(|entry| matches!(entry.ready, Ready::Held(_, due) if due <= now))
    }

    /// One that is held.
    pub(in crate::proxy::http) fn held(&mut self, number: u64) -> Option<&mut Entry> {
        let is_it = |entry: &&mut Entry| matches!(entry.ready, Ready::Held(held, _) if held == number);
        self.waiting.iter_mut().find(is_it)
    }

    /// One that is held never passes.
    pub(in crate::proxy::http) fn take_held(&mut self, number: u64) -> Option<Entry> {
        let is_it = |entry: &Entry| matches!(entry.ready, Ready::Held(held, _) if held == number);
        let at = self.waiting.iter().position(is_it)?;
        self.waiting.remove(at)
    }

    /// Nothing of it passes any more.
    pub(in crate::proxy::http) fn clear(&mut self) {
        self.waiting.clear();
        self.leaving.clear();
    }

    /// Nothing waits.
    pub(in crate::proxy::http) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.leaving.is_empty()
    }

    /// Bytes that wait.
    pub(in crate::proxy::http) fn len_bytes(&self) -> usize {
        self.waiting.iter().chain(&self.leaving).map(|entry| entry.bytes.len()).sum()
    }

    /// What passes now, in order.
    pub(in crate::proxy::http) fn take(&mut self, now: Mono) -> Vec<Entry> {
        let mut at = 0;
        let mut has_passed = false;
        while let Some(entry) = self.waiting.get(at) {
            if entry.is_barrier && at > 0 {
                // What waits for another to pass waits in vain before an end.
                let is_alone = self.waiting.iter().take(at).all(|entry| entry.ready == Ready::AfterNext);
                if !is_alone {
                    break;
                }
                self.waiting.iter_mut().take(at).for_each(|entry| entry.ready = Ready::Now);
                at = 0;
                continue;
            }
            let is_ready = match entry.ready {
                Ready::Now => true,
                Ready::At(due) => due <= now,
                Ready::Held(..) => false,
                Ready::AfterNext => has_passed || self.is_strict,
            };
            if is_ready {
                let swapped = entry.ready == Ready::AfterNext;
                if let Some(entry) = self.waiting.remove(at) {
                    has_passed |= entry.is_message && !swapped;
                    self.leaving.push_back(entry);
                }
                if has_passed {
                    // It goes on from the front: those that waited for this one pass now.
                    at = if self.waiting.iter().take(at).any(|e| e.ready == Ready::AfterNext) {
                        0
                    } else {
                        at
                    };
                }
            } else if self.is_strict {
                break;
            } else {
                at += 1;
            }
        }
        self.leave(now)
    }

    /// What the brakes let pass.
    fn leave(&mut self, now: Mono) -> Vec<Entry> {
        let mut out = Vec::new();
        let gather = self.brakes.iter().find_map(|(_, brake)| match brake {
            Brake::Gather(bytes, ms) => Some((*bytes, *ms)),
            Brake::Rate(_) => None,
        });
        if let Some((bytes, ms)) = gather
            && !self.leaving.is_empty()
        {
            let since = *self.gathering_since.get_or_insert(now);
            let gathered: usize = self.leaving.iter().map(|entry| entry.bytes.len()).sum();
            let has_end = self.leaving.back().is_some_and(|entry| entry.is_barrier && !entry.is_message);
            let is_head = self.leaving.len() == 1;
            if gathered < bytes && now < since.plus(ms) && (!has_end || is_head) {
                return out;
            }
        }
        self.gathering_since = None;
        while now >= self.next_at
            && let Some(mut entry) = self.leaving.pop_front()
        {
            let (piece, wait_ns) = self.allowance(&entry);
            if piece == 0 && !entry.bytes.is_empty() {
                self.leaving.push_front(entry);
                break;
            }
            if wait_ns > 0 {
                self.next_at = Mono(now.0.saturating_add(wait_ns));
            }
            if piece < entry.bytes.len() {
                let front = entry.bytes.split_to(piece);
                let before = std::mem::take(&mut entry.first);
                let first = Entry { form: entry.form, first: before, ..Entry::raw(entry.stream, front) };
                self.leaving.push_front(entry);
                out.push(first);
            } else {
                out.push(entry);
            }
        }
        out
    }

    /// How many bytes of this may pass now, and how long after them nothing more may.
    fn allowance(&self, entry: &Entry) -> (usize, u64) {
        let len = entry.bytes.len();
        let mut allowed = (len, 0);
        if let Some((bytes, gap)) = entry.slice
            && bytes < len
        {
            allowed = (bytes.max(1), gap.to_ns());
        }
        for (_, brake) in &self.brakes {
            let Brake::Rate(rate) = brake else { continue };
            let slowed = match *rate {
                Rate::Bytes(0) | Rate::Messages(0) => (0, 0),
                Rate::Bytes(rate) => {
                    let piece =
                        usize::try_from((rate / TICKS_A_SECOND).max(1)).unwrap_or(usize::MAX).min(len);
                    (piece, (piece as u64).saturating_mul(1_000_000_000) / rate)
                }
                Rate::Messages(rate) if entry.is_message => (len, 1_000_000_000 / rate),
                Rate::Messages(_) => (len, 0),
            };
            allowed = (allowed.0.min(slowed.0), allowed.1.max(slowed.1));
        }
        allowed
    }

    /// When it should be asked again; `None`: when something is told.
    pub(in crate::proxy::http) fn next_due(&self) -> Option<Mono> {
        let waiting = self.waiting.iter().filter_map(|entry| match entry.ready {
            Ready::At(due) | Ready::Held(_, due) => Some(due),
            Ready::Now | Ready::AfterNext => None,
        });
        let gathered = self.brakes.iter().find_map(|(_, brake)| match brake {
            Brake::Gather(_, ms) => self.gathering_since.map(|since| since.plus(*ms)),
            Brake::Rate(_) => None,
        });
        let is_stalled = self.leaving.front().is_some_and(|entry| self.allowance(entry).0 == 0);
        let leaving = (!self.leaving.is_empty() && gathered.is_none() && !is_stalled).then_some(self.next_at);
        waiting.chain(gathered).chain(leaving).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(text: &'static str) -> Entry {
        Entry::part(Some(1), Form::Chunk, Bytes::from_static(text.as_bytes()))
    }

    fn end() -> Entry {
        Entry::raw(Some(1), Bytes::from_static(b"."))
    }

    fn at(ms: u64) -> Mono {
        Mono(0).plus(Ms(ms))
    }

    fn passes(outbox: &mut Outbox, ms: u64) -> String {
        let out = outbox.take(at(ms));
        out.iter().map(|entry| String::from_utf8_lossy(&entry.bytes).into_owned()).collect()
    }

    #[test]
    fn what_waits_is_passed_by_others_but_not_by_the_end() {
        let held = || Entry { ready: Ready::Held(1, at(9000)), ..data("h") };
        let late = || Entry { ready: Ready::At(at(50)), ..data("l") };
        let swap = || Entry { ready: Ready::AfterNext, ..data("s") };
        let cases: Vec<(Vec<Entry>, bool, &str, &str)> = vec![
            (vec![data("a"), held(), data("b"), end()], false, "ab", "h."),
            (vec![data("a"), held(), data("b"), end()], true, "a", "hb."),
            (vec![late(), data("b"), end()], false, "b", ""),
            (vec![swap(), data("b"), data("c"), end()], false, "bsc.", ""),
            (vec![swap(), end()], false, "s.", ""),
            (vec![swap(), data("b")], true, "sb", ""),
            (vec![held(), swap(), data("b"), end()], false, "bs", "h."),
        ];
        for (entries, is_strict, first, then) in cases {
            let mut outbox = if is_strict { Outbox::strict() } else { Outbox::default() };
            for entry in entries {
                outbox.push(entry);
            }
            assert_eq!(passes(&mut outbox, 0), first);
            outbox.release(1, None);
            assert_eq!(passes(&mut outbox, 1), then, "after {first}");
        }
    }

    #[test]
    fn what_is_slowed_down_passes_whole_in_the_end() {
        let cases = [
            (Brake::Rate(Rate::Bytes(20)), vec![(0, "a"), (10, ""), (50, "b"), (100, "c")]),
            (Brake::Rate(Rate::Bytes(0)), vec![(0, ""), (90_000, "")]),
            (Brake::Rate(Rate::Messages(10)), vec![(0, "abc"), (99, ""), (100, "def"), (200, ".")]),
            (Brake::Gather(100, Ms(40)), vec![(0, ""), (39, ""), (40, "abcdef.")]),
            (Brake::Gather(6, Ms(40)), vec![(0, "abcdef.")]),
        ];
        for (brake, expected) in cases {
            let mut outbox = Outbox::default();
            outbox.brake(1, brake);
            outbox.push(data("abc"));
            outbox.push(data("def"));
            // Gathering ends with the body, so that nothing waits for what never comes.
            if !matches!(brake, Brake::Gather(100, _)) {
                outbox.push(end());
            }
            for (ms, passed) in &expected {
                assert_eq!(passes(&mut outbox, *ms), *passed, "{brake:?} at {ms}");
                if matches!(brake, Brake::Gather(100, _)) && *ms == 39 {
                    outbox.push(Entry { is_message: true, ..end() });
                }
            }
            outbox.keep_brakes(|_| false);
            passes(&mut outbox, 100_000);
            assert!(outbox.is_empty(), "{brake:?}");
        }
    }

    #[test]
    fn slices_have_gaps_and_times_are_told() {
        let mut outbox = Outbox::default();
        outbox.push(Entry { slice: Some((2, Ms(5))), ..data("abcde") });
        assert_eq!(passes(&mut outbox, 0), "ab");
        assert_eq!(outbox.next_due(), Some(at(5)));
        assert_eq!((passes(&mut outbox, 5), passes(&mut outbox, 9)), ("cd".to_owned(), String::new()));
        assert_eq!((passes(&mut outbox, 10), outbox.next_due()), ("e".to_owned(), None));
    }
}

//! Messages that wait in a tap: held ones, for a person, and delayed ones, for their time.
//!
//! Both are pure: they are told what the time is, and the owner writes what they give back.

use crate::command::message::Passing;
use crate::command::{HeldMessage, Which};
use crate::event::Dir;
use crate::filter::Filter;
use crate::time::{Mono, Ms};

/// How long a message is held at most when nobody says otherwise and no limit of its client is
/// known. ours: half of the shortest limit that clients commonly have, 60 s.
pub(super) const HOLD_LIMIT: Ms = Ms(30_000);

/// A message that waits for a person.
#[derive(Debug)]
pub(super) struct Held<T> {
    /// Its number among all that were held.
    pub(super) number: u64,
    /// The rule that holds it.
    pub(super) rule: u64,
    /// Which way it goes.
    pub(super) dir: Dir,
    /// HTTP: its exchange.
    pub(super) stream: Option<u64>,
    /// What it is, in words.
    pub(super) says: String,
    /// Its text.
    pub(super) text: String,
    /// Since when.
    pub(super) since: Mono,
    /// When it is released by itself.
    pub(super) due: Mono,
    /// What its owner needs to let it pass.
    pub(super) item: T,
}

/// All that is held, oldest first.
#[derive(Debug)]
pub(super) struct Holds<T> {
    held: Vec<Held<T>>,
    held_before: u64,
    promises: Vec<Promise>,
}

/// A release that waits for another message.
#[derive(Debug)]
struct Promise {
    which: Which,
    is_in_reverse: bool,
    after: Filter,
}

impl<T> Default for Holds<T> {
    fn default() -> Holds<T> {
        Holds { held: Vec::new(), held_before: 0, promises: Vec::new() }
    }
}

impl<T> Holds<T> {
    /// A message waits from now on. Returns its number; the one in `held` does not count.
    pub(super) fn hold(&mut self, mut held: Held<T>) -> u64 {
        self.held_before += 1;
        held.number = self.held_before;
        self.held.push(held);
        self.held_before
    }

    /// Those that are meant wait no longer, in the order in which they are to pass.
    pub(super) fn take(&mut self, which: Which, is_in_reverse: bool) -> Vec<Held<T>> {
        let mut taken = self.take_if(|held| match which {
            Which::One(number) => held.number == number,
            Which::All => true,
        });
        if is_in_reverse {
            taken.reverse();
        }
        taken
    }

    /// Those of which this is true wait no longer, oldest first.
    pub(super) fn take_if(&mut self, mut is_meant: impl FnMut(&Held<T>) -> bool) -> Vec<Held<T>> {
        self.held.extract_if(.., |held| is_meant(held)).collect()
    }

    /// Those whose time has come wait no longer, oldest first.
    pub(super) fn take_due(&mut self, now: Mono) -> Vec<Held<T>> {
        self.take_if(|held| held.due <= now)
    }

    /// The release waits until a message has passed that the filter picks.
    pub(super) fn promise(&mut self, which: Which, is_in_reverse: bool, after: Filter) {
        self.promises.push(Promise { which, is_in_reverse, after });
    }

    /// Something has passed: what waited for it waits no longer. Cheap when nothing was promised.
    pub(super) fn passed(&mut self, passing: &Passing<'_>) -> Vec<Held<T>> {
        let kept: Vec<Promise> =
            self.promises.extract_if(.., |promise| promise.after.matches(passing)).collect();
        kept.iter().flat_map(|promise| self.take(promise.which, promise.is_in_reverse)).collect()
    }

    /// Whether a release waits for another message.
    pub(super) fn has_promises(&self) -> bool {
        !self.promises.is_empty()
    }

    /// One of them.
    pub(super) fn find(&mut self, number: u64) -> Option<&mut Held<T>> {
        self.held.iter_mut().find(|held| held.number == number)
    }

    /// All of them, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Held<T>> {
        self.held.iter()
    }

    /// When the first of them is released by itself.
    pub(super) fn next_due(&self) -> Option<Mono> {
        self.held.iter().map(|held| held.due).min()
    }

    /// What a person is told of them.
    pub(super) fn status(&self, now: Mono) -> Vec<HeldMessage> {
        let told = self.held.iter().map(|held| HeldMessage {
            number: held.number,
            says: held.says.clone(),
            stream: held.stream,
            held: Ms(now.ns_since(held.since) / 1_000_000),
            released_in: Ms(held.due.ns_since(now) / 1_000_000),
            text: held.text.clone(),
        });
        told.collect()
    }
}

/// What waits for its time. What is due at the same time keeps its order.
#[derive(Debug)]
pub(super) struct Later<T> {
    waiting: Vec<(Mono, T)>,
}

impl<T> Default for Later<T> {
    fn default() -> Later<T> {
        Later { waiting: Vec::new() }
    }
}

impl<T> Later<T> {
    /// It waits until then.
    pub(super) fn push(&mut self, due: Mono, item: T) {
        let at = self.waiting.partition_point(|(other, _)| *other <= due);
        self.waiting.insert(at, (due, item));
    }

    /// The next one whose time has come.
    pub(super) fn pop_due(&mut self, now: Mono) -> Option<T> {
        let is_due = self.waiting.first().is_some_and(|(due, _)| *due <= now);
        is_due.then(|| self.waiting.remove(0).1)
    }

    /// Those of which this is true wait no longer, in their order.
    pub(super) fn take_if(&mut self, mut is_meant: impl FnMut(&T) -> bool) -> Vec<T> {
        self.waiting.extract_if(.., |(_, item)| is_meant(item)).map(|(_, item)| item).collect()
    }

    /// When the time of the first of them comes.
    pub(super) fn next_due(&self) -> Option<Mono> {
        self.waiting.first().map(|(due, _)| *due)
    }

    /// All of them, in their order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.waiting.iter().map(|(_, item)| item)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::command::message::{Message, Place};
    use crate::event::Transport;

    fn held(rule: u64, due: u64) -> Held<u64> {
        let (since, due) = (Mono(0), Mono(0).plus(Ms(due)));
        let (says, text) = (String::new(), String::new());
        Held { number: 0, rule, dir: Dir::C2s, stream: None, says, text, since, due, item: rule * 10 }
    }

    fn items(taken: Vec<Held<u64>>) -> Vec<u64> {
        taken.into_iter().map(|held| held.item).collect()
    }

    #[test]
    fn held_messages_pass_when_they_are_told_to() {
        let three = || {
            let mut holds = Holds::default();
            let numbers = [held(1, 30), held(2, 10), held(3, 20)].map(|held| holds.hold(held));
            assert_eq!(numbers, [1, 2, 3]);
            holds
        };
        assert_eq!(items(three().take(Which::One(2), false)), [20]);
        assert!(items(three().take(Which::One(9), false)).is_empty());
        assert_eq!(items(three().take(Which::All, true)), [30, 20, 10]);
        assert_eq!(items(three().take_due(Mono(0).plus(Ms(20)))), [20, 30]);
        assert_eq!(three().next_due(), Some(Mono(0).plus(Ms(10))));
        let mut holds = three();
        holds.find(2).unwrap().due = Mono(0).plus(Ms(99));
        assert_eq!(holds.next_due(), Some(Mono(0).plus(Ms(20))));
        let status = holds.status(Mono(0).plus(Ms(5)));
        assert_eq!((status[1].number, status[1].held, status[1].released_in), (2, Ms(5), Ms(94)));
    }

    #[test]
    fn a_release_may_wait_for_another_message() {
        let mut holds = Holds::default();
        holds.hold(held(1, 30));
        holds.promise(Which::All, false, Filter::parse("kind:cancel").unwrap());
        let text = |text: &'static str| Message::read(&Bytes::from_static(text.as_bytes())).unwrap();
        let ping = text(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
        let cancel = text(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
        let place = Place {
            dir: Dir::C2s,
            transport: Transport::Stdio,
            stream: None,
            conn: None,
            status: None,
            era: None,
        };
        let mut pass =
            |message| items(holds.passed(&Passing { place, message: Some(message), call: None, len: 1 }));
        assert!(pass(&ping).is_empty());
        assert_eq!(pass(&cancel), [10]);
        assert!(!holds.has_promises());
    }

    #[test]
    fn what_waits_for_its_time_keeps_its_order() {
        let mut later = Later::default();
        for (due, item) in [(3, 'c'), (1, 'a'), (3, 'd'), (2, 'b')] {
            later.push(Mono(due), item);
        }
        assert_eq!(later.next_due(), Some(Mono(1)));
        let mut now_due = |now| std::iter::from_fn(|| later.pop_due(Mono(now))).collect::<String>();
        assert_eq!((now_due(0), now_due(2), now_due(9)), (String::new(), "ab".to_owned(), "cd".to_owned()));
        let mut later = Later::default();
        (0..4).for_each(|item| later.push(Mono(item), item));
        assert_eq!(later.take_if(|item| item % 2 == 0), [0, 2]);
        assert_eq!(later.iter().copied().collect::<Vec<_>>(), [1, 3]);
    }
}

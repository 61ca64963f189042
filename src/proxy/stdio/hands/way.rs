//! What waits to be written in one direction, and how fast it may be.

use std::collections::{HashMap, VecDeque};
use std::os::fd::OwnedFd;

use rustix::io::Errno;

use super::item::{Begin, Item, Then};
use crate::command::Rate;
use crate::command::message::Message;
use crate::event::{Queue, What};
use crate::machine::buffer::{Buffer, Kind};
use crate::proxy::hold::{HOLD_LIMIT, Later};
use crate::spec::methods;
use crate::time::{Mono, Ms};

/// The least time between two readings of a queue. ours: a reader needs no more than ten a second.
const SAMPLE: Ms = Ms(100);

/// How often a throttled writer writes in a second, so that bytes come evenly.
const PIECES_PER_S: u64 = 20;

/// One direction.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct Way {
    /// Whose turn it is, in order.
    ready: VecDeque<Item>,
    /// The rest of a line that is passing already.
    rest: VecDeque<Item>,
    /// What is delayed.
    pub(super) later: Later<Item>,
    /// When the latest delayed by a rule is due, so that those of one rule keep their order.
    last_due: HashMap<u64, Mono>,
    /// What waits for the next of its direction, and until when.
    swapped: Vec<(Mono, Item)>,
    /// The queue before the receiver, where it is bounded.
    bounded: Option<Buffer<String, Item>>,
    sampled: Option<Mono>,
    has_news: bool,
    throttles: Vec<(u64, Rate)>,
    gather: Option<Gather>,
    next_message: Mono,
    next_byte: Mono,
    is_writing: bool,
    /// Nothing is written until the receiver is another one.
    pub(super) is_paused: bool,
    /// The sender has ended: nothing more comes.
    pub(super) is_finishing: bool,
    /// Nothing passes any more, by an order.
    pub(super) is_cut: bool,
    /// The way is closed.
    pub(super) is_over: bool,
    /// Why the receiver took no more.
    pub(super) error: Option<Errno>,
    /// The receiver from now on.
    pub(super) replacement: Option<OwnedFd>,
    pub(super) has_told_loss: bool,
}

/// Messages that pass together.
#[derive(Debug)]
struct Gather {
    rule: u64,
    bytes: usize,
    ms: Ms,
    since: Option<Mono>,
    /// How many may pass now.
    let_out: usize,
}

/// What the writer may do with the next piece.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// Write so many bytes.
    Bytes(usize),
    /// Wait until then; `None`: until something changes.
    Wait(Option<Mono>),
}

impl Way {
    /// A message may be written when its turn comes. A line that is not looked at goes on in `rest`.
    pub(super) fn push(&mut self, item: Item, is_rest: bool, now: Mono) -> Result<(), Box<Item>> {
        if is_rest {
            self.rest.push_back(item);
            return Ok(());
        }
        if item.is_swapped {
            self.swapped.push((now.plus(HOLD_LIMIT), Item { is_swapped: false, ..item }));
            return Ok(());
        }
        if let Some(bounded) = self.bounded.as_mut().filter(|_| item.ends_line) {
            self.has_news = true;
            bounded.push(kind(&item), item).map_err(|refused| Box::new(refused.0))?;
        } else {
            self.ready.push_back(item);
        }
        for (_, swapped) in std::mem::take(&mut self.swapped) {
            self.push(swapped, false, now)?;
        }
        Ok(())
    }

    /// It waits for its time; those of one rule keep their order.
    pub(super) fn delay(&mut self, mut item: Item, now: Mono) {
        let due = now.plus(std::mem::take(&mut item.delay));
        let due = item.rules.iter().filter_map(|rule| self.last_due.get(rule)).fold(due, |a, b| a.max(*b));
        for rule in &item.rules {
            self.last_due.insert(*rule, due);
        }
        self.later.push(due, item);
    }

    /// The next one to be written. `is_at_boundary`: the receiver is between two lines.
    pub(super) fn next(&mut self, is_at_boundary: bool, now: Mono) -> Option<Item> {
        if self.is_paused || self.is_writing {
            return None;
        }
        // A line that its sender has left without an end is as good as ended.
        let is_at_boundary = is_at_boundary || (self.is_finishing && self.rest.is_empty());
        let item = if is_at_boundary { self.next_line(now)? } else { self.rest.pop_front()? };
        for begin in &item.begins {
            match *begin {
                Begin::Throttle { rule, rate } => {
                    self.throttles.retain(|(other, _)| *other != rule);
                    self.throttles.push((rule, rate));
                }
                Begin::Gather { rule, bytes, ms } if self.gather.is_none() => {
                    self.gather = Some(Gather { rule, bytes, ms, since: None, let_out: 0 });
                    self.ready.push_front(Item { begins: Vec::new(), ..item });
                    return self.next(is_at_boundary, now);
                }
                Begin::Gather { .. } => {}
            }
        }
        self.is_writing = true;
        Some(item)
    }

    fn next_line(&mut self, now: Mono) -> Option<Item> {
        if let Some(gather) = &mut self.gather {
            let waiting: usize = self.ready.iter().map(|item| item.bytes.len()).sum();
            if gather.let_out == 0 && !self.ready.is_empty() {
                let since = *gather.since.get_or_insert(now);
                if waiting < gather.bytes && now < since.plus(gather.ms) && !self.is_finishing {
                    return None;
                }
                gather.since = None;
                gather.let_out = self.ready.len();
            }
            gather.let_out = gather.let_out.saturating_sub(1);
        }
        self.ready.pop_front().or_else(|| {
            let item = self.bounded.as_mut()?.pop().map(|(_, item)| item);
            self.has_news |= item.is_some();
            item
        })
    }

    /// The one that was being written is out, or will never be.
    pub(super) fn written(&mut self) {
        self.is_writing = false;
    }

    /// How much of `left` bytes may be written now. `is_start`: the message begins.
    pub(super) fn pace(&mut self, left: usize, is_start: bool, now: Mono) -> Pace {
        let (mut bytes_per_s, mut messages_per_s) = (None::<u64>, None::<u64>);
        for (_, rate) in &self.throttles {
            let (least, rate) = match rate {
                Rate::Bytes(rate) => (&mut bytes_per_s, *rate),
                Rate::Messages(rate) => (&mut messages_per_s, *rate),
            };
            *least = Some(least.map_or(rate, |least| least.min(rate)));
        }
        if bytes_per_s == Some(0) || (is_start && messages_per_s == Some(0)) {
            // What stands still when the sender has ended would stand still for ever.
            return if self.is_finishing { Pace::Bytes(left) } else { Pace::Wait(None) };
        }
        if let Some(rate) = messages_per_s.filter(|_| is_start) {
            if now < self.next_message {
                return Pace::Wait(Some(self.next_message));
            }
            self.next_message = Mono(now.0.saturating_add(1_000_000_000 / rate));
        }
        let Some(rate) = bytes_per_s else { return Pace::Bytes(left) };
        if now < self.next_byte {
            return Pace::Wait(Some(self.next_byte));
        }
        let piece = (rate / PIECES_PER_S).clamp(1, left.max(1) as u64);
        self.next_byte = Mono(now.0.saturating_add(piece.saturating_mul(1_000_000_000) / rate));
        Pace::Bytes(usize::try_from(piece).unwrap_or(left))
    }

    /// A rule's effects end here: what it delays or gathers passes.
    pub(super) fn disarm(&mut self, rules: &dyn Fn(u64) -> bool, now: Mono) -> Vec<Item> {
        self.throttles.retain(|(rule, _)| !rules(*rule));
        self.gather.take_if(|gather| rules(gather.rule));
        let of_rule = |item: &Item| item.rules.iter().any(|rule| rules(*rule));
        let mut freed = self.later.take_if(of_rule);
        freed.extend(self.swapped.extract_if(.., |(_, item)| of_rule(item)).map(|(_, item)| item));
        self.next_byte = now;
        self.next_message = now;
        freed
    }

    /// Something of this rule is still at work or waits.
    pub(super) fn has_of(&self, rule: u64) -> bool {
        self.throttles.iter().any(|(other, _)| *other == rule)
            || self.gather.as_ref().is_some_and(|gather| gather.rule == rule)
            || self.waiting().any(|item| item.rules.contains(&rule))
    }

    /// What waits for another message, and no longer than this.
    pub(super) fn take_swapped(&mut self, now: Mono) -> Vec<Item> {
        let is_finishing = self.is_finishing;
        let due = self.swapped.extract_if(.., |(due, _)| is_finishing || *due <= now);
        due.map(|(_, item)| item).collect()
    }

    /// The queue before the receiver is bounded from now on, or not any more.
    pub(super) fn bound(&mut self, buffer: Option<Buffer<String, Item>>) {
        let mut old = std::mem::replace(&mut self.bounded, buffer);
        while let Some((_, item)) = old.as_mut().and_then(Buffer::pop) {
            self.ready.push_back(item);
        }
        self.has_news = self.bounded.is_some();
    }

    /// A reading of the bounded queue, if it has changed and the last one is old enough.
    pub(super) fn sample(&mut self, now: Mono) -> Option<What> {
        let bounded = self.bounded.as_ref().filter(|_| self.has_news)?;
        if self.sampled.is_some_and(|last| now < last.plus(SAMPLE)) {
            return None;
        }
        self.sampled = Some(now);
        self.has_news = false;
        let counters = bounded.counters();
        Some(What::Queue(Queue {
            events: bounded.waiting().len() as u64,
            bytes: bounded.waiting().map(|(_, item)| item.bytes.len() as u64).sum(),
            capacity: Some(bounded.capacity() as u64),
            coalesced: counters.coalesced,
            evicted: counters.evicted,
            discarded: counters.discarded,
            refused: counters.refused,
            blocked_ms: 0,
        }))
    }

    fn waiting_bytes(&self) -> usize {
        self.ready.iter().map(|item| item.bytes.len()).sum()
    }

    fn waiting(&self) -> impl Iterator<Item = &Item> {
        self.ready.iter().chain(self.later.iter()).chain(self.swapped.iter().map(|(_, item)| item))
    }

    /// A message is being written.
    pub(super) fn is_writing(&self) -> bool {
        self.is_writing
    }

    /// How many messages wait for their turn.
    pub(super) fn ready_len(&self) -> usize {
        self.ready.len()
    }

    /// Bytes of what is delayed.
    pub(super) fn delayed_bytes(&self) -> usize {
        self.later.iter().map(|item| item.bytes.len()).sum()
    }

    /// The lane that feeds it should read no more for now.
    pub(super) fn is_full(&self) -> bool {
        if self.bounded.is_some() && self.rest.is_empty() && self.ready.is_empty() {
            return false;
        }
        match &self.gather {
            Some(gather) => self.waiting_bytes() > gather.bytes,
            None => self.is_writing || !self.ready.is_empty() || !self.rest.is_empty(),
        }
    }

    /// Nothing waits and nothing is being written.
    pub(super) fn is_empty(&self) -> bool {
        let is_bounded_empty = self.bounded.as_ref().is_none_or(|bounded| bounded.waiting().len() == 0);
        !self.is_writing && self.rest.is_empty() && is_bounded_empty && self.waiting().next().is_none()
    }

    /// All that waits, for one that will never pass it on.
    pub(super) fn take_all(&mut self) -> Vec<Item> {
        let mut all: Vec<Item> = self.rest.drain(..).chain(self.ready.drain(..)).collect();
        while let Some((_, item)) = self.bounded.as_mut().and_then(Buffer::pop) {
            all.push(item);
        }
        all.extend(self.later.take_if(|_| true));
        all.extend(self.swapped.drain(..).map(|(_, item)| item));
        all
    }

    /// Nothing passes any more.
    pub(super) fn is_closed(&self) -> bool {
        self.is_cut || self.is_over || self.error.is_some()
    }

    /// No line passes slower than it could.
    pub(super) fn stands_still(&self) -> bool {
        self.throttles.iter().any(|(_, rate)| matches!(rate, Rate::Bytes(0) | Rate::Messages(0)))
    }

    /// When something of it is due by itself.
    pub(super) fn next_due(&self) -> Option<Mono> {
        let swapped = self.swapped.iter().map(|(due, _)| *due).min();
        let sample = self.sampled.filter(|_| self.has_news).map(|last| last.plus(SAMPLE));
        [self.later.next_due(), swapped, sample].into_iter().flatten().min()
    }

    /// When what is gathered passes, if its writer is free to write it.
    pub(super) fn gather_due(&self) -> Option<Mono> {
        let is_free = !self.is_paused && !self.is_writing && !self.ready.is_empty();
        let gather = self.gather.as_ref().filter(|gather| is_free && gather.let_out == 0)?;
        gather.since.map(|since| since.plus(gather.ms))
    }
}

/// What a message is for the bounded queue.
fn kind(item: &Item) -> Kind<String> {
    let own = if item.seen.is_none() {
        Message::read(&item.bytes.slice(..item.bytes.len().saturating_sub(1)))
    } else {
        None
    };
    let Some(message) = item.seen.as_ref().map(|seen| &seen.message).or(own.as_ref()) else {
        return Kind::Final;
    };
    // What comes after a message must not be lost with it.
    if !item.then.is_empty() && !item.then.iter().all(|then| matches!(then, Then::Flood(_))) {
        return Kind::Final;
    }
    match (message.method.as_deref(), &message.token) {
        (Some(methods::PROGRESS), Some(token)) => Kind::Progress(token.to_string()),
        (Some(methods::MESSAGE), _) => Kind::Log,
        (
            Some(
                method @ (methods::TOOLS_CHANGED
                | methods::PROMPTS_CHANGED
                | methods::RESOURCES_CHANGED
                | methods::RESOURCE_UPDATED),
            ),
            _,
        ) => Kind::Latest(format!("{method} {}", message.target.as_deref().unwrap_or_default())),
        _ => Kind::Final,
    }
}

//! What the hands of a tap know and have in them.

use std::collections::VecDeque;
use std::sync::mpsc::Sender;

use super::item::{Flood, Item, Then, Why};
use super::watch::Watch;
use super::way::Way;
use crate::command::book::OpenCall;
use crate::command::engine::Engine;
use crate::command::{Cut, Process, Side, text};
use crate::event::tape::{Tape, Ticket};
use crate::event::{Dir, What};
use crate::machine::policy::Policy;
use crate::proxy::hold::{Held, Holds};
use crate::proxy::stdio::Notice;
use crate::time::{Mono, Ms, Span};
use crate::wire::jsonrpc::Id;

/// Bytes that may be held or delayed in a direction before its sender is held back. ours: far more
/// than a person looks at, and less than would harm.
const HELD_LIMIT_BYTES: usize = 64 << 20;

/// Messages that may wait for their turn before a flood pauses.
const FLOOD_LIMIT: usize = 1000;

/// All of it, behind one lock that is never held while something is written.
#[derive(Debug)]
pub(super) struct State {
    tape: Tape,
    pub(super) engine: Engine,
    pub(super) holds: Holds<Item>,
    to_server: Way,
    to_client: Way,
    pub(super) watches: Vec<Watch>,
    /// Calls that were answered in the server's place, and by whom: later answers go to nobody.
    pub(super) swallowed: VecDeque<(OpenCall, Why)>,
    pub(super) floods: Vec<Flood>,
    pub(super) notices: Option<Sender<Notice>>,
    /// What is declared about tools, and the command of the server.
    pub(super) policy: (Policy, String),
    /// Answers to calls of which nothing is known, until the calls before the first order are
    /// known; `None`: they are.
    pub(super) unknown: Option<Vec<(Dir, Id)>>,
    /// Fresh ids that were given.
    pub(super) fresh: u64,
    pub(super) is_client_cut: bool,
    pub(super) is_server_cut: bool,
    /// Each direction has its writer.
    pub(super) has_writers: bool,
}

impl State {
    pub(super) fn new(tape: Tape, seed: u64) -> State {
        State {
            tape,
            engine: Engine::new(seed),
            holds: Holds::default(),
            to_server: Way::default(),
            to_client: Way::default(),
            watches: Vec::new(),
            swallowed: VecDeque::new(),
            floods: Vec::new(),
            notices: None,
            policy: (Policy::default(), String::new()),
            unknown: None,
            fresh: 0,
            is_client_cut: false,
            is_server_cut: false,
            has_writers: false,
        }
    }

    pub(super) fn now(&self) -> Mono {
        self.tape.clock().now()
    }

    pub(super) fn way(&self, dir: Dir) -> &Way {
        if dir == Dir::C2s { &self.to_server } else { &self.to_client }
    }

    pub(super) fn way_mut(&mut self, dir: Dir) -> &mut Way {
        if dir == Dir::C2s { &mut self.to_server } else { &mut self.to_client }
    }

    /// Puts something on the tape.
    pub(super) fn push(&self, dir: Dir, what: What) -> Ticket {
        self.tape.push_stdio(dir, what)
    }

    /// Tells an effect that writes nothing by itself.
    pub(super) fn tell(&self, why: &Why, what: &str, target: &str, more: &str) {
        self.push(Dir::Tap, why.inject(what, target, more, None));
    }

    /// The bytes of these places are out.
    pub(super) fn handed_on(&self, tickets: &[Ticket]) {
        for ticket in tickets {
            self.tape.handed_on(*ticket);
        }
    }

    /// A message goes on, at once or when its delay is over.
    pub(super) fn pass(&mut self, dir: Dir, item: Item) {
        let now = self.now();
        if self.way(dir).is_closed() {
            self.lose(dir, item);
        } else if item.delay > Ms(0) {
            self.way_mut(dir).delay(item, now);
        } else if let Err(refused) = self.way_mut(dir).push(item, false, now) {
            // The queue cannot keep its promise, so it ends where everybody sees it.
            let sample = self.way_mut(dir).sample(now.plus(Ms(1000)));
            if let Some(sample) = sample {
                self.push(dir, sample);
            }
            let why = Why::own();
            self.tell(&why, "lost", &refused.target, "the bounded queue is full of what may not be dropped");
            self.cut(Cut { side: Some(Side::Client), is_reset: false }, &why, "the bounded queue is full");
        }
    }

    /// A message will never be written; what was to follow it need not wait.
    pub(super) fn lose(&mut self, dir: Dir, item: Item) {
        let way = self.way_mut(dir);
        let is_first = !std::mem::replace(&mut way.has_told_loss, true);
        if is_first || !way.is_cut {
            let receiver = if dir == Dir::C2s { "the server" } else { "the client" };
            let words = format!("{receiver} is not there any more; nothing passes to it");
            self.tell(&Why::own(), "lost", &item.target, &words);
        }
        for then in item.then {
            if let Then::Pass(other, next, _) = then
                && other != dir
            {
                self.pass(other, *next);
            }
        }
    }

    /// A message waits for a person.
    pub(super) fn hold(&mut self, dir: Dir, item: Item, limit: Ms, why: &Why) {
        let now = self.now();
        let says = super::item::says(dir, item.seen.as_deref());
        let text = String::from_utf8_lossy(&item.bytes).trim_end_matches(['\r', '\n']).to_owned();
        let target = item.target.clone();
        let (rule, due) = (why.rule.unwrap_or(0), now.plus(limit));
        let held = Held { number: 0, rule, dir, stream: None, says, text, since: now, due, item };
        let number = self.holds.hold(held);
        self.tell(why, "hold", &target, &format!("held as {number}, at most {} ms", limit.0));
    }

    /// Held messages go on.
    pub(super) fn release(&mut self, held: Vec<Held<Item>>, why: &Why, more: &str) {
        for held in held {
            let span = Span(self.now().ns_since(held.since));
            let words = format!("{more}, held as {} for {span}", held.number);
            self.tell(why, "release", &held.item.target, &words);
            self.pass(held.dir, held.item);
        }
    }

    /// A side is cut off.
    pub(super) fn cut(&mut self, cut: Cut, why: &Why, more: &str) {
        let sides = [(Side::Client, Dir::S2c, "client"), (Side::Server, Dir::C2s, "server")];
        for (side, dir, name) in sides {
            if cut.side.is_some_and(|only| only != side) || self.way(dir).is_closed() {
                continue;
            }
            self.tell(why, "disconnect", name, more);
            match side {
                Side::Client => self.is_client_cut = true,
                Side::Server => self.is_server_cut = true,
            }
            self.close_way(dir);
        }
    }

    /// Nothing passes this way any more, by an order; what waits is lost.
    pub(super) fn close_way(&mut self, dir: Dir) {
        self.way_mut(dir).is_cut = true;
        self.lose_all(dir);
    }

    /// All that waits to go this way is lost, each said for itself.
    pub(super) fn lose_all(&mut self, dir: Dir) {
        let waiting = self.way_mut(dir).take_all();
        let held = self.holds.take_if(|held| held.dir == dir).into_iter().map(|held| held.item);
        let items: Vec<Item> = waiting.into_iter().chain(held).collect();
        let parked = self.watches.extract_if(.., |watch| watch.parked().is_some_and(|(way, _)| way == dir));
        let parked: Vec<Item> = parked.filter_map(Watch::into_parked).map(|(_, item)| item).collect();
        for item in items.into_iter().chain(parked) {
            self.way_mut(dir).has_told_loss = false;
            self.lose(dir, item);
        }
    }

    /// Something is done to the server's process.
    pub(super) fn process(&mut self, process: Process, why: &Why) {
        self.tell(why, process.name(), "server", "");
        if process == Process::CloseStdin {
            self.close_way(Dir::C2s);
            return;
        }
        if process == Process::Restart {
            self.way_mut(Dir::C2s).is_paused = true;
        }
        if let Some(notices) = &self.notices {
            let _ = notices.send(Notice::Ordered(process, why.by));
        }
    }

    /// What follows a message that is out.
    pub(super) fn follow(&mut self, then: Vec<Then>) {
        for then in then {
            match then {
                Then::Pass(dir, item, delay) => {
                    let delay = Ms(item.delay.0.saturating_add(delay.0));
                    self.pass(dir, Item { delay, ..*item });
                }
                Then::GiveUp(call, cancel, why) => {
                    if let Err(words) = self.give_up(&call, &cancel, &why) {
                        let target = format!("id {}", call.id);
                        self.tell(&why, "cancel", &target, &format!("not done: {words}"));
                    }
                }
                Then::CancelOut(id) => self.cancel_is_out(&id),
                Then::Cut(cut, why) => self.cut(cut, &why, ""),
                Then::Process(process, why) => self.process(process, &why),
                Then::Flood(flood) => self.floods.push(Flood { next: self.now(), ..flood }),
            }
        }
    }

    /// Does what is due by itself. Returns whether anything was.
    pub(super) fn mature(&mut self) -> bool {
        let now = self.now();
        let due = self.holds.take_due(now);
        let mut has_changed = !due.is_empty();
        if has_changed {
            self.release(due, &Why::own(), "by itself, its time was over");
        }
        for dir in [Dir::C2s, Dir::S2c] {
            while let Some(item) = self.way_mut(dir).later.pop_due(now) {
                has_changed = true;
                self.pass(dir, item);
            }
            for item in self.way_mut(dir).take_swapped(now) {
                has_changed = true;
                self.pass(dir, item);
            }
            if let Some(sample) = self.way_mut(dir).sample(now) {
                self.push(dir, sample);
            }
        }
        let mut floods = std::mem::take(&mut self.floods);
        for flood in &mut floods {
            while flood.left > 0 && flood.next <= now && self.way(flood.dir).ready_len() < FLOOD_LIMIT {
                has_changed = true;
                flood.left -= 1;
                flood.value += 1;
                flood.next = Mono(flood.next.0.saturating_add(flood.gap_ns));
                let text = text::progress(&flood.token, flood.value);
                let item = Item::own(text.as_bytes(), "flood", &flood.target, &flood.why, "");
                self.pass(flood.dir, item);
            }
        }
        floods.retain(|flood| flood.left > 0 && !self.way(flood.dir).is_closed());
        self.floods.append(&mut floods);
        has_changed
    }

    /// When the writer of this direction must look again, if nothing happens before.
    pub(super) fn next_due(&self, dir: Dir) -> Option<Mono> {
        let gather = self.way(dir).gather_due();
        let ways = [&self.to_server, &self.to_client].into_iter().filter_map(Way::next_due).chain(gather);
        let floods = self.floods.iter().filter(|flood| self.way(flood.dir).ready_len() < FLOOD_LIMIT);
        ways.chain(self.holds.next_due()).chain(floods.map(|flood| flood.next)).min()
    }

    /// The sender of this direction should be read no further for now.
    pub(super) fn is_full(&self, dir: Dir) -> bool {
        let held = self.holds.iter().filter(|held| held.dir == dir).map(|held| held.item.bytes.len());
        let way = self.way(dir);
        way.is_full() || held.sum::<usize>() + way.delayed_bytes() > HELD_LIMIT_BYTES
    }

    /// Nothing waits to go this way.
    pub(super) fn is_drained(&self, dir: Dir) -> bool {
        let is_parked = |watch: &Watch| watch.parked().is_some_and(|(way, _)| way == dir);
        self.way(dir).is_empty()
            && self.holds.iter().all(|held| held.dir != dir)
            && !self.watches.iter().any(is_parked)
    }

    /// The sender of this direction has ended: what it left passes, and nothing waits for ever.
    pub(super) fn sender_ended(&mut self, dir: Dir) {
        self.way_mut(dir).is_finishing = true;
        let held = self.holds.take_if(|held| held.dir == dir);
        let sender = if dir == Dir::C2s { "the client has ended" } else { "the server has ended" };
        self.release(held, &Why::own(), sender);
        let parked: Vec<Watch> =
            self.watches.extract_if(.., |watch| watch.parked().is_some_and(|(way, _)| way == dir)).collect();
        for (way, item) in parked.into_iter().filter_map(Watch::into_parked) {
            self.pass(way, item);
        }
        self.floods.retain(|flood| flood.dir != dir);
    }
}

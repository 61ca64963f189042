//! What a person does to the traffic of the tap: orders are taken here and carried out by the
//! connections that they are for.
//!
//! As long as there was no order nothing is parsed and nothing waits: a connection asks one flag
//! for each read. From the first order on, requests and answers are gathered and event streams are
//! cut into events, so that each message is known before it passes.

pub(super) mod body;
pub(super) mod line;
pub(super) mod orders;
pub(super) mod outbox;
pub(super) mod own;
pub(super) mod plan;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use bytes::Bytes;
use tokio::runtime::Handle;

use self::line::{CutOrder, Errand, Fate, Line, Way};
use self::plan::OnAnswer;
use super::Shared;
use crate::command::book::OpenCall;
use crate::command::engine::{Decision, Engine};
use crate::command::message::{Message, Passing, Place};
use crate::command::{Applied, By, Cancel, Command, Effect, Refused, Spoil, TakesOrders};
use crate::event::tape::Tape;
use crate::event::{Dir, Transport, What};
use crate::machine::policy::Policy;
use crate::proxy::hold::{HOLD_LIMIT, Held, Holds};
use crate::time::{Mono, Ms};
use crate::wire::jsonrpc::{Id, Kind};

/// Heads of requests that are kept for those that midwire sends itself. ours: as many as the calls
/// that are kept for a retry, and some that are open.
const HEAD_LIMIT: usize = 256;

/// Takes the orders for one tap.
#[derive(Debug)]
pub struct Hands {
    tape: Tape,
    is_active: AtomicBool,
    state: Mutex<State>,
    tap: OnceLock<Tap>,
}

/// The tap that they belong to, for requests of midwire's own.
#[derive(Debug)]
struct Tap {
    shared: Weak<Shared>,
    runtime: Handle,
}

#[derive(Debug)]
struct State {
    engine: Engine,
    holds: Holds<HeldAt>,
    /// By numbers of their own: on HTTP/2 each exchange of a connection is one.
    lines: BTreeMap<u64, Arc<Line>>,
    lines_before: u64,
    /// Heads of the latest requests, by exchange.
    heads: VecDeque<(u64, Bytes)>,
    /// Requests of midwire's own so far.
    own_before: u64,
    policy: Policy,
}

/// Where something is held.
#[derive(Debug)]
struct HeldAt {
    line: Arc<Line>,
    way: Way,
    target: String,
}

/// Who wanted an effect, and why it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Why {
    by: &'static str,
    cause: Option<String>,
}

impl Why {
    fn order(by: By) -> Why {
        Why { by: by.as_str(), cause: None }
    }

    /// Nobody ordered it now: it follows from what was ordered before.
    fn own(words: &str) -> Why {
        Why { by: "midwire", cause: Some(words.to_owned()) }
    }

    fn rule(decision: &Decision) -> Why {
        let name = decision.name.as_deref().map_or_else(String::new, |name| format!(" {name:?}"));
        let Decision { rule, seed, hit, by, .. } = decision;
        Why { by: by.as_str(), cause: Some(format!("rule {rule}{name}, seed {seed}, hit {hit}")) }
    }

    /// The same, with a few words more.
    pub(super) fn with(&self, words: &str) -> Why {
        let cause = self.cause.as_ref().map_or_else(|| words.to_owned(), |cause| format!("{cause}; {words}"));
        Why { by: self.by, cause: Some(cause) }
    }
}

/// Where an effect takes place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spot {
    stream: Option<u64>,
    conn: Option<u64>,
    target: String,
}

impl Spot {
    /// Of a call where one is known, otherwise of the exchange.
    pub(super) fn of(stream: u64, conn: Option<u64>, id: Option<&Id>) -> Spot {
        let target = id.map_or_else(|| format!("stream {stream}"), |id| format!("id {id}"));
        Spot { stream: Some(stream), conn, target }
    }
}

impl Spot {
    /// The words of an answer in the server's place: to what, by whom, why.
    pub(super) fn ordered(&self, why: &Why) -> (String, String, Option<String>) {
        (self.target.clone(), why.by.to_owned(), why.cause.clone())
    }

    /// The same, where it was ordered for this one.
    pub(super) fn by(&self, by: &str) -> (String, String, Option<String>) {
        (self.target.clone(), by.to_owned(), None)
    }
}

/// What a message is, in words.
pub(super) fn says(dir: &str, message: Option<&Message>) -> String {
    let Some(message) = message else { return format!("{dir} no message") };
    let id = message.id.as_ref().map_or_else(String::new, |id| format!(" id {id}"));
    let method = message.method.as_deref().map_or_else(String::new, |method| format!(" {method}"));
    let target = message.target.as_deref().map_or_else(String::new, |target| format!(" {target}"));
    let kind = match message.kind {
        Kind::Request => "request",
        Kind::Notification => "notification",
        Kind::Result => "result",
        Kind::Error => "error",
        Kind::Invalid => "invalid",
    };
    format!("{dir} {kind}{id}{method}{target}")
}

/// When something that a rule delays passes: not before what the rule delayed before it.
pub(super) fn due(delays: &mut Vec<(u64, Mono)>, now: Mono, (rule, ms): (u64, Ms)) -> Mono {
    let before = delays.iter().find(|(other, _)| *other == rule).map_or(Mono(0), |(_, due)| *due);
    let due = now.plus(ms).max(before);
    delays.retain(|(other, until)| *other != rule && *until > now);
    delays.push((rule, due));
    due
}

/// What is done when something has passed.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Then {
    /// Its call is given up.
    Cancel(Box<OpenCall>, Cancel, Why),
    /// Its connection is cut.
    Cut(CutOrder, Spot, Why),
    /// A copy of the request is sent beside it.
    Again(Bytes, Spot, Why),
    /// Something is told that happened with it.
    Tell(&'static str, Spot, Why),
    /// The end of the answer is told.
    End(u64),
    /// A message of midwire's own passes to the client.
    Sent(Spot, Why, Bytes),
    /// Its call is given up for a race: the answer passes all the same.
    Race(Box<OpenCall>, Spot, Why),
}

impl Hands {
    /// Of a tap that tells its effects on `tape`; `seed`: from which rules without a seed of their
    /// own draw. Nothing is armed.
    #[must_use]
    pub fn new(tape: Tape, seed: u64) -> Arc<Hands> {
        let state = State {
            engine: Engine::new(seed),
            holds: Holds::default(),
            lines: BTreeMap::new(),
            lines_before: 0,
            heads: VecDeque::new(),
            own_before: 0,
            policy: Policy::default(),
        };
        let (is_active, state) = (AtomicBool::new(false), Mutex::new(state));
        Arc::new(Hands { tape, is_active, state, tap: OnceLock::new() })
    }

    /// From now on retries are judged by the contracts of this policy.
    pub fn keep_to(&self, policy: Policy) {
        self.state().policy = policy;
    }

    /// The tap that they belong to runs from now on.
    pub(super) fn attach(&self, shared: &Arc<Shared>) {
        let tap = Tap { shared: Arc::downgrade(shared), runtime: Handle::current() };
        // A second tap with the same hands would be a mistake of the caller; the first counts.
        let _ = self.tap.set(tap);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now(&self) -> Mono {
        self.tape.clock().now()
    }

    /// Whether there was an order, so that messages must be known.
    pub(super) fn is_active(&self) -> bool {
        self.is_active.load(Ordering::Relaxed)
    }

    /// Messages are known from now on; those that are on their way are noted.
    fn activate(&self, state: &mut State) {
        if self.is_active.swap(true, Ordering::Relaxed) {
            return;
        }
        let lines: Vec<Arc<Line>> = state.lines.values().cloned().collect();
        for line in lines {
            for exchange in line.exchanges.all() {
                state.keep_head(exchange.stream, exchange.head.clone());
                let place = place(Dir::C2s, exchange.stream, line.conn, None, None);
                if let Some(message) = exchange.text.as_ref().and_then(Message::read) {
                    state.engine.book_mut().note(place, &message);
                }
            }
        }
    }

    /// Tells an effect on the tape.
    pub(super) fn tell(&self, dir: Dir, what: &str, spot: &Spot, why: &Why, sent: Option<Bytes>) {
        let event = What::Inject {
            what: what.to_owned(),
            target: spot.target.clone(),
            by: why.by.to_owned(),
            cause: why.cause.clone(),
            sent,
        };
        self.tape.push_http(dir, spot.stream, spot.conn, event);
    }

    /// A connection begins. It is known until the guard is dropped.
    pub(super) fn begin(self: &Arc<Self>, line: Arc<Line>) -> LineGuard {
        let mut state = self.state();
        state.lines_before += 1;
        let number = state.lines_before;
        state.lines.insert(number, line.clone());
        LineGuard { hands: self.clone(), line, number }
    }

    /// A request is about to pass: its head is kept for those that midwire sends itself.
    pub(super) fn keep_head(&self, stream: u64, head: Bytes) {
        self.state().keep_head(stream, head);
    }

    /// A message was read. The call that it belongs to, and what is to be done.
    pub(super) fn meet(
        &self,
        place: Place,
        message: &Message,
        wanted: impl Fn(&Effect) -> bool,
    ) -> (Option<OpenCall>, Vec<Decision>) {
        let mut state = self.state();
        let met = state.engine.meet(place, message, wanted);
        if state.holds.has_promises() {
            let len = message.text.len();
            let passing = Passing { place, message: Some(message), call: met.0.as_ref(), len };
            let released = state.holds.passed(&passing);
            self.release(released, &|held| Why::own(&after(held)));
        }
        met
    }

    /// The same for what is no message.
    pub(super) fn meet_other(
        &self,
        place: Place,
        len: usize,
        wanted: impl Fn(&Effect) -> bool,
    ) -> (Option<OpenCall>, Vec<Decision>) {
        self.state().engine.meet_other(place, len, wanted)
    }

    /// An exchange is over: what was asked on it is open no longer.
    pub(super) fn end_stream(&self, stream: u64) {
        self.state().engine.book_mut().end_stream(stream);
    }

    /// Why the server of this call is not to know that it was given up, if it is not.
    pub(super) fn late(&self, id: &Id) -> Option<Why> {
        let state = self.state();
        let exchanges = state.lines.values().flat_map(|line| line.exchanges.all());
        let is_late = |what: &OnAnswer| *what == OnAnswer::Spoil(Spoil::Late);
        exchanges.into_iter().find_map(|exchange| {
            let why =
                exchange.on_answer.iter().find(|(what, _)| is_late(what)).map(|(_, why)| why.clone())?;
            let asked = exchange.text.as_ref().and_then(Message::read)?.id?;
            (asked == *id).then_some(why)
        })
    }

    /// The rules that are still armed.
    pub(super) fn armed(&self) -> Vec<u64> {
        self.state().engine.armed().map(|armed| armed.number).collect()
    }

    /// Something waits for a person from now on. Returns its number, and until when.
    pub(super) fn hold(
        &self,
        (line, way): (&Arc<Line>, Way),
        spot: &Spot,
        (rule, limit): (u64, Option<Ms>),
        (says, text): (String, &Bytes),
    ) -> (u64, Mono) {
        let since = self.now();
        let due = since.plus(limit.unwrap_or(HOLD_LIMIT));
        let dir = if way == Way::Up { Dir::C2s } else { Dir::S2c };
        let item = HeldAt { line: line.clone(), way, target: spot.target.clone() };
        let text = String::from_utf8_lossy(text).into_owned();
        let held = Held { number: 0, rule, dir, stream: spot.stream, says, text, since, due, item };
        (self.state().holds.hold(held), due)
    }

    /// What has been held long enough passes.
    pub(super) fn release_due(&self) {
        let mut state = self.state();
        let due = state.holds.take_due(self.now());
        self.release(due, &|_| Why::own("its time was over"));
    }

    /// Lets held messages pass as they are.
    fn release(&self, released: Vec<Held<HeldAt>>, why: &dyn Fn(&Held<HeldAt>) -> Why) {
        for held in released {
            self.tell(Dir::Tap, "release", &spot_of(&held), &why(&held), None);
            settle(&held, Fate::Pass(None));
        }
    }

    /// What one direction holds will not pass any more.
    pub(super) fn lose(&self, line: &Arc<Line>, way: Option<Way>) {
        let mut state = self.state();
        let lost = state
            .holds
            .take_if(|held| Arc::ptr_eq(&held.item.line, line) && way.is_none_or(|way| held.item.way == way));
        for held in lost {
            let why = Why::own("the connection ended");
            self.tell(Dir::Tap, "lost", &spot_of(&held), &why, None);
        }
    }

    /// Does what was to be done when something had passed.
    pub(super) fn then(&self, line: &Line, then: Then) {
        match then {
            Then::Cancel(call, cancel, why) => {
                let mut state = self.state();
                // A call that is answered meanwhile is given up all the same: that is the race.
                let _ = self.cancel(&mut state, &call, &cancel, &why);
            }
            Then::Cut(order, spot, why) => {
                self.tell(Dir::Tap, "disconnect", &spot, &why, None);
                line.cut(order);
            }
            Then::Again(text, spot, why) => {
                let mut state = self.state();
                if let Err(error) = self.send_beside(&mut state, "duplicate", &text, &spot, &why) {
                    let why = why.with(&format!("not done: {error}"));
                    self.tell(Dir::Tap, "duplicate", &spot, &why, None);
                }
            }
            Then::Sent(spot, why, text) => self.tell(Dir::S2c, "send", &spot, &why, Some(text)),
            Then::Race(call, spot, why) => self.race_cancel(line, &call, &spot, &why),
            Then::Tell(what, spot, why) => self.tell(Dir::Tap, what, &spot, &why, None),
            Then::End(stream) => {
                let how =
                    What::ServerClosed { how: Some(crate::event::Close::Eof), exit_code: None, signal: None };
                self.tape.push_http(Dir::S2c, Some(stream), Some(line.conn), how);
            }
        }
    }
}

/// Tells a connection what becomes of something that it holds.
fn settle(held: &Held<HeldAt>, fate: Fate) {
    held.item.line.tell(held.item.way, Errand::Fate(held.number, fate));
}

fn after(held: &Held<HeldAt>) -> String {
    format!("{} waited for another message", held.item.target)
}

fn spot_of(held: &Held<HeldAt>) -> Spot {
    Spot { stream: held.stream, conn: Some(held.item.line.conn), target: held.item.target.clone() }
}

/// Where a message is.
pub(super) fn place(
    dir: Dir,
    stream: u64,
    conn: u64,
    status: Option<u16>,
    era: Option<crate::spec::era::Era>,
) -> Place {
    Place { dir, transport: Transport::Http, stream: Some(stream), conn: Some(conn), status, era }
}

impl State {
    fn keep_head(&mut self, stream: u64, head: Bytes) {
        if self.heads.len() == HEAD_LIMIT {
            self.heads.pop_front();
        }
        self.heads.push_back((stream, head));
    }

    /// The head of the request of this exchange; of the newest, where that is not known.
    fn head_of(&self, stream: Option<u64>) -> Option<Bytes> {
        let own = self.heads.iter().rev().find(|(other, _)| Some(*other) == stream);
        own.or_else(|| self.heads.iter().rev().find(|(_, head)| head.starts_with(b"POST")))
            .map(|(_, h)| h.clone())
    }

    /// The connection of an exchange, or the exchange itself on HTTP/2.
    fn line_of(&self, call: &OpenCall) -> Option<Arc<Line>> {
        let is_it = |line: &&Arc<Line>| {
            Some(line.conn) == call.conn && call.stream.is_some_and(|stream| line.exchanges.has(stream))
        };
        self.lines.values().find(is_it).cloned()
    }

    fn look_all(&self) {
        for line in self.lines.values() {
            line.tell(Way::Up, Errand::Look);
            line.tell(Way::Down, Errand::Look);
        }
    }
}

/// A connection that is known to the hands.
#[derive(Debug)]
pub(super) struct LineGuard {
    hands: Arc<Hands>,
    line: Arc<Line>,
    number: u64,
}

impl Drop for LineGuard {
    fn drop(&mut self) {
        self.hands.lose(&self.line, None);
        let mut state = self.hands.state();
        state.lines.remove(&self.number);
        if self.hands.is_active() {
            for stream in self.line.exchanges.streams() {
                state.engine.book_mut().end_stream(stream);
            }
        }
    }
}

impl TakesOrders for Hands {
    fn order(&self, command: &Command, by: By) -> Result<Applied, Refused> {
        self.carry_out(command, by)
    }

    fn transport(&self) -> Transport {
        Transport::Http
    }
}

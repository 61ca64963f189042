//! What an observer can know: folds events into lifecycles, lanes, gauges and verdicts.
//!
//! The model only has evidence; it may answer "unknown". It never asks for the time, never
//! touches a file, and gives the same answer for the same events whether they come live, from a
//! recording or from a test. It keeps small fixed records; the text of messages stays in the
//! recording and is found again through [`Source`].
//!
//! How an event goes through: `fold` sorts it; `stdio` and `http` put the pieces of a stream
//! together into frames and say where they stand; `pairing` gives each message its call;
//! `subscriptions` and `rounds` join the calls that belong together;
//! `ends` settles what can get no answer any more. What was noticed on the way is told as
//! [`Seen`], which the `rules` room judges.

pub mod call;
pub mod capabilities;
pub mod clocks;
pub mod content;
pub mod rounds;
pub mod row;
pub mod scope;
pub mod seen;
pub mod tasks;

mod decode;
mod ends;
pub mod flow;
mod fold;
mod group;
pub mod handshake;
mod http;
mod inject;
pub mod listed;
mod message;
mod names;
mod overview;
mod pairing;
pub mod race;
mod reading;
mod stdio;
pub mod subscriptions;
pub mod telemetry;
mod track;
mod view;

pub use call::{
    After, Call, CallIdx, CallState, ClientView, LogsAsked, Mark, MarkKind, Progress, ServerView,
};
pub use capabilities::Capabilities;
pub use clocks::{Basis, Clock, Clocks, Cut};
pub use content::{Content, Message};
pub use flow::{Flow, FlowIdx};
pub use handshake::{Handshake, Speaks};
pub use http::Exchange;
pub use listed::{Definition, Listed, Viewer, Walk};
pub use overview::{Capture, Counts, Overview};
pub use race::{Lateness, Race, Reason, Signal, Verdict};
pub use rounds::Round;
pub use row::{Coding, Row, RowIdx, RowKind, Source};
pub use scope::{Peer, Process, Scope, ScopeIdx};
pub use seen::{FrameFault, Seen, Sight, SseField};
pub use subscriptions::{Delivered, Filter, Kinds, Subscription};
pub use telemetry::{Stage, Told};
pub use track::bytes_of;
pub use view::{CallView, RowView};

use std::collections::HashMap;
use std::sync::LazyLock;

use hashbrown::DefaultHashBuilder;

use self::pairing::CallIndex;
use crate::spec::era::Era;
use crate::spec::methods;
use crate::time::{Mono, Ms};

/// Text kept once, such as a method or a tool name; an index into the model's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(pub u32);

impl Name {
    pub(crate) const TOOLS_CALL: Name = Name(0);
    pub(crate) const LISTEN: Name = Name(1);
    pub(crate) const INITIALIZE: Name = Name(2);
    pub(crate) const DISCOVER: Name = Name(3);
    pub(crate) const INITIALIZED: Name = Name(4);
    /// Texts of the names above, in their order; every other method follows.
    const FIRST: [&str; 5] =
        [methods::TOOLS_CALL, methods::LISTEN, methods::INITIALIZE, methods::DISCOVER, methods::INITIALIZED];

    /// The name that a method has in every model; `None`: no era knows it.
    #[must_use]
    pub fn fixed(method: &str) -> Option<Name> {
        let at = FIXED.iter().position(|text| *text == method)?;
        u32::try_from(at).ok().map(Name)
    }
}

/// Texts that every model holds from the start, in this order.
static FIXED: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let mut texts = Name::FIRST.to_vec();
    for method in &methods::ALL {
        if !texts.contains(&method.name) {
            texts.push(method.name);
        }
    }
    texts
});

/// The fold: everything that is known after the events seen so far.
#[derive(Debug)]
pub struct Model {
    era: Option<Era>,
    /// The grace window that the user has set.
    grace: Option<Ms>,
    names: names::Names,
    hasher: DefaultHashBuilder,
    rows: Vec<Row>,
    calls: Vec<Call>,
    scopes: Vec<Scope>,
    /// The latest call of each id, by scope, sender and id.
    by_id: CallIndex,
    /// The latest call of each progress token, by scope, sender and token.
    by_token: CallIndex,
    /// Calls that ended without an answer, by fingerprint: a repetition is linked to them.
    unanswered: HashMap<u64, CallIdx>,
    rounds: rounds::Rounds,
    subscriptions: subscriptions::Subscriptions,
    /// The call that repeats one.
    retried: HashMap<CallIdx, CallIdx>,
    stdio: stdio::Stdio,
    http: http::Http,
    flows: Vec<Flow>,
    overview: Overview,
    injections: inject::Injections,
    seen: Vec<Seen>,
    messages: Vec<Message>,
    tasks: tasks::Tasks,
    lists: listed::Lists,
    /// What the requests of the calls hold that the event folded last has ended.
    ended: Vec<(CallIdx, Content)>,
}

impl Default for Model {
    fn default() -> Model {
        Model::new()
    }
}

impl Model {
    /// A model that has seen nothing.
    #[must_use]
    pub fn new() -> Model {
        let mut names = names::Names::default();
        for text in FIXED.iter() {
            names.intern(text);
        }
        Model {
            era: None,
            grace: None,
            names,
            hasher: DefaultHashBuilder::default(),
            rows: Vec::new(),
            calls: Vec::new(),
            scopes: vec![Scope::new(crate::event::Transport::Http, Mono(0))],
            by_id: CallIndex::default(),
            by_token: CallIndex::default(),
            unanswered: HashMap::new(),
            rounds: rounds::Rounds::default(),
            subscriptions: subscriptions::Subscriptions::default(),
            retried: HashMap::new(),
            stdio: stdio::Stdio::default(),
            http: http::Http::default(),
            flows: Vec::new(),
            overview: Overview::default(),
            injections: inject::Injections::default(),
            seen: Vec::new(),
            messages: Vec::new(),
            tasks: tasks::Tasks::default(),
            lists: listed::Lists::default(),
            ended: Vec::new(),
        }
    }

    /// A model that takes every message to be of this era, whatever the messages say.
    #[must_use]
    pub fn with_era(era: Era) -> Model {
        Model { era: Some(era), ..Model::new() }
    }

    /// Takes the grace window W to be this long, instead of what round trips tell.
    pub fn set_grace(&mut self, grace: Option<Ms>) {
        self.grace = grace;
    }

    /// The grace window W of a process or session, in nanoseconds: what comes this soon after a
    /// signal the other way may have crossed it.
    #[must_use]
    pub fn window_ns(&self, scope: ScopeIdx) -> u64 {
        let measured = || self.scope(scope).map_or(u64::MAX, Scope::window_ns);
        self.grace.map_or_else(measured, Ms::to_ns)
    }

    /// The era that everything is taken to be of, where the user said so.
    #[must_use]
    pub fn forced_era(&self) -> Option<Era> {
        self.era
    }

    /// One line for each message and each other thing that happened, in causal order.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Every request seen, in the order of their last byte.
    #[must_use]
    pub fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// Processes and sessions, in order; the first one holds the HTTP requests that belong to no
    /// session.
    #[must_use]
    pub fn scopes(&self) -> &[Scope] {
        &self.scopes
    }

    /// One call.
    #[must_use]
    pub fn call(&self, idx: CallIdx) -> Option<&Call> {
        self.calls.get(idx.0 as usize)
    }

    /// Open requests of a process or session, of both sides, oldest first.
    pub fn open_in(&self, scope: ScopeIdx) -> impl Iterator<Item = CallIdx> + '_ {
        self.scope(scope).into_iter().flat_map(|scope| scope.open.keys().copied())
    }

    /// One row.
    #[must_use]
    pub fn row(&self, idx: RowIdx) -> Option<&Row> {
        self.rows.get(idx.0 as usize)
    }

    /// One process or session.
    #[must_use]
    pub fn scope(&self, idx: ScopeIdx) -> Option<&Scope> {
        self.scopes.get(idx.0 as usize)
    }

    /// The rows of a call, in causal order, each once.
    pub fn rows_of(&self, call: CallIdx) -> impl Iterator<Item = RowIdx> + '_ {
        let marks = self.call(call).map_or(&[][..], |call| call.marks.as_slice());
        let before = std::iter::once(None).chain(marks.iter().map(|mark| Some(mark.row)));
        marks.iter().zip(before).filter(|(mark, before)| Some(mark.row) != *before).map(|(mark, _)| mark.row)
    }

    /// Counts, peers, capture state: what a status line says.
    #[must_use]
    pub fn overview(&self) -> &Overview {
        &self.overview
    }

    /// What was noticed in the event folded last.
    #[must_use]
    pub fn seen(&self) -> &[Seen] {
        &self.seen
    }

    /// The text of a name.
    #[must_use]
    pub fn text(&self, name: Name) -> &str {
        self.names.text(name)
    }

    /// The name of a text, if it has occurred.
    #[must_use]
    pub fn name(&self, text: &str) -> Option<Name> {
        self.names.find(text)
    }
}

#[cfg(test)]
pub(crate) mod script;
#[cfg(test)]
mod tests;

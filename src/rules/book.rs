//! The rules as objects, and which of them a thing noticed concerns.

use super::case::Case;
use super::catalogue::{self, Entry};
use super::findings::{Findings, Out};
use super::{
    auth, caching, cancel, completion, core_tasks, flow, http, icon, input, logging, meta, pagination, path,
    progress, prompts, reliability, resources, rounds, rpc, session, sse, stdio, subscription, tasks,
    timeout, tools, version,
};
use crate::event::Transport;
use crate::model::{Name, Sight};
use crate::spec::era::Era;
use crate::wire::jsonrpc::Kind;

/// What a rule wants to look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum On {
    /// Every message that was read, of any kind.
    Message,
    /// A request, of either side.
    Request,
    /// A request of this method.
    RequestOf(&'static str),
    /// A notification.
    Notification,
    /// A notification of this method.
    NotificationOf(&'static str),
    /// A result; `case.call()` is its call, where it has one.
    Result,
    /// A result that answers this method.
    ResultOf(&'static str),
    /// A JSON-RPC error; `case.call()` is its call, where it has one.
    Error,
    /// A JSON-RPC error that answers this method.
    ErrorOf(&'static str),
    /// Something the model noticed.
    Sight(SightKind),
    /// Time has passed: once for each event, of whatever era, and at the end of the recording. It
    /// calls [`Look::wait`].
    Clock,
}

/// A rule's test. Closures with memory of their own are rules too.
pub(super) trait Look: Send {
    /// Looks at one thing that was noticed; what is wrong is said to `out`.
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>);

    /// Looks at the time, for rules that wait: what is due is said about its own call, by
    /// [`Out::about`]. The case is whatever was noticed first.
    fn wait(&mut self, _case: &Case<'_>, _out: &mut Out<'_>) {}
}

impl<F: FnMut(&Case<'_>, &mut Out<'_>) + Send> Look for F {
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        self(case, out);
    }
}

/// One rule: its words and its test.
struct Rule {
    entry: &'static Entry,
    /// Where it looks when an era is forced, one bit for each [`gate`].
    gates: u16,
    look: Box<dyn Look>,
}

/// Every rule, and by what each is called.
pub(super) struct Book {
    rules: Vec<Rule>,
    message: Places,
    request: Table,
    notification: Table,
    result: Table,
    error: Table,
    sights: Vec<Places>,
    /// Positions in `rules`.
    clock: Vec<usize>,
}

/// Positions in `rules` of those that look at one thing, for each gate on its own: most rules are of
/// some eras or one transport, and none of the others costs anything.
#[derive(Default)]
struct Places([Vec<usize>; GATES]);

impl Places {
    fn add(&mut self, rule: usize, open_gates: u16) {
        for (gate, places) in self.0.iter_mut().enumerate() {
            if open_gates & (1 << gate) != 0 {
                places.push(rule);
            }
        }
    }

    fn of(&self, gate: usize) -> &[usize] {
        self.0.get(gate).map_or(&[], Vec::as_slice)
    }
}

/// Rules of one kind of message: for every method, and for single ones.
#[derive(Default)]
struct Table {
    all: Places,
    /// By the method's fixed name.
    of: Vec<Places>,
}

impl Table {
    fn add(&mut self, method: &str, rule: usize, open_gates: u16) {
        let Some(Name(at)) = Name::fixed(method) else { return };
        at_mut(&mut self.of, at as usize).add(rule, open_gates);
    }

    fn of(&self, method: Option<Name>, gate: usize) -> &[usize] {
        method.and_then(|name| self.of.get(name.0 as usize)).map_or(&[], |places| places.of(gate))
    }
}

/// The entry at a position; the list grows to it.
fn at_mut(list: &mut Vec<Places>, at: usize) -> &mut Places {
    if list.len() <= at {
        list.resize_with(at + 1, Places::default);
    }
    &mut list[at]
}

impl Default for Book {
    fn default() -> Book {
        let mut book = Book {
            rules: Vec::new(),
            message: Places::default(),
            request: Table::default(),
            notification: Table::default(),
            result: Table::default(),
            error: Table::default(),
            sights: Vec::new(),
            clock: Vec::new(),
        };
        for rules in [
            auth::rules,
            caching::rules,
            cancel::rules,
            completion::rules,
            core_tasks::rules,
            flow::rules,
            http::rules,
            icon::rules,
            input::rules,
            logging::rules,
            meta::rules,
            pagination::rules,
            path::rules,
            progress::rules,
            prompts::rules,
            reliability::rules,
            resources::rules,
            rounds::rules,
            rpc::rules,
            session::rules,
            sse::rules,
            stdio::rules,
            subscription::rules,
            tasks::rules,
            timeout::rules,
            tools::rules,
            version::rules,
        ] {
            rules(&mut book);
        }
        book
    }
}

impl std::fmt::Debug for Book {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.rules.iter().map(|rule| rule.entry.id)).finish()
    }
}

impl Book {
    /// Enters a rule of the catalogue: when it looks, and its test. It is called only for messages
    /// of its eras and transports.
    pub(super) fn rule(&mut self, id: &str, when: &[On], look: impl Look + 'static) {
        self.enter(id, when, false, Box::new(look));
    }

    /// Enters a rule that finds out by itself whether the era is one of its own, because what it
    /// looks at comes before anybody has named one.
    pub(super) fn rule_of_any_era(&mut self, id: &str, when: &[On], look: impl Look + 'static) {
        self.enter(id, when, true, Box::new(look));
    }

    fn enter(&mut self, id: &str, when: &[On], knows_era: bool, look: Box<dyn Look>) {
        let Some(entry) = catalogue::find(id) else { return };
        let rule = self.rules.len();
        let gates_of = |eras: &mut dyn Iterator<Item = Option<Era>>| {
            eras.fold(0, |gates, era| {
                let open = TRANSPORTS.into_iter().filter(|transport| entry.is_for(*transport));
                open.fold(gates, |gates, transport| gates | 1 << gate(era, transport))
            })
        };
        let every = || Era::ALL.into_iter().map(Some).chain([None]);
        let gates = gates_of(&mut every().filter(|era| entry.eras.has(*era)));
        let open_gates = if knows_era { gates_of(&mut every()) } else { gates };
        self.rules.push(Rule { entry, gates, look });
        for on in when {
            match on {
                On::Message => self.message.add(rule, open_gates),
                On::Request => self.request.all.add(rule, open_gates),
                On::RequestOf(method) => self.request.add(method, rule, open_gates),
                On::Notification => self.notification.all.add(rule, open_gates),
                On::NotificationOf(method) => self.notification.add(method, rule, open_gates),
                On::Result => self.result.all.add(rule, open_gates),
                On::ResultOf(method) => self.result.add(method, rule, open_gates),
                On::Error => self.error.all.add(rule, open_gates),
                On::ErrorOf(method) => self.error.add(method, rule, open_gates),
                On::Clock => self.clock.push(rule),
                On::Sight(kind) => at_mut(&mut self.sights, *kind as usize).add(rule, open_gates),
            }
        }
    }

    /// Ids of the rules that have a test.
    #[cfg(test)]
    pub(super) fn ids(&self) -> impl Iterator<Item = &'static str> {
        self.rules.iter().map(|rule| rule.entry.id)
    }

    /// Lets the rules that wait look at the time.
    pub(super) fn wait(&mut self, case: &Case<'_>, findings: &mut Findings) {
        for at in &self.clock {
            let Some(rule) = self.rules.get_mut(*at) else { continue };
            rule.look.wait(case, &mut Out { entry: rule.entry, findings });
        }
    }

    /// Shows a thing noticed to every rule that it concerns.
    pub(super) fn look(&mut self, case: &Case<'_>, findings: &mut Findings) {
        let Book { rules, message, request, notification, result, error, sights, .. } = self;
        let gate = gate(case.era(), case.transport());
        let is_forced = case.model.forced_era().is_some();
        let mut show = |concerned: &[usize]| {
            for at in concerned {
                let Some(rule) = rules.get_mut(*at) else { continue };
                if !is_forced || rule.gates & (1 << gate) != 0 {
                    rule.look.look(case, &mut Out { entry: rule.entry, findings });
                }
            }
        };
        if !matches!(case.seen.what, Sight::Message) {
            show(sights.get(SightKind::of(&case.seen.what) as usize).map_or(&[], |places| places.of(gate)));
            return;
        }
        show(message.of(gate));
        let Some(read) = case.message() else { return };
        let answered = || case.call().map(|call| call.method);
        let (table, method) = match read.kind {
            Kind::Request => (request, read.method),
            Kind::Notification => (notification, read.method),
            Kind::Result => (result, answered()),
            Kind::Error => (error, answered()),
            Kind::Invalid => return,
        };
        show(table.all.of(gate));
        show(table.of(method, gate));
    }
}

const TRANSPORTS: [Transport; 2] = [Transport::Stdio, Transport::Http];

/// Eras, and none, on each transport.
const GATES: usize = (Era::ALL.len() + 1) * TRANSPORTS.len();

/// Number of an era, or of none, on a transport.
fn gate(era: Option<Era>, transport: Transport) -> usize {
    let era = era.map_or(Era::ALL.len(), |era| era as usize);
    era * TRANSPORTS.len() + usize::from(transport == Transport::Http)
}

/// Kinds of [`Sight`] without what they hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SightKind {
    Message,
    HttpRequest,
    HttpHead,
    ExchangeEnd,
    ExchangeLeft,
    SseEvent,
    Endpoint,
    SseComment,
    Request,
    Notification,
    IdInFlight,
    IdAgain,
    TokenInFlight,
    Answered,
    InputRequired,
    InputGiven,
    AnswerAfterCancel,
    AnswerAgain,
    AnswerUnknown,
    AnswerOtherType,
    AnswerNoId,
    AnswerElsewhere,
    Progress,
    ProgressStuck,
    ProgressAfterAnswer,
    ProgressAfterCancel,
    ProgressUnknown,
    ProgressOtherType,
    ProgressElsewhere,
    Cancel,
    CancelAfterEnd,
    CancelUnknown,
    CancelOtherType,
    CancelByServer,
    ClientLeft,
    StreamEnded,
    StreamEndedResumable,
    ResumeEmpty,
    StreamClosed,
    Queue,
    ProcessEnded,
    SessionEnded,
    StdinClosed,
    ServerOutput,
    Ended,
    Subscription,
    SubscriptionAfterEnd,
    SubscriptionAfterCancel,
    SubscriptionUnknown,
    Frame,
    Told,
}

impl SightKind {
    fn of(sight: &Sight) -> SightKind {
        match sight {
            Sight::Message => SightKind::Message,
            Sight::HttpRequest => SightKind::HttpRequest,
            Sight::HttpHead => SightKind::HttpHead,
            Sight::ExchangeEnd => SightKind::ExchangeEnd,
            Sight::ExchangeLeft => SightKind::ExchangeLeft,
            Sight::SseEvent(_) => SightKind::SseEvent,
            Sight::Endpoint { .. } => SightKind::Endpoint,
            Sight::SseComment => SightKind::SseComment,
            Sight::Request => SightKind::Request,
            Sight::Notification => SightKind::Notification,
            Sight::IdInFlight { .. } => SightKind::IdInFlight,
            Sight::IdAgain { .. } => SightKind::IdAgain,
            Sight::TokenInFlight { .. } => SightKind::TokenInFlight,
            Sight::Answered => SightKind::Answered,
            Sight::InputRequired => SightKind::InputRequired,
            Sight::InputGiven => SightKind::InputGiven,
            Sight::AnswerAfterCancel { .. } => SightKind::AnswerAfterCancel,
            Sight::AnswerAgain => SightKind::AnswerAgain,
            Sight::AnswerUnknown { .. } => SightKind::AnswerUnknown,
            Sight::AnswerOtherType { .. } => SightKind::AnswerOtherType,
            Sight::AnswerNoId => SightKind::AnswerNoId,
            Sight::AnswerElsewhere => SightKind::AnswerElsewhere,
            Sight::Progress => SightKind::Progress,
            Sight::ProgressStuck { .. } => SightKind::ProgressStuck,
            Sight::ProgressAfterAnswer => SightKind::ProgressAfterAnswer,
            Sight::ProgressAfterCancel { .. } => SightKind::ProgressAfterCancel,
            Sight::ProgressUnknown { .. } => SightKind::ProgressUnknown,
            Sight::ProgressOtherType { .. } => SightKind::ProgressOtherType,
            Sight::ProgressElsewhere { .. } => SightKind::ProgressElsewhere,
            Sight::Cancel => SightKind::Cancel,
            Sight::CancelAfterEnd => SightKind::CancelAfterEnd,
            Sight::CancelUnknown { .. } => SightKind::CancelUnknown,
            Sight::CancelOtherType { .. } => SightKind::CancelOtherType,
            Sight::CancelByServer => SightKind::CancelByServer,
            Sight::ClientLeft => SightKind::ClientLeft,
            Sight::StreamEnded => SightKind::StreamEnded,
            Sight::StreamEndedResumable => SightKind::StreamEndedResumable,
            Sight::ResumeEmpty => SightKind::ResumeEmpty,
            Sight::Queue { .. } => SightKind::Queue,
            Sight::StreamClosed { .. } => SightKind::StreamClosed,
            Sight::ProcessEnded { .. } => SightKind::ProcessEnded,
            Sight::SessionEnded { .. } => SightKind::SessionEnded,
            Sight::StdinClosed { .. } => SightKind::StdinClosed,
            Sight::ServerOutput => SightKind::ServerOutput,
            Sight::Ended { .. } => SightKind::Ended,
            Sight::Subscription { .. } => SightKind::Subscription,
            Sight::SubscriptionAfterEnd => SightKind::SubscriptionAfterEnd,
            Sight::SubscriptionAfterCancel(_) => SightKind::SubscriptionAfterCancel,
            Sight::SubscriptionUnknown { .. } => SightKind::SubscriptionUnknown,
            Sight::Frame { .. } => SightKind::Frame,
            Sight::Told(_) => SightKind::Told,
        }
    }
}

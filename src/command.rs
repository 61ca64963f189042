//! What a person tells a tap to do to the traffic: one vocabulary for keys, scripts and recipes.
//!
//! A [`Command`] is an order; a [`Rule`] is an [`Effect`] that waits for the messages it is meant
//! for. The [`engine`] decides which rules meet a message, from the message, what is known of open
//! calls ([`book`]) and a seed alone, so that the same recipe does the same to the same traffic.
//! Doing it is the work of the tap.

pub mod book;
pub mod engine;

pub mod message;
pub mod retry;
pub mod text;

pub mod json;
pub mod recipe;
pub mod verbs;
pub mod words;

mod order;
mod read;
mod reply;
mod write;

pub use self::recipe::Recipe;
pub use self::reply::{Applied, ArmedRule, By, HeldMessage, OpenRequest, Refused, Status, TakesOrders};
use crate::filter::Filter;
use crate::time::Ms;

/// An order to a tap.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// A rule waits from now on for the messages it is meant for.
    Arm(Rule),
    /// A rule, or all of them, waits no longer. What it holds is released.
    Disarm(Which),
    /// Open calls are given up as their client would do it in its era.
    Cancel {
        /// Which open calls.
        on: Filter,
        /// How.
        cancel: Cancel,
    },
    /// The exchanges of open calls are cut; without any HTTP, the pipes.
    Disconnect {
        /// Which open calls; an empty filter on HTTP: every connection.
        on: Filter,
        /// How.
        cut: Cut,
    },
    /// Something is done to the server's process.
    Process(Process),
    /// The request of a call is sent again; its answer goes to midwire alone.
    Retry {
        /// Which call, open or ended; the newest of them.
        on: Filter,
        /// How.
        retry: Retry,
    },
    /// A message of the person's own is sent.
    Send {
        /// To whom: [`Side::Server`] as if by the client, and the reverse.
        to: Side,
        /// The message as it is to be on the wire, without a line ending.
        text: String,
        /// HTTP, to the client: on the stream of this exchange; `None`: the newest open one.
        stream: Option<u64>,
    },
    /// Held messages pass, as they are.
    Release {
        /// Which.
        which: Which,
        /// The newest first.
        in_reverse: bool,
        /// Not now, but when a message that this picks has passed in either direction.
        after: Option<Filter>,
    },
    /// A held message passes with another text.
    Edit {
        /// Which: its number among the held.
        held: u64,
        /// The text in its place, without a line ending.
        text: String,
    },
    /// Held messages never pass.
    Drop(Which),
    /// A held request is answered in the server's place and never reaches it.
    AnswerHeld {
        /// Which.
        held: u64,
        /// With what.
        answer: Answer,
    },
    /// A held message waits longer before it is released by itself.
    Extend {
        /// Which.
        held: u64,
        /// How much longer.
        by: Ms,
    },
    /// How the queue to the client is kept.
    Flow(Flow),
    /// What is armed, what is held, which calls are open.
    Status,
}

/// One or all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// The one of this number.
    One(u64),
    /// All.
    All,
}

/// A side of the tap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// The client.
    Client,
    /// The server.
    Server,
}

/// An effect that waits for messages.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// What a person calls it; a recipe's expectations name it.
    pub name: Option<String>,
    /// Which messages.
    pub on: Filter,
    /// Messages that are picked and passed over before the first one that it is done to.
    pub skip: u64,
    /// How often it is done.
    pub times: Times,
    /// How likely it is done to a message that is picked, from 0 to 1.
    pub chance: f64,
    /// From which its random numbers come; `None`: from the tap's own seed and the rule's number.
    pub seed: Option<u64>,
    /// What is done.
    pub effect: Effect,
}

/// How often a rule is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Times {
    /// This often, then it is disarmed.
    Only(u64),
    /// Until it is disarmed.
    Always,
}

/// What is done to a message, to its exchange, or to the direction that it goes in.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// It waits for a person. Others pass it by.
    Hold {
        /// Released by itself after this; `None`: after 30 s.
        limit: Option<Ms>,
    },
    /// It does not pass.
    Drop,
    /// It passes several times.
    Duplicate {
        /// How often in all, at least 2.
        copies: u32,
    },
    /// It passes after the next message of its direction (HTTP: of its stream).
    Swap,
    /// It passes changed: each value at a JSON pointer is set.
    Edit {
        /// Pointers (RFC 6901) and JSON texts; an empty text removes the member.
        set: Vec<(String, String)>,
    },
    /// It passes later; messages that are not picked pass it by, those that are keep their order.
    Delay {
        /// How much later.
        ms: Ms,
        /// At most this much more or less, evenly spread.
        jitter: Ms,
    },
    /// Its bytes, and those after it in its direction (HTTP: of its answer), pass slowly until the
    /// rule is disarmed.
    Throttle(Rate),
    /// Its bytes pass in pieces.
    Slice {
        /// Bytes of a piece, at least 1.
        bytes: usize,
        /// Between two pieces.
        gap: Ms,
    },
    /// As a proxy that gathers: it and what follows pass together.
    Buffer {
        /// Once this many bytes are there.
        bytes: usize,
        /// Or this long after the first of them.
        ms: Ms,
    },
    /// HTTP: a field of its head is set, or removed.
    Header {
        /// Name of the field.
        name: String,
        /// Its value; `None`: the field does not pass.
        value: Option<String>,
    },
    /// HTTP: the body passes compressed.
    Compress,
    /// A request is answered in the server's place and never reaches it; an answer of the server's
    /// is replaced.
    Answer(Answer),
    /// The answer of its call is made wrong.
    Spoil(Spoil),
    /// Its call is given up, right after it has passed.
    Cancel(Cancel),
    /// Its exchange (stdio: the pipe) is cut.
    Disconnect {
        /// Which side, and how.
        cut: Cut,
        /// At which moment.
        at: CutAt,
    },
    /// Something is done to the server's process, right after it has passed.
    Process(Process),
    /// Progress that nobody asked for follows it.
    Flood {
        /// Notifications in a second.
        per_s: u32,
        /// How many in all.
        count: u32,
    },
    /// The cancel and the answer of its call are put in an order.
    Race(RaceOrder),
}

/// How a call is given up.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cancel {
    /// The reason in the notification, where there is one.
    pub reason: Option<String>,
    /// What the waiting client gets, which has not given up.
    pub client_gets: ClientGets,
}

/// What a client gets whose call midwire has given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClientGets {
    /// stdio: nothing, as an answer that never comes. HTTP: its exchange is closed.
    #[default]
    Nothing,
    /// An error in the server's place. // ours: code -32000, "cancelled by midwire"
    Error,
    /// HTTP: its exchange is reset.
    Reset,
}

/// Which side is cut, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Which side; `None`: both.
    pub side: Option<Side>,
    /// By a reset; otherwise in order.
    pub is_reset: bool,
}

/// The moment of a cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CutAt {
    /// In place of the message that was picked.
    Now,
    /// After this many further messages of the answer have passed.
    AfterEvents(u64),
    /// After this many bytes of the answer (HTTP: of its body) have passed.
    AfterBytes(u64),
    /// When the final answer of its call comes: the effect has happened, the answer is lost.
    BeforeFinal,
    /// After the first half of the next event or line of the answer.
    MidEvent,
}

/// What is done to the server's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Process {
    /// `SIGKILL`.
    Kill,
    /// `SIGSTOP`: it stands still.
    Stop,
    /// `SIGCONT`: it goes on.
    Continue,
    /// Its standard input is closed.
    CloseStdin,
    /// It is killed and started again; the client's pipes stay.
    Restart,
}

/// How a request is sent again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retry {
    /// What becomes of its idempotency key.
    pub key: Key,
    /// Other arguments, as JSON; `None`: the same.
    pub arguments: Option<String>,
    /// With the id of the first, which is a fault; otherwise with a fresh one.
    pub has_same_id: bool,
    /// It is wanted although it may take effect twice.
    pub is_sure: bool,
}

/// What becomes of an idempotency key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Key {
    /// It stays.
    #[default]
    Same,
    /// Another takes its place.
    New,
    /// It is left out.
    None,
}

/// Which of a cancel and an answer comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RaceOrder {
    /// The answer is held until the cancel has passed, and this much longer.
    CancelFirst {
        /// The margin.
        margin: Ms,
    },
    /// The cancel follows the answer by this much.
    AnswerFirst {
        /// The margin.
        margin: Ms,
    },
}

/// What stands in place of the server's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// A JSON-RPC error.
    Error {
        /// Its code.
        code: i64,
        /// Its message.
        message: String,
    },
    /// A result, as JSON.
    Result(String),
    /// HTTP: a status without a JSON-RPC message.
    Status(u16),
    /// Text that is no JSON.
    Malformed,
    /// An answer with a text of this many bytes in it.
    Oversized(usize),
}

/// In what way an answer is made wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Spoil {
    /// Its last bytes are missing.
    Truncate,
    /// Its id is another one.
    WrongId,
    /// Its id has the other type.
    WrongIdType,
    /// It comes twice.
    DuplicateFinal,
    /// Progress of its call follows it.
    ProgressAfterFinal,
    /// It comes although the call was given up: the cancel is kept from the server.
    Late,
}

/// How fast something passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rate {
    /// Bytes a second; 0: nothing passes.
    Bytes(u64),
    /// Messages a second; 0: nothing passes.
    Messages(u64),
}

/// How the queue to a client is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Flow {
    /// Nothing is dropped: a slow client holds the server back.
    #[default]
    PassThrough,
    /// At most this many messages wait, at least 2; progress is given up first
    /// (`machine::buffer`).
    Bounded(usize),
}

impl Effect {
    /// Its name in every place where a person meets it, and the `what` of its `inject` events.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Effect::Hold { .. } => "hold",
            Effect::Drop => "drop",
            Effect::Duplicate { .. } => "duplicate",
            Effect::Swap => "swap",
            Effect::Edit { .. } => "edit",
            Effect::Delay { .. } => "delay",
            Effect::Throttle(_) => "throttle",
            Effect::Slice { .. } => "slice",
            Effect::Buffer { .. } => "buffer",
            Effect::Header { .. } => "header",
            Effect::Compress => "compress",
            Effect::Answer(_) => "answer",
            Effect::Spoil(_) => "spoil",
            Effect::Cancel(_) => "cancel",
            Effect::Disconnect { .. } => "disconnect",
            Effect::Process(process) => process.name(),
            Effect::Flood { .. } => "flood",
            Effect::Race(_) => "race",
        }
    }
}

impl Process {
    /// Its name in every place where a person meets it, and the `what` of its `inject` events.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Process::Kill => "kill",
            Process::Stop => "stop",
            Process::Continue => "continue",
            Process::CloseStdin => "close-stdin",
            Process::Restart => "restart",
        }
    }
}

impl Spoil {
    /// Every way.
    pub const ALL: [Spoil; 6] = [
        Spoil::Truncate,
        Spoil::WrongId,
        Spoil::WrongIdType,
        Spoil::DuplicateFinal,
        Spoil::ProgressAfterFinal,
        Spoil::Late,
    ];

    /// Its name in every place where a person meets it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Spoil::Truncate => "truncate",
            Spoil::WrongId => "wrong-id",
            Spoil::WrongIdType => "wrong-id-type",
            Spoil::DuplicateFinal => "duplicate-final",
            Spoil::ProgressAfterFinal => "progress-after-final",
            Spoil::Late => "late",
        }
    }
}

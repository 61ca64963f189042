//! What a tap answers to an order.

use super::book::OpenCall;
use super::{Command, Rule};
use crate::event::Transport;
use crate::time::Ms;

/// Who gave an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum By {
    /// A person in the viewer.
    Viewer,
    /// `midwire ctl`.
    Ctl,
    /// A recipe.
    Recipe,
    /// A lesson.
    Lesson,
}

/// What became of an order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Applied {
    /// What it was done to, in words: `id 7`, `stream 3`.
    pub to: Vec<String>,
    /// The number of the rule that is armed now.
    pub rule: Option<u64>,
    /// The answer to [`Command::Status`].
    pub status: Option<Status>,
}

/// Why an order was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// No open call, no held message, no rule like this.
    #[error("nothing here is like that: {0}")]
    NotFound(String),
    /// It means nothing on this transport or in this era.
    #[error("{0}")]
    NotHere(String),
    /// A retry that may take effect twice.
    #[error("{0}; say `sure` to send it all the same")]
    Unsafe(String),
    /// What it holds cannot be sent.
    #[error("{0}")]
    Invalid(String),
}

/// What a tap does to its traffic at the moment.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Status {
    /// What is armed, oldest first.
    pub rules: Vec<ArmedRule>,
    /// What is held, oldest first.
    pub held: Vec<HeldMessage>,
    /// Requests that wait for an answer, oldest first.
    pub open: Vec<OpenRequest>,
}

/// A rule that is armed.
#[derive(Debug, Clone, PartialEq)]
pub struct ArmedRule {
    /// Its number.
    pub number: u64,
    /// What it is.
    pub rule: Rule,
    /// How often it was applied.
    pub hits: u64,
    /// Who armed it.
    pub by: By,
}

/// A message that is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldMessage {
    /// Its number among all that were held.
    pub number: u64,
    /// Its direction and what it is, in words: `c2s request id 7 tools/call slow`.
    pub says: String,
    /// HTTP: its exchange.
    pub stream: Option<u64>,
    /// How long it has been held.
    pub held: Ms,
    /// When it is released by itself, from now.
    pub released_in: Ms,
    /// Its text.
    pub text: String,
}

/// A request that waits for an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenRequest {
    /// Its id, as JSON.
    pub id: String,
    /// Its method and target.
    pub says: String,
    /// HTTP: its exchange.
    pub stream: Option<u64>,
}

/// What takes orders: a tap.
pub trait TakesOrders: Send + Sync {
    /// Carries an order out, or arms it. Comes back at once.
    ///
    /// # Errors
    /// When it cannot be carried out; nothing has been done then.
    fn order(&self, command: &Command, by: By) -> Result<Applied, Refused>;

    /// How its peers are joined.
    fn transport(&self) -> Transport;

    /// It knows the calls that are open. Otherwise it began to look with its first order, and
    /// should be told of those that were opened before.
    fn knows(&self) -> bool {
        true
    }

    /// Tells it of calls that were opened before it began to look, oldest first, as the recording
    /// has them. Those that it knows better are left out.
    fn seed(&self, calls: Vec<OpenCall>) {
        drop(calls);
    }
}

impl By {
    /// Its name, as in `inject` events.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            By::Viewer => "viewer",
            By::Ctl => "ctl",
            By::Recipe => "recipe",
            By::Lesson => "lesson",
        }
    }
}

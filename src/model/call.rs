//! One request and everything that belongs to it.
//!
//! Client view and server view are two fields, and either may be unknown: a cancel that passed
//! the tap says what the client wants, never what the server has seen.

use smallvec::SmallVec;

use super::{Name, Race, RowIdx, ScopeIdx, Told, Verdict};
use crate::event::{Dir, Transport};
use crate::spec::era::Era;
use crate::spec::logging::Level;
use crate::time::Mono;
use crate::wire::jsonrpc::Id;

/// Position in `Model::calls`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallIdx(pub u32);

/// Where a call stands, as seen from the middle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallState {
    /// Passed the tap; nothing has come back yet.
    Delivered,
    /// Progress has come back.
    Progressing,
    /// Ended by a result (a tool result with `isError` included).
    AnsweredOk,
    /// Ended by a JSON-RPC error, or an HTTP status that refuses.
    AnsweredError,
    /// Ended by a result that asks for input (MRTR); the next round is linked.
    InputRequired,
    /// The client sent the cancel signal and no answer had passed before.
    CancelledByClient,
    /// The client left the exchange (which in the modern era is the cancel signal).
    AbandonedByDisconnect,
    /// The stream or the process ended before an answer.
    Lost,
    /// The recording ended first.
    Unresolved,
}

impl CallState {
    /// Nothing changes it later.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        !matches!(self, CallState::Delivered | CallState::Progressing)
    }

    /// It ended, and no answer had passed by then.
    #[must_use]
    pub fn is_unanswered(self) -> bool {
        matches!(self, CallState::CancelledByClient | CallState::AbandonedByDisconnect | CallState::Lost)
    }

    /// An answer ended it.
    #[must_use]
    pub fn is_answered(self) -> bool {
        matches!(self, CallState::AnsweredOk | CallState::AnsweredError | CallState::InputRequired)
    }

    /// One word for it, as filters and reports use it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            CallState::Delivered => "delivered",
            CallState::Progressing => "progressing",
            CallState::AnsweredOk => "ok",
            CallState::AnsweredError => "error",
            CallState::InputRequired => "input",
            CallState::CancelledByClient => "cancelled",
            CallState::AbandonedByDisconnect => "disconnected",
            CallState::Lost => "lost",
            CallState::Unresolved => "unresolved",
        }
    }
}

/// What the client is known to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClientView {
    /// Waiting for an answer, as far as can be seen.
    Waiting,
    /// The answer was handed to it.
    Answered,
    /// It sent the cancel signal, or left.
    Abandoned,
}

/// What the server is known to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ServerView {
    /// Nothing has come from it.
    Unknown,
    /// It sent progress or a response head.
    Working,
    /// It sent an answer.
    Completed,
    /// It is known to have seen the cancel (witness or telemetry).
    Cancelled,
    /// It went away.
    Gone,
}

/// The log messages that a request asks for (`_meta` logLevel, modern era).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LogsAsked {
    /// Those of this level and above.
    From(Level),
    /// Those of a level that does not exist.
    Unknown,
}

/// Something on the lane of a call, for the waterfall.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// When it passed the tap.
    pub at: Mono,
    /// What it was.
    pub kind: MarkKind,
    /// The row that shows it.
    pub row: RowIdx,
}

/// The kinds of marks on a lane, in rising order of what must stay visible when two fall into
/// one cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MarkKind {
    /// The request itself.
    Sent,
    /// The head of the HTTP answer.
    Head,
    /// A notification that belongs to it, other than progress.
    Notification,
    /// Progress that does not count: its value did not rise, or it came on another's stream.
    Rejected,
    /// Progress that counts.
    Progress,
    /// A subscription was acknowledged.
    Acknowledged,
    /// The result.
    Result,
    /// The result asks for input.
    InputRequired,
    /// An answer or progress after the client had given up.
    Late,
    /// The cancel signal.
    Cancel,
    /// The client left.
    Disconnect,
    /// The stream or process ended before an answer.
    Lost,
    /// A JSON-RPC error or a refusing HTTP status.
    Error,
    /// midwire did something to it.
    Injected,
}

/// Progress of one call. Progress is read by the token that the request asked for.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Progress {
    /// Notifications accepted (each value above the last).
    pub count: u32,
    /// Notifications whose value did not rise.
    pub rejected: u32,
    /// Last accepted value.
    pub last: Option<f64>,
    /// Last total that was told.
    pub total: Option<f64>,
    /// When the first one passed.
    pub first_at: Option<Mono>,
    /// When the last accepted one passed.
    pub last_at: Option<Mono>,
}

/// What came after the end of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct After {
    /// Answers after the client had given up.
    pub late_answers: u32,
    /// Progress after the end.
    pub late_progress: u32,
    /// Second and later answers.
    pub duplicate_answers: u32,
    /// Cancels after the answer.
    pub late_cancels: u32,
}

/// One request and what became of it.
#[expect(clippy::struct_excessive_bools, reason = "independent facts, none of them a state")]
#[derive(Debug, Clone)]
pub struct Call {
    /// The id as sent.
    pub id: Id,
    /// Who asked: `C2s` for a client's request, `S2c` for a (legacy) server's.
    pub sender: Dir,
    /// How the peers are joined.
    pub transport: Transport,
    /// Where its id counts: a process, a session, or the modern HTTP requests of one upstream.
    pub scope: ScopeIdx,
    /// HTTP: number of the exchange.
    pub stream: Option<u64>,
    /// HTTP: number of the connection.
    pub conn: Option<u64>,
    /// Method.
    pub method: Name,
    /// Tool or prompt name, resource URI or task id.
    pub target: Option<Name>,
    /// The era of the request (docs/semantics.md, eras), where it is known.
    pub era: Option<Era>,
    /// The row of the request.
    pub row: RowIdx,
    /// When the request was read.
    pub started: Mono,
    /// When it reached its terminal state.
    pub ended: Option<Mono>,
    /// Where it stands.
    pub state: CallState,
    /// What the client is known to think.
    pub client: ClientView,
    /// What the server is known to think.
    pub server: ServerView,
    /// The progress token it asked for.
    pub token: Option<Id>,
    /// The log messages it asked for; `None`: none.
    pub logs: Option<LogsAsked>,
    /// Its progress.
    pub progress: Progress,
    /// The result says `isError`.
    pub is_tool_error: bool,
    /// It is carried out as a task: asked for as one (2025-11-25), or answered with one.
    pub is_task: bool,
    /// JSON-RPC error code of the answer.
    pub error_code: Option<i64>,
    /// HTTP status of the answer.
    pub status: Option<u16>,
    /// When a byte last came on what carries its answer, as far as that has been looked up: when it
    /// ended, or lost its carrier. Never before `started`.
    pub(super) heard: Mono,
    /// Reason text of the cancel.
    pub cancel_reason: Option<Name>,
    /// Its race, as it stood when the last of its events was folded; [`Model::race`] tells how it
    /// stands now. `None`: no cancel signal came.
    ///
    /// [`Model::race`]: super::Model::race
    pub(super) race: Option<Box<Race>>,
    /// What the server told about it.
    pub told: Option<Box<Told>>,
    /// What came after its end.
    pub after: After,
    /// midwire itself did something to it; what follows is nobody's fault.
    pub is_injected: bool,
    /// HTTP, legacy: its stream gave event ids, so that its answer may come on another stream.
    pub is_resumable: bool,
    /// The earlier call that this one repeats (same method, target and arguments under a new id,
    /// after the earlier one ended without an answer).
    pub retry_of: Option<CallIdx>,
    /// The earlier round that this one continues (MRTR).
    pub round_of: Option<CallIdx>,
    /// Everything on its lane, in order.
    pub marks: SmallVec<[Mark; 2]>,
}

impl Call {
    /// Who won between its cancel and its answer so far; `None`: no cancel signal came.
    #[must_use]
    pub fn verdict(&self) -> Option<Verdict> {
        self.race.as_deref().map(|race| race.verdict)
    }
}

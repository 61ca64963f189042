//! What the fold noticed in one event, for those who judge it.
//!
//! The model says what was seen and what it belongs to; whether that breaks a rule, who is at
//! fault and how bad it is, is for the `rules` room to say.

use super::{CallIdx, FlowIdx, Lateness, RowIdx, ScopeIdx, Stage};
use crate::event::{Dir, Transport};
use crate::time::Mono;
use crate::wire::jsonrpc::Id;
use crate::wire::sse::SseEvent;

/// One thing that was noticed.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// The row that shows it; `None` where nothing passed (such as at the end of a recording).
    pub row: Option<RowIdx>,
    /// The call that it belongs to.
    pub call: Option<CallIdx>,
    /// Process, session or upstream.
    pub scope: ScopeIdx,
    /// HTTP: number of the exchange.
    pub stream: Option<u64>,
    /// HTTP: number of the connection.
    pub conn: Option<u64>,
    /// How the peers are joined.
    pub transport: Transport,
    /// When.
    pub at: Mono,
    /// What.
    pub what: Sight,
}

/// What can be noticed.
#[derive(Debug, Clone, PartialEq)]
pub enum Sight {
    /// A message was taken in; everything else about it was told before.
    Message,
    /// HTTP: the head of a request was read, with or without a message.
    HttpRequest,
    /// HTTP: the head of an answer was read; `call` is the first of its exchange.
    HttpHead,
    /// HTTP: the server ended an answer, or the recording did; `call` is the first of its exchange.
    ExchangeEnd,
    /// HTTP: the client left an exchange before its end; `call` is the first of its exchange.
    ExchangeLeft,
    /// HTTP: an event of an event stream, told before its message; `call` is the first of its
    /// exchange.
    SseEvent(SseField),
    /// HTTP+SSE: an event says where to post.
    Endpoint {
        /// Path and query.
        path: String,
    },
    /// HTTP: a comment in an event stream.
    SseComment,
    /// A request was read; `call` is new.
    Request,
    /// A notification that is none of the kinds below.
    Notification,
    /// A request whose id another open request of the same sender has.
    IdInFlight {
        /// The other one.
        other: CallIdx,
    },
    /// A request whose id an earlier request of the same sender had, which has ended.
    IdAgain {
        /// The earlier one.
        earlier: CallIdx,
    },
    /// A request asks for progress under the token of another open request.
    TokenInFlight {
        /// The other one.
        other: CallIdx,
    },
    /// `call` was answered; it was open until now.
    Answered,
    /// `call` was answered by asking for input; told after [`Sight::Answered`].
    InputRequired,
    /// A request that brings `inputResponses`, `requestState` or both; told after [`Sight::Request`].
    InputGiven,
    /// An answer after the client had cancelled or left.
    AnswerAfterCancel(Lateness),
    /// A second answer to a call, on the same ordered channel.
    AnswerAgain,
    /// An answer whose id no request of the other side had.
    AnswerUnknown {
        /// The id.
        id: Id,
    },
    /// An answer whose id equals an open one only when its type is ignored; `call` is that one.
    AnswerOtherType {
        /// The id as sent back.
        id: Id,
    },
    /// An error without an id.
    AnswerNoId,
    /// An answer on the stream of another exchange than its request's, in the modern era.
    AnswerElsewhere,
    /// Progress accepted for `call`.
    Progress,
    /// Progress whose value does not rise.
    ProgressStuck {
        /// The value before.
        last: f64,
        /// The value now.
        now: f64,
    },
    /// Progress for `call` after its answer, from the same sender on the same channel.
    ProgressAfterAnswer,
    /// Progress for `call` after the client had cancelled or left.
    ProgressAfterCancel(Lateness),
    /// Progress under a token that no request asked for.
    ProgressUnknown {
        /// The token; `None`: missing, or of a wrong type.
        token: Option<Id>,
    },
    /// Progress whose token equals that of `call` only when its type is ignored.
    ProgressOtherType {
        /// The token as sent back.
        token: Id,
    },
    /// Progress for `call` on the stream of another exchange.
    ProgressElsewhere {
        /// The call that opened that stream.
        stream_of: Option<CallIdx>,
    },
    /// The client's cancel for `call`, which was open.
    Cancel,
    /// A cancel for `call`, which had ended.
    CancelAfterEnd,
    /// A cancel that names no request of its sender.
    CancelUnknown {
        /// The id that it names; `None`: missing, or of a wrong type.
        id: Option<Id>,
        /// The other side has a request with this id.
        is_of_other_side: bool,
    },
    /// A cancel whose id equals an open one only when its type is ignored; `call` is that one.
    CancelOtherType {
        /// The id as sent.
        id: Id,
    },
    /// The server's cancel; `call` is the client's request that it names, if there is one.
    CancelByServer,
    /// The client left the exchange of `call`, which was open.
    ClientLeft,
    /// The server ended the exchange of `call`, which was open and can get no answer any more.
    StreamEnded,
    /// The server ended the exchange of `call`, which may be taken up again by event id, and which
    /// its client had not left.
    StreamEndedResumable,
    /// A stream that took up that of `call` again ended without its answer.
    ResumeEmpty,
    /// A queue was read.
    Queue {
        /// Before which flow it stands.
        flow: FlowIdx,
    },
    /// An event stream was ended by one side, whatever it answered.
    StreamClosed {
        /// Which.
        flow: FlowIdx,
    },
    /// The server's process ended, or its stdout did; `calls` were open.
    ProcessEnded {
        /// Requests of both sides that can get no answer any more.
        calls: Vec<CallIdx>,
    },
    /// A session ended with open calls.
    SessionEnded {
        /// Requests of both sides that can get no answer any more.
        calls: Vec<CallIdx>,
    },
    /// The client closed the server's stdin; `calls` were open.
    StdinClosed {
        /// Requests of the client that were open.
        calls: Vec<CallIdx>,
    },
    /// The server told something about `call`.
    Told(Stage),
    /// The server wrote to stderr or stdout.
    ServerOutput,
    /// The recording ended; `calls` were open.
    Ended {
        /// Open requests of both sides.
        calls: Vec<CallIdx>,
    },
    /// A notification of the subscription that `call` began; never progress or a log.
    Subscription {
        /// Its position among the subscription's notifications, from 0.
        nth: u32,
    },
    /// A notification of a subscription after the server's own closing result.
    SubscriptionAfterEnd,
    /// A notification of a subscription after the client's cancel.
    SubscriptionAfterCancel(Lateness),
    /// A notification with the id of a subscription that does not exist; `call` is the listen whose
    /// id it equals when its type is ignored.
    SubscriptionUnknown {
        /// The id.
        id: Id,
    },
    /// Something is wrong with a frame.
    Frame {
        /// Who wrote it.
        dir: Dir,
        /// What is wrong.
        fault: FrameFault,
    },
}

/// The fields of an event of an event stream, other than its data.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SseField {
    /// `event:`
    pub event: Option<String>,
    /// `id:`
    pub id: Option<String>,
    /// `retry:` in milliseconds.
    pub retry: Option<u64>,
    /// It has a data field.
    pub has_data: bool,
    /// Its data is empty.
    pub is_empty: bool,
    /// Its data is a JSON-RPC message.
    pub holds_message: bool,
}

impl SseField {
    pub(super) fn of(block: &SseEvent, is_empty: bool, holds_message: bool) -> SseField {
        SseField {
            event: block.event.clone(),
            id: block.id.clone(),
            retry: block.retry,
            has_data: block.data.is_some(),
            is_empty,
            holds_message,
        }
    }
}

/// What can be wrong with a frame or an envelope.
#[derive(Debug, Clone, PartialEq)]
pub enum FrameFault {
    /// A line that is no message.
    NotMessage,
    /// A line that belongs to a header, such as `Content-Length: 20`.
    HeaderLine,
    /// A blank line.
    Blank,
    /// A line that ends in CR LF.
    CrLf,
    /// A byte order mark.
    ByteOrderMark,
    /// Bytes that are not UTF-8.
    NotUtf8,
    /// The stream ended inside a line.
    Torn {
        /// How many bytes of it had come.
        bytes: u64,
    },
    /// One message over several lines.
    SeveralLines {
        /// How many.
        lines: u32,
    },
    /// An event stream ended inside an event.
    SseUnterminated {
        /// What had come of it reads as a message.
        is_message: bool,
        /// It was the client that ended it.
        by_client: bool,
    },
    /// An event of an event stream that is no message.
    SseNotMessage,
    /// Several messages in one body, one after the other and not in an array.
    Concatenated {
        /// How many.
        messages: u32,
    },
    /// A JSON array of messages.
    Batch {
        /// How many items it has.
        items: u32,
    },
    /// `jsonrpc` is not `"2.0"`.
    BadVersion,
    /// Neither request, notification, result nor error, or several at once.
    NoKind,
    /// Both `result` and `error`.
    ResultAndError,
    /// An id that is neither a string nor an integer; holds it as sent.
    BadId(String),
    /// A member that occurs twice; holds its name.
    DuplicateMember(String),
    /// A notification with an id.
    NotificationWithId,
    /// An error without an integer code or a message.
    BadError,
    /// A result that is no object.
    ResultNotObject,
    /// `params` that is no object.
    ParamsNotObject,
    /// A line or an event longer than the limit, of which only the length is known.
    OverLimit,
}

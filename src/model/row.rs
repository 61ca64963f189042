//! One line of the event stream: a message, or something else that happened.

use super::{CallIdx, Name};
use crate::event::{Dir, Transport};
use crate::spec::era::Era;
use crate::time::Mono;

/// Position in `Model::rows`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowIdx(pub u32);

/// Where the bytes of a row stand: the events `first..=last` of the same direction and exchange,
/// joined; then `len` bytes from `skip` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Source {
    /// Position of the first event in the recording, from 0.
    pub first: u32,
    /// Position of the last event, inclusive.
    pub last: u32,
    /// Bytes of the first event that belong to what came before.
    pub skip: u32,
    /// Length on the wire, with its ending; where the body is encoded, in its decoded form.
    pub len: u64,
    /// How the body is encoded; `skip` and `len` then count decoded bytes.
    pub coding: Coding,
}

/// Encoding of an HTTP body (`Content-Encoding`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Coding {
    /// As it is.
    #[default]
    Identity,
    /// `gzip`
    Gzip,
    /// `deflate`
    Deflate,
    /// Another one, which midwire cannot undo.
    Unknown,
}

/// What a row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RowKind {
    /// A request.
    Request,
    /// A notification that is none of the kinds below.
    Notification,
    /// `notifications/progress`.
    Progress,
    /// `notifications/cancelled`.
    Cancelled,
    /// A result.
    Result,
    /// A JSON-RPC error.
    Error,
    /// A frame that is no message: not JSON, a batch in the wrong era, an invalid envelope.
    Invalid,
    /// A comment line of an event stream.
    SseComment,
    /// An SSE block that carries no message, such as a priming event or an `endpoint` event.
    SseOther,
    /// The head of an HTTP request that carries no message (GET, DELETE, or an unreadable body).
    HttpRequest,
    /// The head of an HTTP answer.
    HttpHead,
    /// An HTTP body that is no message.
    HttpBody,
    /// Standard error of the server.
    Stderr,
    /// The client ended (an exchange, a connection, or its stdin).
    ClientClosed,
    /// The server ended (an answer, or its process).
    ServerClosed,
    /// The server was started, or got a signal.
    Process,
    /// A reading of a queue.
    Queue,
    /// Done by midwire itself.
    Inject,
    /// Told by a peer.
    Telemetry,
    /// Something is missing here.
    Gap,
    /// A note by the user.
    Mark,
    /// Anything else (clock anchors, redaction, end of capture, unknown events).
    Note,
}

/// One line of the event stream. Small and fixed: no text of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Causal number of the event that completed it.
    pub n: u64,
    /// When its first byte was read.
    pub at: Mono,
    /// When its last byte had been handed on, where that is known.
    pub out: Option<Mono>,
    /// Which way it went.
    pub dir: Dir,
    /// How the peers are joined.
    pub transport: Transport,
    /// HTTP: number of the exchange.
    pub stream: Option<u64>,
    /// What it is.
    pub kind: RowKind,
    /// Method, for requests and notifications.
    pub method: Option<Name>,
    /// Short text that helps to recognise it: target of a request, status of a head, first words
    /// of stderr. At most 120 characters.
    pub detail: Option<Name>,
    /// The call that it belongs to.
    pub call: Option<CallIdx>,
    /// The era that it was judged under.
    pub era: Option<Era>,
    /// Where its bytes stand.
    pub source: Source,
    /// midwire sent it, in the place of the side that it seems to come from.
    pub is_ours: bool,
}

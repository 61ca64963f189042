//! What happened in the path (`Event`), and the queue in which events get their order (`tape`).
//!
//! An event is what a recording holds and what every reader folds: the tap makes them, the
//! `trace` room writes and reads them, the `model` room understands them. This room knows no
//! files and no sockets.

pub mod tape;
pub mod telemetry;

use bytes::Bytes;

pub use crate::spec::transport::Transport;
use crate::time::Mono;

/// Which way something went, seen from the middle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dir {
    /// From the client to the server.
    C2s,
    /// From the server to the client.
    S2c,
    /// From the server's standard error.
    Stderr,
    /// Said by the tap itself.
    Tap,
}

/// One thing that happened, in causal order.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Causal number, from 1, without holes in a complete recording.
    pub n: u64,
    /// When it was read from its sender, in nanoseconds since the session began.
    pub at: Mono,
    /// When its last byte had been handed to the receiver; `None`: not known, or not yet.
    pub out: Option<Mono>,
    /// Which way it went.
    pub dir: Dir,
    /// How the peers are joined.
    pub transport: Transport,
    /// HTTP only: number of the exchange (one request and all of its answer), from 1.
    pub stream: Option<u64>,
    /// HTTP only: number of the downstream connection, from 1.
    pub conn: Option<u64>,
    /// What it was.
    pub what: What,
}

/// What happened. Bytes are always those of the wire, never a re-serialisation.
#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// stdio: the bytes of one line with its ending, or of a fragment of one. A hand-written
    /// recording may hold several lines in one event.
    Bytes {
        /// The bytes as they passed.
        bytes: Bytes,
        /// Number of the read this came from, from 1 in each direction: events with the same
        /// number were read, and written on, as one chunk. `None`: not known.
        read: Option<u64>,
    },
    /// HTTP: the head of a request and, when it was read in one go, its whole body.
    Request(RequestHead),
    /// HTTP: the head of an answer.
    ResponseHead {
        /// Status code.
        status: u16,
        /// Header fields as sent.
        headers: Headers,
    },
    /// HTTP: bytes of a `text/event-stream` body, cut wherever they were read.
    SseChunk(Bytes),
    /// HTTP: bytes of any other body, cut wherever they were read; with `Dir::C2s` a piece of a
    /// request's body that did not fit into its `Request`.
    Body(Bytes),
    /// The client ended: stdio, end of the server's stdin; HTTP, the client left this exchange
    /// (or, without a stream, this connection) before its end.
    ClientClosed {
        /// In what manner, where it is known.
        how: Option<Close>,
    },
    /// The server ended: stdio, the process ended or closed its stdout; HTTP, the answer of this
    /// exchange ended.
    ServerClosed {
        /// In what manner, where it is known.
        how: Option<Close>,
        /// stdio: exit status of the process.
        exit_code: Option<i32>,
        /// stdio: signal that ended the process.
        signal: Option<i32>,
    },
    /// stdio: the server process was started.
    Spawn {
        /// Process id.
        pid: u32,
        /// The command and its arguments.
        command: Vec<String>,
    },
    /// stdio: a signal was sent to the server process, or received by the tap and passed on.
    Signal {
        /// Name, such as `SIGTERM`.
        signal: String,
        /// Why, in a few words, such as `passed on` or `stdin closed 5 s ago`.
        why: String,
    },
    /// The state of a queue at this moment.
    Queue(Queue),
    /// Something that midwire itself did to the traffic; what follows from it is nobody's fault.
    Inject {
        /// What was done, such as `cancel` or `rewrite`.
        what: String,
        /// To what: an id, a stream, a header.
        target: String,
        /// Who asked: `viewer`, `ctl`, `recipe`, `option`.
        by: String,
        /// Anything more that explains it: the rule, its seed.
        cause: Option<String>,
        /// What was sent in place of, or beside, what was read: exact bytes, in the direction of
        /// the event.
        sent: Option<Bytes>,
    },
    /// Told by a peer that volunteers it: one JSON object.
    Telemetry(String),
    /// Something is missing from the recording here.
    Gap {
        /// Events lost, or shortened.
        lost: u64,
        /// Bytes lost.
        bytes: u64,
        /// Why, in a few words.
        why: String,
    },
    /// A note by the user.
    Mark(String),
    /// An anchor to wall time, RFC 3339.
    Clock {
        /// The wall time.
        wall: String,
    },
    /// Secrets were masked in this recording.
    Redact {
        /// The rules that were in force.
        rules: Vec<String>,
        /// How often one hit.
        hits: u64,
    },
    /// The observer stopped watching, in order. Its absence means that it was cut off.
    CaptureEnd {
        /// How many events the recording holds; `None` in hand-written ones.
        events: Option<u64>,
        /// Whether nothing is missing; `None` in hand-written ones.
        complete: Option<bool>,
    },
    /// An event of a kind that this version does not know.
    Unknown {
        /// Its name.
        event: String,
    },
}

/// In what manner a side ended a connection or a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Close {
    /// An orderly end: the body or the connection ended (`FIN`).
    Eof,
    /// Only the sending side was shut; the peer may still read.
    HalfClose,
    /// A reset (`RST`, or `RST_STREAM` in h2).
    Reset,
    /// A limit of time was passed.
    Timeout,
}

/// The head of an HTTP request, with its body where that is known whole.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RequestHead {
    /// Method, such as `POST`.
    pub method: String,
    /// Request target as sent: path and query.
    pub path: String,
    /// Header fields as sent.
    pub headers: Headers,
    /// The whole body; `None`: there was none, or it follows in `Body` events.
    pub body: Option<Bytes>,
}

/// Header fields: names in the case they were sent in, values as text (bytes outside UTF-8
/// replaced), every repetition kept. The order across different names is not known to be the
/// sender's.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Headers(pub Vec<(String, String)>);

impl Headers {
    /// The first value of a field; names compare without case.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
    }

    /// All values of a field, in order; names compare without case.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
    }
}

/// One reading of a queue between two peers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Queue {
    /// Events waiting.
    pub events: u64,
    /// Bytes waiting.
    pub bytes: u64,
    /// Limit in events, where there is one.
    pub capacity: Option<u64>,
    /// Progress replaced in place, so far.
    pub coalesced: u64,
    /// Progress thrown out to make room, so far.
    pub evicted: u64,
    /// Progress not taken in, so far.
    pub discarded: u64,
    /// Finals refused, so far.
    pub refused: u64,
    /// How long the sender has been held back, so far, in milliseconds.
    pub blocked_ms: u64,
}

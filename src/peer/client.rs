//! The reference client, revision 2026-07-28: starts a server command or goes to a URL.
//!
//! `message` writes requests and reads what comes back; `follow` is the life of one call, the
//! same on both transports; `stdio` and `http` carry messages, and know the signal by which
//! their transport is told that a call was given up.

mod follow;
mod http;
mod message;
mod stdio;

use std::collections::BTreeMap;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

pub use message::{Progress, raw};

use self::message::Outgoing;
use super::PeerError;
use crate::machine::deadlines::Deadlines;
use crate::machine::request::ClientRequest;
use crate::spec::methods;
use crate::time::{Ms, TimerClock};
use crate::wire::jsonrpc::{self, Id};

/// Members of `params`, as raw JSON so that nothing is rounded on the way.
pub type Params = BTreeMap<String, Box<RawValue>>;

/// What can be set for each call.
#[derive(Debug, Clone)]
pub struct CallOptions {
    /// Give up after this long without accepted progress.
    pub idle: Ms,
    /// Give up after this long, whatever comes.
    pub max: Ms,
    /// Ask for progress.
    pub wants_progress: bool,
    /// What the client says it can do: the object `clientCapabilities`.
    pub capabilities: Value,
    /// Cancel, in the way of the transport, after this long.
    pub cancel_after: Option<Ms>,
    /// Break the connection without a word after this long: reset on HTTP, closed pipes on stdio.
    pub drop_after: Option<Ms>,
    /// Cancel, in the way of the transport, when this fires.
    pub cancel: CancellationToken,
}

impl Default for CallOptions {
    fn default() -> CallOptions {
        CallOptions {
            idle: Ms(60_000),
            max: Ms(300_000),
            wants_progress: false,
            capabilities: json!({}),
            cancel_after: None,
            drop_after: None,
            cancel: CancellationToken::new(),
        }
    }
}

/// How a call went.
#[derive(Debug)]
pub struct Report {
    /// Its request id.
    pub id: Id,
    /// How it ended.
    pub outcome: Outcome,
    /// HTTP status of the answer.
    pub status: Option<u16>,
    /// Progress notifications accepted.
    pub progress: u64,
    /// Progress notifications dropped because their value did not rise.
    pub rejected: u64,
    /// From the request to its end.
    pub elapsed: Ms,
    /// What the server did wrong on the way, in words; the call went on. At most 100 are kept.
    pub faults: Vec<String>,
}

/// How a call ended, as the client knows it.
#[derive(Debug)]
pub enum Outcome {
    /// A result; a tool result may still say `isError`.
    Complete(Box<RawValue>),
    /// A result that asks for input: call again with the answers and the state.
    InputRequired(Box<RawValue>),
    /// A JSON-RPC error.
    Error {
        /// `error.code`.
        code: i64,
        /// `error.message`.
        message: String,
        /// `error.data`, raw.
        data: Option<Box<RawValue>>,
    },
    /// Refused by HTTP status, without a JSON-RPC body.
    Refused {
        /// First characters of the body.
        body: String,
    },
    /// The client gave up; what the server did is not known.
    GivenUp(Reason),
    /// The stream or the process ended before an answer; what the server did is not known.
    Lost(String),
    /// An answer that is none by the letter; says why.
    Invalid(String),
}

/// Why the client gave up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// No progress for too long.
    Idle,
    /// Open for too long.
    Maximum,
    /// Cancelled by its user.
    Cancelled,
    /// The connection was broken on purpose.
    Dropped,
}

impl Reason {
    /// In words; goes into `notifications/cancelled` where there is one.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::Idle => "idle timeout",
            Reason::Maximum => "maximum timeout",
            Reason::Cancelled => "cancelled by the user",
            Reason::Dropped => "connection dropped",
        }
    }
}

/// The end of a server process that the client started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerExit {
    /// Its exit status.
    pub status: ExitStatus,
    /// It did not end when its input was closed, and had to be ended by a signal.
    pub was_forced: bool,
}

/// A connection to one server. Calls may run at the same time.
#[derive(Debug)]
pub struct Client {
    link: Link,
    next_id: AtomicI64,
    clock: TimerClock,
}

#[derive(Debug)]
enum Link {
    Stdio(stdio::Link),
    Http(http::Link),
}

impl Client {
    /// Starts a server command and talks to it over its standard input and output; its standard
    /// error goes where ours goes.
    ///
    /// # Errors
    /// When the command is empty or cannot be started.
    pub fn spawn(command: &[String]) -> Result<Client, PeerError> {
        Ok(Client::new(Link::Stdio(stdio::Link::spawn(command)?)))
    }

    /// Talks over a pair of pipes that somebody else has made.
    pub fn over_pipes<R, W>(reader: R, writer: W) -> Client
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        Client::new(Link::Stdio(stdio::Link::start(reader, writer, None)))
    }

    /// Talks to a URL. Nothing is connected yet: each call uses an idle connection or opens one.
    ///
    /// # Errors
    /// When the URL is not one of plain HTTP with a host.
    pub fn http(url: &str) -> Result<Client, PeerError> {
        Ok(Client::new(Link::Http(http::Link::new(url)?)))
    }

    fn new(link: Link) -> Client {
        Client { link, next_id: AtomicI64::new(1), clock: TimerClock::start() }
    }

    /// Numbers its requests from `id` on, so that it goes on where another client ended: an id
    /// that was cancelled is never answered, and so never free again (CAN-12).
    #[must_use]
    pub fn with_ids_from(self, id: i64) -> Client {
        Client { next_id: AtomicI64::new(id), ..self }
    }

    /// The id that its next request will have.
    #[must_use]
    pub fn next_id(&self) -> i64 {
        self.next_id.load(Ordering::Relaxed)
    }

    /// Asks for versions and capabilities.
    ///
    /// # Errors
    /// When the request cannot be sent at all.
    pub async fn discover(&self, options: &CallOptions) -> Result<Report, PeerError> {
        self.request(methods::DISCOVER, Params::new(), options, |_| {}).await
    }

    /// Asks for one page of tools; `cursor` is what the page before named as `nextCursor`.
    ///
    /// # Errors
    /// When the request cannot be sent at all.
    pub async fn list(&self, cursor: Option<&RawValue>, options: &CallOptions) -> Result<Report, PeerError> {
        let params = cursor.map(|cursor| ("cursor".to_owned(), cursor.to_owned()));
        self.request(methods::TOOLS_LIST, params.into_iter().collect(), options, |_| {}).await
    }

    /// Calls a tool. `arguments` is a JSON object; `on_progress` is told each accepted progress.
    ///
    /// # Errors
    /// When the request cannot be sent at all.
    pub async fn call(
        &self,
        tool: &str,
        arguments: &RawValue,
        options: &CallOptions,
        on_progress: impl FnMut(&Progress) + Send,
    ) -> Result<Report, PeerError> {
        let params = [("name", message::raw(&tool)), ("arguments", arguments.to_owned())];
        let params = params.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        self.request(methods::TOOLS_CALL, params, options, on_progress).await
    }

    /// Sends any request and follows it to its end. Dropping the future gives the call up
    /// without a word on stdio, and by closing its connection on HTTP.
    ///
    /// # Errors
    /// When the limits make no sense or the request cannot be sent at all.
    pub async fn request(
        &self,
        method: &str,
        params: Params,
        options: &CallOptions,
        on_progress: impl FnMut(&Progress) + Send,
    ) -> Result<Report, PeerError> {
        let deadlines = Deadlines::new(self.clock.now(), options.idle, options.max)?;
        let number = self.next_id.fetch_add(1, Ordering::Relaxed);
        let outgoing = Outgoing::new(number, method, params, options);
        let exchange = match &self.link {
            Link::Stdio(link) => link.open(&outgoing).await?,
            Link::Http(link) => link.open(&outgoing),
        };
        let record = ClientRequest::new(deadlines);
        follow::follow(outgoing.id, exchange, record, self.clock, options, on_progress).await
    }

    /// Messages that belonged to no open call: late answers and late progress, counted and
    /// dropped. Always 0 on HTTP, where a call's stream ends with it.
    #[must_use]
    pub fn strays(&self) -> u64 {
        match &self.link {
            Link::Stdio(link) => link.strays(),
            Link::Http(_) => 0,
        }
    }

    /// Ends the connection in order. On stdio: closes the server's input, waits 2 s, then SIGTERM,
    /// waits 2 s, then SIGKILL. `None`: there was no process of ours.
    ///
    /// # Errors
    /// When the process cannot be waited for.
    pub async fn close(self) -> Result<Option<ServerExit>, PeerError> {
        match self.link {
            Link::Stdio(link) => link.close().await,
            Link::Http(link) => {
                link.close();
                Ok(None)
            }
        }
    }
}

/// The `nextCursor` of a page of a list, if there is a next page.
#[must_use]
pub fn next_cursor(page: &RawValue) -> Option<&RawValue> {
    jsonrpc::at(page, &["nextCursor"]).filter(|cursor| cursor.get() != "null")
}

#[cfg(test)]
mod tests;

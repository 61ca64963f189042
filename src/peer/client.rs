//! The reference client, revision 2026-07-28: starts a server command or goes to a URL.
//!
//! A [`Client`] is one connection. `message` writes requests and reads what comes back, in the
//! shape of the era; `follow` is the life of one call, the same on both transports; `stdio` and
//! `http` carry messages, and know the signal by which their transport is told that a call was
//! given up; `desk` hands what arrives to the call that it belongs to. Everything that goes out
//! passes `Client::send` or the `Signal` of `follow`.

pub mod answers;
pub mod auth;
pub mod cache;
mod desk;
pub mod era;
mod faults;
mod follow;
mod http;
pub mod listen;
pub mod lists;
mod message;
pub mod mirror;
pub mod peer;
pub mod peers;
pub mod probe;
pub mod rounds;
#[cfg(test)]
mod scripted;
mod send;
pub mod spread;
mod stdio;
pub mod tasks;

use std::collections::BTreeMap;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

pub use follow::Heard;
pub use message::{Notice, Progress, Speech, raw};

use self::answers::Answers;
use self::auth::{Auth, Challenge};
use self::desk::Desk;
use self::era::Settled;
use self::message::Outgoing;
use super::PeerError;
use crate::spec::logging::Level;
use crate::spec::methods;
use crate::spec::transport::Transport;
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
    /// Ask for log messages from this level on; the modern era asks with each request.
    pub log_level: Option<Level>,
    /// Fields `Mcp-Param-*` that mirror arguments, not yet encoded; modern HTTP only.
    pub mirrored: Vec<(String, String)>,
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
            log_level: None,
            mirrored: Vec::new(),
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
    /// The server wants authorization, or more of it.
    pub challenge: Option<Challenge>,
}

/// How a call ended, as the client knows it.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// A result; a tool result may still say `isError`.
    Complete(Box<RawValue>),
    /// A result that asks for input: call again with the answers and the state.
    InputRequired(Box<RawValue>),
    /// The handle of a task, which goes on; only where the call declared the extension.
    Task(Box<RawValue>),
    /// The task that the call was answered with has ended cancelled.
    TaskCancelled,
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
    desk: Arc<Desk>,
    next_id: AtomicI64,
    clock: TimerClock,
    /// The era, once it is known; for as long as the connection stands.
    settled: Mutex<Option<Settled>>,
    auth: Option<Arc<Auth>>,
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
        let desk = Desk::new();
        Ok(Client::new(Link::Stdio(stdio::Link::spawn(command, desk.clone())?), desk))
    }

    /// Starts a command that somebody has made ready (its environment, its standard error), and talks
    /// to it over its standard input and output.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(command: Command) -> Result<Client, PeerError> {
        let desk = Desk::new();
        Ok(Client::new(Link::Stdio(stdio::Link::spawn_command(command, desk.clone())?), desk))
    }

    /// Talks over a pair of pipes that somebody else has made.
    pub fn over_pipes<R, W>(reader: R, writer: W) -> Client
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let desk = Desk::new();
        Client::new(Link::Stdio(stdio::Link::start(reader, writer, None, desk.clone())), desk)
    }

    /// Talks to a URL. Nothing is connected yet: each call uses an idle connection or opens one.
    ///
    /// # Errors
    /// When the URL is not one of HTTP or HTTPS with a host.
    pub fn http(url: &str) -> Result<Client, PeerError> {
        let desk = Desk::new();
        Ok(Client::new(Link::Http(http::Link::new(url, desk.clone())?), desk))
    }

    fn new(link: Link, desk: Arc<Desk>) -> Client {
        let (next_id, settled) = (AtomicI64::new(1), Mutex::default());
        Client { link, desk, next_id, clock: TimerClock::start(), settled, auth: None }
    }

    /// What is said to requests of the server, which older eras have.
    #[must_use]
    pub fn with_answers(self, answers: Answers) -> Client {
        self.desk.set_answers(Arc::new(answers));
        self
    }

    /// Authorization on HTTP, which goes to the server that it is for and to no other. On pipes there is
    /// none (spec 2026-07-28 `basic/authorization`).
    #[must_use]
    pub fn with_auth(mut self, auth: Arc<Auth>) -> Client {
        if let Link::Http(link) = &self.link
            && link.set_auth(&auth)
        {
            self.auth = Some(auth);
        }
        self
    }

    /// How requests are written now: modern, unless something else was found out.
    #[must_use]
    pub fn speech(&self) -> Speech {
        self.desk.speech()
    }

    /// What is known of the server, once its era is settled.
    #[must_use]
    pub fn settled(&self) -> Option<Settled> {
        self.settled.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn keep_settled(&self, settled: Option<Settled>) {
        *self.settled.lock().unwrap_or_else(PoisonError::into_inner) = settled;
    }

    /// Drops what is known of the era, and an older session with it: it is to be settled afresh.
    pub fn forget_era(&self) {
        self.keep_settled(None);
        self.desk.set_speech(Speech::modern());
        if let Link::Http(link) = &self.link {
            link.forget_session();
        }
    }

    /// Sends a notification without parameters.
    ///
    /// # Errors
    /// When the server is gone.
    pub async fn notify(&self, method: &str) -> Result<(), PeerError> {
        let body = message::notification(method);
        match &self.link {
            Link::Stdio(link) => link.notify(body).await,
            Link::Http(link) => {
                link.notify(body).await;
                Ok(())
            }
        }
    }

    /// Sends the cancel of a call that was answered already, as a client does whose cancel crosses the
    /// answer. Over modern HTTP nothing can be sent then: the stream of the call is gone.
    ///
    /// # Errors
    /// When the server is gone.
    pub async fn cancel_late(&self, id: &Id) -> Result<(), PeerError> {
        match &self.link {
            Link::Stdio(link) => link.notify(message::cancelled(id, "too late")).await,
            Link::Http(link) => {
                if !self.speech().era.is_modern() {
                    link.notify(message::cancelled(id, "too late")).await;
                }
                Ok(())
            }
        }
    }

    /// Older eras on HTTP: opens the stream on which the server speaks by itself.
    fn hear_session(&self) {
        if let Link::Http(link) = &self.link {
            link.hear_session();
        }
    }

    /// How the two peers are joined.
    #[must_use]
    pub fn transport(&self) -> Transport {
        match self.link {
            Link::Stdio(_) => Transport::Stdio,
            Link::Http(_) => Transport::Http,
        }
    }

    /// Takes the notifications that belonged to no call, oldest first; at most 1000 are kept.
    #[must_use]
    pub fn take_notices(&self) -> Vec<Notice> {
        self.desk.take_notices()
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
        mut on_progress: impl FnMut(&Progress) + Send,
    ) -> Result<Report, PeerError> {
        let hear = move |heard: Heard<'_>| {
            if let Heard::Progress(progress) = heard {
                on_progress(progress);
            }
        };
        self.converse(method, params, options, hear).await
    }

    /// The same, and `on_heard` is told every notification that belongs to the call.
    ///
    /// # Errors
    /// When the limits make no sense or the request cannot be sent at all.
    pub async fn converse(
        &self,
        method: &str,
        params: Params,
        mut options: &CallOptions,
        mut on_heard: impl FnMut(Heard<'_>) + Send,
    ) -> Result<Report, PeerError> {
        let wrongs = &self.desk.wrongs;
        let patient = CallOptions { cancel_after: None, drop_after: None, ..options.clone() };
        let mut params = wrongs.with_other_key(method, params);
        for attempt in 1.. {
            let speech = self.desk.speech();
            let write = |id| {
                let mut outgoing = Outgoing::new(id, method, params.clone(), options, speech.clone());
                wrongs.spoil(&mut outgoing);
                outgoing
            };
            let report = self.send(write, options, &mut on_heard).await?;
            match wrongs.again(method, &params, &report, attempt) {
                None => return Ok(report),
                Some(again) => params = again,
            }
            options = &patient;
            tokio::time::sleep(faults::PAUSE.into()).await;
        }
        unreachable!("there is no last number")
    }

    /// Messages that belonged to no open call: late answers and late progress, counted and
    /// dropped. Always 0 on modern HTTP,
    /// where a call's stream ends with it.
    #[must_use]
    pub fn strays(&self) -> u64 {
        self.desk.strays()
    }

    /// The pipes are broken, or the process is gone; new calls cannot be sent. Never on HTTP.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.desk.is_closed()
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
                link.close().await;
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

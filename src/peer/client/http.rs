//! The client on Streamable HTTP: one POST for each message, connections kept for the next.
//!
//! In the modern era giving a call up closes its connection, which is the cancel signal, and no
//! message is posted. Older eras have a session: its id goes with every message, a cancel is a
//! message, and `session` reads the stream on which the server speaks by itself.

mod connection;
mod reader;
mod server;
mod session;
mod tls;

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::{Method, Request, Uri};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::reader::{Reader, Rest};
use self::server::Server;
use self::tls::Tls;
use super::auth::Auth;
use super::desk::{Desk, Place};
use super::follow::{Exchange, IN_CAPACITY, Incoming};
use super::message::{self, Outgoing, Speech};
use super::{Outcome, PeerError, Reason, follow};
use crate::machine::cancel::{Side, Signal as CancelSignal, Target, signal};
use crate::peer::faults::Fault;
use crate::spec::methods;
use crate::spec::transport::Transport;
use crate::time::Ms;
use crate::wire::jsonrpc::Id;

pub(super) use self::server::RawAnswer;

/// How long a message to which no result is owed may take: a cancel, the end of a session.
const NOTICE_WAIT: Ms = Ms(1000);

/// The way to one URL.
#[derive(Debug)]
pub(super) struct Link {
    server: Arc<Server>,
    desk: Arc<Desk>,
    tracker: TaskTracker,
    /// Ends the stream of a session.
    cancel: CancellationToken,
}

/// Holds the connection of one call. Dropping it closes the connection.
#[derive(Debug)]
pub(super) struct Signal {
    close: CancellationToken,
    reset: CancellationToken,
    is_finished: bool,
    id: Id,
    target: Target,
    speech: Speech,
    /// On purpose, whatever the era.
    posts_cancel: bool,
    server: Arc<Server>,
    tracker: TaskTracker,
    /// Older eras: the answer may come on another stream.
    _place: Option<Place>,
}

impl Signal {
    /// The call is over: the connection may be kept.
    pub(super) fn finish(mut self) {
        self.is_finished = true;
    }

    /// Tells the server in the way of the era, then closes.
    pub(super) async fn cancel(self, reason: Reason) {
        let kind = signal(Side::Client, Transport::Http, self.speech.era, self.target);
        let kind = if self.posts_cancel { Some(CancelSignal::PostedNotification) } else { kind };
        if kind == Some(CancelSignal::PostedNotification) {
            let body = message::cancelled(&self.id, reason.as_str());
            let posting = self.server.clone().post(body, self.speech.clone(), self.tracker.clone());
            // A server that does not take it in time will not be told.
            let _ = timeout(NOTICE_WAIT.into(), posting).await;
        }
    }

    /// Closes with a reset instead of an orderly end.
    pub(super) fn reset(self) {
        self.reset.cancel();
    }
}

impl Drop for Signal {
    fn drop(&mut self) {
        if !self.is_finished {
            self.close.cancel();
        }
    }
}

impl Link {
    pub(super) fn new(url: &str, desk: Arc<Desk>) -> Result<Link, PeerError> {
        let bad = |why| PeerError::BadUrl { url: url.to_owned(), why };
        let uri: Uri = url.parse().map_err(|_| bad("it is no URL"))?;
        let is_tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(bad("only http:// and https:// are spoken here")),
        };
        if uri.authority().is_none() {
            return Err(bad("it names no host"));
        }
        let tls = if is_tls {
            Some(Tls::new(&uri).map_err(|_| bad("TLS cannot be had for its host"))?)
        } else {
            None
        };
        let server = Server::new(url, uri, tls).ok_or_else(|| bad("it names no host"))?;
        let (tracker, cancel) = (TaskTracker::new(), CancellationToken::new());
        Ok(Link { server: Arc::new(server), desk, tracker, cancel })
    }

    /// Takes the authorization for this server; false: it is for another one.
    pub(super) fn set_auth(&self, auth: &Arc<Auth>) -> bool {
        self.server.set_auth(auth)
    }

    pub(super) fn open(&self, outgoing: &Outgoing) -> Result<Exchange, PeerError> {
        let (sender, incoming) = mpsc::channel(IN_CAPACITY);
        let (close, reset) = (CancellationToken::new(), CancellationToken::new());
        let place = if outgoing.speech.era.is_modern() {
            None
        } else {
            Some(self.desk.register(outgoing, sender.clone()).ok_or(PeerError::Gone)?)
        };
        let call = Call {
            request: self.desk.wrongs.spoil_head(self.server.request(outgoing)),
            reader: Reader::new(&self.server, &self.desk, &self.tracker, outgoing, sender),
            server: self.server.clone(),
        };
        let signal = Signal {
            close: close.clone(),
            reset: reset.clone(),
            is_finished: false,
            id: outgoing.id.clone(),
            target: target(&outgoing.method),
            speech: outgoing.speech.clone(),
            posts_cancel: self.desk.wrongs.is_on(Fault::PostsCancel),
            server: self.server.clone(),
            tracker: self.tracker.clone(),
            _place: place,
        };
        self.tracker.spawn(call.run(self.tracker.clone(), close, reset));
        if self.desk.wrongs.is_on(Fault::OpensGet) {
            self.tracker.spawn(ask_for_stream(self.server.clone(), self.tracker.clone()));
        }
        Ok(Exchange { incoming, signal: follow::Signal::Http(signal) })
    }

    /// Posts a notification; its HTTP status, if an answer came in time.
    pub(super) async fn notify(&self, body: Bytes) -> Option<u16> {
        let posting = self.server.clone().post(body, self.desk.speech(), self.tracker.clone());
        timeout(NOTICE_WAIT.into(), posting).await.ok().flatten()
    }

    /// Opens the stream of a session, on which the server speaks by itself, if it offers one.
    pub(super) fn hear_session(&self) {
        if self.server.has_endpoint() {
            // HTTP+SSE: it is open already, and carries everything.
            return;
        }
        let ear = session::Ear::new(&self.server, &self.desk, &self.tracker, &self.cancel);
        self.tracker.spawn(ear.run());
    }

    /// Opens the stream of HTTP+SSE and waits for the endpoint that it names first.
    ///
    /// # Errors
    /// In words, when it is not offered.
    pub(super) async fn open_event_stream(&self, limit: Ms) -> Result<(), String> {
        let ear = session::Ear::new(&self.server, &self.desk, &self.tracker, &self.cancel);
        ear.open_endpoint(limit).await
    }

    /// Forgets the session, so that the next request opens anew.
    pub(super) fn forget_session(&self) {
        self.server.forget_session();
    }

    /// Any request whatsoever, read as it comes; for looking at a server from outside.
    pub(super) async fn raw(
        &self,
        method: Method,
        fields: &[(String, String)],
        body: Bytes,
    ) -> Result<RawAnswer, PeerError> {
        self.server.raw(method, fields, body, &self.tracker).await
    }

    pub(super) async fn close(self) {
        if self.server.has_session() {
            let ending = self.server.end_session(self.desk.speech(), &self.tracker);
            // A session that cannot be ended ends by itself.
            let _ = timeout(NOTICE_WAIT.into(), ending).await;
        }
        self.cancel.cancel();
        self.server.drop_idle();
        self.tracker.close();
    }
}

/// The fault `opens_get`: asks for a stream that this era does not have.
async fn ask_for_stream(server: Arc<Server>, tracker: TaskTracker) {
    if let Ok(mut connection) = server.connection(&tracker).await {
        // Whatever the answer is, nothing is done with it.
        let _ = connection.send(server.get(&Speech::modern(), None)).await;
    }
}

/// What is given up when a request of this method is.
pub(super) fn target(method: &str) -> Target {
    match method {
        methods::INITIALIZE => Target::Initialize,
        methods::LISTEN => Target::Listen,
        _ => Target::Request,
    }
}

/// One request and its answer, on its own task.
struct Call {
    server: Arc<Server>,
    request: Request<Full<Bytes>>,
    reader: Reader,
}

impl Call {
    async fn run(self, tracker: TaskTracker, close: CancellationToken, reset: CancellationToken) {
        let Call { server, request, mut reader } = self;
        let mut connection = tokio::select! {
            biased;
            () = close.cancelled() => return,
            connection = server.connection(&tracker) => match connection {
                Ok(connection) => connection,
                Err(error) => {
                    // The caller waits for exactly this.
                    reader.tell(Incoming::Unsent(error)).await;
                    return;
                }
            },
        };
        let exchange = async {
            let answer = connection.send(request).await;
            reader.read(answer).await
        };
        let end = tokio::select! {
            biased;
            () = close.cancelled() => {
                if reset.is_cancelled() {
                    connection.reset();
                }
                return;
            }
            end = exchange => end,
        };
        match end {
            Rest::Keep => server.keep(connection),
            Rest::Drop => {}
            Rest::Resume => {
                drop(connection);
                tokio::select! {
                    biased;
                    () = close.cancelled() => {}
                    () = resume(&server, &mut reader, &tracker) => {}
                }
            }
        }
    }
}

/// Older eras: asks for the rest of a stream that broke after an event with an id, until the
/// answer has come or the server offers no more.
async fn resume(server: &Arc<Server>, reader: &mut Reader, tracker: &TaskTracker) {
    loop {
        tokio::time::sleep(reader.retry_after().into()).await;
        let request = server.get(&reader.speech(), reader.last_event_id());
        let mut connection = match server.connection(tracker).await {
            Ok(connection) => connection,
            Err(error) => {
                let why = format!("the stream broke off and cannot be resumed: {error}");
                reader.tell(Incoming::End(Outcome::Lost(why))).await;
                return;
            }
        };
        let answer = connection.send(request).await;
        match reader.read_resumed(answer).await {
            Rest::Resume => {}
            Rest::Keep | Rest::Drop => return,
        }
    }
}

#[cfg(test)]
mod tests;

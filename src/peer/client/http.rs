//! The client on Streamable HTTP: one POST for each request, connections kept for the next.
//!
//! Giving a call up closes its connection, which is the cancel signal of the modern era; no
//! message is posted.

mod connection;
mod reader;

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Request, Uri};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::connection::Connection;
use self::reader::Reader;
use super::follow::{Exchange, IN_CAPACITY, Incoming};
use super::message::{Outgoing, VERSION};
use super::{PeerError, follow};
use crate::spec::headers;
use crate::wire::jsonrpc::Id;

/// The way to one URL.
#[derive(Debug)]
pub(super) struct Link {
    server: Arc<Server>,
    tracker: TaskTracker,
}

#[derive(Debug)]
struct Server {
    url: String,
    uri: Uri,
    authority: HeaderValue,
    /// Connections without a call.
    idle: Mutex<Vec<Connection>>,
}

/// Holds the connection of one call. Dropping it closes the connection.
#[derive(Debug)]
pub(super) struct Signal {
    close: CancellationToken,
    reset: CancellationToken,
    is_finished: bool,
}

impl Signal {
    /// The call is over: the connection may be kept.
    pub(super) fn finish(mut self) {
        self.is_finished = true;
    }

    pub(super) fn close(self) {
        drop(self);
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
    pub(super) fn new(url: &str) -> Result<Link, PeerError> {
        let bad = |why| PeerError::BadUrl { url: url.to_owned(), why };
        let uri: Uri = url.parse().map_err(|_| bad("it is no URL"))?;
        if uri.scheme_str() != Some("http") {
            return Err(bad("only http:// is spoken here"));
        }
        let authority = uri.authority().ok_or_else(|| bad("it names no host"))?;
        let authority = HeaderValue::from_str(authority.as_str()).map_err(|_| bad("it names no host"))?;
        let server = Server { url: url.to_owned(), uri, authority, idle: Mutex::default() };
        Ok(Link { server: Arc::new(server), tracker: TaskTracker::new() })
    }

    pub(super) fn open(&self, outgoing: &Outgoing) -> Exchange {
        let (sender, incoming) = mpsc::channel(IN_CAPACITY);
        let (close, reset) = (CancellationToken::new(), CancellationToken::new());
        let exchange = Call {
            server: self.server.clone(),
            request: self.server.request(outgoing),
            id: outgoing.id.clone(),
            token: outgoing.token.clone(),
            told: sender,
        };
        let signal = Signal { close: close.clone(), reset: reset.clone(), is_finished: false };
        self.tracker.spawn(exchange.run(self.tracker.clone(), close, reset));
        Exchange { incoming, signal: follow::Signal::Http(signal) }
    }

    pub(super) fn close(self) {
        self.server.lock_idle().clear();
        self.tracker.close();
    }
}

impl Server {
    /// A poisoned lock is still good: no step can stop midway.
    fn lock_idle(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn request(&self, outgoing: &Outgoing) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(outgoing.body.clone()));
        *request.method_mut() = hyper::Method::POST;
        let target = self.uri.path_and_query().map_or("/", |target| target.as_str());
        *request.uri_mut() = target.parse().unwrap_or_default();
        let fields = request.headers_mut();
        fields.insert(HOST, self.authority.clone());
        fields.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        fields.insert(CONTENT_TYPE, HeaderValue::from_static(headers::JSON));
        let name = outgoing.target.as_deref().map(headers::encode);
        let mirrored = [
            (headers::PROTOCOL_VERSION, Some(VERSION.as_str())),
            (headers::METHOD, Some(outgoing.method.as_str())),
            (headers::NAME, name.as_deref()),
        ];
        for (field, value) in mirrored {
            let name = hyper::header::HeaderName::from_bytes(field.as_bytes());
            if let (Ok(name), Some(Ok(value))) = (name, value.map(HeaderValue::from_str)) {
                fields.insert(name, value);
            }
        }
        request
    }

    /// A connection that still stands, or a new one.
    async fn connection(&self, tracker: &TaskTracker) -> Result<Connection, PeerError> {
        loop {
            let idle = self.lock_idle().pop();
            let Some(mut connection) = idle else {
                return Connection::open(&self.uri, &self.url, tracker).await;
            };
            if connection.is_ready().await {
                return Ok(connection);
            }
        }
    }
}

/// One request and its answer, on its own task.
struct Call {
    server: Arc<Server>,
    request: Request<Full<Bytes>>,
    id: Id,
    token: Option<Id>,
    told: mpsc::Sender<Incoming>,
}

impl Call {
    async fn run(self, tracker: TaskTracker, close: CancellationToken, reset: CancellationToken) {
        let Call { server, request, id, token, told } = self;
        let mut connection = tokio::select! {
            biased;
            () = close.cancelled() => return,
            connection = server.connection(&tracker) => match connection {
                Ok(connection) => connection,
                Err(error) => {
                    // The caller waits for exactly this.
                    let _ = told.send(Incoming::Unsent(error)).await;
                    return;
                }
            },
        };
        let reader = Reader { id, token, told };
        let exchange = async {
            let answer = connection.send(request).await;
            reader.read(answer).await
        };
        tokio::select! {
            biased;
            () = close.cancelled() => {
                if reset.is_cancelled() {
                    connection.reset();
                }
            }
            may_be_kept = exchange => {
                if may_be_kept {
                    server.lock_idle().push(connection);
                }
            }
        }
    }
}

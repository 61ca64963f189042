//! The client on Streamable HTTP: one POST for each request, connections kept for the next.
//!
//! Giving a call up closes its connection, which is the cancel signal of the modern era; no
//! message is posted.

mod connection;

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming as Body;
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Request, Response, Uri};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::connection::Connection;
use super::follow::{Exchange, IN_CAPACITY, Incoming};
use super::message::{self, Outgoing, Read, VERSION};
use super::{Outcome, PeerError, follow};
use crate::spec::headers;
use crate::time::Ms;
use crate::wire::jsonrpc::Id;
use crate::wire::sse::{EVENT_LIMIT_BYTES, SseDecoder};

/// After the answer, how long the server may take to end the stream before the connection is
/// given up instead of being kept.
const TAIL_WAIT: Ms = Ms(500);
/// Largest answer that is read as one body.
const BODY_LIMIT_BYTES: usize = 128 << 20;
/// Bytes of a body without JSON-RPC that are kept for people.
const BODY_HEAD_BYTES: usize = 200;

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

/// Reads one answer and tells its caller.
struct Reader {
    id: Id,
    token: Option<Id>,
    told: mpsc::Sender<Incoming>,
}

impl Reader {
    /// True: the answer was read to its end and the connection can be used again.
    async fn read(&self, answer: hyper::Result<Response<Body>>) -> bool {
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                self.tell(Incoming::End(Outcome::Lost(format!("no answer: {error}")))).await;
                return false;
            }
        };
        let status = answer.status();
        self.tell(Incoming::Status(status.as_u16())).await;
        let content_type = answer.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let is_stream =
            content_type.is_some_and(|value| headers::is_media_type(value, headers::EVENT_STREAM));
        if status.is_success() && is_stream {
            self.stream(answer.into_body()).await
        } else {
            self.whole(answer).await
        }
    }

    /// One body, which is one response.
    async fn whole(&self, answer: Response<Body>) -> bool {
        let is_success = answer.status().is_success();
        let body = match Limited::new(answer.into_body(), BODY_LIMIT_BYTES).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) => {
                self.tell(Incoming::End(Outcome::Lost(format!("the answer broke off: {error}")))).await;
                return false;
            }
        };
        let outcome = match message::read(&body) {
            Read::Answer { id: Some(id), outcome } if id == self.id => outcome,
            // An error without an id can only mean this request.
            Read::Answer { id: None, outcome } => outcome,
            Read::Answer { id: Some(id), .. } => {
                Outcome::Invalid(format!("the answer is for id {id}, not for {}", self.id))
            }
            _ if !is_success => {
                let head = body.get(..BODY_HEAD_BYTES).unwrap_or(&body);
                Outcome::Refused { body: String::from_utf8_lossy(head).into_owned() }
            }
            Read::Bad(why) => Outcome::Invalid(why),
            Read::Progress { .. } | Read::Other => {
                Outcome::Invalid("a notification instead of an answer".to_owned())
            }
        };
        self.tell(Incoming::End(outcome)).await;
        true
    }

    /// Events up to the response; after it, the rest of the stream, but not for long.
    async fn stream(&self, mut body: Body) -> bool {
        let mut decoder = SseDecoder::new(EVENT_LIMIT_BYTES);
        let why = loop {
            let data = match body.frame().await {
                None => break "the stream ended before the answer".to_owned(),
                Some(Err(error)) => break format!("the stream broke off: {error}"),
                Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
            };
            for event in decoder.push(&data) {
                let Some(data) = event.data.filter(|data| !data.is_empty()) else { continue };
                if let Some(outcome) = self.event(&data).await {
                    self.tell(Incoming::End(outcome)).await;
                    let rest = tokio::time::timeout(TAIL_WAIT.into(), body.collect()).await;
                    return matches!(rest, Ok(Ok(_)));
                }
            }
        };
        self.tell(Incoming::End(Outcome::Lost(why))).await;
        false
    }

    /// One event; the outcome when it is the response.
    async fn event(&self, data: &[u8]) -> Option<Outcome> {
        let fault = match message::read(data) {
            Read::Answer { id: Some(id), outcome } if id == self.id => return Some(outcome),
            Read::Answer { id: None, outcome } => return Some(outcome),
            Read::Answer { id: Some(id), .. } => {
                format!("an answer for id {id} on the stream of {}", self.id)
            }
            Read::Progress { token, progress } if Some(&token) == self.token.as_ref() => {
                self.tell(Incoming::Progress(progress)).await;
                return None;
            }
            Read::Progress { token, .. } => {
                format!("progress for the token {token}, which is not of this call")
            }
            Read::Other => return None,
            Read::Bad(why) => why,
        };
        self.tell(Incoming::Fault(fault)).await;
        None
    }

    /// A caller that has given up does not listen any more; the connection is then closed anyway.
    async fn tell(&self, incoming: Incoming) {
        let _ = self.told.send(incoming).await;
    }
}

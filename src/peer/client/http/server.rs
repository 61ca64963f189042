//! One URL: its connections, its session, and requests with the fields that each era wants.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Uri};
use tokio_util::task::TaskTracker;

use super::connection::Connection;
use super::tls::Tls;
use crate::peer::PeerError;
use crate::peer::client::auth::Auth;
use crate::peer::client::message::{Outgoing, Speech};
use crate::spec::era::Era;
use crate::spec::headers;
use crate::wire::sse::SseDecoder;

/// Bytes of an answer that are kept where nothing is known of it.
const RAW_LIMIT_BYTES: usize = 1 << 20;

/// One URL.
#[derive(Debug)]
pub(super) struct Server {
    url: String,
    uri: Uri,
    authority: HeaderValue,
    /// Where the URL says https.
    tls: Option<Tls>,
    /// Connections without a call.
    idle: Mutex<Vec<Connection>>,
    session: Mutex<Session>,
    /// Whose token goes with every request.
    auth: OnceLock<Arc<Auth>>,
}

/// What an older era keeps between requests.
#[derive(Debug, Default)]
struct Session {
    id: Option<HeaderValue>,
    /// HTTP+SSE: where messages are posted, as the server has said.
    endpoint: Option<Uri>,
}

/// An answer to a request of any kind.
#[derive(Debug, Clone)]
pub(in crate::peer::client) struct RawAnswer {
    pub(in crate::peer::client) status: u16,
    pub(in crate::peer::client) fields: HeaderMap,
    /// At most 1 MiB; of an event stream the first message.
    pub(in crate::peer::client) body: Bytes,
}

/// A poisoned lock is still good: no step can stop midway.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn insert(fields: &mut HeaderMap, name: &str, value: &str) {
    let name = HeaderName::from_bytes(name.as_bytes());
    if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(value)) {
        fields.insert(name, value);
    }
}

impl Server {
    pub(super) fn new(url: &str, uri: Uri, tls: Option<Tls>) -> Option<Server> {
        let authority = HeaderValue::from_str(uri.authority()?.as_str()).ok()?;
        Some(Server {
            url: url.to_owned(),
            uri,
            authority,
            tls,
            idle: Mutex::default(),
            session: Mutex::default(),
            auth: OnceLock::new(),
        })
    }

    /// Takes the authorization for this server; false: it is for another one, or there is one already.
    pub(super) fn set_auth(&self, auth: &Arc<Auth>) -> bool {
        auth.is_for(&self.url) && self.auth.set(auth.clone()).is_ok()
    }

    /// A message with what its era wants on it.
    pub(super) fn request(&self, outgoing: &Outgoing) -> Request<Full<Bytes>> {
        let mut request = self.message(outgoing.body.clone(), &outgoing.speech);
        if outgoing.speech.era.is_modern() {
            let fields = request.headers_mut();
            insert(fields, headers::METHOD, &outgoing.method);
            if let Some(target) = &outgoing.target {
                insert(fields, headers::NAME, &headers::encode(target));
            }
            for (name, value) in &outgoing.mirrored {
                insert(fields, name, &headers::encode(value));
            }
        }
        request
    }

    /// The POST of one message.
    fn message(&self, body: Bytes, speech: &Speech) -> Request<Full<Bytes>> {
        let mut request = self.bare(Method::POST, body);
        if let Some(endpoint) = &lock(&self.session).endpoint {
            *request.uri_mut() = path_of(endpoint);
        }
        let fields = request.headers_mut();
        fields.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        fields.insert(CONTENT_TYPE, HeaderValue::from_static(headers::JSON));
        self.stamp(fields, speech);
        request
    }

    /// The GET of a stream, from after the event with this id.
    pub(super) fn get(&self, speech: &Speech, after: Option<&str>) -> Request<Full<Bytes>> {
        let mut request = self.bare(Method::GET, Bytes::new());
        let fields = request.headers_mut();
        fields.insert(ACCEPT, HeaderValue::from_static(headers::EVENT_STREAM));
        self.stamp(fields, speech);
        if let Some(after) = after {
            insert(fields, headers::LAST_EVENT_ID, after);
        }
        request
    }

    /// Version and session, where the era has them.
    fn stamp(&self, fields: &mut HeaderMap, speech: &Speech) {
        if !speech.version.is_empty() && speech.era >= Era::V2025_06_18 {
            insert(fields, headers::PROTOCOL_VERSION, &speech.version);
        }
        let session = lock(&self.session).id.clone();
        if let Some(id) = session.filter(|_| !speech.era.is_modern())
            && let Ok(name) = HeaderName::from_bytes(headers::SESSION_ID.as_bytes())
        {
            fields.insert(name, id);
        }
    }

    fn bare(&self, method: Method, body: Bytes) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = path_of(&self.uri);
        let fields = request.headers_mut();
        fields.insert(HOST, self.authority.clone());
        if let Some(field) = self.auth.get().and_then(|auth| auth.field()) {
            fields.insert(AUTHORIZATION, field);
        }
        request
    }

    /// Posts a message that gets no result; its status, where an answer came.
    pub(super) async fn post(
        self: Arc<Server>,
        body: Bytes,
        speech: Speech,
        tracker: TaskTracker,
    ) -> Option<u16> {
        let request = self.message(body, &speech);
        let mut connection = self.connection(&tracker).await.ok()?;
        let answer = connection.send(request).await.ok()?;
        let status = answer.status().as_u16();
        if Limited::new(answer.into_body(), RAW_LIMIT_BYTES).collect().await.is_ok() {
            self.keep(connection);
        }
        Some(status)
    }

    pub(super) async fn raw(
        &self,
        method: Method,
        fields: &[(String, String)],
        body: Bytes,
        tracker: &TaskTracker,
    ) -> Result<RawAnswer, PeerError> {
        let failed = |error: hyper::Error| PeerError::Connect {
            url: self.url.clone(),
            source: std::io::Error::other(error),
        };
        let mut request = self.bare(method, body);
        for (name, value) in fields {
            let name = HeaderName::from_bytes(name.as_bytes());
            if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(value)) {
                request.headers_mut().append(name, value);
            }
        }
        let mut connection = Connection::open(&self.uri, &self.url, self.tls.as_ref(), tracker).await?;
        let answer = connection.send(request).await.map_err(failed)?;
        let (head, mut stream) = answer.into_parts();
        let is_stream = is_stream(&head.headers);
        let mut body = Vec::new();
        let mut decoder = SseDecoder::new(RAW_LIMIT_BYTES);
        while let Some(Ok(frame)) = stream.frame().await {
            let data = frame.into_data().unwrap_or_default();
            if is_stream {
                // The first message tells what is to be known; a stream may never end.
                let mut messages = decoder.push(&data).into_iter().filter_map(|event| event.data);
                if let Some(message) = messages.find(|message| !message.is_empty()) {
                    body.extend_from_slice(&message);
                    break;
                }
            } else {
                body.extend_from_slice(&data);
            }
            if body.len() >= RAW_LIMIT_BYTES {
                break;
            }
        }
        Ok(RawAnswer { status: head.status.as_u16(), fields: head.headers, body: body.into() })
    }

    /// A connection that still stands, or a new one.
    pub(super) async fn connection(&self, tracker: &TaskTracker) -> Result<Connection, PeerError> {
        loop {
            let idle = lock(&self.idle).pop();
            let Some(mut connection) = idle else {
                return Connection::open(&self.uri, &self.url, self.tls.as_ref(), tracker).await;
            };
            if connection.is_ready().await {
                return Ok(connection);
            }
        }
    }

    /// Keeps a connection for the next request.
    pub(super) fn keep(&self, connection: Connection) {
        lock(&self.idle).push(connection);
    }

    pub(super) fn drop_idle(&self) {
        lock(&self.idle).clear();
    }

    pub(super) fn has_session(&self) -> bool {
        lock(&self.session).id.is_some()
    }

    /// The session that an opening was answered with.
    pub(super) fn start_session(&self, fields: &HeaderMap) {
        lock(&self.session).id = fields.get(headers::SESSION_ID).cloned();
    }

    pub(super) fn forget_session(&self) {
        *lock(&self.session) = Session::default();
    }

    /// HTTP+SSE: messages go where the server says, which must be on the same host.
    ///
    /// # Errors
    /// In words, when it names another place.
    pub(super) fn set_endpoint(&self, named: &str) -> Result<(), String> {
        let bad = || format!("the endpoint {named:?} is no place on this server");
        let endpoint: Uri = named.parse().map_err(|_| bad())?;
        if endpoint.authority().is_some_and(|authority| Some(authority) != self.uri.authority()) {
            return Err(bad());
        }
        if endpoint.path_and_query().is_none_or(|path| !path.as_str().starts_with('/')) {
            return Err(bad());
        }
        lock(&self.session).endpoint = Some(endpoint);
        Ok(())
    }

    /// HTTP+SSE: answers come on the stream of the session and nowhere else.
    pub(super) fn has_endpoint(&self) -> bool {
        lock(&self.session).endpoint.is_some()
    }

    /// Ends the session.
    pub(super) async fn end_session(&self, speech: Speech, tracker: &TaskTracker) {
        let mut request = self.bare(Method::DELETE, Bytes::new());
        self.stamp(request.headers_mut(), &speech);
        if let Ok(mut connection) = self.connection(tracker).await {
            // 405 says that the client may not end it, which is the server's right.
            let _ = connection.send(request).await;
        }
        self.forget_session();
    }
}

fn path_of(uri: &Uri) -> Uri {
    uri.path_and_query().map_or("/", |target| target.as_str()).parse().unwrap_or_default()
}

/// An answer with these fields is an event stream.
pub(super) fn is_stream(fields: &HeaderMap) -> bool {
    let content_type = fields.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    content_type.is_some_and(|value| headers::is_media_type(value, headers::EVENT_STREAM))
}

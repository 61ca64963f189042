//! Connections where one side speaks HTTP/2: joined stream by stream, frame by frame.
//!
//! Bodies pass byte for byte and as they come, and so do status, fields, trailers and the end of
//! each stream. Names are lower case, as HTTP/2 has them. Each stream of the client has a stream
//! of one HTTP/2 connection to the server, or an HTTP/1.1 connection that nothing else uses
//! meanwhile. A client that leaves a stream resets it at the server, and the reverse.
//!
//! What the relay can do beyond that is not done here: URLs inside bodies are not changed, and it
//! is not known when a body was handed on, because HTTP/2 keeps its own queues. Orders are for
//! requests: they are held, delayed, edited, dropped and answered here, and calls are given up and
//! cut, while what the server answers passes as it is.

mod body;
mod links;
mod steered;

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::header::{COOKIE, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN};
use hyper::http::uri::{Authority, Scheme};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, Uri, Version};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use self::body::ResponseBody;
use self::links::{Links, Spawner};
use self::steered::{Met, Steered};
use super::Shared;
use super::answer::OwnAnswer;
use super::dial::Speech;
use super::policy::{Policy, Upward, is_event_stream};
use crate::event::{Close, Dir, Headers, RequestHead, What};
use crate::wire::http1::{Head, Start};

/// Body bytes that one stream may have on the way to us. It bounds what a slow client makes the
/// tap take from the server.
const STREAM_WINDOW_BYTES: u32 = 256 << 10;

/// The same for one connection; more, so that one slow stream does not stop the others.
const CONNECTION_WINDOW_BYTES: u32 = 4 << 20;

/// Body bytes of one stream that wait for the socket.
const SEND_BUFFER_BYTES: usize = 64 << 10;

/// Why a stream ends without an answer, or within it.
#[derive(Debug, thiserror::Error)]
enum Ended {
    /// The server did it.
    #[error("the server ended the exchange: {0}")]
    Server(#[from] hyper::Error),
    /// A person did it.
    #[error("the exchange was cut by order")]
    Cut,
}

/// Serves one connection of a client to its end. `client` gives its first bytes again.
pub(super) async fn run(
    shared: Arc<Shared>,
    client: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    speech: Speech,
    conn: u64,
) {
    let links = Arc::new(Links::new(shared.clone(), speech));
    let place = Place { shared: shared.clone(), conn, speech };
    let service = service_fn(move |request| exchange(place.clone(), links.clone(), request));
    let io = TokioIo::new(client);
    let served = match speech {
        Speech::Http1 => {
            hyper::server::conn::http1::Builder::new()
                .auto_date_header(false)
                .serve_connection(io, service)
                .await
        }
        Speech::Http2 => {
            hyper::server::conn::http2::Builder::new(Spawner(shared.tracker.clone()))
                .auto_date_header(false)
                .initial_stream_window_size(STREAM_WINDOW_BYTES)
                .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
                .max_send_buf_size(SEND_BUFFER_BYTES)
                .serve_connection(io, service)
                .await
        }
    };
    let how = if served.is_ok() { Close::Eof } else { Close::Reset };
    shared.tape.push_http(Dir::C2s, None, Some(conn), What::ClientClosed { how: Some(how) });
}

/// Where an event belongs, before it has an exchange.
#[derive(Debug, Clone)]
struct Place {
    shared: Arc<Shared>,
    conn: u64,
    /// What the client speaks.
    speech: Speech,
}

/// Tells the tape about one exchange, and of its end should it be dropped before.
#[derive(Debug)]
struct Teller {
    place: Place,
    stream: u64,
    is_over: bool,
}

impl Teller {
    fn push(&self, dir: Dir, what: What) {
        self.place.shared.tape.push_http(dir, Some(self.stream), Some(self.place.conn), what);
    }

    /// The answer ended in this manner.
    fn server_ended(&mut self, how: Close) {
        if !std::mem::replace(&mut self.is_over, true) {
            self.push(Dir::S2c, What::ServerClosed { how: Some(how), exit_code: None, signal: None });
        }
    }
}

impl Drop for Teller {
    /// The library drops an exchange that is not over only when its client has left it: in HTTP/2
    /// by a reset of the stream or the end of all, in HTTP/1.1 by closing.
    fn drop(&mut self) {
        if !self.is_over {
            let how = if self.place.speech == Speech::Http2 { Close::Reset } else { Close::Eof };
            self.push(Dir::C2s, What::ClientClosed { how: Some(how) });
        }
    }
}

async fn exchange(
    place: Place,
    links: Arc<Links>,
    request: Request<Incoming>,
) -> Result<Response<Either<ResponseBody, Full<Bytes>>>, Ended> {
    let shared = place.shared.clone();
    let stream = shared.next_stream();
    let mut teller = Teller { place, stream, is_over: false };
    let head = head_of(&request);
    if let Start::Request { method, target } = &head.start {
        let (method, path) = (method.clone(), target.clone());
        let headers = Headers(head.fields.clone());
        teller.push(Dir::C2s, What::Request(RequestHead { method, path, headers, body: None }));
    }
    if let Upward::Refuse(answer) = shared.policy.request(&head) {
        return Ok(own_answer(&mut teller, &answer));
    }
    let link = match links.get().await {
        Ok(link) => link,
        Err(error) => {
            let answer = OwnAnswer::unreachable(shared.policy.server_origin(), &error);
            return Ok(own_answer(&mut teller, &answer));
        }
    };
    let steered = Steered::begin(&teller.place, stream, &head);
    let request = upward(&shared.policy, request, &head, link.speech());
    let request = match steered.request(request).await {
        Met::Passes(request) => *request,
        Met::Answered(answer) => return Ok(own_answer(&mut teller, &answer)),
        Met::Cut(order) => return steered.cut(&mut teller, &order).await,
    };
    let sent = tokio::select! {
        biased;
        order = steered.line().until_cut() => return steered.cut(&mut teller, &order).await,
        sent = links.send(link, request) => sent,
    };
    match sent {
        Ok((response, link)) => {
            let status = response.status().as_u16();
            let headers = Headers(fields_of(response.headers()));
            let is_event_stream = is_event_stream(headers.get("content-type"));
            teller.push(Dir::S2c, What::ResponseHead { status, headers });
            Ok(response.map(|body| {
                Either::Left(ResponseBody::new(body, teller, is_event_stream, (links, link), steered))
            }))
        }
        Err(error) => {
            teller.server_ended(Close::Reset);
            Err(Ended::Server(error))
        }
    }
}

fn own_answer(teller: &mut Teller, answer: &OwnAnswer) -> Response<Either<ResponseBody, Full<Bytes>>> {
    answer.record(&teller.place.shared.tape, teller.stream, teller.place.conn);
    teller.is_over = true;
    let mut response = Response::new(Either::Right(Full::from(answer.text().to_owned())));
    *response.status_mut() = StatusCode::from_u16(answer.status()).unwrap_or(StatusCode::BAD_GATEWAY);
    for (name, value) in answer.fields() {
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), value.parse::<HeaderValue>()) {
            response.headers_mut().append(name, value);
        }
    }
    response
}

/// The request as the policy and the recording see it. In HTTP/2 the authority stands where
/// HTTP/1.1 has a `Host` field.
fn head_of(request: &Request<Incoming>) -> Head {
    let uri = request.uri();
    let target = uri.path_and_query().map_or_else(|| uri.to_string(), ToString::to_string);
    let mut fields = Vec::with_capacity(request.headers().len() + 1);
    if let Some(authority) = uri.authority().filter(|_| !request.headers().contains_key(HOST)) {
        fields.push(("host".to_owned(), authority.to_string()));
    }
    fields.extend(fields_of(request.headers()));
    let start = Start::Request { method: request.method().to_string(), target };
    Head { start, minor: 1, fields, raw: Bytes::new() }
}

fn fields_of(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect()
}

/// The request in the words of the version that the server speaks.
fn upward(policy: &Policy, mut request: Request<Incoming>, head: &Head, speech: Speech) -> Request<Incoming> {
    let is_renamed = policy.edits_requests();
    let authority = if is_renamed { policy.server_authority() } else { head.get("host").unwrap_or_default() };
    let authority = authority.to_owned();
    if is_renamed
        && request.headers().contains_key(ORIGIN)
        && let Ok(origin) = HeaderValue::from_str(policy.server_origin())
    {
        request.headers_mut().insert(ORIGIN, origin);
    }
    let path = request.uri().path_and_query().cloned();
    match speech {
        Speech::Http1 => {
            join_cookies(request.headers_mut());
            if let Ok(host) = HeaderValue::from_str(&authority) {
                request.headers_mut().insert(HOST, host);
            }
            let target = path.map_or_else(|| Uri::from_static("/"), Uri::from);
            *request.uri_mut() = target;
            *request.version_mut() = Version::HTTP_11;
        }
        Speech::Http2 => {
            request.headers_mut().remove(HOST);
            let mut parts = hyper::http::uri::Parts::default();
            let is_tls = policy.server_origin().starts_with("https:");
            parts.scheme = Some(if is_tls { Scheme::HTTPS } else { Scheme::HTTP });
            let named = authority.parse::<Authority>().or_else(|_| policy.server_authority().parse());
            parts.authority = named.ok();
            parts.path_and_query = path;
            // With all three parts there it is a URI; without one the library refuses the request.
            if let Ok(uri) = Uri::from_parts(parts) {
                *request.uri_mut() = uri;
            }
            *request.version_mut() = Version::HTTP_2;
        }
    }
    request
}

/// HTTP/2 may cut the one `Cookie` field of HTTP/1.1 into several. // RFC 9113 §8.2.3
fn join_cookies(headers: &mut HeaderMap) {
    let cookies: Vec<&[u8]> = headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if cookies.len() > 1
        && let Ok(joined) = HeaderValue::from_bytes(&cookies.join(&b"; "[..]))
    {
        headers.insert(COOKIE, joined);
    }
}

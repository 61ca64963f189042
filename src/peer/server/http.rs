//! The server on Streamable HTTP: one endpoint, POST only.
//!
//! An exchange owns its request: when the connection, the exchange or the body is dropped, by
//! FIN, reset or `RST_STREAM`, before or after the response head, the request is cancelled.

pub(super) mod answer;
mod faults;
mod head;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request as HttpRequest, Response as HttpResponse, header};
use hyper_util::rt::TokioIo;
use hyper_util::server::conn::auto;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::answer::{Answer, Hangup};
use super::caller::Caller;
use super::core::Core;
use super::legacy::{exchange, oldest};
use super::message::{self, Message, Refusal, Request};
use super::outlet::outlet;
use super::{AnswerMode, DRAIN, ENDPOINT, SharedCore, WIND_DOWN, tools};
use crate::spec::transport::Transport;
use crate::spec::{codes, methods};
use crate::time::Ms;

/// Largest request body. ours: 1 MiB.
const BODY_LIMIT_BYTES: usize = 1 << 20;
/// Longest silence inside a request body. ours: 5 s.
const BODY_STALL: Ms = Ms(5000);
/// Longest time for a whole request body, however it drips. ours.
const BODY_TIME: Ms = Ms(30_000);
/// Of a body that is too large, so much is read and thrown away before it is refused, so that its
/// sender comes to read the answer. ours.
const DISCARD_BYTES: usize = 16 << 20;
/// A connection without an exchange for so long is closed, whether it says nothing, half of a
/// head, or nothing any more. ours.
const IDLE: Ms = Ms(30_000);
/// Most header fields of a request, and most bytes of its head; more are answered with 431. ours.
const MOST_FIELDS: usize = 100;
const HEAD_LIMIT_BYTES: usize = 64 << 10;
/// Most streams that a client may have open on one h2 connection. ours.
const MOST_STREAMS: u32 = 256;
/// After `accept` failed (too many open files), how long to wait before the next try.
const ACCEPT_PAUSE: Ms = Ms(50);

/// Serves connections until `cancel` fires.
pub(super) async fn serve(core: SharedCore, listener: TcpListener, cancel: CancellationToken) {
    let connections = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = cancel.cancelled() => break,
        };
        match accepted {
            Ok((stream, peer)) => {
                // Without it small events wait for the acknowledgement of the last; that it fails
                // means that the connection is gone, which the next read will say.
                let _ = stream.set_nodelay(true);
                let tracker = connections.clone();
                connections.spawn(connection(core.clone(), (stream, Some(peer)), tracker, cancel.clone()));
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE.into()).await;
            }
        }
    }
    core.ending.cancel();
    connections.close();
    core.handlers.close();
    let ended = async {
        connections.wait().await;
        core.handlers.wait().await;
    };
    // Whatever is left then holds nothing that others wait for.
    let _ = tokio::time::timeout(WIND_DOWN.into(), ended).await;
}

async fn connection<S>(
    core: SharedCore,
    (stream, peer): (S, Option<SocketAddr>),
    connections: TaskTracker,
    cancel: CancellationToken,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let exchanges = Arc::new(Exchanges::default());
    let service = service_fn(|request: HttpRequest<Incoming>| {
        let (core, running) = (core.clone(), Exchanges::begin(&exchanges));
        async move {
            let answer = respond(core, request, peer).await;
            // It runs until its last byte is out.
            let held = move |frame| {
                let _ = &running;
                frame
            };
            Ok::<_, Infallible>(answer.map(|body| body.map_frame(held).boxed_unsync()))
        }
    });
    let mut builder = auto::Builder::new(Tracked(connections));
    builder.http1().max_headers(MOST_FIELDS).max_buf_size(HEAD_LIMIT_BYTES);
    builder.http2().max_concurrent_streams(MOST_STREAMS);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = exchanges.cease() => {
            tracing::debug!(?peer, "a connection without an exchange is closed");
            Ok(())
        }
        () = cancel.cancelled() => {
            // Subscriptions say their last word, and what is nearly done is done.
            connection.as_mut().graceful_shutdown();
            tokio::time::timeout(DRAIN.into(), connection).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = ended {
        tracing::debug!(error, "connection ended");
    }
}

/// The exchanges of one connection.
#[derive(Debug, Default)]
struct Exchanges {
    running: AtomicUsize,
    /// How many there were, which tells whether there was one between two looks.
    begun: AtomicUsize,
}

impl Exchanges {
    fn begin(exchanges: &Arc<Exchanges>) -> Running {
        exchanges.running.fetch_add(1, Ordering::Relaxed);
        exchanges.begun.fetch_add(1, Ordering::Relaxed);
        Running(exchanges.clone())
    }

    /// Waits until none has run for [`IDLE`], and at most twice as long.
    async fn cease(&self) {
        let mut seen = usize::MAX;
        loop {
            let begun = self.begun.load(Ordering::Relaxed);
            if self.running.load(Ordering::Relaxed) == 0 {
                if seen == begun {
                    return;
                }
                seen = begun;
            } else {
                seen = usize::MAX;
            }
            tokio::time::sleep(IDLE.into()).await;
        }
    }
}

/// One exchange that runs.
#[derive(Debug)]
struct Running(Arc<Exchanges>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Runs hyper's own tasks (h2 streams) under the server's tracker.
#[derive(Clone)]
struct Tracked(TaskTracker);

impl<F: Future<Output: Send> + Send + 'static> hyper::rt::Executor<F> for Tracked {
    fn execute(&self, task: F) {
        self.0.spawn(task);
    }
}

/// One exchange, from head to answer. The checks come in the order of `docs/serve.md`.
pub(super) async fn respond<B>(
    core: SharedCore,
    request: HttpRequest<B>,
    peer: Option<SocketAddr>,
) -> HttpResponse<Answer>
where
    B: Body<Data = Bytes> + Unpin,
{
    let is_oldest = core.options.era.has_legacy() && oldest::has(request.uri().path());
    if request.uri().path() != ENDPOINT && !is_oldest {
        return answer::plain(404, "the endpoint is /mcp");
    }
    if let Err((status, text)) = head::check_origin(request.headers(), &core.options.allowed_origins) {
        return answer::plain(status, text);
    }
    if is_oldest {
        return respond_oldest(&core, request, peer).await;
    }
    if request.method() != Method::POST && core.options.era.has_legacy() {
        return exchange::other(&core, request.method(), request.headers()).await;
    }
    if request.method() != Method::POST {
        let mut response = answer::plain(405, "POST only");
        response.headers_mut().insert(header::ALLOW, header::HeaderValue::from_static("POST"));
        return response;
    }
    if let Err((status, text)) = head::check_media_types(request.headers()) {
        return answer::plain(status, text);
    }
    let (head, body) = request.into_parts();
    let message = match read_body(body).await {
        Ok(body) if exchange::is_legacy(core.options.era, &head.headers, &body) => {
            return exchange::post(core, &head.headers, &body, peer).await;
        }
        Ok(body) => message::read(&body),
        Err(why) => Err(Refusal::new(None, codes::PARSE_ERROR, why)),
    };
    let request = match message {
        Ok(Message::Request(request)) => request,
        Ok(Message::Notification(_)) => return answer::accepted(),
        Ok(Message::Response(_)) => {
            let text = "a server of this revision asks nothing, so nothing can be answered";
            return answer::refusal(&Refusal::new(None, codes::INVALID_REQUEST, text));
        }
        Err(refusal) => return answer::refusal(&refusal),
    };
    let checked = Caller::modern(&request, Transport::Http).and_then(|caller| {
        head::check_mirrored(&head.headers, &request, &caller)?;
        if let Some(tool) = called_tool(&core, &request) {
            head::check_params(&head.headers, &request, &tool)?;
        }
        request.check_version(&caller)?;
        Ok(Caller { principal: head::principal(&head.headers), peer, ..caller })
    });
    let (sink, messages) = outlet(core.options.buffer);
    let started = checked.and_then(|caller| core.start(request, caller, sink));
    let (live, handler) = match started {
        Ok(started) => started,
        Err(refusal) => return answer::refusal(&refusal),
    };
    let mode = if live.is_subscription { AnswerMode::Auto } else { core.options.mode };
    let hangup = Hangup::new(&live, mode);
    core.handlers.spawn(handler);
    let answer = answer::answer(mode, core.options.keep_alive, messages, hangup).await;
    faults::spoil(&core.options.faults, answer)
}

/// The entry in `tools/list` of the tool that is called.
fn called_tool(core: &Core, request: &Request) -> Option<Value> {
    let name = request.string_at(&["name"]).filter(|_| request.method == methods::TOOLS_CALL)?;
    tools::definition(core, &name)
}

/// One exchange of the oldest revision, whose stream and whose messages have paths of their own.
async fn respond_oldest<B>(
    core: &SharedCore,
    request: HttpRequest<B>,
    peer: Option<SocketAddr>,
) -> HttpResponse<Answer>
where
    B: Body<Data = Bytes> + Unpin,
{
    let (head, body) = request.into_parts();
    match (&head.method, head.uri.path()) {
        (&Method::GET, oldest::STREAM_PATH) => oldest::open(core),
        (&Method::POST, oldest::MESSAGES_PATH) => {
            if let Err((status, text)) = head::check_content_type(&head.headers) {
                return answer::plain(status, text);
            }
            match read_body(body).await {
                Ok(body) => oldest::post(core, head.uri.query(), &body, peer).await,
                Err(why) => answer::refusal(&Refusal::new(None, codes::PARSE_ERROR, why)),
            }
        }
        _ => answer::plain(405, "GET /sse for the stream, POST /messages for messages"),
    }
}

/// The whole body, or why it cannot be had.
async fn read_body<B: Body<Data = Bytes> + Unpin>(body: B) -> Result<Bytes, String> {
    let whole = tokio::time::timeout(BODY_TIME.into(), read_frames(body)).await;
    whole.unwrap_or_else(|_| Err(format!("the body took longer than {} ms", BODY_TIME.0)))
}

async fn read_frames<B: Body<Data = Bytes> + Unpin>(mut body: B) -> Result<Bytes, String> {
    let mut whole = BytesMut::new();
    let mut len = 0;
    let too_large = || Err(format!("the body is larger than {BODY_LIMIT_BYTES} bytes"));
    loop {
        let frame = match tokio::time::timeout(BODY_STALL.into(), body.frame()).await {
            Err(_) => return Err(format!("the body stalled for {} ms", BODY_STALL.0)),
            Ok(None) if len > BODY_LIMIT_BYTES => return too_large(),
            Ok(None) => return Ok(whole.freeze()),
            Ok(Some(Err(_))) => return Err("the body broke off".to_owned()),
            Ok(Some(Ok(frame))) => frame,
        };
        let Ok(data) = frame.into_data() else { continue };
        len += data.len();
        if len <= BODY_LIMIT_BYTES {
            whole.extend_from_slice(&data);
        } else if len > DISCARD_BYTES {
            return too_large();
        } else {
            whole.clear();
        }
    }
}

#[cfg(test)]
mod tests;

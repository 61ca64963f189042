//! Answers: one JSON body, or an event stream.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Response as HttpResponse, StatusCode};

use crate::peer::server::AnswerMode;
use crate::peer::server::core::{Live, Outgoing};
use crate::peer::server::message::Refusal;
use crate::peer::server::outlet::Outflow;
use crate::spec::headers;
use crate::time::Ms;

/// The body of an answer.
pub(in crate::peer::server) type Answer = UnsyncBoxBody<Bytes, Infallible>;

/// Sent on a quiet stream; clients ignore it.
pub(in crate::peer::server) const COMMENT: Bytes = Bytes::from_static(b": keep-alive\n\n");

/// Cancels the request when the exchange goes away, unless it was completed by then. On HTTP that
/// is the cancel signal.
pub(super) struct Hangup(Option<Arc<Live>>);

impl Hangup {
    /// In a mode that is deaf to it, nothing is cancelled.
    pub(super) fn new(live: &Arc<Live>, mode: AnswerMode) -> Hangup {
        Hangup((!mode.is_deaf()).then(|| Arc::clone(live)))
    }
}

impl Drop for Hangup {
    fn drop(&mut self) {
        if let Some(live) = &self.0 {
            live.cancel(Some("the client closed the response stream"));
        }
    }
}

/// Refused before anything of MCP was looked at: a line for people.
pub(in crate::peer::server) fn plain(status: u16, text: &'static str) -> HttpResponse<Answer> {
    whole(status, "text/plain; charset=utf-8", Bytes::from_static(text.as_bytes()))
}

/// A JSON-RPC error.
pub(in crate::peer::server) fn refusal(refusal: &Refusal) -> HttpResponse<Answer> {
    whole(refusal.status, headers::JSON, refusal.to_bytes())
}

/// A notification was accepted.
pub(in crate::peer::server) fn accepted() -> HttpResponse<Answer> {
    empty(202)
}

/// A status that says all.
pub(in crate::peer::server) fn empty(status: u16) -> HttpResponse<Answer> {
    with_status(status, Full::new(Bytes::new()).boxed_unsync())
}

/// One JSON body.
pub(in crate::peer::server) fn json(status: u16, body: Bytes) -> HttpResponse<Answer> {
    whole(status, headers::JSON, body)
}

/// An event stream; `frames`: whole events and comments.
pub(in crate::peer::server) fn event_stream(
    frames: impl Stream<Item = Bytes> + Send + 'static,
) -> HttpResponse<Answer> {
    let frames = frames.map(|data| Ok::<_, Infallible>(Frame::data(data)));
    let mut response = with_status(200, StreamBody::new(frames).boxed_unsync());
    let fields = response.headers_mut();
    fields.insert(CONTENT_TYPE, HeaderValue::from_static(headers::EVENT_STREAM));
    fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    fields.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

/// Answers a running request with what its handler says.
pub(super) async fn answer(
    mode: AnswerMode,
    keep_alive: Ms,
    messages: Outflow,
    hangup: Hangup,
) -> HttpResponse<Answer> {
    let mut events = Events { messages, keep_alive, _hangup: hangup, first: None, is_over: false };
    match mode {
        AnswerMode::Sse => {
            // The handler's first turn: what it refuses at once keeps its status (MET-14).
            tokio::task::yield_now().await;
            if let Some(outgoing) = events.messages.try_recv() {
                if outgoing.status.is_some_and(|status| status != 200)
                    && let Some(response) = response(&outgoing)
                {
                    return response;
                }
                events.first = events.event(&outgoing);
            }
        }
        AnswerMode::Json | AnswerMode::JsonDeaf => {
            while let Some(outgoing) = events.messages.recv().await {
                if let Some(response) = response(&outgoing) {
                    return response;
                }
            }
            return ended_without_response();
        }
        AnswerMode::Auto | AnswerMode::LegacyStateless => {
            match tokio::time::timeout(keep_alive.into(), events.messages.recv()).await {
                Ok(None) => return ended_without_response(),
                Ok(Some(outgoing)) => {
                    if let Some(response) = response(&outgoing) {
                        return response;
                    }
                    events.first = events.event(&outgoing);
                }
                Err(_) => events.first = Some(COMMENT),
            }
        }
    }
    event_stream(futures_util::stream::unfold(events, |mut events| async move {
        let data = events.next().await?;
        Some((data, events))
    }))
}

/// The body of an event stream as it comes.
struct Events {
    messages: Outflow,
    keep_alive: Ms,
    /// Dropped with the body.
    _hangup: Hangup,
    /// Bytes that were there before the head was decided.
    first: Option<Bytes>,
    is_over: bool,
}

impl Events {
    /// The next bytes; `None`: the stream has ended.
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        while !self.is_over {
            match tokio::time::timeout(self.keep_alive.into(), self.messages.recv()).await {
                Err(_) => return Some(COMMENT),
                Ok(None) => return None,
                Ok(Some(outgoing)) => {
                    if let Some(event) = self.event(&outgoing) {
                        return Some(event);
                    }
                }
            }
        }
        None
    }

    /// One message as an event; a response is the last.
    fn event(&mut self, outgoing: &Outgoing) -> Option<Bytes> {
        if !outgoing.may_leave() {
            return None;
        }
        self.is_over = outgoing.status.is_some();
        let mut event = Vec::with_capacity(outgoing.body.len() + 8);
        event.extend_from_slice(b"data: ");
        event.extend_from_slice(&outgoing.body);
        event.extend_from_slice(b"\n\n");
        Some(Bytes::from(event))
    }
}

/// The JSON body for a response; `None` for anything else.
fn response(outgoing: &Outgoing) -> Option<HttpResponse<Answer>> {
    let status = outgoing.status.filter(|_| outgoing.may_leave())?;
    Some(whole(status, headers::JSON, outgoing.body.clone()))
}

/// The server is ending, and with it the handler.
fn ended_without_response() -> HttpResponse<Answer> {
    plain(503, "the server is ending")
}

fn whole(status: u16, content_type: &'static str, body: Bytes) -> HttpResponse<Answer> {
    let mut response = with_status(status, Full::new(body).boxed_unsync());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

fn with_status(status: u16, body: Answer) -> HttpResponse<Answer> {
    let mut response = HttpResponse::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response
}

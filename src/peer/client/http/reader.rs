//! Reads one answer, a JSON body or an event stream, and tells its caller.

use http_body_util::{BodyExt, Limited};
use hyper::Response;
use hyper::body::Incoming as Body;
use hyper::header::CONTENT_TYPE;
use tokio::sync::mpsc;

use crate::peer::client::Outcome;
use crate::peer::client::follow::Incoming;
use crate::peer::client::message::{self, Read};
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

/// Reads one answer and tells its caller.
pub(super) struct Reader {
    pub(super) id: Id,
    pub(super) token: Option<Id>,
    pub(super) told: mpsc::Sender<Incoming>,
}

impl Reader {
    /// True: the answer was read to its end and the connection can be used again.
    pub(super) async fn read(&self, answer: hyper::Result<Response<Body>>) -> bool {
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

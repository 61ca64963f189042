//! Reads one answer, a JSON body or an event stream, and tells its caller.

use std::sync::Arc;

use http_body_util::{BodyExt, Limited};
use hyper::Response;
use hyper::body::Incoming as Body;
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use super::server::{Server, is_stream};
use crate::machine::backoff;
use crate::peer::client::Outcome;
use crate::peer::client::auth::Challenge;
use crate::peer::client::desk::Desk;
use crate::peer::client::faults::REST;
use crate::peer::client::follow::Incoming;
use crate::peer::client::message::{self, Outgoing, Read, Speech};
use crate::peer::faults::Fault;
use crate::spec::methods;
use crate::time::Ms;
use crate::wire::jsonrpc::Id;
use crate::wire::sse::{EVENT_LIMIT_BYTES, SseDecoder, SseEvent};

/// After the answer, how long the server may take to end the stream before the connection is
/// given up instead of being kept.
const TAIL_WAIT: Ms = Ms(500);
/// Largest answer that is read as one body.
const BODY_LIMIT_BYTES: usize = 128 << 20;
/// Bytes of a body without JSON-RPC that are kept for people.
const BODY_HEAD_BYTES: usize = 200;

/// Reads one answer and tells its caller.
pub(super) struct Reader {
    server: Arc<Server>,
    desk: Arc<Desk>,
    tracker: TaskTracker,
    id: Id,
    token: Option<Id>,
    is_opening: bool,
    speech: Speech,
    told: mpsc::Sender<Incoming>,
    last_event_id: Option<String>,
    retry: Option<Ms>,
    /// Streams that ended without an event since the last one that had any.
    fruitless: u32,
}

/// What becomes of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    /// Read to the end: it can be used again.
    Keep,
    /// It cannot.
    Drop,
    /// The stream ended before the answer and can be resumed.
    Resume,
}

impl Reader {
    pub(super) fn new(
        server: &Arc<Server>,
        desk: &Arc<Desk>,
        tracker: &TaskTracker,
        outgoing: &Outgoing,
        told: mpsc::Sender<Incoming>,
    ) -> Reader {
        Reader {
            server: server.clone(),
            desk: desk.clone(),
            tracker: tracker.clone(),
            id: outgoing.id.clone(),
            token: outgoing.token.clone(),
            is_opening: outgoing.method == methods::INITIALIZE,
            speech: outgoing.speech.clone(),
            told,
            last_event_id: None,
            retry: None,
            fruitless: 0,
        }
    }

    pub(super) fn speech(&self) -> Speech {
        self.speech.clone()
    }

    pub(super) fn last_event_id(&self) -> Option<&str> {
        self.last_event_id.as_deref()
    }

    /// How long to wait before the stream is asked for again: what the server wishes
    /// (2025-11-25 basic/transports#sending-messages-to-the-server), longer after each time in vain.
    pub(super) fn retry_after(&self) -> Ms {
        self.retry.unwrap_or_default().max(backoff::delay("stream", self.fruitless))
    }

    pub(super) async fn read(&mut self, answer: hyper::Result<Response<Body>>) -> Rest {
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                self.tell(Incoming::End(Outcome::Lost(format!("no answer: {error}")))).await;
                return Rest::Drop;
            }
        };
        let status = answer.status();
        self.tell(Incoming::Status(status.as_u16())).await;
        if let Some(challenge) = Challenge::read(status.as_u16(), answer.headers()) {
            self.tell(Incoming::Challenge(challenge)).await;
        }
        if self.is_opening && status.is_success() {
            self.server.start_session(answer.headers());
        }
        if status.is_success() && is_stream(answer.headers()) {
            self.stream(answer.into_body()).await
        } else {
            self.whole(answer).await
        }
    }

    /// The answer to a GET that asks for the rest of a stream.
    pub(super) async fn read_resumed(&mut self, answer: hyper::Result<Response<Body>>) -> Rest {
        let why = match answer {
            Ok(answer) if answer.status().is_success() && is_stream(answer.headers()) => {
                return self.stream(answer.into_body()).await;
            }
            Ok(answer) => format!("status {}", answer.status().as_u16()),
            Err(error) => error.to_string(),
        };
        let why = format!("the stream ended before the answer and could not be resumed: {why}");
        self.tell(Incoming::End(Outcome::Lost(why))).await;
        Rest::Drop
    }

    /// One body, which is one response.
    async fn whole(&mut self, answer: Response<Body>) -> Rest {
        let is_success = answer.status().is_success();
        let body = match Limited::new(answer.into_body(), BODY_LIMIT_BYTES).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) => {
                self.tell(Incoming::End(Outcome::Lost(format!("the answer broke off: {error}")))).await;
                return Rest::Drop;
            }
        };
        if is_success && self.server.has_endpoint() {
            // HTTP+SSE: the answer comes on the stream of the session.
            return Rest::Keep;
        }
        let mut outcome = None;
        for read in message::read(&body, self.speech.era) {
            match read {
                // An error without an id can only mean this request.
                Read::Answer { id, outcome: own } if id.as_ref().is_none_or(|id| *id == self.id) => {
                    outcome = Some(own);
                }
                _ if !is_success => {
                    let head = body.get(..BODY_HEAD_BYTES).unwrap_or(&body);
                    let body = String::from_utf8_lossy(head).into_owned();
                    outcome = outcome.or(Some(Outcome::Refused { body }));
                }
                Read::Answer { id: Some(id), .. } => {
                    let why = format!("the answer is for id {id}, not for {}", self.id);
                    outcome = outcome.or(Some(Outcome::Invalid(why)));
                }
                Read::Bad(why) => outcome = outcome.or(Some(Outcome::Invalid(why))),
                other if self.speech.era.is_modern() => {
                    let why = format!("{} instead of an answer", told(&other));
                    outcome = outcome.or(Some(Outcome::Invalid(why)));
                }
                other => self.pass_on(other).await,
            }
        }
        let outcome = outcome.unwrap_or_else(|| Outcome::Invalid("no answer in the body".to_owned()));
        self.tell(Incoming::End(outcome)).await;
        Rest::Keep
    }

    /// Events up to the response; after it, the rest of the stream, but not for long.
    async fn stream(&mut self, mut body: Body) -> Rest {
        let mut decoder = SseDecoder::new(EVENT_LIMIT_BYTES);
        self.fruitless += 1;
        let mut is_fresh = true;
        let why = loop {
            let data = match body.frame().await {
                None => break "the stream ended before the answer".to_owned(),
                Some(Err(error)) => break format!("the stream broke off: {error}"),
                Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
            };
            if is_fresh && self.desk.wrongs.is_on(Fault::SlowReader) {
                tokio::time::sleep(REST.into()).await;
            }
            is_fresh = false;
            for event in decoder.push(&data) {
                if !event.comments.is_empty() && self.desk.wrongs.is_on(Fault::CommentsCount) {
                    self.tell(Incoming::Comment).await;
                }
                if let Some(outcome) = self.event(event).await {
                    self.tell(Incoming::End(outcome)).await;
                    let rest = tokio::time::timeout(TAIL_WAIT.into(), body.collect()).await;
                    return if matches!(rest, Ok(Ok(_))) { Rest::Keep } else { Rest::Drop };
                }
            }
        };
        if self.last_event_id.is_some() && !self.speech.era.is_modern() {
            return Rest::Resume;
        }
        self.tell(Incoming::End(Outcome::Lost(why))).await;
        Rest::Drop
    }

    /// One event; the outcome when it is the response.
    async fn event(&mut self, event: SseEvent) -> Option<Outcome> {
        if let Some(id) = event.id {
            self.last_event_id = Some(id);
        }
        if let Some(retry) = event.retry {
            self.retry = Some(Ms(retry));
        }
        let data = event.data.filter(|data| !data.is_empty())?;
        self.fruitless = 0;
        let mut end = None;
        for read in message::read(&data, self.speech.era) {
            let fault = match read {
                Read::Answer { id, outcome } if id.as_ref().is_none_or(|id| *id == self.id) => {
                    end = Some(outcome);
                    continue;
                }
                Read::Progress { token, progress } if Some(&token) == self.token.as_ref() => {
                    self.tell(Incoming::Progress(progress)).await;
                    continue;
                }
                Read::Bad(why) => why,
                other if !self.speech.era.is_modern() => {
                    self.pass_on(other).await;
                    continue;
                }
                Read::Notice(notice) => {
                    self.tell(Incoming::Notice(notice)).await;
                    continue;
                }
                Read::Answer { id: Some(id), .. } => {
                    format!("an answer for id {id} on the stream of {}", self.id)
                }
                Read::Progress { token, .. } => {
                    format!("progress for the token {token}, which is not of this call")
                }
                other => told(&other).to_owned(),
            };
            self.tell(Incoming::Fault(fault)).await;
        }
        end
    }

    /// Older eras: a stream may carry what belongs to others, and requests of the server.
    async fn pass_on(&self, read: Read) {
        match read {
            Read::Notice(notice) if notice.about.is_none() => self.tell(Incoming::Notice(notice)).await,
            other => {
                if let Some(owed) = self.desk.route(other).await {
                    let posting = self.server.clone().post(owed, self.speech.clone(), self.tracker.clone());
                    self.tracker.spawn(posting);
                }
            }
        }
    }

    /// A caller that has given up does not listen any more; the connection is then closed anyway.
    pub(super) async fn tell(&self, incoming: Incoming) {
        let _ = self.told.send(incoming).await;
    }
}

fn told(read: &Read) -> &'static str {
    match read {
        Read::Answer { .. } => "an answer",
        Read::Progress { .. } | Read::Notice(_) => "a notification",
        Read::Asked(_) => "a request",
        Read::Bad(_) => "what is no message",
    }
}

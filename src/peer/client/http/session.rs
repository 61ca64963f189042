//! The stream of a session, of older eras only: a GET on which the server sends requests and
//! notifications by itself, and in 2024-11-05 every answer as well.

use std::sync::Arc;

use http_body_util::BodyExt;
use hyper::body::Incoming as Body;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::connection::Connection;
use super::server::{Server, is_stream};
use crate::machine::backoff;
use crate::peer::client::desk::Desk;
use crate::peer::client::message;
use crate::time::Ms;
use crate::wire::sse::{EVENT_LIMIT_BYTES, SseDecoder, SseEvent};

/// Reads the stream of one session.
#[derive(Debug)]
pub(super) struct Ear {
    server: Arc<Server>,
    desk: Arc<Desk>,
    tracker: TaskTracker,
    cancel: CancellationToken,
    last_event_id: Option<String>,
    /// How long the server wants to be left alone after the stream has ended.
    retry: Option<Ms>,
}

/// Why a stream could not be had.
enum Refused {
    /// The server says no; asking again changes nothing.
    ForGood(u16),
    /// It could not be reached.
    ForNow(String),
}

impl Ear {
    pub(super) fn new(
        server: &Arc<Server>,
        desk: &Arc<Desk>,
        tracker: &TaskTracker,
        cancel: &CancellationToken,
    ) -> Ear {
        Ear {
            server: server.clone(),
            desk: desk.clone(),
            tracker: tracker.clone(),
            cancel: cancel.clone(),
            last_event_id: None,
            retry: None,
        }
    }

    /// Hears the session to its end. A server that offers no such stream says 405, which is fine.
    pub(super) async fn run(mut self) {
        let cancel = self.cancel.clone();
        let hearing = async {
            let mut attempt = 0;
            loop {
                match self.connect().await {
                    Ok((_connection, body)) => {
                        attempt = 0;
                        self.read(body).await;
                    }
                    Err(Refused::ForGood(status)) => {
                        tracing::debug!(status, "the server offers no stream of its own");
                        return;
                    }
                    Err(Refused::ForNow(why)) => tracing::debug!(why, "the stream cannot be opened"),
                }
                let wait = self.retry.unwrap_or_else(|| backoff::delay("session", attempt));
                attempt += 1;
                tokio::time::sleep(wait.into()).await;
            }
        };
        tokio::select! {
            () = hearing => {}
            () = cancel.cancelled() => {}
        }
    }

    /// HTTP+SSE: waits for the endpoint, then goes on hearing on a task of its own.
    pub(super) async fn open_endpoint(mut self, limit: Ms) -> Result<(), String> {
        let first = async {
            let (connection, mut body) = self.connect().await.map_err(|refused| match refused {
                Refused::ForGood(status) => format!("a GET is answered with status {status}"),
                Refused::ForNow(why) => why,
            })?;
            let mut decoder = SseDecoder::new(EVENT_LIMIT_BYTES);
            loop {
                let Some(Ok(frame)) = body.frame().await else {
                    return Err("the stream ended before an endpoint was named".to_owned());
                };
                let events = decoder.push(&frame.into_data().unwrap_or_default());
                let mut events = events.into_iter().filter(|event| event.data.is_some());
                if let Some(event) = events.next() {
                    if event.event.as_deref() != Some("endpoint") {
                        return Err("the first event names no endpoint".to_owned());
                    }
                    let named = event.data.unwrap_or_default();
                    self.server.set_endpoint(&String::from_utf8_lossy(&named))?;
                    return Ok((connection, body, decoder, events.collect::<Vec<_>>()));
                }
            }
        };
        let (connection, body, decoder, more) =
            timeout(limit.into(), first).await.map_err(|_| "no endpoint was named in time".to_owned())??;
        let tracker = self.tracker.clone();
        tracker.spawn(async move {
            let cancel = self.cancel.clone();
            let hearing = async {
                for event in more {
                    self.hear(event).await;
                }
                self.events(body, decoder).await;
            };
            tokio::select! {
                () = hearing => {}
                () = cancel.cancelled() => {}
            }
            drop(connection);
            // Every answer would have come here, and nothing is resumed in that era.
            self.desk.close("the event stream of the session ended").await;
        });
        Ok(())
    }

    async fn connect(&mut self) -> Result<(Connection, Body), Refused> {
        let request = self.server.get(&self.desk.speech(), self.last_event_id.as_deref());
        let for_now = |error: &dyn std::fmt::Display| Refused::ForNow(error.to_string());
        let mut connection = self.server.connection(&self.tracker).await.map_err(|error| for_now(&error))?;
        let answer = connection.send(request).await.map_err(|error| for_now(&error))?;
        match answer.status().as_u16() {
            200 if is_stream(answer.headers()) => Ok((connection, answer.into_body())),
            status @ (200..=499) => Err(Refused::ForGood(status)),
            status => Err(Refused::ForNow(format!("status {status}"))),
        }
    }

    async fn read(&mut self, body: Body) {
        self.events(body, SseDecoder::new(EVENT_LIMIT_BYTES)).await;
    }

    async fn events(&mut self, mut body: Body, mut decoder: SseDecoder) {
        while let Some(Ok(frame)) = body.frame().await {
            for event in decoder.push(&frame.into_data().unwrap_or_default()) {
                self.hear(event).await;
            }
        }
    }

    async fn hear(&mut self, event: SseEvent) {
        if let Some(id) = event.id {
            self.last_event_id = Some(id);
        }
        if let Some(retry) = event.retry {
            self.retry = Some(Ms(retry));
        }
        let Some(data) = event.data.filter(|data| !data.is_empty()) else { return };
        for read in message::read(&data, self.desk.speech().era) {
            if let Some(owed) = self.desk.route(read).await {
                let posting = self.server.clone().post(owed, self.desk.speech(), self.tracker.clone());
                self.tracker.spawn(posting);
            }
        }
    }
}

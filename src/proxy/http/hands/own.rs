//! Requests of midwire's own: on a connection of their own, with the head of a request that the
//! client sent. What comes back is recorded and goes to nobody else.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use super::{Hands, State, body};
use crate::command::Refused;
use crate::event::{Close, Dir, Headers, What};
use crate::proxy::http::Shared;
use crate::proxy::http::dial::{Link, Speech};
use crate::proxy::http::lane::ReadBuffer;
use crate::proxy::http::policy::is_event_stream;
use crate::wire::http1::{Asked, Decoder, Part, Side, Start};

/// A request that is ready to be sent.
#[derive(Debug)]
pub(super) struct Post {
    shared: Arc<Shared>,
    runtime: tokio::runtime::Handle,
    wire: Bytes,
    stream: Option<u64>,
}

impl Post {
    /// Sends it, and does this with the status of its answer.
    pub(super) fn after(self, then: impl FnOnce(Option<u16>) + Send + 'static) {
        let Post { shared, runtime, wire, stream } = self;
        let stop = shared.stop.clone();
        let tracker = shared.tracker.clone();
        let task = async move {
            let status = tokio::select! {
                () = stop.cancelled() => None,
                status = send(&shared, &wire, stream) => status,
            };
            then(status);
        };
        tracker.spawn_on(task, &runtime);
    }
}

impl Hands {
    /// The hands of the tap, for those who finish an order later.
    pub(super) fn tap_hands(&self) -> Option<Arc<Hands>> {
        Some(self.tap.get()?.shared.upgrade()?.hands.clone())
    }

    /// The number of an exchange of midwire's own.
    pub(super) fn next_stream(&self) -> Result<u64, Refused> {
        let shared = self.tap.get().and_then(|tap| tap.shared.upgrade());
        shared.map(|shared| shared.next_stream()).ok_or_else(not_running)
    }

    /// A POST with the head of the request of this exchange; `stream`: where its answer is recorded.
    pub(super) fn post(
        &self,
        state: &State,
        text: &Bytes,
        like: Option<u64>,
        stream: Option<u64>,
    ) -> Result<Post, Refused> {
        let tap = self.tap.get().ok_or_else(not_running)?;
        let shared = tap.shared.upgrade().ok_or_else(not_running)?;
        if shared.dialer.is_http2() {
            let what = "midwire sends requests of its own on HTTP/1.1 only";
            return Err(Refused::NotHere(what.to_owned()));
        }
        let head = state.head_of(like).unwrap_or_else(|| first_head(&shared));
        let mut wire = BytesMut::from(&*body::own_head(&head, text));
        wire.extend_from_slice(text);
        Ok(Post { shared, runtime: tap.runtime.clone(), wire: wire.freeze(), stream })
    }
}

fn not_running() -> Refused {
    Refused::NotHere("the tap does not run".to_owned())
}

/// A head for a server to which no client has spoken yet.
fn first_head(shared: &Shared) -> Bytes {
    let upstream = shared.dialer.upstream();
    let head = format!(
        "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\r\n",
        upstream.path(),
        upstream.authority()
    );
    Bytes::from(head)
}

/// Sends a request and records its answer. Returns the status.
async fn send(shared: &Shared, wire: &[u8], stream: Option<u64>) -> Option<u16> {
    let record = Record { shared, stream };
    match shared.dialer.connect(Speech::Http1).await {
        Ok((Link::Plain(server), _)) => exchange(server, wire, &record).await,
        Ok((Link::Tls(server), _)) => exchange(*server, wire, &record).await,
        Err(error) => {
            tracing::warn!(%error, "cannot send a request of midwire's own");
            record.end(Close::Reset);
            None
        }
    }
}

/// Where an answer is recorded.
struct Record<'a> {
    shared: &'a Shared,
    stream: Option<u64>,
}

impl Record<'_> {
    fn push(&self, what: What) {
        if let Some(stream) = self.stream {
            self.shared.tape.push_http(Dir::S2c, Some(stream), None, what);
        }
    }

    fn end(&self, how: Close) {
        self.push(What::ServerClosed { how: Some(how), exit_code: None, signal: None });
    }
}

async fn exchange<S>(mut server: S, wire: &[u8], record: &Record<'_>) -> Option<u16>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut decoder = Decoder::new(Side::Answers);
    let mut buffer = ReadBuffer::default();
    let (mut status, mut is_stream) = (None, false);
    if server.write_all(wire).await.is_err() || server.flush().await.is_err() {
        record.end(Close::Reset);
        return None;
    }
    loop {
        let read = buffer.read(&mut server).await;
        let Ok(mut chunk) = read else {
            record.end(Close::Reset);
            return status;
        };
        if chunk.is_empty() {
            record.end(if decoder.finish() { Close::Eof } else { Close::Reset });
            return status;
        }
        while let Some(piece) = decoder.next(&mut chunk, Asked::Other) {
            match piece.part {
                Part::Head(head) if !head.is_interim() => {
                    if let Start::Answer { status: code } = head.start {
                        status = Some(code);
                        is_stream = is_event_stream(head.get("content-type"));
                        record
                            .push(What::ResponseHead { status: code, headers: Headers(head.fields.clone()) });
                    }
                }
                Part::Data(data) | Part::Opaque(data) => {
                    record.push(if is_stream { What::SseChunk(data) } else { What::Body(data) });
                }
                Part::End => {
                    record.end(Close::Eof);
                    return status;
                }
                Part::Head(_) | Part::HeadStart | Part::Framing => {}
            }
        }
    }
}

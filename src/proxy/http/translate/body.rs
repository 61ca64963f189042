//! Bodies on their way through: each frame is put on the tape before the library gets it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};

use super::Teller;
use super::links::{Link, Links};
use crate::event::tape::Tape;
use crate::event::{Close, Dir, What};

/// The body of a request.
#[derive(Debug)]
pub(super) struct RequestBody {
    inner: Incoming,
    tape: Tape,
    conn: u64,
    stream: u64,
}

impl RequestBody {
    pub(super) fn new(inner: Incoming, tape: Tape, conn: u64, stream: u64) -> RequestBody {
        RequestBody { inner, tape, conn, stream }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(cx));
        if let Some(Ok(frame)) = &frame
            && let Some(data) = frame.data_ref()
        {
            let what = What::Body(data.clone());
            self.tape.push_http(Dir::C2s, Some(self.stream), Some(self.conn), what);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// The body of an answer. Its end is the end of the exchange.
#[derive(Debug)]
pub(super) struct ResponseBody {
    inner: Incoming,
    teller: Teller,
    is_event_stream: bool,
    links: Arc<Links>,
    /// Given back for the next request when the answer is complete.
    link: Option<Link>,
}

impl ResponseBody {
    pub(super) fn new(
        inner: Incoming,
        teller: Teller,
        is_event_stream: bool,
        links: Arc<Links>,
        link: Link,
    ) -> ResponseBody {
        let mut body = ResponseBody { inner, teller, is_event_stream, links, link: Some(link) };
        if body.inner.is_end_stream() {
            body.end();
        }
        body
    }

    fn end(&mut self) {
        self.teller.server_ended(Close::Eof);
        if let Some(link) = self.link.take() {
            self.links.give_back(link);
        }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => {
                if let Some(data) = frame.data_ref() {
                    let data = data.clone();
                    let what = if self.is_event_stream { What::SseChunk(data) } else { What::Body(data) };
                    self.teller.push(Dir::S2c, what);
                }
                if self.inner.is_end_stream() {
                    self.end();
                }
            }
            Some(Err(_)) => self.teller.server_ended(Close::Reset),
            None => self.end(),
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

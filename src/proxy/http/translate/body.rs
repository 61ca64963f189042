//! Bodies on their way through: each frame is put on the tape before the library gets it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};

use super::links::{Link, Links};
use super::steered::{Cutting, Steered};
use super::{Ended, Teller};
use crate::event::tape::Tape;
use crate::event::{Close, Dir, What};

/// The body of a request.
#[derive(Debug)]
pub(super) enum RequestBody {
    /// It passes as it comes.
    Passing {
        /// What comes.
        inner: Incoming,
        /// Where it is told.
        tape: Tape,
        /// On this connection.
        conn: u64,
        /// In this exchange.
        stream: u64,
    },
    /// It is known whole, and told already.
    Known(Option<Bytes>),
}

impl RequestBody {
    pub(super) fn new(inner: Incoming, tape: Tape, conn: u64, stream: u64) -> RequestBody {
        RequestBody::Passing { inner, tape, conn, stream }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let (inner, tape, conn, stream) = match &mut *self {
            RequestBody::Passing { inner, tape, conn, stream } => (inner, tape, *conn, *stream),
            RequestBody::Known(text) => return Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
        };
        let frame = ready!(Pin::new(inner).poll_frame(cx));
        if let Some(Ok(frame)) = &frame
            && let Some(data) = frame.data_ref()
        {
            let what = What::Body(data.clone());
            tape.push_http(Dir::C2s, Some(stream), Some(conn), what);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match self {
            RequestBody::Passing { inner, .. } => inner.is_end_stream(),
            RequestBody::Known(text) => text.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            RequestBody::Passing { inner, .. } => inner.size_hint(),
            RequestBody::Known(text) => {
                SizeHint::with_exact(text.as_ref().map_or(0, |text| text.len() as u64))
            }
        }
    }
}

/// The body of an answer. Its end is the end of the exchange.
#[derive(Debug)]
pub(super) struct ResponseBody {
    inner: Option<Incoming>,
    teller: Teller,
    is_event_stream: bool,
    links: Arc<Links>,
    /// Given back for the next request when the answer is complete.
    link: Option<Link>,
    steered: Steered,
    cut: Cutting,
}

impl ResponseBody {
    pub(super) fn new(
        inner: Incoming,
        teller: Teller,
        is_event_stream: bool,
        (links, link): (Arc<Links>, Link),
        steered: Steered,
    ) -> ResponseBody {
        let is_over = inner.is_end_stream();
        let cut = Cutting::wait(steered.line().clone());
        let inner = Some(inner);
        let mut body = ResponseBody { inner, teller, is_event_stream, links, link: Some(link), steered, cut };
        if is_over {
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
    type Error = Ended;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Ended>>> {
        let this = &mut *self;
        if let Some(order) = this.cut.poll(cx) {
            // Dropping it resets the stream at the server, or closes its connection.
            let server = this.inner.take();
            this.link = None;
            this.steered.cut_within(&mut this.teller, &order, server, this.is_event_stream);
        }
        if let Some(end) = this.cut.end() {
            return end;
        }
        let Some(inner) = &mut this.inner else { return Poll::Ready(None) };
        let frame = ready!(Pin::new(&mut *inner).poll_frame(cx));
        let is_over = inner.is_end_stream();
        match &frame {
            Some(Ok(frame)) => {
                if let Some(data) = frame.data_ref() {
                    let data = data.clone();
                    let what = if this.is_event_stream { What::SseChunk(data) } else { What::Body(data) };
                    this.teller.push(Dir::S2c, what);
                }
                if is_over {
                    this.end();
                }
            }
            Some(Err(_)) => this.teller.server_ended(Close::Reset),
            None => this.end(),
        }
        Poll::Ready(frame.map(|frame| frame.map_err(Ended::Server)))
    }

    fn is_end_stream(&self) -> bool {
        !self.cut.is_cut() && self.inner.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.as_ref().map(Body::size_hint).unwrap_or_default()
    }
}

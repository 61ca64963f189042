//! One request and its answer, while they are under way.

use crate::event::{Headers, RequestHead};
use crate::model::call::CallIdx;
use crate::model::decode::BodyDecoder;
use crate::model::flow::{FlowIdx, OpenStream};
use crate::model::row::{Coding, Source};
use crate::model::scope::ScopeIdx;
use crate::model::track::{Piece, Track};
use crate::spec::era::Era;
use crate::time::Mono;
use crate::wire::sse::{EVENT_LIMIT_BYTES, SseDecoder, SseEvent};

/// Bytes of one body that are kept until it is whole; more is counted, not read. ours.
const BODY_LIMIT_BYTES: usize = 64 << 20;

/// Attempts at reading a request body of unknown length before its end is told by the answer.
const ATTEMPTS: u32 = 8;

/// One request and its answer.
#[derive(Debug)]
pub struct Exchange {
    pub(in crate::model) scope: ScopeIdx,
    /// The head of the request, without its body; `None`: it came before the recording began.
    pub(in crate::model) head: Option<RequestHead>,
    /// The header fields of the answer.
    pub(in crate::model) answer_headers: Option<Headers>,
    pub(in crate::model) started: Option<Mono>,
    /// When the head of the answer was read.
    pub(in crate::model) headed: Option<Mono>,
    /// When the client left before the end.
    pub(in crate::model) client_left: Option<Mono>,
    /// What its header names.
    pub(in crate::model) era: Option<Era>,
    /// The requests in its body.
    pub(in crate::model) calls: Vec<CallIdx>,
    /// The request body, while it is not whole.
    pub(in crate::model) request: Option<Request>,
    pub(in crate::model) status: Option<u16>,
    pub(in crate::model) answer_bytes: u64,
    pub(in crate::model) answer: Answer,
    pub(in crate::model) is_delete: bool,
    /// It names an event id, after which a stream is to be taken up again.
    pub(in crate::model) is_resumption: bool,
    /// It takes up the stream of this call again, by event id.
    pub(in crate::model) resumes: Option<CallIdx>,
    /// The last event id, hashed.
    pub(in crate::model) last_event_id: Option<u64>,
    /// HTTP+SSE: its stream is the session.
    pub(in crate::model) is_session: bool,
    /// When the last byte of its answer was read, the head included.
    pub(in crate::model) heard: Option<Mono>,
    /// The flow of its event stream.
    pub(in crate::model) open_stream: Option<OpenStream>,
}

/// A request body that is not whole yet.
#[derive(Debug)]
pub(in crate::model) struct Request {
    pub body: Body,
    /// Method and path.
    pub title: String,
    attempts: u32,
}

/// The answer's body.
#[derive(Debug)]
pub(in crate::model) enum Answer {
    None,
    Sse(Box<Stream>),
    Body(Box<Body>),
}

/// An event stream.
#[derive(Debug)]
pub(in crate::model) struct Stream {
    blocks: SseDecoder,
    decoder: BodyDecoder,
    coding: Coding,
    track: Track,
    /// The first and the last event of the stream.
    span: Option<(u32, u32)>,
    /// Decoded bytes that came before the current block.
    decoded: u64,
}

/// A body that is read when it is whole.
#[derive(Debug)]
pub(in crate::model) struct Body {
    pub bytes: Vec<u8>,
    decoder: BodyDecoder,
    coding: Coding,
    /// Length as declared, of the encoded bytes.
    length: Option<u64>,
    came: u64,
    span: Option<(u32, u32, Mono)>,
}

/// The fields of a head that nobody saw.
static NO_HEADERS: Headers = Headers(Vec::new());

impl Exchange {
    /// The head of the request, without its body; `None`: it came before the recording began.
    #[must_use]
    pub fn head(&self) -> Option<&RequestHead> {
        self.head.as_ref()
    }

    /// The HTTP method; empty when the head is not known.
    #[must_use]
    pub fn method(&self) -> &str {
        self.head.as_ref().map_or("", |head| head.method.as_str())
    }

    /// The header fields of the request.
    #[must_use]
    pub fn headers(&self) -> &Headers {
        self.head.as_ref().map_or(&NO_HEADERS, |head| &head.headers)
    }

    /// The status of the answer, once its head has come.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        self.status
    }

    /// The header fields of the answer, once its head has come.
    #[must_use]
    pub fn answer_headers(&self) -> Option<&Headers> {
        self.answer_headers.as_ref()
    }

    /// Bytes of the answer's body so far, as they passed.
    #[must_use]
    pub fn answer_bytes(&self) -> u64 {
        self.answer_bytes
    }

    /// The answer is an event stream.
    #[must_use]
    pub fn is_event_stream(&self) -> bool {
        self.answer_headers
            .as_ref()
            .and_then(|headers| headers.get("content-type"))
            .is_some_and(is_event_stream)
    }

    /// The requests in its body.
    #[must_use]
    pub fn calls(&self) -> &[CallIdx] {
        &self.calls
    }

    /// The call whose stream it takes up again by event id, where that is known.
    #[must_use]
    pub fn resumes(&self) -> Option<CallIdx> {
        self.resumes
    }

    /// It names an event id, after which a stream is to be taken up again: what comes may have come
    /// before.
    #[must_use]
    pub fn is_resumption(&self) -> bool {
        self.is_resumption
    }

    /// The flow of its answer, where that is an event stream.
    #[must_use]
    pub fn flow(&self) -> Option<FlowIdx> {
        self.open_stream.as_ref().map(|open| open.flow)
    }

    /// The era that its version header names.
    #[must_use]
    pub fn era(&self) -> Option<Era> {
        self.era
    }

    /// Where it belongs.
    #[must_use]
    pub fn scope(&self) -> ScopeIdx {
        self.scope
    }

    /// When the head of the request was read.
    #[must_use]
    pub fn started(&self) -> Option<Mono> {
        self.started
    }

    /// When the head of the answer was read.
    #[must_use]
    pub fn headed(&self) -> Option<Mono> {
        self.headed
    }

    /// When the client left before the end of the answer.
    #[must_use]
    pub fn client_left(&self) -> Option<Mono> {
        self.client_left
    }

    pub(in crate::model) fn new(scope: ScopeIdx) -> Exchange {
        Exchange {
            scope,
            head: None,
            answer_headers: None,
            started: None,
            headed: None,
            client_left: None,
            era: None,
            calls: Vec::new(),
            request: None,
            status: None,
            answer_bytes: 0,
            answer: Answer::None,
            is_delete: false,
            is_resumption: false,
            resumes: None,
            last_event_id: None,
            is_session: false,
            heard: None,
            open_stream: None,
        }
    }

    /// Gets ready for a body that follows the head, when the head declares one.
    pub(in crate::model) fn expect_body(&mut self, headers: &Headers) {
        let length = headers.get("content-length").and_then(|text| text.trim().parse().ok());
        let is_chunked = headers.get("transfer-encoding").is_some();
        if length.is_some_and(|length| length > 0) || is_chunked {
            let body = Body::new(Coding::Identity, length);
            self.request = Some(Request { body, title: String::new(), attempts: 0 });
        }
    }
}

/// A media type of an event stream.
pub(in crate::model) fn is_event_stream(kind: &str) -> bool {
    kind.trim_start().get(..17).is_some_and(|head| head.eq_ignore_ascii_case("text/event-stream"))
}

impl Request {
    /// Whether all of it is there: by its declared length, or because it reads as JSON.
    pub(in crate::model) fn is_whole(&mut self) -> bool {
        if self.body.length.is_some() {
            return self.body.is_whole();
        }
        let last = self.body.bytes.trim_ascii_end().last();
        if !matches!(last, Some(b'}' | b']')) || self.attempts >= ATTEMPTS {
            return false;
        }
        self.attempts += 1;
        serde_json::from_slice::<serde::de::IgnoredAny>(&self.body.bytes).is_ok()
    }
}

impl Answer {
    pub(in crate::model) fn sse(coding: Coding) -> Answer {
        Answer::Sse(Box::new(Stream {
            blocks: SseDecoder::new(EVENT_LIMIT_BYTES),
            decoder: BodyDecoder::new(coding),
            coding,
            track: Track::default(),
            span: None,
            decoded: 0,
        }))
    }

    /// The same kind of answer, with nothing in it.
    pub(in crate::model) fn emptied(&self) -> Answer {
        match self {
            Answer::None => Answer::None,
            Answer::Sse(stream) => Answer::sse(stream.coding),
            Answer::Body(body) => Answer::Body(Box::new(Body::new(body.coding, None))),
        }
    }
}

impl Stream {
    /// The blocks that ended in this piece, with where they stand.
    pub(in crate::model) fn push(&mut self, piece: Piece, bytes: &[u8]) -> Vec<(SseEvent, Source, Mono)> {
        let first_event = self.span.map_or(piece.idx, |(first, _)| first);
        self.span = Some((first_event, piece.idx));
        if self.decoder.is_plain() {
            self.track.begin();
            let blocks = self.blocks.push(bytes);
            let placed = blocks.into_iter().map(|block| {
                let (source, at) = self.track.frame(piece, block.wire_len);
                (block, source, at)
            });
            let placed = placed.collect();
            self.track.end(piece);
            return placed;
        }
        let plain = self.decoder.push(bytes);
        let blocks = self.blocks.push(&plain);
        blocks
            .into_iter()
            .map(|block| {
                let source = self.decoded_source(first_event, piece.idx, block.wire_len);
                (block, source, piece.at)
            })
            .collect()
    }

    /// The stream ended: what was left.
    pub(in crate::model) fn finish(&mut self, last: u32) -> Option<(SseEvent, Source, Option<Mono>)> {
        let block = self.blocks.finish()?;
        let (first, end) = self.span.unwrap_or((last, last));
        if self.decoder.is_plain() {
            let (source, at) = self.track.tail(end, block.wire_len);
            return Some((block, source, at));
        }
        let source = self.decoded_source(first, end, block.wire_len);
        Some((block, source, None))
    }

    /// In a compressed stream a block is found by its place in the decoded bytes.
    fn decoded_source(&mut self, first: u32, last: u32, len: usize) -> Source {
        let skip = u32::try_from(self.decoded).unwrap_or(u32::MAX);
        self.decoded += len as u64;
        Source { first, last, skip, len: len as u64, coding: self.coding }
    }
}

impl Body {
    pub(in crate::model) fn new(coding: Coding, length: Option<u64>) -> Body {
        Body { bytes: Vec::new(), decoder: BodyDecoder::new(coding), coding, length, came: 0, span: None }
    }

    pub(in crate::model) fn push(&mut self, piece: Piece, bytes: &[u8]) {
        self.came += bytes.len() as u64;
        let (first, _, at) = self.span.unwrap_or((piece.idx, piece.idx, piece.at));
        self.span = Some((first, piece.idx, at));
        if self.decoder.is_plain() {
            self.bytes.extend_from_slice(bytes);
        } else {
            self.bytes.extend(self.decoder.push(bytes));
        }
        self.bytes.truncate(BODY_LIMIT_BYTES);
    }

    /// As many bytes came as were declared.
    pub(in crate::model) fn is_whole(&self) -> bool {
        self.length.is_some_and(|length| self.came >= length)
    }

    /// Where it stands, and when its first byte was read; `None` when nothing came.
    pub(in crate::model) fn place(&self) -> Option<(Source, Mono)> {
        let (first, last, at) = self.span?;
        let len = if self.coding == Coding::Identity { self.came } else { self.bytes.len() as u64 };
        Some((Source { first, last, skip: 0, len, coding: self.coding }, at))
    }
}

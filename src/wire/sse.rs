//! Server-sent events: `text/event-stream` bytes to events.
//!
//! Source: WHATWG HTML, server-sent events, with every line ending (LF, CR, CRLF), a leading BOM,
//! comments, multi-line data and an unterminated tail. Reports what a browser would silently drop.

use bytes::Bytes;

/// Bytes of one event kept; a longer one is passed over and reported.
pub const EVENT_LIMIT_BYTES: usize = 64 << 20;

/// One block of an event stream: an event, or comments alone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SseEvent {
    /// `event:` field; `None`: absent, which means `message`.
    pub event: Option<String>,
    /// `data:` lines joined by LF; `None`: no data field at all (an empty field gives `Some`).
    pub data: Option<Bytes>,
    /// `id:` field of this block, empty string included.
    pub id: Option<String>,
    /// `retry:` field in milliseconds, when it is digits only.
    pub retry: Option<u64>,
    /// Comment lines (without the colon), in order.
    pub comments: Vec<String>,
    /// Length on the wire, with the blank line that ended it.
    pub wire_len: usize,
    /// What was wrong with it.
    pub faults: Vec<SseFault>,
}

/// What can be wrong with one block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SseFault {
    /// The stream ended before the blank line: by the standard this event is dropped.
    Unterminated,
    /// Longer than the limit; fields are not known.
    OverLimit,
    /// Data is not valid UTF-8.
    NotUtf8,
    /// A field that the standard does not know, ignored.
    UnknownField(String),
    /// `retry` is not digits, ignored.
    BadRetry,
    /// `id` holds a NUL character, ignored.
    BadId,
}

/// Cuts an event stream into blocks; any chunking gives the same blocks.
#[derive(Debug)]
pub struct SseDecoder {}

impl SseDecoder {
    /// A decoder that keeps at most `limit_bytes` of one block.
    #[must_use]
    pub fn new(_limit_bytes: usize) -> SseDecoder {
        unimplemented!()
    }

    /// Takes the next bytes; returns the blocks that ended in them.
    pub fn push(&mut self, _chunk: &[u8]) -> Vec<SseEvent> {
        unimplemented!()
    }

    /// The stream ended: the unfinished last block, marked `Unterminated`, if there is one.
    pub fn finish(&mut self) -> Option<SseEvent> {
        unimplemented!()
    }
}

//! Server-sent events: `text/event-stream` bytes to events.
//!
//! Source: WHATWG HTML, server-sent events, with every line ending (LF, CR, CRLF), a leading BOM,
//! comments, multi-line data and an unterminated tail. Reports what a browser would silently drop.

use bytes::Bytes;
use memchr::memchr2;

use super::lines::BOM;

/// Bytes of one event kept; a longer one is passed over and reported.
pub const EVENT_LIMIT_BYTES: usize = 64 << 20;

/// Comments and unknown fields kept of one block; further ones are counted (`LeftOut`). ours.
pub const NOTES_LIMIT: usize = 1024;

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
    /// Length on the wire, with the blank line that ended it and any stray blank lines before
    /// it: the lengths of all blocks add up to the stream.
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
    /// This many comments and unknown fields were too many to keep.
    LeftOut(usize),
}

/// How the last line ended, which decides whether a CR at the end of a chunk may be half of a
/// CRLF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    Lf,
    /// CR; whether an LF belongs to it is not known before the next byte.
    Cr,
    /// CR without LF.
    BareCr,
}

/// Cuts an event stream into blocks; any chunking gives the same blocks.
///
/// A block is given out with the last byte of its blank line. Where that byte is a CR and lines
/// before it ended in CRLF, the LF is waited for; where they end in bare CRs it is not, so that no
/// event is held back.
#[derive(Debug)]
pub struct SseDecoder {
    limit_bytes: usize,
    /// The unfinished line, as far as it is kept.
    line: Vec<u8>,
    line_len: usize,
    block: Block,
    ended: Ended,
    /// The block is complete but for the LF that may follow its last CR.
    is_held: bool,
    is_first_line: bool,
}

/// The block being read.
#[derive(Debug, Default)]
struct Block {
    event: SseEvent,
    data: Vec<u8>,
    /// Bytes of stray blank lines before its first line.
    stray_len: usize,
    /// Bytes of finished lines, with their endings.
    len: usize,
    has_field: bool,
    left_out: usize,
}

impl SseDecoder {
    /// A decoder that keeps at most `limit_bytes` of one block, and never less than a byte order
    /// mark, which has to be known from a blank line.
    #[must_use]
    pub fn new(limit_bytes: usize) -> SseDecoder {
        SseDecoder {
            limit_bytes: limit_bytes.max(BOM.len()),
            line: Vec::new(),
            line_len: 0,
            block: Block::default(),
            ended: Ended::Lf,
            is_held: false,
            is_first_line: true,
        }
    }

    /// Takes the next bytes; returns the blocks that ended in them.
    pub fn push(&mut self, chunk: &[u8]) -> Vec<SseEvent> {
        let mut events = Vec::new();
        let mut rest = chunk;
        while let Some(first) = rest.first() {
            if self.ended == Ended::Cr {
                let is_lf = *first == b'\n';
                self.ended = if is_lf { Ended::Lf } else { Ended::BareCr };
                if is_lf {
                    self.block.count(1);
                    rest = rest.get(1..).unwrap_or_default();
                }
                if std::mem::take(&mut self.is_held) {
                    events.push(self.block.take(self.limit_bytes));
                }
                continue;
            }
            let Some((part, after)) = memchr2(b'\n', b'\r', rest).and_then(|at| rest.split_at_checked(at))
            else {
                self.keep(rest);
                break;
            };
            let before = self.ended;
            self.ended = if after.first() == Some(&b'\r') { Ended::Cr } else { Ended::Lf };
            rest = after.get(1..).unwrap_or_default();
            if self.end_line(part, 1) {
                if self.ended == Ended::Cr && before == Ended::Lf {
                    self.is_held = true;
                } else {
                    events.push(self.block.take(self.limit_bytes));
                }
            }
        }
        events
    }

    /// The stream ended: the unfinished last block, marked `Unterminated`, if there is one. A
    /// tail of comments alone is no event and loses nothing, so it is not marked.
    pub fn finish(&mut self) -> Option<SseEvent> {
        if std::mem::take(&mut self.is_held) {
            return Some(self.block.take(self.limit_bytes));
        }
        if self.line_len > 0 {
            self.end_line(b"", 0);
        }
        if self.block.len == 0 {
            return None;
        }
        let has_field = self.block.has_field;
        let mut event = self.block.take(self.limit_bytes);
        if has_field || event.faults.contains(&SseFault::OverLimit) {
            event.faults.push(SseFault::Unterminated);
        }
        Some(event)
    }

    /// Adds to the unfinished line; gives up all bytes of a block that passes the limit.
    fn keep(&mut self, part: &[u8]) {
        self.line_len += part.len();
        if self.block.len.saturating_add(self.line_len) > self.limit_bytes {
            self.line = Vec::new();
            self.block.forget();
        } else {
            self.line.extend_from_slice(part);
        }
    }

    /// Ends the line with its last bytes and `ending_len` bytes of line end. True when it was the
    /// blank line that ends a block.
    fn end_line(&mut self, part: &[u8], ending_len: usize) -> bool {
        let buffered = if self.line_len == 0 {
            None
        } else {
            self.keep(part);
            Some(std::mem::take(&mut self.line))
        };
        let whole_len = if buffered.is_some() { self.line_len } else { part.len() };
        let mut line = buffered.as_deref().unwrap_or(part);
        self.line_len = 0;
        let mut is_blank = whole_len == 0;
        if std::mem::take(&mut self.is_first_line)
            && let Some(after_bom) = line.strip_prefix(BOM)
        {
            line = after_bom;
            is_blank = line.is_empty();
        }
        if is_blank && self.block.len == 0 {
            self.block.stray_len += whole_len + ending_len;
            return false;
        }
        self.block.len = self.block.len.saturating_add(whole_len + ending_len);
        if self.block.len > self.limit_bytes {
            self.block.forget();
        } else if !is_blank {
            self.block.read_line(line);
        }
        is_blank
    }
}

impl Block {
    /// Counts bytes of a line end to the block or to the stray lines before it.
    fn count(&mut self, bytes: usize) {
        if self.len == 0 {
            self.stray_len += bytes;
        } else {
            self.len += bytes;
        }
    }

    /// Gives up what was read: the block is over the limit.
    fn forget(&mut self) {
        self.event = SseEvent::default();
        self.data = Vec::new();
    }

    fn read_line(&mut self, line: &[u8]) {
        let (name, value) = match memchr::memchr(b':', line).and_then(|at| line.split_at_checked(at)) {
            Some((name, value)) => (name, value.get(1..).unwrap_or_default()),
            None => (line, &b""[..]),
        };
        if name.is_empty() {
            self.note(|event| event.comments.push(lossy(value)));
            return;
        }
        self.has_field = true;
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => {
                if self.event.data.replace(Bytes::new()).is_some() {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
            }
            b"event" => self.event.event = Some(lossy(value)),
            b"id" if value.contains(&0) => self.note(|event| event.faults.push(SseFault::BadId)),
            b"id" => self.event.id = Some(lossy(value)),
            b"retry" => match digits(value) {
                Some(ms) => self.event.retry = Some(ms),
                None => self.note(|event| event.faults.push(SseFault::BadRetry)),
            },
            _ => self.note(|event| event.faults.push(SseFault::UnknownField(lossy(name)))),
        }
    }

    /// Keeps a comment or a fault, as long as there are not too many.
    fn note(&mut self, keep: impl FnOnce(&mut SseEvent)) {
        if self.event.comments.len() + self.event.faults.len() < NOTES_LIMIT {
            keep(&mut self.event);
        } else {
            self.left_out += 1;
        }
    }

    /// The block as it stands; the next one begins.
    fn take(&mut self, limit_bytes: usize) -> SseEvent {
        let block = std::mem::take(self);
        let wire_len = block.stray_len + block.len;
        if block.len > limit_bytes {
            return SseEvent { wire_len, faults: vec![SseFault::OverLimit], ..SseEvent::default() };
        }
        let mut event = SseEvent { wire_len, ..block.event };
        if event.data.is_some() {
            if std::str::from_utf8(&block.data).is_err() {
                event.faults.push(SseFault::NotUtf8);
            }
            event.data = Some(Bytes::from(block.data));
        }
        if block.left_out > 0 {
            event.faults.push(SseFault::LeftOut(block.left_out));
        }
        event
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn digits(value: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(value).ok()?;
    if text.bytes().all(|b| b.is_ascii_digit()) { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests;

//! stdio framing: one message per line, ended by LF (CRLF tolerated and reported).

use bytes::Bytes;

/// Bytes of one line kept for reading its content; a longer line is passed over, counted and
/// reported, never cut into two. ours: large enough for any result that an SDK accepts (10 MiB
/// in the TypeScript SDK, 20 MiB of text twice in a Python one).
pub const LINE_LIMIT_BYTES: usize = 64 << 20;

/// How a line ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ending {
    /// `\n`
    Lf,
    /// `\r\n`
    CrLf,
    /// The stream ended without a line end.
    None,
}

/// One line without its ending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The content, without the ending; empty when `is_over_limit`.
    pub body: Bytes,
    /// How it ended.
    pub ending: Ending,
    /// Length on the wire, with the ending.
    pub wire_len: usize,
    /// The line was longer than the limit; only its length is known.
    pub is_over_limit: bool,
    /// The line is preceded by a UTF-8 byte order mark (still part of `body`).
    pub has_bom: bool,
    /// The content is valid UTF-8.
    pub is_utf8: bool,
}

/// Cuts a byte stream into lines; any chunking gives the same lines.
#[derive(Debug)]
pub struct LineDecoder {}

impl LineDecoder {
    /// A decoder that keeps at most `limit_bytes` of one line.
    #[must_use]
    pub fn new(_limit_bytes: usize) -> LineDecoder {
        unimplemented!()
    }

    /// Takes the next bytes of the stream; returns the lines that ended in them.
    pub fn push(&mut self, _chunk: &[u8]) -> Vec<Line> {
        unimplemented!()
    }

    /// The stream ended: the unfinished last line, if there is one.
    pub fn finish(&mut self) -> Option<Line> {
        unimplemented!()
    }

    /// Bytes of an unfinished line seen so far.
    #[must_use]
    pub fn pending_bytes(&self) -> usize {
        unimplemented!()
    }
}

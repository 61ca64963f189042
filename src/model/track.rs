//! Where in the recording the bytes of a frame stand, and finding them again.

use std::io::Read as _;

use bytes::Bytes;

use super::row::{Coding, Row, Source};
use crate::event::{Event, What};
use crate::time::Mono;

/// Bytes of one encoded body that are decoded at most; a body that unpacks to more is read up
/// to here. ours.
pub(super) const DECODED_LIMIT_BYTES: u64 = 64 << 20;

/// The event that bytes came with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    /// Position in the recording.
    pub idx: u32,
    /// When it was read.
    pub at: Mono,
    /// How many bytes it brought.
    pub len: usize,
}

/// Follows one stream of bytes, so that each frame cut from it knows the events that it came
/// with. Frames are told in order, with nothing between them.
#[derive(Debug, Default)]
pub(super) struct Track {
    /// Where the unfinished frame began: event, bytes of it before, and time.
    start: Option<(u32, usize, Mono)>,
    /// Bytes of the unfinished frame in earlier events.
    pending: usize,
    /// Bytes of the current event that belong to finished frames.
    used: usize,
}

impl Track {
    /// The next event begins.
    pub(super) fn begin(&mut self) {
        self.used = 0;
    }

    /// A frame of `wire_len` bytes ended in the current event: where it stands, and when its
    /// first byte was read.
    pub(super) fn frame(&mut self, piece: Piece, wire_len: usize) -> (Source, Mono) {
        let (first, skip, at) = self.start.take().unwrap_or((piece.idx, self.used, piece.at));
        self.used += wire_len.saturating_sub(std::mem::take(&mut self.pending));
        (source(first, piece.idx, skip, wire_len), at)
    }

    /// The event is done: what is left of it is the beginning of the next frame.
    pub(super) fn end(&mut self, piece: Piece) {
        let left = piece.len.saturating_sub(self.used);
        if left > 0 {
            self.start.get_or_insert((piece.idx, self.used, piece.at));
            self.pending += left;
        }
        self.used = 0;
    }

    /// The stream ended inside a frame: where its unfinished part stands, as far as the event
    /// `last`.
    pub(super) fn tail(&mut self, last: u32, wire_len: usize) -> (Source, Option<Mono>) {
        let begun = self.start.take();
        self.pending = 0;
        let (first, skip) = begun.map_or((last, 0), |(first, skip, _)| (first, skip));
        (source(first, last.max(first), skip, wire_len), begun.map(|(_, _, at)| at))
    }
}

fn source(first: u32, last: u32, skip: usize, len: usize) -> Source {
    Source {
        first,
        last,
        skip: u32::try_from(skip).unwrap_or(u32::MAX),
        len: len as u64,
        coding: Coding::Identity,
    }
}

/// The bytes that a row stands for, out of the events `first..=last` of its source. Events of
/// another direction or exchange may be among them; they are passed over. Shorter than the
/// source says where bytes are missing.
pub fn bytes_of<'a>(row: &Row, events: impl IntoIterator<Item = &'a Event>) -> Bytes {
    let mine = events.into_iter().filter(|event| {
        event.dir == row.dir && event.transport == row.transport && event.stream == row.stream
    });
    let parts: Vec<&Bytes> = mine.filter_map(|event| payload(&event.what)).collect();
    let joined = match parts.as_slice() {
        [one] => (*one).clone(),
        many => Bytes::from(many.iter().flat_map(|part| part.iter().copied()).collect::<Vec<u8>>()),
    };
    let plain = match row.source.coding {
        Coding::Identity | Coding::Unknown => joined,
        coding => Bytes::from(decode(coding, &joined)),
    };
    let start = (row.source.skip as usize).min(plain.len());
    let len = usize::try_from(row.source.len).unwrap_or(usize::MAX);
    plain.slice(start..start.saturating_add(len).min(plain.len()))
}

/// The bytes that an event carries.
fn payload(what: &What) -> Option<&Bytes> {
    match what {
        What::Bytes { bytes, .. } | What::SseChunk(bytes) | What::Body(bytes) => Some(bytes),
        What::Request(head) => head.body.as_ref(),
        What::Inject { sent, .. } => sent.as_ref(),
        _ => None,
    }
}

/// Undoes a coding as far as the bytes go, up to the limit.
pub(super) fn decode(coding: Coding, bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    // An error means that the body is cut or damaged: what was read before it stands.
    let _ = match coding {
        Coding::Gzip => {
            flate2::read::MultiGzDecoder::new(bytes).take(DECODED_LIMIT_BYTES).read_to_end(&mut plain)
        }
        Coding::Deflate if is_zlib(bytes) => {
            flate2::read::ZlibDecoder::new(bytes).take(DECODED_LIMIT_BYTES).read_to_end(&mut plain)
        }
        Coding::Deflate => {
            flate2::read::DeflateDecoder::new(bytes).take(DECODED_LIMIT_BYTES).read_to_end(&mut plain)
        }
        Coding::Identity | Coding::Unknown => {
            plain.extend_from_slice(bytes);
            Ok(0)
        }
    };
    plain
}

/// `deflate` means zlib, but some senders leave its two-byte head out.
pub(super) fn is_zlib(bytes: &[u8]) -> bool {
    matches!(bytes, [head, check, ..] if head & 0x0f == 8 && (u16::from(*head) << 8 | u16::from(*check)) % 31 == 0)
}

//! Undoing `Content-Encoding` piece by piece, for the copy only.

use std::io::Write as _;

use super::row::Coding;
use super::track::DECODED_LIMIT_BYTES;

/// Decodes one body as it comes.
#[derive(Debug)]
pub(super) struct BodyDecoder {
    inner: Inner,
    given: u64,
}

#[derive(Debug)]
enum Inner {
    Plain,
    Gzip(flate2::write::MultiGzDecoder<Vec<u8>>),
    /// Waits for the two bytes that tell zlib from bare deflate.
    DeflateHead(Vec<u8>),
    Zlib(flate2::write::ZlibDecoder<Vec<u8>>),
    Deflate(flate2::write::DeflateDecoder<Vec<u8>>),
    /// Damaged, over the limit, or of an unknown coding: nothing more comes.
    Closed,
}

impl BodyDecoder {
    pub(super) fn new(coding: Coding) -> BodyDecoder {
        let inner = match coding {
            Coding::Identity => Inner::Plain,
            Coding::Gzip => Inner::Gzip(flate2::write::MultiGzDecoder::new(Vec::new())),
            Coding::Deflate => Inner::DeflateHead(Vec::new()),
            Coding::Unknown => Inner::Closed,
        };
        BodyDecoder { inner, given: 0 }
    }

    /// Whether bytes pass as they are.
    pub(super) fn is_plain(&self) -> bool {
        matches!(self.inner, Inner::Plain)
    }

    /// The next encoded bytes: what can be read of the body now.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        if let Inner::DeflateHead(head) = &mut self.inner {
            head.extend_from_slice(bytes);
            if head.len() < 2 {
                return Vec::new();
            }
            let head = std::mem::take(head);
            self.inner = if super::track::is_zlib(&head) {
                Inner::Zlib(flate2::write::ZlibDecoder::new(Vec::new()))
            } else {
                Inner::Deflate(flate2::write::DeflateDecoder::new(Vec::new()))
            };
            return self.push(&head);
        }
        // Small steps, so that a body which unpacks to far more than it weighs stops at the limit.
        let mut plain = Vec::new();
        for step in bytes.chunks(4096) {
            let (result, out) = match &mut self.inner {
                Inner::Plain => return bytes.to_vec(),
                Inner::Gzip(decoder) => {
                    (decoder.write_all(step).and_then(|()| decoder.flush()), decoder.get_mut())
                }
                Inner::Zlib(decoder) => {
                    (decoder.write_all(step).and_then(|()| decoder.flush()), decoder.get_mut())
                }
                Inner::Deflate(decoder) => {
                    (decoder.write_all(step).and_then(|()| decoder.flush()), decoder.get_mut())
                }
                Inner::DeflateHead(_) | Inner::Closed => return plain,
            };
            self.given += out.len() as u64;
            plain.append(out);
            if result.is_err() || self.given > DECODED_LIMIT_BYTES {
                self.inner = Inner::Closed;
            }
        }
        plain
    }
}

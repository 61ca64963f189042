//! stdio framing: one message per line, ended by LF (CRLF tolerated and reported).

use bytes::Bytes;
use memchr::memchr;

/// Bytes of one line kept for reading its content; a longer line is passed over, counted and
/// reported, never cut into two. ours: large enough for any result that an SDK accepts (10 MiB
/// in the TypeScript SDK, 20 MiB of text twice in a Python one).
pub const LINE_LIMIT_BYTES: usize = 64 << 20;

/// The UTF-8 byte order mark.
pub const BOM: &[u8] = b"\xef\xbb\xbf";

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
    /// How it ended; no closer than `Lf` when `is_over_limit`.
    pub ending: Ending,
    /// Length on the wire, with the ending.
    pub wire_len: usize,
    /// The content is longer than the limit; only its length is known.
    pub is_over_limit: bool,
    /// The content begins with a UTF-8 byte order mark (still part of `body`); `false` when it
    /// was not kept.
    pub has_bom: bool,
    /// The content is valid UTF-8; `true` when it was not kept.
    pub is_utf8: bool,
}

/// Cuts a byte stream into lines; any chunking gives the same lines.
#[derive(Debug)]
pub struct LineDecoder {
    limit_bytes: usize,
    /// The unfinished line, as far as it is kept: at most one byte more than the limit, which
    /// may yet turn out to be the CR of its ending.
    kept: Vec<u8>,
    pending_bytes: usize,
}

impl LineDecoder {
    /// A decoder that keeps at most `limit_bytes` of one line.
    #[must_use]
    pub fn new(limit_bytes: usize) -> LineDecoder {
        LineDecoder { limit_bytes, kept: Vec::new(), pending_bytes: 0 }
    }

    /// Takes the next bytes of the stream; returns the lines that ended in them.
    pub fn push(&mut self, chunk: &[u8]) -> Vec<Line> {
        self.cut(chunk, Bytes::copy_from_slice)
    }

    /// The same as [`LineDecoder::push`], for bytes that are shared already: lines that lie
    /// whole in the chunk are not copied.
    pub fn push_shared(&mut self, chunk: &Bytes) -> Vec<Line> {
        self.cut(chunk, |part| chunk.slice_ref(part))
    }

    /// The stream ended: the unfinished last line, if there is one.
    pub fn finish(&mut self) -> Option<Line> {
        if self.pending_bytes == 0 {
            return None;
        }
        let wire_len = std::mem::take(&mut self.pending_bytes);
        let body = Bytes::from(std::mem::take(&mut self.kept));
        Some(self.line(body, wire_len, Ending::None))
    }

    /// Bytes of an unfinished line seen so far.
    #[must_use]
    pub fn pending_bytes(&self) -> usize {
        self.pending_bytes
    }

    fn cut(&mut self, chunk: &[u8], own: impl Fn(&[u8]) -> Bytes) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut rest = chunk;
        while let Some((part, after)) = memchr(b'\n', rest).and_then(|at| rest.split_at_checked(at)) {
            let wire_len = self.pending_bytes + part.len() + 1;
            let body = if self.pending_bytes == 0 && part.len() <= self.limit_bytes.saturating_add(1) {
                own(part)
            } else {
                self.keep(part);
                Bytes::from(std::mem::take(&mut self.kept))
            };
            self.pending_bytes = 0;
            let line = match body.strip_suffix(b"\r") {
                Some(content) => self.line(body.slice_ref(content), wire_len, Ending::CrLf),
                None => self.line(body, wire_len, Ending::Lf),
            };
            lines.push(line);
            rest = after.get(1..).unwrap_or_default();
        }
        self.keep(rest);
        lines
    }

    /// Adds to the unfinished line; gives its bytes up once it is certain to pass the limit.
    fn keep(&mut self, part: &[u8]) {
        self.pending_bytes += part.len();
        if self.pending_bytes > self.limit_bytes.saturating_add(1) {
            self.kept = Vec::new();
        } else {
            self.kept.extend_from_slice(part);
        }
    }

    fn line(&self, body: Bytes, wire_len: usize, ending: Ending) -> Line {
        let ending_len = match ending {
            Ending::Lf => 1,
            Ending::CrLf => 2,
            Ending::None => 0,
        };
        let is_over_limit = wire_len.saturating_sub(ending_len) > self.limit_bytes;
        let body = if is_over_limit { Bytes::new() } else { body };
        let has_bom = body.starts_with(BOM);
        let is_utf8 = std::str::from_utf8(&body).is_ok();
        Line { body, ending, wire_len, is_over_limit, has_bom, is_utf8 }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines(chunks: &[&[u8]], limit_bytes: usize) -> Vec<Line> {
        let mut decoder = LineDecoder::new(limit_bytes);
        let mut lines: Vec<Line> = chunks.iter().flat_map(|chunk| decoder.push(chunk)).collect();
        lines.extend(decoder.finish());
        assert_eq!(decoder.pending_bytes(), 0);
        lines
    }

    #[test]
    fn a_line_is_told_by_its_ending_and_its_content() {
        type Case = (&'static [u8], &'static [u8], Ending, usize, bool, bool);
        let cases: [Case; 8] = [
            (b"{}\n", b"{}", Ending::Lf, 3, false, true),
            (b"{}\r\n", b"{}", Ending::CrLf, 4, false, true),
            (b"{}", b"{}", Ending::None, 2, false, true),
            (b"{}\r", b"{}\r", Ending::None, 3, false, true),
            (b"\n", b"", Ending::Lf, 1, false, true),
            (b"a\rb\n", b"a\rb", Ending::Lf, 4, false, true),
            (b"\xef\xbb\xbf{}\n", b"\xef\xbb\xbf{}", Ending::Lf, 6, true, true),
            (b"Gr\xfc\xdfe\n", b"Gr\xfc\xdfe", Ending::Lf, 6, false, false),
        ];
        for (wire, body, ending, wire_len, has_bom, is_utf8) in cases {
            let body = Bytes::from_static(body);
            let want = Line { body, ending, wire_len, is_over_limit: false, has_bom, is_utf8 };
            assert_eq!(lines(&[wire], 100), [want], "{wire:?}");
        }
        assert_eq!(lines(&[b""], 100), []);
    }

    #[test]
    fn a_line_over_the_limit_is_counted_and_never_cut_in_two() {
        for (wire, over) in [
            (&b"1234\nx\n"[..], [false, false]),
            (b"1234\r\nx\n", [false, false]),
            (b"12345\nx\n", [true, false]),
            (b"12345\r\nx\n", [true, false]),
            (b"123456789\nx\n", [true, false]),
        ] {
            let got = lines(&[wire], 4);
            assert_eq!(got.iter().map(|l| l.is_over_limit).collect::<Vec<_>>(), over, "{wire:?}");
            assert_eq!(got.iter().map(|l| l.wire_len).sum::<usize>(), wire.len());
            assert_eq!(got[0].body.is_empty(), over[0]);
            assert_eq!(got[1].body, "x");
        }
        assert!(lines(&[b"12345"], 4)[0].is_over_limit);
    }

    #[test]
    fn bytes_over_the_limit_are_not_held() {
        let mut decoder = LineDecoder::new(10);
        for _ in 0..1000 {
            decoder.push(b"xxxxxxx");
        }
        assert_eq!(decoder.pending_bytes(), 7000);
        assert!(decoder.kept.capacity() <= 22);
    }

    #[test]
    fn shared_bytes_are_not_copied() {
        let chunk = Bytes::from_static(b"tail\n{\"a\":1}\n{");
        let mut decoder = LineDecoder::new(100);
        decoder.push(b"head ");
        let lines = decoder.push_shared(&chunk);
        assert_eq!(lines[0].body, "head tail");
        assert_eq!(lines[1].body.as_ptr(), chunk[5..].as_ptr());
        assert_eq!(decoder.pending_bytes(), 1);
    }

    /// Bytes in which line ends, CRs and byte order marks are frequent.
    fn wire() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            Just(b"\n".to_vec()),
            Just(b"\r\n".to_vec()),
            Just(b"\r".to_vec()),
            Just(BOM.to_vec()),
            proptest::collection::vec(any::<u8>(), 0..6),
        ];
        proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn any_chunking_gives_the_same_lines(
            wire in wire(),
            cuts in proptest::collection::vec(1usize..9, 1..20),
            limit in 0usize..20,
        ) {
            let whole = lines(&[&wire], limit);
            let mut chunks: Vec<&[u8]> = Vec::new();
            let mut rest = wire.as_slice();
            for cut in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (chunk, after) = rest.split_at(rest.len().min(*cut));
                chunks.push(chunk);
                rest = after;
            }
            prop_assert_eq!(&lines(&chunks, limit), &whole);
            let mut shared = LineDecoder::new(limit);
            let mut from_shared: Vec<Line> =
                chunks.iter().flat_map(|c| shared.push_shared(&Bytes::copy_from_slice(c))).collect();
            from_shared.extend(shared.finish());
            prop_assert_eq!(&from_shared, &whole);
        }

        #[test]
        fn lines_and_their_endings_are_the_stream(wire in wire()) {
            let mut joined = Vec::new();
            for line in lines(&[&wire], usize::MAX) {
                joined.extend_from_slice(&line.body);
                joined.extend_from_slice(match line.ending {
                    Ending::Lf => b"\n",
                    Ending::CrLf => b"\r\n",
                    Ending::None => b"",
                });
            }
            prop_assert_eq!(joined, wire);
        }
    }
}

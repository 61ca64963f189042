//! The short way to read what the recorder itself writes most: bytes of the wire, with the members
//! in their usual order. Whatever is otherwise in any way is left to the long way, which gives the
//! same event for all that is read here.

use bytes::Bytes;

use crate::event::{Event, What};
use crate::time::Mono;
use crate::trace::words;

/// The event of a line, if it is of the usual form.
pub(super) fn decode(line: &[u8]) -> Option<Event> {
    let mut rest = Rest(std::str::from_utf8(line).ok()?.trim_ascii_end().as_bytes());
    rest.skip(b"{\"n\":")?;
    let n = rest.number()?;
    rest.skip(b",\"t_ms\":")?;
    let at = rest.ms()?;
    let out = match rest.skip(b",\"out_ms\":") {
        Some(()) => Some(rest.ms()?),
        None => None,
    };
    rest.skip(b",\"dir\":\"")?;
    let dir = words::dir_of(rest.word()?)?;
    rest.skip(b",\"transport\":\"")?;
    let transport = words::transport_of(rest.word()?)?;
    let stream = rest.optional(b",\"stream\":")?;
    let conn = rest.optional(b",\"conn\":")?;
    let read = rest.optional(b",\"read\":")?;
    let kind = match rest.skip(b",\"event\":\"") {
        Some(()) => Some(rest.word()?),
        None => None,
    };
    rest.skip(b",\"raw\":\"")?;
    let bytes = unescape(rest.0.strip_suffix(b"\"}")?)?;
    let what = match kind {
        None => What::Bytes { bytes, read },
        Some("sse_chunk") => What::SseChunk(bytes),
        Some("body") => What::Body(bytes),
        Some(_) => return None,
    };
    Some(Event { n, at, out, dir, transport, stream, conn, what })
}

/// What is left of a line.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn skip(&mut self, text: &[u8]) -> Option<()> {
        self.0 = self.0.strip_prefix(text)?;
        Some(())
    }

    /// The digits that come next, as a number, and how many they are.
    fn digits(&mut self) -> Option<(u64, usize)> {
        let (mut number, mut count) = (0_u64, 0);
        while let Some(digit) =
            self.0.get(count).map(|byte| byte.wrapping_sub(b'0')).filter(|&digit| digit < 10)
        {
            number = number.checked_mul(10)?.checked_add(u64::from(digit))?;
            count += 1;
        }
        self.0 = self.0.get(count..)?;
        (count > 0).then_some((number, count))
    }

    /// A number as JSON has it: no zero in front.
    fn number(&mut self) -> Option<u64> {
        let has_zero = self.0.first() == Some(&b'0');
        let (number, count) = self.digits()?;
        (!has_zero || count == 1).then_some(number)
    }

    /// Milliseconds with at most six digits after the point.
    fn ms(&mut self) -> Option<Mono> {
        let whole = self.number()?.checked_mul(1_000_000)?;
        if self.skip(b".").is_none() {
            return Some(Mono(whole));
        }
        let (fraction, count) = self.digits()?;
        let unit = 10_u64.pow(u32::try_from(6_usize.checked_sub(count)?).ok()?);
        Some(Mono(whole.checked_add(fraction * unit)?))
    }

    /// A number that may be left out: the outer `None` is a member of another form.
    #[expect(clippy::option_option, reason = "two questions, each with its own answer")]
    fn optional(&mut self, name: &[u8]) -> Option<Option<u64>> {
        match self.skip(name) {
            Some(()) => self.number().map(Some),
            None => Some(None),
        }
    }

    /// Letters and `_` up to the next quote.
    fn word(&mut self) -> Option<&'a str> {
        let end = self.0.iter().position(|byte| !(byte.is_ascii_alphanumeric() || *byte == b'_'))?;
        let (word, rest) = self.0.split_at_checked(end)?;
        self.0 = rest.strip_prefix(b"\"")?;
        std::str::from_utf8(word).ok()
    }
}

/// Set in [`MEANING`] where a byte cannot stand in a string so simply.
const HARD: u16 = 0x100;

/// What a byte means in a JSON string: plain, and (from 256) after a backslash. One table, so
/// that an escape costs no branch. (What a backslash means is overwritten by the byte after it.)
const MEANING: [u16; 512] = {
    let mut meaning = [HARD; 512];
    let mut byte: u16 = 0x20;
    while byte < 256 {
        meaning[byte as usize] = byte;
        byte += 1;
    }
    meaning[b'"' as usize] = HARD;
    meaning[256 + b'"' as usize] = b'"' as u16;
    meaning[256 + b'\\' as usize] = b'\\' as u16;
    meaning[256 + b'/' as usize] = b'/' as u16;
    meaning[256 + b'b' as usize] = 0x08;
    meaning[256 + b'f' as usize] = 0x0c;
    meaning[256 + b'n' as usize] = 0x0a;
    meaning[256 + b'r' as usize] = 0x0d;
    meaning[256 + b't' as usize] = 0x09;
    meaning
};

/// The text of a JSON string without its quotes, if it has only short escapes.
fn unescape(string: &[u8]) -> Option<Bytes> {
    let mut text = vec![0; string.len()];
    let (mut len, mut all, mut is_escaped) = (0, 0, 0);
    for &byte in string {
        let meaning = MEANING[usize::from(byte) + is_escaped * 256];
        all |= meaning;
        // Not from the table: the next byte need not wait for this look-up.
        is_escaped = usize::from(byte == b'\\') & (1 - is_escaped);
        if let Some(place) = text.get_mut(len) {
            *place = (meaning & 0xff) as u8;
        }
        len += 1 - is_escaped;
    }
    if all & HARD != 0 || is_escaped == 1 {
        return None;
    }
    text.truncate(len);
    Some(Bytes::from(text))
}

//! One pass over JSON text, by the grammar of RFC 8259, as strictly as a parser reads it.

use memchr::memchr2;

use super::{Kind, NODE_LIMIT, Node};

/// The values of a text in the order in which they begin; `None` when it is not exactly one JSON
/// value, or has too many.
pub(super) fn index(text: &[u8]) -> Option<Vec<Node>> {
    let nodes = Vec::with_capacity((text.len() / 12).min(4096) + 4);
    let mut indexer = Indexer { text, at: 0, nodes, open: Vec::new() };
    indexer.run()?;
    Some(indexer.nodes)
}

/// A text being read.
struct Indexer<'a> {
    text: &'a [u8],
    at: usize,
    nodes: Vec<Node>,
    /// Containers that have not ended, outermost first.
    open: Vec<u32>,
}

impl Indexer<'_> {
    /// `None`: it is no JSON, or has too many values.
    fn run(&mut self) -> Option<()> {
        loop {
            // A value is due.
            match self.peek()? {
                b'{' => {
                    self.begin(Kind::Object)?;
                    if self.peek()? == b'}' {
                        self.end()?;
                    } else {
                        self.name()?;
                        continue;
                    }
                }
                b'[' => {
                    self.begin(Kind::Array)?;
                    if self.peek()? == b']' {
                        self.end()?;
                    } else {
                        continue;
                    }
                }
                b'"' => self.string()?,
                b't' => self.word(b"true", Kind::Bool)?,
                b'f' => self.word(b"false", Kind::Bool)?,
                b'n' => self.word(b"null", Kind::Null)?,
                _ => self.number()?,
            }
            // A value has ended: the next one is due, or its container ends too.
            loop {
                let Some(container) = self.open.last() else {
                    return self.peek().is_none().then_some(());
                };
                let is_object = self.nodes.get(*container as usize)?.kind == Kind::Object;
                match (self.peek()?, is_object) {
                    (b',', _) => {
                        self.at += 1;
                        if is_object {
                            self.name()?;
                        }
                        break;
                    }
                    (b'}', true) | (b']', false) => self.end()?,
                    _ => return None,
                }
            }
        }
    }

    /// The next byte that is no white space.
    fn peek(&mut self) -> Option<u8> {
        loop {
            let byte = *self.text.get(self.at)?;
            if !matches!(byte, b' ' | b'\n' | b'\t' | b'\r') {
                return Some(byte);
            }
            self.at += 1;
        }
    }

    fn begin(&mut self, kind: Kind) -> Option<()> {
        self.open.push(u32::try_from(self.nodes.len()).ok()?);
        self.push(kind, self.at + 1, false)
    }

    fn end(&mut self) -> Option<()> {
        self.at += 1;
        let next = u32::try_from(self.nodes.len()).ok()?;
        let node = self.nodes.get_mut(self.open.pop()? as usize)?;
        node.end = u32::try_from(self.at).ok()?;
        node.next = next;
        Some(())
    }

    /// The name of a member and its colon.
    fn name(&mut self) -> Option<()> {
        if self.peek()? != b'"' {
            return None;
        }
        self.string()?;
        if self.peek()? != b':' {
            return None;
        }
        self.at += 1;
        Some(())
    }

    fn string(&mut self) -> Option<()> {
        let (end, is_escaped) = end_of_string(self.text, self.at)?;
        self.push(Kind::String, end, is_escaped)
    }

    fn word(&mut self, word: &[u8], kind: Kind) -> Option<()> {
        let is_here = self.text.get(self.at..)?.starts_with(word);
        is_here.then(|| self.push(kind, self.at + word.len(), false))?
    }

    fn number(&mut self) -> Option<()> {
        let end = end_of_number(self.text, self.at)?;
        self.push(Kind::Number, end, false)
    }

    /// A value from here to `end`.
    fn push(&mut self, kind: Kind, end: usize, is_escaped: bool) -> Option<()> {
        if self.nodes.len() > NODE_LIMIT {
            return None;
        }
        let next = u32::try_from(self.nodes.len() + 1).ok()?;
        let (start, until) = (u32::try_from(self.at).ok()?, u32::try_from(end).ok()?);
        self.nodes.push(Node { start, end: until, next, kind, is_escaped });
        self.at = end;
        Some(())
    }
}

/// Strings up to here are looked through eight bytes at a time, which is quicker for short ones.
const SHORT_STRING_BYTES: usize = 64;

/// The same byte in all eight places of a word.
const fn eight(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

/// Where the first byte stands that ends a run of plain text in a string: a quote, a backslash, or a
/// control character.
fn first_stop(text: &[u8]) -> Option<usize> {
    // The highest bit of each byte that is 0; a borrow can only set wrong ones above the first.
    let zeros = |word: u64| word.wrapping_sub(eight(1)) & !word & eight(0x80);
    let (words, rest) = text.as_chunks::<8>();
    for (nth, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let controls = word.wrapping_sub(eight(0x20)) & !word & eight(0x80);
        let stops = zeros(word ^ eight(b'"')) | zeros(word ^ eight(b'\\')) | controls;
        if stops != 0 {
            return Some(nth * 8 + stops.trailing_zeros() as usize / 8);
        }
    }
    let stop = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20));
    stop.map(|stop| text.len() - rest.len() + stop)
}

/// One past the closing quote of the string that begins at `start`, and whether it holds escapes.
fn end_of_string(text: &[u8], start: usize) -> Option<(usize, bool)> {
    let (mut at, mut is_escaped) = (start + 1, false);
    loop {
        let rest = text.get(at..)?;
        let near = rest.get(..SHORT_STRING_BYTES.min(rest.len())).unwrap_or_default();
        at += if let Some(stop) = first_stop(near) {
            stop
        } else {
            let stop = memchr2(b'"', b'\\', rest)?;
            if rest.get(..stop)?.iter().min().is_some_and(|least| *least < 0x20) {
                return None;
            }
            stop
        };
        match text.get(at)? {
            b'"' => return Some((at + 1, is_escaped)),
            b'\\' => at = end_of_escape(text, at)?,
            _ => return None,
        }
        is_escaped = true;
    }
}

/// One past the escape that begins at `start`.
fn end_of_escape(text: &[u8], start: usize) -> Option<usize> {
    match text.get(start + 1)? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(start + 2),
        b'u' => {
            let digits = text.get(start + 2..start + 6)?;
            digits.iter().all(u8::is_ascii_hexdigit).then_some(start + 6)
        }
        _ => None,
    }
}

/// One past the number that begins at `start`: `-`, digits without a leading 0, fraction, exponent.
fn end_of_number(text: &[u8], start: usize) -> Option<usize> {
    let digits = |from: usize| {
        let rest = text.get(from..).unwrap_or_default();
        let count = rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
        (count > 0).then_some(from + count)
    };
    let whole = start + usize::from(text.get(start) == Some(&b'-'));
    let mut at = match text.get(whole)? {
        b'0' => whole + 1,
        _ => digits(whole)?,
    };
    if text.get(at) == Some(&b'.') {
        at = digits(at + 1)?;
    }
    if matches!(text.get(at), Some(b'e' | b'E')) {
        let is_signed = matches!(text.get(at + 1), Some(b'+' | b'-'));
        at = digits(at + 1 + usize::from(is_signed))?;
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn eight_bytes_at_a_time_stop_where_single_ones_do(
            bytes in prop::collection::vec(
                prop_oneof![4 => any::<u8>(), 4 => 0x1e..0x24_u8, 1 => 0x5a..0x5e_u8, 1 => 0x7f..0x81_u8, 8 => Just(b'x')],
                0..40,
            ),
        ) {
            let single = bytes.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20));
            prop_assert_eq!(first_stop(&bytes), single);
        }
    }
}

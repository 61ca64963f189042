//! One JSON text over several lines: a message that its sender should have written on one.

use super::row::Source;
use crate::time::Mono;

/// Lines of one group at most. ours.
const LINES_LIMIT: usize = 100_000;

/// Bytes of one group at most. ours.
const BYTES_LIMIT: usize = 4 << 20;

/// Lines that may be the parts of one JSON text.
#[derive(Debug, Default)]
pub(super) struct Group {
    /// The lines joined by LF.
    pub text: Vec<u8>,
    /// Where each line stands, when it was read, and the number of its event.
    pub lines: Vec<(Source, Mono, u64)>,
    depth: Depth,
}

/// What a line did to a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// More lines are needed.
    Open,
    /// The brackets are closed: the text may be whole.
    Closed,
    /// It is no JSON, or too much.
    Broken,
}

/// Open brackets of a JSON text.
#[derive(Debug, Default, Clone, Copy)]
struct Depth(i64);

impl Group {
    /// A group that begins with this line, when the line looks like the first of several: it opens
    /// a bracket that it does not close, and ends where a printer would break.
    pub(super) fn begin(line: &[u8], place: (Source, Mono, u64)) -> Option<Group> {
        let trimmed = line.trim_ascii();
        let is_broken_off = matches!(trimmed.last(), Some(b'{' | b'[' | b',' | b':'));
        let mut group = Group::default();
        (trimmed.first() == Some(&b'{') && is_broken_off && group.push(line, place) == Step::Open)
            .then_some(group)
    }

    /// Adds a line.
    pub(super) fn push(&mut self, line: &[u8], place: (Source, Mono, u64)) -> Step {
        if !self.text.is_empty() {
            self.text.push(b'\n');
        }
        self.text.extend_from_slice(line);
        self.lines.push(place);
        match self.depth.after(line) {
            Some(Depth(0)) => Step::Closed,
            Some(depth) if self.lines.len() < LINES_LIMIT && self.text.len() < BYTES_LIMIT => {
                self.depth = depth;
                Step::Open
            }
            _ => Step::Broken,
        }
    }

    /// Where the whole group stands, and when its first byte was read.
    pub(super) fn place(&self) -> Option<(Source, Mono)> {
        let (first, at, _) = self.lines.first()?;
        let (last, _, _) = self.lines.last()?;
        let len = self.lines.iter().map(|(source, _, _)| source.len).sum();
        Some((Source { last: last.last, len, ..*first }, *at))
    }
}

impl Depth {
    /// The depth after a line; `None` when the line breaks off inside a string or closes more than
    /// was open.
    fn after(self, line: &[u8]) -> Option<Depth> {
        let (mut depth, mut in_string, mut is_escaped) = (self.0, false, false);
        for byte in line {
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' if in_string => is_escaped = true,
                b'"' => in_string = !in_string,
                _ if in_string => {}
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
        }
        (depth >= 0 && !in_string).then_some(Depth(depth))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(lines: &[&str]) -> Option<Step> {
        let place = (Source::default(), Mono(0), 1);
        let (first, rest) = lines.split_first()?;
        let mut group = Group::begin(first.as_bytes(), place)?;
        Some(rest.iter().fold(Step::Open, |_, line| group.push(line.as_bytes(), place)))
    }

    #[test]
    fn printed_json_closes_and_other_text_does_not_begin() {
        let cases: [(&[&str], Option<Step>); 7] = [
            (&["{", "  \"a\": [", "    1", "  ]", "}"], Some(Step::Closed)),
            (&["{ \"a\": \"}\\\"}\",", "  \"b\": 2"], Some(Step::Open)),
            (&["{", "}}"], Some(Step::Broken)),
            (&["{", "\"text that never ends"], Some(Step::Broken)),
            (&["[2026-01-01] {"], None),
            (&["{starting up"], None),
            (&["plain text"], None),
        ];
        for (lines, expected) in cases {
            assert_eq!(steps(lines), expected, "{lines:?}");
        }
    }
}

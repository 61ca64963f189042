//! One JSON text over several lines: a message that its sender should have written on one.

use super::row::Source;
use crate::time::Mono;

/// Lines of one group at most. ours.
const LINES_LIMIT: usize = 100_000;

/// Bytes of one group at most. ours.
const BYTES_LIMIT: usize = 4 << 20;

/// Members by which the beginning of a message is known.
const MESSAGE_MEMBERS: [&[u8]; 3] = [b"\"jsonrpc\"", b"\"result\":", b"\"method\":"];

/// Lines that may be the parts of one JSON text.
#[derive(Debug, Default)]
pub(super) struct Group {
    /// The lines joined by LF.
    pub text: Vec<u8>,
    /// Where each line stands, when it was read, and the number of its event.
    pub lines: Vec<(Source, Mono, u64)>,
    /// Which LF of the text stand inside a string, where JSON allows none.
    breaks: Vec<usize>,
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

/// Open brackets of a JSON text, and whether it stands inside a string.
#[derive(Debug, Default, Clone, Copy)]
struct Depth {
    brackets: i64,
    in_string: bool,
}

impl Group {
    /// A group that begins with this line, when the line looks like the first of several: it opens
    /// a bracket that it does not close, and ends where a printer would break; or it begins like a
    /// message and breaks off inside a string.
    pub(super) fn begin(line: &[u8], place: (Source, Mono, u64)) -> Option<Group> {
        let trimmed = line.trim_ascii();
        let is_broken_off = matches!(trimmed.last(), Some(b'{' | b'[' | b',' | b':'));
        if trimmed.first() != Some(&b'{') {
            return None;
        }
        let mut group = Group::default();
        let is_open = group.push(line, place) == Step::Open;
        (is_open && (is_broken_off || group.depth.in_string)).then_some(group)
    }

    /// Adds a line.
    pub(super) fn push(&mut self, line: &[u8], place: (Source, Mono, u64)) -> Step {
        if !self.text.is_empty() {
            if self.depth.in_string {
                self.breaks.push(self.text.len());
            }
            self.text.push(b'\n');
        }
        self.text.extend_from_slice(line);
        self.lines.push(place);
        self.depth = self.depth.after(line);
        let is_message =
            || MESSAGE_MEMBERS.iter().any(|name| memchr::memmem::find(&self.text, name).is_some());
        match self.depth {
            Depth { brackets: 0, in_string: false } => Step::Closed,
            Depth { brackets, .. } if brackets < 0 => Step::Broken,
            Depth { in_string: true, .. } if !is_message() => Step::Broken,
            _ if self.lines.len() < LINES_LIMIT && self.text.len() < BYTES_LIMIT => Step::Open,
            _ => Step::Broken,
        }
    }

    /// The text as one JSON text: line breaks inside strings written as they must be.
    pub(super) fn whole(&self) -> Vec<u8> {
        let mut whole = Vec::with_capacity(self.text.len() + self.breaks.len());
        let mut rest = 0;
        for at in &self.breaks {
            whole.extend_from_slice(self.text.get(rest..*at).unwrap_or_default());
            whole.extend_from_slice(b"\\n");
            rest = at + 1;
        }
        whole.extend_from_slice(self.text.get(rest..).unwrap_or_default());
        whole
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
    /// The depth after a line; negative when it closes more than was open.
    fn after(self, line: &[u8]) -> Depth {
        let (mut depth, mut in_string, mut is_escaped) = (self.brackets, self.in_string, false);
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
        Depth { brackets: depth, in_string }
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
        let cases: [(&[&str], Option<Step>); 10] = [
            (&["{", "  \"a\": [", "    1", "  ]", "}"], Some(Step::Closed)),
            (&["{ \"a\": \"}\\\"}\",", "  \"b\": 2"], Some(Step::Open)),
            (&["{", "}}"], Some(Step::Broken)),
            (&["{", "\"text that never ends"], Some(Step::Broken)),
            (&["[2026-01-01] {"], None),
            (&["{starting up"], None),
            (&["plain text"], None),
            (&["{\"result\":{\"text\":\"one", "two\"},\"id\":1}"], Some(Step::Closed)),
            (&["{\"result\":{\"text\":\"one", "two"], Some(Step::Open)),
            (&["{\"text\":\"one", "two\"}"], None),
        ];
        for (lines, expected) in cases {
            assert_eq!(steps(lines), expected, "{lines:?}");
        }
    }

    #[test]
    fn a_break_inside_a_string_is_read_as_one() {
        let place = (Source::default(), Mono(0), 1);
        let mut group = Group::begin(b"{\"result\":\"one", place).unwrap();
        assert_eq!(group.push(b"two\",", place), Step::Open);
        assert_eq!(group.push(b"\"id\":1}", place), Step::Closed);
        assert_eq!(String::from_utf8(group.whole()).unwrap(), "{\"result\":\"one\\ntwo\",\n\"id\":1}");
    }
}

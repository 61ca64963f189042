//! The shape of one JSON message, as it was sent.
//!
//! Only the message that a person has opened is read like this. Text is never rewritten: the
//! order of members, duplicates, big numbers and lone surrogates all stand as on the wire, and a
//! text that breaks off or goes wrong keeps everything before the fault. Nesting costs no stack.

use std::ops::Range;

use memchr::memchr2;

/// How many values of one message are read; beyond it the raw text has to do.
const NODE_LIMIT: usize = 2_000_000;

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Object,
    Array,
    String,
    Number,
    /// `true`, `false` or `null`.
    Word,
}

/// One value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Node {
    /// How deep it lies; 0 for the outermost value.
    pub(super) depth: usize,
    /// The member name with its quotation marks, as bytes of the text.
    pub(super) key: Option<Range<usize>>,
    /// The value as bytes of the text, with its brackets or quotation marks.
    pub(super) value: Range<usize>,
    /// What it is.
    pub(super) kind: Kind,
    /// How many values lie directly in it.
    pub(super) children: usize,
    /// The index just past everything that lies in it.
    pub(super) end: usize,
}

/// Every value of a text, outermost first, each before what lies in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Shape {
    /// The values.
    pub(super) nodes: Vec<Node>,
    /// Where the text stops being JSON, and why.
    pub(super) fault: Option<(usize, &'static str)>,
}

/// What may come next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expect {
    Value,
    /// The first value of an array, or its end.
    ValueOrEnd,
    /// The first member of an object, or its end.
    KeyOrEnd,
    Key,
    CommaOrEnd,
    Nothing,
}

/// Reads the shape of a text. Never fails: see [`Shape::fault`].
pub(super) fn shape(text: &str) -> Shape {
    let mut reader =
        Reader { bytes: text.as_bytes(), at: 0, shape: Shape::default(), open: Vec::new(), key: None };
    if let Err(why) = reader.run() {
        reader.shape.fault = Some((reader.at, why));
    }
    let (at, count) = (reader.at, reader.shape.nodes.len());
    for idx in reader.open {
        if let Some(node) = reader.shape.nodes.get_mut(idx) {
            node.value.end = at;
            node.end = count;
        }
    }
    reader.shape
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    shape: Shape,
    /// Containers that have begun and not ended, outermost first.
    open: Vec<usize>,
    /// The name of the member whose value comes next.
    key: Option<Range<usize>>,
}

impl Reader<'_> {
    fn run(&mut self) -> Result<(), &'static str> {
        if self.bytes.starts_with(b"\xef\xbb\xbf") {
            self.at = 3;
        }
        let mut expect = Expect::Value;
        loop {
            self.skip_blanks();
            let Some(byte) = self.bytes.get(self.at).copied() else {
                return if expect == Expect::Nothing { Ok(()) } else { Err("the text breaks off") };
            };
            expect = match (expect, byte) {
                (Expect::Nothing, _) => return Err("more follows after the end of the value"),
                (Expect::KeyOrEnd | Expect::CommaOrEnd, b'}') if self.is_in(Kind::Object) => self.close(),
                (Expect::ValueOrEnd | Expect::CommaOrEnd, b']') if self.is_in(Kind::Array) => self.close(),
                (Expect::CommaOrEnd, b',') => {
                    self.at += 1;
                    if self.is_in(Kind::Object) { Expect::Key } else { Expect::Value }
                }
                (Expect::CommaOrEnd, _) => return Err("a comma or the end is missing"),
                (Expect::Key | Expect::KeyOrEnd, b'"') => self.read_key()?,
                (Expect::Key | Expect::KeyOrEnd, _) => return Err("a member name is missing"),
                (Expect::Value | Expect::ValueOrEnd, _) => self.read_value(byte)?,
            };
        }
    }

    fn skip_blanks(&mut self) {
        while matches!(self.bytes.get(self.at), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn is_in(&self, kind: Kind) -> bool {
        self.open.last().and_then(|idx| self.shape.nodes.get(*idx)).is_some_and(|node| node.kind == kind)
    }

    fn after_value(&self) -> Expect {
        if self.open.is_empty() { Expect::Nothing } else { Expect::CommaOrEnd }
    }

    fn close(&mut self) -> Expect {
        self.at += 1;
        let count = self.shape.nodes.len();
        if let Some(node) = self.open.pop().and_then(|idx| self.shape.nodes.get_mut(idx)) {
            node.value.end = self.at;
            node.end = count;
        }
        self.after_value()
    }

    fn read_key(&mut self) -> Result<Expect, &'static str> {
        let start = self.at;
        self.skip_string()?;
        self.key = Some(start..self.at);
        self.skip_blanks();
        if self.bytes.get(self.at) != Some(&b':') {
            return Err("a colon is missing");
        }
        self.at += 1;
        Ok(Expect::Value)
    }

    fn read_value(&mut self, first: u8) -> Result<Expect, &'static str> {
        if self.shape.nodes.len() >= NODE_LIMIT {
            return Err("too many values to show as a tree; see the raw text");
        }
        let start = self.at;
        let kind = match first {
            b'{' => Kind::Object,
            b'[' => Kind::Array,
            b'"' => Kind::String,
            b'-' | b'0'..=b'9' => Kind::Number,
            b't' | b'f' | b'n' => Kind::Word,
            _ => return Err("this begins no value"),
        };
        match kind {
            Kind::Object | Kind::Array => self.at += 1,
            Kind::String => self.skip_string()?,
            Kind::Number | Kind::Word => self.skip_plain(kind)?,
        }
        if let Some(parent) = self.open.last().and_then(|idx| self.shape.nodes.get_mut(*idx)) {
            parent.children += 1;
        }
        let idx = self.shape.nodes.len();
        let (depth, key) = (self.open.len(), self.key.take());
        self.shape.nodes.push(Node { depth, key, value: start..self.at, kind, children: 0, end: idx + 1 });
        match kind {
            Kind::Object | Kind::Array => {
                self.open.push(idx);
                Ok(if kind == Kind::Object { Expect::KeyOrEnd } else { Expect::ValueOrEnd })
            }
            _ => Ok(self.after_value()),
        }
    }

    /// Passes over a string; its inside is not judged, only its end is found.
    fn skip_string(&mut self) -> Result<(), &'static str> {
        let mut at = self.at + 1;
        loop {
            let rest = self.bytes.get(at..).unwrap_or_default();
            match memchr2(b'"', b'\\', rest) {
                Some(found) if rest.get(found) == Some(&b'"') => {
                    self.at = at + found + 1;
                    return Ok(());
                }
                Some(found) => at += found + 2,
                None => return Err("a string has no end"),
            }
        }
    }

    fn skip_plain(&mut self, kind: Kind) -> Result<(), &'static str> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let length = rest.iter().take_while(|b| b.is_ascii_alphanumeric() || b"+-.".contains(b)).count();
        let word = rest.get(..length).unwrap_or_default();
        if kind == Kind::Word && !matches!(word, b"true" | b"false" | b"null") {
            return Err("this is no word of JSON");
        }
        if kind == Kind::Number && serde_json::from_slice::<&serde_json::value::RawValue>(word).is_err() {
            return Err("this is no number");
        }
        self.at += length;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn outline(text: &str) -> Vec<String> {
        let part = |range: &Range<usize>| text.get(range.clone()).unwrap().to_owned();
        shape(text)
            .nodes
            .iter()
            .map(|n| {
                let key = n.key.as_ref().map(|k| format!("{}:", part(k))).unwrap_or_default();
                format!("{}{key}{} {} {}", " ".repeat(n.depth), part(&n.value), n.children, n.end)
            })
            .collect()
    }

    #[test]
    fn order_duplicates_and_big_numbers_stand_as_sent() {
        let text = r#" {"b":18446744073709551617.50, "a":[1,"\ud800"],"b":null}"#;
        assert_eq!(
            outline(text),
            [
                r#"{"b":18446744073709551617.50, "a":[1,"\ud800"],"b":null} 3 6"#,
                r#" "b":18446744073709551617.50 0 2"#,
                r#" "a":[1,"\ud800"] 2 5"#,
                "  1 0 4",
                r#"  "\ud800" 0 5"#,
                r#" "b":null 0 6"#,
            ]
        );
        assert_eq!(shape(text).fault, None);
    }

    #[test]
    fn what_stands_before_a_fault_is_kept() {
        let cases = [
            (r#"{"a":1,"#, 2, 7, "the text breaks off"),
            (r#"{"a" 1}"#, 1, 5, "a colon is missing"),
            ("[1 2]", 2, 3, "a comma or the end is missing"),
            ("[1,]", 2, 3, "this begins no value"),
            (r#"{"a":tru}"#, 1, 5, "this is no word of JSON"),
            ("[01]", 1, 1, "this is no number"),
            (r#"["a"#, 1, 1, "a string has no end"),
            ("{} x", 1, 3, "more follows after the end of the value"),
            ("[}", 1, 1, "this begins no value"),
            ("", 0, 0, "the text breaks off"),
        ];
        for (text, nodes, at, why) in cases {
            let shape = shape(text);
            assert_eq!((shape.nodes.len(), shape.fault), (nodes, Some((at, why))), "{text}");
        }
    }

    #[test]
    fn depth_costs_no_stack() {
        let text = "[".repeat(200_000);
        assert_eq!(shape(&text).nodes.len(), 200_000);
    }

    proptest! {
        #[test]
        fn agrees_with_a_parser_on_what_is_json(text in r#"[\[\]{}",:0-9a-z\\ .-]{0,40}"#) {
            let is_json = serde_json::from_str::<&serde_json::value::RawValue>(&text).is_ok();
            let shape = shape(&text);
            if is_json {
                prop_assert_eq!(shape.fault, None);
            }
            for node in &shape.nodes {
                prop_assert!(text.get(node.value.clone()).is_some());
                prop_assert!(node.end <= shape.nodes.len());
            }
        }
    }
}

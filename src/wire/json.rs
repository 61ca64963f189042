//! An index over JSON text: every value found by its place, nothing copied.
//!
//! Rules look into messages at many places. A [`Document`] is read in one pass over the text; from
//! then on each step into an object costs no more than its members. Values keep their raw text, so
//! that the digits of a number and the escapes of a string can be compared as they were sent.

use std::borrow::Cow;

use bytes::Bytes;
use bytestring::ByteString;
use memchr::memchr2;

use super::jsonrpc;
use super::lines::BOM;

/// A longer text is not indexed. ours: as long as the longest line that is read.
pub const DOCUMENT_LIMIT_BYTES: usize = 64 << 20;

/// A text with more values is not indexed. ours: 16 MB of index, far more than a message of the
/// protocol has; big results are few long strings.
pub const NODE_LIMIT: usize = 1 << 20;

/// JSON text and where its values stand in it.
#[derive(Debug, Clone)]
pub struct Document {
    text: ByteString,
    nodes: Vec<Node>,
}

/// One value; the children of a container follow it. In an object names and values take turns.
#[derive(Debug, Clone, Copy)]
struct Node {
    start: u32,
    end: u32,
    /// The first node that is not part of it.
    next: u32,
    kind: Kind,
    /// A string with escapes in it.
    is_escaped: bool,
}

/// The types of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `null`
    Null,
    /// `true` or `false`
    Bool,
    /// A number.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

/// A value in a document.
#[derive(Debug, Clone, Copy)]
pub struct Value<'a> {
    document: &'a Document,
    at: u32,
}

impl Document {
    /// Indexes `text`. `None` when it is too long, or is not exactly one JSON value; a lone
    /// surrogate in an escape is JSON.
    #[must_use]
    pub fn new(text: Bytes) -> Option<Document> {
        if text.len() > DOCUMENT_LIMIT_BYTES {
            return None;
        }
        let text = match text.strip_prefix(BOM) {
            Some(rest) => text.slice_ref(rest),
            None => text,
        };
        let text = ByteString::try_from(text).ok()?;
        let nodes = index(text.as_bytes())?;
        Some(Document { text, nodes })
    }

    /// The whole value.
    #[must_use]
    pub fn root(&self) -> Value<'_> {
        Value { document: self, at: 0 }
    }

    /// The value at a position that [`Value::position`] gave.
    #[must_use]
    pub fn at(&self, position: u32) -> Option<Value<'_>> {
        self.nodes.get(position as usize).map(|_| Value { document: self, at: position })
    }

    fn node(&self, at: u32) -> Node {
        let nothing = Node { start: 0, end: 0, next: u32::MAX, kind: Kind::Null, is_escaped: false };
        self.nodes.get(at as usize).copied().unwrap_or(nothing)
    }

    /// A string between its quotes, as sent.
    fn inside(&self, node: Node) -> &str {
        self.text.get(node.start as usize + 1..(node.end as usize).saturating_sub(1)).unwrap_or_default()
    }

    fn slice(&self, node: Node) -> &str {
        self.text.get(node.start as usize..node.end as usize).unwrap_or_default()
    }
}

fn index(text: &[u8]) -> Option<Vec<Node>> {
    let nodes = Vec::with_capacity((text.len() / 12).min(4096) + 4);
    let mut indexer = Indexer { text, at: 0, nodes, open: Vec::new() };
    indexer.run()?;
    Some(indexer.nodes)
}

/// Reads a text once, by the grammar of RFC 8259, as strictly as a parser does.
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

/// Strings up to here are looked through byte by byte, which is quicker for short ones.
const SHORT_STRING_BYTES: usize = 32;

/// One past the closing quote of the string that begins at `start`, and whether it holds escapes.
fn end_of_string(text: &[u8], start: usize) -> Option<(usize, bool)> {
    let (mut at, mut is_escaped) = (start + 1, false);
    loop {
        let rest = text.get(at..)?;
        let stops = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
        let near = rest.get(..SHORT_STRING_BYTES.min(rest.len())).unwrap_or_default();
        at += match near.iter().position(stops) {
            Some(stop) => stop,
            None => {
                let stop = memchr2(b'"', b'\\', rest)?;
                let passed = rest.get(..stop)?;
                if passed.iter().fold(false, |found, byte| found | (*byte < 0x20)) {
                    return None;
                }
                stop
            }
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

impl<'a> Value<'a> {
    /// Its type.
    #[must_use]
    pub fn kind(self) -> Kind {
        self.document.node(self.at).kind
    }

    /// Its text as sent.
    #[must_use]
    pub fn raw(self) -> &'a str {
        self.document.slice(self.document.node(self.at))
    }

    /// Which bytes of the text it is.
    #[must_use]
    pub fn span(self) -> std::ops::Range<usize> {
        let node = self.document.node(self.at);
        node.start as usize..node.end as usize
    }

    /// Where it stands in its document.
    #[must_use]
    pub fn position(self) -> u32 {
        self.at
    }

    /// The value of the same document that begins at a byte of its text, if one does.
    #[must_use]
    pub fn starting_at(self, offset: usize) -> Option<Value<'a>> {
        let document = self.document;
        // Values stand in the order in which they begin.
        let at = document.nodes.partition_point(|node| (node.start as usize) < offset);
        let is_here = document.nodes.get(at).is_some_and(|node| node.start as usize == offset);
        is_here.then_some(Value { document, at: u32::try_from(at).ok()? })
    }

    /// A member of an object; the last one of this name, as parsers read duplicates.
    #[must_use]
    pub fn get(self, name: &str) -> Option<Value<'a>> {
        if self.kind() != Kind::Object {
            return None;
        }
        let found = self.children().pairs().filter(|(key, _)| key.is_text(name)).last();
        found.map(|(_, value)| value)
    }

    /// The value at a path of member names.
    #[must_use]
    pub fn at(self, path: &[&str]) -> Option<Value<'a>> {
        path.iter().try_fold(self, |value, name| value.get(name))
    }

    /// The members of an object in the order sent, duplicates included; nothing for other types.
    pub fn members(self) -> impl Iterator<Item = (Cow<'a, str>, Value<'a>)> {
        let is_object = self.kind() == Kind::Object;
        let pairs = self.children().pairs().filter(move |_| is_object);
        pairs.map(|(key, value)| (key.text().unwrap_or_default(), value))
    }

    /// The items of an array; nothing for other types.
    pub fn items(self) -> impl Iterator<Item = Value<'a>> {
        let is_array = self.kind() == Kind::Array;
        self.children().filter(move |_| is_array)
    }

    /// How many items an array has, or members an object.
    #[must_use]
    pub fn len(self) -> usize {
        let children = self.children().count();
        if self.kind() == Kind::Object { children / 2 } else { children }
    }

    /// It has neither items nor members.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.children().next().is_none()
    }

    /// A string, unescaped.
    #[must_use]
    pub fn text(self) -> Option<Cow<'a, str>> {
        let node = self.document.node(self.at);
        if node.kind != Kind::String {
            return None;
        }
        if !node.is_escaped {
            return Some(Cow::Borrowed(self.document.inside(node)));
        }
        jsonrpc::text(self.document.slice(node))
    }

    /// It is this string.
    #[must_use]
    pub fn is_text(self, text: &str) -> bool {
        let node = self.document.node(self.at);
        if node.is_escaped {
            return self.text().as_deref() == Some(text);
        }
        let quoted = self.document.text.as_bytes().get(node.start as usize + 1..node.end as usize - 1);
        node.kind == Kind::String && quoted == Some(text.as_bytes())
    }

    /// `true` or `false`.
    #[must_use]
    pub fn bool(self) -> Option<bool> {
        (self.kind() == Kind::Bool).then(|| self.raw() == "true")
    }

    /// An integer of 64 bits, however it is written (`7`, `7.0`).
    #[must_use]
    pub fn integer(self) -> Option<i64> {
        match self.id()? {
            jsonrpc::Id::Int(digits) => digits.parse().ok(),
            jsonrpc::Id::Str(_) => None,
        }
    }

    /// A number, as near as a double comes.
    #[must_use]
    pub fn number(self) -> Option<f64> {
        if self.kind() == Kind::Number { self.raw().parse().ok() } else { None }
    }

    /// An id or a token: a string or an integer, with its type.
    #[must_use]
    pub fn id(self) -> Option<jsonrpc::Id> {
        match self.kind() {
            Kind::String | Kind::Number => jsonrpc::Id::from_raw(self.raw()),
            _ => None,
        }
    }

    /// It is a JSON object.
    #[must_use]
    pub fn is_object(self) -> bool {
        self.kind() == Kind::Object
    }

    /// It is a JSON array.
    #[must_use]
    pub fn is_array(self) -> bool {
        self.kind() == Kind::Array
    }

    /// It is `null`.
    #[must_use]
    pub fn is_null(self) -> bool {
        self.kind() == Kind::Null
    }

    fn children(self) -> Children<'a> {
        let node = self.document.node(self.at);
        Children { document: self.document, next: self.at + 1, end: node.next }
    }
}

/// The direct children of a container.
#[derive(Debug, Clone)]
struct Children<'a> {
    document: &'a Document,
    next: u32,
    end: u32,
}

impl<'a> Iterator for Children<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        if self.next >= self.end {
            return None;
        }
        let value = Value { document: self.document, at: self.next };
        self.next = self.document.node(self.next).next;
        Some(value)
    }
}

impl<'a> Children<'a> {
    /// Names and values of an object.
    fn pairs(self) -> Pairs<'a> {
        Pairs(self)
    }
}

/// Children taken two by two.
#[derive(Debug, Clone)]
struct Pairs<'a>(Children<'a>);

impl<'a> Iterator for Pairs<'a> {
    type Item = (Value<'a>, Value<'a>);

    fn next(&mut self) -> Option<(Value<'a>, Value<'a>)> {
        Some((self.0.next()?, self.0.next()?))
    }
}

#[cfg(test)]
mod tests;

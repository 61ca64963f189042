//! An index over JSON text: every value found by its place, nothing copied.
//!
//! Rules look into messages at many places. A [`Document`] is read in one pass over the text; from
//! then on each step into an object costs no more than its members. Values keep their raw text, so
//! that the digits of a number and the escapes of a string can be compared as they were sent.

mod index;

use std::borrow::Cow;

use bytes::Bytes;
use bytestring::ByteString;

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
        let nodes = index::index(text.as_bytes())?;
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

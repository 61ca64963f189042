//! JSON-RPC 2.0 envelopes, read as borrowed raw members.
//!
//! Only the outermost object is looked at; `params`, `result` and `error` stay raw text, so that
//! order, duplicates, explicit `null`, big numbers and the type of an id are all kept, and a large
//! message costs no more than finding its members.

use std::borrow::Cow;

use serde_json::value::RawValue;

/// A request id or a progress token, with its type. `7` and `"7"` differ; `7.0` equals `7`
/// (RPC-04, RPC-09).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Id {
    /// An integer, as its canonical decimal digits (so that numbers beyond 64 bits are kept).
    Int(Box<str>),
    /// A string, unescaped.
    Str(Box<str>),
}

impl Id {
    /// The id in raw JSON text; `None` when it is neither a string nor an integer.
    #[must_use]
    pub fn from_raw(_raw: &str) -> Option<Id> {
        unimplemented!()
    }
}

impl std::fmt::Display for Id {
    /// `7` or `"7"`: as JSON.
    fn fmt(&self, _f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        unimplemented!()
    }
}

/// What a message is, by its members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `method` and `id`.
    Request,
    /// `method`, no `id` member at all.
    Notification,
    /// `result`.
    Result,
    /// `error`.
    Error,
    /// None of these, or several at once (RPC-02).
    Invalid,
}

/// One message: its members as borrowed raw text.
#[derive(Debug, Clone)]
pub struct Envelope<'a> {
    /// What it is.
    pub kind: Kind,
    /// Every member in the order sent, duplicates included.
    pub members: Vec<(Cow<'a, str>, &'a RawValue)>,
    /// What is wrong with the envelope itself.
    pub faults: Vec<EnvelopeFault>,
}

/// What can be wrong with an envelope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnvelopeFault {
    /// `jsonrpc` is absent or not exactly `"2.0"` (RPC-01).
    BadVersion,
    /// No `method`, `result` or `error`, or `method` with one of the others (RPC-02).
    NoKind,
    /// `result` and `error` in one message (RPC-03).
    ResultAndError,
    /// `id` is present and neither a string nor an integer; holds its raw text (RPC-04).
    BadId(String),
    /// A member occurs more than once; holds its name.
    DuplicateMember(String),
    /// `method` is not a string.
    MethodNotString,
}

impl<'a> Envelope<'a> {
    /// The last member of this name, as JSON parsers read duplicates.
    #[must_use]
    pub fn member(&self, _name: &str) -> Option<&'a RawValue> {
        unimplemented!()
    }

    /// The id, when it is a string or an integer.
    #[must_use]
    pub fn id(&self) -> Option<Id> {
        unimplemented!()
    }

    /// An `id` member exists, of whatever type.
    #[must_use]
    pub fn has_id(&self) -> bool {
        unimplemented!()
    }

    /// The method, unescaped.
    #[must_use]
    pub fn method(&self) -> Option<Cow<'a, str>> {
        unimplemented!()
    }
}

/// What one frame (line, body, SSE data) holds.
#[derive(Debug, Clone)]
pub enum Frame<'a> {
    /// One message.
    Message(Envelope<'a>),
    /// A top-level array, its items read one by one (RPC-22); items that are no objects are
    /// `Invalid` envelopes.
    Batch(Vec<Envelope<'a>>),
    /// JSON, but neither an object nor an array.
    OtherJson,
    /// White space only.
    Blank,
    /// Not JSON; says why and at which byte.
    NotJson {
        /// What the parser said.
        why: String,
        /// Offset of the byte at fault, from 0.
        at: usize,
    },
}

/// Reads one frame. A UTF-8 byte order mark before the text is passed over. Never panics,
/// whatever the bytes and however deep the nesting.
#[must_use]
pub fn read(_bytes: &[u8]) -> Frame<'_> {
    unimplemented!()
}

/// The raw text at a path of member names below `raw`, such as `["_meta", "progressToken"]`;
/// `None` where a step is missing or is no object. Reads only along the path.
#[must_use]
pub fn at<'a>(_raw: &'a RawValue, _path: &[&str]) -> Option<&'a RawValue> {
    unimplemented!()
}

/// The string in raw JSON text, unescaped; `None` when it is no string. Lone surrogates are
/// replaced, not refused.
#[must_use]
pub fn string(_raw: &RawValue) -> Option<Cow<'_, str>> {
    unimplemented!()
}

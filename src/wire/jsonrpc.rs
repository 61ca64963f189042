//! JSON-RPC 2.0 envelopes, read as borrowed raw members.
//!
//! Only the outermost object is looked at; `params`, `result` and `error` stay raw text, so that
//! order, duplicates, explicit `null`, big numbers and the type of an id are all kept, and a large
//! message costs no more than finding its members. Depth of nesting is no limit: the raw text of
//! a member is skipped without recursion.

mod id;
mod members;

use std::borrow::Cow;

use serde_json::value::RawValue;

pub use id::Id;
pub(super) use members::text;
pub use members::{at, members, string};

/// Members of one object that are kept; further ones are counted (`OverLimit`). ours: the longest
/// envelope of any era has four.
pub const MEMBER_LIMIT: usize = 256;

/// Messages of one batch that are read; further ones are counted (`OverLimit`). ours: far more
/// than a peer would send, a few megabytes at most.
pub const BATCH_LIMIT: usize = 10_000;

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
    /// Every member in the order sent, duplicates included; at most [`MEMBER_LIMIT`].
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
    /// `id` is present and neither a string nor an integer; holds its raw text (RPC-04). A `null`
    /// in an error is none: it stands for a request that could not be read.
    BadId(String),
    /// A member occurs more than once; holds its name.
    DuplicateMember(String),
    /// `method` is not a string.
    MethodNotString,
    /// This many members, or messages of a batch, were too many to keep.
    OverLimit(usize),
}

impl<'a> Envelope<'a> {
    /// The last member of this name, as JSON parsers read duplicates.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<&'a RawValue> {
        self.members.iter().rev().find(|(n, _)| n == name).map(|(_, raw)| *raw)
    }

    /// The id, when it is a string or an integer.
    #[must_use]
    pub fn id(&self) -> Option<Id> {
        self.member("id").and_then(|raw| Id::from_raw(raw.get()))
    }

    /// An `id` member exists, of whatever type.
    #[must_use]
    pub fn has_id(&self) -> bool {
        self.member("id").is_some()
    }

    /// The method, unescaped.
    #[must_use]
    pub fn method(&self) -> Option<Cow<'a, str>> {
        self.member("method").and_then(string)
    }

    /// Judges the members of one object. `left_out`: how many more there were.
    fn new(members: Vec<(Cow<'a, str>, &'a RawValue)>, left_out: usize) -> Envelope<'a> {
        let named = members.iter().map(|(name, raw)| (Cow::Borrowed(&**name), raw.get()));
        let Shape { kind, faults, .. } = Shape::of(named, left_out);
        Envelope { kind, members, faults }
    }
}

/// What the members of an object make of it, whoever has read them.
#[derive(Debug, Clone)]
pub struct Shape {
    /// What it is.
    pub kind: Kind,
    /// The id, when it is a string or an integer.
    pub id: Option<Id>,
    /// It has `jsonrpc` or `method`: it is meant to be a message, well formed or not.
    pub is_meant: bool,
    /// It has `jsonrpc`.
    pub has_version: bool,
    /// What is wrong with the envelope itself.
    pub faults: Vec<EnvelopeFault>,
}

impl Shape {
    /// Judges names and raw values, in the order sent. `left_out`: how many more there were.
    pub fn of<'a>(members: impl Iterator<Item = (Cow<'a, str>, &'a str)>, left_out: usize) -> Shape {
        let [mut version, mut method, mut id, mut result, mut error, mut params] = [None; 6];
        let mut others: Vec<Cow<'a, str>> = Vec::new();
        let mut twice: Vec<Cow<'a, str>> = Vec::new();
        for (name, raw) in members {
            let known = match &*name {
                "jsonrpc" => &mut version,
                "method" => &mut method,
                "id" => &mut id,
                "result" => &mut result,
                "error" => &mut error,
                "params" => &mut params,
                _ if others.contains(&name) => &mut Some(raw),
                _ => {
                    others.push(name);
                    continue;
                }
            };
            if known.replace(raw).is_some() && !twice.contains(&name) {
                twice.push(name);
            }
        }
        let (is_result, is_error) = (result.is_some(), error.is_some());
        let mut faults = Vec::new();
        if version.and_then(members::text).as_deref() != Some("2.0") {
            faults.push(EnvelopeFault::BadVersion);
        }
        let kind = match (method, is_result, is_error) {
            (Some(_), false, false) if id.is_some() => Kind::Request,
            (Some(_), false, false) => Kind::Notification,
            (None, true, false) => Kind::Result,
            (None, false, true) => Kind::Error,
            (None, true, true) => {
                faults.push(EnvelopeFault::ResultAndError);
                Kind::Invalid
            }
            _ => {
                faults.push(EnvelopeFault::NoKind);
                Kind::Invalid
            }
        };
        if method.is_some_and(|raw| !raw.starts_with('"')) {
            faults.push(EnvelopeFault::MethodNotString);
        }
        let (raw_id, id) = (id, id.and_then(Id::from_raw));
        if let Some(raw) = raw_id.filter(|_| id.is_none())
            && !(kind == Kind::Error && raw == "null")
        {
            faults.push(EnvelopeFault::BadId(raw.to_owned()));
        }
        faults.extend(twice.into_iter().map(|name| EnvelopeFault::DuplicateMember(name.into_owned())));
        if left_out > 0 {
            faults.push(EnvelopeFault::OverLimit(left_out));
        }
        let has_version = version.is_some();
        Shape { kind, id, is_meant: has_version || method.is_some(), has_version, faults }
    }
}

/// What one frame (line, body, SSE data) holds.
#[derive(Debug, Clone)]
pub enum Frame<'a> {
    /// One message.
    Message(Envelope<'a>),
    /// A top-level array, its items read one by one (RPC-22); items that are no objects are
    /// `Invalid` envelopes without members. Items beyond [`BATCH_LIMIT`] are one last such envelope with
    /// the fault `OverLimit`.
    Batch(Vec<Envelope<'a>>),
    /// JSON, but neither an object nor an array.
    OtherJson,
    /// White space only.
    Blank,
    /// Not UTF-8 (RPC-26). What it would be otherwise can be seen by reading it again with the
    /// bad bytes replaced: `read(String::from_utf8_lossy(bytes).as_bytes())`.
    NotUtf8 {
        /// Offset of the first bad byte, from 0.
        at: usize,
    },
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
pub fn read(bytes: &[u8]) -> Frame<'_> {
    match std::str::from_utf8(bytes) {
        Ok(text) => read_text(text),
        Err(error) => Frame::NotUtf8 { at: error.valid_up_to() },
    }
}

fn read_text(text: &str) -> Frame<'_> {
    let json = text.strip_prefix('\u{feff}').unwrap_or(text);
    let read = match json.trim_start_matches([' ', '\t', '\r', '\n']).bytes().next() {
        None => return Frame::Blank,
        Some(b'{') => {
            members::object(json).map(|object| Frame::Message(Envelope::new(object.members, object.left_out)))
        }
        Some(b'[') => members::array(json).map(|array| Frame::Batch(batch(array))),
        Some(_) => serde_json::from_str::<serde::de::IgnoredAny>(json).map(|_| Frame::OtherJson),
    };
    read.unwrap_or_else(|error| Frame::NotJson {
        at: text.len() - json.len() + offset(json, &error),
        why: reason(&error),
    })
}

fn batch<'a>(array: members::Array<'a>) -> Vec<Envelope<'a>> {
    let item = |raw: &'a RawValue| match members::object(raw.get()) {
        Ok(object) => Envelope::new(object.members, object.left_out),
        Err(_) => Envelope::new(Vec::new(), 0),
    };
    let mut envelopes: Vec<Envelope<'a>> = array.items.into_iter().map(item).collect();
    if array.left_out > 0 {
        envelopes.push(Envelope {
            kind: Kind::Invalid,
            members: Vec::new(),
            faults: vec![EnvelopeFault::OverLimit(array.left_out)],
        });
    }
    envelopes
}

/// The byte that a parser's error points at: it counts lines and bytes in them from 1.
fn offset(json: &str, error: &serde_json::Error) -> usize {
    let line_start = match error.line().checked_sub(2) {
        None => 0,
        Some(skipped) => memchr::memchr_iter(b'\n', json.as_bytes()).nth(skipped).map_or(0, |at| at + 1),
    };
    (line_start + error.column().saturating_sub(1)).min(json.len())
}

/// What a parser's error says, without its own way of naming the place.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split_once(" at line ").map_or(text.clone(), |(reason, _)| reason.to_owned())
}

#[cfg(test)]
mod tests;

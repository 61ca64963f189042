//! What a frame holds: its text is read once, for the fold and for whoever asks later.

use std::borrow::Cow;

use bytes::Bytes;

use super::content::Content;
use crate::wire::jsonrpc::{self, BATCH_LIMIT, Envelope, EnvelopeFault, Frame, Kind, MEMBER_LIMIT, Shape};

/// What one frame (line, body, data of an event) holds.
#[derive(Debug)]
pub(super) enum Reading {
    /// One message.
    Message(Part),
    /// An array of messages (RPC-22).
    Batch(Vec<Part>),
    /// JSON, but neither an object nor an array.
    OtherJson,
    /// White space only.
    Blank,
    /// Not UTF-8 (RPC-26).
    NotUtf8,
    /// Not JSON.
    NotJson,
}

/// One object of a frame.
#[derive(Debug)]
pub(super) struct Part {
    pub shape: Shape,
    /// Its text and index; `None` where the frame is too long to be looked into.
    pub content: Option<Content>,
    method: Method,
}

/// Where the method of a message stands.
#[derive(Debug)]
enum Method {
    /// Here in the index; `None`: there is none.
    At(Option<u32>),
    /// Read, where there is no index.
    Read(Option<String>),
}

impl Reading {
    /// Reads a frame.
    pub(super) fn of(text: &Bytes) -> Reading {
        let Some(content) = Content::of(text) else { return Reading::without_index(text) };
        let value = content.value();
        if value.is_object() {
            return Reading::Message(Part::indexed(content));
        }
        if !value.is_array() {
            return Reading::OtherJson;
        }
        let left_out = value.len().saturating_sub(BATCH_LIMIT);
        let mut parts: Vec<Part> = content.items(BATCH_LIMIT).map(Part::indexed).collect();
        if left_out > 0 {
            parts.push(Part::left_out(left_out));
        }
        Reading::Batch(parts)
    }

    /// What is too long for an index, or no JSON.
    fn without_index(text: &Bytes) -> Reading {
        let part = |envelope: Envelope<'_>| {
            let named = envelope.members.iter().map(|(name, raw)| (Cow::Borrowed(&**name), raw.get()));
            let shape = Shape { faults: envelope.faults.clone(), ..Shape::of(named, 0) };
            Part { shape, content: None, method: Method::Read(envelope.method().map(Cow::into_owned)) }
        };
        match jsonrpc::read(text) {
            Frame::Message(envelope) => Reading::Message(part(envelope)),
            Frame::Batch(items) => Reading::Batch(items.into_iter().map(part).collect()),
            Frame::OtherJson => Reading::OtherJson,
            Frame::Blank => Reading::Blank,
            Frame::NotUtf8 { .. } => Reading::NotUtf8,
            Frame::NotJson { .. } => Reading::NotJson,
        }
    }

    /// It holds one message or several.
    pub(super) fn holds_message(&self) -> bool {
        matches!(self, Reading::Message(_) | Reading::Batch(_))
    }
}

impl Part {
    fn indexed(content: Content) -> Part {
        let value = content.value();
        let left_out = value.len().saturating_sub(MEMBER_LIMIT);
        let mut method = None;
        // The last one counts, as parsers read duplicates.
        let members = value.members().inspect(|(name, value)| {
            if name == "method" {
                method = Some(value.position());
            }
        });
        let read = members.take(MEMBER_LIMIT).map(|(name, value)| (name, value.raw()));
        let shape = Shape::of(read, left_out);
        Part { shape, content: Some(content), method: Method::At(method) }
    }

    /// Stands for further items of a batch.
    fn left_out(items: usize) -> Part {
        let shape =
            Shape { faults: vec![EnvelopeFault::OverLimit(items)], ..Shape::of(std::iter::empty(), 0) };
        Part { shape, content: None, method: Method::Read(None) }
    }

    /// What it is.
    pub(super) fn kind(&self) -> Kind {
        self.shape.kind
    }

    /// The method, unescaped.
    pub(super) fn method(&self) -> Option<Cow<'_, str>> {
        match &self.method {
            Method::At(place) => self.content.as_ref()?.value_at((*place)?)?.text(),
            Method::Read(method) => method.as_deref().map(Cow::Borrowed),
        }
    }
}

//! What messages hold, for as long as somebody may ask: those of the event folded last, and the
//! requests whose calls are open.

use std::sync::Arc;

use bytes::Bytes;

use super::{CallIdx, Model, Name, RowIdx};
use crate::wire::json::{Document, Value};
use crate::wire::jsonrpc::Kind;

/// The JSON text of one message.
#[derive(Debug, Clone)]
pub struct Content {
    document: Arc<Document>,
    position: u32,
}

impl Content {
    /// The content of a frame; `None` where the frame is too long to be looked into.
    pub(super) fn of(text: &Bytes) -> Option<Content> {
        let document = Document::new(text.clone())?;
        Some(Content { document: Arc::new(document), position: 0 })
    }

    /// The first items of a batch.
    pub(super) fn items(&self, most: usize) -> impl Iterator<Item = Content> + '_ {
        let positions = self.value().items().map(Value::position).take(most);
        positions.map(|position| Content { document: Arc::clone(&self.document), position })
    }

    /// The value at a position in the text of the frame.
    pub(super) fn value_at(&self, position: u32) -> Option<Value<'_>> {
        self.document.at(position)
    }

    /// Bytes of its text.
    pub(super) fn len(&self) -> usize {
        self.value().raw().len()
    }

    /// The message as a JSON value.
    #[must_use]
    pub fn value(&self) -> Value<'_> {
        self.document.at(self.position).unwrap_or_else(|| self.document.root())
    }
}

/// A message of the event folded last.
#[derive(Debug, Clone)]
pub struct Message {
    /// The row that shows it.
    pub row: RowIdx,
    /// Request, notification, result or error; a notification with an id is a notification.
    pub kind: Kind,
    /// Requests and notifications: the method.
    pub method: Option<Name>,
    /// What it holds; `None` where it was too long to be looked into.
    pub content: Option<Content>,
}

impl Model {
    /// The messages of the event folded last, in order.
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// What the request of a call holds, while the call is open or was ended by the event folded
    /// last.
    #[must_use]
    pub fn request_of(&self, idx: CallIdx) -> Option<Value<'_>> {
        let open =
            || self.call(idx).and_then(|call| self.scope(call.scope)?.open.get(&idx)?.request.as_ref());
        let ended = || self.ended.iter().find(|(ended, _)| *ended == idx).map(|(_, content)| content);
        open().or_else(ended).map(Content::value)
    }
}

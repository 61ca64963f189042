//! A message on its way through, as a filter sees it.

use std::borrow::Cow;

use bytes::Bytes;

use super::book::OpenCall;
use crate::event::{Dir, Transport};
use crate::filter::field::{Field, Is};
use crate::filter::{Fields, Value, contains_ignoring_case};
use crate::spec::era::Era;
use crate::spec::methods;
use crate::wire::json::{self, Document};
use crate::wire::jsonrpc::{Id, Kind, Shape};

/// Where a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Which way it goes.
    pub dir: Dir,
    /// How the peers are joined.
    pub transport: Transport,
    /// HTTP: its exchange.
    pub stream: Option<u64>,
    /// HTTP: its connection.
    pub conn: Option<u64>,
    /// HTTP: the status of the answer that it is part of.
    pub status: Option<u16>,
    /// HTTP: the revision that the head of its request names.
    pub era: Option<Era>,
}

/// What a message says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// What it is.
    pub kind: Kind,
    /// Its id, when it is a string or an integer.
    pub id: Option<Id>,
    /// Its method, of a request or a notification.
    pub method: Option<String>,
    /// Name of the tool or prompt, URI of the resource, id of the task.
    pub target: Option<String>,
    /// The progress token that a request offers, or that a progress notification is for.
    pub token: Option<Id>,
    /// The request that a cancel names.
    pub cancels: Option<Id>,
    /// The revision that it names itself.
    pub era: Option<Era>,
    /// Code of an error.
    pub code: Option<i64>,
    /// The bytes, without a line ending.
    pub text: Bytes,
}

impl Message {
    /// Reads one message; `None`: it is not one object of JSON.
    #[must_use]
    pub fn read(text: &Bytes) -> Option<Message> {
        let document = Document::new(text.clone())?;
        let root = document.root();
        if root.kind() != json::Kind::Object {
            return None;
        }
        let shape = Shape::of(root.members().map(|(name, value)| (name, value.raw())), 0);
        let string = |path: &[&str]| root.at(path).and_then(json::Value::text).map(Cow::into_owned);
        let id = |path: &[&str]| root.at(path).and_then(|value| Id::from_raw(value.raw()));
        let method = string(&["method"]);
        let target = method.as_deref().map(methods::target_paths).unwrap_or_default();
        let target = target.iter().find_map(|path| {
            let params: Vec<&str> = std::iter::once("params").chain(path.iter().copied()).collect();
            string(&params)
        });
        let is_progress = method.as_deref() == Some(methods::PROGRESS);
        let is_cancel = method.as_deref() == Some(methods::CANCELLED);
        let token = if is_progress {
            id(&["params", "progressToken"])
        } else {
            id(&["params", "_meta", "progressToken"])
        };
        let named = string(&["params", "_meta", crate::spec::meta::PROTOCOL_VERSION])
            .or_else(|| string(&["params", "protocolVersion"]))
            .or_else(|| string(&["result", "protocolVersion"]));
        Some(Message {
            kind: shape.kind,
            id: shape.id,
            target,
            token,
            cancels: if is_cancel { id(&["params", "requestId"]) } else { None },
            era: named.as_deref().and_then(Era::from_name),
            code: root.at(&["error", "code"]).and_then(|code| code.raw().parse().ok()),
            method,
            text: text.clone(),
        })
    }

    /// It is an answer, so its call ends with it.
    #[must_use]
    pub fn is_final(&self) -> bool {
        matches!(self.kind, Kind::Result | Kind::Error)
    }
}

/// A message in its place, with the call that it belongs to: what a filter is asked about.
#[derive(Debug, Clone, Copy)]
pub struct Passing<'a> {
    /// Where it is.
    pub place: Place,
    /// What it says; `None`: a line, a body or a head that is no message.
    pub message: Option<&'a Message>,
    /// The call that it begins, belongs to or ends.
    pub call: Option<&'a OpenCall>,
    /// Its length, bytes.
    pub len: usize,
}

impl Passing<'_> {
    /// Its kind, in the word of the filter language.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        let Some(message) = self.message else {
            return match (self.place.transport, self.place.dir) {
                (Transport::Stdio, _) => "invalid",
                (Transport::Http, Dir::C2s) => "http",
                (Transport::Http, _) => "head",
            };
        };
        match (message.kind, message.method.as_deref()) {
            (Kind::Request, _) => "request",
            (Kind::Notification, Some(methods::PROGRESS)) => "progress",
            (Kind::Notification, Some(methods::CANCELLED)) => "cancel",
            (Kind::Notification, _) => "notification",
            (Kind::Result, _) => "result",
            (Kind::Error, _) => "error",
            (Kind::Invalid, _) => "invalid",
        }
    }

    /// Method of the message, or of its call.
    #[must_use]
    pub fn method(&self) -> Option<&str> {
        let own = self.message.and_then(|message| message.method.as_deref());
        own.or_else(|| self.call.map(|call| call.method.as_str()))
    }

    /// Target of the message, or of its call.
    #[must_use]
    pub fn target(&self) -> Option<&str> {
        let own = self.message.and_then(|message| message.target.as_deref());
        own.or_else(|| self.call.and_then(|call| call.target.as_deref()))
    }

    /// The revision under which it is judged.
    #[must_use]
    pub fn era(&self) -> Option<Era> {
        let own = self.message.and_then(|message| message.era).or(self.place.era);
        own.or_else(|| self.call.and_then(|call| call.era))
    }

    fn id(&self) -> Option<&Id> {
        let message = self.message?;
        message.id.as_ref().or(message.cancels.as_ref()).or_else(|| self.call.map(|call| &call.id))
    }
}

fn plain(id: &Id) -> &str {
    match id {
        Id::Int(text) | Id::Str(text) => text,
    }
}

impl Fields for Passing<'_> {
    fn field(&self, field: Field) -> Option<Value<'_>> {
        let text = |text: &'static str| Some(Value::Text(Cow::Borrowed(text)));
        let number = |number: u64| Some(Value::Number(number.into()));
        match field {
            Field::Method => self.method().map(|method| Value::Text(Cow::Borrowed(method))),
            Field::Id => self.id().map(|id| Value::Text(Cow::Borrowed(plain(id)))),
            Field::Target => self.target().map(|target| Value::Text(Cow::Borrowed(target))),
            Field::Tool
                if self.call.map(|call| call.method.as_str()).or(self.method())
                    == Some(methods::TOOLS_CALL) =>
            {
                let target = self.call.and_then(|call| call.target.as_deref()).or(self.target());
                target.map(|target| Value::Text(Cow::Borrowed(target)))
            }
            Field::Dir => text(if self.place.dir == Dir::C2s { "c2s" } else { "s2c" }),
            Field::Kind => text(self.kind()),
            Field::Era => self.era().and_then(|era| text(era.as_str())),
            Field::Transport => text(match self.place.transport {
                Transport::Stdio => "stdio",
                Transport::Http => "http",
            }),
            Field::Stream => self.place.stream.and_then(number),
            Field::Conn => self.place.conn.and_then(number),
            Field::Status => self.place.status.and_then(|status| number(status.into())),
            Field::Code => {
                self.message.and_then(|message| message.code).map(|code| Value::Number(code.into()))
            }
            Field::Size => number(self.len as u64),
            Field::Number | Field::State | Field::Duration | Field::Tool => None,
        }
    }

    fn is(&self, word: Is) -> bool {
        match word {
            Is::Open => self.call.is_some(),
            Is::Error => self.kind() == "error",
            Is::Invalid => self.kind() == "invalid",
            Is::Cancelled => self.call.is_some_and(|call| call.is_cancelled),
            Is::Late | Is::Lost | Is::Retry | Is::Injected => false,
        }
    }

    fn has_text(&self, lower: &str) -> bool {
        let own = [self.method(), self.target(), self.id().map(plain)];
        own.into_iter().flatten().any(|text| contains_ignoring_case(text, lower))
    }
}

//! What the tap answers in its own name, when nothing else can.

use std::fmt::Display;
use std::net::SocketAddr;

use bytes::Bytes;

use crate::command::{Answer, text};
use crate::event::tape::Tape;
use crate::event::{Close, Dir, Headers, What};
use crate::wire::jsonrpc::Id;

/// An answer of the tap itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OwnAnswer {
    status: u16,
    reason: &'static str,
    /// One line for the person at the client: what failed, and what to do. By order of a person:
    /// what was ordered.
    text: String,
    /// Its media type.
    media: &'static str,
    /// A field that its status calls for.
    field: Option<(&'static str, &'static str)>,
    /// It was ordered: to what, by whom, why.
    order: Option<Box<(String, String, Option<String>)>>,
}

impl OwnAnswer {
    fn plain(status: u16, reason: &'static str, text: String) -> OwnAnswer {
        OwnAnswer { status, reason, text, media: "text/plain; charset=utf-8", field: None, order: None }
    }

    /// What a person ordered in the server's place: a message, or a status with the field that it
    /// calls for (RFC 9110 §10.2, §11.6, §15.5; RFC 6585 §4).
    pub(super) fn ordered(
        id: Option<&Id>,
        answer: &Answer,
        (target, by, cause): (String, String, Option<String>),
    ) -> OwnAnswer {
        let order = Some(Box::new((target, by, cause)));
        let message = match (id, answer) {
            (Some(id), answer) => text::answer(id, answer),
            // Without a request there is no message to answer with.
            (None, _) => None,
        };
        if let Some(text) = message {
            return OwnAnswer {
                status: 200,
                reason: "OK",
                text,
                media: "application/json",
                field: None,
                order,
            };
        }
        let (status, reason, field) = match answer {
            Answer::Status(202) => (202, "Accepted", None),
            Answer::Status(400) => (400, "Bad Request", None),
            Answer::Status(401) => (401, "Unauthorized", Some(("WWW-Authenticate", "Bearer"))),
            Answer::Status(403) => (403, "Forbidden", None),
            Answer::Status(404) => (404, "Not Found", None),
            Answer::Status(405) => (405, "Method Not Allowed", Some(("Allow", "POST"))),
            Answer::Status(429) => (429, "Too Many Requests", Some(("Retry-After", "1"))),
            Answer::Status(502) => (502, "Bad Gateway", None),
            Answer::Status(503) => (503, "Service Unavailable", Some(("Retry-After", "1"))),
            Answer::Status(504) => (504, "Gateway Timeout", None),
            Answer::Status(status) => (*status, "Ordered", None),
            _ => (500, "Internal Server Error", None),
        };
        let text = if status == 202 { String::new() } else { format!("{status} by order of midwire\n") };
        OwnAnswer { field, order, ..OwnAnswer::plain(status, reason, text) }
    }

    /// The server at `origin` could not be connected to.
    pub(super) fn unreachable(origin: &str, error: &dyn Display) -> OwnAnswer {
        let text = format!(
            "midwire cannot reach the server at {origin}: {error}; start the server, or start midwire with another --upstream\n"
        );
        OwnAnswer::plain(502, "Bad Gateway", text)
    }

    /// The request names another host than the tap.
    pub(super) fn misdirected(host: &str, listen: SocketAddr) -> OwnAnswer {
        let text = format!(
            "midwire listens on {listen} and does not answer for Host `{}`; use the address, or pass --allow-host\n",
            host.escape_debug()
        );
        OwnAnswer::plain(421, "Misdirected Request", text)
    }

    /// The request comes from a web page of another origin.
    pub(super) fn foreign_origin(origin: &str, listen: SocketAddr) -> OwnAnswer {
        let text = format!(
            "midwire on {listen} does not take requests from Origin `{}`; use the tap's own origin, or pass --allow-host\n",
            origin.escape_debug()
        );
        OwnAnswer::plain(403, "Forbidden", text)
    }

    /// What came is not a request that the tap could judge.
    pub(super) fn unreadable() -> OwnAnswer {
        let text =
            "midwire cannot read this as an HTTP/1.1 request and so cannot judge its Host\n".to_owned();
        OwnAnswer::plain(400, "Bad Request", text)
    }

    pub(super) fn status(&self) -> u16 {
        self.status
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Header fields, the same on the wire and in the recording.
    pub(super) fn fields(&self) -> Vec<(String, String)> {
        let field = |name: &str, value: String| (name.to_owned(), value);
        let mut fields = vec![
            field("Content-Type", self.media.to_owned()),
            field("Content-Length", self.text.len().to_string()),
        ];
        fields.extend(self.field.map(|(name, value)| field(name, value.to_owned())));
        fields
    }

    /// The bytes of it on HTTP/1.1; the connection ends with it.
    pub(super) fn wire(&self, with_body: bool) -> String {
        let mut wire = format!("HTTP/1.1 {} {}\r\n", self.status, self.reason);
        for (name, value) in self.fields() {
            wire.push_str(&name);
            wire.push_str(": ");
            wire.push_str(&value);
            wire.push_str("\r\n");
        }
        wire.push_str("Connection: close\r\n\r\n");
        if with_body {
            wire.push_str(&self.text);
        }
        wire
    }

    /// The bytes of it on HTTP/1.1; the connection goes on.
    pub(super) fn wire_kept(&self) -> String {
        self.wire(true).replacen("Connection: close\r\n", "", 1)
    }

    /// Puts it on the tape as the tap's own doing, never the server's.
    pub(super) fn record(&self, tape: &Tape, stream: u64, conn: u64) {
        let push = |dir, what| tape.push_http(dir, Some(stream), Some(conn), what);
        let (target, by, cause) = self.order.as_deref().cloned().unwrap_or_else(|| {
            (format!("exchange {stream}"), "midwire".to_owned(), Some(self.text.trim_end().to_owned()))
        });
        push(Dir::Tap, What::Inject { what: "answer".to_owned(), target, by, cause, sent: None });
        push(Dir::S2c, What::ResponseHead { status: self.status, headers: Headers(self.fields()) });
        push(Dir::S2c, What::Body(Bytes::from(self.text.clone())));
        push(Dir::S2c, What::ServerClosed { how: Some(Close::Eof), exit_code: None, signal: None });
    }
}

//! What the tap answers in its own name, when nothing else can.

use std::fmt::Display;
use std::net::SocketAddr;

use bytes::Bytes;

use crate::event::tape::Tape;
use crate::event::{Close, Dir, Headers, What};

/// An answer of the tap itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OwnAnswer {
    status: u16,
    reason: &'static str,
    /// One line for the person at the client: what failed, and what to do.
    text: String,
}

impl OwnAnswer {
    /// The server at `origin` could not be connected to.
    pub(super) fn unreachable(origin: &str, error: &dyn Display) -> OwnAnswer {
        let text = format!(
            "midwire cannot reach the server at {origin}: {error}; start the server, or start midwire with another --upstream\n"
        );
        OwnAnswer { status: 502, reason: "Bad Gateway", text }
    }

    /// The request names another host than the tap.
    pub(super) fn misdirected(host: &str, listen: SocketAddr) -> OwnAnswer {
        let text = format!(
            "midwire listens on {listen} and does not answer for Host `{}`; use the address, or pass --allow-host\n",
            host.escape_debug()
        );
        OwnAnswer { status: 421, reason: "Misdirected Request", text }
    }

    /// The request comes from a web page of another origin.
    pub(super) fn foreign_origin(origin: &str, listen: SocketAddr) -> OwnAnswer {
        let text = format!(
            "midwire on {listen} does not take requests from Origin `{}`; use the tap's own origin, or pass --allow-host\n",
            origin.escape_debug()
        );
        OwnAnswer { status: 403, reason: "Forbidden", text }
    }

    /// What came is not a request that the tap could judge.
    pub(super) fn unreadable() -> OwnAnswer {
        let text =
            "midwire cannot read this as an HTTP/1.1 request and so cannot judge its Host\n".to_owned();
        OwnAnswer { status: 400, reason: "Bad Request", text }
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
        vec![
            field("Content-Type", "text/plain; charset=utf-8".to_owned()),
            field("Content-Length", self.text.len().to_string()),
        ]
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

    /// Puts it on the tape as the tap's own doing, never the server's.
    pub(super) fn record(&self, tape: &Tape, stream: u64, conn: u64) {
        let push = |dir, what| tape.push_http(dir, Some(stream), Some(conn), what);
        push(
            Dir::Tap,
            What::Inject {
                what: "answer".to_owned(),
                target: format!("exchange {stream}"),
                by: "midwire".to_owned(),
                cause: Some(self.text.trim_end().to_owned()),
                sent: None,
            },
        );
        push(Dir::S2c, What::ResponseHead { status: self.status, headers: Headers(self.fields()) });
        push(Dir::S2c, What::Body(Bytes::from(self.text.clone())));
        push(Dir::S2c, What::ServerClosed { how: Some(Close::Eof), exit_code: None, signal: None });
    }
}

//! Other bytes in the place of those that came: heads and bodies with another text.

use std::io::Write;

use bytes::{BufMut, Bytes, BytesMut};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::command::message::Message;
use crate::proxy::http::heads::{edit_field, set_length};
use crate::spec::headers;

/// How a message stands in what passes, so that another text can take its place.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::proxy::http) enum Shape {
    /// It is no message.
    #[default]
    Other,
    /// It is the whole body of a request behind this head.
    Request(Bytes),
    /// It is the whole body of an answer behind this head.
    Answer(Bytes),
    /// It is the data of this event of a stream.
    Event(Bytes),
}

impl Shape {
    /// The same with this text.
    pub(in crate::proxy::http) fn with(&self, text: &Bytes) -> Bytes {
        match self {
            Shape::Other => text.clone(),
            Shape::Request(head) => {
                [set_length(&mirrored(head, text), text.len()), text.clone()].concat().into()
            }
            Shape::Answer(head) => [set_length(head, text.len()), text.clone()].concat().into(),
            Shape::Event(raw) => event_with(raw, text),
        }
    }
}

/// An event of its own.
pub(in crate::proxy::http) fn event(text: &[u8]) -> Bytes {
    event_with(b"event: message\n\n", text)
}

/// The event with these data; its other lines stay.
fn event_with(raw: &[u8], text: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(raw.len() + text.len() + 16);
    let is_blank = |line: &&[u8]| line.trim_ascii().is_empty();
    for line in raw.split_inclusive(|byte| *byte == b'\n').filter(|line| !is_blank(line)) {
        if !line.starts_with(b"data:") && line.trim_ascii() != b"data" {
            out.put_slice(line);
        }
    }
    for line in text.split(|byte| matches!(byte, b'\n' | b'\r')) {
        out.put_slice(b"data: ");
        out.put_slice(line);
        out.put_slice(b"\n");
    }
    out.put_slice(b"\n");
    out.freeze()
}

/// The head of a request with the fields that mirror its message as this message has them; only
/// those that it had before.
pub(in crate::proxy::http) fn mirrored(head: &[u8], text: &Bytes) -> Bytes {
    let message = Message::read(text);
    let method = message.as_ref().and_then(|message| message.method.clone());
    let target = message.and_then(|message| message.target);
    let encoded = |value: &Option<String>| value.as_deref().map(|value| headers::encode(value).into_owned());
    let head = edit_field(head, headers::METHOD, |_| encoded(&method));
    edit_field(&head, headers::NAME, |_| encoded(&target))
}

/// The head of a POST of midwire's own with this text, like the head of a request of the client.
pub(in crate::proxy::http) fn own_head(like: &[u8], text: &Bytes) -> Bytes {
    let mut head = mirrored(like, text);
    for field in ["connection", "expect", "accept-encoding", "content-encoding", headers::LAST_EVENT_ID] {
        head = edit_field(&head, field, |_| None);
    }
    let head = set_length(&head, text.len());
    with_field(&head, "Connection", Some("close"))
}

/// The head with this field set, or removed.
pub(in crate::proxy::http) fn with_field(head: &[u8], name: &str, value: Option<&str>) -> Bytes {
    let mut is_there = false;
    let edited = edit_field(head, name, |_| {
        let is_first = !std::mem::replace(&mut is_there, true);
        value.filter(|_| is_first).map(str::to_owned)
    });
    let Some(value) = value.filter(|_| !is_there) else { return edited };
    let end = memchr::memmem::rfind(&edited, b"\r\n\r\n").map_or(edited.len(), |at| at + 2);
    let (front, back) = edited.split_at(end);
    [front, format!("{name}: {value}\r\n").as_bytes(), back].concat().into()
}

/// The same bytes as one gzip member.
pub(in crate::proxy::http) fn compressed(bytes: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    // Writing to memory cannot fail.
    let written = encoder.write_all(bytes).and_then(|()| encoder.finish());
    written.map_or_else(|_| Bytes::copy_from_slice(bytes), Bytes::from)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn bytes(text: &str) -> Bytes {
        Bytes::copy_from_slice(text.as_bytes())
    }

    #[test]
    fn another_text_takes_the_place_of_the_first() {
        let head =
            "POST / HTTP/1.1\r\nMcp-Method: tools/call\r\nMcp-Name: a\r\nContent-Length: 1\r\nX: y\r\n\r\n";
        let text = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"b"}}"#;
        let cases = [
            (
                Shape::Request(bytes(head)),
                format!(
                    "POST / HTTP/1.1\r\nContent-Length: {}\r\nMcp-Method: tools/call\r\nMcp-Name: b\r\nX: y\r\n\r\n{text}",
                    text.len()
                ),
            ),
            (
                Shape::Answer(bytes("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")),
                format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len()),
            ),
            (
                Shape::Event(bytes("id: 7\r\ndata: x\r\ndata: y\r\n\r\n")),
                format!("id: 7\r\ndata: {text}\n\n"),
            ),
            (Shape::Other, text.to_owned()),
        ];
        for (shape, expected) in cases {
            assert_eq!(shape.with(&bytes(text)), expected, "{shape:?}");
        }
        assert_eq!(event(b"{}"), "event: message\ndata: {}\n\n");
    }

    #[test]
    fn a_field_is_set_once_or_removed() {
        let head = b"HTTP/1.1 200 OK\r\nA: 1\r\na: 2\r\n\r\n";
        assert_eq!(with_field(head, "a", Some("3")), "HTTP/1.1 200 OK\r\nA: 3\r\n\r\n");
        assert_eq!(with_field(head, "B", Some("3")), "HTTP/1.1 200 OK\r\nA: 1\r\na: 2\r\nB: 3\r\n\r\n");
        assert_eq!(with_field(head, "a", None), "HTTP/1.1 200 OK\r\n\r\n");
        assert_eq!(with_field(head, "b", None), head.as_slice());
    }

    #[test]
    fn what_is_compressed_reads_as_before() {
        let mut text = String::new();
        flate2::read::GzDecoder::new(&*compressed(b"abc")).read_to_string(&mut text).unwrap();
        assert_eq!(text, "abc");
    }
}

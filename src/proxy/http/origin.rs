//! Finding the server's origin where an answer names it, and putting the tap's in its place.
//!
//! Three places exist in MCP: the URL of an HTTP+SSE `endpoint` event, the `resource` of OAuth
//! protected-resource metadata, and the `resource_metadata` of a `WWW-Authenticate` field. Only
//! the origin at the front of a URL is replaced; every other byte stays.

use std::collections::HashMap;
use std::ops::Range;

use bytes::{BufMut, Bytes, BytesMut};
use serde_json::value::RawValue;

/// What the beginning of an event stream holds.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Beginning {
    /// No whole event yet.
    Incomplete,
    /// Only whole blocks of comments so far.
    Comments,
    /// An event that names no URL of the server.
    Other,
    /// An `endpoint` event; here stands its absolute URL.
    Endpoint(Range<usize>),
}

/// Looks at the first event of a stream. // spec 2024-11-05 basic/transports, HTTP with SSE
pub(super) fn look_at_beginning(stream: &[u8], server_origin: &str) -> Beginning {
    let (mut is_endpoint, mut is_comment) = (false, true);
    let mut url = None;
    let mut at = stream.strip_prefix("\u{feff}".as_bytes()).map_or(0, |rest| stream.len() - rest.len());
    while let Some(len) = stream.get(at..).and_then(|rest| memchr::memchr(b'\n', rest)) {
        let line = stream.get(at..at + len).unwrap_or_default();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() && !is_comment {
            return match url {
                Some(url) if is_endpoint => Beginning::Endpoint(url),
                _ => Beginning::Other,
            };
        }
        is_comment &= line.is_empty() || line.first() == Some(&b':');
        if let Some(value) = line.strip_prefix(b"event:") {
            is_endpoint = value.trim_ascii_start() == b"endpoint";
        } else if let Some(value) = line.strip_prefix(b"data:") {
            let value = value.strip_prefix(b" ").unwrap_or(value);
            let from = at + line.len() - value.len();
            url = is_under(value, server_origin).then_some(from..at + line.len());
        }
        at += len + 1;
    }
    if is_comment && at == stream.len() { Beginning::Comments } else { Beginning::Incomplete }
}

/// Whether a URL begins with this origin (and not with a longer one).
fn is_under(url: &[u8], origin: &str) -> bool {
    let rest = url.get(origin.len()..);
    let is_same = url.get(..origin.len()).is_some_and(|front| front.eq_ignore_ascii_case(origin.as_bytes()));
    is_same && matches!(rest, Some([] | [b'/' | b'?' | b'#', ..]))
}

/// A change of one URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rewrite {
    /// As the server sent it.
    pub(super) from: String,
    /// As the client gets it.
    pub(super) to: String,
}

impl Rewrite {
    /// `url`: one for which `is_under` holds.
    fn of(url: &str, server_origin: &str, own_origin: &str) -> Rewrite {
        let rest = url.get(server_origin.len()..).unwrap_or_default();
        Rewrite { from: url.to_owned(), to: format!("{own_origin}{rest}") }
    }
}

/// The same bytes with the URL at `place` under the tap's origin.
pub(super) fn rewrite_url_at(
    bytes: &[u8],
    place: Range<usize>,
    server_origin: &str,
    own_origin: &str,
) -> (Bytes, Rewrite) {
    let url = String::from_utf8_lossy(bytes.get(place.clone()).unwrap_or_default());
    let rewrite = Rewrite::of(&url, server_origin, own_origin);
    let mut out = BytesMut::with_capacity(bytes.len() + own_origin.len());
    out.put_slice(bytes.get(..place.start).unwrap_or_default());
    out.put_slice(rewrite.to.as_bytes());
    out.put_slice(bytes.get(place.end..).unwrap_or_default());
    (out.freeze(), rewrite)
}

/// Protected-resource metadata with its `resource` under the tap's origin; `None` when it is not
/// such metadata or names something else. // RFC 9728 §2
pub(super) fn rewrite_resource(
    body: &[u8],
    server_origin: &str,
    own_origin: &str,
) -> Option<(Bytes, Rewrite)> {
    let text = std::str::from_utf8(body).ok()?;
    let members: HashMap<&str, &RawValue> = serde_json::from_str(text).ok()?;
    let value = members.get("resource")?.get();
    let url: String = serde_json::from_str(value).ok()?;
    if !is_under(url.as_bytes(), server_origin) {
        return None;
    }
    let rewrite = Rewrite::of(&url, server_origin, own_origin);
    // `value` is a part of `text`, so its place is the distance of the two beginnings.
    let from = value.as_ptr().addr().checked_sub(text.as_ptr().addr())?;
    let mut out = BytesMut::with_capacity(body.len() + own_origin.len());
    out.put_slice(body.get(..from)?);
    out.put_slice(serde_json::to_string(&rewrite.to).ok()?.as_bytes());
    out.put_slice(body.get(from + value.len()..)?);
    Some((out.freeze(), rewrite))
}

/// A `WWW-Authenticate` value with its `resource_metadata` under the tap's origin; `None` when it
/// has none or it names something else. // RFC 9728 §5.1
pub(super) fn rewrite_challenge(
    value: &str,
    server_origin: &str,
    own_origin: &str,
) -> Option<(String, Rewrite)> {
    let (front, rest) = value.split_once("resource_metadata=")?;
    let (quote, rest) = rest.strip_prefix('"').map_or(("", rest), |rest| ("\"", rest));
    let end = rest.find(['"', ',', ' ']).unwrap_or(rest.len());
    let (url, rest) = rest.split_at_checked(end)?;
    if !is_under(url.as_bytes(), server_origin) {
        return None;
    }
    let rewrite = Rewrite::of(url, server_origin, own_origin);
    Some((format!("{front}resource_metadata={quote}{}{rest}", rewrite.to), rewrite))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: &str = "http://server.test:90";
    const OWN: &str = "http://127.0.0.1:1";

    #[test]
    fn an_absolute_endpoint_of_the_server_is_found_in_the_first_event() {
        let cases = [
            ("", "Comments"),
            (": ping\n\n", "Comments"),
            ("event: endpoint\ndata: http://server.test:90/m?s=1\n", "Incomplete"),
            ("event: endpoint\ndata: http://server.test:90/m?s=1\n\n", "http://server.test:90/m?s=1"),
            (
                "\u{feff}: hi\r\n\r\nevent:endpoint\r\ndata:HTTP://server.test:90\r\n\r\nrest",
                "HTTP://server.test:90",
            ),
            ("data: http://server.test:90/\nevent: endpoint\n\n", "http://server.test:90/"),
            ("event: endpoint\ndata: /m?s=1\n\n", "Other"),
            ("event: endpoint\ndata: http://server.test:901/m\n\n", "Other"),
            ("event: endpoint\ndata: http://other.test/m\n\n", "Other"),
            ("event: message\ndata: http://server.test:90/m\n\n", "Other"),
            ("id: 1\ndata:\n\nevent: endpoint\ndata: http://server.test:90/m\n\n", "Other"),
        ];
        for (stream, expected) in cases {
            let found = match look_at_beginning(stream.as_bytes(), SERVER) {
                Beginning::Endpoint(place) => stream.get(place).unwrap().to_owned(),
                other => format!("{other:?}"),
            };
            assert_eq!(found, expected, "{stream:?}");
        }
    }

    #[test]
    fn only_the_origin_of_the_url_changes() {
        let (out, rewrite) = rewrite_url_at(b"data: http://server.test:90/m\n", 6..29, SERVER, OWN);
        assert_eq!(out, "data: http://127.0.0.1:1/m\n");
        assert_eq!(rewrite, Rewrite { from: format!("{SERVER}/m"), to: format!("{OWN}/m") });

        let body = br#"{ "a":1.0, "resource" : "http:\/\/server.test:90/mcp","z":[1e3]}"#;
        let (out, _) = rewrite_resource(body, SERVER, OWN).unwrap();
        assert_eq!(out, r#"{ "a":1.0, "resource" : "http://127.0.0.1:1/mcp","z":[1e3]}"#);

        let (out, _) = rewrite_challenge(
            r#"Bearer error="x", resource_metadata="http://server.test:90/.well-known/p", scope="y""#,
            SERVER,
            OWN,
        )
        .unwrap();
        assert_eq!(
            out,
            r#"Bearer error="x", resource_metadata="http://127.0.0.1:1/.well-known/p", scope="y""#
        );
    }

    #[test]
    fn what_names_something_else_is_left_alone() {
        for body in [r#"{"resource":"http://x/"}"#, r#"{"resource":7}"#, "[]", "{", "\u{0}"] {
            assert_eq!(rewrite_resource(body.as_bytes(), SERVER, OWN), None, "{body}");
        }
        for value in ["Bearer", "Bearer resource_metadata=", "Bearer resource_metadata=\"http://x/\""] {
            assert_eq!(rewrite_challenge(value, SERVER, OWN), None, "{value}");
        }
    }
}

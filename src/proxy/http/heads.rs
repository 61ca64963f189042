//! Changing one field of a head and leaving every other byte of it alone.

use bytes::{BufMut, Bytes, BytesMut};

/// The head with the value of each field `name` replaced by what `change` makes of it; `None`
/// from `change` removes the field. Names compare without case and keep theirs.
pub(super) fn edit_field(raw: &[u8], name: &str, mut change: impl FnMut(&str) -> Option<String>) -> Bytes {
    let mut out = BytesMut::with_capacity(raw.len() + 64);
    for line in raw.split_inclusive(|b| *b == b'\n') {
        let colon = memchr::memchr(b':', line).unwrap_or(0);
        let (field, rest) = line.split_at(colon);
        if colon == 0 || !field.eq_ignore_ascii_case(name.as_bytes()) {
            out.put_slice(line);
            continue;
        }
        let value = String::from_utf8_lossy(rest).trim_start_matches(':').trim().to_owned();
        if let Some(new) = change(&value) {
            if new == value {
                out.put_slice(line);
            } else {
                out.put_slice(field);
                out.put_slice(b": ");
                out.put_slice(new.as_bytes());
                out.put_slice(if line.ends_with(b"\r\n") { b"\r\n" } else { b"\n" });
            }
        }
    }
    out.freeze()
}

/// The head of a message whose body is now known whole: `Content-Length` in place of whatever
/// framed it before.
pub(super) fn set_length(raw: &[u8], len: usize) -> Bytes {
    let without = edit_field(raw, "transfer-encoding", |_| None);
    let without = edit_field(&without, "content-length", |_| None);
    let first = memchr::memchr(b'\n', &without).map_or(without.len(), |at| at + 1);
    let (start, rest) = without.split_at(first);
    let mut out = BytesMut::with_capacity(without.len() + 32);
    out.put_slice(start);
    out.put_slice(format!("Content-Length: {len}\r\n").as_bytes());
    out.put_slice(rest);
    out.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_named_field_changes() {
        let raw = b"GET /host: HTTP/1.1\r\nA: host: x\r\nhOST:  a \r\nB: 2\nHost: b\r\n\r\n";
        let out = edit_field(raw, "Host", |v| Some(format!("<{v}>")));
        assert_eq!(out, "GET /host: HTTP/1.1\r\nA: host: x\r\nhOST: <a>\r\nB: 2\nHost: <b>\r\n\r\n");
        assert_eq!(edit_field(raw, "host", |v| Some(v.to_owned())), raw.as_slice());
        assert_eq!(edit_field(raw, "host", |_| None), "GET /host: HTTP/1.1\r\nA: host: x\r\nB: 2\n\r\n");
    }

    #[test]
    fn a_known_length_replaces_other_framing() {
        let raw = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\nA: b\r\n\r\n";
        assert_eq!(set_length(raw, 7), "HTTP/1.1 200 OK\r\nContent-Length: 7\r\nA: b\r\n\r\n");
    }
}

//! Any chunking gives the same pieces, and no byte is lost.

use proptest::prelude::*;

use super::*;

/// What a reader of the pieces learns, independent of how the bytes were cut.
#[derive(Debug, PartialEq, Default)]
struct Heard {
    told: Vec<String>,
    raw: Vec<u8>,
}

fn hear(side: Side, asked: Asked, chunks: &[&[u8]]) -> Heard {
    let mut decoder = Decoder::new(side);
    let mut learnt = Heard::default();
    let mut body = Vec::new();
    for chunk in chunks {
        let mut chunk = Bytes::copy_from_slice(chunk);
        while let Some(piece) = decoder.next(&mut chunk, asked) {
            learnt.raw.extend_from_slice(&piece.raw);
            match piece.part {
                Part::HeadStart | Part::Framing => {}
                Part::Head(head) => learnt.told.push(tell(&head)),
                Part::End => learnt.told.push(format!("end {:?}", drain(&mut body))),
                Part::Data(data) | Part::Opaque(data) => body.extend_from_slice(&data),
            }
        }
    }
    if decoder.finish() {
        learnt.told.push(format!("end {:?}", drain(&mut body)));
    } else if !body.is_empty() {
        learnt.told.push(format!("left {:?}", drain(&mut body)));
    }
    learnt
}

fn drain(body: &mut Vec<u8>) -> String {
    String::from_utf8_lossy(&std::mem::take(body)).into_owned()
}

fn tell(head: &Head) -> String {
    let first = match &head.start {
        Start::Request { method, target } => format!("{method} {target}"),
        Start::Answer { status } => status.to_string(),
    };
    let fields: Vec<_> = head.fields.iter().map(|(n, v)| format!("{n}={v}")).collect();
    format!("{first} 1.{} [{}]", head.minor, fields.join(" "))
}

#[test]
fn each_message_ends_where_its_framing_says() {
    use Asked::{Connect, Head, Other};
    use Side::{Answers, Requests};
    let cases: &[(Side, Asked, &str, &[&str])] = &[
        (Requests, Other, "GET /a?b=c HTTP/1.1\r\nHost: x\r\n\r\n", &["GET /a?b=c 1.1 [Host=x]", "end \"\""]),
        (
            Requests,
            Other,
            "POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.0\n\n",
            &["POST / 1.1 [Content-Length=3]", "end \"abc\"", "GET / 1.0 []", "end \"\""],
        ),
        (
            Requests,
            Other,
            "POST / HTTP/1.1\r\ntransfer-Encoding: gzip, Chunked\r\n\r\n3;x=y\r\nabc\r\n0002\r\nde\r\n0\r\nT: 1\r\n\r\n",
            &["POST / 1.1 [transfer-Encoding=gzip, Chunked]", "end \"abcde\""],
        ),
        (
            Answers,
            Other,
            "HTTP/1.1 103 Early\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
            &["103 1.1 [Link=a]", "200 1.1 [Content-Length=1]", "end \"x\""],
        ),
        (Answers, Other, "HTTP/1.0 200 OK\r\n\r\nto the end", &["200 1.0 []", "end \"to the end\""]),
        (
            Answers,
            Head,
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nHTTP/1.1 204 No\r\n\r\n",
            &["200 1.1 [Content-Length=9]", "end \"\"", "204 1.1 []", "end \"\""],
        ),
        (
            Answers,
            Other,
            "HTTP/1.1 304 \r\nContent-Length: 9\r\n\r\n",
            &["304 1.1 [Content-Length=9]", "end \"\""],
        ),
        (Answers, Other, "HTTP/1.1 101 Up\r\n\r\nraw", &["101 1.1 []", "left \"raw\""]),
        (Answers, Connect, "HTTP/1.1 200 OK\r\n\r\nraw", &["200 1.1 []", "left \"raw\""]),
        (Requests, Other, "\r\n\r\nGET / HTTP/1.1\r\n\r\n", &["GET / 1.1 []", "end \"\""]),
        (
            Answers,
            Other,
            "HTTP/1.1 200 OK\r\nA: 1\r\n  folded\r\na:2 \r\nContent-Length: 0\r\n\r\n",
            &["200 1.1 [A=1 folded a=2 Content-Length=0]", "end \"\""],
        ),
    ];
    for (side, asked, bytes, told) in cases {
        assert_eq!(hear(*side, *asked, &[bytes.as_bytes()]).told, *told, "{bytes:?}");
    }
}

#[test]
fn what_is_not_http_is_opaque_to_the_end() {
    let cases = [
        (Side::Requests, "hello\r\n\r\nGET / HTTP/1.1\r\n\r\n"),
        (Side::Requests, "GET / HTTP/2.0\r\n\r\nx"),
        (Side::Requests, "GET / HTTP/1.1\r\nno colon\r\n\r\n"),
        (Side::Answers, "HTTP/1.1 OK 200\r\n\r\n"),
        (Side::Answers, "HTTP/1.1 +20 OK\r\n\r\n"),
        (Side::Answers, "\u{feff}HTTP/1.1 200 OK\r\n\r\n"),
    ];
    for (side, bytes) in cases {
        let heard = hear(side, Asked::Other, &[bytes.as_bytes()]);
        assert_eq!(heard.told, [format!("left {bytes:?}")]);
    }
    let bad_bodies = [
        "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
        "POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\nx",
        "POST / HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\nx",
    ];
    for bytes in bad_bodies {
        assert_eq!(hear(Side::Requests, Asked::Other, &[bytes.as_bytes()]).told[1..], ["left \"x\""]);
    }
    for size in ["zz", "-1", "+1", "fffffffffffffffff", ""] {
        let bytes = format!("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{size}\r\nxyz");
        assert_eq!(hear(Side::Requests, Asked::Other, &[bytes.as_bytes()]).told[1..], ["left \"xyz\""]);
    }
}

#[test]
fn a_head_without_an_end_is_given_up_at_the_limit() {
    let mut decoder = Decoder::new(Side::Requests);
    for _ in 0..=(HEAD_LIMIT_BYTES / 1024) {
        let mut chunk = Bytes::from(vec![b'a'; 1024]);
        while decoder.next(&mut chunk, Asked::Other).is_some() {}
    }
    assert!(decoder.is_opaque());
}

const TRAFFIC: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
    5\r\nhello\r\n6;ext=\"a\"\r\n world\r\n0\r\nX-T: y\r\n\r\n\r\nHTTP/1.1 200 OK\ncontent-length: 4\n\nabcd\
    HTTP/1.1 200 OK\r\n\r\nuntil the end";

proptest! {
    #[test]
    fn any_chunking_gives_the_same_messages_and_bytes(cuts in prop::collection::vec(0..TRAFFIC.len(), 0..12)) {
        let mut cuts = cuts;
        cuts.sort_unstable();
        let mut chunks = Vec::new();
        let mut from = 0;
        for cut in cuts {
            chunks.push(&TRAFFIC[from..cut]);
            from = cut;
        }
        chunks.push(&TRAFFIC[from..]);
        let heard = hear(Side::Answers, Asked::Other, &chunks);
        prop_assert_eq!(&heard.raw, TRAFFIC);
        prop_assert_eq!(heard, hear(Side::Answers, Asked::Other, &[TRAFFIC]));
    }

    #[test]
    fn any_bytes_pass_whole(chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..64), 0..8)) {
        let chunks: Vec<&[u8]> = chunks.iter().map(Vec::as_slice).collect();
        for side in [Side::Requests, Side::Answers] {
            prop_assert_eq!(hear(side, Asked::Other, &chunks).raw, chunks.concat());
        }
    }
}

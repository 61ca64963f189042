//! What the decoder must read from whole streams, from any chunking, and from hostile ones.

use proptest::prelude::*;

use super::*;

fn events(chunks: &[&[u8]], limit_bytes: usize) -> Vec<SseEvent> {
    let mut decoder = SseDecoder::new(limit_bytes);
    let mut events: Vec<SseEvent> = chunks.iter().flat_map(|chunk| decoder.push(chunk)).collect();
    events.extend(decoder.finish());
    events
}

fn message(data: &'static str, wire_len: usize) -> SseEvent {
    SseEvent { data: Some(Bytes::from_static(data.as_bytes())), wire_len, ..SseEvent::default() }
}

#[test]
fn a_block_is_read_as_the_standard_says() {
    let cases: Vec<(&str, Vec<SseEvent>)> = vec![
        ("data: a\n\n", vec![message("a", 9)]),
        ("data: a\r\n\r\n", vec![message("a", 11)]),
        ("data: a\r\r", vec![message("a", 9)]),
        ("data: a\r\n\n", vec![message("a", 10)]),
        ("data: a\n\r\n", vec![message("a", 10)]),
        ("data: a\n\r", vec![message("a", 9)]),
        ("data:a\n\n", vec![message("a", 8)]),
        ("data:  a \n\n", vec![message(" a ", 11)]),
        ("data: a\ndata\ndata:b\n\n", vec![message("a\n\nb", 21)]),
        ("data\n\n", vec![message("", 6)]),
        ("data: a\n\ndata: b\n\n", vec![message("a", 9), message("b", 9)]),
        ("\u{feff}data: a\n\n", vec![message("a", 12)]),
        ("\u{feff}\n\r\n\rdata: a\n\n", vec![message("a", 16)]),
        ("\n\n\r\n", vec![]),
        ("\u{feff}", vec![]),
        ("", vec![]),
        (
            ": hi\n:\n\n",
            vec![SseEvent {
                comments: vec![" hi".into(), String::new()],
                wire_len: 8,
                ..SseEvent::default()
            }],
        ),
        ("id: 7\ndata:\n\n", vec![SseEvent { id: Some("7".into()), ..message("", 13) }]),
        ("id\n\n", vec![SseEvent { id: Some(String::new()), wire_len: 4, ..SseEvent::default() }]),
        (
            "event: endpoint\ndata: /m?s=1\n\n",
            vec![SseEvent { event: Some("endpoint".into()), ..message("/m?s=1", 30) }],
        ),
        (
            "retry: 3000\nid: x\n\n",
            vec![SseEvent { retry: Some(3000), id: Some("x".into()), wire_len: 19, ..SseEvent::default() }],
        ),
    ];
    for (wire, want) in cases {
        assert_eq!(events(&[wire.as_bytes()], 1000), want, "{wire:?}");
    }
}

#[test]
fn what_a_browser_drops_is_reported() {
    let cases: [(&[u8], &[SseFault]); 11] = [
        (b"data: a", &[SseFault::Unterminated]),
        (b"data: a\n", &[SseFault::Unterminated]),
        (b"data: a\r\n", &[SseFault::Unterminated]),
        (b"data: a\r\n\r", &[]),
        (b": ping\n", &[]),
        (b"data: \xff\n\n", &[SseFault::NotUtf8]),
        (b"retry: soon\n\n", &[SseFault::BadRetry]),
        (b"retry: 99999999999999999999999\n\n", &[SseFault::BadRetry]),
        (b"id: a\0b\n\n", &[SseFault::BadId]),
        (b"{\"jsonrpc\":\"2.0\"}\n\n", &[]),
        (b"data: 0123456789012345678901234567890\n\n", &[SseFault::OverLimit]),
    ];
    for (wire, faults) in cases {
        let got = events(&[wire], 32);
        assert_eq!(got.len(), 1, "{wire:?}");
        if wire.starts_with(b"{") {
            assert_eq!(got[0].faults, [SseFault::UnknownField("{\"jsonrpc\"".into())]);
        } else {
            assert_eq!(got[0].faults, faults, "{wire:?}");
        }
        assert_eq!(got[0].wire_len, wire.len());
    }
}

#[test]
fn a_block_is_given_out_with_its_last_byte() {
    for ending in ["\n", "\r", "\r\n"] {
        let mut decoder = SseDecoder::new(1000);
        let wire = format!("event: message{ending}data: a{ending}{ending}");
        let (early, last) = wire.as_bytes().split_at(wire.len() - 1);
        assert_eq!(decoder.push(early), [], "{ending:?}");
        assert_eq!(decoder.push(last).len(), 1, "{ending:?}");
        assert_eq!(decoder.finish(), None);
    }
}

#[test]
fn a_block_over_the_limit_is_passed_over_and_the_next_one_read() {
    let mut decoder = SseDecoder::new(64);
    let mut got = Vec::new();
    for _ in 0..1000 {
        got.extend(decoder.push(b"data: 0123456789"));
        assert!(decoder.line.capacity() <= 128);
    }
    got.extend(decoder.push(b"\ndata: more\n\ndata: next\n\n"));
    assert_eq!(got.iter().map(|e| e.faults.clone()).collect::<Vec<_>>(), [vec![SseFault::OverLimit], vec![]]);
    assert_eq!(got[0].data, None);
    assert_eq!(got[1], message("next", 12));
}

#[test]
fn a_flood_of_comments_in_one_block_is_counted_not_kept() {
    let wire = ":\n".repeat(NOTES_LIMIT + 5) + "data: a\n\n";
    let got = events(&[wire.as_bytes()], EVENT_LIMIT_BYTES);
    assert_eq!(got[0].comments.len(), NOTES_LIMIT);
    assert_eq!(got[0].faults, [SseFault::LeftOut(5)]);
    assert_eq!(got[0].data.as_deref(), Some(&b"a"[..]));
}

/// The standard's algorithm in its plainest form, on whole text: data, event and id of each
/// finished block that has a field or a comment.
fn read_plainly(text: &str) -> Vec<(Option<String>, Option<String>, Option<String>)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let Some(end) = text.rfind("\n\n").map(|at| at + 1).or_else(|| text.starts_with('\n').then_some(1))
    else {
        return Vec::new();
    };
    let mut blocks = Vec::new();
    let (mut data, mut event, mut id): (Option<String>, _, _) = (None, None, None);
    let mut is_empty = true;
    let (finished, _) = text.split_at(end);
    for line in finished.split('\n') {
        if line.is_empty() {
            if !is_empty {
                blocks.push((data.take(), event.take(), id.take()));
            }
            is_empty = true;
            continue;
        }
        is_empty = false;
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "data" => data = Some(data.map_or(value.to_owned(), |d| d + "\n" + value)),
            "event" => event = Some(value.to_owned()),
            "id" if !value.contains('\0') => id = Some(value.to_owned()),
            _ => {}
        }
    }
    blocks
}

/// Text in which the parts of a stream are frequent.
fn stream() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("\n"),
        Just("\r"),
        Just("\r\n"),
        Just("\n\n"),
        Just("\r\n\r\n"),
        Just("data"),
        Just("data: "),
        Just("event:"),
        Just("id: "),
        Just("id: \0"),
        Just("retry: 5"),
        Just(":"),
        Just(" "),
        Just("x"),
        Just("é"),
        Just("\u{feff}"),
        Just("{\"jsonrpc\":\"2.0\"}"),
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

/// `wire` cut into pieces of these lengths, over and over.
fn chunked<'a>(wire: &'a [u8], lengths: &[usize]) -> Vec<&'a [u8]> {
    let mut chunks = Vec::new();
    let mut rest = wire;
    for length in lengths.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (chunk, after) = rest.split_at(rest.len().min(*length));
        chunks.push(chunk);
        rest = after;
    }
    chunks
}

#[test]
fn a_mark_on_a_blank_line_is_known_whatever_the_limit() {
    let wire = "\u{feff}\n\n".as_bytes();
    for limit in 0..5 {
        assert_eq!(events(&chunked(wire, &[1]), limit), events(&[wire], limit), "{limit}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn any_chunking_gives_the_same_blocks(
        wire in stream(),
        lengths in proptest::collection::vec(1usize..7, 1..20),
        limit in prop_oneof![0usize..40, Just(usize::MAX)],
    ) {
        let whole = events(&[wire.as_bytes()], limit);
        prop_assert_eq!(events(&chunked(wire.as_bytes(), &lengths), limit), whole);
    }

    #[test]
    fn arbitrary_bytes_never_panic_and_keep_their_length(
        wire in proptest::collection::vec(any::<u8>(), 0..200),
        lengths in proptest::collection::vec(1usize..7, 1..20),
    ) {
        let total: usize = events(&chunked(&wire, &lengths), 50).iter().map(|e| e.wire_len).sum();
        prop_assert!(total <= wire.len());
    }

    #[test]
    fn reading_agrees_with_the_standard(wire in stream()) {
        let finished: Vec<_> = events(&[wire.as_bytes()], usize::MAX)
            .into_iter()
            .filter(|e| !e.faults.contains(&SseFault::Unterminated))
            .map(|e| (e.data.map(|d| String::from_utf8(d.to_vec()).unwrap()), e.event, e.id))
            .collect();
        let plain = read_plainly(&wire);
        // A tail of comments alone is a block here and nothing to the standard.
        let tail = finished.len().saturating_sub(plain.len());
        prop_assert!(tail <= 1);
        prop_assert_eq!(&finished[..finished.len() - tail], &plain[..]);
        prop_assert!(finished[finished.len() - tail..].iter().all(|e| *e == (None, None, None)));
    }
}

//! The decoders of the wire: any chunking gives the same, and no byte is lost.

use bytes::Bytes;
use midwire::wire::http1::{Asked, Decoder, Part, Side};
use midwire::wire::jsonrpc::{Envelope, Frame, Id, MEMBER_LIMIT, read};
use midwire::wire::lines::{Line, LineDecoder};
use midwire::wire::sse::{SseDecoder, SseEvent};

/// The first byte of an input says how the rest is cut.
fn cut(data: &[u8]) -> (u8, &[u8]) {
    data.split_first().map_or((0, data), |(first, rest)| (*first, rest))
}

/// Pieces of 1 to 16 bytes, their lengths drawn from `seed`; 0 gives single bytes.
fn chunks(data: &[u8], seed: u8) -> Vec<&[u8]> {
    let (mut rest, mut state, mut chunks) = (data, u32::from(seed), Vec::new());
    while !rest.is_empty() {
        state = state.wrapping_mul(1_103_515_245).wrapping_add(12_345);
        let len = if seed == 0 { 1 } else { 1 + (state >> 16) as usize % 16 };
        let (chunk, after) = rest.split_at(len.min(rest.len()));
        chunks.push(chunk);
        rest = after;
    }
    chunks
}

/// stdio framing.
pub fn lines(data: &[u8]) {
    let (seed, stream) = cut(data);
    let read = |chunks: &[&[u8]], limit: usize| -> Vec<Line> {
        let mut decoder = LineDecoder::new(limit);
        let mut lines: Vec<Line> = chunks.iter().flat_map(|chunk| decoder.push(chunk)).collect();
        lines.extend(decoder.finish());
        assert_eq!(decoder.pending_bytes(), 0);
        lines
    };
    for limit in [0, 8, usize::MAX] {
        let whole = read(&[stream], limit);
        assert_eq!(whole, read(&chunks(stream, seed), limit));
        assert_eq!(whole.iter().map(|line| line.wire_len).sum::<usize>(), stream.len());
        for line in whole {
            assert!(line.body.len() <= limit);
            assert_eq!(line.is_utf8, std::str::from_utf8(&line.body).is_ok());
        }
    }
}

/// Event streams.
pub fn sse(data: &[u8]) {
    let (seed, stream) = cut(data);
    let read = |chunks: &[&[u8]], limit: usize| -> Vec<SseEvent> {
        let mut decoder = SseDecoder::new(limit);
        let mut events: Vec<SseEvent> = chunks.iter().flat_map(|chunk| decoder.push(chunk)).collect();
        events.extend(decoder.finish());
        events
    };
    for limit in [0, 16, usize::MAX] {
        let whole = read(&[stream], limit);
        assert_eq!(whole, read(&chunks(stream, seed), limit));
        let told: usize = whole.iter().map(|event| event.wire_len).sum();
        // Blank lines after the last block belong to none.
        assert!(stream[told..].iter().all(|byte| b"\r\n\xef\xbb\xbf".contains(byte)));
    }
}

/// Envelopes.
pub fn jsonrpc(data: &[u8]) {
    match read(data) {
        Frame::NotUtf8 { at } | Frame::NotJson { at, .. } => assert!(at <= data.len()),
        Frame::Message(envelope) => {
            check_envelope(&envelope);
            check_members(data, &envelope);
        }
        Frame::Batch(envelopes) => envelopes.iter().for_each(check_envelope),
        Frame::OtherJson | Frame::Blank => {}
    }
}

fn check_envelope(envelope: &Envelope<'_>) {
    assert!(envelope.members.len() <= MEMBER_LIMIT);
    if let Some(id) = envelope.id() {
        assert!(envelope.has_id());
        assert_eq!(Id::from_raw(&id.to_string()), Some(id));
    }
}

/// Where the JSON library accepts the text, it finds the same members.
fn check_members(data: &[u8], envelope: &Envelope<'_>) {
    let text = data.strip_prefix(b"\xef\xbb\xbf").unwrap_or(data);
    let Ok(serde_json::Value::Object(expected)) = serde_json::from_slice(text) else { return };
    for (name, raw) in &envelope.members {
        assert!(expected.contains_key(&**name), "{name}");
        assert!(serde_json::from_str::<serde_json::Value>(raw.get()).is_ok(), "{raw}");
    }
    if envelope.members.len() < MEMBER_LIMIT {
        assert!(expected.keys().all(|name| envelope.member(name).is_some()));
    }
}

/// What one direction of a connection said, however it was cut.
#[derive(Debug, PartialEq)]
enum Said {
    Head(Box<midwire::wire::http1::Head>),
    Data(Vec<u8>),
    End,
    Opaque(Vec<u8>),
}

/// HTTP/1.x as it passes.
pub fn http1(data: &[u8]) {
    let (seed, stream) = cut(data);
    let side = if seed & 1 == 0 { Side::Requests } else { Side::Answers };
    let asked = [Asked::Other, Asked::Other, Asked::Head, Asked::Connect][usize::from(seed >> 1 & 3)];
    let whole = said(&[stream], side, asked, stream);
    assert_eq!(whole, said(&chunks(stream, seed >> 3), side, asked, stream));
}

fn said(chunks: &[&[u8]], side: Side, asked: Asked, stream: &[u8]) -> (Vec<Said>, Bytes, bool) {
    let mut decoder = Decoder::new(side);
    let (mut all, mut passed) = (Vec::new(), Vec::new());
    for chunk in chunks {
        let mut chunk = Bytes::copy_from_slice(chunk);
        while let Some(piece) = decoder.next(&mut chunk, asked) {
            passed.extend_from_slice(&piece.raw);
            match (piece.part, all.last_mut()) {
                (Part::HeadStart | Part::Framing, _) => {}
                (Part::Head(head), _) => all.push(Said::Head(head)),
                (Part::End, _) => all.push(Said::End),
                (Part::Data(more), Some(Said::Data(data)))
                | (Part::Opaque(more), Some(Said::Opaque(data))) => data.extend_from_slice(&more),
                (Part::Data(data), _) => all.push(Said::Data(data.to_vec())),
                (Part::Opaque(data), _) => all.push(Said::Opaque(data.to_vec())),
            }
        }
        assert!(chunk.is_empty());
    }
    assert_eq!(passed, stream, "every byte passes, in its place");
    (all, decoder.take_unfinished_head(), decoder.finish())
}

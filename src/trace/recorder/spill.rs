//! Batches as bytes: how the recorder puts items aside when writing falls behind. Never read by
//! another process. Bodies are copied as they are; what is rare goes as a line of the recording.

use bytes::{Buf as _, BufMut as _, Bytes};

use super::held::body_len;
use crate::event::tape::{Batch, Taped, Ticket};
use crate::event::{Dir, Event, Transport, What};
use crate::time::Mono;
use crate::trace::decode::{Defaults, decode_line};
use crate::trace::encode::encode_event;

// The kinds of an item's bytes.
const READ: u8 = 0;
const SSE_CHUNK: u8 = 1;
const BODY: u8 = 2;
const LINE: u8 = 3;

/// Cuts a batch into pieces of about `limit_bytes`, in order. The news of what was handed on
/// goes with the item it is about, or with the first that is later.
pub(super) fn pieces(batch: Batch, limit_bytes: usize) -> Vec<Batch> {
    let Batch { items, mut handed_on, taken_at, is_end } = batch;
    let (mut pieces, mut piece, mut len) = (Vec::new(), Vec::new(), 0);
    for taped in items {
        len += body_len(&taped.what) + size_of::<Taped>();
        piece.push(taped);
        if len >= limit_bytes {
            let last = piece.last().map(|taped| taped.ticket);
            let (now, later) = handed_on.into_iter().partition(|(ticket, _)| Some(*ticket) <= last);
            handed_on = later;
            pieces.push(Batch { items: std::mem::take(&mut piece), handed_on: now, taken_at, is_end: false });
            len = 0;
        }
    }
    pieces.push(Batch { items: piece, handed_on, taken_at, is_end });
    pieces
}

/// A batch as bytes.
pub(super) fn encode(batch: &Batch) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_u64(batch.items.len() as u64);
    for taped in &batch.items {
        encode_item(taped, &mut out);
    }
    out.put_u64(batch.handed_on.len() as u64);
    for (ticket, at) in &batch.handed_on {
        out.put_u64(ticket.0);
        out.put_u64(at.0);
    }
    out.put_u64(batch.taken_at.0);
    out.put_u8(u8::from(batch.is_end));
    out
}

fn encode_item(taped: &Taped, out: &mut Vec<u8>) {
    out.put_u64(taped.ticket.0);
    out.put_u64(taped.at.0);
    out.put_u64(taped.lost_bytes);
    let (kind, bytes, read) = match &taped.what {
        What::Bytes { bytes, read } => (READ, bytes.clone(), *read),
        What::SseChunk(bytes) => (SSE_CHUNK, bytes.clone(), None),
        What::Body(bytes) => (BODY, bytes.clone(), None),
        _ => (LINE, as_line(taped), None),
    };
    out.put_u8(kind);
    out.put_u8(match taped.dir {
        Dir::C2s => 0,
        Dir::S2c => 1,
        Dir::Stderr => 2,
        Dir::Tap => 3,
    });
    out.put_u8(u8::from(taped.transport == Transport::Http));
    for number in [taped.stream, taped.conn, read] {
        out.put_u8(u8::from(number.is_some()));
        out.put_u64(number.unwrap_or_default());
    }
    out.put_u64(bytes.len() as u64);
    out.extend_from_slice(&bytes);
}

fn as_line(taped: &Taped) -> Bytes {
    let Taped { at, dir, transport, ref what, .. } = *taped;
    let event = Event { n: 0, at, out: None, dir, transport, stream: None, conn: None, what: what.clone() };
    let mut line = Vec::new();
    encode_event(&event, &mut line);
    line.into()
}

/// The batch that was encoded; `None` if these bytes are not one.
pub(super) fn decode(mut bytes: Bytes) -> Option<Batch> {
    let mut batch = Batch::default();
    for _ in 0..bytes.try_get_u64().ok()? {
        batch.items.push(decode_item(&mut bytes)?);
    }
    for _ in 0..bytes.try_get_u64().ok()? {
        let ticket = Ticket(bytes.try_get_u64().ok()?);
        batch.handed_on.push((ticket, Mono(bytes.try_get_u64().ok()?)));
    }
    batch.taken_at = Mono(bytes.try_get_u64().ok()?);
    batch.is_end = bytes.try_get_u8().ok()? != 0;
    Some(batch)
}

fn decode_item(bytes: &mut Bytes) -> Option<Taped> {
    let ticket = Ticket(bytes.try_get_u64().ok()?);
    let at = Mono(bytes.try_get_u64().ok()?);
    let lost_bytes = bytes.try_get_u64().ok()?;
    let kind = bytes.try_get_u8().ok()?;
    let dir = match bytes.try_get_u8().ok()? {
        0 => Dir::C2s,
        1 => Dir::S2c,
        2 => Dir::Stderr,
        _ => Dir::Tap,
    };
    let transport = if bytes.try_get_u8().ok()? == 0 { Transport::Stdio } else { Transport::Http };
    let mut number = || {
        let is_some = bytes.try_get_u8().ok()? != 0;
        let number = bytes.try_get_u64().ok()?;
        Some(is_some.then_some(number))
    };
    let (stream, conn, read) = (number()?, number()?, number()?);
    let len = usize::try_from(bytes.try_get_u64().ok()?).ok()?;
    if len > bytes.len() {
        return None;
    }
    let body = bytes.split_to(len);
    let what = match kind {
        READ => What::Bytes { bytes: body, read },
        SSE_CHUNK => What::SseChunk(body),
        BODY => What::Body(body),
        _ => decode_line(&body, Defaults::default(), &mut |_| {}).ok()??.what,
    };
    Some(Taped { ticket, at, dir, transport, stream, conn, what, lost_bytes })
}

//! Items between the tape and the file: each waits a moment for the news that it was handed on,
//! and a request for the pieces of its body, without losing its place.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

use crate::event::tape::{Batch, Taped, Ticket};
use crate::event::{Dir, What};
use crate::time::{Mono, Ms};

/// How long an item waits. ours: with [`crate::event::tape::GATHER`] well below the promise that
/// everything older than 100 ms is in the file.
const HOLD: Ms = Ms(50);

/// Bytes that may wait; beyond them items go on without their news.
const HOLD_LIMIT_BYTES: usize = 8 << 20;

/// The largest body that is put into its request. ours: a usual message fits, and a large upload
/// stays in the pieces in which it came.
const MERGE_LIMIT_BYTES: usize = 1 << 20;

/// How many later items are looked through for pieces of a body.
const MERGE_REACH: usize = 64;

/// Items in order, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Held {
    slots: VecDeque<Slot>,
    bytes: usize,
}

#[derive(Debug)]
struct Slot {
    ticket: Ticket,
    /// `None`: went into the request before it.
    taped: Option<Taped>,
    out: Option<Mono>,
}

impl Held {
    /// Takes a batch in.
    pub(super) fn add(&mut self, batch: Batch) {
        self.bytes += batch.items.iter().map(|taped| body_len(&taped.what)).sum::<usize>();
        self.slots.extend(batch.items.into_iter().map(|taped| Slot {
            ticket: taped.ticket,
            taped: Some(taped),
            out: None,
        }));
        for (ticket, at) in batch.handed_on {
            let idx = self.slots.partition_point(|slot| slot.ticket < ticket);
            if let Some(slot) = self.slots.get_mut(idx).filter(|slot| slot.ticket == ticket) {
                slot.out = Some(at);
            }
        }
    }

    /// Takes in something that the recorder itself has to say, after all that is held.
    pub(super) fn add_own(&mut self, mut taped: Taped) {
        taped.ticket = self.slots.back().map_or(Ticket(0), |slot| slot.ticket);
        self.slots.push_back(Slot { ticket: taped.ticket, taped: Some(taped), out: None });
    }

    /// When the first item will have waited long enough.
    pub(super) fn due(&self) -> Option<Mono> {
        let first = self.slots.iter().find_map(|slot| slot.taped.as_ref());
        first.map(|taped| taped.at.plus(HOLD))
    }

    /// The first item and when it was handed on, if it need not wait (any more).
    pub(super) fn pop(&mut self, now: Mono, is_end: bool) -> Option<(Taped, Option<Mono>)> {
        while self.slots.front().is_some_and(|slot| slot.taped.is_none()) {
            self.slots.pop_front();
        }
        let first = self.slots.front()?;
        let taped = first.taped.as_ref()?;
        let is_due = is_end || taped.at.plus(HOLD) <= now || self.bytes > HOLD_LIMIT_BYTES;
        let is_ready = first.out.is_some() || !is_handed_on(&taped.what);
        if !is_due && (!is_ready || self.is_body_to_come()) {
            return None;
        }
        self.merge_body();
        let slot = self.slots.pop_front()?;
        let taped = slot.taped?;
        self.bytes = self.bytes.saturating_sub(body_len(&taped.what));
        Some((taped, slot.out))
    }

    /// The first item is a request that announces a body of which pieces are still missing.
    fn is_body_to_come(&self) -> bool {
        let Some(What::Request(head)) = self.first() else { return false };
        let announced = head.headers.get("content-length").and_then(|text| text.trim().parse().ok());
        let announced = announced.unwrap_or(0);
        let (pieces, is_closed) = self.body_pieces();
        let got: usize = pieces.iter().filter_map(|&idx| self.piece(idx)).map(Bytes::len).sum();
        head.body.is_none() && !is_closed && got < announced && announced <= MERGE_LIMIT_BYTES
    }

    /// Puts the body pieces that follow the first item, if it is a request, into it.
    fn merge_body(&mut self) {
        if !matches!(self.first(), Some(What::Request(head)) if head.body.is_none()) {
            return;
        }
        let (pieces, _) = self.body_pieces();
        let (mut body, mut out) = (BytesMut::new(), None);
        let mut single = None;
        for &idx in &pieces {
            let Some(slot) = self.slots.get_mut(idx) else { continue };
            let Some(Taped { what: What::Body(piece), .. }) = slot.taped.take() else { continue };
            out = slot.out;
            if pieces.len() == 1 {
                single = Some(piece);
            } else {
                body.extend_from_slice(&piece);
            }
        }
        let Some(slot) = self.slots.front_mut() else { return };
        if let Some(Taped { what: What::Request(head), .. }) = &mut slot.taped
            && !pieces.is_empty()
        {
            head.body = Some(single.unwrap_or_else(|| body.freeze()));
            slot.out = out;
        }
    }

    /// Where the pieces of the first item's body are, as far as they fit; and whether something
    /// else of that stream comes after them.
    fn body_pieces(&self) -> (Vec<usize>, bool) {
        let (mut pieces, mut len) = (Vec::new(), 0);
        let stream = self.slots.front().and_then(|slot| slot.taped.as_ref()).and_then(|taped| taped.stream);
        if stream.is_none() {
            return (pieces, true);
        }
        for (idx, slot) in self.slots.iter().enumerate().skip(1).take(MERGE_REACH) {
            let Some(taped) = slot.taped.as_ref().filter(|taped| taped.stream == stream) else { continue };
            match &taped.what {
                What::Body(piece)
                    if taped.dir == Dir::C2s
                        && taped.lost_bytes == 0
                        && len + piece.len() <= MERGE_LIMIT_BYTES =>
                {
                    len += piece.len();
                    pieces.push(idx);
                }
                _ => return (pieces, true),
            }
        }
        (pieces, false)
    }

    fn first(&self) -> Option<&What> {
        self.slots.front()?.taped.as_ref().map(|taped| &taped.what)
    }

    fn piece(&self, idx: usize) -> Option<&Bytes> {
        match &self.slots.get(idx)?.taped.as_ref()?.what {
            What::Body(piece) => Some(piece),
            _ => None,
        }
    }
}

/// Bytes of traffic that an item carries.
pub(super) fn body_len(what: &What) -> usize {
    match what {
        What::Bytes { bytes, .. } | What::SseChunk(bytes) | What::Body(bytes) => bytes.len(),
        What::Request(head) => head.body.as_ref().map_or(0, Bytes::len),
        _ => 0,
    }
}

/// Whether the tap will say when an item was handed on.
fn is_handed_on(what: &What) -> bool {
    matches!(
        what,
        What::Bytes { .. } | What::Request(_) | What::ResponseHead { .. } | What::SseChunk(_) | What::Body(_)
    )
}

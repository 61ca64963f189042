//! A server that stands still because nobody reads its stderr (REL-23).

use crate::event::Dir;
use crate::model::{CallIdx, CallState, Sight};
use crate::rules::Blame;
use crate::rules::book::{Book, On, SightKind};
use crate::rules::case::{Case, count};
use crate::rules::findings::Out;
use crate::time::Span;

/// What pipes of common systems hold, in bytes.
const PIPES: [u64; 3] = [4_096, 16_384, 65_536];

/// A writer is stopped at most this far from a full pipe: it waits with what does not fit.
const NEAR_BYTES: u64 = 1_024;

/// Calls are open this long, and both pipes are silent. ours: less may be slow work.
const STALL_NS: u64 = 10_000_000_000;

pub(super) fn rules(book: &mut Book) {
    let when =
        [On::Sight(SightKind::StdinClosed), On::Sight(SightKind::ProcessEnded), On::Sight(SightKind::Ended)];
    book.rule("REL-23", &when, stalled);
}

fn stalled(case: &Case<'_>, out: &mut Out<'_>) {
    let (Sight::StdinClosed { calls } | Sight::ProcessEnded { calls } | Sight::Ended { calls }) = case.what()
    else {
        return;
    };
    let flow = |dir| case.model.flow(case.scope()?.pipe(dir)?);
    let (Some(stderr), Some(stdout)) = (flow(Dir::Stderr), flow(Dir::S2c)) else { return };
    let is_full = PIPES.iter().any(|size| stderr.bytes.abs_diff(*size) <= NEAR_BYTES.min(size / 16));
    // Both fell silent together, and the server had answered before.
    let is_together = stdout.last_at <= stderr.last_at && stdout.messages > 0;
    if !is_full || !is_together {
        return;
    }
    let is_stuck = |idx: &&CallIdx| {
        case.model.call(**idx).is_some_and(|call| {
            let is_open =
                matches!(call.state, CallState::Unresolved | CallState::Delivered | CallState::Lost);
            let since = call.started.max(stderr.last_at);
            call.sender == Dir::C2s && is_open && case.seen.at.ns_since(since) >= STALL_NS
        })
    };
    let calls: Vec<CallIdx> = calls.iter().filter(is_stuck).copied().collect();
    if calls.is_empty() {
        return;
    }
    let many = u32::try_from(calls.len()).unwrap_or(u32::MAX);
    let sentence = format!(
        "the server wrote {} bytes to stderr and then nothing at all for {}, with {} open: it may wait for somebody to read its stderr",
        stderr.bytes,
        Span(case.seen.at.ns_since(stderr.last_at)),
        count(many, "call")
    );
    let draft = calls.iter().fold(out.draft(case), |draft, idx| draft.and_call(case.model, *idx));
    draft.blame(Blame::Client).gather(out, case.seen.scope, |_| sentence.clone());
}

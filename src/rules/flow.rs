//! What waits between the peers: queues, blocked pipes, late answers (FLW-01..04, REL-06).

use std::collections::HashSet;

use crate::event::Dir;
use crate::model::flow::{Flow, Gauge, SlowWrite, Whose};
use crate::model::{CallIdx, FlowIdx, MarkKind, Sight};
use crate::rules::Blame;
use crate::rules::book::{Book, On, SightKind};
use crate::rules::case::Case;
use crate::rules::findings::Out;
use crate::time::{Mono, Span};

/// Progress that stands before its own answer (FLW-03).
const PROGRESS_BEFORE: usize = 100;

/// A queue without a bound that rose at each of so many readings, for so long (REL-06). ours.
const RISING: u32 = 10;
const RISING_NS: u64 = 2_000_000_000;

pub(super) fn rules(book: &mut Book) {
    let queue = On::Sight(SightKind::Queue);
    book.rule("FLW-01", &[queue, On::Sight(SightKind::StreamClosed)], client_is_slow);
    let ends =
        [On::Sight(SightKind::StdinClosed), On::Sight(SightKind::ProcessEnded), On::Sight(SightKind::Ended)];
    let mut told = HashSet::new();
    book.rule("FLW-02", &ends, move |case: &Case<'_>, out: &mut Out<'_>| {
        pipe_is_blocked(case, out, &mut told);
    });
    book.rule("FLW-03", &[On::Sight(SightKind::Answered)], answer_waited);
    book.rule("FLW-04", &[queue], refused);
    book.rule("REL-06", &[queue], unbounded);
}

/// The flow and the gauge of a reading.
fn reading<'a>(case: &Case<'a>) -> Option<(FlowIdx, &'a Flow, &'a Gauge)> {
    let Sight::Queue { flow: idx } = case.what() else { return None };
    let flow = case.model.flow(*idx)?;
    Some((*idx, flow, flow.gauge()?))
}

/// A flow in words.
fn name(case: &Case<'_>, flow: &Flow) -> String {
    match (flow.call, flow.dir) {
        (Some(idx), _) => format!("the stream of {}", case.name(idx)),
        (None, Dir::C2s) => "the server's stdin".to_owned(),
        (None, Dir::Stderr) => "the server's stderr".to_owned(),
        (None, _) if flow.stream.is_some() => "a stream".to_owned(),
        (None, _) => "the server's stdout".to_owned(),
    }
}

fn client_is_slow(case: &Case<'_>, out: &mut Out<'_>) {
    let limit_ns = case.policy.limits.write_blocked.to_ns();
    let (idx, flow, waited_ns) = if let Sight::StreamClosed { flow: idx } = case.what() {
        let Some(flow) = case.model.flow(*idx) else { return };
        (*idx, flow, flow.slowest_write().map_or(0, |slow| slow.ns))
    } else {
        let Some((idx, flow, gauge)) = reading(case) else { return };
        let is_own = gauge.whose == Whose::Tap && flow.stream.is_some();
        (idx, flow, if is_own { gauge.longest_block_ms * 1_000_000 } else { 0 })
    };
    if waited_ns > limit_ns {
        let sentence = format!("{} waited {} for its client to read", name(case, flow), Span(waited_ns));
        let draft =
            flow.call.into_iter().fold(out.draft(case), |draft, call| draft.and_call(case.model, call));
        draft.blame(Blame::Client).gather(out, idx, |_| sentence.clone());
    }
}

fn pipe_is_blocked(case: &Case<'_>, out: &mut Out<'_>, told: &mut HashSet<FlowIdx>) {
    let limit_ns = case.policy.limits.write_blocked.to_ns();
    let Some(scope) = case.scope() else { return };
    let slow = |dir| -> Option<(FlowIdx, SlowWrite)> {
        let idx = scope.pipe(dir)?;
        Some((idx, case.model.flow(idx)?.slowest_write().filter(|slow| slow.ns > limit_ns)?))
    };
    let pipes = [(Dir::C2s, Blame::Server, "the server"), (Dir::S2c, Blame::Client, "the client")];
    let is_both = pipes.iter().all(|(dir, ..)| slow(*dir).is_some());
    for (dir, blame, who) in pipes {
        let Some((_, slow)) = slow(dir).filter(|(idx, _)| told.insert(*idx)) else { continue };
        let both = if is_both { "; both sides stopped reading, which looks like a deadlock" } else { "" };
        let sentence = format!("{who} did not read its pipe for {}{both}", Span(slow.ns));
        out.draft(case).and_event(slow.n).blame(blame).say(out, sentence);
    }
}

fn answer_waited(case: &Case<'_>, out: &mut Out<'_>) {
    let (Some(call), Some(row)) = (case.call(), case.row()) else { return };
    let handed = |row: &crate::model::Row| row.out.unwrap_or(Mono(0));
    let waited_ns = handed(row).ns_since(case.seen.at);
    let progress = call.marks.iter().rev().filter(|mark| mark.kind == MarkKind::Progress);
    let is_waiting = |row: &crate::model::Row| row.out.is_some_and(|out| out >= case.seen.at);
    let before = progress.take_while(|mark| case.model.row(mark.row).is_some_and(is_waiting)).count();
    let what = if waited_ns > case.policy.limits.write_blocked.to_ns() {
        format!("was handed over {} after it had been read", Span(waited_ns))
    } else if before > PROGRESS_BEFORE {
        format!("waited behind {before} progress of its own")
    } else {
        return;
    };
    out.draft(case).blame(Blame::Server).say(out, format!("the answer of {} {what}", case.subject()));
}

fn refused(case: &Case<'_>, out: &mut Out<'_>) {
    let Some((idx, flow, gauge)) = reading(case) else { return };
    let lost = gauge.last.refused;
    if gauge.whose == Whose::Tap && lost > 0 {
        let sentence = format!("midwire's own queue before {} refused {lost} answers", name(case, flow));
        out.draft(case).blame(Blame::Midwire).gather(out, idx, |_| sentence.clone());
    }
}

fn unbounded(case: &Case<'_>, out: &mut Out<'_>) {
    let Some((idx, flow, gauge)) = reading(case) else { return };
    let (owner, blame) = match gauge.whose {
        Whose::Tap => ("midwire's own queue", Blame::Midwire),
        Whose::Server => ("the server's queue", Blame::Server),
    };
    let name = name(case, flow);
    let rising_ns = case.seen.at.ns_since(gauge.rising_since);
    let sentence = match gauge.last.capacity {
        Some(capacity) if gauge.last.events > capacity => {
            format!("{owner} before {name} holds {} of at most {capacity}", gauge.last.events)
        }
        None if gauge.rising >= RISING && rising_ns >= RISING_NS => format!(
            "{owner} before {name} rose at each of {} readings in {}, to {} messages and {} bytes",
            gauge.rising,
            Span(rising_ns),
            gauge.last.events,
            gauge.last.bytes
        ),
        _ => return,
    };
    let calls: Option<CallIdx> = flow.call;
    let draft = calls.into_iter().fold(out.draft(case), |draft, call| draft.and_call(case.model, call));
    draft.blame(blame).gather(out, idx, |_| sentence.clone());
}

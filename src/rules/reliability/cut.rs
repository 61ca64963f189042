//! Calls that their client gave up because time was up: by which clock, and whether that clock was
//! the right one (REL-13..16).

use hashbrown::HashMap;

use crate::event::Dir;
use crate::model::{Basis, CallIdx, CallState, Clock, Cut, Model, Name, Sight};
use crate::rules::Blame;
use crate::rules::Severity;
use crate::rules::book::{Book, Look, On, SightKind};
use crate::rules::case::Case;
use crate::rules::findings::{Draft, Out};
use crate::time::Span;

/// What explains a call that seemed to hang: an answer was there, and nobody could read it. In the
/// words of rules about the call, and about its channel.
const ANSWER_UNREADABLE: [&str; 3] = ["RPC-09", "SSE-10", "SSE-01"];
const CHANNEL_UNREADABLE: [&str; 4] = ["RPC-08", "STD-03", "STD-13", "RPC-26"];

/// Durations of one tool that are kept for the median.
const DURATIONS: usize = 15;

/// Tools whose durations are kept. ours: more than a server lists.
const TOOLS: usize = 4_096;

const GIVEN_UP: [On; 3] =
    [On::Sight(SightKind::Cancel), On::Sight(SightKind::ClientLeft), On::Sight(SightKind::ProcessEnded)];

pub(super) fn rules(book: &mut Book) {
    book.rule("REL-13", &GIVEN_UP, each(names_its_clock));
    book.rule("REL-14", &GIVEN_UP, each(did_not_restart));
    book.rule("REL-15", &GIVEN_UP, each(never_asked));
    let durations = [On::Sight(SightKind::Answered), On::Sight(SightKind::AnswerAfterCancel)];
    book.rule("REL-16", &[&GIVEN_UP[..], &durations[..]].concat(), TooShort::default());
}

/// Calls a rule for each call that was cut.
fn each(rule: fn(&Case<'_>, CallIdx, &Cut<'_>, &mut Out<'_>)) -> impl Look {
    move |case: &Case<'_>, out: &mut Out<'_>| {
        for (idx, cut) in cuts(case, out) {
            rule(case, idx, &cut, out);
        }
    }
}

/// The client's calls that were cut by what was noticed.
fn cuts<'a>(case: &Case<'a>, out: &Out<'_>) -> Vec<(CallIdx, Cut<'a>)> {
    let calls = match case.what() {
        Sight::ProcessEnded { calls } => calls.as_slice(),
        _ => case.seen.call.as_slice(),
    };
    let is_client = |idx: &CallIdx| case.model.call(*idx).is_some_and(|call| call.sender == Dir::C2s);
    let found = calls.iter().copied().filter(is_client).filter_map(|idx| {
        let cut = case.model.cut_by(idx, case.policy)?;
        let is_explained = ANSWER_UNREADABLE.iter().any(|rule| out.findings.about(rule, idx).is_some())
            || CHANNEL_UNREADABLE.iter().any(|rule| out.findings.within(rule, case.seen.scope).is_some());
        (is_sure(case.model, idx, &cut) && !is_explained).then_some((idx, cut))
    });
    found.collect()
}

/// Who only leaves a stream, where that is no cancel, may do so for any reason: only a limit that is
/// known to be the client's explains it.
fn is_sure(model: &Model, idx: CallIdx, cut: &Cut<'_>) -> bool {
    let is_signal = model
        .call(idx)
        .is_some_and(|call| call.state != CallState::AbandonedByDisconnect || call.verdict().is_some());
    is_signal || matches!(cut.basis, Basis::Declared(_) | Basis::Client(_))
}

/// A finding about a call that was cut.
fn draft(case: &Case<'_>, idx: CallIdx, out: &Out<'_>) -> Draft {
    out.draft(case).and_call(case.model, idx).blame(Blame::Client)
}

fn names_its_clock(case: &Case<'_>, idx: CallIdx, cut: &Cut<'_>, out: &mut Out<'_>) {
    let sentence = format!("{} was {}", case.name(idx), cut.sentence());
    draft(case, idx, out).say(out, sentence);
}

fn did_not_restart(case: &Case<'_>, idx: CallIdx, cut: &Cut<'_>, out: &mut Out<'_>) {
    let is_within = cut.clocks.idle_ns < cut.limit.to_ns();
    if cut.clock != Clock::Fixed || cut.progress == 0 || !is_within || cut.basis == Basis::Said {
        return;
    }
    let Some(call) = case.model.call(idx) else { return };
    let declared = case.policy.clock(&case.model.subject(call));
    // A client of which nobody has said that progress restarts its clock may do as it does.
    let severity = if declared.is_some_and(|clock| clock.resets_on_progress) {
        Severity::Warning
    } else {
        Severity::Hint
    };
    let sentence = format!(
        "{} was cut {} after the request, although its progress came within the limit, the last of {} {} before",
        case.name(idx),
        Span(cut.clocks.absolute_ns),
        cut.progress,
        Span(cut.clocks.idle_ns)
    );
    draft(case, idx, out).at_most(severity).say(out, sentence);
}

fn never_asked(case: &Case<'_>, idx: CallIdx, cut: &Cut<'_>, out: &mut Out<'_>) {
    // Below that, progress would hardly have come in time.
    let is_short = cut.limit < case.policy.limits.short;
    if cut.has_token
        || is_short
        || !matches!(cut.clock, Clock::Fixed | Clock::Idle)
        || cut.basis == Basis::Said
    {
        return;
    }
    let sentence = format!(
        "{} was cut at {} and had not asked for progress, which might have shown that it was at work",
        case.name(idx),
        Span(cut.clocks.absolute_ns)
    );
    draft(case, idx, out).say(out, sentence);
}

/// How long the calls of each tool took.
#[derive(Default)]
struct TooShort(HashMap<Name, Vec<u64>>);

impl TooShort {
    fn note(&mut self, case: &Case<'_>) {
        let Some(call) = case.call().filter(|call| call.method == Name::TOOLS_CALL) else { return };
        let Some(tool) = call.target.filter(|tool| self.0.contains_key(tool) || self.0.len() < TOOLS) else {
            return;
        };
        let durations = self.0.entry(tool).or_default();
        if durations.len() == DURATIONS {
            durations.remove(0);
        }
        durations.push(case.seen.at.ns_since(call.started));
    }

    /// The median duration of the calls of a tool.
    fn median_ns(&self, tool: Option<Name>) -> Option<u64> {
        let mut sorted = self.0.get(&tool?)?.clone();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).copied()
    }
}

impl Look for TooShort {
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        if matches!(case.what(), Sight::Answered | Sight::AnswerAfterCancel(_)) {
            self.note(case);
            return;
        }
        for (idx, cut) in cuts(case, out) {
            let age_ns = cut.clocks.absolute_ns;
            let tool = case.model.call(idx).filter(|call| call.method == Name::TOOLS_CALL);
            let median_ns = self.median_ns(tool.and_then(|call| call.target));
            let (name, age) = (case.name(idx), Span(age_ns));
            let sentence = match median_ns {
                Some(median_ns) if age_ns < median_ns / 2 => {
                    format!("{name} was cut at {age}; calls of this tool take about {}", Span(median_ns))
                }
                _ if age_ns < case.policy.limits.short.to_ns() => {
                    format!("{name} was cut at {age}, which leaves a tool little time")
                }
                _ => continue,
            };
            draft(case, idx, out).say(out, sentence);
        }
    }
}

//! Calls that nothing ended, and cleanup that did not end (REL-11, REL-12).

use std::collections::BTreeSet;

use hashbrown::HashMap;

use crate::event::Dir;
use crate::model::{Call, CallIdx, CallState, Name, ScopeIdx, Sight, Stage};
use crate::rules::Blame;
use crate::rules::book::{Book, Look, On, SightKind};
use crate::rules::case::{Case, count, number};
use crate::rules::findings::{Draft, Out};
use crate::time::{Mono, Span};

/// A client that gives up this long after the last sign of life has met a call that was never
/// answered; before it may just have changed its mind. ours: shorter limits are the client's choice.
const PATIENCE_NS: u64 = 30_000_000_000;

/// A request that was accepted, and later ones on its channel have been answered, counts as never
/// answered after this. ours.
const ACCEPTED_NS: u64 = 2_000_000_000;

pub(super) fn rules(book: &mut Book) {
    let when = [
        On::Sight(SightKind::Answered),
        On::Sight(SightKind::ResumeEmpty),
        On::Sight(SightKind::ClientLeft),
        On::Sight(SightKind::ProcessEnded),
        On::Sight(SightKind::Ended),
    ];
    book.rule("REL-11", &when, Unanswered::default());
    let when = [On::Sight(SightKind::Told), On::Sight(SightKind::ProcessEnded), On::Sight(SightKind::Ended)];
    book.rule("REL-12", &when, Cleanup::default());
}

/// What has to be remembered until the end.
#[derive(Default)]
struct Unanswered {
    /// Calls whose client left without a cancel after long silence, and how long that was.
    given_up: HashMap<CallIdx, u64>,
    /// How often a stream that took up a call's again brought nothing.
    empty: HashMap<CallIdx, u32>,
    /// The latest answered request of each scope.
    answered: HashMap<ScopeIdx, CallIdx>,
}

impl Look for Unanswered {
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        match (case.what(), case.seen.call) {
            (Sight::Answered, Some(idx)) => {
                self.empty.remove(&idx);
                self.given_up.remove(&idx);
                let latest = self.answered.entry(case.seen.scope).or_insert(idx);
                *latest = idx.max(*latest);
            }
            (Sight::ResumeEmpty, Some(idx)) => *self.empty.entry(idx).or_default() += 1,
            (Sight::ClientLeft, Some(idx)) => self.client_left(case, idx),
            (Sight::ProcessEnded { calls }, _) => process_ended(case, out, calls),
            (Sight::Ended { calls }, _) => self.ended(case, out, calls),
            _ => {}
        }
    }
}

impl Unanswered {
    /// In the legacy eras a dropped stream is no cancel.
    fn client_left(&mut self, case: &Case<'_>, idx: CallIdx) {
        let Some(call) = case.call().filter(|call| call.era.is_some_and(|era| !era.is_modern())) else {
            return;
        };
        let silent_ns = case.seen.at.ns_since(last_sign(call));
        if silent_ns >= PATIENCE_NS {
            self.given_up.insert(idx, silent_ns);
        }
    }

    fn ended(&mut self, case: &Case<'_>, out: &mut Out<'_>, calls: &[CallIdx]) {
        let horizon_ns = case.policy.limits.max.to_ns();
        for idx in calls {
            let Some(call) = waiting(case, *idx).filter(|_| !self.given_up.contains_key(idx)) else {
                continue;
            };
            let silent_ns = case.seen.at.ns_since(last_sign(call));
            let is_overtaken = self.answered.get(&case.seen.scope).is_some_and(|latest| latest > idx);
            if let Some(times) = self.empty.get(idx).copied() {
                let what =
                    format!("its stream was taken up again {} and brought nothing", count(times, "time"));
                never_answered(case, out, *idx, silent_ns, &what);
            } else if call.status == Some(202) && is_overtaken && silent_ns >= ACCEPTED_NS {
                never_answered(case, out, *idx, silent_ns, "it was accepted, and later calls were answered");
            } else if silent_ns >= horizon_ns && call.status != Some(202) {
                never_answered(case, out, *idx, silent_ns, "it is still open");
            }
        }
        let mine = |idx: &CallIdx| case.model.call(*idx).is_some_and(|call| call.scope == case.seen.scope);
        let mut given_up: Vec<(CallIdx, u64)> = self.given_up.extract_if(|idx, _| mine(idx)).collect();
        given_up.sort_unstable();
        for (idx, silent_ns) in given_up {
            let is_silent = case.model.call(idx).is_some_and(|call| {
                matches!(call.state, CallState::Unresolved | CallState::AbandonedByDisconnect)
                    && call.after.late_answers == 0
            });
            if is_silent {
                never_answered(case, out, idx, silent_ns, "the client gave up");
            }
        }
    }
}

/// The calls of a process that ended that had never been answered.
fn process_ended(case: &Case<'_>, out: &mut Out<'_>, calls: &[CallIdx]) {
    let Some(scope) = case.scope() else { return };
    let Some(closed) = [scope.process.stdin_closed, scope.process.signalled].into_iter().flatten().min()
    else {
        return;
    };
    for idx in calls {
        let Some(call) = waiting(case, *idx) else { continue };
        let silent_ns = closed.ns_since(last_sign(call));
        if silent_ns >= PATIENCE_NS {
            never_answered(case, out, *idx, silent_ns, "the client closed");
        }
    }
}

/// A request of the client that waits for an answer; subscriptions wait for none.
fn waiting<'a>(case: &Case<'a>, idx: CallIdx) -> Option<&'a Call> {
    let call = case.model.call(idx)?;
    (call.sender == Dir::C2s && call.method != Name::LISTEN && !call.is_injected).then_some(call)
}

/// The last sign of work on a call.
fn last_sign(call: &Call) -> Mono {
    call.progress.last_at.unwrap_or(call.started)
}

fn never_answered(case: &Case<'_>, out: &mut Out<'_>, idx: CallIdx, silent_ns: u64, what: &str) {
    let sentence =
        format!("{} was never answered; {what} after {} of silence", case.name(idx), Span(silent_ns));
    out.draft(case).and_call(case.model, idx).blame(Blame::Server).say(out, sentence);
}

/// Calls whose cleanup has begun and not ended.
#[derive(Default)]
struct Cleanup(BTreeSet<CallIdx>);

impl Look for Cleanup {
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        match (case.what(), case.seen.call) {
            (Sight::Told(Stage::CleanupStart), Some(idx)) => {
                self.0.insert(idx);
            }
            (Sight::Told(Stage::CleanupEnd), Some(idx)) if self.0.remove(&idx) => {
                overran(case, out, idx, false);
            }
            (Sight::ProcessEnded { .. } | Sight::Ended { .. }, _) => {
                let mine =
                    |idx: &CallIdx| case.model.call(*idx).is_some_and(|call| call.scope == case.seen.scope);
                for idx in self.0.extract_if(.., mine).collect::<Vec<_>>() {
                    overran(case, out, idx, true);
                }
            }
            _ => {}
        }
    }
}

fn overran(case: &Case<'_>, out: &mut Out<'_>, idx: CallIdx, is_held: bool) {
    let told = case.model.call(idx).and_then(|call| call.told.as_deref());
    let Some((row, began)) = told.and_then(|told| told.cleanup_started) else { return };
    let took_ns = case.seen.at.ns_since(began);
    let limit_ns = case.policy.limits.cleanup.to_ns();
    if took_ns <= limit_ns {
        return;
    }
    let (name, took, limit) = (case.name(idx), Span(took_ns), Span(limit_ns));
    let sentence = if is_held {
        format!("the cleanup of {name} began {took} before the end and never ended; its limit is {limit}")
    } else {
        format!("the cleanup of {name} took {took}; its limit is {limit}")
    };
    let first = number(case.model, row);
    let draft = out.draft(case).and_call(case.model, idx).blame(Blame::Server);
    first.into_iter().fold(draft, Draft::and_event).say(out, sentence);
}

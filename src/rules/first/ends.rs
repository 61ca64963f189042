//! Calls that got no answer (REL-11).

use std::collections::HashMap;

use crate::event::Dir;
use crate::model::{Call, CallIdx, CallState, ScopeIdx, Sight};
use crate::rules::case::{Case, count};
use crate::rules::{Blame, Judge};
use crate::spec::era::Era;

/// A client that gives up this long after the last sign of life has met a call that was never
/// answered; before it may just have changed its mind. ours: shorter limits are the client's choice.
const PATIENCE_NS: u64 = 30_000_000_000;

/// A call that is open at the end of a recording counts as never answered after this. ours: the
/// default of the longest limit (TMO-01).
const HORIZON_NS: u64 = 300_000_000_000;

/// The same, where the request was accepted and later ones on its channel have been answered. ours.
const ACCEPTED_NS: u64 = 2_000_000_000;

/// What has to be remembered until the end.
#[derive(Debug, Default)]
pub(in crate::rules) struct Ends {
    /// Calls whose client left without a cancel after long silence.
    given_up: HashMap<CallIdx, u64>,
    /// How often a stream that took up a call's again brought nothing.
    empty: HashMap<CallIdx, u32>,
    /// The latest answered request of each scope.
    answered: HashMap<ScopeIdx, CallIdx>,
}

pub(in crate::rules) fn look(case: &Case<'_>, judge: &mut Judge) {
    match &case.seen.what {
        Sight::Answered => {
            if let Some(idx) = case.seen.call {
                let latest = judge.ends.answered.entry(case.seen.scope).or_insert(idx);
                *latest = idx.max(*latest);
            }
        }
        Sight::ResumeEmpty => {
            if let Some(idx) = case.seen.call {
                *judge.ends.empty.entry(idx).or_default() += 1;
            }
        }
        Sight::ClientLeft => client_left(case, judge),
        Sight::ProcessEnded { calls } => process_ended(case, judge, calls),
        Sight::Ended { calls } => ended(case, judge, calls),
        _ => {}
    }
}

fn is_listen(case: &Case<'_>, call: &Call) -> bool {
    case.model.text(call.method) == "subscriptions/listen"
}

/// In the legacy eras a dropped stream is no cancel.
fn client_left(case: &Case<'_>, judge: &mut Judge) {
    let (Some(call), Some(idx)) = (case.call(), case.seen.call) else { return };
    if call.era.is_none_or(Era::is_modern) {
        return;
    }
    let silent_ns = case.seen.at.ns_since(call.progress.last_at.unwrap_or(call.started));
    if silent_ns >= PATIENCE_NS {
        judge.ends.given_up.insert(idx, silent_ns);
    }
}

/// The calls of a process that ended that had never been answered.
fn process_ended(case: &Case<'_>, judge: &mut Judge, calls: &[CallIdx]) {
    let Some(scope) = case.scope() else { return };
    let closed = [scope.process.stdin_closed, scope.process.signalled].into_iter().flatten().min();
    for idx in calls {
        let Some(call) = case.model.call(*idx).filter(|call| call.sender == Dir::C2s && !call.is_injected)
        else {
            continue;
        };
        let last_sign = call.progress.last_at.unwrap_or(call.started);
        if let Some(silent_ns) = closed.map(|closed| closed.ns_since(last_sign))
            && silent_ns >= PATIENCE_NS
            && !is_listen(case, call)
        {
            never_answered(case, judge, *idx, silent_ns, "the client closed");
        }
    }
}

fn ended(case: &Case<'_>, judge: &mut Judge, calls: &[CallIdx]) {
    for idx in calls {
        let Some(call) = case.model.call(*idx).filter(|call| call.sender == Dir::C2s && !call.is_injected)
        else {
            continue;
        };
        if is_listen(case, call) || judge.ends.given_up.contains_key(idx) {
            continue;
        }
        let silent_ns = case.seen.at.ns_since(call.progress.last_at.unwrap_or(call.started));
        let is_overtaken = judge.ends.answered.get(&case.seen.scope).is_some_and(|latest| latest > idx);
        if let Some(times) = judge.ends.empty.get(idx).copied() {
            let what = format!("its stream was taken up again {} and brought nothing", count(times, "time"));
            never_answered(case, judge, *idx, silent_ns, &what);
        } else if call.status == Some(202) && is_overtaken && silent_ns >= ACCEPTED_NS {
            never_answered(case, judge, *idx, silent_ns, "it was accepted, and later calls were answered");
        } else if silent_ns >= HORIZON_NS && call.status != Some(202) {
            never_answered(case, judge, *idx, silent_ns, "it is still open");
        }
    }
    let mut given_up: Vec<(CallIdx, u64)> = judge.ends.given_up.drain().collect();
    given_up.sort_unstable();
    for (idx, silent_ns) in given_up {
        let Some(call) = case.model.call(idx) else { continue };
        if call.scope != case.seen.scope {
            judge.ends.given_up.insert(idx, silent_ns);
        } else if matches!(call.state, CallState::Unresolved | CallState::AbandonedByDisconnect)
            && call.after.late_answers == 0
        {
            never_answered(case, judge, idx, silent_ns, "the client gave up");
        }
    }
}

fn never_answered(case: &Case<'_>, judge: &mut Judge, idx: CallIdx, silent_ns: u64, what: &str) {
    let Some(draft) = case.draft("REL-11") else { return };
    let sentence =
        format!("{} was never answered; {what} after {} of silence", case.name(idx), Case::ms(silent_ns));
    let draft = draft.and_call(case.model, idx).blame(Blame::Server);
    draft.find(case, judge, sentence);
}

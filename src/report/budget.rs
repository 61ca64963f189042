//! Limits of the user's own: how long a call may take, and how many may be open at once.
//!
//! A budget is no rule of the protocol, so nobody is blamed for exceeding it; calls that midwire
//! itself disturbed are left out, and so are subscriptions, which are made to stay open.

use super::{Item, about, request};
use crate::event::Dir;
use crate::model::{Call, CallIdx, CallState, Model};
use crate::rules::{Blame, Severity};
use crate::spec::methods::LISTEN;
use crate::time::{Mono, Ms};

/// Names of the budgets, where findings have the id of a rule.
const DURATION: &str = "max-duration";
const IN_FLIGHT: &str = "max-in-flight";

/// Calls named of one stretch that exceeds a budget. ours: enough to look at.
const NAMED: usize = 32;

/// The user's own limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Budget {
    /// Longest time from a client's request to its end, inclusive.
    pub duration: Option<Ms>,
    /// Most requests of the client that may be open at once, inclusive.
    pub in_flight: Option<usize>,
}

impl Budget {
    /// What a budget says, in one sentence; empty for other names.
    pub(super) fn rule_text(name: &str) -> &'static str {
        match name {
            DURATION => "A call takes no longer than the budget given to this check.",
            IN_FLIGHT => "No more calls are open at once than the budget given to this check.",
            _ => "",
        }
    }

    /// Names and sentences of the budgets that were given.
    pub(super) fn given(self) -> impl Iterator<Item = &'static str> {
        [self.duration.map(|_| DURATION), self.in_flight.map(|_| IN_FLIGHT)].into_iter().flatten()
    }

    /// What exceeds the budgets in a recording: each call that took too long, and each stretch with
    /// too many of them.
    pub(super) fn exceeded(self, model: &Model) -> Vec<Item> {
        let mut items = Vec::new();
        if let Some(limit) = self.duration {
            items.extend(calls(model).filter_map(|(idx, call)| too_long(model, idx, call, limit)));
        }
        if let Some(limit) = self.in_flight {
            too_many(model, limit, &mut items);
        }
        items
    }
}

/// The client's calls that a budget is about.
fn calls(model: &Model) -> impl Iterator<Item = (CallIdx, &Call)> {
    let numbered = (0..).map(CallIdx).zip(model.calls());
    numbered
        .filter(|(_, call)| call.sender == Dir::C2s && !call.is_injected && model.text(call.method) != LISTEN)
}

fn too_long(model: &Model, idx: CallIdx, call: &Call, limit: Ms) -> Option<Item> {
    let took_ns = call.ended.unwrap_or(model.overview().last).ns_since(call.started);
    if took_ns <= limit.0.saturating_mul(1_000_000) {
        return None;
    }
    let is_open = !call.state.is_terminal() || call.state == CallState::Unresolved;
    let verb = if is_open { "was still open after" } else { "took" };
    let message = format!(
        "{} (id {}) {verb} {} ms; the budget is {} ms",
        request(model, call),
        call.id,
        took_ns.div_ceil(1_000_000),
        limit.0
    );
    let evidence = [Some(call.row), call.marks.last().map(|mark| mark.row)];
    let mut evidence: Vec<u64> =
        evidence.into_iter().flatten().filter_map(|row| Some(model.row(row)?.n)).collect();
    evidence.dedup();
    let remedy = "See on the call's lane where the time goes, or raise --max-duration.";
    Some(item(model, DURATION, &[idx], evidence, message, remedy))
}

/// Sweeps over starts and ends; what ends at a moment ends before anything starts at it.
fn too_many(model: &Model, limit: usize, items: &mut Vec<Item>) {
    let mut turns: Vec<(Mono, bool, CallIdx)> = Vec::new();
    for (idx, call) in calls(model) {
        turns.push((call.started, true, idx));
        if let Some(ended) = call.ended {
            turns.push((ended.max(call.started), false, idx));
        }
    }
    // A call that ends as it starts counts for nothing, so the order of its two turns is no matter.
    turns.sort_unstable();
    let mut open = std::collections::BTreeSet::new();
    let (mut peak, mut at_peak) = (0, Vec::new());
    for (_, starts, idx) in turns {
        if !starts {
            open.remove(&idx);
        } else if model.call(idx).is_some_and(|call| call.ended != Some(call.started)) {
            open.insert(idx);
        }
        if open.len() > limit && open.len() > peak {
            peak = open.len();
            at_peak = open.iter().rev().take(NAMED).rev().copied().collect();
        } else if open.len() <= limit && peak > 0 {
            items.push(stretch(model, limit, peak, &at_peak));
            peak = 0;
        }
    }
    if peak > 0 {
        items.push(stretch(model, limit, peak, &at_peak));
    }
}

fn stretch(model: &Model, limit: usize, peak: usize, at_peak: &[CallIdx]) -> Item {
    let rows = at_peak.iter().filter_map(|idx| model.row(model.call(*idx)?.row));
    let evidence = rows.map(|row| row.n).collect();
    let message = format!("{peak} calls were open at once; the budget is {limit}");
    let remedy = "Have the client wait for answers before it asks again, or raise --max-in-flight.";
    item(model, IN_FLIGHT, at_peak, evidence, message, remedy)
}

fn item(
    model: &Model,
    rule: &'static str,
    calls: &[CallIdx],
    evidence: Vec<u64>,
    message: String,
    remedy: &'static str,
) -> Item {
    let (subjects, requests) = about(model, calls);
    let era = calls.first().and_then(|idx| model.call(*idx)?.era);
    let (severity, blame) = (Severity::Error, Blame::Unknown);
    Item {
        rule,
        severity,
        era,
        blame,
        subjects,
        requests,
        evidence,
        message,
        remedy,
        caused_by: None,
        fails: true,
    }
}

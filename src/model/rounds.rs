//! Rounds of multi round-trip requests: what was asked for in the place of an answer, and which
//! request went on with it.
//!
//! A request that is answered by asking for input has ended; the client may come back with the same
//! method and parameters, the answers, and the state that it was given. [`Call::round_of`] links
//! the two.
//!
//! [`Call::round_of`]: super::Call::round_of

use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasher;

use super::call::CallIdx;
use super::content::Content;
use super::fold::At;
use super::message::Said;
use super::row::RowIdx;
use super::scope::ScopeIdx;
use super::seen::Sight;
use super::{Call, Model, Name};
use crate::time::Mono;
use crate::wire::json::Value;

/// Rounds whose questions and answers are kept; of older ones only the links remain. ours.
const KEPT: usize = 256;

/// Rounds that are found again by one state or one target. ours: the latest ones.
const ALIKE: usize = 16;

/// A call that was answered by asking for input.
#[derive(Debug, Clone)]
pub struct Round {
    /// The call.
    pub call: CallIdx,
    /// Its place in the chain, from 1.
    pub nth: u32,
    /// When the client was asked.
    pub at: Mono,
    /// The request that went on with it.
    pub next: Option<CallIdx>,
    /// Hash of the state that was handed out.
    state: Option<u64>,
    /// Equal for calls of the same method, target and arguments.
    fingerprint: u64,
    asked: Option<Content>,
    given: Option<Content>,
}

impl Round {
    /// `inputRequests` as sent; `None`: there are none, or they are no longer kept.
    #[must_use]
    pub fn asked(&self) -> Option<Value<'_>> {
        self.asked.as_ref()?.value().at(&["result", "inputRequests"])
    }

    /// `inputResponses` of the request that went on with it; `None`: there are none (yet), or they
    /// are no longer kept.
    #[must_use]
    pub fn given(&self) -> Option<Value<'_>> {
        self.given.as_ref()?.value().at(&["params", "inputResponses"])
    }
}

/// Every round, and how they are found again.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    all: Vec<Round>,
    by_call: HashMap<CallIdx, usize>,
    by_state: HashMap<u64, VecDeque<usize>>,
    by_target: HashMap<Target, VecDeque<usize>>,
}

/// What a round and the next one have in common.
type Target = (ScopeIdx, Name, Option<Name>);

impl Rounds {
    fn add(&mut self, round: Round, target: Target) {
        let at = self.all.len();
        self.by_call.insert(round.call, at);
        if let Some(state) = round.state {
            note(self.by_state.entry(state).or_default(), at);
        }
        note(self.by_target.entry(target).or_default(), at);
        self.all.push(round);
        if let Some(old) = at.checked_sub(KEPT).and_then(|old| self.all.get_mut(old)) {
            (old.asked, old.given) = (None, None);
        }
    }

    fn latest<'a>(&'a self, list: Option<&'a VecDeque<usize>>) -> impl Iterator<Item = &'a Round> {
        list.into_iter().flatten().rev().filter_map(|at| self.all.get(*at))
    }
}

fn note(list: &mut VecDeque<usize>, at: usize) {
    if list.len() >= ALIKE {
        list.pop_front();
    }
    list.push_back(at);
}

fn target(call: &Call) -> Target {
    (call.scope, call.method, call.target)
}

impl Model {
    /// Every round, in the order in which clients were asked.
    #[must_use]
    pub fn rounds(&self) -> &[Round] {
        &self.rounds.all
    }

    /// The round of a call that was answered by asking for input.
    #[must_use]
    pub fn round(&self, call: CallIdx) -> Option<&Round> {
        self.rounds.all.get(*self.rounds.by_call.get(&call)?)
    }

    /// Rounds of the same process or session, method and target as a call, the latest first; only
    /// the last few.
    pub fn rounds_like(&self, call: &Call) -> impl Iterator<Item = &Round> {
        self.rounds.latest(self.rounds.by_target.get(&target(call)))
    }

    /// Rounds in which this `requestState` was handed out, the latest first; only the last few.
    pub fn rounds_of_state(&self, state: Value<'_>) -> impl Iterator<Item = &Round> {
        self.rounds.latest(self.rounds.by_state.get(&self.state_hash(state)))
    }

    /// Whether a round handed out this `requestState`, or, with `None`, none at all.
    #[must_use]
    pub fn is_state_of(&self, round: &Round, state: Option<Value<'_>>) -> bool {
        round.state == state.map(|state| self.state_hash(state))
    }

    /// As [`Said`] hashes it: by its text, however that is escaped.
    fn state_hash(&self, state: Value<'_>) -> u64 {
        self.hasher.hash_one(state.text().as_deref().unwrap_or_else(|| state.raw()))
    }

    /// An open call is answered by asking for input.
    pub(super) fn ask(&mut self, at: At, said: &Said<'_>, idx: CallIdx, content: Option<&Content>) {
        let (Some(fingerprint), Some(call)) = (self.fingerprint(idx), self.call(idx)) else { return };
        let before = call.round_of.and_then(|before| self.round(before));
        let round = Round {
            call: idx,
            nth: before.map_or(1, |before| before.nth.saturating_add(1)),
            at: at.now,
            next: None,
            state: said.request_state,
            fingerprint,
            asked: content.cloned(),
            given: None,
        };
        let target = target(call);
        self.rounds.add(round, target);
    }

    /// The round that a new call goes on with: the latest that nobody went on with yet, of the same
    /// state, or, where none was handed out, of the same parameters.
    pub(super) fn go_on(
        &mut self,
        idx: CallIdx,
        said: &Said<'_>,
        content: Option<&Content>,
    ) -> Option<CallIdx> {
        if said.request_state.is_none() && !said.has_input_responses {
            return None;
        }
        let call = self.call(idx)?;
        let list = match said.request_state {
            Some(state) => self.rounds.by_state.get(&state),
            None => self.rounds.by_target.get(&target(call)),
        };
        let is_it = |round: &&Round| {
            let is_alike = self.call(round.call).is_some_and(|before| target(before) == target(call));
            let is_mine = round.state.is_some() || round.fingerprint == said.fingerprint;
            round.next.is_none() && round.state == said.request_state && is_alike && is_mine
        };
        let before = self.rounds.latest(list).find(is_it)?.call;
        let at = *self.rounds.by_call.get(&before)?;
        let round = self.rounds.all.get_mut(at)?;
        round.next = Some(idx);
        if round.asked.is_some() {
            round.given = content.cloned();
        }
        Some(before)
    }

    /// Tells that a request brings answers or a state.
    pub(super) fn see_given(&mut self, at: At, row: RowIdx, said: &Said<'_>, idx: CallIdx) {
        if said.request_state.is_some() || said.has_input_responses {
            self.see(at, Some(row), Some(idx), Sight::InputGiven);
        }
    }
}

#[cfg(test)]
mod tests;

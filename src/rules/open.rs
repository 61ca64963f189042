//! What a rule remembers of calls while they are open.

use hashbrown::HashMap;

use crate::model::{CallIdx, Model};

/// Calls remembered before those that have ended are forgotten. ours.
const FULL: usize = 1024;

/// Something remembered of each open call. Calls that have ended are forgotten now and then, so that
/// it stays about as large as there are open calls; O(1) amortised.
#[derive(Debug)]
pub(super) struct OfOpen<T> {
    of: HashMap<CallIdx, T>,
    full: usize,
}

impl<T> Default for OfOpen<T> {
    fn default() -> OfOpen<T> {
        OfOpen { of: HashMap::new(), full: FULL }
    }
}

impl<T> OfOpen<T> {
    /// What is remembered of a call, or `new` where nothing is.
    pub(super) fn entry(&mut self, model: &Model, idx: CallIdx, new: T) -> &mut T {
        if self.of.len() >= self.full {
            self.of.retain(|idx, _| is_open(model, *idx));
            self.full = FULL.max(2 * self.of.len());
        }
        self.of.entry(idx).or_insert(new)
    }
}

/// A call has not ended.
pub(super) fn is_open(model: &Model, idx: CallIdx) -> bool {
    model.call(idx).is_some_and(|call| !call.state.is_terminal())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_have_ended_are_forgotten() {
        let model = Model::new();
        let mut memory = OfOpen::default();
        for number in 0..10_000 {
            *memory.entry(&model, CallIdx(number), 0) += 1;
        }
        assert!(memory.of.len() <= FULL);
        assert_eq!(*memory.entry(&model, CallIdx(9_999), 0), 1);
    }
}

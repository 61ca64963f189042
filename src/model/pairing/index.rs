//! Calls by what names them: an id, or a token.

use hashbrown::HashTable;

use crate::model::CallIdx;

/// Calls by the hash of a name, which the call itself holds. The hash is kept beside the call, so
/// that growing costs no look at the calls.
#[derive(Debug, Default)]
pub(in crate::model) struct CallIndex(HashTable<(u64, CallIdx)>);

impl CallIndex {
    /// The call of this hash that `is_it`.
    pub(super) fn find(&self, hash: u64, is_it: impl Fn(CallIdx) -> bool) -> Option<CallIdx> {
        let found = self.0.find(hash, |(known, idx)| *known == hash && is_it(*idx));
        found.map(|(_, idx)| *idx)
    }

    /// Enters a call, in the place of an earlier one of the same name.
    pub(super) fn set(&mut self, hash: u64, idx: CallIdx, prior: Option<CallIdx>) {
        match prior.and_then(|prior| self.0.find_mut(hash, |(_, known)| *known == prior)) {
            Some(known) => known.1 = idx,
            None => {
                self.0.insert_unique(hash, (hash, idx), |(hash, _)| *hash);
            }
        }
    }
}

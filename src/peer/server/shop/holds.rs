//! What orders hold while they wait for their payment.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::wire::jsonrpc::Id;

/// Entries that are kept of what leaked, beside what is in use. ours.
const MOST: usize = 1000;

/// All that is held now.
#[derive(Debug, Clone, Default)]
pub(in crate::peer::server) struct Holds(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    last: u64,
    held: BTreeMap<u64, Held>,
}

/// One thing that is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::peer::server) struct Held {
    pub(in crate::peer::server) number: u64,
    pub(in crate::peer::server) title: String,
    /// The id of the request that holds it.
    pub(in crate::peer::server) request: Id,
    /// Its handler is gone: nobody will release it.
    pub(in crate::peer::server) is_leaked: bool,
}

impl Holds {
    /// Takes a hold; it lasts until [`Hold::release`], even beyond its owner. `None`: so much was
    /// leaked that no more is given out.
    pub(in crate::peer::server) fn take(&self, title: &str, request: &Id) -> Option<Hold> {
        let mut state = self.lock();
        if state.held.len() >= MOST {
            return None;
        }
        state.last += 1;
        let number = state.last;
        let held = Held { number, title: title.to_owned(), request: request.clone(), is_leaked: false };
        state.held.insert(number, held);
        drop(state);
        Some(Hold { holds: self.clone(), number })
    }

    /// All that is held, oldest first.
    pub(in crate::peer::server) fn list(&self) -> Vec<Held> {
        self.lock().held.values().cloned().collect()
    }

    /// A poisoned lock is still good: no step can stop midway.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Something that is held. To drop it is to forget it, not to release it.
#[derive(Debug)]
pub(in crate::peer::server) struct Hold {
    holds: Holds,
    number: u64,
}

impl Hold {
    /// Its number, from 1.
    pub(in crate::peer::server) fn number(&self) -> u64 {
        self.number
    }

    /// Gives it back.
    pub(in crate::peer::server) fn release(&self) {
        self.holds.lock().held.remove(&self.number);
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if let Some(held) = self.holds.lock().held.get_mut(&self.number) {
            held.is_leaked = true;
        }
    }
}

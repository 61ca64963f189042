//! What the tools with effects work on, for all requests of one server.

mod holds;
mod index;

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;

pub(super) use self::holds::Holds;
pub(super) use self::index::{Index, Rebuild, Stand};
use super::ServerOptions;
use super::caller::Caller;
use super::work::MOST_WORKERS;
use crate::peer::ledger::Ledger;

/// The tenant of calls on nobody's behalf.
const TENANT: &str = "demo";

/// Bytes of a digest that are kept of a principal.
const PRINCIPAL_BYTES: usize = 16;

#[derive(Debug)]
pub(super) struct Shop {
    pub(super) ledger: Ledger,
    pub(super) holds: Holds,
    pub(super) index: Index,
    /// What the fault `replica_memory` keeps where it does not belong.
    pub(super) last_drafts: LastDrafts,
    /// Places of threads that work.
    pub(super) workers: Semaphore,
}

impl Shop {
    pub(super) fn new(options: &ServerOptions) -> Shop {
        Shop {
            ledger: Ledger::new(options.ledger.clone(), options.faults.clone()),
            holds: Holds::default(),
            index: Index::default(),
            last_drafts: LastDrafts::default(),
            workers: Semaphore::new(MOST_WORKERS),
        }
    }
}

/// Principals of whom a process remembers something. ours: it is a fault and shall not grow.
const MOST_REMEMBERED: usize = 1000;

/// The handle of the last draft that each principal has made in this process.
#[derive(Debug, Default)]
pub(super) struct LastDrafts(Mutex<HashMap<String, String>>);

impl LastDrafts {
    pub(super) fn remember(&self, owner: &str, handle: &str) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() < MOST_REMEMBERED || all.contains_key(owner) {
            all.insert(owner.to_owned(), handle.to_owned());
        }
    }

    pub(super) fn of(&self, owner: &str) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(owner).cloned()
    }
}

/// On whose behalf a call works: what it makes is for the same one only. What the transport knows
/// of the principal may be a secret, so that only a digest is kept.
pub(super) fn tenant(caller: &Caller) -> String {
    let Some(principal) = &caller.principal else { return TENANT.to_owned() };
    let digest = Sha256::digest(principal);
    digest.iter().take(PRINCIPAL_BYTES).fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
}

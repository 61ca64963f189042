//! What the tools with effects work on, for all requests of one server.

mod holds;
mod index;

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
    /// Places of threads that work.
    pub(super) workers: Semaphore,
}

impl Shop {
    pub(super) fn new(options: &ServerOptions) -> Shop {
        Shop {
            ledger: Ledger::new(options.ledger.clone(), options.faults.clone()),
            holds: Holds::default(),
            index: Index::default(),
            workers: Semaphore::new(MOST_WORKERS),
        }
    }
}

/// On whose behalf a call works: what it makes is for the same one only. What the transport knows
/// of the principal may be a secret, so that only a digest is kept.
pub(super) fn tenant(caller: &Caller) -> String {
    let Some(principal) = &caller.principal else { return TENANT.to_owned() };
    let digest = Sha256::digest(principal);
    digest.iter().take(PRINCIPAL_BYTES).fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
}

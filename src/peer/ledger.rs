//! The ledger: one business effect for each idempotency key.
//!
//! An id of JSON-RPC names a message; a key in the arguments names what is wanted. The ledger keeps
//! keys, effects and their counter in one `SQLite` file, and changes them in one transaction: there
//! is no moment at which an effect is there and its key is not (REL-02, REL-03). Only rows of this
//! file are atomic together; what happens elsewhere needs the same key there, or an outbox.
//!
//! `book` is one connection to the file; this front keeps its blocking work away from the runtime.

mod book;
mod carrier;
mod drafts;
mod gap;
mod outbox;
mod schema;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use thiserror::Error;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use self::book::{Book, Point};
use self::gap::Gap;
use super::faults::{Fault, Faults};
use super::server::LedgerPlace;
use crate::machine::fingerprint::{Unreadable, fingerprint};
use crate::machine::policy::contract::Pointer;
use crate::wire::jsonrpc::Id;

pub(super) use self::book::{Entry, Stock};
pub(super) use self::carrier::Parcel;
pub(super) use self::schema::ARTICLES;

/// Where the key stands in the arguments of a tool with an effect.
pub(super) const KEY: &str = "idempotency_key";

/// Jobs that may wait for the ledger. ours: as many as a busy client sends; more are turned away,
/// not kept in memory.
const QUEUE: usize = 256;

/// Why the ledger says no, or cannot answer.
#[derive(Debug, Error)]
pub(super) enum LedgerError {
    /// The file cannot be made or opened.
    #[error("cannot open the ledger {}: {source}; pass --ledger with a file that can be written", .file.display())]
    Open {
        /// The file.
        file: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is none of this program.
    #[error("the ledger has layout {found}, this program knows {known}; pass --ledger with another file")]
    Layout {
        /// Its version.
        found: i64,
        /// The version of this program.
        known: i64,
    },
    /// Another process kept the file for too long.
    #[error("another process holds the ledger; try again with the same key")]
    Busy,
    /// `SQLite` failed in another way.
    #[error("the ledger failed: {0}")]
    Store(rusqlite::Error),
    /// Too many calls wait for it.
    #[error("{QUEUE} calls wait for the ledger; try again with the same key")]
    Full,
    /// The server ends, or the work on the ledger was stopped by a defect.
    #[error("the work on the ledger was stopped; look the key up before a retry")]
    Stopped,
    /// No key at all means no protection; one that is blank is a mistake.
    #[error("{KEY} is blank; give one that names what is wanted, or none")]
    BlankKey,
    /// The key stands for other arguments.
    #[error("{KEY} {0:?} was used with other arguments; take a new one for a new wish")]
    Conflict(String),
    /// The arguments cannot be fingerprinted.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// Nothing of this name is in stock.
    #[error("no article {0:?}; the resources stock://SKU are what there is")]
    UnknownSku(String),
    /// Less is left than was asked for.
    #[error("{wanted} of {sku} wanted, {left} left; nothing was reserved")]
    OutOfStock {
        /// The article.
        sku: String,
        /// How many were asked for.
        wanted: i64,
        /// How many there are.
        left: i64,
    },
    /// The handle is unknown, expired, or somebody else's: it is not said which.
    #[error("no draft has this handle; make one with draft_create")]
    NoDraft,
    /// No more drafts are kept.
    #[error("there are {0} drafts; wait until some have expired")]
    ManyDrafts(i64),
    /// The draft has no room for the text.
    #[error("a draft holds at most {0} bytes")]
    LongDraft(usize),
}

impl From<rusqlite::Error> for LedgerError {
    fn from(error: rusqlite::Error) -> LedgerError {
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked) => {
                LedgerError::Busy
            }
            _ => LedgerError::Store(error),
        }
    }
}

impl LedgerError {
    /// Its name for programs.
    pub(super) fn code(&self) -> &'static str {
        match self {
            LedgerError::Conflict(_) => "idempotency_key_conflict",
            LedgerError::BlankKey | LedgerError::Unreadable(_) | LedgerError::LongDraft(_) => {
                "invalid_arguments"
            }
            LedgerError::UnknownSku(_) => "unknown_sku",
            LedgerError::OutOfStock { .. } => "out_of_stock",
            LedgerError::NoDraft => "no_draft",
            LedgerError::ManyDrafts(_) => "too_many_drafts",
            LedgerError::Busy | LedgerError::Full => "ledger_busy",
            LedgerError::Open { .. }
            | LedgerError::Layout { .. }
            | LedgerError::Store(_)
            | LedgerError::Stopped => "ledger_failed",
        }
    }
}

/// How an effect elsewhere is bound to the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Via {
    /// Not at all: it is done in the middle of the transaction, which cannot take it back.
    Direct,
    /// As `Direct`, and the key goes along, so that the other side knows a repetition.
    Keyed,
    /// The transaction writes down what is to be done; it is done afterwards, under a key.
    Outbox,
}

/// What is to happen to the world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Effect {
    /// Money is taken.
    Charge {
        /// From whom.
        account: String,
        /// How much; above 0.
        cents: i64,
    },
    /// Goods are kept for somebody.
    Reserve {
        /// The article.
        sku: String,
        /// How many; above 0.
        quantity: i64,
    },
    /// A carrier takes a parcel: in a system of its own.
    Ship {
        /// The article.
        sku: String,
        /// How many; above 0.
        quantity: i64,
        /// How it is bound to the ledger.
        via: Via,
    },
}

impl Effect {
    /// The tool that does it.
    pub(super) fn operation(&self) -> &'static str {
        match self {
            Effect::Charge { .. } => "charge_account",
            Effect::Reserve { .. } => "reserve_inventory",
            Effect::Ship { .. } => "ship_goods",
        }
    }
}

/// An effect that is wanted, and by which name.
#[derive(Debug, Clone)]
pub(super) struct Intent {
    effect: Effect,
    tenant: String,
    key: Option<String>,
    /// Of operation, tenant and arguments without the key.
    fingerprint: String,
    /// The id of the request, as it was written.
    request: String,
}

impl Intent {
    /// `arguments`: as the client wrote them, JSON; the key, where there is one, stands among them.
    ///
    /// # Errors
    /// When the key is blank or the arguments cannot be read.
    pub(super) fn new(
        effect: Effect,
        tenant: &str,
        key: Option<&str>,
        arguments: &str,
        request: &Id,
    ) -> Result<Intent, LedgerError> {
        if key.is_some_and(|key| key.trim().is_empty()) {
            return Err(LedgerError::BlankKey);
        }
        let place = Pointer::new(&format!("/{KEY}"));
        let fingerprint = fingerprint(Some(tenant), effect.operation(), arguments, place.as_ref())?;
        Ok(Intent {
            effect,
            tenant: tenant.to_owned(),
            key: key.map(str::to_owned),
            fingerprint,
            request: request.to_string(),
        })
    }
}

/// What an intent has led to. The result is the caller's own: it was parsed from the stored text,
/// and nothing done to it changes a later replay (REL-04).
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Recorded {
    /// The whole tool result.
    pub(super) result: Value,
    /// What the effect is known by.
    pub(super) receipt: String,
    /// The effect was there before.
    pub(super) is_replay: bool,
}

/// The ledger of a server. Its file is opened by the first call that needs it.
#[derive(Debug)]
pub(super) struct Ledger {
    place: LedgerPlace,
    faults: Arc<Faults>,
    book: Arc<Mutex<Option<Book>>>,
    workers: TaskTracker,
    queue: Semaphore,
    gap: Gap,
}

impl Ledger {
    pub(super) fn new(place: LedgerPlace, faults: Arc<Faults>) -> Ledger {
        Ledger {
            place,
            faults,
            book: Arc::default(),
            workers: TaskTracker::new(),
            queue: Semaphore::new(QUEUE),
            gap: Gap::default(),
        }
    }

    /// Makes the effect happen, unless its key says that it did: then returns what came of it.
    /// Once begun it goes on to its end, even when nobody waits for it any more.
    ///
    /// # Errors
    /// When nothing happened. Only [`LedgerError::Busy`], [`LedgerError::Store`] and
    /// [`LedgerError::Stopped`] may come again or turn out otherwise with the same key.
    pub(super) async fn record(&self, intent: Intent) -> Result<Recorded, LedgerError> {
        let faults = self.faults.clone();
        let die = move |point: Point| {
            if point == Point::Effected && faults.is_on(Fault::CrashAfterEffect) {
                die();
            }
        };
        match intent.key.clone() {
            // The fault: what is read in one step is acted upon in another.
            Some(key)
                if self.faults.is_on(Fault::CheckThenAct) && !self.faults.is_on(Fault::NoKeySupport) =>
            {
                let intent = Arc::new(intent);
                let asked = intent.clone();
                if let Some(found) = self.job(move |book| book.check(&asked)).await? {
                    return Ok(found);
                }
                self.gap.meet(&key).await;
                self.job(move |book| book.act(&intent, die)).await
            }
            _ => self.job(move |book| book.record(&intent, die)).await,
        }
    }

    /// What a key of this tenant stands for; reads only.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub(super) async fn lookup(&self, tenant: &str, key: &str) -> Result<Option<Entry>, LedgerError> {
        let (tenant, key) = (tenant.to_owned(), key.to_owned());
        self.job(move |book| book.lookup(&tenant, &key)).await
    }

    /// The newest keys of this tenant, newest first.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub(super) async fn entries(&self, tenant: &str) -> Result<Vec<Entry>, LedgerError> {
        let tenant = tenant.to_owned();
        self.job(move |book| book.entries(&tenant)).await
    }

    /// What can still be reserved, by article.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub(super) async fn stock(&self) -> Result<Vec<Stock>, LedgerError> {
        self.job(Book::stock).await
    }

    /// The newest parcels of the carrier, newest first.
    ///
    /// # Errors
    /// When its file cannot be read.
    pub(super) async fn parcels(&self) -> Result<Vec<Parcel>, LedgerError> {
        self.job(Book::parcels).await
    }

    /// Makes an empty draft of `principal`, at the time `now` (ms, Unix time), under a handle that
    /// nobody can guess; it can be used for `life` ms.
    ///
    /// # Errors
    /// When the ledger cannot be written, or holds too many drafts.
    pub(super) async fn create_draft(
        &self,
        handle: &str,
        principal: &str,
        now: i64,
        life: i64,
    ) -> Result<(), LedgerError> {
        let (handle, principal) = (handle.to_owned(), principal.to_owned());
        self.job(move |book| book.create_draft(&handle, &principal, now, life)).await
    }

    /// Adds to a draft, at the time `now` (ms, Unix time): its whole text.
    ///
    /// # Errors
    /// When there is no such draft of this principal at that time, or no room.
    pub(super) async fn append_draft(
        &self,
        handle: &str,
        principal: &str,
        text: &str,
        now: i64,
    ) -> Result<String, LedgerError> {
        let (handle, principal, text) = (handle.to_owned(), principal.to_owned(), text.to_owned());
        self.job(move |book| book.append_draft(&handle, &principal, &text, now)).await
    }

    /// Runs a job on a thread that may block, one at a time.
    async fn job<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Book) -> Result<T, LedgerError> + Send + 'static,
    ) -> Result<T, LedgerError> {
        let _place = self.queue.try_acquire().map_err(|_| LedgerError::Full)?;
        let (book, place, faults) = (self.book.clone(), self.place.clone(), self.faults.clone());
        let job = self.workers.spawn_blocking(move || {
            // A poisoned lock is still good: a transaction that was not committed is rolled back.
            let mut book = book.lock().unwrap_or_else(PoisonError::into_inner);
            let book = match &mut *book {
                Some(book) => book,
                none => {
                    let book = none.insert(Book::open(&place, faults)?);
                    // What an earlier process has left undone.
                    book.deliver(&mut |_| ());
                    book
                }
            };
            work(book)
        });
        job.await.map_err(|_| LedgerError::Stopped)?
    }
}

/// Ends this process as `kill -9` does: nothing is flushed, nothing is released.
fn die() {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    std::process::abort();
}

#[cfg(test)]
mod tests;

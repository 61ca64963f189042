//! How handlers end: cleanup that a cancel does not reach, and work on threads, which nothing can
//! interrupt.
//!
//! A cancel ends every wait of a handler. What it holds has to be given back even so, and that may
//! need waits of its own: these are shielded, and have a limit of their own. Work on a thread looks
//! for the cancel by itself, between units; work that never looks runs to its end, and what it
//! makes is thrown away.

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::core::{Context, Ended};
use crate::event::telemetry::Stage;
use crate::peer::faults::Fault;
use crate::peer::telemetry::Teller;
use crate::time::Ms;

/// Threads that may work at once. ours: far below what the runtime has, so that the ledger always
/// finds one.
pub(super) const MOST_WORKERS: usize = 64;

/// How a cleanup went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cleanup {
    /// To its end.
    Done,
    /// Its limit came first: what it was to release is still held.
    Overran(Ms),
    /// The fault `cleanup_unshielded`: the cancel ended it at its first wait.
    Leaked,
}

impl Context {
    /// Runs cleanup to its end or its limit, whatever the client does. To be called however the
    /// work before it has ended.
    pub(super) async fn clean_up(&self, cleanup: impl Future<Output = ()>) -> Cleanup {
        let cancel = self.token();
        let limit = self.core().options.cleanup_limit;
        let has_limit = !self.faults().is_on(Fault::CleanupOverruns);
        let is_shielded = !self.faults().is_on(Fault::CleanupUnshielded);
        let cleanup = async {
            if !has_limit {
                // The fault: it takes as long as it likes, and that is longer than the limit.
                tokio::time::sleep(limit.into()).await;
            }
            cleanup.await;
        };
        self.tell(Stage::CleanupStart);
        let ended = tokio::select! {
            biased;
            () = cancel.cancelled(), if !is_shielded => Cleanup::Leaked,
            () = cleanup => Cleanup::Done,
            () = tokio::time::sleep(limit.into()), if has_limit => Cleanup::Overran(limit),
        };
        if ended == Cleanup::Done {
            self.tell(Stage::CleanupEnd);
        } else {
            // Nobody waits for an answer any more who could be told.
            tracing::warn!(id = %self.request().id, ?ended, "something is still held");
        }
        ended
    }

    /// Runs work on a thread of its own, and tells its progress. Comes back only when the thread
    /// is done: what it made, even if nobody wants it any more.
    ///
    /// # Errors
    /// When there are too many threads already, or the work was stopped by a defect.
    pub(super) async fn on_a_thread<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&Units) -> T + Send + 'static,
    ) -> Result<T, Ended> {
        let core = self.core().clone();
        let Ok(_place) = core.shop.workers.try_acquire() else {
            return Err(Ended::Failed(format!("{MOST_WORKERS} workers run; try again later")));
        };
        let (steps, mut told) = mpsc::channel(1);
        let units = Units { cancel: self.token(), teller: self.teller().clone(), steps };
        let mut job = core.handlers.spawn_blocking(move || work(&units));
        loop {
            tokio::select! {
                biased;
                Some((done, all)) = told.recv() => {
                    // Cancelled: there is nothing to tell, and the thread still runs.
                    let _ = self.progress(f64::from(done), f64::from(all), "").await;
                }
                made = &mut job => {
                    return made.map_err(|_| Ended::Failed("the work was stopped by a defect".to_owned()));
                }
            }
        }
    }
}

/// What work on a thread has of its request.
#[derive(Debug)]
pub(super) struct Units {
    cancel: CancellationToken,
    teller: Teller,
    steps: mpsc::Sender<(u32, u32)>,
}

impl Units {
    /// The client still wants it. To be asked between two units.
    pub(super) fn is_wanted(&self) -> bool {
        self.teller.tell(Stage::Checkpoint);
        !self.cancel.is_cancelled()
    }

    /// So many units are done. While the wire is slow this is not told; the next one will be.
    pub(super) fn done(&self, units: u32, all: u32) {
        let _ = self.steps.try_send((units, all));
    }

    /// Without a word to the client's side: what the client wants, for the record.
    pub(super) fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }
}

//! The search index, and the runs that rebuild it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::wire::jsonrpc::Id;

/// Runs that are remembered. ours.
const MOST: usize = 50;

/// The index of a server. The search is off while a run works on it.
#[derive(Debug, Clone, Default)]
pub(in crate::peer::server) struct Index(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    last: u64,
    /// Oldest first.
    runs: VecDeque<Run>,
    working: usize,
}

/// How a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::peer::server) enum Stand {
    /// It works.
    Running,
    /// All titles are done.
    Finished,
    /// It saw between two titles that nobody wants it any more.
    Stopped,
    /// All titles are done, and nobody wanted them any more.
    Discarded,
}

impl Stand {
    pub(in crate::peer::server) fn as_str(self) -> &'static str {
        match self {
            Stand::Running => "running",
            Stand::Finished => "finished",
            Stand::Stopped => "stopped",
            Stand::Discarded => "discarded",
        }
    }
}

/// One run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::peer::server) struct Run {
    pub(in crate::peer::server) number: u64,
    /// The id of the request that it is for.
    pub(in crate::peer::server) request: Id,
    pub(in crate::peer::server) done: u32,
    pub(in crate::peer::server) titles: u32,
    pub(in crate::peer::server) stand: Stand,
}

impl Index {
    /// Begins a run; the search is off until it has ended.
    pub(in crate::peer::server) fn begin(&self, request: &Id, titles: u32) -> Rebuild {
        let mut state = self.lock();
        state.last += 1;
        state.working += 1;
        let number = state.last;
        if state.runs.len() == MOST {
            state.runs.pop_front();
        }
        state.runs.push_back(Run {
            number,
            request: request.clone(),
            done: 0,
            titles,
            stand: Stand::Running,
        });
        drop(state);
        Rebuild { index: self.clone(), number }
    }

    /// The search answers.
    pub(in crate::peer::server) fn is_online(&self) -> bool {
        self.lock().working == 0
    }

    /// The last runs, oldest first.
    pub(in crate::peer::server) fn runs(&self) -> Vec<Run> {
        self.lock().runs.iter().cloned().collect()
    }

    /// A poisoned lock is still good: no step can stop midway.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A run at work; when it is dropped, however it ended, the search is on again.
#[derive(Debug)]
pub(in crate::peer::server) struct Rebuild {
    index: Index,
    number: u64,
}

impl Rebuild {
    /// So many titles are done, and the run stands so.
    pub(in crate::peer::server) fn is_at(&self, done: u32, stand: Stand) {
        let mut state = self.index.lock();
        if let Some(run) = state.runs.iter_mut().find(|run| run.number == self.number) {
            (run.done, run.stand) = (done, stand);
        }
    }
}

impl Drop for Rebuild {
    fn drop(&mut self) {
        self.index.lock().working -= 1;
    }
}

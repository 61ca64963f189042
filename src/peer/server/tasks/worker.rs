//! The one who works for a task.

use serde_json::{Map, Value, json};

use super::store::{Outcome, Step};
use super::tell;
use crate::peer::faults::Fault;
use crate::peer::server::SharedCore;
use crate::spec::codes;
use crate::time::Ms;

/// Why work for a task ends without a result.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::peer::server) enum Stop {
    /// The wish to cancel was seen, or the task is forgotten.
    Unwanted,
    /// A JSON-RPC error, with this text (TSK-18).
    Broken(String),
}

/// A worker and its task.
#[derive(Debug, Clone)]
pub(in crate::peer::server) struct Worker {
    core: SharedCore,
    id: String,
}

impl Worker {
    pub(super) fn new(core: SharedCore, id: String) -> Worker {
        Worker { core, id }
    }

    /// Works to the end, and says how it was.
    pub(super) async fn run(self, work: impl Future<Output = Result<Map<String, Value>, Stop>>) {
        let made = tokio::select! {
            biased;
            // Nobody can ask for it any more.
            () = self.core.ending.cancelled() => return,
            made = work => made,
        };
        let outcome = match made {
            Ok(mut result) => {
                // TSK-26: as `tools/call` would have returned it.
                result.entry("resultType").or_insert_with(|| json!("complete"));
                Outcome::Result(result)
            }
            Err(Stop::Broken(text)) => Outcome::Error(codes::INTERNAL_ERROR, text),
            Err(Stop::Unwanted) => return,
        };
        self.step(|step| {
            let is_end = match outcome {
                Outcome::Result(_) => step.task.complete(outcome),
                Outcome::Error(..) => step.task.fail(outcome),
            };
            ((), is_end)
        });
    }

    /// Works for so long: nothing interrupts it.
    pub(in crate::peer::server) async fn work(&self, time: Ms) {
        tokio::time::sleep(time.into()).await;
    }

    /// Looks whether the task is still wanted, between two pieces of work.
    ///
    /// # Errors
    /// When it is not: the task has ended, and so does the work.
    pub(in crate::peer::server) fn checkpoint(&self) -> Result<(), Stop> {
        if self.core.options.faults.is_on(Fault::FinishesAnyway) {
            return Ok(());
        }
        let is_over = self.step(|step| {
            let is_over = step.task.checkpoint();
            (is_over, is_over)
        });
        if is_over.unwrap_or(true) { Err(Stop::Unwanted) } else { Ok(()) }
    }

    /// What a client reads beside the state.
    pub(in crate::peer::server) fn say(&self, message: &str) {
        self.step(|step| {
            step.say(message);
            ((), true)
        });
    }

    /// Asks the client, each question as method and parameters, and waits: the answers in the same
    /// order. The questions are to be of kinds that the client declared.
    ///
    /// # Errors
    /// When the task is no longer wanted.
    pub(in crate::peer::server) async fn ask(&self, questions: &[(&str, Value)]) -> Result<Vec<Value>, Stop> {
        let questions: Vec<Value> =
            questions.iter().map(|(method, params)| json!({ "method": method, "params": params })).collect();
        let news = self.core.tasks.store.news(&self.id).ok_or(Stop::Unwanted)?;
        let keys = self.step(|step| (step.ask(questions), true)).ok_or(Stop::Unwanted)?;
        loop {
            let found = self.step(|step| {
                if step.task.is_cancel_requested() {
                    step.withdraw();
                    return (Some(None), true);
                }
                (step.take(&keys).map(Some), false)
            });
            match found {
                None => return Err(Stop::Unwanted),
                Some(Some(Some(answers))) => return Ok(answers),
                Some(Some(None)) => {
                    self.checkpoint()?;
                    return Err(Stop::Unwanted);
                }
                Some(None) => news.notified().await,
            }
        }
    }

    /// One step, told to those who listen where it has changed something; `None`: the task is
    /// forgotten.
    fn step<T>(&self, step: impl FnOnce(&mut Step<'_>) -> (T, bool)) -> Option<T> {
        let (made, told) = self.core.tasks.store.step(&self.id, step)?;
        if let Some(told) = told {
            tell(&self.core, told);
        }
        Some(made)
    }
}

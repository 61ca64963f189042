//! Durable tasks (extension `io.modelcontextprotocol/tasks`): work that outlives its request, its
//! stream and its connection.
//!
//! A `tools/call` that was answered with a task is a finished request: the two are never in one
//! table. `tasks/cancel` is a wish. It is answered at once, and the work may still end in any way;
//! `notifications/cancelled` and closed streams mean nothing to a task.

use std::collections::HashMap;
use std::hash::Hash;

use thiserror::Error;

use crate::spec::codes;

/// The extension, as a client declares it in the capabilities of a request.
pub const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// Where a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TaskState {
    /// Its worker runs.
    Working,
    /// Its worker waits for the client.
    InputRequired,
    /// It has a result.
    Completed,
    /// It ended with a JSON-RPC error.
    Failed,
    /// Its worker saw the wish to end it.
    Cancelled,
}

impl TaskState {
    /// The last one: nothing changes it.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        matches!(self, TaskState::Completed | TaskState::Failed | TaskState::Cancelled)
    }

    /// Its name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            TaskState::Working => "working",
            TaskState::InputRequired => "input_required",
            TaskState::Completed => "completed",
            TaskState::Failed => "failed",
            TaskState::Cancelled => "cancelled",
        }
    }
}

/// Why the server says no to a request about tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
pub enum TaskRefusal {
    /// There is no such task.
    #[error("no task with this id is known")]
    Unknown,
    /// The request does not declare the extension.
    #[error("the request does not declare the capability {EXTENSION}")]
    NotDeclared,
    /// A task with this id exists.
    #[error("a task with this id exists; take a new id")]
    TrackedId,
}

impl TaskRefusal {
    /// The error code that goes out with it.
    #[must_use]
    pub fn code(self) -> i64 {
        match self {
            TaskRefusal::Unknown => codes::INVALID_PARAMS,
            TaskRefusal::NotDeclared => codes::MISSING_REQUIRED_CLIENT_CAPABILITY,
            // Ids of tasks are the server's own.
            TaskRefusal::TrackedId => codes::INTERNAL_ERROR,
        }
    }
}

/// One task. `R` is what its outcome is for its owner: a result or an error.
#[derive(Debug, Clone)]
pub struct Task<R> {
    state: TaskState,
    is_cancel_requested: bool,
    outcome: Option<R>,
}

impl<R> Task<R> {
    /// A task whose worker starts.
    fn new() -> Task<R> {
        Task { state: TaskState::Working, is_cancel_requested: false, outcome: None }
    }

    /// Where it stands.
    #[must_use]
    pub fn state(&self) -> TaskState {
        self.state
    }

    /// The client wishes it to end.
    #[must_use]
    pub fn is_cancel_requested(&self) -> bool {
        self.is_cancel_requested
    }

    /// Its result or its error.
    #[must_use]
    pub fn outcome(&self) -> Option<&R> {
        self.outcome.as_ref()
    }

    /// The worker needs the client; false: it is not running.
    pub fn ask_input(&mut self) -> bool {
        self.step(TaskState::Working, TaskState::InputRequired)
    }

    /// The client has given what was asked for; false: nothing was.
    pub fn give_input(&mut self) -> bool {
        self.step(TaskState::InputRequired, TaskState::Working)
    }

    /// The worker looks whether it is still wanted, between two pieces of work; true: it has ended
    /// the task and stops.
    pub fn checkpoint(&mut self) -> bool {
        self.is_cancel_requested && self.step(TaskState::Working, TaskState::Cancelled)
    }

    /// The worker is done, wished for or not; false: the task had its end before.
    pub fn complete(&mut self, result: R) -> bool {
        self.end(TaskState::Completed, result)
    }

    /// The worker ends with a JSON-RPC error; false: the task had its end before.
    pub fn fail(&mut self, error: R) -> bool {
        self.end(TaskState::Failed, error)
    }

    fn end(&mut self, state: TaskState, outcome: R) -> bool {
        let is_first = self.step(TaskState::Working, state);
        if is_first {
            self.outcome = Some(outcome);
        }
        is_first
    }

    fn step(&mut self, from: TaskState, to: TaskState) -> bool {
        let is_there = self.state == from;
        if is_there {
            self.state = to;
        }
        is_there
    }
}

/// The tasks of a server. `I` is what it names them by.
#[derive(Debug, Clone)]
pub struct Tasks<I, R> {
    tasks: HashMap<I, Task<R>>,
}

impl<I, R> Default for Tasks<I, R> {
    fn default() -> Tasks<I, R> {
        Tasks { tasks: HashMap::new() }
    }
}

impl<I: Eq + Hash, R> Tasks<I, R> {
    /// Makes a task for a request, which may be answered with its handle from now on: it can be
    /// read. `is_declared`: the request declares the extension.
    ///
    /// # Errors
    /// When the client does not know tasks, or the id is taken.
    pub fn start(&mut self, id: I, is_declared: bool) -> Result<(), TaskRefusal> {
        if !is_declared {
            return Err(TaskRefusal::NotDeclared);
        }
        if self.tasks.contains_key(&id) {
            return Err(TaskRefusal::TrackedId);
        }
        self.tasks.insert(id, Task::new());
        Ok(())
    }

    /// `tasks/get`, from whatever connection.
    ///
    /// # Errors
    /// When there is no such task, or the client does not know tasks.
    pub fn get(&self, id: &I, is_declared: bool) -> Result<&Task<R>, TaskRefusal> {
        if !is_declared {
            return Err(TaskRefusal::NotDeclared);
        }
        self.tasks.get(id).ok_or(TaskRefusal::Unknown)
    }

    /// `tasks/cancel`: notes the wish. `Ok` is answered with the empty complete result, whatever
    /// the task makes of it; one that is over stays as it is.
    ///
    /// # Errors
    /// When there is no such task, or the client does not know tasks.
    pub fn cancel(&mut self, id: &I, is_declared: bool) -> Result<(), TaskRefusal> {
        if !is_declared {
            return Err(TaskRefusal::NotDeclared);
        }
        let task = self.tasks.get_mut(id).ok_or(TaskRefusal::Unknown)?;
        if !task.state.is_terminal() {
            task.is_cancel_requested = true;
        }
        Ok(())
    }

    /// A task for its worker.
    pub fn worker(&mut self, id: &I) -> Option<&mut Task<R>> {
        self.tasks.get_mut(id)
    }

    /// Forgets a task after the time it is kept for; false: there is none.
    pub fn forget(&mut self, id: &I) -> bool {
        self.tasks.remove(id).is_some()
    }
}

#[cfg(test)]
mod tests;

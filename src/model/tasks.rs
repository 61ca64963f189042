//! Tasks: what a call became that goes on after its answer. Both kinds: those of the 2025-11-25 core,
//! and those of the Tasks extension.
//!
//! A request and its task are two things (docs/semantics.md, tasks): the call ends with the handle, the
//! task lives on under its own id and is read by polls and notifications. States are kept as they were
//! told, with when they were asked for and when they were delivered, since polls may overlap.

use std::collections::HashMap;

use super::fold::At;
use super::{CallIdx, Content, Model, Name, RowIdx, ScopeIdx};
use crate::spec::era::Era;
use crate::time::Mono;
use crate::wire::json::Value;
use crate::wire::jsonrpc::Kind;

/// States kept of one task: the first ones and, in the last place, the latest. ours.
const STATES_LIMIT: usize = 64;

/// Position in `Model::tasks`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskIdx(pub u32);

/// Where a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TaskStatus {
    /// It is being worked on.
    Working,
    /// It waits for answers of the client.
    InputRequired,
    /// It ended with a result.
    Completed,
    /// It ended with a JSON-RPC error.
    Failed,
    /// It was stopped.
    Cancelled,
}

impl TaskStatus {
    /// The status of a name on the wire.
    #[must_use]
    pub fn from_name(name: &str) -> Option<TaskStatus> {
        Some(match name {
            "working" => TaskStatus::Working,
            "input_required" => TaskStatus::InputRequired,
            "completed" => TaskStatus::Completed,
            "failed" => TaskStatus::Failed,
            "cancelled" => TaskStatus::Cancelled,
            _ => return None,
        })
    }

    /// Its name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            TaskStatus::Working => "working",
            TaskStatus::InputRequired => "input_required",
            TaskStatus::Completed => "completed",
            TaskStatus::Failed => "failed",
            TaskStatus::Cancelled => "cancelled",
        }
    }

    /// Nothing may change it later.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        matches!(self, TaskStatus::Completed | TaskStatus::Failed | TaskStatus::Cancelled)
    }
}

/// How a state was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Told {
    /// By the answer that handed the task out.
    Handle,
    /// By the answer to a poll.
    Poll,
    /// By the answer to a cancel (2025-11-25).
    CancelAnswer,
    /// By a notification.
    Notification,
}

/// One state of a task, as it was told.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TaskState {
    /// The status, where it is one that exists.
    pub status: Option<TaskStatus>,
    /// How it was told.
    pub told: Told,
    /// When it was asked for; for a notification, when that was read.
    pub asked: Mono,
    /// When it had been handed to the client, or was read where that is not known.
    pub delivered: Mono,
    /// The row that shows it.
    pub row: RowIdx,
    /// `createdAt` as told.
    pub created: Option<Name>,
    /// `lastUpdatedAt` as told.
    pub updated: Option<Name>,
}

/// A task and what is known of it.
#[derive(Debug, Clone)]
pub struct Task {
    /// Its id.
    pub id: Name,
    /// Where the id counts.
    pub scope: ScopeIdx,
    /// It is one of the 2025-11-25 core, not of the extension.
    pub is_core: bool,
    /// The call that was answered with it; `None`: its handle was not seen.
    pub made_by: Option<CallIdx>,
    /// When it was first heard of.
    pub first_seen: Mono,
    /// States in the order they were told; the latest is the last.
    pub states: Vec<TaskState>,
    /// How often it was asked for.
    pub polls: u32,
    /// The latest poll, and the one before it.
    pub last_polls: [Option<CallIdx>; 2],
    /// Time between polls that the server last asked for, in milliseconds.
    pub poll_interval_ms: Option<u64>,
    /// How long it is kept after its creation, in milliseconds; inner `None`: without end.
    pub ttl_ms: Option<Option<u64>>,
    /// The first request to cancel it.
    pub cancel: Option<CallIdx>,
    /// When an answer said that the cancel was taken in.
    pub cancel_acknowledged: Option<Mono>,
    /// When something other than a poll told the client that it is worth asking: an update, or a
    /// notification.
    pub nudged: Option<Mono>,
    /// Hash of the `Authorization` field of the request that made it.
    pub authorization: Option<u64>,
}

impl Task {
    /// The latest status that was told.
    #[must_use]
    pub fn status(&self) -> Option<TaskStatus> {
        self.states.last().and_then(|state| state.status)
    }

    /// The first terminal state that was told.
    #[must_use]
    pub fn ended(&self) -> Option<&TaskState> {
        self.states.iter().find(|state| state.status.is_some_and(TaskStatus::is_terminal))
    }

    fn add(&mut self, state: TaskState) {
        if self.states.len() >= STATES_LIMIT {
            self.states.pop();
        }
        self.states.push(state);
    }
}

/// Every task.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    all: Vec<Task>,
    by_id: HashMap<(ScopeIdx, Name), TaskIdx>,
}

/// The part of a message that tells a task's state.
#[must_use]
pub fn task_in(body: Value<'_>) -> Option<Value<'_>> {
    let told = body.get("result").or_else(|| body.get("params"))?;
    told.get("task")
        .filter(|task| task.is_object())
        .or(Some(told))
        .filter(|task| task.get("taskId").is_some())
}

impl Model {
    /// Every task that was heard of, in order.
    #[must_use]
    pub fn tasks(&self) -> &[Task] {
        &self.tasks.all
    }

    /// A task by its id.
    #[must_use]
    pub fn task(&self, scope: ScopeIdx, id: &str) -> Option<&Task> {
        let idx = self.tasks.by_id.get(&(scope, self.names.find(id)?))?;
        self.tasks.all.get(idx.0 as usize)
    }

    /// Takes in what the message read last says about a task.
    pub(super) fn note_task(&mut self, at: At, row: RowIdx, idx: Option<CallIdx>) {
        let Some(message) = self.messages.last() else { return };
        let call = idx.and_then(|idx| self.call(idx));
        let own = message.method.or_else(|| call.map(|call| call.method));
        let method = own.map_or("", |name| self.text(name));
        let is_about_tasks = method.starts_with("tasks/") || method.starts_with("notifications/tasks");
        let is_handle = message.kind == Kind::Result && call.is_some_and(|call| call.is_task);
        if !is_about_tasks && !is_handle {
            return;
        }
        let (Some(content), kind) = (message.content.clone(), message.kind) else { return };
        let told = match (kind, method) {
            (Kind::Request, _) => return self.note_task_request(at, idx),
            (Kind::Notification, _) => Told::Notification,
            (Kind::Result, "tasks/get") => Told::Poll,
            (Kind::Result, "tasks/cancel") => Told::CancelAnswer,
            (Kind::Result, _) if is_handle => Told::Handle,
            _ => return,
        };
        if told == Told::CancelAnswer {
            self.note_task_cancelled(at, idx);
        }
        self.note_task_state(at, row, idx, &content, told);
    }

    fn task_idx(&mut self, at: At, id: Name, is_core: bool) -> TaskIdx {
        let next = TaskIdx(u32::try_from(self.tasks.all.len()).unwrap_or(u32::MAX));
        let idx = *self.tasks.by_id.entry((at.scope, id)).or_insert(next);
        if idx == next {
            self.tasks.all.push(Task {
                id,
                scope: at.scope,
                is_core,
                made_by: None,
                first_seen: at.first,
                states: Vec::new(),
                polls: 0,
                last_polls: [None; 2],
                poll_interval_ms: None,
                ttl_ms: None,
                cancel: None,
                cancel_acknowledged: None,
                nudged: None,
                authorization: None,
            });
        }
        idx
    }

    /// A poll, an update or a cancel was sent.
    fn note_task_request(&mut self, at: At, call: Option<CallIdx>) {
        let Some((method, Some(target))) = call.and_then(|idx| {
            let call = self.call(idx)?;
            Some((call.method, call.target))
        }) else {
            return;
        };
        let method = self.text(method).to_owned();
        // A request about an unknown task makes none: what was never heard of stays unknown.
        let Some(idx) = self.tasks.by_id.get(&(at.scope, target)).copied() else { return };
        let Some(task) = self.tasks.all.get_mut(idx.0 as usize) else { return };
        match method.as_str() {
            "tasks/get" => {
                task.polls += 1;
                task.last_polls = [call, task.last_polls[0]];
            }
            "tasks/cancel" => task.cancel = task.cancel.or(call),
            "tasks/update" => task.nudged = Some(at.first),
            _ => {}
        }
    }

    fn note_task_cancelled(&mut self, at: At, call: Option<CallIdx>) {
        let target = call.and_then(|idx| self.call(idx)).and_then(|call| call.target);
        let Some(idx) = target.and_then(|id| self.tasks.by_id.get(&(at.scope, id)).copied()) else { return };
        if let Some(task) = self.tasks.all.get_mut(idx.0 as usize) {
            task.cancel_acknowledged.get_or_insert(at.out.unwrap_or(at.now));
        }
    }

    fn note_task_state(&mut self, at: At, row: RowIdx, call: Option<CallIdx>, content: &Content, told: Told) {
        let Some(value) = task_in(content.value()) else { return };
        let Some(id) = value.get("taskId").and_then(Value::text) else { return };
        let id = self.names.intern(&id);
        let text = |name: &str| value.get(name).and_then(Value::text);
        let status = text("status").and_then(|name| TaskStatus::from_name(&name));
        let created = text("createdAt").map(|text| self.names.intern(&text));
        let updated = text("lastUpdatedAt").map(|text| self.names.intern(&text));
        let number =
            |name: &str| value.get(name).and_then(Value::integer).and_then(|n| u64::try_from(n).ok());
        let interval = number("pollIntervalMs").or_else(|| number("pollInterval"));
        let ttl = value.get("ttlMs").or_else(|| value.get("ttl"));
        let ttl = ttl.and_then(|ttl| {
            if ttl.is_null() { Some(None) } else { number("ttlMs").or_else(|| number("ttl")).map(Some) }
        });
        let asker = call.and_then(|idx| self.call(idx));
        let asked_at = asker.filter(|_| told != Told::Notification).map_or(at.first, |call| call.started);
        let is_core = asker.and_then(|call| call.era).or(at.era) == Some(Era::V2025_11_25);
        let authorization = at.stream.and_then(|stream| self.authorization_of(stream));
        let idx = self.task_idx(at, id, is_core);
        let Some(task) = self.tasks.all.get_mut(idx.0 as usize) else { return };
        if told == Told::Handle {
            task.made_by = task.made_by.or(call);
            task.authorization = authorization;
        }
        if told == Told::Notification {
            task.nudged = Some(at.first);
        }
        task.poll_interval_ms = interval.or(task.poll_interval_ms);
        task.ttl_ms = ttl.or(task.ttl_ms);
        let delivered = at.out.unwrap_or(at.now);
        task.add(TaskState { status, told, asked: asked_at, delivered, row, created, updated });
    }

    /// Hash of the `Authorization` field of an exchange, to compare clients without keeping secrets.
    #[must_use]
    pub fn authorization_of(&self, stream: u64) -> Option<u64> {
        use std::hash::BuildHasher;
        let value = self.exchange_of(stream)?.headers().get("authorization")?;
        Some(self.hasher.hash_one(value))
    }
}

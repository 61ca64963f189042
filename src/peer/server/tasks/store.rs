//! The tasks of a server: what each is, who may see it, and what it waits for.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Map, Value, json};
use tokio::sync::Notify;

use crate::machine::task::{TaskRefusal, TaskState, Tasks as Machine};
use crate::peer::server::core::object;
use crate::time::{Ms, TimerClock, wall_now};

/// Tasks that are kept at once. ours: each is small, and ends with its `ttlMs`.
const MOST: usize = 1000;

/// How a task ended.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Outcome {
    /// What `tools/call` would have returned, a tool error included.
    Result(Map<String, Value>),
    /// A JSON-RPC error: code, message.
    Error(i64, String),
}

/// What the client is told when the task is made, beside its id.
#[derive(Debug, Clone, Copy)]
pub(in crate::peer::server) struct Terms {
    /// How long it is kept from its beginning.
    pub(in crate::peer::server) ttl: Ms,
    /// How often the client may ask.
    pub(in crate::peer::server) poll: Ms,
}

/// What is known of a task beside its state.
#[derive(Debug)]
struct About {
    owner: String,
    terms: Terms,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
    /// On the clock of timers; from then on it is forgotten.
    until: Ms,
    message: Option<String>,
    /// Open questions by key.
    questions: BTreeMap<String, Value>,
    /// What was answered and not fetched yet.
    answers: BTreeMap<String, Value>,
    /// Questions so far: no key comes twice (TSK-16).
    asked: u64,
    /// Something came that the worker may wait for.
    news: Arc<Notify>,
}

impl About {
    /// It has changed. The clock of the wall may be set back; the times of a task run forward
    /// (TSK-23).
    fn touch(&mut self) {
        self.updated_at = self.updated_at.max(wall_now());
    }
}

/// A state of a task that somebody may want to know.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Told {
    pub(super) id: String,
    /// All that `tasks/get` says.
    pub(super) state: Map<String, Value>,
    pub(super) is_over: bool,
}

#[derive(Debug)]
pub(super) struct Store {
    clock: TimerClock,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    machine: Machine<String, Outcome>,
    about: HashMap<String, About>,
}

impl Store {
    pub(super) fn new(clock: TimerClock) -> Store {
        Store { clock, state: Mutex::default() }
    }

    /// Makes a task, which can be read from now on: the handle. `None`: there are too many.
    pub(super) fn start(
        &self,
        id: &str,
        owner: &str,
        terms: Terms,
        is_declared: bool,
    ) -> Result<Option<Map<String, Value>>, TaskRefusal> {
        let mut state = self.lock();
        if state.about.len() >= MOST {
            return Ok(None);
        }
        state.machine.start(id.to_owned(), is_declared)?;
        let now = wall_now();
        let about = About {
            owner: owner.to_owned(),
            terms,
            created_at: now,
            updated_at: now,
            until: Ms(self.clock.now().0.saturating_add(terms.ttl.0)),
            message: None,
            questions: BTreeMap::new(),
            answers: BTreeMap::new(),
            asked: 0,
            news: Arc::default(),
        };
        state.about.insert(id.to_owned(), about);
        Ok(state.told(id).map(|told| told.state))
    }

    /// `tasks/get`.
    pub(super) fn get(&self, id: &str, owner: &str, is_declared: bool) -> Result<Told, TaskRefusal> {
        let state = self.lock();
        state.machine.get(&id.to_owned(), is_declared)?;
        state.of(id, owner)?;
        state.told(id).ok_or(TaskRefusal::Unknown)
    }

    /// `tasks/cancel`: notes the wish, and wakes a worker that waits for the client.
    pub(super) fn cancel(&self, id: &str, owner: &str, is_declared: bool) -> Result<(), TaskRefusal> {
        let mut state = self.lock();
        if is_declared {
            state.of(id, owner)?;
        }
        state.machine.cancel(&id.to_owned(), is_declared)?;
        if let Some(about) = state.about.get(id) {
            about.news.notify_one();
        }
        Ok(())
    }

    /// The end of a task at once, as 2025-11-25 has it: its worker finds it over. `None`: it was
    /// over before.
    pub(super) fn end(&self, id: &str, owner: &str) -> Result<Option<Told>, TaskRefusal> {
        let mut state = self.lock();
        state.of(id, owner)?;
        state.machine.cancel(&id.to_owned(), true)?;
        let State { machine, about } = &mut *state;
        let (Some(task), Some(about)) = (machine.worker(&id.to_owned()), about.get_mut(id)) else {
            return Err(TaskRefusal::Unknown);
        };
        if task.state().is_terminal() {
            return Ok(None);
        }
        about.questions.clear();
        task.give_input();
        task.checkpoint();
        about.touch();
        about.news.notify_one();
        Ok(state.told(id))
    }

    /// The tasks of an owner, oldest first.
    pub(super) fn all(&self, owner: &str) -> Vec<Map<String, Value>> {
        let state = self.lock();
        let mut mine: Vec<(DateTime<Utc>, &String)> = state
            .about
            .iter()
            .filter(|(_, about)| about.owner == owner)
            .map(|(id, about)| (about.created_at, id))
            .collect();
        mine.sort();
        mine.into_iter().filter_map(|(_, id)| state.told(id)).map(|told| told.state).collect()
    }

    /// `tasks/update`: takes answers to open questions; others are not looked at. Some: the state,
    /// if it is another one now.
    pub(super) fn update(
        &self,
        id: &str,
        owner: &str,
        is_declared: bool,
        answers: Map<String, Value>,
    ) -> Result<Option<Told>, TaskRefusal> {
        let mut state = self.lock();
        state.machine.get(&id.to_owned(), is_declared)?;
        state.of(id, owner)?;
        let Some(about) = state.about.get_mut(id) else { return Err(TaskRefusal::Unknown) };
        let mut has_news = false;
        for (key, answer) in answers {
            if about.questions.remove(&key).is_some() {
                about.answers.insert(key, answer);
                has_news = true;
            }
        }
        if !has_news {
            return Ok(None);
        }
        about.touch();
        if about.questions.is_empty() {
            about.news.notify_one();
            if let Some(task) = state.machine.worker(&id.to_owned()) {
                task.give_input();
            }
        }
        Ok(state.told(id))
    }

    /// A step of the worker, which says whether anything has changed; `None`: the task is
    /// forgotten.
    pub(super) fn step<T>(
        &self,
        id: &str,
        step: impl FnOnce(&mut Step<'_>) -> (T, bool),
    ) -> Option<(T, Option<Told>)> {
        let mut state = self.lock();
        let State { machine, about } = &mut *state;
        let (task, about) = (machine.worker(&id.to_owned())?, about.get_mut(id)?);
        let (made, has_changed) = step(&mut Step { task, about });
        if has_changed {
            about.touch();
        }
        let told = if has_changed { state.told(id) } else { None };
        Some((made, told))
    }

    /// Fires when something came that the worker may wait for.
    pub(super) fn news(&self, id: &str) -> Option<Arc<Notify>> {
        self.lock().about.get(id).map(|about| about.news.clone())
    }

    /// A task of this owner is there.
    pub(super) fn is_known(&self, id: &str, owner: &str) -> bool {
        self.lock().of(id, owner).is_ok()
    }

    /// The state, without the tasks whose time is over. A poisoned lock is still good: no step can
    /// stop midway.
    fn lock(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.clock.now();
        let State { machine, about } = &mut *state;
        about.retain(|id, about| {
            let is_kept = now < about.until;
            if !is_kept {
                machine.forget(id);
                about.news.notify_one();
            }
            is_kept
        });
        state
    }
}

/// What a worker can do to its task.
pub(super) struct Step<'a> {
    pub(super) task: &'a mut crate::machine::task::Task<Outcome>,
    about: &'a mut About,
}

impl Step<'_> {
    /// What the client reads beside the state.
    pub(super) fn say(&mut self, message: &str) {
        self.about.message = Some(message.to_owned());
    }

    /// Opens questions: their keys.
    pub(super) fn ask(&mut self, questions: Vec<Value>) -> Vec<String> {
        if !self.task.ask_input() {
            return Vec::new();
        }
        let mut keys = Vec::new();
        for question in questions {
            self.about.asked += 1;
            let key = format!("question-{}", self.about.asked);
            self.about.questions.insert(key.clone(), question);
            keys.push(key);
        }
        keys
    }

    /// Takes what came for these keys, if all of it has come.
    pub(super) fn take(&mut self, keys: &[String]) -> Option<Vec<Value>> {
        if !keys.iter().all(|key| self.about.answers.contains_key(key)) {
            return None;
        }
        Some(keys.iter().filter_map(|key| self.about.answers.remove(key)).collect())
    }

    /// The questions are no longer asked.
    pub(super) fn withdraw(&mut self) {
        self.about.questions.clear();
        self.task.give_input();
    }
}

impl State {
    /// The task is there for this owner; to others it is unknown.
    fn of(&self, id: &str, owner: &str) -> Result<(), TaskRefusal> {
        let is_mine = self.about.get(id).is_some_and(|about| about.owner == owner);
        if is_mine { Ok(()) } else { Err(TaskRefusal::Unknown) }
    }

    /// All that is told of a task (TSK-03, TSK-05).
    fn told(&self, id: &str) -> Option<Told> {
        let about = self.about.get(id)?;
        let task = self.machine.get(&id.to_owned(), true).ok()?;
        let iso = |at: DateTime<Utc>| at.to_rfc3339_opts(SecondsFormat::Millis, true);
        let mut state = object(json!({
            "taskId": id,
            "status": task.state().as_str(),
            "createdAt": iso(about.created_at),
            "lastUpdatedAt": iso(about.updated_at),
            "ttlMs": about.terms.ttl.0,
            "pollIntervalMs": about.terms.poll.0,
        }));
        if let Some(message) = &about.message {
            state.insert("statusMessage".to_owned(), json!(message));
        }
        if task.state() == TaskState::InputRequired {
            state.insert("inputRequests".to_owned(), json!(about.questions));
        }
        match task.outcome() {
            Some(Outcome::Result(result)) => {
                state.insert("result".to_owned(), Value::Object(result.clone()));
            }
            Some(Outcome::Error(code, message)) => {
                state.insert("error".to_owned(), json!({ "code": code, "message": message }));
            }
            None => {}
        }
        Some(Told { id: id.to_owned(), state, is_over: task.state().is_terminal() })
    }
}

#[cfg(test)]
mod tests;

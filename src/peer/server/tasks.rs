//! The Tasks extension: work that outlives its request, its stream and its connection.
//!
//! The server alone decides that a call becomes a task, and only for a client that declared the
//! extension on that very request (TSK-01). The call is over when its handle is out; from then on
//! a worker, and nothing else, ends the task: `tasks/cancel` is a wish that the worker sees at its
//! next checkpoint. Tasks belong to whom they were made for, and last no longer than this process.

pub(super) mod of_2025_11_25;
mod store;
mod worker;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Map, Value, json};
use tokio_util::task::TaskTracker;

pub(super) use self::store::Terms;
use self::store::{Store, Told};
pub(super) use self::worker::{Stop, Worker};
use super::caller::missing_capabilities;
use super::core::{Answer, Context, Ended};
use super::hub::Change;
use super::message::{Refusal, Request};
use super::{SharedCore, sealed, shop};
use crate::machine::task::{EXTENSION, TaskRefusal, TaskState};
use crate::peer::faults::Fault;
use crate::time::TimerClock;

/// Where the extension stands among the capabilities.
pub(super) const CAPABILITY: [&str; 2] = ["extensions", EXTENSION];

/// The tasks of a server and their workers.
#[derive(Debug, Clone)]
pub(super) struct Tasks {
    store: Arc<Store>,
    workers: TaskTracker,
    /// The fault `task_changes`: the end of a task was told, and is taken back next time.
    wavers: Arc<AtomicBool>,
}

impl Tasks {
    pub(super) fn new(clock: TimerClock) -> Tasks {
        Tasks { store: Arc::new(Store::new(clock)), workers: TaskTracker::new(), wavers: Arc::default() }
    }

    /// The fault `task_changes`: every other time, a task that is over is said to run.
    fn waver(&self, state: &mut Map<String, Value>) {
        let is_over = state.get("status").is_some_and(|status| *status == TaskState::Completed.as_str());
        if is_over && self.wavers.fetch_xor(true, Ordering::Relaxed) {
            state.insert("status".to_owned(), json!(TaskState::Working.as_str()));
            state.remove("result");
        }
    }

    /// Those of these tasks whose states the caller may be told (TSK-20, TSK-21).
    pub(super) fn visible(&self, mut ids: Vec<String>, ctx: &Context) -> Vec<String> {
        let owner = shop::tenant(ctx.caller());
        ids.retain(|id| ctx.knows_tasks() && self.store.is_known(id, &owner));
        ids.sort();
        ids.dedup();
        ids
    }
}

impl Context {
    /// The client can be answered with a task.
    pub(super) fn knows_tasks(&self) -> bool {
        self.caller().era.is_modern() && self.caller().can(&CAPABILITY)
    }

    /// The end of a call that becomes a task: the handle, or why there is none (TSK-13). `work` is
    /// done by a worker from now on.
    pub(super) fn hand_over<W, F>(&self, terms: Terms, work: W) -> Ended
    where
        W: FnOnce(Worker) -> F,
        F: Future<Output = Result<Map<String, Value>, Stop>> + Send + 'static,
    {
        let core = self.core();
        let (id, owner) = (sealed::handle("task"), shop::tenant(self.caller()));
        let asked = of_2025_11_25::asked(self);
        let terms = asked.map_or(terms, |asked| asked.terms(terms));
        let is_declared = self.knows_tasks() || asked.is_some();
        let mut handle = match core.tasks.store.start(&id, &owner, terms, is_declared) {
            Ok(Some(handle)) => handle,
            Ok(None) => return Ended::Failed("there are too many tasks; try again later".to_owned()),
            Err(_) if !self.caller().era.is_modern() => return of_2025_11_25::is_needed(self),
            Err(refusal) => return refused(self.request(), refusal),
        };
        let worker = Worker::new(core.clone(), id);
        core.tasks.workers.spawn(worker.clone().run(work(worker)));
        if asked.is_some() {
            return Ended::Task(of_2025_11_25::handle(handle));
        }
        handle.insert("resultType".to_owned(), json!("task"));
        Ended::Task(handle)
    }
}

/// `tasks/get`.
pub(super) fn get(request: &Request, ctx: &Context) -> Answer {
    let (id, owner) = (id(request, ctx)?, shop::tenant(ctx.caller()));
    let tasks = &ctx.core().tasks;
    let told = tasks.store.get(&id, &owner, ctx.knows_tasks());
    let mut state = told.map_err(|refusal| refused(request, refusal))?.state;
    if ctx.faults().is_on(Fault::EarlyHandle) {
        return Err(refused(request, TaskRefusal::Unknown));
    }
    if ctx.faults().is_on(Fault::TaskChanges) {
        tasks.waver(&mut state);
    }
    Ok(state)
}

/// `tasks/update`.
pub(super) fn update(request: &Request, ctx: &Context) -> Answer {
    let (id, owner) = (id(request, ctx)?, shop::tenant(ctx.caller()));
    let answers = request.object_at(&["inputResponses"]);
    let answers = match (answers, ctx.knows_tasks()) {
        (Some(answers), _) => answers,
        // What it may not do at all comes first.
        (None, false) => Map::new(),
        (None, true) => {
            let text = "inputResponses is an object of answers by key";
            return Err(Ended::Refused(Refusal::params(&request.id, text)));
        }
    };
    let told = ctx.core().tasks.store.update(&id, &owner, ctx.knows_tasks(), answers);
    if let Some(told) = told.map_err(|refusal| refused(request, refusal))? {
        tell(ctx.core(), told);
    }
    Ok(Map::new())
}

/// `tasks/cancel`: says only that the wish was heard (TSK-11, TSK-12).
pub(super) fn cancel(request: &Request, ctx: &Context) -> Answer {
    let (id, owner) = (id(request, ctx)?, shop::tenant(ctx.caller()));
    let noted = ctx.core().tasks.store.cancel(&id, &owner, ctx.knows_tasks());
    noted.map(|()| Map::new()).map_err(|refusal| refused(request, refusal))
}

fn id(request: &Request, ctx: &Context) -> Result<String, Ended> {
    match request.string_at(&["taskId"]) {
        Some(id) => Ok(id.into_owned()),
        None if ctx.knows_tasks() => {
            Err(Ended::Refused(Refusal::params(&request.id, "taskId is the id of a task")))
        }
        None => Err(refused(request, TaskRefusal::NotDeclared)),
    }
}

fn refused(request: &Request, refusal: TaskRefusal) -> Ended {
    Ended::Refused(match refusal {
        TaskRefusal::NotDeclared => missing_capabilities(&request.id, &[CAPABILITY.to_vec()]),
        TaskRefusal::Unknown => Refusal::params(&request.id, refusal.to_string()),
        TaskRefusal::TrackedId => Refusal::new(Some(&request.id), refusal.code(), refusal.to_string()),
    })
}

/// Tells those who listen for the task.
fn tell(core: &SharedCore, told: Told) {
    let Told { id, state, is_over } = told;
    core.hub.tell(&Change::Task { id, state, is_over });
}

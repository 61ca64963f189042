//! The tasks that revision 2025-11-25 has in its core: the client asks for a task with the call,
//! fetches its result with a request that waits, and a cancel is an order, not a wish.
//!
//! The same workers and the same store; what differs is who decides and how it is told. States are
//! not told unasked (`notifications/tasks/status` is optional).

use serde_json::{Map, Value, json};

use super::store::Terms;
use crate::machine::task::TaskState;
use crate::peer::server::catalogue::page;
use crate::peer::server::core::{Answer, Context, Ended, object};
use crate::peer::server::hub::Filter;
use crate::peer::server::message::{Refusal, Request};
use crate::peer::server::shop;
use crate::spec::era::Era;
use crate::spec::{codes, meta, methods};
use crate::time::Ms;

/// Longest time that a client may want a task to be kept, ms: one day. ours.
const LONGEST_TTL_MS: u64 = 86_400_000;

/// How often `tasks/result` looks for a task that may be forgotten, which nobody tells. ours: 1 s.
const LOOK: Ms = Ms(1000);

/// What a client asks for with its call.
#[derive(Debug, Clone, Copy)]
pub(in crate::peer::server) struct Asked {
    ttl: Option<Ms>,
}

/// The task that the client asks for with this call; `None`: it asks for none.
pub(in crate::peer::server) fn asked(ctx: &Context) -> Option<Asked> {
    let request = ctx.request();
    if ctx.caller().era != Era::V2025_11_25 || request.method != methods::TOOLS_CALL {
        return None;
    }
    let asked = request.object_at(&["task"])?;
    let ttl = asked.get("ttl").and_then(Value::as_u64);
    Some(Asked { ttl: ttl.map(|ttl| Ms(ttl.clamp(1, LONGEST_TTL_MS))) })
}

impl Asked {
    /// The terms of a tool with the wish of the client.
    pub(super) fn terms(self, terms: Terms) -> Terms {
        Terms { ttl: self.ttl.unwrap_or(terms.ttl), ..terms }
    }
}

/// Says in the entries of these tools that they are called as tasks.
pub(in crate::peer::server) fn mark(entries: &mut [Value], names: impl Iterator<Item = &'static str>) {
    let names: Vec<&str> = names.collect();
    for entry in entries.iter_mut().filter(|entry| names.iter().any(|name| entry["name"] == *name)) {
        entry["execution"] = json!({ "taskSupport": "required" });
    }
}

/// The end of a call that needs a task which its client did not ask for.
pub(super) fn is_needed(ctx: &Context) -> Ended {
    if ctx.caller().era != Era::V2025_11_25 {
        return Ended::Failed("this takes a task, which this revision does not have".to_owned());
    }
    not_found(ctx.request(), "this tool is called as a task".to_owned())
}

/// The end of a call that asks for a task where there is none.
pub(in crate::peer::server) fn is_not_offered(ctx: &Context, tool: &str) -> Ended {
    not_found(ctx.request(), format!("{tool} is not called as a task"))
}

fn not_found(request: &Request, text: String) -> Ended {
    Ended::Refused(Refusal::new(Some(&request.id), codes::METHOD_NOT_FOUND, text))
}

/// The answer to the call.
pub(super) fn handle(state: Map<String, Value>) -> Map<String, Value> {
    object(json!({ "task": task(state) }))
}

/// A task as this revision tells it.
fn task(mut state: Map<String, Value>) -> Map<String, Value> {
    for name in ["result", "error", "inputRequests"] {
        state.remove(name);
    }
    for (newer, older) in [("ttlMs", "ttl"), ("pollIntervalMs", "pollInterval")] {
        if let Some(value) = state.remove(newer) {
            state.insert(older.to_owned(), value);
        }
    }
    state
}

/// `tasks/get`.
pub(in crate::peer::server) fn get(request: &Request, ctx: &Context) -> Answer {
    state(request, ctx).map(task)
}

/// `tasks/list`.
pub(in crate::peer::server) fn list(request: &Request, ctx: &Context) -> Answer {
    let all = ctx.core().tasks.store.all(&shop::tenant(ctx.caller()));
    page(request, ctx, "tasks", all.into_iter().map(|state| Value::Object(task(state))).collect())
}

/// `tasks/cancel`: the task is cancelled before it is answered, and one that is over cannot be.
pub(in crate::peer::server) fn cancel(request: &Request, ctx: &Context) -> Answer {
    let (id, owner) = (id(request)?, shop::tenant(ctx.caller()));
    let ended = ctx.core().tasks.store.end(&id, &owner).map_err(|_| unknown(request))?;
    let Some(told) = ended else {
        return Err(refused(request, "the task is over; it cannot be cancelled"));
    };
    let state = told.state.clone();
    super::tell(ctx.core(), told);
    Ok(task(state))
}

/// `tasks/result`: waits for the end of the task, and asks the client what its worker needs.
pub(in crate::peer::server) async fn result(request: &Request, ctx: &mut Context) -> Answer {
    let id = id(request)?;
    let tasks = vec![id.clone()];
    let changes = ctx.core().hub.listen(Filter { tasks, ..Filter::default() });
    loop {
        let state = state(request, ctx)?;
        let status = state.get("status").and_then(Value::as_str).unwrap_or_default();
        if status == TaskState::Completed.as_str() {
            return Ok(related(&id, state));
        }
        if status == TaskState::Failed.as_str() {
            return Err(error(request, &state));
        }
        if status == TaskState::Cancelled.as_str() {
            return Err(refused(request, "the task was cancelled; it has no result"));
        }
        if status == TaskState::InputRequired.as_str() && ask(&id, &state, ctx).await? {
            continue;
        }
        let cancelled = tokio::select! {
            biased;
            ended = ctx.cancelled() => Some(ended),
            Some(_) = changes.next() => None,
            // Nobody tells that a task is forgotten.
            () = tokio::time::sleep(LOOK.into()) => None,
        };
        if let Some(ended) = cancelled {
            return Err(ended);
        }
    }
}

/// Asks the client the open questions of a task, and gives the answers to its worker; false: there
/// are none.
async fn ask(id: &str, state: &Map<String, Value>, ctx: &mut Context) -> Result<bool, Ended> {
    let Some(Value::Object(questions)) = state.get("inputRequests") else { return Ok(false) };
    let asked: Vec<(&str, &str, Value)> = questions
        .iter()
        .map(|(key, question)| {
            let mut params = question["params"].clone();
            params["_meta"] = json!({ meta::RELATED_TASK: { "taskId": id } });
            (key.as_str(), question["method"].as_str().unwrap_or_default(), params)
        })
        .collect();
    if asked.is_empty() {
        return Ok(false);
    }
    let answers = ctx.ask(&asked).await?;
    let owner = shop::tenant(ctx.caller());
    // One that was forgotten meanwhile is found to be so by the next look.
    if let Ok(Some(told)) = ctx.core().tasks.store.update(id, &owner, true, answers) {
        super::tell(ctx.core(), told);
    }
    Ok(true)
}

/// What the call would have returned, with the task that it is from.
fn related(id: &str, mut state: Map<String, Value>) -> Map<String, Value> {
    let mut result = match state.remove("result") {
        Some(Value::Object(result)) => result,
        _ => Map::new(),
    };
    result.insert("_meta".to_owned(), json!({ meta::RELATED_TASK: { "taskId": id } }));
    result
}

fn error(request: &Request, state: &Map<String, Value>) -> Ended {
    let error = state.get("error").cloned().unwrap_or_default();
    let code = error["code"].as_i64().unwrap_or(codes::INTERNAL_ERROR);
    Ended::Refused(Refusal::new(Some(&request.id), code, error["message"].as_str().unwrap_or_default()))
}

fn state(request: &Request, ctx: &Context) -> Answer {
    let (id, owner) = (id(request)?, shop::tenant(ctx.caller()));
    let told = ctx.core().tasks.store.get(&id, &owner, true);
    told.map(|told| told.state).map_err(|_| unknown(request))
}

fn id(request: &Request) -> Result<String, Ended> {
    let id = request.string_at(&["taskId"]);
    id.map(std::borrow::Cow::into_owned).ok_or_else(|| refused(request, "taskId is the id of a task"))
}

fn unknown(request: &Request) -> Ended {
    refused(request, "there is no such task")
}

fn refused(request: &Request, text: &str) -> Ended {
    Ended::Refused(Refusal::params(&request.id, text))
}

#[cfg(test)]
mod tests;

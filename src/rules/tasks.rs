//! The Tasks extension (TSK-01..26): here what one message must hold; `tasks::life` has what a task
//! goes through, `tasks::manners` how clients ask for it.

mod life;
mod manners;

pub(super) use life::{history, is_after};
pub(super) use manners::too_often;

use std::borrow::Cow;

use crate::event::Transport;
use crate::model::tasks::{TaskStatus, task_in};
use crate::model::{Name, Sight};
use crate::rules::book::{Book, On, SightKind};
use crate::rules::case::{Case, short};
use crate::rules::findings::Out;

use crate::spec::headers;
use crate::wire::json::Value;

/// The extension's name in capabilities.
const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// A notification with the state of a task.
const NOTIFIED: &str = "notifications/tasks";

/// `-32021`: a client capability is missing.
const MISSING_CAPABILITY: i64 = -32021;

/// `-32602`: what an unknown task is answered with.
const INVALID_PARAMS: i64 = -32602;

pub(super) fn rules(book: &mut Book) {
    let requests = [On::RequestOf("tasks/get"), On::RequestOf("tasks/update"), On::RequestOf("tasks/cancel")];
    let told = [On::Result, On::NotificationOf(NOTIFIED)];
    book.rule("TSK-01", &[On::Result], handle_not_declared);
    book.rule("TSK-02", &[On::Result], handle_for_other_method);
    book.rule("TSK-03", &told, incomplete);
    book.rule(
        "TSK-04",
        &[On::ResultOf("tasks/get"), On::ResultOf("tasks/update"), On::ResultOf("tasks/cancel")],
        result_type,
    );
    book.rule("TSK-05", &told, payload);
    book.rule("TSK-11", &[On::ResultOf("tasks/update"), On::ResultOf("tasks/cancel")], full_acknowledgement);
    book.rule("TSK-14", &requests, request_not_declared);
    book.rule("TSK-15", &requests, mirrored_id);
    book.rule("TSK-18", &told, failure);
    book.rule(
        "TSK-21",
        &[On::NotificationOf("notifications/subscriptions/acknowledged")],
        granted_undeclared,
    );
    book.rule("TSK-22", &[On::Sight(SightKind::ProgressAfterAnswer)], progress);
    book.rule("TSK-26", &told, result_shape);
    life::rules(book);
    manners::rules(book);
}

/// The state of a task that a message of this case tells, if it tells one.
fn state<'a>(case: &Case<'a>) -> Option<Value<'a>> {
    let method = case.method();
    let tells =
        method == "tasks/get" || method.starts_with(NOTIFIED) || case.call().is_some_and(|call| call.is_task);
    // An acknowledgement of an update or a cancel tells no state, whatever it holds (TSK-11).
    let tells = tells && !matches!(method, "tasks/update" | "tasks/cancel");
    if tells { task_in(case.body()?) } else { None }
}

fn status(state: Value<'_>) -> Option<TaskStatus> {
    TaskStatus::from_name(&state.get("status")?.text()?)
}

/// The id of the task that a message tells of or asks for.
fn id<'a>(case: &Case<'a>) -> Option<Cow<'a, str>> {
    let of_message = state(case).and_then(|state| state.get("taskId")).and_then(Value::text);
    let of_call =
        || case.call().and_then(|call| call.target).map(|name| Cow::Borrowed(case.model.text(name)));
    of_message.or_else(of_call)
}

/// Capabilities hold the extension.
fn declares(capabilities: Option<Value<'_>>) -> bool {
    capabilities.and_then(|all| all.at(&["extensions", EXTENSION])).is_some()
}

fn is_handle(case: &Case<'_>) -> bool {
    case.result().and_then(|result| result.get("resultType")).is_some_and(|kind| kind.is_text("task"))
}

fn handle_not_declared(case: &Case<'_>, out: &mut Out<'_>) {
    if case.call().is_none_or(|call| !call.is_task) || !is_handle(case) || case.request().is_none() {
        return;
    }
    if !declares(case.client_capabilities()) {
        let sentence =
            format!("{} was answered with a task, but did not declare the extension", case.subject());
        out.say(case, sentence);
    }
}

fn handle_for_other_method(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(call) = case.call().filter(|call| call.is_task && call.method != Name::TOOLS_CALL) else {
        return;
    };
    // TSK-04 speaks of the methods about tasks.
    if is_handle(case) && !case.model.text(call.method).starts_with("tasks/") {
        out.say(case, format!("{} was answered with a task", case.subject()));
    }
}

fn incomplete(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(state) = state(case) else { return };
    let is_text = |name: &str| state.get(name).is_some_and(|value| value.text().is_some());
    let ttl = state.get("ttlMs");
    let has_ttl = ttl.is_some_and(|ttl| ttl.is_null() || ttl.integer().is_some_and(|ms| ms >= 0));
    let mut bad: Vec<&str> = ["taskId", "status", "createdAt", "lastUpdatedAt"]
        .into_iter()
        .filter(|name| !is_text(name))
        .collect();
    if !has_ttl {
        bad.push("ttlMs");
    }
    if !bad.is_empty() {
        let members = bad.join(", ");
        let subject = (case.seen.scope, id(case));
        out.gather(case, subject, |times| match times {
            1 => format!("a task state lacks {members}, or has it with a wrong type"),
            _ => format!("{times} task states lack {members}, or have it with a wrong type"),
        });
    }
}

fn result_type(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(kind) = case.result().and_then(|result| result.get("resultType")).and_then(Value::text) else {
        return;
    };
    if kind != "complete" {
        out.say(case, format!("{} was answered with the resultType {kind}", case.subject()));
    }
}

fn payload(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(state) = state(case) else { return };
    let Some(name) = state.get("status").and_then(Value::text) else { return };
    let what = match TaskStatus::from_name(&name) {
        None => format!("a task has the status {}, which does not exist", short(&name)),
        // The handle tells that there is a task, not yet what came of it.
        Some(_) if is_handle(case) => return,
        Some(TaskStatus::InputRequired) if state.get("inputRequests").is_none() => {
            "a task asks for input, but its inputRequests are missing".to_owned()
        }
        Some(TaskStatus::Completed) if state.get("result").is_none() => {
            "a task is completed, but its result is missing".to_owned()
        }
        Some(TaskStatus::Failed) if state.get("error").is_none() => {
            "a task has failed, but its error is missing".to_owned()
        }
        Some(_) => return,
    };
    out.say(case, what);
}

fn full_acknowledgement(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(result) = case.result() else { return };
    let more: Vec<_> =
        ["taskId", "status", "task"].into_iter().filter(|name| result.get(name).is_some()).collect();
    if !more.is_empty() {
        out.say(case, format!("the acknowledgement of {} holds {}", case.subject(), more.join(", ")));
    }
}

fn request_not_declared(case: &Case<'_>, out: &mut Out<'_>) {
    if case.params().is_some() && !declares(case.client_capabilities()) {
        let method = case.method();
        out.gather(case, (case.seen.scope, method), |times| match times {
            1 => format!("{method} was sent without declaring the tasks extension"),
            _ => format!("{method} was sent {times} times without declaring the tasks extension"),
        });
    }
}

fn mirrored_id(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(id) = case.params().and_then(|params| params.get("taskId")).and_then(Value::text) else {
        return;
    };
    let Some(exchange) = case.exchange().filter(|exchange| exchange.head().is_some()) else { return };
    let sentence = match exchange.headers().get(headers::NAME) {
        None => format!("{} came without Mcp-Name", case.subject()),
        Some(field) => match headers::decode(field) {
            Ok(name) if name == id => return,
            Ok(name) => format!("{} came with Mcp-Name {}", case.subject(), short(&name)),
            Err(_) => format!("{} came with an Mcp-Name that cannot be decoded", case.subject()),
        },
    };
    out.say(case, sentence);
}

fn failure(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(state) = state(case).filter(|state| status(*state) == Some(TaskStatus::Failed)) else { return };
    let Some(error) = state.get("error") else {
        if state.get("result").is_some() {
            out.say(case, "a task has failed with a tool result; an isError result belongs to completed");
        }
        return;
    };
    let has_code = error.get("code").is_some_and(|code| code.integer().is_some());
    let has_message = error.get("message").is_some_and(|message| message.text().is_some());
    if !has_code || !has_message {
        out.say(case, "a task has failed with an error that lacks an integer code or a message");
    }
}

fn granted_undeclared(case: &Case<'_>, out: &mut Out<'_>) {
    let granted = case.params().and_then(|params| params.at(&["notifications", "taskIds"]));
    if granted.is_none_or(Value::is_empty) || case.request().is_none() {
        return;
    }
    if !declares(case.client_capabilities()) {
        out.say(case, format!("{} was granted task states without declaring the extension", case.subject()));
    }
}

fn progress(case: &Case<'_>, out: &mut Out<'_>) {
    if matches!(case.what(), Sight::ProgressAfterAnswer) && case.call().is_some_and(|call| call.is_task) {
        let subject = case.subject();
        out.gather(case, case.seen.call, |times| {
            format!("{times} progress for {subject} after it had been answered with a task")
        });
    }
}

fn result_shape(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(state) = state(case).filter(|state| status(*state) == Some(TaskStatus::Completed)) else {
        return;
    };
    let (Some(result), Some(id)) = (state.get("result"), id(case)) else { return };
    let made_by = case.model.task(case.seen.scope, &id).and_then(|task| task.made_by);
    let is_tool =
        made_by.and_then(|idx| case.model.call(idx)).is_some_and(|call| call.method == Name::TOOLS_CALL);
    if is_tool && !result.get("content").is_some_and(Value::is_array) {
        out.say(case, format!("the result of task {} has no content array", short(&id)));
    }
}

/// Known to come from the client that sent another request.
fn is_one_client(case: &Case<'_>, other: Option<crate::model::CallIdx>) -> bool {
    case.transport() == Transport::Stdio || other.is_some_and(|idx| case.is_one_connection(idx))
}

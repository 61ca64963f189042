//! `subscriptions/listen`: changes, told on the stream of the request that asks for them.

use serde_json::{Map, Value, json};

use super::core::{Answer, Context, Ended, object};
use super::hub::{Change, Filter};
use super::message::{self, Refusal, Request};
use super::resources;
use crate::machine::cancel::{self, Side, Signal, Target};
use crate::peer::faults::Fault;
use crate::spec::methods;
use crate::wire::jsonrpc::Id;

/// Runs until the client has had enough, the server ends, or something could not be told.
pub(super) async fn listen(request: &Request, ctx: &mut Context) -> Answer {
    let granted = granted(wanted(request)?, ctx);
    // From here on nothing is missed; it waits until the acknowledgement is out (SUB-02).
    let listener = ctx.core().hub.listen(granted.clone());
    if ctx.faults().is_on(Fault::EventBeforeAck) {
        ctx.send(Change::Tools.notification(Some(&request.id)), None).await?;
    }
    ctx.send(acknowledgement(&granted, request), None).await?;
    let ending = ctx.core().ending.clone();
    loop {
        let change = tokio::select! {
            biased;
            ended = ctx.cancelled() => return Err(ended),
            change = listener.next() => change,
            () = ending.cancelled() => return Err(closed(request, ctx)),
        };
        let Some(change) = change else {
            tracing::warn!(id = %request.id, "a subscription ends: its client reads too slowly");
            return Err(Ended::Lost);
        };
        ctx.send(change.notification(tag(request, ctx).as_ref()), None).await?;
    }
}

/// What an event of the subscription carries: the id of its request (SUB-03, SUB-07), unless a fault
/// wants otherwise.
fn tag(request: &Request, ctx: &Context) -> Option<Id> {
    let faults = ctx.faults();
    if faults.is_on(Fault::Untagged) {
        return None;
    }
    let as_text = || Id::Str(request.id.to_string().into());
    Some(if faults.is_on(Fault::TagOfOtherType) { as_text() } else { request.id.clone() })
}

/// The end that the server wants: the closing result, and what else the transport asks for.
fn closed(request: &Request, ctx: &Context) -> Ended {
    let caller = ctx.caller();
    let signal = cancel::signal(Side::Server, caller.transport, caller.era, Target::Listen);
    let also = (signal == Some(Signal::ResultAndNotification)).then(|| message::cancelled(&request.id));
    Ended::Closed { result: message::closing(&request.id), also }
}

/// SUB-01: an object of flags and lists; members that this server does not know are not granted.
fn wanted(request: &Request) -> Result<Filter, Ended> {
    let refuse = |text: &str| Ended::Refused(Refusal::params(&request.id, text));
    let wanted = request.object_at(&["notifications"]);
    let wanted = wanted.ok_or_else(|| refuse("notifications is the object that says what is wanted"))?;
    let flag = |name: &str| match wanted.get(name) {
        None => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(_) => Err(refuse(&format!("{name} is true or false"))),
    };
    let list = |name: &str| {
        let Some(value) = wanted.get(name) else { return Ok(Vec::new()) };
        let items =
            value.as_array().and_then(|items| items.iter().map(text).collect::<Option<Vec<String>>>());
        items.ok_or_else(|| refuse(&format!("{name} is a list of strings")))
    };
    Ok(Filter {
        tools: flag("toolsListChanged")?,
        prompts: flag("promptsListChanged")?,
        resources: flag("resourcesListChanged")?,
        uris: list("resourceSubscriptions")?,
        tasks: list("taskIds")?,
    })
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// What of it can be told: changes of resources that there are, or may be.
fn granted(mut wanted: Filter, ctx: &Context) -> Filter {
    wanted.uris.sort();
    wanted.uris.dedup();
    wanted.uris.retain(|uri| resources::is_known(ctx.core(), uri));
    wanted.tasks = ctx.core().tasks.visible(wanted.tasks, ctx);
    wanted
}

/// SUB-04: what is granted, and nothing else.
fn acknowledgement(granted: &Filter, request: &Request) -> bytes::Bytes {
    let mut notifications = Map::new();
    let flags = [
        ("toolsListChanged", granted.tools),
        ("promptsListChanged", granted.prompts),
        ("resourcesListChanged", granted.resources),
    ];
    for (name, _) in flags.into_iter().filter(|(_, is_granted)| *is_granted) {
        notifications.insert(name.to_owned(), json!(true));
    }
    for (name, list) in [("resourceSubscriptions", &granted.uris), ("taskIds", &granted.tasks)] {
        if !list.is_empty() {
            notifications.insert(name.to_owned(), json!(list));
        }
    }
    let params = object(json!({ "notifications": notifications }));
    message::tagged(methods::ACKNOWLEDGED, params, &request.id)
}

#[cfg(test)]
mod tests;

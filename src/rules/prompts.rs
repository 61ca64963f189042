//! Prompts (PMT-01..03).

use crate::rules::Severity;
use crate::rules::book::{Book, On};
use crate::rules::case::{Case, short};
use crate::rules::findings::Out;
use crate::rules::listing::{is_complete, say};
use crate::rules::tools::block_fault;
use crate::wire::json::Value;

pub(super) fn rules(book: &mut Book) {
    book.rule("PMT-01", &[On::RequestOf("prompts/get")], strings);
    book.rule("PMT-02", &[On::ResultOf("prompts/get")], messages);
    book.rule("PMT-03", &[On::ResultOf("prompts/get")], required);
}

fn strings(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(arguments) = case.params().and_then(|params| params.get("arguments")) else { return };
    let mut faults = Vec::new();
    if !arguments.is_object() {
        faults.push(format!("arguments is {}, not an object", short(arguments.raw())));
    }
    for (name, value) in arguments.members().filter(|(_, value)| value.text().is_none()) {
        faults.push(format!("argument {} is {}, not a string", short(&name), short(value.raw())));
    }
    say(case, out, Severity::Error, &faults);
}

fn messages(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(result) = case.result().filter(|result| result.is_object() && is_complete(case)) else { return };
    let mut faults = Vec::new();
    match result.get("messages") {
        Some(messages) if messages.is_array() => {
            for (idx, message) in messages.items().enumerate() {
                let fault = role_fault(message).or_else(|| content_fault(case, message));
                faults.extend(fault.map(|fault| format!("message {}: {fault}", idx + 1)));
            }
        }
        Some(messages) => faults.push(format!("messages is {}, not an array", short(messages.raw()))),
        None => faults.push("the result has no messages".to_owned()),
    }
    say(case, out, Severity::Error, &faults);
}

fn role_fault(message: Value<'_>) -> Option<String> {
    match message.get("role") {
        Some(role) if role.is_text("user") || role.is_text("assistant") => None,
        Some(role) => Some(format!("role is {}, neither user nor assistant", short(role.raw()))),
        None => Some("role is missing".to_owned()),
    }
}

fn content_fault(case: &Case<'_>, message: Value<'_>) -> Option<String> {
    let content = message.get("content");
    let Some(content) = content else { return Some("content is missing".to_owned()) };
    if !content.is_object() {
        return Some(format!("content is {}, not one block", short(content.raw())));
    }
    // A block that is ahead of its era is left to the eye.
    block_fault(content, case.era()).filter(|(_, is_early)| !is_early).map(|(fault, _)| fault)
}

fn required(case: &Case<'_>, out: &mut Out<'_>) {
    if !is_complete(case) {
        return;
    }
    let known = case.seen.call.and_then(|call| case.model.definition(call));
    let Some(known) = known.filter(|known| known.is_current) else { return };
    let given = case.request_params().and_then(|params| params.get("arguments"));
    let wanted = known.value.get("arguments").into_iter().flat_map(Value::items);
    let wanted = wanted.filter(|wanted| wanted.get("required").and_then(Value::bool) == Some(true));
    let names = wanted.filter_map(|wanted| wanted.get("name")?.text());
    let absent = names.filter(|name| given.and_then(|given| given.get(name)).is_none());
    let absent: Vec<_> = absent.map(|name| short(&name)).collect();
    if !absent.is_empty() {
        let fault =
            format!("was answered with a result although it lacks what is required: {}", absent.join(", "));
        say(case, out, Severity::Hint, &[fault]);
    }
}

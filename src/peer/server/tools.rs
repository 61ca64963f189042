//! The tools: each shows one thing that can happen to a call. A file holds a group of them.

mod asking;
mod changing;
mod drafts;
mod effects;
mod orders;
mod plain;
mod reports;
mod speaking;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

pub(super) use self::speaking::WAV;
use super::catalogue::page;
use super::conformance;
use super::core::{Answer, Context, Core, Ended, Running, object};
use super::message::{Refusal, Request};
use super::store::Extra;
use super::tasks::of_2025_11_25;
use crate::peer::faults::Fault;
use crate::spec::era::Era;
use crate::wire::jsonrpc::Id;

/// A tool.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tool {
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    /// What else stands in its entry in `tools/list`: `inputSchema` and, where there are, more.
    pub(super) entry: fn() -> Value,
    /// Runs it to its result; ends early when the client gives up.
    pub(super) run: for<'a> fn(&'a Request, &'a mut Context) -> Running<'a>,
}

/// The groups that are always there, in the order of `tools/list`.
const GROUPS: [&[Tool]; 8] = [
    plain::TOOLS,
    asking::TOOLS,
    speaking::TOOLS,
    changing::TOOLS,
    orders::TOOLS,
    effects::TOOLS,
    drafts::TOOLS,
    reports::TOOLS,
];
/// The tools that there are now, in order.
fn all(core: &Core) -> impl Iterator<Item = &'static Tool> {
    let extra = if core.store.has(Extra::Tool) { changing::EXTRA } else { &[] };
    let of_suite: &[_] = if core.options.conformance { &conformance::GROUPS } else { &[] };
    GROUPS.into_iter().chain([extra]).chain(of_suite.iter().copied()).flatten()
}

impl Tool {
    /// Its entry in `tools/list`.
    fn definition(&self) -> Value {
        let mut entry = object((self.entry)());
        entry.insert("name".to_owned(), json!(self.name));
        entry.insert("description".to_owned(), json!(self.description));
        Value::Object(entry)
    }
}

/// `tools/list`, in an order that never changes (TOOL-04).
pub(super) fn list(request: &Request, ctx: &Context) -> Answer {
    let mut tools: Vec<Value> = all(ctx.core()).map(Tool::definition).collect();
    if ctx.faults().is_on(Fault::TwinTools) {
        tools.extend(tools.first().cloned());
    }
    if ctx.caller().era == Era::V2025_11_25 {
        of_2025_11_25::mark(&mut tools, reports::TOOLS.iter().map(|tool| tool.name));
    }
    page(request, ctx, "tools", tools)
}

/// The entry of the tool of a name.
pub(super) fn definition(core: &Core, name: &str) -> Option<Value> {
    all(core).find(|tool| tool.name == name).map(Tool::definition)
}

/// `tools/call`.
pub(super) async fn call(request: &Request, ctx: &mut Context) -> Answer {
    let name = request.string_at(&["name"]).unwrap_or_default();
    let Some(tool) = all(ctx.core()).find(|tool| tool.name == name) else {
        // TOOL-14: a protocol error, not a tool error.
        let text = format!("no tool {name:?}; tools/list names them");
        return Err(Ended::Refused(Refusal::params(&request.id, text)));
    };
    if of_2025_11_25::asked(ctx).is_some() && !reports::TOOLS.iter().any(|one| one.name == tool.name) {
        return Err(of_2025_11_25::is_not_offered(ctx, tool.name));
    }
    (tool.run)(request, ctx).await
}

/// The entry of a tool that changes nothing and takes these properties.
pub(super) fn reads(properties: &Value) -> Value {
    json!({
        "inputSchema": { "type": "object", "properties": properties },
        "annotations": { "readOnlyHint": true },
    })
}

/// The entry of a tool that changes something. It takes these properties and no other: a key that
/// is misspelt must not pass for none.
fn changes(properties: &Value, required: &[&str]) -> Value {
    json!({
        "inputSchema": {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        },
        // Hints: what a tool does is agreed elsewhere.
        "annotations": { "readOnlyHint": false, "destructiveHint": false, "openWorldHint": false },
    })
}

/// Refuses arguments of any other name; a tool error.
fn only(request: &Request, names: &[&str]) -> Result<(), Ended> {
    let arguments = request.object_at(&["arguments"]).unwrap_or_default();
    match arguments.keys().find(|name| !names.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => Err(Ended::Failed(format!("no argument {name:?}; there are {}", names.join(", ")))),
    }
}

/// A text that must be there and not blank; a wrong one is a tool error.
fn needed(request: &Request, name: &str) -> Result<String, Ended> {
    let found = text(request, name)?.filter(|text| !text.trim().is_empty());
    found.ok_or_else(|| Ended::Failed(format!("{name} is missing or blank")))
}

/// The schema of a count with its default.
fn count_schema(what: &str, default: u64) -> Value {
    json!({ "type": "integer", "minimum": 0, "default": default, "description": what })
}

/// The schema of a text.
fn text_schema(what: &str) -> Value {
    json!({ "type": "string", "description": what })
}

/// A result with one text.
pub(super) fn text_result(text: &str) -> Map<String, Value> {
    object(json!({ "content": [{ "type": "text", "text": text }] }))
}

/// A whole number among the arguments. A wrong one is a tool error, so that the caller can mend it.
fn count(request: &Request, name: &str, default: u64, most: u64) -> Result<u64, Ended> {
    let Some(raw) = request.at(&["arguments", name]) else { return Ok(default) };
    let number = whole(raw).filter(|number| *number <= most);
    number.ok_or_else(|| Ended::Failed(format!("{name} must be a whole number from 0 to {most}")))
}

/// `7` and `7.0` alike.
fn whole(raw: &RawValue) -> Option<u64> {
    match Id::from_raw(raw.get())? {
        Id::Int(digits) => digits.parse().ok(),
        Id::Str(_) => None,
    }
}

/// A text among the arguments; a wrong one is a tool error.
fn text(request: &Request, name: &str) -> Result<Option<String>, Ended> {
    if request.at(&["arguments", name]).is_none() {
        return Ok(None);
    }
    let text = request.string_at(&["arguments", name]);
    text.map(|text| Some(text.into_owned())).ok_or_else(|| Ended::Failed(format!("{name} must be a string")))
}

//! Tools that change what others can see: notes, and the lists themselves.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{Ended, Tool, text, text_result, text_schema};
use crate::peer::server::store::{self, Extra};

pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "note_write",
        description: "Writes a note, which is the resource notes://NAME; those who listen are told",
        entry: || {
            let properties = json!({ "name": text_schema("its name"), "text": text_schema("what it says") });
            changes(&properties, &["name", "text"], false)
        },
        run: |request, ctx| {
            Box::pin(async move {
                let name = text(request, "name")?.ok_or_else(|| missing("name"))?;
                let note = text(request, "text")?.ok_or_else(|| missing("text"))?;
                ctx.core().store.write(&name, &note).map_err(Ended::Failed)?;
                Ok(text_result(&format!("{} is written", store::uri(&name))))
            })
        },
    },
    Tool {
        name: "note_delete",
        description: "Throws a note away; those who listen are told",
        entry: || changes(&json!({ "name": text_schema("its name") }), &["name"], true),
        run: |request, ctx| {
            Box::pin(async move {
                let name = text(request, "name")?.ok_or_else(|| missing("name"))?;
                let was_there = ctx.core().store.remove(&name);
                Ok(text_result(if was_there { "it is gone" } else { "there was none" }))
            })
        },
    },
    Tool {
        name: "switch_extra",
        description: "Adds one more tool, prompt or resource for everybody, or takes it away",
        entry: || {
            let kinds = Extra::ALL.map(|(name, _)| name);
            let what = json!({ "type": "string", "enum": kinds, "description": "what there is one more of" });
            let on = json!({ "type": "boolean", "default": true, "description": "whether it is there" });
            changes(&json!({ "what": what, "on": on }), &["what"], false)
        },
        run: |request, ctx| {
            Box::pin(async move {
                let what = text(request, "what")?.ok_or_else(|| missing("what"))?;
                let extra = Extra::ALL.into_iter().find(|(name, _)| *name == what).map(|(_, extra)| extra);
                let extra =
                    extra.ok_or_else(|| Ended::Failed("what is tool, prompt or resource".to_owned()))?;
                let is_there = match request.at(&["arguments", "on"]).map(RawValue::get) {
                    None | Some("true") => true,
                    Some("false") => false,
                    Some(_) => return Err(Ended::Failed("on must be true or false".to_owned())),
                };
                let is_other = ctx.core().store.set(extra, is_there);
                Ok(text_result(if is_other { "the list is another one" } else { "it was so before" }))
            })
        },
    },
];

pub(super) const EXTRA: &[Tool] = &[Tool {
    name: "extra_tool",
    description: "There while switch_extra says so",
    entry: || super::reads(&json!({})),
    run: |_, _| Box::pin(async { Ok(text_result("You found it.")) }),
}];

/// The entry of a tool that changes something of this server.
fn changes(properties: &Value, required: &[&str], is_destructive: bool) -> Value {
    json!({
        "inputSchema": { "type": "object", "properties": properties, "required": required },
        "annotations": {
            "readOnlyHint": false,
            "destructiveHint": is_destructive,
            "idempotentHint": true,
            "openWorldHint": false,
        },
    })
}

fn missing(name: &str) -> Ended {
    Ended::Failed(format!("{name} is missing"))
}

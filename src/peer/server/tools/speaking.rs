//! Tools that show what a call can carry: logs, structured content, all kinds of content, and
//! arguments in header fields.

use serde_json::{Value, json};

use super::{Answer, Context, Ended, Request, Tool, object, reads, text, text_result, text_schema, whole};
use crate::peer::server::resources::PNG;
use crate::spec::logging::Level;

/// 44 bytes of WAV without a sound, in Base64.
pub(in crate::peer::server) const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

/// Most numbers that are added. ours.
const MOST_NUMBERS: usize = 1000;

pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "logs",
        description: "Logs once at each level; the request says from which level on it wants to hear",
        entry: || reads(&json!({})),
        run: |_, ctx| Box::pin(logs(ctx)),
    },
    Tool {
        name: "sum",
        description: "Adds numbers; the answer is structured, with a schema",
        entry: || {
            let numbers = json!({ "type": "array", "items": { "type": "integer" } });
            let mut entry = reads(&json!({ "numbers": numbers }));
            entry["outputSchema"] = json!({
                "type": "object",
                "properties": { "sum": { "type": "integer" }, "count": { "type": "integer" } },
                "required": ["sum", "count"],
            });
            entry
        },
        run: |request, _| Box::pin(async move { sum(request) }),
    },
    Tool {
        name: "contents",
        description: "Answers with one block of each kind",
        entry: || reads(&json!({})),
        run: |_, _| Box::pin(async { Ok(object(contents())) }),
    },
    Tool {
        name: "region",
        description: "Two of its arguments stand in header fields too, over HTTP",
        entry: || {
            let region = json!({ "type": "string", "description": "where", "x-mcp-header": "Region" });
            let shard = json!({ "type": "integer", "description": "which part", "x-mcp-header": "Shard" });
            reads(&json!({ "region": region, "shard": shard, "text": text_schema("what to answer") }))
        },
        run: |request, _| {
            Box::pin(async move {
                let region = text(request, "region")?.unwrap_or_else(|| "nowhere".to_owned());
                let text = text(request, "text")?.unwrap_or_default();
                Ok(text_result(&format!("{region}: {text}")))
            })
        },
    },
];

async fn logs(ctx: &mut Context) -> Answer {
    for level in Level::ALL {
        ctx.log(level, Some("midwire"), &json!(format!("this is {}", level.as_str()))).await?;
    }
    Ok(text_result("logged once at each level"))
}

fn sum(request: &Request) -> Answer {
    let wrong = || Ended::Failed(format!("numbers is a list of at most {MOST_NUMBERS} whole numbers"));
    let numbers = request.value_at(&["arguments", "numbers"]).unwrap_or_else(|| json!([]));
    let numbers = numbers.as_array().filter(|numbers| numbers.len() <= MOST_NUMBERS).ok_or_else(wrong)?;
    let mut sum: i64 = 0;
    for number in numbers {
        let number = serde_json::value::to_raw_value(number).ok();
        let number = number.and_then(|raw| whole(&raw)).and_then(|number| i64::try_from(number).ok());
        sum = number.and_then(|number| sum.checked_add(number)).ok_or_else(wrong)?;
    }
    let structured = json!({ "sum": sum, "count": numbers.len() });
    // TOOL-08: the same as text.
    Ok(object(json!({
        "content": [{ "type": "text", "text": structured.to_string() }],
        "structuredContent": structured,
    })))
}

fn contents() -> Value {
    json!({ "content": [
        { "type": "text", "text": "a text", "annotations": { "audience": ["user"], "priority": 1 } },
        { "type": "image", "data": PNG, "mimeType": "image/png" },
        { "type": "audio", "data": WAV, "mimeType": "audio/wav" },
        { "type": "resource_link", "uri": "notes://today", "name": "today", "mimeType": "text/plain" },
        {
            "type": "resource",
            "resource": { "uri": "notes://ideas", "mimeType": "text/plain", "text": "as it was once" },
        },
    ] })
}

//! Tools of the suite that answer by themselves.

use serde_json::{Value, json};

use crate::peer::server::core::{Answer, Context, Ended, object};
use crate::peer::server::resources::PNG;
use crate::peer::server::store::Extra;
use crate::peer::server::tools::{Tool, WAV, reads, text_result};
use crate::spec::logging::Level;
use crate::time::Ms;

/// The pause between two steps that the suite asks for.
const STEP: Ms = Ms(50);

pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "test_simple_text",
        description: "Answers with a text",
        entry: || reads(&json!({})),
        run: |_, _| Box::pin(async { Ok(text_result("This is a simple text response for testing.")) }),
    },
    Tool {
        name: "test_image_content",
        description: "Answers with an image",
        entry: || reads(&json!({})),
        run: |_, _| blocks(json!([{ "type": "image", "data": PNG, "mimeType": "image/png" }])),
    },
    Tool {
        name: "test_audio_content",
        description: "Answers with a sound",
        entry: || reads(&json!({})),
        run: |_, _| blocks(json!([{ "type": "audio", "data": WAV, "mimeType": "audio/wav" }])),
    },
    Tool {
        name: "test_embedded_resource",
        description: "Answers with a resource",
        entry: || reads(&json!({})),
        run: |_, _| {
            let text = "This is an embedded resource content.";
            let resource =
                json!({ "uri": "test://embedded-resource", "mimeType": "text/plain", "text": text });
            blocks(json!([{ "type": "resource", "resource": resource }]))
        },
    },
    Tool {
        name: "test_multiple_content_types",
        description: "Answers with a text, an image and a resource",
        entry: || reads(&json!({})),
        run: |_, _| {
            let text = json!({ "test": "data", "value": 123 }).to_string();
            let uri = "test://mixed-content-resource";
            blocks(json!([
                { "type": "text", "text": "Multiple content types test:" },
                { "type": "image", "data": PNG, "mimeType": "image/png" },
                { "type": "resource", "resource": { "uri": uri, "mimeType": "application/json", "text": text } },
            ]))
        },
    },
    Tool {
        name: "test_error_handling",
        description: "Fails",
        entry: || reads(&json!({})),
        run: |_, _| {
            let text = "This tool intentionally returns an error for testing";
            Box::pin(async move { Err(Ended::Failed(text.to_owned())) })
        },
    },
    Tool {
        name: "test_tool_with_progress",
        description: "Tells progress three times",
        entry: || reads(&json!({})),
        run: |_, ctx| Box::pin(progress(ctx)),
    },
    Tool {
        name: "test_logging_tool",
        description: "Logs, if the request asks for logs",
        entry: || reads(&json!({})),
        run: |_, ctx| {
            Box::pin(async move {
                for text in ["Tool execution started", "Tool execution completed"] {
                    ctx.log(Level::Info, None, &json!(text)).await?;
                }
                Ok(text_result("logged"))
            })
        },
    },
    Tool {
        name: "json_schema_2020_12_tool",
        description: "Tool with JSON Schema 2020-12 features",
        entry: || json!({ "inputSchema": schema_2020_12() }),
        run: |_, _| Box::pin(async { Ok(text_result("its schema is what matters")) }),
    },
    Tool {
        name: "test_trigger_tool_change",
        description: "Changes the list of tools",
        entry: || reads(&json!({})),
        run: |_, ctx| Box::pin(async move { Ok(turn(ctx, Extra::Tool)) }),
    },
    Tool {
        name: "test_trigger_prompt_change",
        description: "Changes the list of prompts",
        entry: || reads(&json!({})),
        run: |_, ctx| Box::pin(async move { Ok(turn(ctx, Extra::Prompt)) }),
    },
];

fn blocks<'a>(content: Value) -> crate::peer::server::core::Running<'a> {
    Box::pin(async move { Ok(object(json!({ "content": content }))) })
}

async fn progress(ctx: &mut Context) -> Answer {
    ctx.at_full_speed();
    ctx.progress(0.0, 100.0, "").await?;
    for value in [50.0, 100.0] {
        ctx.sleep(STEP).await?;
        ctx.progress(value, 100.0, "").await?;
    }
    Ok(text_result("three steps told"))
}

/// Turns an extra to what it was not.
fn turn(ctx: &Context, extra: Extra) -> serde_json::Map<String, Value> {
    let store = &ctx.core().store;
    store.set(extra, !store.has(extra));
    text_result("the list is another one")
}

fn schema_2020_12() -> Value {
    let address = json!({
        "$anchor": "addressDef",
        "type": "object",
        "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
    });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": { "address": address },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    })
}

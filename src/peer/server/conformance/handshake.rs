//! Tools that the suite calls in sessions of the older revisions, where the server asks by
//! requests of its own and a client may be let go in the middle of a call.

use serde_json::{Value, json};

use crate::peer::server::core::{Answer, Context, Ended};
use crate::peer::server::message::Request;
use crate::peer::server::tools::{Tool, reads, text_result};
use crate::spec::logging::Level;
use crate::time::Ms;

/// The pause between two steps that the suite asks for.
const STEP: Ms = Ms(50);

pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "test_tool_with_logging",
        description: "Logs three times",
        entry: || reads(&json!({})),
        run: |_, ctx| {
            Box::pin(async move {
                for text in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
                    ctx.log(Level::Info, None, &json!(text)).await?;
                    ctx.sleep(STEP).await?;
                }
                Ok(text_result("logged three times"))
            })
        },
    },
    Tool {
        name: "test_sampling",
        description: "Asks the model of the client",
        entry: || reads(&json!({ "prompt": { "type": "string", "description": "what to ask it" } })),
        run: |request, ctx| Box::pin(sample(request, ctx)),
    },
    Tool {
        name: "test_elicitation",
        description: "Asks the user for a name and an address",
        entry: || reads(&json!({ "message": { "type": "string", "description": "what to show" } })),
        run: |request, ctx| {
            Box::pin(async move {
                let message = request.string_at(&["arguments", "message"]).unwrap_or_default();
                let properties = json!({
                    "username": { "type": "string", "description": "User's response" },
                    "email": { "type": "string", "description": "User's email address" },
                });
                let schema = json!({
                    "type": "object", "properties": properties, "required": ["username", "email"],
                });
                form(ctx, &message, schema, "User response").await
            })
        },
    },
    Tool {
        name: "test_elicitation_sep1034_defaults",
        description: "Asks with a default of each kind",
        entry: || reads(&json!({})),
        run: |_, ctx| Box::pin(form(ctx, "Please check the defaults", defaults(), "Elicitation completed")),
    },
    Tool {
        name: "test_elicitation_sep1330_enums",
        description: "Asks with a choice of each kind",
        entry: || reads(&json!({})),
        run: |_, ctx| Box::pin(form(ctx, "Please choose", choices(), "Elicitation completed")),
    },
    Tool {
        name: "test_reconnection",
        description: "Closes its stream in the middle; the answer waits for the client to come back",
        entry: || reads(&json!({})),
        run: |_, ctx| {
            Box::pin(async move {
                ctx.let_go().await?;
                ctx.sleep(STEP).await?;
                Ok(text_result("here is the rest"))
            })
        },
    },
];

async fn sample(request: &Request, ctx: &mut Context) -> Answer {
    let prompt = request.string_at(&["arguments", "prompt"]).unwrap_or_default();
    let message = json!({ "role": "user", "content": { "type": "text", "text": prompt } });
    let params = json!({ "messages": [message], "maxTokens": 100 });
    let answers = ctx.ask(&[("model", "sampling/createMessage", params)]).await?;
    let text = answers.get("model").and_then(|answer| answer["content"]["text"].as_str());
    let text = text.ok_or_else(|| Ended::Failed("the model gave no text".to_owned()))?;
    Ok(text_result(&format!("LLM response: {text}")))
}

/// Asks by a form, and tells what was answered.
async fn form(ctx: &mut Context, message: &str, schema: Value, told: &str) -> Answer {
    // As 2025-06-18 has it, which knows forms only; later revisions take it for one.
    let params = json!({ "message": message, "requestedSchema": schema });
    let answers = ctx.ask(&[("form", "elicitation/create", params)]).await?;
    let answer = answers.get("form").cloned().unwrap_or_default();
    let action = answer["action"].as_str().unwrap_or_default();
    Ok(text_result(&format!("{told}: action={action}, content={}", answer["content"])))
}

fn defaults() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "description": "User name", "default": "John Doe" },
            "age": { "type": "integer", "description": "User age", "default": 30 },
            "score": { "type": "number", "description": "User score", "default": 95.5 },
            "status": {
                "type": "string", "enum": ["active", "inactive", "pending"], "default": "active",
            },
            "verified": { "type": "boolean", "description": "Verification status", "default": true },
        },
        "required": [],
    })
}

fn choices() -> Value {
    let titled = |first: &str| {
        json!([
            { "const": "value1", "title": format!("First {first}") },
            { "const": "value2", "title": format!("Second {first}") },
            { "const": "value3", "title": format!("Third {first}") },
        ])
    };
    let options = ["option1", "option2", "option3"];
    json!({
        "type": "object",
        "properties": {
            "untitledSingle": { "type": "string", "enum": options },
            "titledSingle": { "type": "string", "oneOf": titled("Option") },
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": { "type": "array", "items": { "type": "string", "enum": options } },
            "titledMulti": { "type": "array", "items": { "anyOf": titled("Choice") } },
        },
        "required": [],
    })
}

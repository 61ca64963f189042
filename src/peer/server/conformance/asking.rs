//! Tools of the suite that ask the client.

use serde_json::{Value, json};

use crate::peer::server::core::{Answer, Context, Ended, Question};
use crate::peer::server::tools::{Tool, reads, text_result};

pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "test_missing_capability",
        description: "Needs a client that can sample",
        entry: || reads(&json!({})),
        run: |_, ctx| {
            Box::pin(async move {
                ctx.need_capability(&["sampling"])?;
                Ok(text_result("the client can sample"))
            })
        },
    },
    Tool {
        name: "test_streaming_elicitation",
        description: "Tells progress, then asks",
        entry: || reads(&json!({})),
        run: |_, ctx| {
            Box::pin(async move {
                ctx.progress(1.0, 2.0, "asking").await?;
                ctx.ask(&[elicit("confirm", "Go on?", "ok", "boolean")]).await?;
                Ok(text_result("confirmed"))
            })
        },
    },
    Tool {
        name: "test_input_required_result_elicitation",
        description: "Asks for a name, without a state",
        entry: || reads(&json!({})),
        run: |_, ctx| Box::pin(name(ctx)),
    },
    Tool {
        name: "test_input_required_result_sampling",
        description: "Asks the model of the client",
        entry: || reads(&json!({})),
        run: |_, ctx| {
            let question = sample("capital_question", "What is the capital of France?", 100);
            all(ctx, vec![question], "answered")
        },
    },
    Tool {
        name: "test_input_required_result_list_roots",
        description: "Asks for the roots",
        entry: || reads(&json!({})),
        run: |_, ctx| {
            Box::pin(async move {
                let answers = ctx.ask(&[("client_roots", "roots/list", json!({}))]).await?;
                let roots = answers.get("client_roots").map(|answer| answer["roots"].to_string());
                Ok(text_result(&roots.unwrap_or_default()))
            })
        },
    },
    Tool {
        name: "test_input_required_result_request_state",
        description: "Asks, with a state",
        entry: || reads(&json!({})),
        run: |_, ctx| all(ctx, vec![elicit("confirm", "Please confirm", "ok", "boolean")], "state-ok"),
    },
    Tool {
        name: "test_input_required_result_tampered_state",
        description: "Asks, with a state that nobody can forge",
        entry: || reads(&json!({})),
        run: |_, ctx| all(ctx, vec![elicit("confirm", "Please confirm", "ok", "boolean")], "state-ok"),
    },
    Tool {
        name: "test_input_required_result_multiple_inputs",
        description: "Asks three things at once",
        entry: || reads(&json!({})),
        run: |_, ctx| {
            let questions = vec![
                elicit("user_name", "What is your name?", "name", "string"),
                sample("greeting", "Generate a greeting", 50),
                ("client_roots", "roots/list", json!({})),
            ];
            all(ctx, questions, "all three answered")
        },
    },
    Tool {
        name: "test_input_required_result_multi_round",
        description: "Asks one thing, then another",
        entry: || reads(&json!({})),
        run: |_, ctx| {
            Box::pin(async move {
                ctx.ask(&[elicit("step1", "Step 1: What is your name?", "name", "string")]).await?;
                ctx.ask(&[elicit("step2", "Step 2: What is your favorite color?", "color", "string")])
                    .await?;
                Ok(text_result("both rounds answered"))
            })
        },
    },
    Tool {
        name: "test_input_required_result_capabilities",
        description: "Asks only what the client can answer",
        entry: || reads(&json!({})),
        run: |_, ctx| Box::pin(what_it_can(ctx)),
    },
];

async fn name(ctx: &mut Context) -> Answer {
    let answers = ctx.ask_lightly(&[elicit("user_name", "What is your name?", "name", "string")]).await?;
    let name = answers.get("user_name").and_then(|answer| answer["content"]["name"].as_str());
    match name {
        Some(name) => Ok(text_result(&format!("Hello, {name}!"))),
        None => Err(Ended::Failed("there is no name in the answer".to_owned())),
    }
}

fn all<'a>(
    ctx: &'a mut Context,
    questions: Vec<Question<'static>>,
    text: &'static str,
) -> crate::peer::server::core::Running<'a> {
    Box::pin(async move {
        ctx.ask(&questions).await?;
        Ok(text_result(text))
    })
}

async fn what_it_can(ctx: &mut Context) -> Answer {
    let mut questions = Vec::new();
    if ctx.caller().can_fill_forms() {
        questions.push(elicit("user_name", "What is your name?", "name", "string"));
    }
    if ctx.caller().can(&["sampling"]) {
        questions.push(sample("greeting", "Generate a greeting", 50));
    }
    if !questions.is_empty() {
        ctx.ask(&questions).await?;
    }
    Ok(text_result("asked what could be asked"))
}

/// A form with one field.
pub(super) fn elicit(key: &'static str, message: &str, field: &str, kind: &str) -> Question<'static> {
    let schema = json!({ "type": "object", "properties": { field: { "type": kind } }, "required": [field] });
    (key, "elicitation/create", json!({ "mode": "form", "message": message, "requestedSchema": schema }))
}

fn sample(key: &'static str, text: &str, most_tokens: u64) -> Question<'static> {
    let message: Value = json!({ "role": "user", "content": { "type": "text", "text": text } });
    (key, "sampling/createMessage", json!({ "messages": [message], "maxTokens": most_tokens }))
}

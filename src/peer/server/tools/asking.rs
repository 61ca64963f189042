//! Tools that ask the client before they answer.

use serde_json::json;

use super::{
    Answer, Context, Ended, Request, Tool, count, count_schema, reads, text, text_result, text_schema,
};
use crate::peer::server::prompts;
use crate::spec::methods;
use crate::time::Ms;

pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "ask_user",
        description: "Asks for a name first, then greets",
        entry: || reads(&json!({})),
        run: |_, ctx| Box::pin(ask_user(ctx)),
    },
    Tool {
        name: "ask_model",
        description: "Asks the model of the client, and tells what it says",
        entry: || reads(&json!({ "prompt": text_schema("what to ask it") })),
        run: |request, ctx| Box::pin(ask_model(request, ctx)),
    },
    Tool {
        name: "ask_roots",
        description: "Asks the client which folders it works in",
        entry: || reads(&json!({})),
        run: |_, ctx| Box::pin(ask_roots(ctx)),
    },
    Tool {
        name: "ping_client",
        description: "Pings the client, where its revision has pings",
        entry: || reads(&json!({})),
        run: |_, ctx| {
            Box::pin(async move {
                ctx.ask(&[("ping", methods::PING, json!({}))]).await?;
                Ok(text_result("the client is there"))
            })
        },
    },
    Tool {
        name: "come_back",
        description: "Tells progress, and lets the client go in the middle; it comes back for the rest where its revision knows how",
        entry: || reads(&json!({ "ms": count_schema("how long the rest takes", 100) })),
        run: |request, ctx| Box::pin(come_back(request, ctx)),
    },
];

/// Longest time that may be asked for, ms: one hour. ours.
const LONGEST_MS: u64 = 3_600_000;

/// First round: what is missing. Second round: the greeting (MRT-01 to MRT-07).
async fn ask_user(ctx: &mut Context) -> Answer {
    let answers = ctx.ask(&[prompts::name_question()]).await?;
    let answer = answers.get("name").cloned().unwrap_or_default();
    match (answer["action"].as_str(), answer["content"]["name"].as_str()) {
        (Some("accept"), Some(name)) => Ok(text_result(&format!("Hello, {name}"))),
        (Some("accept"), None) => Err(Ended::Failed("the answer holds no name".to_owned())),
        _ => Ok(text_result("No name, no greeting")),
    }
}

async fn ask_model(request: &Request, ctx: &mut Context) -> Answer {
    let prompt = text(request, "prompt")?.unwrap_or_else(|| "What is two and two?".to_owned());
    let message = json!({ "role": "user", "content": { "type": "text", "text": prompt } });
    let params = json!({ "messages": [message], "maxTokens": 100 });
    let answers = ctx.ask(&[("model", "sampling/createMessage", params)]).await?;
    let content = answers.get("model").map(|answer| &answer["content"]);
    match content.and_then(|content| content["text"].as_str()) {
        Some(text) => Ok(text_result(&format!("The model says: {text}"))),
        None => Err(Ended::Failed("the answer of the model holds no text".to_owned())),
    }
}

async fn ask_roots(ctx: &mut Context) -> Answer {
    let answers = ctx.ask(&[("roots", "roots/list", json!({}))]).await?;
    let roots = answers.get("roots").and_then(|answer| answer["roots"].as_array());
    let uris = roots.into_iter().flatten().filter_map(|root| root["uri"].as_str());
    Ok(text_result(&uris.collect::<Vec<_>>().join(", ")))
}

async fn come_back(request: &Request, ctx: &mut Context) -> Answer {
    let ms = count(request, "ms", 100, LONGEST_MS)?;
    ctx.progress(1.0, 2.0, "you may go").await?;
    ctx.let_go().await?;
    ctx.sleep(Ms(ms)).await?;
    ctx.progress(2.0, 2.0, "you are back").await?;
    Ok(text_result("nothing was lost"))
}

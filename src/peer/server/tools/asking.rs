//! Tools that ask the client before they answer.

use serde_json::{Map, Value, json};

use super::{Context, Ended, Tool, reads, text_result};

pub(super) const TOOLS: &[Tool] = &[Tool {
    name: "ask_user",
    description: "Asks for a name first, then greets",
    entry: || reads(&json!({})),
    run: |_, ctx| Box::pin(ask_user(ctx)),
}];

/// First round: what is missing. Second round: the greeting (protocol.md section 11).
async fn ask_user(ctx: &mut Context) -> Result<Map<String, Value>, Ended> {
    let schema =
        json!({ "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] });
    let params = json!({ "mode": "form", "message": "What is your name?", "requestedSchema": schema });
    let answers = ctx.ask(&[("name", "elicitation/create", params)]).await?;
    let answer = &answers["name"];
    match (answer["action"].as_str(), answer["content"]["name"].as_str()) {
        (Some("accept"), Some(name)) => Ok(text_result(&format!("Hello, {name}"))),
        (Some("accept"), None) => Err(Ended::Failed("the answer holds no name".to_owned())),
        _ => Ok(text_result("No name, no greeting")),
    }
}

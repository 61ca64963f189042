//! Tools that ask the client before they answer.

use serde_json::json;

use super::{Answer, Context, Ended, Tool, reads, text_result};
use crate::peer::server::prompts;

pub(super) const TOOLS: &[Tool] = &[Tool {
    name: "ask_user",
    description: "Asks for a name first, then greets",
    entry: || reads(&json!({})),
    run: |_, ctx| Box::pin(ask_user(ctx)),
}];

/// First round: what is missing. Second round: the greeting (protocol.md section 11).
async fn ask_user(ctx: &mut Context) -> Answer {
    let answers = ctx.ask(&[prompts::name_question()]).await?;
    let answer = answers.get("name").cloned().unwrap_or_default();
    match (answer["action"].as_str(), answer["content"]["name"].as_str()) {
        (Some("accept"), Some(name)) => Ok(text_result(&format!("Hello, {name}"))),
        (Some("accept"), None) => Err(Ended::Failed("the answer holds no name".to_owned())),
        _ => Ok(text_result("No name, no greeting")),
    }
}

//! `completion/complete`: what an argument may be, as far as it was typed.

use serde_json::{Map, Value, json};

use super::core::{Answer, Context, Ended, object};
use super::message::{Refusal, Request};
use super::{prompts, resources};

/// Most values in one answer (CMP-01).
const MOST_VALUES: usize = 100;

/// `completion/complete`.
pub(super) fn complete(request: &Request, ctx: &Context) -> Answer {
    let refuse = |text: String| Ended::Refused(Refusal::params(&request.id, text));
    let text = |path: &[&str]| {
        let text = request.string_at(path);
        text.ok_or_else(|| refuse(format!("{} is missing or no string", path.join("."))))
    };
    let name = text(&["argument", "name"])?;
    let typed = text(&["argument", "value"])?;
    let all = match &*text(&["ref", "type"])? {
        "ref/prompt" => {
            let prompt = text(&["ref", "name"])?;
            let known = request.object_at(&["context", "arguments"]).unwrap_or_default();
            of_prompt(ctx, &prompt, &name, &known)
        }
        "ref/resource" => resources::suggest(ctx.core(), &text(&["ref", "uri"])?, &name),
        other => return Err(refuse(format!("ref.type {other:?} is neither ref/prompt nor ref/resource"))),
    };
    let all = all.ok_or_else(|| refuse(format!("nothing there has an argument {name:?}")))?;
    let typed = typed.to_lowercase();
    let fitting: Vec<&String> = all.iter().filter(|value| value.to_lowercase().starts_with(&typed)).collect();
    Ok(object(json!({ "completion": {
        "values": fitting.iter().take(MOST_VALUES).collect::<Vec<_>>(),
        "total": fitting.len(),
        "hasMore": fitting.len() > MOST_VALUES,
    } })))
}

fn of_prompt(ctx: &Context, prompt: &str, argument: &str, known: &Map<String, Value>) -> Option<Vec<String>> {
    let prompt = prompts::find(ctx.core(), prompt)?;
    let argument = prompt.arguments.iter().find(|one| one.name == argument)?;
    Some((argument.suggest)(known))
}

//! Prompts: a template, one that takes its time, one that asks, and one that comes and goes.

use serde_json::{Map, Value, json};

use super::catalogue::page;
use super::conformance;
use super::core::{Answer, Context, Core, Ended, Question, Running, object};
use super::message::{Refusal, Request};
use super::store::Extra;
use crate::time::Ms;

/// A prompt.
#[derive(Debug, Clone, Copy)]
pub(super) struct Prompt {
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    pub(super) arguments: &'static [Argument],
    /// Makes its messages of the arguments; ends early when the client gives up.
    pub(super) run: for<'a> fn(&'a Map<String, Value>, &'a mut Context) -> Running<'a>,
}

/// An argument of a prompt; all are strings.
#[derive(Debug, Clone, Copy)]
pub(super) struct Argument {
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    pub(super) is_required: bool,
    /// Values for it; `context`: the arguments that are known already.
    pub(super) suggest: fn(context: &Map<String, Value>) -> Vec<String>,
}

/// Countries, and cities in each.
const PLACES: [(&str, &[&str]); 3] = [
    ("France", &["Lyon", "Marseille", "Paris"]),
    ("Germany", &["Berlin", "Hamburg", "Leipzig"]),
    ("Japan", &["Kyoto", "Osaka", "Tokyo"]),
];

/// Longest time that a prompt may take, ms: one hour. ours.
const LONGEST_MS: u64 = 3_600_000;

const PROMPTS: &[Prompt] = &[
    Prompt {
        name: "letter",
        description: "A letter from somewhere",
        arguments: &[
            Argument {
                name: "country",
                description: "where it is written",
                is_required: true,
                suggest: |_| PLACES.map(|(country, _)| country.to_owned()).to_vec(),
            },
            Argument {
                name: "city",
                description: "where exactly",
                is_required: false,
                suggest: |context| {
                    let country = context.get("country").and_then(Value::as_str);
                    let places =
                        PLACES.iter().filter(|(name, _)| country.is_none_or(|country| country == *name));
                    places.flat_map(|(_, cities)| cities.iter().map(|city| (*city).to_owned())).collect()
                },
            },
        ],
        run: |arguments, _| {
            Box::pin(async move {
                let place = [arguments.get("city"), arguments.get("country")];
                let place: Vec<&str> = place.into_iter().flatten().filter_map(Value::as_str).collect();
                Ok(user(&format!("Write a letter from {}.", place.join(", "))))
            })
        },
    },
    Prompt {
        name: "slow_prompt",
        description: "Takes its time; nothing is said until then",
        arguments: &[Argument {
            name: "ms",
            description: "how long",
            is_required: false,
            // More than an answer may hold.
            suggest: |_| (0..1000).map(|number| number.to_string()).collect(),
        }],
        run: |arguments, ctx| {
            Box::pin(async move {
                let ms = arguments.get("ms").and_then(Value::as_str).unwrap_or("1000");
                let ms = ms.parse().ok().filter(|ms| *ms <= LONGEST_MS);
                let ms = ms.ok_or_else(|| refuse(ctx, &format!("ms is a number from 0 to {LONGEST_MS}")))?;
                ctx.sleep(Ms(ms)).await?;
                Ok(user(&format!("This took {ms} ms.")))
            })
        },
    },
    Prompt {
        name: "greeting",
        description: "Asks for a name first; needs the client capability elicitation",
        arguments: &[],
        run: |_, ctx| Box::pin(async move { Ok(user(&format!("Greet {}.", ask_name(ctx).await?))) }),
    },
];

const EXTRA: &[Prompt] = &[Prompt {
    name: "extra_prompt",
    description: "There while the tool switch_extra says so",
    arguments: &[],
    run: |_, _| Box::pin(async { Ok(user("You found it.")) }),
}];

/// The prompts that there are now, in the order of their list.
fn all(core: &Core) -> impl Iterator<Item = &'static Prompt> {
    let extra = if core.store.has(Extra::Prompt) { EXTRA } else { &[] };
    let of_suite = if core.options.conformance { conformance::PROMPTS } else { &[] };
    [PROMPTS, extra, of_suite].into_iter().flatten()
}

/// The prompt of a name.
pub(super) fn find(core: &Core, name: &str) -> Option<&'static Prompt> {
    all(core).find(|prompt| prompt.name == name)
}

/// `prompts/list`.
pub(super) fn list(request: &Request, ctx: &Context) -> Answer {
    let argument = |argument: &Argument| {
        json!({
            "name": argument.name, "description": argument.description, "required": argument.is_required,
        })
    };
    let entry = |prompt: &Prompt| {
        let mut entry = json!({ "name": prompt.name, "description": prompt.description });
        if !prompt.arguments.is_empty() {
            entry["arguments"] = prompt.arguments.iter().map(argument).collect();
        }
        entry
    };
    page(request, ctx, "prompts", all(ctx.core()).map(entry).collect())
}

/// `prompts/get`.
pub(super) async fn get(request: &Request, ctx: &mut Context) -> Answer {
    let name = request.string_at(&["name"]).unwrap_or_default();
    let prompt = find(ctx.core(), &name);
    let prompt =
        prompt.ok_or_else(|| refuse(ctx, &format!("no prompt {name:?}; prompts/list names them")))?;
    let arguments = match request.at(&["arguments"]) {
        None => Map::new(),
        Some(_) => request.object_at(&["arguments"]).ok_or_else(|| refuse(ctx, "arguments is an object"))?,
    };
    if let Some((name, _)) = arguments.iter().find(|(_, value)| !value.is_string()) {
        return Err(refuse(ctx, &format!("the argument {name:?} must be a string")));
    }
    let is_missing = |argument: &&Argument| argument.is_required && !arguments.contains_key(argument.name);
    if let Some(argument) = prompt.arguments.iter().find(is_missing) {
        return Err(refuse(ctx, &format!("the argument {:?} is missing", argument.name)));
    }
    let mut result = (prompt.run)(&arguments, ctx).await?;
    result.entry("description").or_insert_with(|| json!(prompt.description));
    Ok(result)
}

fn refuse(ctx: &Context, text: &str) -> Ended {
    Ended::Refused(Refusal::params(&ctx.request().id, text))
}

/// Messages of one text by the user.
fn user(text: &str) -> Map<String, Value> {
    object(json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": text } }] }))
}

/// The question for a name.
pub(super) fn name_question() -> Question<'static> {
    let schema =
        json!({ "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] });
    let params = json!({ "mode": "form", "message": "What is your name?", "requestedSchema": schema });
    ("name", "elicitation/create", params)
}

/// Asks the user for a name.
pub(super) async fn ask_name(ctx: &mut Context) -> Result<String, Ended> {
    let answers = ctx.ask(&[name_question()]).await?;
    let name = answers.get("name").and_then(|answer| answer["content"]["name"].as_str());
    name.map(str::to_owned).ok_or_else(|| refuse(ctx, "there is no going on without a name"))
}

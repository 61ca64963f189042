//! The tools: each shows one thing that can happen to a call.

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::core::{Context, Ended, object};
use super::message::Request;
use crate::time::Ms;
use crate::wire::jsonrpc::Id;

/// What can be called. The order is that of `tools/list`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tool {
    /// Answers at once with what it was given.
    Echo,
    /// Works in steps and tells progress.
    Slow,
    /// Says nothing until it is cancelled, or for a given time.
    Silent,
    /// Progress at full speed.
    Flood,
    /// One large result.
    Big,
    /// A tool error.
    Fails,
    /// Asks the user first (MRTR), so it needs the client capability `elicitation`.
    AskUser,
}

/// Largest result or flood message that may be asked for, bytes. ours.
const LARGEST_BYTES: u64 = 64 << 20;
/// Most steps or floods that may be asked for. ours.
const MOST_STEPS: u64 = 1_000_000;
/// Longest time that may be asked for, ms: one hour. ours.
const LONGEST_MS: u64 = 3_600_000;

/// The state that `ask_user` gets back with its answer.
const ASKED: &str = "asked-for-name";

impl Tool {
    pub(super) const ALL: [Tool; 7] =
        [Tool::Echo, Tool::Slow, Tool::Silent, Tool::Flood, Tool::Big, Tool::Fails, Tool::AskUser];

    pub(super) fn name(self) -> &'static str {
        match self {
            Tool::Echo => "echo",
            Tool::Slow => "slow",
            Tool::Silent => "silent",
            Tool::Flood => "flood",
            Tool::Big => "big",
            Tool::Fails => "fails",
            Tool::AskUser => "ask_user",
        }
    }

    /// Its entry in `tools/list`.
    pub(super) fn definition(self) -> Value {
        let count = |what: &str, default: u64| json!({ "type": "integer", "minimum": 0, "default": default, "description": what });
        let text = |what: &str| json!({ "type": "string", "description": what });
        let (description, properties) = match self {
            Tool::Echo => ("Answers at once with the same text", json!({ "text": text("what to answer") })),
            Tool::Slow => (
                "Works in steps and tells progress after each",
                json!({ "steps": count("how many steps", 5), "step_ms": count("how long each takes", 400) }),
            ),
            Tool::Silent => (
                "Says nothing until it is cancelled, or for a given time",
                json!({ "ms": { "type": "integer", "minimum": 0, "description": "answer after this long; absent: never" } }),
            ),
            Tool::Flood => (
                "Tells progress as fast as the wire takes it",
                json!({ "n": count("how many", 2000), "size": count("bytes of text in each", 0) }),
            ),
            Tool::Big => {
                ("Answers with a text of a given size", json!({ "bytes": count("how large", 1_000_000) }))
            }
            Tool::Fails => ("Fails: a result with isError", json!({ "text": text("why") })),
            Tool::AskUser => ("Asks for a name first, then greets", json!({})),
        };
        json!({
            "name": self.name(),
            "description": description,
            "inputSchema": { "type": "object", "properties": properties },
            "annotations": { "readOnlyHint": true },
        })
    }

    /// Runs it to its result; ends early when the client gives up.
    pub(super) async fn run(self, request: &Request, ctx: &mut Context) -> Result<Map<String, Value>, Ended> {
        match self {
            Tool::Echo => Ok(text_result(&text(request, "text")?.unwrap_or_default())),
            Tool::Slow => slow(request, ctx).await,
            Tool::Silent => silent(request, ctx).await,
            Tool::Flood => flood(request, ctx).await,
            Tool::Big => {
                let bytes = count(request, "bytes", 1_000_000, LARGEST_BYTES)?;
                Ok(text_result(&filler(bytes)))
            }
            Tool::Fails => {
                let why = text(request, "text")?.unwrap_or_else(|| "this tool always fails".to_owned());
                Err(Ended::Failed(why))
            }
            Tool::AskUser => ask_user(request),
        }
    }
}

async fn slow(request: &Request, ctx: &mut Context) -> Result<Map<String, Value>, Ended> {
    let steps = count(request, "steps", 5, MOST_STEPS)?;
    let step = Ms(count(request, "step_ms", 400, LONGEST_MS)?);
    for k in 1..=steps {
        ctx.sleep(step).await?;
        ctx.progress(float(k), float(steps), &format!("step {k} of {steps}")).await?;
    }
    Ok(text_result(&format!("{steps} steps done")))
}

async fn silent(request: &Request, ctx: &Context) -> Result<Map<String, Value>, Ended> {
    if request.at(&["arguments", "ms"]).is_none() {
        return Err(ctx.cancelled().await);
    }
    let ms = count(request, "ms", 0, LONGEST_MS)?;
    ctx.sleep(Ms(ms)).await?;
    Ok(text_result(&format!("nothing was said for {ms} ms")))
}

async fn flood(request: &Request, ctx: &mut Context) -> Result<Map<String, Value>, Ended> {
    let n = count(request, "n", 2000, MOST_STEPS)?;
    let text = filler(count(request, "size", 0, LARGEST_BYTES)?);
    ctx.at_full_speed();
    for k in 1..=n {
        ctx.progress(float(k), float(n), &text).await?;
    }
    Ok(text_result(&format!("{n} notifications sent")))
}

/// First round: what is missing. Second round: the greeting (protocol.md section 11).
fn ask_user(request: &Request) -> Result<Map<String, Value>, Ended> {
    request.need_capability("elicitation").map_err(Ended::Refused)?;
    let Some(action) = request.string_at(&["inputResponses", "name", "action"]) else {
        let schema =
            json!({ "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] });
        let params = json!({ "mode": "form", "message": "What is your name?", "requestedSchema": schema });
        return Ok(object(json!({
            "resultType": "input_required",
            "requestState": ASKED,
            "inputRequests": { "name": { "method": "elicitation/create", "params": params } },
        })));
    };
    if request.string_at(&["requestState"]).as_deref() != Some(ASKED) {
        return Err(Ended::Failed("requestState is not the one that was given out".to_owned()));
    }
    let name = request.string_at(&["inputResponses", "name", "content", "name"]);
    match (&*action, name) {
        ("accept", Some(name)) => Ok(text_result(&format!("Hello, {name}"))),
        ("accept", None) => Err(Ended::Failed("the answer holds no name".to_owned())),
        _ => Ok(text_result("No name, no greeting")),
    }
}

fn text_result(text: &str) -> Map<String, Value> {
    object(json!({ "content": [{ "type": "text", "text": text }] }))
}

/// A whole number among the arguments. A wrong one is a tool error, so that the caller can mend it.
fn count(request: &Request, name: &str, default: u64, most: u64) -> Result<u64, Ended> {
    let Some(raw) = request.at(&["arguments", name]) else { return Ok(default) };
    let number = whole(raw).filter(|number| *number <= most);
    number.ok_or_else(|| Ended::Failed(format!("{name} must be a whole number from 0 to {most}")))
}

/// `7` and `7.0` alike.
fn whole(raw: &RawValue) -> Option<u64> {
    match Id::from_raw(raw.get())? {
        Id::Int(digits) => digits.parse().ok(),
        Id::Str(_) => None,
    }
}

fn text(request: &Request, name: &str) -> Result<Option<String>, Ended> {
    if request.at(&["arguments", name]).is_none() {
        return Ok(None);
    }
    let text = request.string_at(&["arguments", name]);
    text.map(|text| Some(text.into_owned())).ok_or_else(|| Ended::Failed(format!("{name} must be a string")))
}

/// Text of exactly so many bytes.
fn filler(bytes: u64) -> String {
    let bytes = usize::try_from(bytes).unwrap_or(0);
    "0123456789abcde ".chars().cycle().take(bytes).collect()
}

/// Exact: the limits above are far below 2^53.
#[expect(clippy::cast_precision_loss, reason = "bounded by MOST_STEPS")]
fn float(number: u64) -> f64 {
    number as f64
}

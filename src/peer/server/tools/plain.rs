//! Tools that need nothing but time and room.

use serde_json::{Map, Value, json};

use super::{Context, Ended, Request, Tool, count, count_schema, reads, text, text_result, text_schema};
use crate::time::Ms;

/// Largest result or flood message that may be asked for, bytes. ours.
const LARGEST_BYTES: u64 = 64 << 20;
/// Most steps or floods that may be asked for. ours.
const MOST_STEPS: u64 = 1_000_000;
/// Longest time that may be asked for, ms: one hour. ours.
const LONGEST_MS: u64 = 3_600_000;

pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "echo",
        description: "Answers at once with the same text",
        entry: || reads(&json!({ "text": text_schema("what to answer") })),
        run: |request, _| {
            Box::pin(async move { Ok(text_result(&text(request, "text")?.unwrap_or_default())) })
        },
    },
    Tool {
        name: "slow",
        description: "Works in steps and tells progress after each",
        entry: || {
            let (steps, each) = (count_schema("how many steps", 5), count_schema("how long each takes", 400));
            reads(&json!({ "steps": steps, "step_ms": each }))
        },
        run: |request, ctx| Box::pin(slow(request, ctx)),
    },
    Tool {
        name: "silent",
        description: "Says nothing until it is cancelled, or for a given time",
        entry: || {
            let text = "answer after this long; absent: never";
            reads(&json!({ "ms": { "type": "integer", "minimum": 0, "description": text } }))
        },
        run: |request, ctx| Box::pin(silent(request, ctx)),
    },
    Tool {
        name: "flood",
        description: "Tells progress as fast as the wire takes it",
        entry: || {
            let (n, size) = (count_schema("how many", 2000), count_schema("bytes of text in each", 0));
            reads(&json!({ "n": n, "size": size }))
        },
        run: |request, ctx| Box::pin(flood(request, ctx)),
    },
    Tool {
        name: "big",
        description: "Answers with a text of a given size",
        entry: || reads(&json!({ "bytes": count_schema("how large", 1_000_000) })),
        run: |request, _| {
            Box::pin(async move {
                let bytes = count(request, "bytes", 1_000_000, LARGEST_BYTES)?;
                Ok(text_result(&filler(bytes)))
            })
        },
    },
    Tool {
        name: "fails",
        description: "Fails: a result with isError",
        entry: || reads(&json!({ "text": text_schema("why") })),
        run: |request, _| {
            Box::pin(async move {
                let why = text(request, "text")?.unwrap_or_else(|| "this tool always fails".to_owned());
                Err(Ended::Failed(why))
            })
        },
    },
];

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

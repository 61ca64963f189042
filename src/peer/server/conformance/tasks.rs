//! Tools of the suite that are, or may become, tasks.

use serde_json::{Map, Value, json};

use crate::peer::server::core::{Answer, Context, Question, Running};
use crate::peer::server::message::Request;
use crate::peer::server::tasks::{Stop, Terms, Worker};
use crate::peer::server::tools::{Tool, reads, text_result};
use crate::time::Ms;

/// How long a task is kept, and how often the suite may ask.
const TERMS: Terms = Terms { ttl: Ms(300_000), poll: Ms(100) };

/// A worker looks whether it is still wanted this often.
const PIECE: Ms = Ms(100);

/// Longest work that may be asked for, in seconds. ours.
const LONGEST_S: u64 = 3600;

pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "greet",
        description: "Greets; never a task",
        entry: || reads(&json!({ "name": { "type": "string" } })),
        run: |request, _| {
            Box::pin(async move {
                let name = request.string_at(&["arguments", "name"]).unwrap_or_default();
                Ok(text_result(&format!("Hello, {name}!")))
            })
        },
    },
    Tool {
        name: "slow_compute",
        description: "Works for some seconds; a task where the client knows tasks",
        entry: || {
            reads(&json!({ "seconds": { "type": "number", "minimum": 0 }, "label": { "type": "string" } }))
        },
        run: |request, ctx| Box::pin(slow_compute(request, ctx)),
    },
    Tool {
        name: "failing_job",
        description: "A task that ends with a tool error",
        entry: || reads(&json!({})),
        run: |_, ctx| {
            as_task(ctx, |worker| async move {
                work(&worker, Ms(1000)).await?;
                let mut result = text_result("the job fails");
                result.insert("isError".to_owned(), json!(true));
                Ok(result)
            })
        },
    },
    Tool {
        name: "protocol_error_job",
        description: "A task that ends with a JSON-RPC error",
        entry: || reads(&json!({})),
        run: |_, ctx| {
            as_task(ctx, |worker| async move {
                work(&worker, PIECE).await?;
                Err(Stop::Broken("the job was stopped by a defect".to_owned()))
            })
        },
    },
    Tool {
        name: "confirm_delete",
        description: "A task that asks before it does something",
        entry: || reads(&json!({ "filename": { "type": "string" } })),
        run: |request, ctx| {
            let name = request.string_at(&["arguments", "filename"]).unwrap_or_default().into_owned();
            as_task(ctx, move |worker| async move {
                let answers = worker.ask(&[form(&format!("Delete {name}?"), "confirm", "boolean")]).await?;
                let is_confirmed = answers.iter().any(|answer| answer["content"]["confirm"] == true);
                let said = if is_confirmed { "deleted" } else { "kept" };
                Ok(text_result(&format!("{name} is {said}")))
            })
        },
    },
    Tool {
        name: "multi_input",
        description: "A task that asks two things at once",
        entry: || reads(&json!({})),
        run: |_, ctx| {
            as_task(ctx, |worker| async move {
                let questions = [form("Your name?", "name", "string"), form("Go on?", "confirm", "boolean")];
                let answers = worker.ask(&questions).await?;
                Ok(text_result(&format!("{} answers", answers.len())))
            })
        },
    },
    Tool {
        name: "test_tool_with_task",
        description: "Asks for a name first, then goes on as a task",
        entry: || reads(&json!({})),
        run: |_, ctx| Box::pin(asking_first(ctx)),
    },
];

/// A call that is answered with a task and nothing else.
fn as_task<'a, F>(ctx: &'a Context, work: impl FnOnce(Worker) -> F + Send + 'a) -> Running<'a>
where
    F: Future<Output = Result<Map<String, Value>, Stop>> + Send + 'static,
{
    Box::pin(async move { Err(ctx.hand_over(TERMS, work)) })
}

async fn slow_compute(request: &Request, ctx: &mut Context) -> Answer {
    let seconds = request.value_at(&["arguments", "seconds"]).and_then(|seconds| seconds.as_u64());
    let time = Ms(seconds.unwrap_or(0).min(LONGEST_S) * 1000);
    let said = format!("computed for {} ms", time.0);
    if !ctx.knows_tasks() {
        ctx.sleep(time).await?;
        return Ok(text_result(&said));
    }
    Err(ctx.hand_over(TERMS, |worker| async move {
        work(&worker, time).await?;
        Ok(text_result(&said))
    }))
}

async fn asking_first(ctx: &mut Context) -> Answer {
    let (method, params) = form("Your name?", "name", "string");
    let question: Question<'_> = ("user_name", method, params);
    let answers = ctx.ask(&[question]).await?;
    let content = &answers["user_name"]["content"];
    let name = content["name"].as_str().unwrap_or("nobody").to_owned();
    Err(ctx.hand_over(TERMS, |worker| async move {
        work(&worker, PIECE).await?;
        Ok(text_result(&format!("done for {name}")))
    }))
}

/// Works, and looks after each piece whether it is still wanted.
async fn work(worker: &Worker, time: Ms) -> Result<(), Stop> {
    let mut left = time.0;
    while left > 0 {
        worker.checkpoint()?;
        let piece = left.min(PIECE.0);
        worker.work(Ms(piece)).await;
        left -= piece;
    }
    Ok(())
}

/// A question for one value.
fn form(message: &str, name: &str, kind: &str) -> (&'static str, Value) {
    let schema = json!({ "type": "object", "properties": { name: { "type": kind } }, "required": [name] });
    ("elicitation/create", json!({ "mode": "form", "message": message, "requestedSchema": schema }))
}

//! Tools that are answered with a task.

use serde_json::{Map, Value, json};

use super::{
    Context, Ended, Request, Tool, changes, count, count_schema, only, text, text_result, text_schema,
};
use crate::peer::server::core::Answer;
use crate::peer::server::tasks::{Stop, Terms, Worker};
use crate::time::Ms;

/// Longest section that may be asked for, ms: one hour. ours.
const LONGEST_MS: u64 = 3_600_000;
/// Most sections that may be asked for. ours.
const MOST_SECTIONS: u64 = 10_000;
/// Longest time that a task is kept, ms: one day. ours.
const LONGEST_TTL_MS: u64 = 86_400_000;
/// How long a report is kept, ms. ours: ten minutes.
const TTL_MS: u64 = 600_000;
/// How often a client may ask. ours: more often than a section takes.
const POLL: Ms = Ms(500);

pub(super) const TOOLS: &[Tool] = &[Tool {
    name: "generate_report",
    description: "Writes a report, as a task: it looks for a cancel before each section",
    entry: || {
        let (sections, each) =
            (count_schema("how many sections", 5), count_schema("how long each takes", 1000));
        let ask = json!({ "type": "boolean", "default": false, "description": "ask for a title first" });
        let ends = json!({
            "type": "string",
            "enum": ["well", "tool error", "broken"],
            "default": "well",
            "description": "how it ends",
        });
        let ttl = count_schema("how long the task is kept", TTL_MS);
        let title = text_schema("the title");
        let properties = json!({
            "title": title, "sections": sections, "section_ms": each, "ask": ask, "ends": ends, "ttl_ms": ttl,
        });
        changes(&properties, &[])
    },
    run: |request, ctx| Box::pin(async move { report(request, ctx) }),
}];

/// What is to be written.
#[derive(Debug)]
struct Order {
    title: String,
    asks: bool,
    sections: u64,
    each: Ms,
    ends: Ends,
}

#[derive(Debug, Clone, Copy)]
enum Ends {
    Well,
    ToolError,
    Broken,
}

fn report(request: &Request, ctx: &mut Context) -> Answer {
    only(request, &["title", "sections", "section_ms", "ask", "ends", "ttl_ms"])?;
    let asks = match request.value_at(&["arguments", "ask"]) {
        None | Some(Value::Bool(false)) => false,
        Some(Value::Bool(true)) => true,
        Some(_) => return Err(Ended::Failed("ask is true or false".to_owned())),
    };
    let ends = match text(request, "ends")?.as_deref() {
        None | Some("well") => Ends::Well,
        Some("tool error") => Ends::ToolError,
        Some("broken") => Ends::Broken,
        Some(_) => return Err(Ended::Failed("ends is well, tool error or broken".to_owned())),
    };
    if asks {
        ctx.need_capability(&["elicitation"])?;
    }
    let order = Order {
        title: text(request, "title")?.unwrap_or_else(|| "Report".to_owned()),
        asks,
        sections: count(request, "sections", 5, MOST_SECTIONS)?,
        each: Ms(count(request, "section_ms", 1000, LONGEST_MS)?),
        ends,
    };
    let terms = Terms { ttl: Ms(count(request, "ttl_ms", TTL_MS, LONGEST_TTL_MS)?.max(1)), poll: POLL };
    Err(ctx.hand_over(terms, |worker| write(worker, order)))
}

async fn write(worker: Worker, order: Order) -> Result<Map<String, Value>, Stop> {
    let Order { mut title, asks, sections, each, ends } = order;
    if asks {
        let schema = json!({ "type": "object", "properties": { "title": { "type": "string" } } });
        let params = json!({ "mode": "form", "message": "Which title?", "requestedSchema": schema });
        let answers = worker.ask(&[("elicitation/create", params)]).await?;
        let answer = answers.first().and_then(|answer| answer["content"]["title"].as_str());
        title = answer.map_or(title, str::to_owned);
    }
    for section in 1..=sections {
        worker.checkpoint()?;
        worker.work(each).await;
        worker.say(&format!("section {section} of {sections}"));
    }
    // From here on the wish comes too late: the work is done.
    match ends {
        Ends::Well => Ok(text_result(&format!("{title}: {sections} sections"))),
        Ends::ToolError => {
            let mut result = text_result("the printer is on fire");
            result.insert("isError".to_owned(), json!(true));
            Ok(result)
        }
        Ends::Broken => Err(Stop::Broken("the work was stopped by a defect".to_owned())),
    }
}

#[cfg(test)]
mod tests;

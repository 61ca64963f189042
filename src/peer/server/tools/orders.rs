//! Tools that hold something while they work, and those that show what became of it.

use std::thread;

use serde_json::json;

use super::{
    Context, Ended, Request, Tool, changes, count, count_schema, object, only, reads, text, text_result,
    text_schema,
};
use crate::peer::server::core::Answer;
use crate::peer::server::shop::{Rebuild, Stand};
use crate::peer::server::work::{Cleanup, Units};
use crate::time::Ms;

/// Longest wait that may be asked for, ms: one hour. ours.
const LONGEST_MS: u64 = 3_600_000;
/// Longest unit of work on a thread, ms: one minute, for nothing can interrupt it. ours.
const LONGEST_UNIT_MS: u64 = 60_000;
/// Most titles of an index. ours.
const MOST_TITLES: u64 = 10_000;

const REBUILD_ARGUMENTS: [&str; 2] = ["titles", "title_ms"];

pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "order_book",
        description: "Holds a book, waits for its payment, and releases the hold however that ends",
        entry: || {
            let wait = count_schema("how long the payment takes", 30_000);
            let release = count_schema("how long it takes to release the hold", 100);
            let title = text_schema("which book");
            changes(&json!({ "title": title, "payment_ms": wait, "release_ms": release }), &[])
        },
        run: |request, ctx| Box::pin(order(request, ctx)),
    },
    Tool {
        name: "list_holds",
        description: "Says what is held now, and what was never released",
        entry: || reads(&json!({})),
        run: |_, ctx| Box::pin(async { Ok(holds(ctx)) }),
    },
    Tool {
        name: "rebuild_index",
        description: "Rebuilds the search index on a thread that looks for a cancel after each title",
        entry: rebuild_entry,
        run: |request, ctx| Box::pin(rebuild(request, ctx, checking)),
    },
    Tool {
        name: "rebuild_index_blind",
        description: "Rebuilds the search index on a thread that never looks for a cancel",
        entry: rebuild_entry,
        run: |request, ctx| Box::pin(rebuild(request, ctx, blind)),
    },
    Tool {
        name: "index_status",
        description: "Says whether the search is on, and how far each rebuild got",
        entry: || reads(&json!({})),
        run: |_, ctx| Box::pin(async { Ok(status(ctx)) }),
    },
];

async fn order(request: &Request, ctx: &mut Context) -> Answer {
    only(request, &["title", "payment_ms", "release_ms"])?;
    let title = text(request, "title")?.unwrap_or_else(|| "any".to_owned());
    let payment = Ms(count(request, "payment_ms", 30_000, LONGEST_MS)?);
    let release = Ms(count(request, "release_ms", 100, LONGEST_MS)?);
    let Some(hold) = ctx.core().shop.holds.take(&title, &request.id) else {
        return Err(Ended::Failed("too much was held and never released".to_owned()));
    };
    let paid = ctx.sleep(payment).await;
    let released = ctx
        .clean_up(async {
            tokio::time::sleep(release.into()).await;
            hold.release();
        })
        .await;
    paid?;
    match released {
        Cleanup::Done => Ok(text_result(&format!("{title} is ordered; hold {} is released", hold.number()))),
        Cleanup::Overran(limit) => Err(Ended::Failed(format!(
            "{title} is ordered, but hold {} was not released within {} ms",
            hold.number(),
            limit.0
        ))),
        Cleanup::Leaked => Err(Ended::Cancelled),
    }
}

fn holds(ctx: &Context) -> serde_json::Map<String, serde_json::Value> {
    let holds = ctx.core().shop.holds.list();
    let lines: Vec<String> = holds
        .iter()
        .map(|held| {
            let state = if held.is_leaked { "leaked" } else { "held" };
            format!("hold {}: {}, {state} by request {}", held.number, held.title, held.request)
        })
        .collect();
    let text = if lines.is_empty() { "nothing is held".to_owned() } else { lines.join("\n") };
    let holds: Vec<_> = holds
        .iter()
        .map(|held| {
            json!({
                "hold": held.number,
                "title": held.title,
                "request": held.request.to_string(),
                "leaked": held.is_leaked,
            })
        })
        .collect();
    object(json!({ "content": [{ "type": "text", "text": text }], "structuredContent": { "holds": holds } }))
}

fn rebuild_entry() -> serde_json::Value {
    let (titles, each) = (count_schema("how many", 5), count_schema("how long each takes", 1000));
    changes(&json!({ "titles": titles, "title_ms": each }), &[])
}

async fn rebuild(
    request: &Request,
    ctx: &mut Context,
    work: fn(&Units, &Rebuild, u32, Ms) -> (u32, Stand),
) -> Answer {
    only(request, &REBUILD_ARGUMENTS)?;
    let titles = u32::try_from(count(request, "titles", 5, MOST_TITLES)?).unwrap_or(u32::MAX);
    let each = Ms(count(request, "title_ms", 1000, LONGEST_UNIT_MS)?);
    ctx.checkpoint()?;
    let (index, id) = (ctx.core().shop.index.clone(), request.id.clone());
    let done = ctx
        .on_a_thread(move |units| {
            let run = index.begin(&id, titles);
            let (done, stand) = work(units, &run, titles, each);
            run.is_at(done, stand);
            done
        })
        .await?;
    ctx.checkpoint()?;
    Ok(text_result(&format!("{done} of {titles} titles indexed")))
}

/// Looks for the cancel after each title.
fn checking(units: &Units, run: &Rebuild, titles: u32, each: Ms) -> (u32, Stand) {
    for done in 1..=titles {
        thread::sleep(each.into());
        run.is_at(done, Stand::Running);
        units.done(done, titles);
        if !units.is_wanted() {
            return (done, Stand::Stopped);
        }
    }
    (titles, Stand::Finished)
}

/// Never looks.
fn blind(units: &Units, run: &Rebuild, titles: u32, each: Ms) -> (u32, Stand) {
    for done in 1..=titles {
        thread::sleep(each.into());
        run.is_at(done, Stand::Running);
        units.done(done, titles);
    }
    (titles, if units.is_cancelled() { Stand::Discarded } else { Stand::Finished })
}

fn status(ctx: &Context) -> serde_json::Map<String, serde_json::Value> {
    let index = &ctx.core().shop.index;
    let search = if index.is_online() { "online" } else { "offline" };
    let runs = index.runs();
    let mut lines = vec![format!("the search is {search}")];
    lines.extend(runs.iter().map(|run| {
        let stand = run.stand.as_str();
        format!("run {}, request {}: {} of {} titles, {stand}", run.number, run.request, run.done, run.titles)
    }));
    let runs: Vec<_> = runs
        .iter()
        .map(|run| {
            json!({
                "run": run.number,
                "request": run.request.to_string(),
                "done": run.done,
                "titles": run.titles,
                "state": run.stand.as_str(),
            })
        })
        .collect();
    object(json!({
        "content": [{ "type": "text", "text": lines.join("\n") }],
        "structuredContent": { "search": search, "runs": runs },
    }))
}

#[cfg(test)]
mod tests;

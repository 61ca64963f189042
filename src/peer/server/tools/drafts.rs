//! State between calls, the way it is done without sessions: a handle is given out as a result and
//! comes back as an argument. It cannot be guessed, it expires, and it serves only on whose behalf
//! it was made, which is looked at in every use. Every replica with the same ledger knows it.

use serde_json::json;

use super::{Context, Request, Tool, changes, count, count_schema, needed, object, only, text, text_schema};
use crate::peer::faults::Fault;
use crate::peer::ledger::LedgerError;
use crate::peer::server::core::Answer;
use crate::peer::server::{sealed, shop};
use crate::time::wall_now;

/// How long a draft lives, ms. ours: ten minutes.
const LIFE_MS: u64 = 600_000;

/// Longest life that may be asked for, ms: one day. ours.
const LONGEST_LIFE_MS: u64 = 86_400_000;

pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "draft_create",
        description: "Makes an empty draft and gives out its handle",
        entry: || changes(&json!({ "ttl_ms": count_schema("how long it lives", LIFE_MS) }), &[]),
        run: |request, ctx| Box::pin(create(request, ctx)),
    },
    Tool {
        name: "draft_append",
        description: "Adds a text to a draft and gives the whole of it",
        entry: || {
            let (handle, text) = (text_schema("what draft_create gave out"), text_schema("what is added"));
            changes(&json!({ "handle": handle, "text": text }), &["handle", "text"])
        },
        run: |request, ctx| Box::pin(append(request, ctx)),
    },
];

async fn create(request: &Request, ctx: &mut Context) -> Answer {
    only(request, &["ttl_ms"])?;
    let life = count(request, "ttl_ms", LIFE_MS, LONGEST_LIFE_MS)?;
    let (handle, owner) = (sealed::handle("draft"), shop::tenant(ctx.caller()));
    ctx.checkpoint()?;
    let life_ms = life.try_into().unwrap_or(i64::MAX);
    if let Err(error) = ctx.core().shop.ledger.create_draft(&handle, &owner, now_ms(), life_ms).await {
        return Ok(super::effects::refused(&error));
    }
    if ctx.faults().is_on(Fault::ReplicaMemory) {
        ctx.core().shop.last_drafts.remember(&owner, &handle);
    }
    Ok(object(json!({
        "content": [{ "type": "text", "text": format!("{handle}, for {life} ms") }],
        "structuredContent": { "handle": handle, "ttlMs": life },
    })))
}

async fn append(request: &Request, ctx: &mut Context) -> Answer {
    only(request, &["handle", "text"])?;
    let (owner, added) = (shop::tenant(ctx.caller()), needed(request, "text")?);
    let handle = if text(request, "handle")?.is_none() && ctx.faults().is_on(Fault::ReplicaMemory) {
        // The fault: if there were a draft, this process would know, it thinks.
        match ctx.core().shop.last_drafts.of(&owner) {
            Some(handle) => handle,
            None => return Ok(super::effects::refused(&LedgerError::NoDraft)),
        }
    } else {
        needed(request, "handle")?
    };
    ctx.checkpoint()?;
    match ctx.core().shop.ledger.append_draft(&handle, &owner, &added, now_ms()).await {
        Err(error) => Ok(super::effects::refused(&error)),
        Ok(text) => Ok(object(json!({
            "content": [{ "type": "text", "text": text }],
            "structuredContent": { "text": text },
        }))),
    }
}

/// Replicas share no other clock than that of the wall.
fn now_ms() -> i64 {
    wall_now().timestamp_millis()
}

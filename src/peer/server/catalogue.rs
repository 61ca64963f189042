//! Lists in pages, and the hints for keeping them.

use serde_json::{Map, Value, json};

use super::core::{Context, Ended, object};
use super::message::{Refusal, Request};

/// How long lists and the discovery answer stay fresh, ms. ours: one minute; a change is told to
/// those who listen.
const TTL_MS: u64 = 60_000;

/// What a cursor of ours begins with; a number follows.
const CURSOR_PREFIX: &str = "after-";

/// Adds what a cacheable result must carry (spec 2026-07-28
/// `server/utilities/caching`); the same for everybody.
pub(super) fn cached(result: Value) -> Map<String, Value> {
    let mut result = object(result);
    result.insert("ttlMs".to_owned(), json!(TTL_MS));
    result.insert("cacheScope".to_owned(), json!("public"));
    result
}

/// The page of `items` that the request asks for, under `member`.
pub(super) fn page(
    request: &Request,
    ctx: &Context,
    member: &str,
    items: Vec<Value>,
) -> Result<Map<String, Value>, Ended> {
    let refuse = || Ended::Refused(Refusal::params(&request.id, "unknown cursor; start without one"));
    let start = if request.at(&["cursor"]).is_some() {
        let cursor = request.string_at(&["cursor"]).ok_or_else(refuse)?;
        cursor_start(&cursor, items.len()).ok_or_else(refuse)?
    } else {
        0
    };
    let size = ctx.core().options.page_size.unwrap_or(items.len()).max(1);
    let next = start + size;
    let is_last = next >= items.len();
    let items: Vec<Value> = items.into_iter().skip(start).take(size).collect();
    let mut result = cached(json!({ member: items }));
    if !is_last {
        result.insert("nextCursor".to_owned(), json!(format!("{CURSOR_PREFIX}{next}")));
    }
    Ok(result)
}

/// The position that a cursor of ours stands for.
fn cursor_start(cursor: &str, len: usize) -> Option<usize> {
    let start = cursor.strip_prefix(CURSOR_PREFIX)?.parse().ok()?;
    (1..len).contains(&start).then_some(start)
}

#[cfg(test)]
mod tests;

//! Tools that change something once and for all: through the ledger, under a key of the client.

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::{Context, Ended, Request, Tool, changes, needed, object, only, reads, text, text_schema};
use crate::peer::faults::Fault;
use crate::peer::ledger::{Effect, Intent, KEY, LedgerError, Via};
use crate::peer::server::core::Answer;
use crate::peer::server::hub::Change;
use crate::peer::server::resources::ledger;
use crate::peer::server::shop;

/// Most that may be charged or reserved at once. ours: exact in every reader of JSON.
const MOST: i64 = 1_000_000_000;

/// How an effect elsewhere is bound to the ledger, by name.
const VIA: [(&str, Via); 3] = [("direct", Via::Direct), ("keyed", Via::Keyed), ("outbox", Via::Outbox)];

const KEY_SAYS: &str = "names what is wanted, whatever the id of the request: sent again with the same arguments, it takes no second effect";

pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "charge_account",
        description: "Charges an account; with a key at most once",
        entry: || {
            let (account, cents) = (text_schema("whom to charge, such as acct-7"), amount_schema("how much"));
            let properties = json!({ "account": account, "cents": cents, KEY: key_schema() });
            changes(&properties, &["account", "cents"])
        },
        run: |request, ctx| Box::pin(charge(request, ctx)),
    },
    Tool {
        name: "reserve_inventory",
        description: "Reserves goods that are in stock; with a key at most once",
        entry: || {
            let (sku, quantity) = (text_schema("the article, such as SKU-1"), amount_schema("how many"));
            let properties = json!({ "sku": sku, "quantity": quantity, KEY: key_schema() });
            changes(&properties, &["sku", "quantity"])
        },
        run: |request, ctx| Box::pin(reserve(request, ctx)),
    },
    Tool {
        name: "ship_goods",
        description: "Has a carrier take a parcel, in a system of its own; says how that is bound to the ledger",
        entry: || {
            let (sku, quantity) = (text_schema("the article, such as SKU-1"), amount_schema("how many"));
            let via = json!({
                "type": "string",
                "enum": VIA.map(|(name, _)| name),
                "default": "outbox",
                "description": "direct: in the middle of the transaction; keyed: so too, with the key; outbox: written down first, done afterwards",
            });
            let properties = json!({ "sku": sku, "quantity": quantity, "via": via, KEY: key_schema() });
            changes(&properties, &["sku", "quantity"])
        },
        run: |request, ctx| Box::pin(ship(request, ctx)),
    },
    Tool {
        name: "lookup_receipt",
        description: "Says what was done under a key; changes nothing",
        entry: || {
            let mut entry = reads(&json!({ KEY: text_schema("the key") }));
            entry["inputSchema"]["required"] = json!([KEY]);
            entry
        },
        run: |request, ctx| Box::pin(lookup(request, ctx)),
    },
];

fn amount_schema(what: &str) -> Value {
    json!({ "type": "integer", "minimum": 1, "maximum": MOST, "description": what })
}

fn key_schema() -> Value {
    json!({ "type": "string", "pattern": "\\S", "description": KEY_SAYS })
}

async fn charge(request: &Request, ctx: &mut Context) -> Answer {
    only(request, &["account", "cents", KEY])?;
    let (account, cents) = (needed(request, "account")?, amount(request, "cents")?);
    take_effect(request, ctx, Effect::Charge { account, cents }).await
}

async fn reserve(request: &Request, ctx: &mut Context) -> Answer {
    only(request, &["sku", "quantity", KEY])?;
    let (sku, quantity) = (needed(request, "sku")?, amount(request, "quantity")?);
    take_effect(request, ctx, Effect::Reserve { sku, quantity }).await
}

async fn ship(request: &Request, ctx: &mut Context) -> Answer {
    only(request, &["sku", "quantity", "via", KEY])?;
    let (sku, quantity) = (needed(request, "sku")?, amount(request, "quantity")?);
    let via = text(request, "via")?.unwrap_or_else(|| "outbox".to_owned());
    let Some((_, via)) = VIA.into_iter().find(|(name, _)| *name == via) else {
        return Err(Ended::Failed("via is direct, keyed or outbox".to_owned()));
    };
    take_effect(request, ctx, Effect::Ship { sku, quantity, via }).await
}

/// Once the ledger has begun, a cancel comes too late for the effect: it only keeps the answer back.
async fn take_effect(request: &Request, ctx: &mut Context, effect: Effect) -> Answer {
    let key = text(request, KEY)?;
    let arguments = request.at(&["arguments"]).map_or("{}", RawValue::get);
    let tenant = shop::tenant(ctx.caller());
    let changed = match &effect {
        Effect::Reserve { sku, .. } => Some(ledger::uri(sku)),
        Effect::Ship { .. } => Some(ledger::parcels_uri()),
        Effect::Charge { .. } => None,
    };
    ctx.checkpoint()?;
    let recorded = match Intent::new(effect, &tenant, key.as_deref(), arguments, &request.id) {
        Ok(intent) => ctx.core().shop.ledger.record(intent).await,
        Err(error) => Err(error),
    };
    let recorded = match recorded {
        Ok(recorded) => recorded,
        Err(error) => return Ok(refused(&error)),
    };
    if key.is_some() {
        ctx.core().hub.tell(&Change::Updated(ledger::keys_uri()));
    }
    if !recorded.is_replay {
        ctx.teller().effect(key.as_deref(), &recorded.receipt);
        if let Some(uri) = changed {
            ctx.core().hub.tell(&Change::Updated(uri));
        }
        if ctx.faults().is_on(Fault::DropResponseAfterCommit) {
            return Err(Ended::Cancelled);
        }
    }
    Ok(object(recorded.result))
}

async fn lookup(request: &Request, ctx: &mut Context) -> Answer {
    only(request, &[KEY])?;
    let key = needed(request, KEY)?;
    let tenant = shop::tenant(ctx.caller());
    let found = ctx.core().shop.ledger.lookup(&tenant, &key).await;
    let found = match found.and_then(|found| found.map(|entry| Ok((entry.result()?, entry))).transpose()) {
        Ok(found) => found,
        Err(error) => return Ok(refused(&error)),
    };
    let (text, content) = match found {
        None => (format!("Nothing was done under {key:?}"), json!({ "found": false })),
        Some((result, entry)) => (
            format!("{key:?} stands for {}", entry.receipt),
            json!({
                "found": true,
                "receipt": entry.receipt,
                "operation": entry.operation,
                "execution": entry.execution,
                "firstRequest": entry.request,
                "replays": entry.replays,
                "result": result["structuredContent"],
            }),
        ),
    };
    Ok(object(json!({ "content": [{ "type": "text", "text": text }], "structuredContent": content })))
}

/// A tool error that programs can tell from others by its code. ours: a conflict is the business of
/// the caller's program, not of the protocol.
pub(super) fn refused(error: &LedgerError) -> Map<String, Value> {
    object(json!({
        "content": [{ "type": "text", "text": error.to_string() }],
        "structuredContent": { "code": error.code() },
        "isError": true,
    }))
}

/// A whole number above 0, written as one: amounts with a fraction are not rounded.
fn amount(request: &Request, name: &str) -> Result<i64, Ended> {
    let found = request.at(&["arguments", name]).and_then(|raw| raw.get().parse().ok());
    let found = found.filter(|amount| (1..=MOST).contains(amount));
    found.ok_or_else(|| Ended::Failed(format!("{name} must be a whole number from 1 to {MOST}")))
}

#[cfg(test)]
mod tests;

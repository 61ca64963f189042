//! What the ledger holds, to read and to listen for: stock, and the keys that were used. A change
//! that another process made to the same ledger is seen in the next reading and told to nobody.

use serde_json::{Value, json};

use super::{Family, missing, private, text};
use crate::peer::ledger::{ARTICLES, Entry, LedgerError, Parcel};
use crate::peer::server::core::{Answer, Context, Ended};
use crate::peer::server::shop;

const STOCK: &str = "stock://";
const STOCK_TEMPLATE: &str = "stock://{sku}";
const KEYS: &str = "ledger://keys";
const PARCELS: &str = "carrier://parcels";
const MIME_TYPE: &str = "application/json";

/// Digits of a fingerprint that are shown: enough to tell two apart.
const SHOWN: usize = 12;

pub(super) const FAMILY: Family = Family {
    list: |_| {
        let article = |sku: &str| json!({ "uri": uri(sku), "name": sku, "mimeType": MIME_TYPE });
        let keys = json!({ "uri": KEYS, "name": "keys", "mimeType": MIME_TYPE });
        let parcels = json!({ "uri": PARCELS, "name": "parcels", "mimeType": MIME_TYPE });
        skus().map(article).chain([keys, parcels]).collect()
    },
    templates: || {
        let description = "How many of an article can be reserved; reserve_inventory changes it";
        vec![json!({
            "uriTemplate": STOCK_TEMPLATE, "name": "stock", "description": description, "mimeType": MIME_TYPE,
        })]
    },
    is_known: |_, uri| uri == KEYS || uri == PARCELS || sku(uri).is_some(),
    read: |uri, ctx| {
        Box::pin(async move {
            match sku(uri) {
                Some(sku) => stock(uri, sku, ctx).await,
                None if uri == PARCELS => parcels(uri, ctx).await,
                None => keys(uri, ctx).await,
            }
        })
    },
    suggest: |_, template, variable| {
        (template == STOCK_TEMPLATE && variable == "sku").then(|| skus().map(str::to_owned).collect())
    },
};

/// The URI of the stock of an article.
pub(in crate::peer::server) fn uri(sku: &str) -> String {
    format!("{STOCK}{sku}")
}

/// The URI of all keys.
pub(in crate::peer::server) fn keys_uri() -> String {
    KEYS.to_owned()
}

/// The URI of all parcels.
pub(in crate::peer::server) fn parcels_uri() -> String {
    PARCELS.to_owned()
}

fn skus() -> impl Iterator<Item = &'static str> {
    ARTICLES.iter().map(|(sku, _)| *sku)
}

fn sku(uri: &str) -> Option<&str> {
    uri.strip_prefix(STOCK).filter(|sku| skus().any(|known| known == *sku))
}

async fn stock(uri: &str, sku: &str, ctx: &Context) -> Answer {
    let stock = ctx.core().shop.ledger.stock().await.map_err(|error| failed(ctx, &error))?;
    let found = stock.iter().find(|stock| stock.sku == sku);
    let stock = found.ok_or_else(|| missing(ctx.request(), uri))?;
    Ok(json_text(uri, &json!({ "sku": sku, "available": stock.available })))
}

/// One line for each key, newest first.
async fn keys(uri: &str, ctx: &Context) -> Answer {
    let tenant = shop::tenant(ctx.caller());
    let entries = ctx.core().shop.ledger.entries(&tenant).await.map_err(|error| failed(ctx, &error))?;
    let entry = |entry: &Entry| {
        json!({
            "key": entry.key,
            "operation": entry.operation,
            "fingerprint": entry.fingerprint.get(..SHOWN),
            "receipt": entry.receipt,
            "execution": entry.execution,
            "firstRequest": entry.request,
            "replays": entry.replays,
        })
    };
    let keys: Vec<Value> = entries.iter().map(entry).collect();
    Ok(private(json_text(uri, &json!({ "keys": keys }))))
}

/// What the carrier has taken, whether the ledger knows it or not; newest first.
async fn parcels(uri: &str, ctx: &Context) -> Answer {
    let parcels = ctx.core().shop.ledger.parcels().await.map_err(|error| failed(ctx, &error))?;
    let parcel = |parcel: &Parcel| json!({ "parcel": parcel.number, "sku": parcel.sku, "quantity": parcel.quantity, "key": parcel.key });
    let parcels: Vec<Value> = parcels.iter().map(parcel).collect();
    Ok(private(json_text(uri, &json!({ "parcels": parcels }))))
}

/// Not to be kept: the next effect changes it.
fn json_text(uri: &str, value: &Value) -> serde_json::Map<String, Value> {
    let mut result = text(uri, MIME_TYPE, &value.to_string());
    result.insert("ttlMs".to_owned(), json!(0));
    result
}

fn failed(ctx: &Context, error: &LedgerError) -> Ended {
    Ended::Refused(crate::peer::server::message::Refusal::new(
        Some(&ctx.request().id),
        crate::spec::codes::INTERNAL_ERROR,
        error.to_string(),
    ))
}

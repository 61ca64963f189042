//! Statements about effects: ids of messages are no keys, and keys stand for one effect each.

use std::collections::BTreeSet;

use anyhow::Context as _;
use serde_json::{Value, json};

use super::cancels::call;
use super::rig::{Rig, Stage};
use super::trace::{Trace, unless_wrong};
use super::{Shown, holds};
use crate::peer::client::{CallOptions, Outcome, raw};
use crate::spec::transport::Transport;

/// Keys that are raced for.
const KEYS: u64 = 4;
/// What each of them reserves, and of what.
const QUANTITY: u64 = 2;
const SKU: &str = "SKU-1";

fn charge(key: Option<&str>) -> Value {
    let mut arguments = json!({ "account": "acct-7", "cents": 1200 });
    if let Some(key) = key {
        arguments["idempotency_key"] = json!(key);
    }
    arguments
}

/// 6: the same call under a new id takes effect again, if no key says that it is the same.
pub(super) async fn runs_again(stage: &Stage, on: Transport) -> anyhow::Result<Shown> {
    let rig = stage.rig(6, on, &[]).await?;
    for _ in 0..2 {
        call(&rig, "charge_account", charge(None), None).await?;
    }
    let trace = rig.end().await?;
    Ok(trace.unless_wrong(ran_again(&trace), &[]))
}

fn ran_again(trace: &Trace) -> Shown {
    let calls = trace.tool("charge_account");
    let [(first, one), (second, other)] = calls.as_slice() else {
        return Err(format!("{} calls passed, not two", calls.len()));
    };
    holds(one.id != other.id, || format!("both calls have the id {}", one.id))?;
    let receipts = (trace.content(*first, "receipt")?, trace.content(*second, "receipt")?);
    holds(receipts.0 != receipts.1, || format!("both calls got {}", receipts.0))?;
    holds(effects(trace) == 2, || format!("the server told {} effects", effects(trace)))?;
    Ok(format!("{} got {}, {} got {}", one.id, receipts.0, other.id, receipts.1))
}

/// Effects that the server told.
fn effects(trace: &Trace) -> u32 {
    trace.model.calls().iter().filter_map(|call| call.told.as_deref()).map(|told| told.effects).sum()
}

/// 7: calls with one key that race each other on two connections take one effect. On pipes the
/// connections are two servers on one ledger; over HTTP, two clients of one server.
pub(super) async fn races_once(stage: &Stage, on: Transport) -> anyhow::Result<Shown> {
    let ledger = stage.shared("ledger");
    let ledger = ledger.to_str().context("the folder for temporary files has a name that is no text")?;
    let options = ["--ledger", ledger];
    let one = stage.rig(7, on, &options).await?;
    let (other, client) = match on {
        Transport::Stdio => (Some(stage.rig(7, on, &options).await?), None),
        Transport::Http => (None, Some(stage.client(one.url()?)?.with_ids_from(101))),
    };
    let second = other.as_ref().map(|rig| &rig.client).or(client.as_ref()).context("a second connection")?;
    let both = [&one.client, second];
    // Ready before the race: a process that still starts takes no part in it.
    for client in both {
        client.discover(&CallOptions::default()).await?;
    }
    let arguments =
        |key| json!({ "sku": SKU, "quantity": QUANTITY, "idempotency_key": format!("race-{key}") });
    let races = (0..KEYS).flat_map(|key| both.map(|client| (client, raw(&arguments(key)))));
    let options = CallOptions::default();
    let racing = races.map(async |(client, arguments)| {
        client.call("reserve_inventory", &arguments, &options, |_| {}).await
    });
    for report in futures_util::future::join_all(racing).await {
        report?;
    }
    let stock = stock(&one).await?;
    if let Some(client) = client {
        client.close().await?;
    }
    let mut traces = vec![one.end().await?];
    if let Some(other) = other {
        traces.push(other.end().await?);
    }
    Ok(unless_wrong(&traces, raced_once(&traces, &stock), &[]))
}

/// What is left of the article, in words of the server.
async fn stock(rig: &Rig) -> anyhow::Result<Value> {
    let params = [("uri".to_owned(), raw(&format!("stock://{SKU}")))].into();
    let report = rig.client.request("resources/read", params, &CallOptions::default(), |_| {}).await?;
    let Outcome::Complete(result) = report.outcome else { return Ok(Value::Null) };
    let result: Value = serde_json::from_str(result.get())?;
    let text = result["contents"][0]["text"].as_str().unwrap_or_default();
    Ok(serde_json::from_str(text).unwrap_or_default())
}

fn raced_once(traces: &[Trace], stock: &Value) -> Shown {
    let (mut receipts, mut calls) = (BTreeSet::new(), 0);
    for trace in traces {
        for (idx, _) in trace.tool("reserve_inventory") {
            calls += 1;
            receipts.insert(trace.content(idx, "receipt")?.to_string());
        }
    }
    holds(calls == 2 * KEYS, || format!("{calls} calls passed, not {}", 2 * KEYS))?;
    holds(receipts.len() as u64 == KEYS, || format!("{KEYS} keys got {} receipts", receipts.len()))?;
    let effects: u32 = traces.iter().map(effects).sum();
    holds(u64::from(effects) == KEYS, || format!("{KEYS} keys took {effects} effects"))?;
    let left = stock["available"].as_u64();
    holds(left == Some(10 - KEYS * QUANTITY), || format!("{left:?} are left of 10"))?;
    Ok(format!("{calls} calls with {KEYS} keys took {effects} effects; {} of 10 are gone", KEYS * QUANTITY))
}

/// 8: after a restart a key still stands for its receipt, and the answer is the same to the byte.
pub(super) async fn survives(stage: &Stage, on: Transport) -> anyhow::Result<Shown> {
    let ledger = stage.shared("ledger");
    let ledger = ledger.to_str().context("the folder for temporary files has a name that is no text")?;
    let options = ["--ledger", ledger];
    let mut traces = Vec::new();
    let mut ids = 1;
    for _ in 0..2 {
        let mut rig = stage.rig(8, on, &options).await?;
        rig.client = rig.client.with_ids_from(ids);
        call(&rig, "charge_account", charge(Some("reopened")), None).await?;
        ids = rig.client.next_id();
        traces.push(rig.end().await?);
    }
    Ok(unless_wrong(&traces, survived(&traces), &[]))
}

fn survived(traces: &[Trace]) -> Shown {
    let [before, after] = traces else { return Err("two recordings were to be made".to_owned()) };
    let (first, again) = (before.only("charge_account")?, after.only("charge_account")?);
    holds(first.1.id != again.1.id, || format!("both calls have the id {}", first.1.id))?;
    let receipts = (before.content(first.0, "receipt")?, after.content(again.0, "receipt")?);
    holds(receipts.0 == receipts.1, || format!("{} became {}", receipts.0, receipts.1))?;
    let is_copy = before.result(first.0)? == after.result(again.0)?;
    holds(is_copy, || "the answer after the restart is another one".to_owned())?;
    let effects = effects(before) + effects(after);
    holds(effects == 1, || format!("the servers told {effects} effects"))?;
    Ok(format!("{} again, byte for byte, from a new process and under a new id", receipts.0))
}

/// 9: what a caller does with a result it was given changes nothing that others get.
pub(super) async fn is_copied(stage: &Stage, on: Transport) -> anyhow::Result<Shown> {
    let rig = stage.rig(9, on, &[]).await?;
    let mut changed = Vec::new();
    for _ in 0..3 {
        let report = call(&rig, "charge_account", charge(Some("copied")), None).await?;
        let Outcome::Complete(result) = report.outcome else { continue };
        let mut mine: Value = serde_json::from_str(result.get())?;
        mine["structuredContent"]["receipt"] = json!("forged");
        mine["content"] = json!([]);
        changed.push(mine.to_string());
    }
    let trace = rig.end().await?;
    Ok(trace.unless_wrong(copied(&trace, &changed), &[]))
}

fn copied(trace: &Trace, changed: &[String]) -> Shown {
    let calls = trace.tool("charge_account");
    holds(calls.len() == 3, || format!("{} calls passed, not three", calls.len()))?;
    let results: Vec<&str> = calls.iter().map(|(idx, _)| trace.result(*idx)).collect::<Result<_, _>>()?;
    let first = results.first().copied().unwrap_or_default();
    holds(results.iter().all(|result| *result == first), || {
        "a replay differs from the first answer".to_owned()
    })?;
    let is_forged = changed.iter().any(|changed| *changed == first);
    holds(changed.len() == 3 && !is_forged, || "the results were not changed".to_owned())?;
    holds(effects(trace) == 1, || format!("the server told {} effects", effects(trace)))?;
    Ok(format!("3 answers of {} bytes are equal although their caller changed each", first.len()))
}

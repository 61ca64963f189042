//! Statements about a cancel and an answer: which of the two comes first, and what is said after it.

use serde_json::json;

use super::rig::{Rig, Stage};
use super::trace::{Trace, has_answer};
use super::{Shown, holds};
use crate::model::race::{Signal, Verdict};
use crate::model::{Call, CallIdx, CallState};
use crate::peer::client::{CallOptions, Report, raw};
use crate::spec::transport::Transport;
use crate::time::{Ms, Span};

/// When the client of these scenes gives up.
const GIVES_UP: Ms = Ms(100);

/// How long a client waits for an answer that is due at once.
const WAITS: Ms = Ms(5000);

/// A call without progress.
pub(super) async fn call(
    rig: &Rig,
    tool: &str,
    arguments: serde_json::Value,
    cancel_after: Option<Ms>,
) -> anyhow::Result<Report> {
    let options = CallOptions { idle: WAITS, cancel_after, ..CallOptions::default() };
    Ok(rig.client.call(tool, &raw(&arguments), &options, |_| {}).await?)
}

/// 1: nothing answers the cancel of a call on pipes, neither the call nor the notification.
pub(super) async fn is_unanswered(stage: &Stage, on: Transport) -> anyhow::Result<Shown> {
    let rig = stage.rig(1, on, &[]).await?;
    call(&rig, "silent", json!({}), Some(GIVES_UP)).await?;
    call(&rig, "echo", json!({ "text": "still there" }), None).await?;
    let trace = rig.end().await?;
    Ok(trace.unless_wrong(unanswered(&trace), &[]))
}

fn unanswered(trace: &Trace) -> Shown {
    let (idx, silent) = trace.only("silent")?;
    let (_, echo) = trace.only("echo")?;
    holds(trace.cancels() == 1, || format!("{} cancels passed, not one", trace.cancels()))?;
    won_by_cancel(trace, (idx, silent))?;
    holds(echo.state == CallState::AnsweredOk, || {
        format!("the call after it ended {}", echo.state.as_str())
    })?;
    holds(trace.answers() == 1, || format!("{} answers passed where one was due", trace.answers()))?;
    Ok(format!("after the cancel of {} nothing came but the answer of {}", silent.id, echo.id))
}

/// 2: over HTTP the end of the exchange is the cancel, and no message says it.
pub(super) async fn closes(stage: &Stage, on: Transport) -> anyhow::Result<Shown> {
    let rig = stage.rig(2, on, &[]).await?;
    call(&rig, "silent", json!({}), Some(GIVES_UP)).await?;
    call(&rig, "echo", json!({ "text": "still there" }), None).await?;
    let trace = rig.end().await?;
    Ok(trace.unless_wrong(closed(&trace), &[]))
}

fn closed(trace: &Trace) -> Shown {
    let (idx, silent) = trace.only("silent")?;
    holds(trace.cancels() == 0, || format!("{} cancels were posted", trace.cancels()))?;
    won_by_cancel(trace, (idx, silent))?;
    let signal = trace.model.race(idx).and_then(|race| race.signal);
    holds(signal == Some(Signal::Disconnect), || "the client did not leave the exchange".to_owned())?;
    Ok(format!("the client left the exchange of {}, the server saw it, nothing was posted", silent.id))
}

/// 3: a call whose cancel comes first has no answer, although its work would have had one by then.
pub(super) async fn suppresses(stage: &Stage, on: Transport) -> anyhow::Result<Shown> {
    let rig = stage.rig(3, on, &[]).await?;
    call(&rig, "silent", json!({ "ms": 400 }), Some(GIVES_UP)).await?;
    call(&rig, "silent", json!({ "ms": 600 }), None).await?;
    let trace = rig.end().await?;
    Ok(trace.unless_wrong(suppressed(&trace), &[]))
}

fn suppressed(trace: &Trace) -> Shown {
    let calls = trace.tool("silent");
    let [first, (_, second)] = calls.as_slice() else {
        return Err(format!("{} calls passed, not two", calls.len()));
    };
    won_by_cancel(trace, *first)?;
    holds(second.state == CallState::AnsweredOk, || {
        format!("the other call ended {}", second.state.as_str())
    })?;
    let seen = second.ended.unwrap_or(second.started).ns_since(first.1.started);
    Ok(format!("no answer of {} in {} after it was due", first.1.id, Span(seen - seen.min(Ms(400).to_ns()))))
}

/// 4: a call that is answered first keeps its answer, whatever signal comes after it.
pub(super) async fn keeps(stage: &Stage, on: Transport) -> anyhow::Result<Shown> {
    let mut rig = stage.rig(4, on, &[]).await?;
    let charge = json!({ "account": "acct-7", "cents": 1200, "idempotency_key": "kept" });
    let report = call(&rig, "charge_account", charge, None).await?;
    rig.client.cancel_late(&report.id).await?;
    if on == Transport::Http {
        // There the only late signal is that the client leaves.
        let ids = rig.client.next_id();
        let next = stage.client(rig.url()?)?.with_ids_from(ids);
        std::mem::replace(&mut rig.client, next).close().await?;
    }
    call(&rig, "lookup_receipt", json!({ "idempotency_key": "kept" }), None).await?;
    let trace = rig.end().await?;
    Ok(trace.unless_wrong(kept(&trace, on), &[]))
}

fn kept(trace: &Trace, on: Transport) -> Shown {
    let (idx, charge) = trace.only("charge_account")?;
    let (lookup, _) = trace.only("lookup_receipt")?;
    holds(charge.state == CallState::AnsweredOk, || format!("the call ended {}", charge.state.as_str()))?;
    let receipt = trace.content(idx, "receipt")?;
    let known = trace.content(lookup, "receipt")?;
    holds(receipt == known, || format!("{receipt} was answered, and {known} is known"))?;
    if on == Transport::Http {
        let race = trace.model.race(idx).map(|race| race.verdict);
        holds(race.is_none(), || format!("a race where there was none: {race:?}"))?;
        return Ok(format!("{receipt} stands after the client of {} has left", charge.id));
    }
    let race = trace.model.race(idx).map(|race| race.verdict);
    holds(race == Some(Verdict::CompleteWon), || format!("the verdict is {race:?}"))?;
    holds(trace.answers() == 2, || format!("{} answers passed where two were due", trace.answers()))?;
    Ok(format!("{receipt} stands, and nothing came of the late cancel of {}", charge.id))
}

/// The cancel of a call won: the server told that it saw it, and neither told nor showed that it went on.
fn won_by_cancel(trace: &Trace, (idx, call): (CallIdx, &Call)) -> Result<(), String> {
    let race = trace.model.race(idx).ok_or("no signal of a cancel passed")?;
    holds(race.verdict == Verdict::CancelWon, || race.sentence())?;
    holds(!has_answer(call), || format!("an answer of {} passed after its cancel", call.id))?;
    let told = call.told.as_deref().copied().unwrap_or_default();
    holds(told.cancel_seen.is_some(), || format!("the server never saw the cancel of {}", call.id))?;
    holds(told.done.is_none(), || format!("the server went on with {} to its end", call.id))
}

//! Statements about progress: what it does to the clocks, and to a queue before a slow reader.

use serde_json::json;

use super::rig::Stage;
use super::trace::Trace;
use super::{Shown, holds};
use crate::event::Queue;
use crate::machine::deadlines::Fired;
use crate::machine::policy::clock::ClockPolicy;
use crate::model::flow::{Gauge, Whose};
use crate::model::{CallIdx, CallState};
use crate::peer::client::{CallOptions, raw};
use crate::spec::transport::Transport;
use crate::time::{Ms, Span};

/// The limits of the clock scene. Far apart from each other and from the pace of the progress, for
/// the sake of a machine that has other things to do.
const IDLE: Ms = Ms(1000);
const MAX: Ms = Ms(1500);

/// How much shorter or longer than for the client a wait can be for the tap, which sees the request
/// and the cancel pass some time after they were sent.
const SLACK: Ms = Ms(200);

/// Between two steps of the work, and how many of them: more than the maximum has room for.
const STEP_MS: u64 = 50;
const STEPS: u64 = 50;

/// Messages that may wait in the server of the flood.
const BUFFER: &str = "8";

/// The flood, and how long its reader rests first.
const FLOOD: u64 = 800;
const REST: Ms = Ms(800);

/// How long a slow machine may take until pipes and sockets are full.
const FILLS: Ms = Ms(30_000);

/// 5: progress keeps a call alive beyond its idle limit, and does not move its maximum.
pub(super) async fn moves_idle_only(stage: &Stage, on: Transport) -> anyhow::Result<Shown> {
    let rig = stage.rig(5, on, &[]).await?;
    let options = CallOptions { idle: IDLE, max: MAX, wants_progress: true, ..CallOptions::default() };
    let work = raw(&json!({ "steps": STEPS, "step_ms": STEP_MS }));
    let silence = raw(&json!({}));
    let (lively, silent) = tokio::join!(
        rig.client.call("slow", &work, &options, |_| {}),
        rig.client.call("silent", &silence, &options, |_| {})
    );
    lively?;
    silent?;
    let trace = rig.end().await?;
    Ok(trace.unless_wrong(moved(&trace), &[]))
}

fn moved(trace: &Trace) -> Shown {
    let (slow, silent) = (trace.only("slow")?, trace.only("silent")?);
    let clock = limits();
    let mut ages = Vec::new();
    for ((idx, call), expected) in [(slow, Fired::Maximum), (silent, Fired::Idle)] {
        let given_up = matches!(call.state, CallState::CancelledByClient | CallState::AbandonedByDisconnect);
        holds(given_up, || format!("{} was not given up: it ended {}", call.id, call.state.as_str()))?;
        let fired = trace.model.would_fire(idx, &clock).map(|(_, fired)| fired);
        holds(fired == Some(expected), || format!("{} was given up, and {fired:?} was due", call.id))?;
        ages.push(call.ended.unwrap_or(call.started).ns_since(call.started));
    }
    let count = slow.1.progress.count;
    let is_alive = count > 1 && ages.first() >= Some(&(MAX.to_ns() - SLACK.to_ns()));
    holds(is_alive, || format!("{count} steps of progress, and the end after {ages:?} ns"))?;
    Ok(format!(
        "with {count} steps of progress the maximum ended {} after {}; silence ended {} after {}",
        slow.1.id,
        Span(ages.first().copied().unwrap_or(0)),
        silent.1.id,
        Span(ages.get(1).copied().unwrap_or(0))
    ))
}

/// The limits of the scene as a policy, as early as the tap can see them reached.
fn limits() -> ClockPolicy {
    ClockPolicy {
        name: "self-test".to_owned(),
        clients: Vec::new(),
        user_agents: Vec::new(),
        servers: Vec::new(),
        methods: Vec::new(),
        tools: Vec::new(),
        transports: Vec::new(),
        idle: Some(Ms(IDLE.0 - SLACK.0)),
        max: Some(Ms(MAX.0 - SLACK.0)),
        silence: None,
        resets_on_progress: true,
        checks_max_on_progress: false,
        setting: None,
    }
}

/// 10: what waits for a slow reader stays within its bound, and the answer is not lost.
pub(super) async fn stays_bounded(stage: &Stage, on: Transport) -> anyhow::Result<Shown> {
    let rig = stage.rig(10, on, &["--buffer", BUFFER]).await?;
    let options = CallOptions { wants_progress: true, ..CallOptions::default() };
    let bytes = match on {
        Transport::Stdio => 4000,
        // Sockets hold some megabytes before anything waits in the server.
        Transport::Http => 20_000,
    };
    let arguments = raw(&json!({ "n": FLOOD, "size": bytes }));
    {
        let begun = tokio::sync::Notify::new();
        let flood = rig.client.call("flood", &arguments, &options, |_| begun.notify_one());
        tokio::pin!(flood);
        // It has begun, and then nobody reads until something waits, and a while longer.
        tokio::select! {
            ended = &mut flood => anyhow::bail!("the flood ended at once: {ended:?}"),
            () = begun.notified() => {
                rig.until_told("queue_depth", FILLS).await;
                tokio::time::sleep(REST.into()).await;
            }
        }
        flood.await?;
    }
    let trace = rig.end().await?;
    Ok(trace.unless_wrong(bounded(&trace), &[]))
}

fn bounded(trace: &Trace) -> Shown {
    let (idx, flood) = trace.only("flood")?;
    holds(flood.state == CallState::AnsweredOk, || format!("the call ended {}", flood.state.as_str()))?;
    trace.result(idx)?;
    let gauge = queue(trace, idx)?;
    let high = gauge.high_events;
    let Queue { capacity, coalesced, evicted, discarded, refused, .. } = gauge.last;
    let capacity = capacity.ok_or_else(|| format!("{high} messages waited without a bound"))?;
    let is_within = high <= capacity && capacity.to_string() == BUFFER && refused == 0;
    holds(is_within, || format!("{high} messages waited where {capacity} may, {refused} were refused"))?;
    let (passed, dropped) = (u64::from(flood.progress.count), coalesced + evicted + discarded);
    holds(passed + dropped == FLOOD, || {
        format!("{passed} values passed and {dropped} were dropped of {FLOOD}")
    })?;
    Ok(format!(
        "at most {high} of {capacity} waited; {passed} of {FLOOD} values passed, newer ones took the place of {dropped}, and the answer came"
    ))
}

/// The queue of the server, as it told.
fn queue(trace: &Trace, idx: CallIdx) -> Result<Gauge, String> {
    let mut of_call =
        trace.model.flows().iter().filter(|flow| flow.call == Some(idx) || flow.stream.is_none());
    let gauge = of_call.find_map(|flow| flow.gauge_of(Whose::Server));
    gauge.copied().ok_or_else(|| "the server told nothing about its queue".to_owned())
}

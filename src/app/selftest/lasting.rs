//! Statements about what outlives a request: a subscription that is lost, and a task.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, bail};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::rig::{Place, Stage};
use super::trace::{Trace, unless_wrong};
use super::{Shown, holds};
use crate::event::What;
use crate::machine::reconnect::Filter;
use crate::machine::task::EXTENSION;
use crate::model::CallState;
use crate::model::tasks::TaskStatus;
use crate::peer::PeerError;
use crate::peer::client::era::{EraPolicy, EraRule};
use crate::peer::client::listen::{ListenOptions, Listened, listen};
use crate::peer::client::peer::{Dial, Peer, Setup};
use crate::peer::client::{CallOptions, Client, Outcome, raw};
use crate::spec::headers::LAST_EVENT_ID;
use crate::spec::methods;
use crate::spec::transport::Transport;
use crate::time::Ms;
use crate::trace::Recording;

/// How long the client listens after it was reconnected.
const LISTENS: Ms = Ms(20_000);

/// Between two looks at a recording that is being written.
const LOOK: Ms = Ms(20);

/// The work of the task before it looks for a cancel again.
const SECTION_MS: u64 = 1000;
/// Between two questions about it; no sooner than the server wants.
const POLL: Ms = Ms(550);

/// What the rules say of a server that was killed.
const LOSS: &[&str] = &[];

/// 11: after a loss the client listens anew under a new id, without `Last-Event-ID`, and reads again
/// what the subscription is about.
pub(super) async fn reconnects(stage: &Arc<Stage>, on: Transport) -> anyhow::Result<Shown> {
    let traces = match on {
        Transport::Http => over_http(stage).await?,
        Transport::Stdio => on_pipes(stage).await?,
    };
    Ok(unless_wrong(&traces, reconnected(&traces), LOSS))
}

async fn over_http(stage: &Stage) -> anyhow::Result<Vec<Trace>> {
    let mut rig = stage.rig(11, Transport::Http, &[]).await?;
    let (url, faults) = (rig.url()?.to_owned(), stage.faults_of_client());
    let dial: Dial = Arc::new(move || Ok(Client::http(&url)?.with_faults(faults.clone())));
    keep_listening(dial, async || rig.replace_server(stage).await).await?;
    Ok(vec![rig.end().await?])
}

/// Every connection is a process and a recording of its own.
async fn on_pipes(stage: &Arc<Stage>) -> anyhow::Result<Vec<Trace>> {
    let places = Arc::new(Mutex::new(Vec::<Place>::new()));
    let dial: Dial = {
        let (stage, places) = (stage.clone(), places.clone());
        Arc::new(move || {
            let place = stage.place(11, Transport::Stdio).map_err(|_| PeerError::Gone)?;
            lock(&places).push(place.clone());
            stage.tap_on_pipes(&place, &[])
        })
    };
    keep_listening(dial, async || {
        let first = lock(&places).first().cloned().context("no connection was made")?;
        kill_server(&first).await
    })
    .await?;
    let places = std::mem::take(&mut *lock(&places));
    let mut traces = Vec::new();
    for place in places {
        traces.push(place.read().await?);
    }
    Ok(traces)
}

/// A poisoned lock is still good: no step can stop midway.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Kills the server of a tap on pipes, whose recording tells which process it is.
async fn kill_server(place: &Place) -> anyhow::Result<()> {
    let spawned = async {
        loop {
            let mut recording = Recording::open(&place.recording())?;
            while let Some((event, _)) = recording.next()? {
                if let What::Spawn { pid, .. } = event.what {
                    return anyhow::Ok(pid);
                }
            }
            tokio::time::sleep(LOOK.into()).await;
        }
    };
    let pid = tokio::time::timeout(LISTENS.into(), spawned).await.context("no server was started")??;
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).context("a server without a number")?;
    kill_process(pid, Signal::KILL).context("cannot end the server")
}

/// Listens until what was lost by `breaks` has been read again.
async fn keep_listening(dial: Dial, breaks: impl AsyncFnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
    // The era is no matter here.
    let setup =
        Setup { era: EraPolicy { rule: EraRule::Modern, ..EraPolicy::default() }, ..Setup::default() };
    let enough = CallOptions::default();
    let options = CallOptions { cancel: enough.cancel.clone(), ..CallOptions::default() };
    let mut peer = Peer::connect("server", dial, setup, Arc::default(), &options).await?;
    let wanted = Filter { tools: true, ..Filter::default() };
    let listening = ListenOptions { wanted, limit: Some(LISTENS), changes: None, reconnects: 8 };
    let (tell, granted) = oneshot::channel();
    let (mut tell, mut grants) = (Some(tell), 0);
    let kept = listen(&mut peer, &listening, &options, |event| match event {
        Listened::Granted { .. } => {
            grants += 1;
            let _ = tell.take().map(|tell| tell.send(()));
        }
        Listened::Fetched { .. } if grants > 1 => enough.cancel.cancel(),
        _ => {}
    });
    let broken = async {
        granted.await.context("the subscription was not granted")?;
        breaks().await
    };
    let (kept, broken) = tokio::join!(kept, broken);
    kept?;
    broken?;
    peer.close().await?;
    Ok(())
}

fn reconnected(traces: &[Trace]) -> Shown {
    let listens: Vec<_> = traces
        .iter()
        .flat_map(|trace| trace.model.subscriptions().iter().map(move |subscription| (trace, subscription)))
        .collect();
    let acknowledged: Vec<_> = listens.iter().filter(|(_, one)| one.acknowledged.is_some()).collect();
    let [(before, first), .., (after, second)] = acknowledged.as_slice() else {
        return Err(format!("{} subscriptions were acknowledged, not two", acknowledged.len()));
    };
    let call =
        |trace: &Trace, idx| trace.model.call(idx).cloned().ok_or("a subscription without its request");
    let (lost, anew) = (call(before, first.call)?, call(after, second.call)?);
    holds(lost.state == CallState::Lost, || format!("the first one ended {}", lost.state.as_str()))?;
    holds(lost.id != anew.id, || format!("both have the id {}", lost.id))?;
    holds(first.asked == second.asked, || "the second one asks for something else".to_owned())?;
    let resumed = traces.iter().any(|trace| trace.has_field(LAST_EVENT_ID));
    holds(!resumed, || "Last-Event-ID was sent".to_owned())?;
    let since = second.acknowledged.unwrap_or_default();
    let lists = after.calls(methods::TOOLS_LIST, None);
    let reread = lists.iter().find(|(_, call)| call.started >= since && call.state == CallState::AnsweredOk);
    let (_, reread) = reread.ok_or("the list was not read again after the acknowledgement")?;
    Ok(format!(
        "{} was lost, {} took its place without Last-Event-ID, {} read the list again",
        lost.id, anew.id, reread.id
    ))
}

/// 12: the acknowledgement of a task's cancel is a promise: the task goes on to its next checkpoint.
pub(super) async fn is_acknowledged(stage: &Stage, on: Transport) -> anyhow::Result<Shown> {
    let rig = stage.rig(12, on, &[]).await?;
    let capabilities = json!({ "extensions": { EXTENSION: {} } });
    let options = CallOptions { capabilities, ..CallOptions::default() };
    let report = raw(&json!({ "sections": 3, "section_ms": SECTION_MS }));
    let made = rig.client.call("generate_report", &report, &options, |_| {}).await?;
    let Outcome::Task(handle) = made.outcome else { bail!("no task was handed out: {:?}", made.outcome) };
    let handle: Value = serde_json::from_str(handle.get())?;
    let task = || [("taskId".to_owned(), raw(&handle["taskId"]))].into();
    rig.client.request("tasks/cancel", task(), &options, |_| {}).await?;
    // Until it has ended, or should have.
    for nth in 0..=(3 * SECTION_MS / POLL.0 + 2) {
        if nth > 0 {
            tokio::time::sleep(POLL.into()).await;
        }
        let asked = rig.client.request("tasks/get", task(), &options, |_| {}).await?;
        let Outcome::Complete(told) = asked.outcome else { break };
        let told: Value = serde_json::from_str(told.get())?;
        if !["working", "input_required"].contains(&told["status"].as_str().unwrap_or_default()) {
            break;
        }
    }
    let trace = rig.end().await?;
    Ok(trace.unless_wrong(acknowledged(&trace), &[]))
}

fn acknowledged(trace: &Trace) -> Shown {
    let [task] = trace.model.tasks() else {
        return Err(format!("{} tasks were seen, not one", trace.model.tasks().len()));
    };
    let at = task.cancel_acknowledged.ok_or("the cancel was not acknowledged")?;
    let mut since = task.states.iter().filter(|state| state.asked >= at).map(|state| state.status);
    let first = since.next().flatten().ok_or("nothing was told of the task after that")?;
    holds(!first.is_terminal(), || format!("with the acknowledgement it was {}", first.as_str()))?;
    let last = task.status().map_or("unknown", TaskStatus::as_str);
    holds(task.status() == Some(TaskStatus::Cancelled), || {
        format!("it was {} after the acknowledgement, and in the end {last}", first.as_str())
    })?;
    Ok(format!("{} after the acknowledgement, {last} at its next checkpoint", first.as_str()))
}

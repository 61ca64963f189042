//! Where the switches act that concern requests and their ends, whatever the transport.

use serde_json::{Value, json};

use super::{Bytes, Context, Ended, Live, Outgoing, message};
use crate::event::telemetry::Stage;
use crate::machine::buffer::Counters;
use crate::peer::faults::Fault;
use crate::spec::methods;
use crate::wire::jsonrpc::Id;

/// Read, told, and not obeyed.
const DEAF: [Fault; 3] = [Fault::LateAnswer, Fault::ProgressAfterCancel, Fault::WorksOn];

/// The token that nobody offered.
const STRAY: &str = "stray-token";

impl Live {
    /// A switch has a cancel read and nothing done about it.
    pub(super) fn disobeys(&self) -> bool {
        let disobeys = DEAF.into_iter().any(|fault| self.faults.is_on(fault));
        if disobeys {
            self.teller.tell(Stage::CancelSeen);
            self.has_disobeyed.store(true, std::sync::atomic::Ordering::Relaxed);
        }
        disobeys
    }

    /// After a cancel that was not obeyed: progress goes on, but no answer comes.
    pub(super) fn keeps_silent(&self) -> bool {
        let has_disobeyed = self.has_disobeyed.load(std::sync::atomic::Ordering::Relaxed);
        has_disobeyed && !self.faults.is_on(Fault::LateAnswer)
    }
}

/// What a call does before its handler runs.
pub(super) async fn begin(ctx: &Context) {
    if !is_call(ctx) {
        return;
    }
    if ctx.faults().is_on(Fault::Prints) {
        let line = Bytes::from_static(b"DEBUG: a call came in");
        // A client that is gone misses nothing.
        let _ = ctx.send(line, None).await;
    }
    if ctx.faults().is_on(Fault::AsksClient) {
        let question = json!({ "jsonrpc": "2.0", "id": "question-1", "method": "roots/list" });
        let _ = ctx.send(question.to_string().into(), None).await;
    }
}

/// Sends the answer of a request; that of a call in each wrong way that was asked for.
///
/// # Errors
/// Cancelled, or the transport is gone.
pub(super) async fn answer(ctx: &mut Context, body: Bytes, status: u16) -> Result<(), Ended> {
    if !is_call(ctx) || ctx.faults().all_on().next().is_none() {
        let sent = ctx.send(body, Some(status)).await;
        ctx.tell_queue(true);
        return sent;
    }
    if ctx.faults().is_on(Fault::NeverAnswers) {
        return Err(ctx.cancelled().await);
    }
    ctx.pour_out().await?;
    let id = &ctx.live.id;
    let body = if ctx.faults().is_on(Fault::CancelsCalls) {
        message::notification(methods::CANCELLED, &json!({ "requestId": value(id), "reason": "busy" }))
    } else if ctx.faults().is_on(Fault::IdAsText) {
        with_id(id, &Id::Str(id.to_string().into()), &body)
    } else if ctx.faults().is_on(Fault::StrayAnswer) {
        with_id(id, &Id::Str("stray-id".into()), &body)
    } else {
        body
    };
    ctx.send(body.clone(), Some(status)).await?;
    // What comes now belongs to a request that is over, so nothing holds it back.
    let more = |body, status| Outgoing::new(None, body, status);
    if ctx.faults().is_on(Fault::AnswersTwice) {
        let _ = ctx.sink.send(more(body, Some(status))).await;
    }
    if let Some(token) = ctx.live.token.as_ref().filter(|_| ctx.faults().is_on(Fault::ProgressAfterAnswer)) {
        let _ = ctx.sink.send(more(message::progress(token, AFTER_ALL, None, ""), None)).await;
    }
    Ok(())
}

/// Above whatever was told before.
const AFTER_ALL: f64 = 1e9;

fn is_call(ctx: &Context) -> bool {
    ctx.request.method == methods::TOOLS_CALL
}

fn value(id: &Id) -> Value {
    serde_json::from_str(&id.to_string()).unwrap_or_default()
}

/// The same message under another id.
fn with_id(id: &Id, other: &Id, body: &Bytes) -> Bytes {
    let text = String::from_utf8_lossy(body);
    text.replacen(&format!("\"id\":{id}"), &format!("\"id\":{other}"), 1).into()
}

impl Context {
    /// The token and the value that progress is told with.
    pub(super) fn progress_as(&self, token: &Id, value: f64) -> (Id, f64) {
        let token =
            if self.faults().is_on(Fault::StrayToken) { Id::Str(STRAY.into()) } else { token.clone() };
        let value = if self.faults().is_on(Fault::ProgressStands) { 1.0 } else { value };
        (token, value)
    }

    /// Puts a message where no bound is, and tells how much waits there.
    pub(super) async fn pile_up(&mut self, body: Bytes) -> Result<(), Ended> {
        self.pile.push_back(Outgoing::new(Some(self.live.clone()), body, None));
        while let Some(first) = self.pile.pop_front() {
            if let Err(first) = self.sink.try_send(first) {
                self.pile.push_front(first);
                break;
            }
        }
        self.live.teller.queue(self.pile.len(), None, Counters::default());
        // Nothing else slows the one who fills it; the writer must have its turn.
        self.sleep(PILE_PAUSE).await
    }

    /// Sends all that has piled up.
    async fn pour_out(&mut self) -> Result<(), Ended> {
        while let Some(first) = self.pile.pop_front() {
            self.sink.send(first).await.map_err(|_| Ended::Cancelled)?;
        }
        Ok(())
    }
}

/// Between two messages that pile up.
const PILE_PAUSE: crate::time::Ms = crate::time::Ms(1);

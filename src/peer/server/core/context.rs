//! What a handler may do to the outside.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Ended, Live, Outgoing};
use crate::event::telemetry::Stage;
use crate::peer::faults::{Fault, Faults};
use crate::peer::server::SharedCore;
use crate::peer::server::caller::{Caller, missing_capabilities};
use crate::peer::server::message::{self, Request};
use crate::peer::telemetry::Teller;
use crate::spec::logging::Level;
use crate::spec::transport::Transport;
use crate::time::Ms;

/// One running request, as its handler sees it.
#[derive(Debug)]
pub(in crate::peer::server) struct Context {
    pub(super) core: SharedCore,
    pub(super) request: Arc<Request>,
    pub(super) caller: Caller,
    pub(super) live: Arc<Live>,
    pub(super) sink: mpsc::Sender<Outgoing>,
    /// What waits beyond the bound of the sink, where a fault lifts that.
    pub(super) pile: VecDeque<Outgoing>,
    /// Least time between two progress notifications.
    pace: Ms,
    told_at: Option<Ms>,
}

impl Context {
    pub(super) fn new(
        core: SharedCore,
        request: Arc<Request>,
        caller: Caller,
        live: Arc<Live>,
        sink: mpsc::Sender<Outgoing>,
    ) -> Context {
        let pace = Ms(core.options.max_progress_per_s.map_or(0, |most| 1000 / u64::from(most.max(1))));
        Context { core, request, caller, live, sink, pile: VecDeque::new(), pace, told_at: None }
    }

    /// The server: its options and what its requests share.
    pub(in crate::peer::server) fn core(&self) -> &SharedCore {
        &self.core
    }

    /// The request itself.
    pub(in crate::peer::server) fn request(&self) -> &Request {
        &self.request
    }

    /// Who asks.
    pub(in crate::peer::server) fn caller(&self) -> &Caller {
        &self.caller
    }

    /// The switches for wrong things.
    pub(in crate::peer::server) fn faults(&self) -> &Faults {
        &self.core.options.faults
    }

    /// Fires when the client gives up; for work on other threads.
    pub(in crate::peer::server) fn token(&self) -> CancellationToken {
        self.live.cancel.clone()
    }

    /// Tells that the work has come to this stage, where somebody wants to know.
    pub(in crate::peer::server) fn tell(&self, stage: Stage) {
        self.live.teller.tell(stage);
    }

    /// The way to tell more than a stage: an effect with its receipt.
    pub(in crate::peer::server) fn teller(&self) -> &Teller {
        &self.live.teller
    }

    /// Refuses unless the client declares the capability at this path of names.
    pub(in crate::peer::server) fn need_capability(&self, path: &[&str]) -> Result<(), Ended> {
        if self.caller.can(path) {
            return Ok(());
        }
        Err(Ended::Refused(missing_capabilities(&self.live.id, &[path.to_vec()])))
    }

    /// Tells progress, where the client asked for it and the pace allows it; the last step is
    /// always told. Waits while the wire is slow.
    pub(in crate::peer::server) async fn progress(
        &mut self,
        value: f64,
        total: f64,
        text: &str,
    ) -> Result<(), Ended> {
        let now = self.core.clock.now();
        let is_too_soon = self.told_at.is_some_and(|at| now.0 < at.0 + self.pace.0);
        if is_too_soon && value < total {
            return self.checkpoint();
        }
        let Some(token) = self.live.token.as_ref() else { return self.checkpoint() };
        let (token, value) = self.progress_as(token, value);
        let rises = self.live.with(|record| record.progress(value));
        if !rises && !self.faults().is_on(Fault::ProgressStands) {
            return self.checkpoint();
        }
        self.told_at = Some(now);
        let body = message::progress(&token, value, Some(total), text);
        if self.faults().is_on(Fault::Unbounded) {
            return self.pile_up(body).await;
        }
        self.send(body, None).await?;
        let waiting = self.sink.max_capacity() - self.sink.capacity();
        if waiting > 1 {
            self.teller().queue(waiting, Some(self.sink.max_capacity()));
        }
        Ok(())
    }

    /// Lifts the pace, for a tool that floods on purpose.
    pub(in crate::peer::server) fn at_full_speed(&mut self) {
        self.pace = Ms(0);
    }

    /// Tells a log message, if the client wants this level for this request (LOG-01, LOG-03).
    pub(in crate::peer::server) async fn log(
        &mut self,
        level: Level,
        logger: Option<&str>,
        data: &Value,
    ) -> Result<(), Ended> {
        if self.caller.log_level.is_none_or(|from| level < from) {
            return self.checkpoint();
        }
        self.send(message::log(level, logger, data), None).await
    }

    /// Lets the client go for a while, where its revision and its transport know how it comes back
    /// for the rest; elsewhere nothing happens.
    pub(in crate::peer::server) async fn let_go(&self) -> Result<(), Ended> {
        if !self.caller.comes_back {
            return self.checkpoint();
        }
        // The one place in which a message is no message.
        let sent = self.sink.send(Outgoing::pause(&self.live)).await;
        sent.map_err(|_| Ended::Cancelled)
    }

    /// Waits; ends early when the client gives up.
    pub(in crate::peer::server) async fn sleep(&self, time: Ms) -> Result<(), Ended> {
        tokio::select! {
            biased;
            () = self.live.cancel.cancelled() => Err(Ended::Cancelled),
            () = tokio::time::sleep(time.into()) => Ok(()),
        }
    }

    /// Waits until the client gives up.
    pub(in crate::peer::server) async fn cancelled(&self) -> Ended {
        self.live.cancel.cancelled().await;
        Ended::Cancelled
    }

    /// A place at which work stops if the client has given up.
    pub(in crate::peer::server) fn checkpoint(&self) -> Result<(), Ended> {
        self.tell(Stage::Checkpoint);
        if self.live.cancel.is_cancelled() { Err(Ended::Cancelled) } else { Ok(()) }
    }

    /// Sends a message of this request; waits while the wire is slow.
    pub(in crate::peer::server) async fn send(&self, body: Bytes, status: Option<u16>) -> Result<(), Ended> {
        let outgoing = Outgoing { live: Some(self.live.clone()), body, status };
        tokio::select! {
            biased;
            () = self.live.cancel.cancelled() => Err(Ended::Cancelled),
            sent = self.sink.send(outgoing) => match sent {
                Err(_) if !self.is_deaf() => Err(Ended::Cancelled),
                _ => Ok(()),
            },
        }
    }

    /// The client has gone and this request is not to know.
    fn is_deaf(&self) -> bool {
        let is_http = self.caller.transport == Transport::Http;
        is_http && self.core.options.mode.is_deaf() && !self.live.is_subscription
    }

    /// Sends a message that belongs to no running request.
    pub(super) async fn send_apart(&self, body: Bytes) {
        // The transport is gone: there is nobody left to tell.
        let _ = self.sink.send(Outgoing { live: None, body, status: None }).await;
    }

    /// Ends a subscription that has lost something: on pipes by a notification, over HTTP by the
    /// end of its stream.
    pub(super) async fn lose(&self) {
        self.live.cancel(Some("the client reads too slowly"));
        if self.caller.transport == Transport::Stdio {
            self.send_apart(message::cancelled(&self.live.id)).await;
        }
    }
}

//! What a handler may do to the outside.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{Ended, Live, Outgoing};
use crate::event::telemetry::Stage;
use crate::peer::faults::{Fault, Faults};
use crate::peer::server::SharedCore;
use crate::peer::server::caller::{Caller, missing_capabilities};
use crate::peer::server::message::{self, Request};
use crate::peer::server::outlet::{Closed, Outlet, Sort};
use crate::peer::telemetry::Teller;
use crate::spec::logging::Level;
use crate::spec::transport::Transport;
use crate::time::Ms;
use crate::wire::jsonrpc::Id;

/// One running request, as its handler sees it.
#[derive(Debug)]
pub(in crate::peer::server) struct Context {
    pub(super) core: SharedCore,
    pub(super) request: Arc<Request>,
    pub(super) caller: Caller,
    pub(super) live: Arc<Live>,
    pub(super) sink: Outlet,
    /// What waits beyond the bound of the sink, where a fault lifts that.
    pub(super) pile: VecDeque<Outgoing>,
    /// Least time between two progress notifications.
    pace: Ms,
    told_at: Option<Ms>,
    /// The wire sets the pace.
    is_at_full_speed: bool,
    /// When the queue was told, and the longest that it was told to be.
    queue_told: Option<(Ms, usize)>,
}

/// How long a flood waits for the wire to take one of its steps. ours.
const PATIENCE: Ms = Ms(200);

/// Between two looks at the queue. ours: ten a second.
const LOOK: Ms = Ms(100);

impl Context {
    pub(super) fn new(
        core: SharedCore,
        request: Arc<Request>,
        caller: Caller,
        live: Arc<Live>,
        sink: Outlet,
    ) -> Context {
        let pace = Ms(core.options.max_progress_per_s.map_or(0, |most| 1000 / u64::from(most.max(1))));
        Context {
            core,
            request,
            caller,
            live,
            sink,
            pile: VecDeque::new(),
            pace,
            told_at: None,
            is_at_full_speed: false,
            queue_told: None,
        }
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
    /// always told. Before a slow reader newer progress takes the place of older.
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
        self.wait_for_wire(&token).await?;
        self.put(body, None, Sort::Progress(token)).await?;
        self.tell_queue(false);
        Ok(())
    }

    /// Lifts the pace, for a tool that floods on purpose: the wire sets it.
    pub(in crate::peer::server) fn at_full_speed(&mut self) {
        self.pace = Ms(0);
        self.is_at_full_speed = true;
    }

    /// At full speed: until the last step has gone out, but not for long: before a reader that has
    /// stopped, the next step takes its place.
    async fn wait_for_wire(&self, token: &Id) -> Result<(), Ended> {
        if !self.is_at_full_speed {
            return Ok(());
        }
        tokio::select! {
            biased;
            () = self.live.cancel.cancelled() => Err(Ended::Cancelled),
            // Nobody reads: that is found when it is sent.
            _ = self.sink.is_taken(token) => Ok(()),
            () = tokio::time::sleep(PATIENCE.into()) => Ok(()),
        }
    }

    /// Tells how the queue stands where more than this message waits in it, or something was given up.
    /// Not more often than people can look, unless it is longer than ever; with its answer in any case.
    pub(super) fn tell_queue(&mut self, is_last: bool) {
        let level = self.sink.level();
        let is_news = level.waiting > 1 || level.counters.dropped() > 0;
        let now = self.core.clock.now();
        let is_due = self.queue_told.is_none_or(|(at, most)| level.waiting > most || now.0 >= at.0 + LOOK.0);
        if is_news && (is_due || is_last) {
            let most = self.queue_told.map_or(0, |(_, most)| most);
            self.queue_told = Some((now, most.max(level.waiting)));
            self.teller().queue(level.waiting, Some(level.capacity), level.counters);
        }
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
        self.put(message::log(level, logger, data), None, Sort::Log).await
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

    /// Sends a message of this request that is not given up; waits while the wire is slow.
    pub(in crate::peer::server) async fn send(&self, body: Bytes, status: Option<u16>) -> Result<(), Ended> {
        self.put(body, status, Sort::Final).await
    }

    async fn put(&self, body: Bytes, status: Option<u16>, sort: Sort) -> Result<(), Ended> {
        let outgoing = Outgoing { live: Some(self.live.clone()), body, status, sort };
        tokio::select! {
            biased;
            () = self.live.cancel.cancelled() => Err(Ended::Cancelled),
            sent = self.sink.send(outgoing) => match sent {
                Err(Closed) if !self.is_deaf() => Err(Ended::Cancelled),
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
        let _ = self.sink.send(Outgoing::new(None, body, None)).await;
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

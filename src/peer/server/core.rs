//! Requests, their handlers and their ends; no transport.
//!
//! A transport starts a request with [`Core::start`] and carries what comes out of the sink. A
//! message leaves only if [`Outgoing::may_leave`] says so at the very moment of writing: that is
//! where a cancel and a completion meet, and the first wins.

mod asking;
mod context;
mod faults;

use std::pin::Pin;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(super) use self::asking::Question;
pub(super) use self::context::Context;
use super::caller::Caller;
use super::hub::Hub;
use super::message::{self, Refusal, Request};
use super::methods::Method;
use super::outlet::{Outlet, Sort};
use super::sealed::Seal;
use super::shop::Shop;
use super::store::Store;
use super::tasks::Tasks;
use super::{ServerOptions, SharedCore, legacy};
use crate::event::telemetry::Stage;
use crate::machine::request::{CancelEffect, ServerRequest, ServerState};
use crate::peer::faults::Faults;
use crate::peer::telemetry::Teller;
use crate::spec::codes;
use crate::time::{TimerClock, wall_now};
use crate::wire::jsonrpc::Id;

/// The server without a transport.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) options: ServerOptions,
    /// Every handler that runs, on whatever connection.
    pub(super) handlers: TaskTracker,
    pub(super) clock: TimerClock,
    /// When the clock read zero.
    started: DateTime<Utc>,
    /// Closes what clients carry for this server.
    pub(super) seal: Seal,
    /// The sessions of the older revisions over HTTP.
    pub(super) sessions: legacy::Sessions,
    /// What the tools with effects work on.
    pub(super) shop: Shop,
    /// The streams of the oldest one.
    pub(super) links: legacy::Links,
    /// Fires when the server ends: what never ends by itself does so now.
    pub(super) ending: CancellationToken,
    /// Those who listen for changes.
    pub(super) hub: Arc<Hub>,
    /// What clients may change.
    pub(super) store: Store,
    /// Work that goes on without its request.
    pub(super) tasks: Tasks,
}

/// A request that was accepted, as its handler and its transport share it.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) id: Id,
    pub(super) token: Option<Id>,
    /// It is answered with a stream of changes, and with a response only in the end.
    pub(super) is_subscription: bool,
    cancel: CancellationToken,
    record: Mutex<ServerRequest>,
    teller: Teller,
    faults: Arc<Faults>,
    /// A cancel was not obeyed, on purpose.
    has_disobeyed: AtomicBool,
}

impl Live {
    fn new(id: Id, token: Option<Id>, method: Method, teller: Teller, faults: Arc<Faults>) -> Arc<Live> {
        let record = Mutex::new(ServerRequest::new(token.is_some()));
        let is_subscription = method == Method::Listen;
        let (cancel, has_disobeyed) = (CancellationToken::new(), AtomicBool::new(false));
        Arc::new(Live { id, token, is_subscription, cancel, record, teller, faults, has_disobeyed })
    }

    /// The client's cancel signal came: from here on nothing of this request leaves.
    pub(super) fn cancel(&self, reason: Option<&str>) {
        if self.disobeys() {
            return;
        }
        if self.with(|record| record.cancel(reason)) == CancelEffect::Cancelled {
            tracing::debug!(id = %self.id, reason, "cancelled");
            self.teller.tell(Stage::CancelSeen);
            self.cancel.cancel();
        }
    }

    pub(super) fn state(&self) -> ServerState {
        self.with(|record| record.state())
    }

    /// One step of the state machine; a poisoned lock is still good, for no step can stop midway.
    fn with<T>(&self, step: impl FnOnce(&mut ServerRequest) -> T) -> T {
        step(&mut self.record.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A message on its way out.
#[derive(Debug)]
pub(super) struct Outgoing {
    /// The request that it belongs to; `None`: it answers what never became a request.
    pub(super) live: Option<Arc<Live>>,
    pub(super) body: Bytes,
    /// The status that goes with a response; `None`: a notification.
    pub(super) status: Option<u16>,
    /// What may become of it before a slow reader.
    pub(super) sort: Sort,
}

impl Outgoing {
    /// A message that is not given up.
    pub(super) fn new(live: Option<Arc<Live>>, body: Bytes, status: Option<u16>) -> Outgoing {
        Outgoing { live, body, status, sort: Sort::Final }
    }

    /// No message: the client may be let go for a while, and come back for the rest
    /// (spec 2025-11-25 `basic/transports#sending-messages-to-the-server`).
    pub(super) fn pause(live: &Arc<Live>) -> Outgoing {
        Outgoing::new(Some(live.clone()), Bytes::new(), None)
    }

    pub(super) fn is_pause(&self) -> bool {
        self.body.is_empty()
    }

    /// Ask right before writing. False: the client gave up, throw it away. True for a response
    /// completes the request.
    pub(super) fn may_leave(&self) -> bool {
        match (&self.live, self.status) {
            (None, _) => true,
            (Some(live), Some(_)) if live.keeps_silent() => false,
            (Some(live), Some(_)) => live.with(|record| record.complete(()).is_emitted()),
            (Some(live), None) => live.state() == ServerState::InProgress,
        }
    }
}

impl From<&Refusal> for Outgoing {
    fn from(refusal: &Refusal) -> Outgoing {
        Outgoing::new(None, refusal.to_bytes(), Some(refusal.status))
    }
}

/// Why a handler ends without a complete result.
#[derive(Debug)]
pub(super) enum Ended {
    /// The client gave up.
    Cancelled,
    /// A JSON-RPC error.
    Refused(Refusal),
    /// A tool error: a result with `isError`.
    Failed(String),
    /// The client is asked first: the `input_required` result.
    NeedsInput(Map<String, Value>),
    /// The work goes on without the request: the result with the handle of its task.
    Task(Map<String, Value>),
    /// A subscription ends as the server wants it: the response, and a notification after it.
    Closed { result: Bytes, also: Option<Bytes> },
    /// A subscription cannot be told everything any more: it ends without a response, which its
    /// client sees.
    Lost,
}

/// A handler that runs.
pub(super) type Running<'a> = Pin<Box<dyn Future<Output = Answer> + Send + 'a>>;

/// What a handler gives back.
pub(super) type Answer = Result<Map<String, Value>, Ended>;

impl Core {
    pub(super) fn new(options: ServerOptions) -> SharedCore {
        let hub = Arc::new(Hub::default());
        let clock = TimerClock::start();
        Arc::new(Core {
            seal: Seal::new(options.state_key.as_deref()),
            shop: Shop::new(&options),
            tasks: Tasks::new(clock),
            options,
            handlers: TaskTracker::new(),
            clock,
            started: wall_now(),
            sessions: legacy::Sessions::default(),
            links: legacy::Links::default(),
            ending: CancellationToken::new(),
            store: Store::new(hub.clone()),
            hub,
        })
    }

    /// Milliseconds since 1970, for what several servers have to agree on. It goes as evenly as the
    /// clock of timers.
    fn wall_ms(&self) -> u64 {
        u64::try_from(self.started.timestamp_millis()).unwrap_or(0) + self.clock.now().0
    }

    /// Accepts a checked request; the future is its handler, for the transport to spawn on
    /// [`Core::handlers`]. Out of `sink` come its notifications and its one response, or, after a
    /// cancel, nothing.
    pub(super) fn start(
        self: &Arc<Self>,
        request: Request,
        caller: Caller,
        sink: Outlet,
    ) -> Result<(Arc<Live>, impl Future<Output = ()> + Send + 'static), Refusal> {
        let method = Method::of(&request, caller.era)?;
        tracing::debug!(id = %request.id, ?method, client = ?caller.client_info, "a request");
        let most = self.options.most_running;
        if self.handlers.len() >= most {
            let text = format!("{most} requests run already; try again when some have ended");
            let refusal = Refusal::new(Some(&request.id), codes::INTERNAL_ERROR, text);
            return Err(Refusal { status: 503, ..refusal });
        }
        tracing::debug!(id = %request.id, method = request.method, client = ?caller.client_info, "asked");
        let telemetry = self.options.telemetry.as_ref();
        let teller = telemetry.map(|telemetry| telemetry.about(&request.id, caller.peer));
        let (teller, faults) = (teller.unwrap_or_default(), self.options.faults.clone());
        let live = Live::new(request.id.clone(), caller.token.clone(), method, teller, faults);
        let request = Arc::new(request);
        let ctx = Context::new(self.clone(), request.clone(), caller, live.clone(), sink);
        Ok((live, run(method, request, ctx)))
    }
}

async fn run(method: Method, request: Arc<Request>, mut ctx: Context) {
    ctx.tell(Stage::HandlerStart);
    faults::begin(&ctx).await;
    let answer = method.run(&request, &mut ctx).await;
    let era = ctx.caller().era;
    let answer = legacy::shape::answer(era, &request, answer);
    let mut also = None;
    let (body, status) = match answer {
        Ok(result) | Err(Ended::NeedsInput(result) | Ended::Task(result)) => {
            (message::result(&request.id, result, era), 200)
        }
        Err(Ended::Failed(text)) => (message::result(&request.id, tool_error(&text), era), 200),
        Err(Ended::Refused(refusal)) => (refusal.to_bytes(), refusal.status),
        Err(Ended::Closed { result, also: notification }) => {
            also = notification;
            (result, 200)
        }
        Err(Ended::Lost) => return ctx.lose().await,
        Err(Ended::Cancelled) => return,
    };
    ctx.tell(Stage::Done);
    // Cancelled, or the transport is gone: there is nobody left to tell.
    if faults::answer(&mut ctx, body, status).await.is_ok()
        && let Some(also) = also
    {
        ctx.send_apart(also).await;
    }
}

fn tool_error(text: &str) -> Map<String, Value> {
    object(json!({ "content": [{ "type": "text", "text": text }], "isError": true }))
}

/// The members of a literal object.
pub(super) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

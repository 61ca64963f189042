//! Requests, their handlers and their ends; no transport.
//!
//! A transport starts a request with [`Core::start`] and carries what comes out of the sink. A
//! message leaves only if [`Outgoing::may_leave`] says so at the very moment of writing: that is
//! where a cancel and a completion meet, and the first wins.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::message::{self, Meta, Refusal, Request, VERSION};
use super::tools::Tool;
use super::{ServerOptions, SharedCore};
use crate::machine::request::{CancelEffect, ServerRequest, ServerState};
use crate::spec::{codes, methods};
use crate::time::{Ms, TimerClock};
use crate::wire::jsonrpc::Id;

/// How long lists and the discovery answer stay fresh, ms. They never change while it runs.
const TTL_MS: u64 = 60_000;

/// The server without a transport.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) options: ServerOptions,
    /// Every handler that runs, on whatever connection.
    pub(super) handlers: TaskTracker,
    clock: TimerClock,
}

/// A request that was accepted, as its handler and its transport share it.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) id: Id,
    pub(super) token: Option<Id>,
    cancel: CancellationToken,
    record: Mutex<ServerRequest>,
}

impl Live {
    fn new(id: Id, token: Option<Id>) -> Arc<Live> {
        let record = Mutex::new(ServerRequest::new(token.is_some()));
        Arc::new(Live { id, token, cancel: CancellationToken::new(), record })
    }

    /// The client's cancel signal came: from here on nothing of this request leaves.
    pub(super) fn cancel(&self, reason: Option<&str>) {
        if self.with(|record| record.cancel(reason)) == CancelEffect::Cancelled {
            tracing::debug!(id = %self.id, reason, "cancelled");
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
}

impl Outgoing {
    /// Ask right before writing. False: the client gave up, throw it away. True for a response
    /// completes the request.
    pub(super) fn may_leave(&self) -> bool {
        match (&self.live, self.status) {
            (None, _) => true,
            (Some(live), Some(_)) => live.with(|record| record.complete(()).is_emitted()),
            (Some(live), None) => live.state() == ServerState::InProgress,
        }
    }
}

impl From<&Refusal> for Outgoing {
    fn from(refusal: &Refusal) -> Outgoing {
        Outgoing { live: None, body: refusal.to_bytes(), status: Some(refusal.status) }
    }
}

/// Why a handler ends without a result.
#[derive(Debug)]
pub(super) enum Ended {
    /// The client gave up.
    Cancelled,
    /// A JSON-RPC error.
    Refused(Refusal),
    /// A tool error: a result with `isError`.
    Failed(String),
}

/// What a handler may do to the outside.
#[derive(Debug)]
pub(super) struct Context {
    live: Arc<Live>,
    sink: mpsc::Sender<Outgoing>,
    clock: TimerClock,
    /// Least time between two progress notifications.
    pace: Ms,
    told_at: Option<Ms>,
}

impl Context {
    /// Tells progress, where the client asked for it and the pace allows it; the last step is
    /// always told. Waits while the wire is slow.
    pub(super) async fn progress(&mut self, value: f64, total: f64, text: &str) -> Result<(), Ended> {
        let now = self.clock.now();
        let is_too_soon = self.told_at.is_some_and(|at| now.0 < at.0 + self.pace.0);
        if is_too_soon && value < total {
            return self.check();
        }
        let Some(token) = self.live.token.as_ref() else { return self.check() };
        if !self.live.with(|record| record.progress(value)) {
            return self.check();
        }
        self.told_at = Some(now);
        let body = message::progress(token, value, Some(total), text);
        self.send(body, None).await
    }

    /// Lifts the pace, for a tool that floods on purpose.
    pub(super) fn at_full_speed(&mut self) {
        self.pace = Ms(0);
    }

    /// Waits; ends early when the client gives up.
    pub(super) async fn sleep(&self, time: Ms) -> Result<(), Ended> {
        tokio::select! {
            biased;
            () = self.live.cancel.cancelled() => Err(Ended::Cancelled),
            () = tokio::time::sleep(time.into()) => Ok(()),
        }
    }

    /// Waits until the client gives up.
    pub(super) async fn cancelled(&self) -> Ended {
        self.live.cancel.cancelled().await;
        Ended::Cancelled
    }

    fn check(&self) -> Result<(), Ended> {
        if self.live.cancel.is_cancelled() { Err(Ended::Cancelled) } else { Ok(()) }
    }

    async fn send(&self, body: Bytes, status: Option<u16>) -> Result<(), Ended> {
        let outgoing = Outgoing { live: Some(self.live.clone()), body, status };
        tokio::select! {
            biased;
            () = self.live.cancel.cancelled() => Err(Ended::Cancelled),
            sent = self.sink.send(outgoing) => sent.map_err(|_| Ended::Cancelled),
        }
    }
}

/// What is asked for.
#[derive(Debug, Clone, Copy)]
enum Method {
    Discover,
    List,
    Call,
}

impl Core {
    pub(super) fn new(options: ServerOptions) -> SharedCore {
        Arc::new(Core { options, handlers: TaskTracker::new(), clock: TimerClock::start() })
    }

    /// Accepts a checked request; the future is its handler, for the transport to
    /// spawn on [`Core::handlers`]. Out of
    /// `sink` come its progress and its one response, or, after a cancel, nothing.
    pub(super) fn start(
        self: &Arc<Self>,
        request: Request,
        meta: Meta,
        sink: mpsc::Sender<Outgoing>,
    ) -> Result<(Arc<Live>, impl Future<Output = ()> + Send + 'static), Refusal> {
        let method = match request.method.as_str() {
            methods::DISCOVER => Method::Discover,
            methods::TOOLS_LIST => Method::List,
            methods::TOOLS_CALL => Method::Call,
            other => {
                let text =
                    format!("no method {other}; this server has server/discover, tools/list, tools/call");
                return Err(Refusal::new(Some(&request.id), codes::METHOD_NOT_FOUND, text));
            }
        };
        let live = Live::new(request.id.clone(), meta.token);
        let pace = Ms(self.options.max_progress_per_s.map_or(0, |most| 1000 / u64::from(most.max(1))));
        let ctx = Context { live: live.clone(), sink, clock: self.clock, pace, told_at: None };
        Ok((live, self.clone().run(method, request, ctx)))
    }

    async fn run(self: Arc<Self>, method: Method, request: Request, mut ctx: Context) {
        let answer = match method {
            Method::Discover => Ok(discover()),
            Method::List => self.list(&request),
            Method::Call => call(&request, &mut ctx).await,
        };
        let (body, status) = match answer {
            Ok(result) => (message::result(&request.id, result), 200),
            Err(Ended::Refused(refusal)) => (refusal.to_bytes(), refusal.status),
            Err(Ended::Failed(text)) => (message::result(&request.id, tool_error(&text)), 200),
            Err(Ended::Cancelled) => return,
        };
        // Cancelled, or the transport is gone: there is nobody left to tell.
        let _ = ctx.send(body, Some(status)).await;
    }

    fn list(&self, request: &Request) -> Result<Map<String, Value>, Ended> {
        let refuse = || Ended::Refused(Refusal::params(&request.id, "unknown cursor; start without one"));
        let start = match request.at(&["cursor"]) {
            None => 0,
            Some(_) => {
                cursor_start(&request.string_at(&["cursor"]).ok_or_else(refuse)?).ok_or_else(refuse)?
            }
        };
        let size = self.options.page_size.unwrap_or(Tool::ALL.len()).max(1);
        let tools: Vec<Value> =
            Tool::ALL.iter().skip(start).take(size).map(|tool| tool.definition()).collect();
        let next = start + tools.len();
        let mut result = cached(json!({ "tools": tools }));
        if next < Tool::ALL.len() {
            result.insert("nextCursor".to_owned(), json!(format!("{CURSOR_PREFIX}{next}")));
        }
        Ok(result)
    }
}

const CURSOR_PREFIX: &str = "after-";

/// The position that a cursor of ours stands for.
fn cursor_start(cursor: &str) -> Option<usize> {
    let start = cursor.strip_prefix(CURSOR_PREFIX)?.parse().ok()?;
    (1..Tool::ALL.len()).contains(&start).then_some(start)
}

async fn call(request: &Request, ctx: &mut Context) -> Result<Map<String, Value>, Ended> {
    let name = request.string_at(&["name"]).unwrap_or_default();
    let Some(tool) = Tool::ALL.iter().find(|tool| tool.name() == name) else {
        // TOOL-14: a protocol error, not a tool error.
        return Err(Ended::Refused(Refusal::params(
            &request.id,
            format!("no tool {name:?}; tools/list names them"),
        )));
    };
    tool.run(request, ctx).await
}

fn discover() -> Map<String, Value> {
    cached(json!({
        "supportedVersions": [VERSION.as_str()],
        "capabilities": { "tools": {} },
        "instructions": "Reference server of midwire. Every tool shows one thing that can happen to a call.",
    }))
}

/// Adds what a cacheable result must carry (protocol.md section 13); the same for everybody.
fn cached(result: Value) -> Map<String, Value> {
    let mut result = object(result);
    result.insert("ttlMs".to_owned(), json!(TTL_MS));
    result.insert("cacheScope".to_owned(), json!("public"));
    result
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

//! What one message says, as far as an observer needs it: read once, out of its index.

use std::borrow::Cow;
use std::hash::BuildHasher;

use super::call::LogsAsked;
use super::reading::Part;
use crate::spec::era::Era;
use crate::spec::logging::Level;
use crate::wire::json::Value;
use crate::wire::jsonrpc::{Id, Kind};

const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// What a message says.
#[expect(clippy::struct_excessive_bools, reason = "independent facts, none of them a state")]
#[derive(Debug, Default)]
pub(super) struct Said<'a> {
    /// The method, unescaped.
    pub method: Option<Cow<'a, str>>,
    /// The id, when it is one.
    pub id: Option<Id>,
    /// `_meta` protocolVersion, or the version that `initialize` asks for or settles.
    pub version: Option<Cow<'a, str>>,
    /// `_meta` names a protocol version: a message of the modern era.
    pub has_meta_version: bool,
    /// Request: `params.name`, `params.uri` or `params.taskId`.
    pub target: Option<Cow<'a, str>>,
    /// Progress token: asked for by a request, or named by a progress notification.
    pub token: Option<Id>,
    /// Who sent it: name and version from `clientInfo` or `serverInfo`.
    pub peer: Option<(Cow<'a, str>, Cow<'a, str>)>,
    /// `_meta` subscriptionId.
    pub subscription: Option<Id>,
    /// Request: equal for the same method, target and arguments, whatever the id.
    pub fingerprint: u64,
    /// Request: the log messages that it asks for.
    pub logs: Option<LogsAsked>,
    /// Hash of `requestState`, sent back by a request or handed out by a result (MRTR).
    pub request_state: Option<u64>,
    /// Request: it brings `inputResponses`.
    pub has_input_responses: bool,
    /// Request: it asks to be carried out as a task (2025-11-25).
    pub has_task: bool,
    /// Cancel: the request that it names.
    pub request_id: Option<Id>,
    /// Cancel: why.
    pub reason: Option<Cow<'a, str>>,
    /// Progress: how far, and of what.
    pub progress: Option<f64>,
    /// Progress: the whole, where it is told.
    pub total: Option<f64>,
    /// Result: `resultType`.
    pub result_type: Option<Cow<'a, str>>,
    /// Result: `isError` is true.
    pub is_tool_error: bool,
    /// Error: its code, when it is an integer.
    pub code: Option<i64>,
    /// Error: its message.
    pub message: Option<Cow<'a, str>>,
    /// `params`, `result` or `error` is there and no object.
    pub has_odd_body: bool,
}

impl<'a> Said<'a> {
    /// Reads a message. `hasher` only has to be the same for one model.
    ///
    /// Of a message too long to be looked into only id and method are known.
    pub(super) fn read(part: &'a Part, hasher: &impl BuildHasher) -> Said<'a> {
        let mut said = Said { id: part.shape.id.clone(), method: part.method(), ..Said::default() };
        let body = |name| part.content.as_ref().and_then(|content| content.value().get(name));
        match part.kind() {
            Kind::Request => said.read_request(body("params"), hasher),
            Kind::Notification => said.read_notification(body("params")),
            Kind::Result => said.read_result(body("result"), hasher),
            Kind::Error => said.read_error(body("error")),
            Kind::Invalid => {}
        }
        said
    }

    fn read_request(&mut self, params: Option<Value<'a>>, hasher: &impl BuildHasher) {
        let method = self.method.as_deref().unwrap_or_default();
        let is_initialize = method == "initialize";
        let target_member = match method {
            "tools/call" | "prompts/get" => "name",
            "resources/read" | "resources/subscribe" | "resources/unsubscribe" => "uri",
            _ if method.starts_with("tasks/") => "taskId",
            _ => "",
        };
        self.fingerprint = hasher.hash_one(method);
        for (name, raw) in self.members_of(params) {
            match &*name {
                "_meta" => self.read_meta(raw),
                "requestState" => self.request_state = Some(state_hash(raw, hasher)),
                "inputResponses" => self.has_input_responses = true,
                "protocolVersion" if is_initialize => self.version = raw.text(),
                "clientInfo" if is_initialize => self.peer = peer(raw),
                other => {
                    if other == target_member {
                        self.target = raw.text();
                    } else if other == "task" {
                        self.has_task = true;
                    }
                    // Members may come in any order.
                    let one = hasher.hash_one((other, raw.raw()));
                    self.fingerprint = self.fingerprint.wrapping_add(one);
                }
            }
        }
    }

    fn read_notification(&mut self, params: Option<Value<'a>>) {
        for (name, raw) in self.members_of(params) {
            match &*name {
                "_meta" => self.read_meta(raw),
                "progressToken" => self.token = raw.id(),
                "progress" => self.progress = raw.raw().parse().ok(),
                "total" => self.total = raw.raw().parse().ok(),
                "requestId" => self.request_id = raw.id(),
                "reason" => self.reason = raw.text(),
                "uri" | "taskId" => self.target = raw.text(),
                _ => {}
            }
        }
    }

    fn read_result(&mut self, result: Option<Value<'a>>, hasher: &impl BuildHasher) {
        for (name, raw) in self.members_of(result) {
            match &*name {
                "_meta" => self.read_meta(raw),
                "resultType" => self.result_type = raw.text(),
                "isError" => self.is_tool_error = raw.raw() == "true",
                "requestState" => self.request_state = Some(state_hash(raw, hasher)),
                "protocolVersion" => self.version = raw.text(),
                "serverInfo" => self.peer = peer(raw),
                _ => {}
            }
        }
    }

    fn read_error(&mut self, error: Option<Value<'a>>) {
        for (name, raw) in self.members_of(error) {
            match &*name {
                "code" => self.code = raw.raw().parse().ok(),
                "message" => self.message = raw.text(),
                _ => {}
            }
        }
    }

    fn read_meta(&mut self, meta: Value<'a>) {
        for (name, raw) in meta.members() {
            match &*name {
                PROTOCOL_VERSION => {
                    self.version = raw.text();
                    self.has_meta_version = self.version.is_some();
                }
                CLIENT_INFO | SERVER_INFO => self.peer = peer(raw),
                LOG_LEVEL => {
                    let level = raw.text().and_then(|name| Level::from_name(&name));
                    self.logs = Some(level.map_or(LogsAsked::Unknown, LogsAsked::From));
                }
                SUBSCRIPTION_ID => self.subscription = raw.id(),
                "progressToken" => self.token = raw.id(),
                _ => {}
            }
        }
    }

    /// Result: it asks for input in the place of an answer.
    pub(super) fn asks_input(&self) -> bool {
        self.result_type.as_deref() == Some("input_required")
    }

    /// The era that the message itself names. Only the modern era names one in `_meta`, so an unknown
    /// revision there is a modern one.
    pub(super) fn era(&self) -> Option<Era> {
        let known = self.version.as_deref().and_then(Era::from_name);
        known.or_else(|| self.has_meta_version.then_some(Era::V2026_07_28))
    }

    fn members_of(
        &mut self,
        body: Option<Value<'a>>,
    ) -> impl Iterator<Item = (Cow<'a, str>, Value<'a>)> + use<'a> {
        self.has_odd_body = body.is_some_and(|body| !body.is_object());
        body.into_iter().flat_map(Value::members)
    }
}

fn peer(raw: Value<'_>) -> Option<(Cow<'_, str>, Cow<'_, str>)> {
    let name = raw.get("name")?.text()?;
    let version = raw.get("version").and_then(Value::text).unwrap_or_default();
    Some((name, version))
}

/// Equal for the same text, however it is escaped.
fn state_hash(raw: Value<'_>, hasher: &impl BuildHasher) -> u64 {
    hasher.hash_one(raw.text().as_deref().unwrap_or_else(|| raw.raw()))
}

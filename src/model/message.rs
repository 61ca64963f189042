//! What one message says, as far as an observer needs it: read once, out of borrowed raw members.

use std::borrow::Cow;
use std::hash::BuildHasher;

use serde_json::value::RawValue;

use super::call::LogsAsked;
use crate::spec::era::Era;
use crate::spec::logging::Level;
use crate::wire::jsonrpc::{self, Envelope, Frame, Id, Kind};

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
    /// Reads an envelope. `hasher` only has to be the same for one model.
    pub(super) fn read(envelope: &Envelope<'a>, hasher: &impl BuildHasher) -> Said<'a> {
        let mut said = Said { id: envelope.id(), method: envelope.method(), ..Said::default() };
        match envelope.kind {
            Kind::Request => said.read_request(envelope.member("params"), hasher),
            Kind::Notification => said.read_notification(envelope.member("params")),
            Kind::Result => said.read_result(envelope.member("result"), hasher),
            Kind::Error => said.read_error(envelope.member("error")),
            Kind::Invalid => {}
        }
        said
    }

    fn read_request(&mut self, params: Option<&'a RawValue>, hasher: &impl BuildHasher) {
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
                "protocolVersion" if is_initialize => self.version = jsonrpc::string(raw),
                "clientInfo" if is_initialize => self.peer = peer(raw),
                other => {
                    if other == target_member {
                        self.target = jsonrpc::string(raw);
                    } else if other == "task" {
                        self.has_task = true;
                    }
                    // Members may come in any order.
                    let one = hasher.hash_one((other, raw.get()));
                    self.fingerprint = self.fingerprint.wrapping_add(one);
                }
            }
        }
    }

    fn read_notification(&mut self, params: Option<&'a RawValue>) {
        for (name, raw) in self.members_of(params) {
            match &*name {
                "_meta" => self.read_meta(raw),
                "progressToken" => self.token = Id::from_raw(raw.get()),
                "progress" => self.progress = raw.get().parse().ok(),
                "total" => self.total = raw.get().parse().ok(),
                "requestId" => self.request_id = Id::from_raw(raw.get()),
                "reason" => self.reason = jsonrpc::string(raw),
                "uri" | "taskId" => self.target = jsonrpc::string(raw),
                _ => {}
            }
        }
    }

    fn read_result(&mut self, result: Option<&'a RawValue>, hasher: &impl BuildHasher) {
        for (name, raw) in self.members_of(result) {
            match &*name {
                "_meta" => self.read_meta(raw),
                "resultType" => self.result_type = jsonrpc::string(raw),
                "isError" => self.is_tool_error = raw.get() == "true",
                "requestState" => self.request_state = Some(state_hash(raw, hasher)),
                "protocolVersion" => self.version = jsonrpc::string(raw),
                "serverInfo" => self.peer = peer(raw),
                _ => {}
            }
        }
    }

    fn read_error(&mut self, error: Option<&'a RawValue>) {
        for (name, raw) in self.members_of(error) {
            match &*name {
                "code" => self.code = raw.get().parse().ok(),
                "message" => self.message = jsonrpc::string(raw),
                _ => {}
            }
        }
    }

    fn read_meta(&mut self, meta: &'a RawValue) {
        for (name, raw) in members(meta).unwrap_or_default() {
            match &*name {
                PROTOCOL_VERSION => {
                    self.version = jsonrpc::string(raw);
                    self.has_meta_version = self.version.is_some();
                }
                CLIENT_INFO | SERVER_INFO => self.peer = peer(raw),
                LOG_LEVEL => {
                    let level = jsonrpc::string(raw).and_then(|name| Level::from_name(&name));
                    self.logs = Some(level.map_or(LogsAsked::Unknown, LogsAsked::From));
                }
                SUBSCRIPTION_ID => self.subscription = Id::from_raw(raw.get()),
                "progressToken" => self.token = Id::from_raw(raw.get()),
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

    fn members_of(&mut self, raw: Option<&'a RawValue>) -> Vec<(Cow<'a, str>, &'a RawValue)> {
        let Some(raw) = raw else { return Vec::new() };
        let found = members(raw);
        self.has_odd_body = found.is_none();
        found.unwrap_or_default()
    }
}

/// The members of an object, in order; `None` when it is none.
fn members(raw: &RawValue) -> Option<Vec<(Cow<'_, str>, &RawValue)>> {
    match jsonrpc::read(raw.get().as_bytes()) {
        Frame::Message(object) => Some(object.members),
        _ => None,
    }
}

fn peer(raw: &RawValue) -> Option<(Cow<'_, str>, Cow<'_, str>)> {
    let name = jsonrpc::at(raw, &["name"]).and_then(jsonrpc::string)?;
    let version = jsonrpc::at(raw, &["version"]).and_then(jsonrpc::string).unwrap_or_default();
    Some((name, version))
}

/// Equal for the same text, however it is escaped.
fn state_hash(raw: &RawValue, hasher: &impl BuildHasher) -> u64 {
    hasher.hash_one(jsonrpc::string(raw).as_deref().unwrap_or_else(|| raw.get()))
}

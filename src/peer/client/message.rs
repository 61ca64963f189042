//! Requests as they are written, and what comes back as it is read; each in the shape of its era.

use bytes::Bytes;
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::answers::Answers;
use super::{CallOptions, Outcome, Params};
use crate::spec::era::Era;
use crate::spec::{codes, headers, meta, methods};
use crate::wire::jsonrpc::{self, Envelope, Frame, Id, Kind};

/// Name that the client gives itself.
const NAME: &str = "midwire-reference-client";

/// How requests are written on a connection: the revision that was found out or assumed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Speech {
    /// The era, which decides about shapes.
    pub era: Era,
    /// The revision as it stands on the wire. Empty while an older handshake is under way.
    pub version: String,
}

impl Speech {
    /// The revision that the client speaks by itself.
    #[must_use]
    pub fn modern() -> Speech {
        Speech::of(Era::V2026_07_28)
    }

    /// A revision by its own name.
    #[must_use]
    pub fn of(era: Era) -> Speech {
        Speech { era, version: era.as_str().to_owned() }
    }

    /// The opening of an older session, whose version stands in the parameters alone.
    pub(super) fn opening(era: Era) -> Speech {
        Speech { era, version: String::new() }
    }
}

/// Progress of one call.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// How far.
    pub value: f64,
    /// Of how much, where that is known.
    pub total: Option<f64>,
    /// In words.
    pub message: Option<String>,
}

/// A notification of the server that is no progress.
#[derive(Debug, Clone)]
pub struct Notice {
    /// Its method.
    pub method: String,
    /// Its `params`.
    pub params: Option<Box<RawValue>>,
    /// The request that it names: the subscription it belongs to, or the one that it ends.
    pub about: Option<Id>,
}

/// A request of the server, which older eras have.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) id: Id,
    pub(super) method: String,
    pub(super) params: Option<Box<RawValue>>,
}

/// One request, stamped afresh with version, capabilities and identity.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) id: Id,
    pub(super) token: Option<Id>,
    pub(super) method: String,
    /// What `Mcp-Name` mirrors, where the method has such a thing.
    pub(super) target: Option<String>,
    /// Header fields that mirror arguments, names as they are written.
    pub(super) mirrored: Vec<(String, String)>,
    pub(super) speech: Speech,
    pub(super) body: Bytes,
}

impl Outgoing {
    pub(super) fn new(
        number: i64,
        method: &str,
        mut params: Params,
        options: &CallOptions,
        speech: Speech,
    ) -> Outgoing {
        let id = Id::from(number);
        // Not the id: a token is a name of its own, and a server must not take one for the other.
        let token = options.wants_progress.then(|| Id::Str(format!("progress-{number}").into()));
        let target = headers::name_member(method)
            .and_then(|member| params.get(member))
            .and_then(|raw| jsonrpc::string(raw).map(std::borrow::Cow::into_owned));
        let mut stamp = Params::new();
        if speech.era.is_modern() {
            stamp.insert(meta::PROTOCOL_VERSION.to_owned(), raw(&speech.version));
            stamp.insert(meta::CLIENT_CAPABILITIES.to_owned(), raw(&options.capabilities));
            stamp.insert(meta::CLIENT_INFO.to_owned(), raw(&info()));
            if let Some(level) = options.log_level {
                stamp.insert(meta::LOG_LEVEL.to_owned(), raw(level.as_str()));
            }
        }
        if let Some(Id::Str(token)) = &token {
            stamp.insert(meta::PROGRESS_TOKEN.to_owned(), raw(token.as_str()));
        }
        if !stamp.is_empty() {
            params.insert("_meta".to_owned(), raw(&stamp));
        }
        let body = request(&id, method, &params);
        let mirrored = if speech.era.is_modern() { options.mirrored.clone() } else { Vec::new() };
        Outgoing { id, token, method: method.to_owned(), target, mirrored, speech, body }
    }

    /// The opening of an older session. Its version stands in the parameters alone.
    pub(super) fn initialize(number: i64, revision: Era, options: &CallOptions) -> Outgoing {
        let id = Id::from(number);
        let params = Params::from([
            ("protocolVersion".to_owned(), raw(revision.as_str())),
            ("capabilities".to_owned(), raw(&options.capabilities)),
            ("clientInfo".to_owned(), raw(&info())),
        ]);
        Outgoing {
            body: request(&id, methods::INITIALIZE, &params),
            id,
            token: None,
            method: methods::INITIALIZE.to_owned(),
            target: None,
            mirrored: Vec::new(),
            speech: Speech::opening(revision),
        }
    }
}

fn info() -> serde_json::Value {
    json!({ "name": NAME, "version": env!("CARGO_PKG_VERSION") })
}

fn request(id: &Id, method: &str, params: &Params) -> Bytes {
    let (name, params) = (raw(method), raw(params));
    Bytes::from(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":{name},\"params\":{params}}}"))
}

/// A notification of the client without parameters.
pub(super) fn notification(method: &str) -> Bytes {
    Bytes::from(format!("{{\"jsonrpc\":\"2.0\",\"method\":{}}}", raw(method)))
}

/// The cancel signal, where it is a message.
pub(super) fn cancelled(id: &Id, reason: &str) -> Bytes {
    let reason = raw(&reason);
    let params = format!("{{\"requestId\":{id},\"reason\":{reason}}}");
    Bytes::from(format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{}\",\"params\":{params}}}", methods::CANCELLED))
}

/// The response to a request of the server.
pub(super) fn reply(asked: &Asked, answers: &Answers) -> Bytes {
    let Asked { id, method, params } = asked;
    let prepared = answers.find(None, method, params.as_deref());
    let result = match (method.as_str(), prepared) {
        (_, Some(prepared)) => Some(prepared),
        ("ping", None) => Some(raw(&json!({}))),
        // Nobody is there to be asked, which is no error.
        ("elicitation/create", None) => Some(raw(&json!({ "action": "cancel" }))),
        _ => None,
    };
    let end = if let Some(result) = result {
        format!("\"result\":{result}")
    } else {
        let message = "this client does not answer that";
        format!("\"error\":{}", json!({ "code": codes::METHOD_NOT_FOUND, "message": message }))
    };
    Bytes::from(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},{end}}}"))
}

/// A value as raw JSON, for [`Params`]. Texts, JSON values and maps by text always can be; what
/// cannot is `null`.
#[must_use]
pub fn raw<T: Serialize + ?Sized>(value: &T) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// One message of the server.
#[derive(Debug)]
pub(super) enum Read {
    /// An answer, and to which request; without an id to none that can be told.
    Answer { id: Option<Id>, outcome: Outcome },
    /// Progress under a token.
    Progress { token: Id, progress: Progress },
    /// Any other notification.
    Notice(Notice),
    /// A request; older eras only.
    Asked(Asked),
    /// Not what a server of this revision may send; says why.
    Bad(String),
}

/// Reads one frame of a server of this era.
pub(super) fn read(bytes: &[u8], era: Era) -> Vec<Read> {
    let bad = |why: String| vec![Read::Bad(why)];
    match jsonrpc::read(bytes) {
        Frame::Message(envelope) => vec![message(&envelope, era)],
        // The one revision that has them; there a client must take them.
        Frame::Batch(items) if era == Era::V2025_03_26 => {
            items.iter().map(|envelope| message(envelope, era)).collect()
        }
        Frame::Batch(_) => bad("a batch, which this revision does not have".to_owned()),
        Frame::OtherJson => bad("JSON that is no object".to_owned()),
        Frame::Blank => bad("an empty message".to_owned()),
        Frame::NotUtf8 { at } => bad(format!("not UTF-8 at byte {at}")),
        Frame::NotJson { why, at } => bad(format!("not JSON at byte {at}: {why}")),
    }
}

fn message(envelope: &Envelope<'_>, era: Era) -> Read {
    if let Some(fault) = envelope.faults.first() {
        return Read::Bad(format!("not a message: {fault:?}"));
    }
    match (envelope.kind, envelope.id()) {
        (Kind::Result, id @ Some(_)) => {
            let outcome = envelope.member("result").map_or_else(
                || Outcome::Invalid("no result".to_owned()),
                |result| result_outcome(result.to_owned(), era),
            );
            Read::Answer { id, outcome }
        }
        (Kind::Error, id) => {
            let error = envelope.member("error");
            Read::Answer { id, outcome: error.map_or_else(no_error, error_outcome) }
        }
        (Kind::Notification, _) => notified(envelope),
        (Kind::Request, Some(id)) if !era.is_modern() => Read::Asked(Asked {
            id,
            method: envelope.method().unwrap_or_default().into_owned(),
            params: envelope.member("params").map(ToOwned::to_owned),
        }),
        (Kind::Request, _) => Read::Bad("a request, which a server of this revision never sends".to_owned()),
        _ => Read::Bad("neither an answer nor a notification".to_owned()),
    }
}

/// Judges a result by its `resultType` (RPC-20, RPC-21), which older eras do not have.
fn result_outcome(result: Box<RawValue>, era: Era) -> Outcome {
    if !result.get().starts_with('{') {
        return Outcome::Invalid("the result is no object".to_owned());
    }
    match jsonrpc::at(&result, &["resultType"]).map(jsonrpc::string) {
        _ if !era.is_modern() => Outcome::Complete(result),
        Some(Some(kind)) if kind == "complete" => Outcome::Complete(result),
        Some(Some(kind)) if kind == "input_required" => Outcome::InputRequired(result),
        Some(Some(kind)) if kind == "task" => Outcome::Task(result),
        Some(Some(kind)) => Outcome::Invalid(format!("resultType {kind:?} was not agreed on")),
        Some(None) => Outcome::Invalid("resultType is not a string".to_owned()),
        None => Outcome::Invalid("the result has no resultType".to_owned()),
    }
}

fn error_outcome(error: &RawValue) -> Outcome {
    let code = jsonrpc::at(error, &["code"]).and_then(|raw| raw.get().parse().ok());
    let message = jsonrpc::at(error, &["message"]).and_then(jsonrpc::string);
    match (code, message) {
        (Some(code), Some(message)) => Outcome::Error {
            code,
            message: message.into_owned(),
            data: jsonrpc::at(error, &["data"]).map(ToOwned::to_owned),
        },
        _ => no_error(),
    }
}

fn no_error() -> Outcome {
    Outcome::Invalid("the error lacks an integer code or a message".to_owned())
}

fn notified(envelope: &Envelope<'_>) -> Read {
    let method = envelope.method().unwrap_or_default().into_owned();
    let params = envelope.member("params");
    let field = |path: &[&str]| params.and_then(|params| jsonrpc::at(params, path));
    let id = |path: &[&str]| field(path).and_then(|raw| Id::from_raw(raw.get()));
    if method != methods::PROGRESS {
        let about = if method == methods::CANCELLED {
            id(&["requestId"])
        } else {
            id(&["_meta", meta::SUBSCRIPTION_ID])
        };
        return Read::Notice(Notice { method, params: params.map(ToOwned::to_owned), about });
    }
    let number = |name: &str| field(&[name]).and_then(|raw| raw.get().parse::<f64>().ok());
    match (id(&["progressToken"]), number("progress")) {
        (Some(token), Some(value)) => {
            let message = field(&["message"]).and_then(jsonrpc::string).map(std::borrow::Cow::into_owned);
            Read::Progress { token, progress: Progress { value, total: number("total"), message } }
        }
        _ => Read::Bad("progress without a token or a number".to_owned()),
    }
}

#[cfg(test)]
mod tests;

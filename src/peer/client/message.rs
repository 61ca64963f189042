//! Requests as they are written, and what comes back as it is read.

use bytes::Bytes;
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::{CallOptions, Outcome, Params};
use crate::spec::era::Era;
use crate::spec::{headers, meta, methods};
use crate::wire::jsonrpc::{self, Envelope, Frame, Id, Kind};

/// The revision that the client speaks.
pub(super) const VERSION: Era = Era::V2026_07_28;

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

/// One request, stamped afresh with version, capabilities and identity.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) id: Id,
    pub(super) token: Option<Id>,
    pub(super) method: String,
    /// What `Mcp-Name` mirrors, where the method has such a thing.
    pub(super) target: Option<String>,
    pub(super) body: Bytes,
}

impl Outgoing {
    pub(super) fn new(number: i64, method: &str, mut params: Params, options: &CallOptions) -> Outgoing {
        let id = Id::from(number);
        // Not the id: a token is a name of its own, and a server must not take one for the other.
        let token = options.wants_progress.then(|| Id::Str(format!("progress-{number}").into()));
        let target = headers::name_member(method)
            .and_then(|member| params.get(member))
            .and_then(|raw| jsonrpc::string(raw).map(std::borrow::Cow::into_owned));
        let info = json!({ "name": "midwire-reference-client", "version": env!("CARGO_PKG_VERSION") });
        let mut stamp = Params::from([
            (meta::PROTOCOL_VERSION.to_owned(), raw(&VERSION.as_str())),
            (meta::CLIENT_CAPABILITIES.to_owned(), raw(&options.capabilities)),
            (meta::CLIENT_INFO.to_owned(), raw(&info)),
        ]);
        if let Some(Id::Str(token)) = &token {
            stamp.insert(meta::PROGRESS_TOKEN.to_owned(), raw(token));
        }
        params.insert("_meta".to_owned(), raw(&stamp));
        let (name, params) = (raw(&method), raw(&params));
        let body = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":{name},\"params\":{params}}}");
        Outgoing { id, token, method: method.to_owned(), target, body: Bytes::from(body) }
    }
}

/// The cancel signal of stdio.
pub(super) fn cancelled(id: &Id, reason: &str) -> Bytes {
    let reason = raw(&reason);
    let params = format!("{{\"requestId\":{id},\"reason\":{reason}}}");
    Bytes::from(format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{}\",\"params\":{params}}}", methods::CANCELLED))
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
    Other,
    /// Not what a server of this revision may send; says why.
    Bad(String),
}

/// Reads one frame of the server.
pub(super) fn read(bytes: &[u8]) -> Read {
    match jsonrpc::read(bytes) {
        Frame::Message(envelope) => message(&envelope),
        Frame::Batch(_) => Read::Bad("a batch, which this revision does not have".to_owned()),
        Frame::OtherJson => Read::Bad("JSON that is no object".to_owned()),
        Frame::Blank => Read::Bad("an empty message".to_owned()),
        Frame::NotUtf8 { at } => Read::Bad(format!("not UTF-8 at byte {at}")),
        Frame::NotJson { why, at } => Read::Bad(format!("not JSON at byte {at}: {why}")),
    }
}

fn message(envelope: &Envelope<'_>) -> Read {
    if let Some(fault) = envelope.faults.first() {
        return Read::Bad(format!("not a message: {fault:?}"));
    }
    match (envelope.kind, envelope.id()) {
        (Kind::Result, id @ Some(_)) => {
            let outcome = envelope.member("result").map_or_else(
                || Outcome::Invalid("no result".to_owned()),
                |result| result_outcome(result.to_owned()),
            );
            Read::Answer { id, outcome }
        }
        (Kind::Error, id) => {
            let error = envelope.member("error");
            Read::Answer { id, outcome: error.map_or_else(no_error, error_outcome) }
        }
        (Kind::Notification, _) => notification(envelope),
        (Kind::Request, _) => Read::Bad("a request, which a server of this revision never sends".to_owned()),
        _ => Read::Bad("neither an answer nor a notification".to_owned()),
    }
}

/// Judges a result by its `resultType` (RPC-20, RPC-21).
fn result_outcome(result: Box<RawValue>) -> Outcome {
    match jsonrpc::at(&result, &["resultType"]).map(jsonrpc::string) {
        Some(Some(kind)) if kind == "complete" => Outcome::Complete(result),
        Some(Some(kind)) if kind == "input_required" => Outcome::InputRequired(result),
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

fn notification(envelope: &Envelope<'_>) -> Read {
    if envelope.method().as_deref() != Some(methods::PROGRESS) {
        return Read::Other;
    }
    let field = |name: &str| envelope.member("params").and_then(|params| jsonrpc::at(params, &[name]));
    let number = |name: &str| field(name).and_then(|raw| raw.get().parse::<f64>().ok());
    let token = field("progressToken").and_then(|raw| Id::from_raw(raw.get()));
    match (token, number("progress")) {
        (Some(token), Some(value)) => {
            let message = field("message").and_then(jsonrpc::string).map(std::borrow::Cow::into_owned);
            Read::Progress { token, progress: Progress { value, total: number("total"), message } }
        }
        _ => Read::Bad("progress without a token or a number".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame, told short.
    fn told(text: &str) -> String {
        match read(text.as_bytes()) {
            Read::Answer { id, outcome } => {
                let id = id.map_or_else(|| "-".to_owned(), |id| id.to_string());
                let outcome = match outcome {
                    Outcome::Complete(_) => "complete".to_owned(),
                    Outcome::InputRequired(_) => "input".to_owned(),
                    Outcome::Error { code, .. } => format!("error {code}"),
                    Outcome::Invalid(_) => "invalid".to_owned(),
                    other => format!("{other:?}"),
                };
                format!("{id} {outcome}")
            }
            Read::Progress { token, progress } => format!("{token} at {}", progress.value),
            Read::Other => "other".to_owned(),
            Read::Bad(_) => "bad".to_owned(),
        }
    }

    #[test]
    fn an_answer_is_judged_by_its_letter() {
        let cases = [
            (r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}"#, "1 complete"),
            (r#"{"jsonrpc":"2.0","id":"1","result":{"resultType":"input_required"}}"#, "\"1\" input"),
            (r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"task"}}"#, "1 invalid"),
            (r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":1}}"#, "1 invalid"),
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, "1 invalid"),
            (r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}"#, "1 error -32601"),
            (r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"no"}}"#, "- error -32700"),
            (r#"{"jsonrpc":"2.0","id":1,"error":{"code":1.5,"message":"no"}}"#, "1 invalid"),
            (r#"{"jsonrpc":"2.0","id":1,"error":{"code":1}}"#, "1 invalid"),
            (r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#, "bad"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#, "bad"),
            (r#"{"jsonrpc":"2.0","method":"notifications/message"}"#, "other"),
            (r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#, "bad"),
            (
                r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":0.5}}"#,
                "7 at 0.5",
            ),
            ("[]", "bad"),
            ("hello", "bad"),
            ("", "bad"),
        ];
        for (text, want) in cases {
            assert_eq!(told(text), want, "{text}");
        }
    }

    #[test]
    fn each_request_is_stamped_and_big_numbers_pass_unrounded() {
        let arguments: Box<RawValue> = serde_json::from_str(r#"{"n": 12345678901234567890123}"#).unwrap();
        let params = Params::from([("name".to_owned(), raw("größe")), ("arguments".to_owned(), arguments)]);
        let options = CallOptions { wants_progress: true, ..CallOptions::default() };
        let outgoing = Outgoing::new(3, "tools/call", params, &options);
        assert_eq!(outgoing.target.as_deref(), Some("größe"));
        let text = std::str::from_utf8(&outgoing.body).unwrap();
        assert!(text.contains(r#""arguments":{"n": 12345678901234567890123}"#), "{text}");
        let body: serde_json::Value = serde_json::from_str(text).unwrap();
        let meta = &body["params"]["_meta"];
        assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
        assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], json!({}));
        assert_eq!((&meta["progressToken"], &body["id"]), (&json!("progress-3"), &json!(3)));
    }
}

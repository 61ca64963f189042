//! What came in, read and checked as far as no transport is needed: JSON, shape, `_meta`,
//! version. Also how answers are written.

use std::borrow::Cow;

use bytes::Bytes;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::caller::Caller;
use super::questions::Said;
use crate::spec::era::Era;
use crate::spec::logging::Level;
use crate::spec::{codes, meta, methods};
use crate::wire::jsonrpc::{self, Envelope, Frame, Id, Kind};

/// The only revision that the server speaks.
pub(super) const VERSION: Era = Era::V2026_07_28;

/// A message of the client.
#[derive(Debug)]
pub(super) enum Message {
    Request(Request),
    Notification(Notification),
    /// A response. The modern era has no requests of a server, so it answers nothing.
    Response(Response),
}

/// A response of right shape.
#[derive(Debug)]
pub(super) struct Response {
    pub(super) id: Id,
    pub(super) said: Said,
}

/// What one frame holds.
#[derive(Debug)]
pub(super) enum Incoming {
    One(Message),
    /// A batch, which revision 2025-03-26 alone has; never empty.
    Many(Vec<Result<Message, Refusal>>),
}

impl Incoming {
    /// It holds at least one request.
    pub(super) fn has_request(&self) -> bool {
        match self {
            Incoming::One(message) => matches!(message, Message::Request(_)),
            Incoming::Many(messages) => messages.iter().any(|one| matches!(one, Ok(Message::Request(_)))),
        }
    }
}

/// A request of right shape.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) id: Id,
    pub(super) method: String,
    pub(super) params: Option<Box<RawValue>>,
}

/// A notification of right shape.
#[derive(Debug)]
pub(super) struct Notification {
    pub(super) method: String,
    pub(super) params: Option<Box<RawValue>>,
}

/// Why a request is not served: a JSON-RPC error.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Refusal {
    /// The id of the request; `None`: it could not be read.
    pub(super) id: Option<Id>,
    pub(super) code: i64,
    pub(super) message: String,
    pub(super) data: Option<Value>,
    /// Status that goes with it while no response head has been sent.
    pub(super) status: u16,
}

impl Refusal {
    pub(super) fn new(id: Option<&Id>, code: i64, message: impl Into<String>) -> Refusal {
        let status = codes::Code::find(code).and_then(|known| known.status).unwrap_or(400);
        Refusal { id: id.cloned(), code, message: message.into(), data: None, status }
    }

    /// A well-formed request with wrong parameters. ours: status 200, for HTTP did its part.
    pub(super) fn params(id: &Id, message: impl Into<String>) -> Refusal {
        Refusal { status: 200, ..Refusal::new(Some(id), codes::INVALID_PARAMS, message) }
    }

    pub(super) fn with_data(self, data: Value) -> Refusal {
        Refusal { data: Some(data), ..self }
    }

    /// The error response. An `id` is left out where none could be read.
    pub(super) fn to_bytes(&self) -> Bytes {
        let id = self.id.as_ref().map_or_else(String::new, |id| format!("\"id\":{id},"));
        let mut error = json!({ "code": self.code, "message": self.message });
        if let (Some(data), Some(error)) = (&self.data, error.as_object_mut()) {
            error.insert("data".to_owned(), data.clone());
        }
        Bytes::from(format!("{{\"jsonrpc\":\"2.0\",{id}\"error\":{error}}}"))
    }
}

/// Name and version of this server.
pub(super) fn server_info() -> Value {
    json!({ "name": "midwire-reference", "version": env!("CARGO_PKG_VERSION") })
}

/// A result response. Modern: marked complete where it does not say otherwise, with who answers.
/// Legacy: as it is.
pub(super) fn result(id: &Id, mut result: Map<String, Value>, era: Era) -> Bytes {
    if era.is_modern() {
        result.entry("resultType").or_insert_with(|| json!("complete"));
        let meta = result.entry("_meta").or_insert_with(|| json!({}));
        if let Some(meta) = meta.as_object_mut() {
            meta.insert(meta::SERVER_INFO.to_owned(), server_info());
        }
    }
    Bytes::from(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{}}}", Value::Object(result)))
}

/// A progress notification.
pub(super) fn progress(token: &Id, value: f64, total: Option<f64>, message: &str) -> Bytes {
    let value = number(value);
    let total = total.map_or_else(String::new, |total| format!(",\"total\":{}", number(total)));
    let message =
        if message.is_empty() { String::new() } else { format!(",\"message\":{}", Value::from(message)) };
    let params = format!("{{\"progressToken\":{token},\"progress\":{value}{total}{message}}}");
    Bytes::from(format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{}\",\"params\":{params}}}", methods::PROGRESS))
}

/// A log message.
pub(super) fn log(level: Level, logger: Option<&str>, data: &Value) -> Bytes {
    let mut params = json!({ "level": level.as_str(), "data": data });
    if let Some(logger) = logger {
        params["logger"] = json!(logger);
    }
    notification(methods::MESSAGE, &params)
}

/// A notification.
pub(super) fn notification(method: &str, params: &Value) -> Bytes {
    Bytes::from(json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string())
}

/// A notification without parameters.
pub(super) fn bare(method: &str) -> Bytes {
    Bytes::from(json!({ "jsonrpc": "2.0", "method": method }).to_string())
}

/// A notification of a subscription, with the id of its listen request as it was sent (SUB-03).
pub(super) fn tagged(method: &str, params: Map<String, Value>, subscription: &Id) -> Bytes {
    let meta = format!("\"_meta\":{{\"{}\":{subscription}}}", meta::SUBSCRIPTION_ID);
    let mut members = String::new();
    for (name, value) in params {
        members.extend([json!(name).to_string(), ":".to_owned(), value.to_string(), ",".to_owned()]);
    }
    let params = format!("{{{members}{meta}}}");
    Bytes::from(format!("{{\"jsonrpc\":\"2.0\",\"method\":{},\"params\":{params}}}", json!(method)))
}

/// The closing result of a subscription (SUB-13).
pub(super) fn closing(id: &Id) -> Bytes {
    let meta = format!("{{\"{}\":{id},\"{}\":{}}}", meta::SUBSCRIPTION_ID, meta::SERVER_INFO, server_info());
    let result = format!("{{\"resultType\":\"complete\",\"_meta\":{meta}}}");
    Bytes::from(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}"))
}

/// The server ends a subscription, on pipes (CAN-07).
pub(super) fn cancelled(id: &Id) -> Bytes {
    let params = format!("{{\"requestId\":{id},\"reason\":\"the server ends this subscription\"}}");
    Bytes::from(format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{}\",\"params\":{params}}}", methods::CANCELLED))
}

/// A request of the server; the legacy eras only.
pub(super) fn request(id: &Id, method: &str, params: &Value) -> Bytes {
    let method = Value::from(method);
    Bytes::from(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":{method},\"params\":{params}}}"))
}

/// Whole numbers without a fraction; what JSON cannot say as 0.
fn number(value: f64) -> String {
    if value.is_finite() { value.to_string() } else { "0".to_owned() }
}

/// Reads one frame that holds one message: JSON first, then shape.
pub(super) fn read(bytes: &[u8]) -> Result<Message, Refusal> {
    match read_any(bytes)? {
        Incoming::One(message) => Ok(message),
        Incoming::Many(_) => Err(no_batches()),
    }
}

/// The refusal of a batch.
pub(super) fn no_batches() -> Refusal {
    Refusal::new(None, codes::INVALID_REQUEST, "batches exist in revision 2025-03-26 only")
}

/// Reads one frame that may hold several messages.
pub(super) fn read_any(bytes: &[u8]) -> Result<Incoming, Refusal> {
    match jsonrpc::read(bytes) {
        Frame::Message(envelope) => message(&envelope).map(Incoming::One),
        Frame::NotJson { why, at } => {
            Err(Refusal::new(None, codes::PARSE_ERROR, format!("not JSON at byte {at}: {why}")))
        }
        Frame::NotUtf8 { at } => {
            Err(Refusal::new(None, codes::PARSE_ERROR, format!("not UTF-8 at byte {at}")))
        }
        Frame::Blank => Err(Refusal::new(None, codes::PARSE_ERROR, "an empty message")),
        Frame::Batch(items) if items.is_empty() => {
            Err(Refusal::new(None, codes::INVALID_REQUEST, "a batch of nothing"))
        }
        Frame::Batch(items) => Ok(Incoming::Many(items.iter().map(message).collect())),
        Frame::OtherJson => Err(Refusal::new(None, codes::INVALID_REQUEST, "a message is a JSON object")),
    }
}

/// What a client says that cannot be read.
const UNREADABLE: &str = "it cannot be read";

fn message(envelope: &Envelope<'_>) -> Result<Message, Refusal> {
    if let Some(fault) = envelope.faults.first() {
        let id = envelope.id();
        return Err(Refusal::new(id.as_ref(), codes::INVALID_REQUEST, format!("not a message: {fault:?}")));
    }
    let params = envelope.member("params").map(ToOwned::to_owned);
    let method = envelope.method().map(Cow::into_owned);
    match (envelope.kind, method, envelope.id()) {
        (Kind::Request, Some(method), Some(id)) => Ok(Message::Request(Request { id, method, params })),
        (Kind::Notification, Some(method), None) => {
            Ok(Message::Notification(Notification { method, params }))
        }
        (Kind::Result, _, Some(id)) => {
            let said = envelope.member("result").and_then(|raw| serde_json::from_str(raw.get()).ok());
            Ok(Message::Response(Response { id, said: said.ok_or_else(|| UNREADABLE.to_owned()) }))
        }
        (Kind::Error, _, Some(id)) => {
            let text = envelope.member("error").and_then(|error| jsonrpc::at(error, &["message"]));
            let text = text.and_then(jsonrpc::string).unwrap_or_else(|| UNREADABLE.into());
            Ok(Message::Response(Response { id, said: Err(text.into_owned()) }))
        }
        _ => Err(Refusal::new(None, codes::INVALID_REQUEST, "neither request nor notification")),
    }
}

impl Request {
    /// The raw text at a path below `params`.
    pub(super) fn at(&self, path: &[&str]) -> Option<&RawValue> {
        self.params.as_deref().and_then(|params| jsonrpc::at(params, path))
    }

    /// The string at a path below `params`.
    pub(super) fn string_at(&self, path: &[&str]) -> Option<Cow<'_, str>> {
        self.at(path).and_then(jsonrpc::string)
    }

    /// The value at a path below `params`; `None`: there is none, or it is nested too deep.
    pub(super) fn value_at(&self, path: &[&str]) -> Option<Value> {
        self.at(path).and_then(|raw| serde_json::from_str(raw.get()).ok())
    }

    /// The object at a path below `params`; an empty path is `params` itself.
    pub(super) fn object_at(&self, path: &[&str]) -> Option<Map<String, Value>> {
        match self.value_at(path)? {
            Value::Object(members) => Some(members),
            _ => None,
        }
    }

    /// The token under which progress is wanted (MET-11).
    pub(super) fn progress_token(&self) -> Result<Option<Id>, Refusal> {
        let Some(raw) = self.at(&["_meta", meta::PROGRESS_TOKEN]) else { return Ok(None) };
        let text = "progressToken is neither a string nor an integer";
        let wrong = || Refusal::new(Some(&self.id), codes::INVALID_PARAMS, text);
        Id::from_raw(raw.get()).map(Some).ok_or_else(wrong)
    }

    /// Checks the version that header and body agree on.
    pub(super) fn check_version(&self, caller: &Caller) -> Result<(), Refusal> {
        if caller.version == VERSION.as_str() { Ok(()) } else { Err(self.unsupported(&caller.version)) }
    }

    /// The refusal that says which versions there are (VER-01, VER-10).
    pub(super) fn unsupported(&self, requested: &str) -> Refusal {
        let text = format!("this server speaks {} only", VERSION.as_str());
        Refusal::new(Some(&self.id), codes::UNSUPPORTED_PROTOCOL_VERSION, text)
            .with_data(json!({ "supported": [VERSION.as_str()], "requested": requested }))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::spec::transport::Transport;

    const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}"#;

    /// How a frame is refused: id, code, status; `None`: it is not.
    fn refused(text: &str) -> Option<(Option<String>, i64, u16)> {
        let refusal = match read(text.as_bytes()) {
            Ok(Message::Request(request)) => Caller::modern(&request, Transport::Stdio)
                .and_then(|caller| request.check_version(&caller))
                .err()?,
            Ok(_) => return None,
            Err(refusal) => refusal,
        };
        Some((refusal.id.map(|id| id.to_string()), refusal.code, refusal.status))
    }

    #[test]
    fn a_frame_is_judged_in_order_json_shape_meta_version() {
        let with = |params: &str| format!(r#"{{"jsonrpc":"2.0","id":"a","method":"x","params":{params}}}"#);
        let old = META.replace("2026-07-28", "2025-11-25");
        let meta = |extra: &str| with(&format!("{{{META}{extra}}}}}"));
        let id = || Some("\"a\"".to_owned());
        let cases = [
            ("{".to_owned(), Some((None, -32700, 400))),
            (" ".to_owned(), Some((None, -32700, 400))),
            ("[]".to_owned(), Some((None, -32600, 400))),
            ("7".to_owned(), Some((None, -32600, 400))),
            (
                r#"{"jsonrpc":"1.0","id":1,"method":"x"}"#.to_owned(),
                Some((Some("1".to_owned()), -32600, 400)),
            ),
            (r#"{"jsonrpc":"2.0","id":null,"method":"x"}"#.to_owned(), Some((None, -32600, 400))),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"x"}"#.to_owned(), Some((None, -32600, 400))),
            (r#"{"jsonrpc":"2.0","id":1,"method":7}"#.to_owned(), Some((Some("1".to_owned()), -32600, 400))),
            (r#"{"jsonrpc":"2.0","id":"a","method":"x"}"#.to_owned(), Some((id(), -32602, 400))),
            (with("[]"), Some((id(), -32602, 400))),
            (with(r#"{"_meta":{}}"#), Some((id(), -32602, 400))),
            (
                with(r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#),
                Some((id(), -32602, 400)),
            ),
            (meta(r#","progressToken":1.5"#), Some((id(), -32602, 400))),
            (meta(r#","progressToken":null"#), Some((id(), -32602, 400))),
            (meta(r#","progressToken":"t""#), None),
            (meta(""), None),
            (with(&format!("{{{old}}}}}")), Some((id(), -32022, 400))),
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#.to_owned(), None),
            (r#"{"jsonrpc":"2.0","method":"notifications/x"}"#.to_owned(), None),
        ];
        for (frame, expected) in cases {
            assert_eq!(refused(&frame), expected, "{frame}");
        }
    }

    #[test]
    fn initialize_is_told_which_versions_there_are() {
        let text =
            r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#;
        let Ok(Message::Request(request)) = read(text.as_bytes()) else { panic!("a request") };
        let refusal = Caller::modern(&request, Transport::Stdio).unwrap_err();
        let expected = r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32022,"data":{"requested":"2025-11-25","supported":["2026-07-28"]},"message":"this server speaks 2026-07-28 only"}}"#;
        assert_eq!(refusal.to_bytes(), expected);
    }

    proptest! {
        /// Hostile input gets a message or a refusal that is one JSON object, never a panic.
        #[test]
        fn any_frame_gets_a_message_or_a_refusal(frame in hostile()) {
            let judged = read(&frame).and_then(|message| match message {
                Message::Request(request) => Caller::modern(&request, Transport::Stdio).and_then(|caller| request.check_version(&caller)),
                Message::Notification(_) | Message::Response(_) => Ok(()),
            });
            if let Err(refusal) = judged {
                let answer: Value = serde_json::from_slice(&refusal.to_bytes()).unwrap();
                prop_assert_eq!(&answer["error"]["code"], &json!(refusal.code));
            }
        }
    }

    /// Arbitrary bytes, and requests with arbitrary text in the places that are read.
    fn hostile() -> impl Strategy<Value = Vec<u8>> {
        let value = prop_oneof![
            any::<String>().prop_map(|text| Value::from(text).to_string()),
            any::<f64>().prop_map(|number| number.to_string()),
            prop::sample::select(vec!["null", "[]", "{}", "{\"a\":1}", "1e999", "-0", "\"\\ud800\""])
                .prop_map(str::to_owned),
        ];
        let request = prop::array::uniform4(value).prop_map(|[id, method, version, rest]| {
            let keys = (meta::PROTOCOL_VERSION, meta::CLIENT_CAPABILITIES);
            let meta = format!("{{\"{}\":{version},\"{}\":{rest},\"progressToken\":{id}}}", keys.0, keys.1);
            let params = format!("{{\"name\":{rest},\"_meta\":{meta}}}");
            let text = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":{method},\"params\":{params}}}");
            text.into_bytes()
        });
        prop_oneof![prop::collection::vec(any::<u8>(), 0..200), request]
    }

    #[test]
    fn ids_and_tokens_come_back_with_their_type_and_all_their_digits() {
        for raw in ["1", "\"1\"", "18446744073709551617", "\"\\\"\"", "-3"] {
            let id = Id::from_raw(raw).unwrap();
            let answer = result(&id, Map::new(), VERSION);
            let Frame::Message(envelope) = jsonrpc::read(&answer) else { panic!("a message") };
            assert_eq!((envelope.id(), envelope.kind), (Some(id.clone()), Kind::Result));
            let told = progress(&id, 0.5, Some(2.0), "half\n");
            let told: Value = serde_json::from_slice(&told).unwrap();
            assert_eq!(
                told["params"]["progressToken"].to_string(),
                serde_json::from_str::<Value>(raw).unwrap().to_string()
            );
            assert_eq!(told["params"]["total"].to_string(), "2");
        }
    }
}

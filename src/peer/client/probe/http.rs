//! The eight points of Streamable HTTP, revision 2026-07-28.

use bytes::Bytes;
use hyper::Method;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{Point, PointState};
use crate::peer::client::http::{Link, RawAnswer};
use crate::peer::client::message::Speech;
use crate::spec::era::Era;
use crate::spec::{codes, headers, meta, methods};
use crate::time::Ms;

/// A revision that no server speaks.
const FUTURE: &str = "2999-12-31";
/// A method that no server has.
const NO_METHOD: &str = "midwire/no-such-method";
/// A page that no server knows.
const FOREIGN: &str = "http://midwire-probe.invalid";

/// One point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HttpPoint {
    /// One endpoint takes POSTs and answers each with its own response.
    Endpoint,
    /// What a POST is answered with.
    Media,
    /// Fields that do not mirror the body are refused.
    Mirror,
    /// A revision that is not spoken is refused in the right shape.
    Version,
    /// A method that does not exist has its status.
    Unknown,
    /// GET and DELETE.
    Verbs,
    /// A page from elsewhere is refused.
    Origin,
    /// No session is handed out.
    Session,
}

/// What is known so far.
#[derive(Debug)]
pub(super) struct Seen {
    /// The server has proven to be modern.
    pub(super) is_modern: bool,
    /// Revisions that it offers.
    pub(super) offered: Option<Vec<String>>,
    /// A modern request was answered, with or without a session id.
    pub(super) has_session: Option<bool>,
}

/// What came of one request; in words where there was no answer.
type Came = Result<RawAnswer, String>;

impl HttpPoint {
    pub(super) const ALL: [HttpPoint; 8] = [
        HttpPoint::Endpoint,
        HttpPoint::Media,
        HttpPoint::Mirror,
        HttpPoint::Version,
        HttpPoint::Unknown,
        HttpPoint::Verbs,
        HttpPoint::Origin,
        HttpPoint::Session,
    ];

    fn name(self) -> &'static str {
        match self {
            HttpPoint::Endpoint => "endpoint",
            HttpPoint::Media => "media",
            HttpPoint::Mirror => "mirror",
            HttpPoint::Version => "version",
            HttpPoint::Unknown => "unknown method",
            HttpPoint::Verbs => "verbs",
            HttpPoint::Origin => "origin",
            HttpPoint::Session => "session",
        }
    }

    /// The rule that the point is judged by.
    fn rule(self) -> &'static str {
        match self {
            HttpPoint::Endpoint => "HTTP-18",
            HttpPoint::Media => "HTTP-16",
            HttpPoint::Mirror => "HTTP-10",
            HttpPoint::Version => "VER-01",
            HttpPoint::Unknown => "HTTP-14",
            HttpPoint::Verbs => "HTTP-19",
            HttpPoint::Origin => "HTTP-23",
            HttpPoint::Session => "HTTP-21",
        }
    }

    pub(super) async fn look(self, link: &Link, seen: &mut Seen, limit: Ms) -> Point {
        let (sent, state, came) = self.ask(link, seen, limit).await;
        Point { name: self.name(), rule: self.rule(), sent, came, state }
    }

    async fn ask(self, link: &Link, seen: &mut Seen, limit: Ms) -> (String, PointState, String) {
        let not = |sent: String, why: &str| (sent, PointState::NotObserved, why.to_owned());
        let discover = Request::new(methods::DISCOVER);
        match self {
            HttpPoint::Endpoint => {
                let came = discover.post(link, limit).await;
                let sent = format!("POST {}", methods::DISCOVER);
                if let Ok(answer) = &came {
                    seen.has_session = Some(answer.fields.contains_key(headers::SESSION_ID));
                }
                if !seen.is_modern {
                    return not(sent, "the server has not proven to be modern");
                }
                judged(sent, came, is_own_result)
            }
            HttpPoint::Media => {
                let notification = Request::new(methods::CANCELLED).without_id();
                let came = notification.post(link, limit).await;
                let sent = format!("POST {} for a request that is none", methods::CANCELLED);
                if !seen.is_modern {
                    return not(sent, "the server has not proven to be modern");
                }
                judged(sent, came, |answer| {
                    if answer.status == 202 && answer.body.is_empty() {
                        return Ok(());
                    }
                    // An error in the place of 202 is allowed: which fields such a POST needs is
                    // not said (spec 2026-07-28 basic/transports/streamable-http).
                    if answer.status >= 400 { Ok(()) } else { Err("not 202 without a body") }
                })
            }
            HttpPoint::Mirror => {
                let wrong = discover.with_field(headers::METHOD, methods::TOOLS_LIST);
                let came = wrong.post(link, limit).await;
                let sent =
                    format!("POST {} with {}: {}", methods::DISCOVER, headers::METHOD, methods::TOOLS_LIST);
                if !seen.is_modern {
                    return not(sent, "the server has not proven to be modern");
                }
                judged(sent, came, |answer| is_refusal(answer, 400, codes::HEADER_MISMATCH))
            }
            HttpPoint::Version => {
                let came = discover.of_version(FUTURE).post(link, limit).await;
                let sent = format!("POST {} in revision {FUTURE}", methods::DISCOVER);
                if !seen.is_modern {
                    return not(sent, "the server has not proven to be modern");
                }
                judged(sent, came, is_version_refusal)
            }
            HttpPoint::Unknown => {
                let came = Request::new(NO_METHOD).post(link, limit).await;
                let sent = format!("POST {NO_METHOD}");
                if !seen.is_modern {
                    return not(sent, "the server has not proven to be modern");
                }
                judged(sent, came, |answer| is_refusal(answer, 404, codes::METHOD_NOT_FOUND))
            }
            HttpPoint::Verbs => verbs(link, seen, limit).await,
            HttpPoint::Origin => {
                let came = discover.with_field("Origin", FOREIGN).post(link, limit).await;
                let sent = format!("POST {} with Origin: {FOREIGN}", methods::DISCOVER);
                judged(sent, came, |answer| if answer.status == 403 { Ok(()) } else { Err("not 403") })
            }
            HttpPoint::Session => {
                let sent = format!("nothing more: the answer to {}", methods::DISCOVER);
                match seen.has_session {
                    _ if !seen.is_modern => not(sent, "the server has not proven to be modern"),
                    None => not(sent, "there was no answer"),
                    Some(false) => (sent, PointState::Ok, format!("no {}", headers::SESSION_ID)),
                    Some(true) => (sent, PointState::Violated, format!("a {}", headers::SESSION_ID)),
                }
            }
        }
    }
}

/// GET and DELETE. A server that speaks an older revision as well has them for that.
async fn verbs(link: &Link, seen: &Seen, limit: Ms) -> (String, PointState, String) {
    let (mut told, mut is_good) = (Vec::new(), true);
    for method in [Method::GET, Method::DELETE] {
        let name = method.to_string();
        let fields = [
            ("Accept".to_owned(), headers::EVENT_STREAM.to_owned()),
            (headers::PROTOCOL_VERSION.to_owned(), Speech::modern().version),
        ];
        match raw(link, method, &fields, Bytes::new(), limit).await {
            Ok(answer) => {
                is_good &= answer.status == 405;
                told.push(format!("{name} status {}", answer.status));
            }
            Err(why) => {
                is_good = false;
                told.push(format!("{name} {why}"));
            }
        }
    }
    let is_dual = seen.offered.as_ref().is_some_and(|offered| {
        offered.iter().any(|name| Era::from_name(name).is_some_and(|era| !era.is_modern()))
    });
    let mut came = told.join(", ");
    let state = match (seen.is_modern, is_good) {
        (_, true) => PointState::Ok,
        (true, false) if !is_dual => PointState::Violated,
        (true, false) => {
            came.push_str("; it offers older revisions, which have them");
            PointState::Ok
        }
        (false, false) => PointState::NotObserved,
    };
    ("GET and DELETE".to_owned(), state, came)
}

/// One request as it should be, or with one thing wrong.
#[derive(Debug, Clone)]
struct Request {
    body: Value,
    fields: Vec<(String, String)>,
}

impl Request {
    fn new(method: &str) -> Request {
        let version = Speech::modern().version;
        let fields = [
            ("Accept", "application/json, text/event-stream"),
            ("Content-Type", headers::JSON),
            (headers::PROTOCOL_VERSION, &version),
            (headers::METHOD, method),
        ];
        let stamp = json!({
            meta::PROTOCOL_VERSION: version,
            meta::CLIENT_CAPABILITIES: {},
            meta::CLIENT_INFO: { "name": "midwire-probe", "version": env!("CARGO_PKG_VERSION") },
        });
        let params = json!({ "_meta": stamp });
        Request {
            body: json!({ "jsonrpc": "2.0", "id": method, "method": method, "params": params }),
            fields: fields.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        }
    }

    /// A notification, about a request that was never made.
    fn without_id(mut self) -> Request {
        if let Some(members) = self.body.as_object_mut() {
            members.remove("id");
        }
        self.body["params"]["requestId"] = json!("midwire-no-such-request");
        self
    }

    fn with_field(&self, name: &str, value: &str) -> Request {
        let mut request = self.clone();
        request.fields.retain(|(other, _)| other != name);
        request.fields.push((name.to_owned(), value.to_owned()));
        request
    }

    fn of_version(&self, version: &str) -> Request {
        let mut request = self.with_field(headers::PROTOCOL_VERSION, version);
        request.body["params"]["_meta"][meta::PROTOCOL_VERSION] = json!(version);
        request
    }

    async fn post(&self, link: &Link, limit: Ms) -> Came {
        raw(link, Method::POST, &self.fields, self.body.to_string().into(), limit).await
    }
}

async fn raw(link: &Link, method: Method, fields: &[(String, String)], body: Bytes, limit: Ms) -> Came {
    match timeout(limit.into(), link.raw(method, fields, body)).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("no answer within {} ms", limit.0)),
    }
}

fn judged(
    sent: String,
    came: Came,
    judge: impl Fn(&RawAnswer) -> Result<(), &'static str>,
) -> (String, PointState, String) {
    match came {
        Err(why) => (sent, PointState::NotObserved, why),
        Ok(answer) => match judge(&answer) {
            Ok(()) => (sent, PointState::Ok, told(&answer)),
            Err(why) => (sent, PointState::Violated, format!("{}: {why}", told(&answer))),
        },
    }
}

/// Status and code of an answer.
fn told(answer: &RawAnswer) -> String {
    let message = message(answer);
    let code = message["error"]["code"].as_i64().map(|code| format!(", error {code}"));
    let result = message.get("result").map(|_| ", a result".to_owned());
    format!("status {}{}", answer.status, code.or(result).unwrap_or_default())
}

fn message(answer: &RawAnswer) -> Value {
    serde_json::from_slice(&answer.body).unwrap_or_default()
}

fn is_own_result(answer: &RawAnswer) -> Result<(), &'static str> {
    let content_type = answer.fields.get("Content-Type").and_then(|value| value.to_str().ok());
    let has_type = |media| content_type.is_some_and(|value| headers::is_media_type(value, media));
    if !has_type(headers::JSON) && !has_type(headers::EVENT_STREAM) {
        return Err("neither JSON nor an event stream (HTTP-17)");
    }
    let message = message(answer);
    if message["id"] != methods::DISCOVER {
        return Err("not the response to the request");
    }
    if message["result"].is_object() != (answer.status == 200) {
        return Err("status and response say different things");
    }
    Ok(())
}

fn is_refusal(answer: &RawAnswer, status: u16, code: i64) -> Result<(), &'static str> {
    if answer.status != status {
        return Err(if status == 404 { "not 404" } else { "not 400" });
    }
    if message(answer)["error"]["code"] != code {
        return Err(if status == 404 { "not -32601" } else { "not the code of this refusal" });
    }
    Ok(())
}

fn is_version_refusal(answer: &RawAnswer) -> Result<(), &'static str> {
    is_refusal(answer, 400, codes::UNSUPPORTED_PROTOCOL_VERSION)?;
    let message = message(answer);
    let data = &message["error"]["data"];
    let is_list = data["supported"].as_array().is_some_and(|list| list.iter().all(Value::is_string));
    match (is_list, data["requested"] == FUTURE) {
        (true, true) => Ok(()),
        (false, _) => Err("data.supported is no list of revisions"),
        (true, false) => Err("data.requested is not what was asked for"),
    }
}

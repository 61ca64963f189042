//! Exchanges of legacy clients without sockets, on paused time.

mod answers;
mod streams;

use http_body_util::{BodyExt, Full};
use hyper::Request as HttpRequest;
use serde_json::{Value, json};

use super::*;
use crate::peer::server::ServerOptions;
use crate::peer::server::core::Core;
use crate::peer::server::http::respond;
use crate::time::TimerClock;

fn core(era: ServerEra, mode: AnswerMode) -> SharedCore {
    Core::new(ServerOptions { era, mode, ..ServerOptions::default() })
}

/// A client with its session, or before it has one.
#[derive(Clone)]
struct Client {
    core: SharedCore,
    fields: Vec<(&'static str, String)>,
}

/// What an exchange gave: status, head, and the messages of its body in order.
#[derive(Debug)]
struct Got {
    status: u16,
    session: Option<String>,
    is_stream: bool,
    /// Ids of events, where it is a stream.
    ids: Vec<String>,
    messages: Vec<Value>,
}

impl Client {
    fn new(core: &SharedCore) -> Client {
        let fields = vec![
            ("accept", "application/json, text/event-stream".to_owned()),
            ("content-type", "application/json".to_owned()),
        ];
        Client { core: core.clone(), fields }
    }

    /// With a session of this revision.
    async fn connected(core: &SharedCore, version: &str, capabilities: Value) -> Client {
        let client = Client::new(core);
        let got = client.post(&initialize(version, &capabilities)).await;
        assert_eq!(got.messages[0]["result"]["protocolVersion"], version, "{got:?}");
        let client = client.field("mcp-session-id", got.session.as_deref());
        let client = client.field("mcp-protocol-version", Some(version));
        assert_eq!(client.post(&note("notifications/initialized")).await.status, 202);
        client
    }

    /// With this field set, or taken away.
    fn field(mut self, name: &'static str, value: Option<&str>) -> Client {
        self.fields.retain(|(known, _)| *known != name);
        self.fields.extend(value.map(|value| (name, value.to_owned())));
        self
    }

    async fn send(&self, method: &str, body: &str) -> HttpResponse<Answer> {
        let mut request = HttpRequest::builder().method(method).uri("/mcp");
        for (name, value) in &self.fields {
            request = request.header(*name, value);
        }
        let request = request.body(Full::new(Bytes::from(body.to_owned()))).unwrap();
        respond(self.core.clone(), request, None).await
    }

    async fn post(&self, body: &Value) -> Got {
        got(self.send("POST", &body.to_string()).await).await
    }

    async fn call(&self, id: i64, tool: &str, arguments: Value) -> Got {
        self.post(&call(id, tool, arguments)).await
    }

    /// Events of a GET, this many with data.
    async fn get(&self, last: Option<&str>, count: usize) -> Got {
        let client = self.clone().field("last-event-id", last);
        let mut answer = client.send("GET", "").await;
        let text = read_events(&mut answer, count).await;
        Got::read(answer.status().as_u16(), None, true, &text)
    }
}

impl Got {
    fn read(status: u16, session: Option<String>, is_stream: bool, text: &str) -> Got {
        let mut got = Got { status, session, is_stream, ids: Vec::new(), messages: Vec::new() };
        if !is_stream {
            got.messages.extend(serde_json::from_str::<Value>(text));
            return got;
        }
        for line in text.lines() {
            if let Some(id) = line.strip_prefix("id: ") {
                got.ids.push(id.to_owned());
            }
            if let Some(data) = line.strip_prefix("data: ") {
                got.messages.push(serde_json::from_str(data).unwrap());
            }
        }
        got
    }

    fn result(&self) -> &Value {
        &self.messages.last().unwrap()["result"]
    }

    fn code(&self) -> i64 {
        self.messages.last().map_or(0, |message| message["error"]["code"].as_i64().unwrap_or(0))
    }
}

async fn got(answer: HttpResponse<Answer>) -> Got {
    let status = answer.status().as_u16();
    let field = |name| answer.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
    let is_stream = field("content-type").is_some_and(|kind| kind == "text/event-stream");
    let session = field("mcp-session-id");
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    Got::read(status, session, is_stream, std::str::from_utf8(&body).unwrap())
}

/// Text of a stream up to so many events with data, or to its end.
async fn read_events(answer: &mut HttpResponse<Answer>, count: usize) -> String {
    let mut text = String::new();
    while text.lines().filter(|line| line.starts_with("data: ")).count() < count {
        let frame = tokio::time::timeout(Ms(3_600_000).into(), answer.body_mut().frame()).await;
        let Some(frame) = frame.expect("nothing comes for an hour") else { break };
        text.push_str(std::str::from_utf8(&frame.unwrap().into_data().unwrap()).unwrap());
    }
    text
}

fn initialize(version: &str, capabilities: &Value) -> Value {
    let info = json!({ "name": "test", "version": "1" });
    let params = json!({ "protocolVersion": version, "capabilities": capabilities, "clientInfo": info });
    json!({ "jsonrpc": "2.0", "id": "init", "method": "initialize", "params": params })
}

fn note(method: &str) -> Value {
    json!({ "jsonrpc": "2.0", "method": method })
}

fn request(id: i64, method: &str, params: Value) -> Value {
    let mut message = json!({ "jsonrpc": "2.0", "id": id, "method": method });
    message["params"] = params;
    message
}

fn call(id: i64, tool: &str, arguments: Value) -> Value {
    let mut params = json!({ "name": tool, "_meta": { "progressToken": id } });
    params["arguments"] = arguments;
    request(id, "tools/call", params)
}

fn cancel(id: i64) -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } })
}

const ALL: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
const STREAMABLE: [&str; 3] = ["2025-03-26", "2025-06-18", "2025-11-25"];

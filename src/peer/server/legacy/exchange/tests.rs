//! Exchanges of legacy clients without sockets, on paused time.

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

#[tokio::test(start_paused = true)]
async fn a_session_serves_every_revision_without_marks_of_the_modern_one() {
    for era in [ServerEra::Legacy, ServerEra::Dual, ServerEra::LenientLegacy, ServerEra::SilentLegacy] {
        let core = core(era, AnswerMode::Auto);
        for version in ALL {
            let client = Client::connected(&core, version, json!({})).await;
            let listed = client.post(&request(1, "tools/list", json!({}))).await;
            let echoed = client.call(2, "echo", json!({ "text": "hi" })).await;
            assert_eq!(echoed.result()["content"][0]["text"], "hi", "{era:?} {version}");
            assert!(!listed.result()["tools"].as_array().unwrap().is_empty());
            for got in [&listed, &echoed] {
                assert_eq!((got.status, got.is_stream), (200, false));
                for name in ["resultType", "_meta", "ttlMs", "cacheScope"] {
                    assert!(got.result().get(name).is_none(), "{name}");
                }
            }
            assert_eq!(client.post(&request(3, "ping", json!({}))).await.result(), &json!({}));
        }
    }
}

/// What it is, method, client, body, status and code.
type Exchange = (&'static str, &'static str, Client, Value, (u16, i64));

#[tokio::test(start_paused = true)]
async fn each_exchange_has_its_status_and_code() {
    let core = core(ServerEra::Legacy, AnswerMode::Auto);
    let whole = Client::connected(&core, "2025-11-25", json!({})).await;
    let old = Client::connected(&core, "2025-03-26", json!({})).await;
    let list = request(1, "tools/list", json!({}));
    let method = |method| request(1, method, json!({}));
    let field = |name, value| whole.clone().field(name, value);
    let level = |level| request(1, "logging/setLevel", json!({ "level": level }));
    let uri = json!({ "uri": "notes://today" });
    let cases: Vec<Exchange> = vec![
        ("right", "POST", whole.clone(), list.clone(), (200, 0)),
        ("no session", "POST", field("mcp-session-id", None), list.clone(), (400, -32600)),
        ("unknown session", "POST", field("mcp-session-id", Some("x")), list.clone(), (404, -32600)),
        ("no version", "POST", field("mcp-protocol-version", None), list.clone(), (200, 0)),
        ("no revision", "POST", field("mcp-protocol-version", Some("1")), list.clone(), (400, -32600)),
        ("another's", "POST", field("mcp-protocol-version", Some("2025-06-18")), list.clone(), (400, -32600)),
        ("modern", "POST", field("mcp-protocol-version", Some("2026-07-28")), list.clone(), (400, -32600)),
        (
            "field unknown then",
            "POST",
            old.clone().field("mcp-protocol-version", Some("1")),
            list.clone(),
            (200, 0),
        ),
        ("no accept", "POST", field("accept", None), list.clone(), (406, 0)),
        ("no type", "POST", field("content-type", None), list.clone(), (415, 0)),
        ("foreign origin", "POST", field("origin", Some("http://evil.example")), list.clone(), (403, 0)),
        ("unknown method", "POST", whole.clone(), method("tools/x"), (200, -32601)),
        ("modern method", "POST", whole.clone(), method("server/discover"), (200, -32601)),
        ("again", "POST", whole.clone(), initialize("2025-11-25", &json!({})), (200, 0)),
        ("no version asked", "POST", whole.clone(), method("initialize"), (200, -32602)),
        ("level", "POST", whole.clone(), level("debug"), (200, 0)),
        ("no level", "POST", whole.clone(), level("loud"), (200, -32602)),
        ("subscribe", "POST", whole.clone(), request(1, "resources/subscribe", uri.clone()), (200, 0)),
        (
            "subscribe to an unknown one",
            "POST",
            whole.clone(),
            request(1, "resources/subscribe", json!({ "uri": "a:b" })),
            (200, -32002),
        ),
        (
            "read an unknown one",
            "POST",
            whole.clone(),
            request(1, "resources/read", json!({ "uri": "a:b" })),
            (200, -32002),
        ),
        ("unsubscribe", "POST", whole.clone(), request(1, "resources/unsubscribe", uri), (200, 0)),
        ("subscribe to nothing", "POST", whole.clone(), method("resources/subscribe"), (200, -32602)),
        ("unknown tool", "POST", whole.clone(), call(1, "nothing", json!({})), (200, -32602)),
        ("batch", "POST", whole.clone(), json!([list]), (400, -32600)),
        ("batch of nothing", "POST", old.clone(), json!([]), (400, -32600)),
        ("notification", "POST", whole.clone(), note("notifications/roots/list_changed"), (202, 0)),
        ("stray answer", "POST", whole.clone(), json!({ "jsonrpc": "2.0", "id": 7, "result": {} }), (202, 0)),
        ("PUT", "PUT", whole.clone(), json!(null), (405, 0)),
        ("GET without session", "GET", field("mcp-session-id", None), json!(null), (400, 0)),
        ("GET of an unknown session", "GET", field("mcp-session-id", Some("x")), json!(null), (404, 0)),
        ("GET for JSON", "GET", field("accept", Some("application/json")), json!(null), (406, 0)),
        ("GET after no event", "GET", field("last-event-id", Some("x")), json!(null), (400, 0)),
        ("GET of no stream", "GET", field("last-event-id", Some("99-1")), json!(null), (400, 0)),
        ("DELETE without session", "DELETE", field("mcp-session-id", None), json!(null), (400, 0)),
        ("DELETE of an unknown session", "DELETE", field("mcp-session-id", Some("x")), json!(null), (404, 0)),
        ("DELETE", "DELETE", old.clone(), json!(null), (204, 0)),
        ("after it", "POST", old.clone(), list.clone(), (404, -32600)),
        ("and again", "DELETE", old, json!(null), (404, 0)),
    ];
    for (name, method, client, body, expected) in cases {
        let got = got(client.send(method, &body.to_string()).await).await;
        assert_eq!((got.status, got.code()), expected, "{name} {got:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn progress_makes_a_stream_whose_events_have_ids() {
    for version in STREAMABLE {
        let core = core(ServerEra::Legacy, AnswerMode::Auto);
        let client = Client::connected(&core, version, json!({})).await;
        let got = client.call(5, "slow", json!({ "steps": 2, "step_ms": 10 })).await;
        let progress: Vec<_> =
            got.messages.iter().map(|message| message["params"]["progress"].as_i64()).collect();
        assert_eq!(progress, [Some(1), Some(2), None]);
        let stream = got.ids[0].split('-').next().unwrap().to_owned();
        let numbers: &[i64] = if version == "2025-11-25" { &[0, 1, 2, 3] } else { &[1, 2, 3] };
        let expected: Vec<String> = numbers.iter().map(|number| format!("{stream}-{number}")).collect();
        assert_eq!(got.ids, expected, "{version}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_broken_connection_is_no_cancel_and_the_rest_waits_for_the_client() {
    let core = core(ServerEra::Dual, AnswerMode::Auto);
    let client = Client::connected(&core, "2025-11-25", json!({})).await;
    let slow = call(5, "slow", json!({ "steps": 4, "step_ms": 10 })).to_string();
    let mut answer = client.send("POST", &slow).await;
    let seen = read_events(&mut answer, 2).await;
    drop(answer);
    let seen = Got::read(200, None, true, &seen);
    assert_eq!(seen.messages.len(), 2);
    let rest = client.get(seen.ids.last().map(String::as_str), 99).await;
    let progress: Vec<_> =
        rest.messages.iter().map(|message| message["params"]["progress"].as_i64()).collect();
    assert_eq!(progress, [Some(3), Some(4), None]);
    assert_eq!(rest.result()["content"][0]["text"], "4 steps done");
    // Another client knows the number of the event, but not the session.
    let other = Client::connected(&core, "2025-11-25", json!({})).await;
    let refused = other.field("last-event-id", seen.ids.last().map(String::as_str)).send("GET", "").await;
    assert_eq!(refused.status(), 400);
}

#[tokio::test(start_paused = true)]
async fn a_posted_cancel_ends_the_call_and_its_stream_without_an_answer() {
    for mode in [AnswerMode::Auto, AnswerMode::Sse, AnswerMode::Json] {
        let core = core(ServerEra::Legacy, mode);
        let client = Client::connected(&core, "2025-06-18", json!({})).await;
        let (answer, cancelled) = tokio::join!(client.call(5, "silent", json!({})), async {
            tokio::time::sleep(Ms(10).into()).await;
            client.post(&cancel(5)).await
        });
        assert_eq!(cancelled.status, 202);
        assert!(answer.messages.is_empty(), "{answer:?}");
        // Its id and its token are free, and the session goes on.
        assert_eq!(client.call(5, "echo", json!({})).await.status, 200);
    }
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_session_cancels_what_runs_in_it() {
    let core = core(ServerEra::Legacy, AnswerMode::Auto);
    let client = Client::connected(&core, "2025-11-25", json!({})).await;
    let other = Client::connected(&core, "2025-11-25", json!({})).await;
    let (called, listened, deleted, in_other) = tokio::join!(
        client.call(1, "silent", json!({})),
        client.get(None, 99),
        async {
            tokio::time::sleep(Ms(10).into()).await;
            client.send("DELETE", "").await.status().as_u16()
        },
        other.call(1, "silent", json!({ "ms": 50 })),
    );
    assert_eq!(deleted, 204);
    assert!(called.messages.is_empty() && listened.messages.is_empty());
    assert_eq!(in_other.result()["content"][0]["text"], "nothing was said for 50 ms");
    assert_eq!(other.send("DELETE", "").await.status(), 204);
    core.handlers.close();
    tokio::time::timeout(Ms(1000).into(), core.handlers.wait()).await.expect("a handler goes on");
    assert_eq!(core.hub.len(), 0, "nobody listens any more");
}

#[tokio::test(start_paused = true)]
async fn the_server_asks_on_the_stream_of_the_call_and_waits_for_the_answer() {
    for (action, content, expected) in
        [("accept", json!({ "name": "Ada" }), "Hello, Ada"), ("decline", json!(null), "No name, no greeting")]
    {
        let core = core(ServerEra::Dual, AnswerMode::Auto);
        let client = Client::connected(&core, "2025-11-25", json!({ "elicitation": {} })).await;
        let mut answer = client.send("POST", &call(1, "ask_user", json!({})).to_string()).await;
        let asked = Got::read(200, None, true, &read_events(&mut answer, 1).await);
        let question = &asked.messages[0];
        assert_eq!(question["method"], "elicitation/create");
        let said = json!({ "action": action, "content": content });
        // In another session the same id means nothing.
        let other = Client::connected(&core, "2025-11-25", json!({})).await;
        let response = json!({ "jsonrpc": "2.0", "id": question["id"], "result": said });
        assert_eq!(other.post(&response).await.status, 202);
        assert_eq!(client.post(&response).await.status, 202);
        let rest = got(answer).await;
        assert_eq!(rest.result()["content"][0]["text"], expected);
    }
}

#[tokio::test(start_paused = true)]
async fn who_cannot_be_asked_is_told_so_as_the_result() {
    for (version, capabilities) in [("2025-11-25", json!({})), ("2025-03-26", json!({ "elicitation": {} }))] {
        let core = core(ServerEra::Legacy, AnswerMode::Auto);
        let client = Client::connected(&core, version, capabilities).await;
        let got = client.call(1, "ask_user", json!({})).await;
        assert_eq!(got.result()["isError"], true, "{got:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_body_has_no_events_and_questions_go_to_the_standing_stream() {
    let core = core(ServerEra::Legacy, AnswerMode::Json);
    let client = Client::connected(&core, "2025-06-18", json!({ "elicitation": {} })).await;
    let slow = client.call(1, "slow", json!({ "steps": 2, "step_ms": 10 })).await;
    assert_eq!((slow.is_stream, slow.messages.len()), (false, 1));
    let (answer, asked) = tokio::join!(client.call(2, "ask_user", json!({})), async {
        let asked = client.get(None, 1).await;
        let said = json!({ "action": "accept", "content": { "name": "Ada" } });
        client.post(&json!({ "jsonrpc": "2.0", "id": asked.messages[0]["id"], "result": said })).await;
        asked
    });
    assert_eq!(asked.messages[0]["method"], "elicitation/create");
    assert_eq!(answer.result()["content"][0]["text"], "Hello, Ada");
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_answered_together_in_the_one_revision_that_has_them() {
    for mode in [AnswerMode::Auto, AnswerMode::Sse, AnswerMode::Json] {
        let core = core(ServerEra::Legacy, mode);
        let client = Client::connected(&core, "2025-03-26", json!({})).await;
        let batch = json!([
            call(1, "slow", json!({ "steps": 1, "step_ms": 10 })),
            note("notifications/roots/list_changed"),
            request(2, "ping", json!({})),
            request(3, "nothing", json!({})),
            { "jsonrpc": "2.0", "id": 4 },
        ]);
        let got = client.post(&batch).await;
        let answers = got.messages.last().unwrap().as_array().unwrap();
        let mut ids: Vec<String> = answers.iter().map(|answer| answer["id"].to_string()).collect();
        ids.sort();
        assert_eq!(ids, ["1", "2", "3", "4"], "{mode:?} {got:?}");
        assert_eq!(got.messages.len(), if mode == AnswerMode::Json { 1 } else { 2 }, "progress comes before");
        let notes = client.post(&json!([note("notifications/initialized")])).await;
        assert_eq!((notes.status, notes.messages.len()), (202, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_second_reader_of_the_standing_stream_takes_over() {
    let core = core(ServerEra::Legacy, AnswerMode::Auto);
    let client = Client::connected(&core, "2025-11-25", json!({})).await;
    let mut first = client.send("GET", "").await;
    read_events(&mut first, 0).await;
    let second = client.send("GET", "").await;
    let text = read_events(&mut first, 99).await;
    assert!(!text.contains("data: "), "{text}");
    assert_eq!(second.status(), 200);
}

#[tokio::test(start_paused = true)]
async fn a_session_is_told_of_every_list_and_of_the_resources_that_it_watches() {
    let core = core(ServerEra::Dual, AnswerMode::Auto);
    let watching = Client::connected(&core, "2025-11-25", json!({})).await;
    let other = Client::connected(&core, "2025-06-18", json!({})).await;
    let uri = json!({ "uri": "notes://today" });
    watching.post(&request(1, "resources/subscribe", uri.clone())).await;
    watching.post(&request(1, "resources/subscribe", uri.clone())).await;
    let write = json!({ "name": "today", "text": "another text" });
    let change = async |client: &Client| {
        client.call(2, "note_write", write.clone()).await;
        client.call(3, "switch_extra", json!({ "what": "prompt" })).await;
    };
    change(&other).await;
    let methods = |got: &Got| -> Vec<String> {
        got.messages.iter().map(|message| message["method"].as_str().unwrap().to_owned()).collect()
    };
    let (updated, prompts) = ("notifications/resources/updated", "notifications/prompts/list_changed");
    let got = watching.get(None, 2).await;
    assert_eq!(methods(&got), [updated, prompts]);
    assert_eq!(got.messages[0]["params"], uri);
    assert_eq!(methods(&other.get(None, 1).await), [prompts]);
    // Missed: the connection broke before the client had read them.
    assert_eq!(methods(&watching.get(Some("0-1"), 1).await), [prompts]);
    watching.post(&request(4, "resources/unsubscribe", uri)).await;
    other.call(5, "note_write", write).await;
    other.call(6, "switch_extra", json!({ "what": "tool" })).await;
    assert_eq!(methods(&watching.get(None, 1).await), ["notifications/tools/list_changed"]);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_not_ready_is_told_nothing() {
    let core = core(ServerEra::Legacy, AnswerMode::Auto);
    let client = Client::new(&core);
    let opened = client.post(&initialize("2025-11-25", &json!({}))).await;
    let client = client.field("mcp-session-id", opened.session.as_deref());
    client.call(1, "switch_extra", json!({ "what": "prompt" })).await;
    client.post(&note("notifications/initialized")).await;
    client.call(1, "switch_extra", json!({ "what": "tool" })).await;
    let got = client.get(None, 1).await;
    assert_eq!(got.messages[0]["method"], "notifications/tools/list_changed");
}

#[tokio::test(start_paused = true)]
async fn a_client_is_let_go_where_its_revision_knows_how_it_comes_back() {
    for (version, here) in [("2025-06-18", 3), ("2025-11-25", 1)] {
        let core = core(ServerEra::Legacy, AnswerMode::Auto);
        let client = Client::connected(&core, version, json!({})).await;
        let got = client.call(7, "come_back", json!({})).await;
        assert_eq!(got.messages.len(), here, "{version}");
        let rest = client.get(got.ids.last().map(String::as_str), 99).await;
        assert_eq!(rest.messages.len(), 3 - here);
        let answer = if here == 3 { &got } else { &rest };
        assert_eq!(answer.result()["content"][0]["text"], "nothing was lost");
    }
}

#[tokio::test(start_paused = true)]
async fn a_quiet_stream_gets_comments() {
    let core = core(ServerEra::Legacy, AnswerMode::Auto);
    let client = Client::connected(&core, "2025-11-25", json!({})).await;
    let clock = TimerClock::start();
    let mut answer = client.send("POST", &call(1, "silent", json!({ "ms": 40_000 })).to_string()).await;
    assert_eq!(clock.now(), Ms(15_000));
    let text = read_events(&mut answer, 1).await;
    assert_eq!((text.matches(": keep-alive").count(), clock.now()), (2, Ms(40_000)));
}

#[tokio::test(start_paused = true)]
async fn modern_and_legacy_clients_share_an_endpoint_and_nothing_else() {
    let core = core(ServerEra::Dual, AnswerMode::Auto);
    let legacy = Client::connected(&core, "2025-11-25", json!({})).await;
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let modern = Client::new(&core)
        .field("mcp-protocol-version", Some("2026-07-28"))
        .field("mcp-method", Some("tools/list"));
    let list = request(1, "tools/list", json!({ "_meta": meta }));
    let got = modern.post(&list).await;
    assert_eq!(got.result()["resultType"], "complete");
    // The session of another era means nothing to a modern request, and is not given out.
    let named = legacy.fields.iter().find(|(name, _)| *name == "mcp-session-id").unwrap().1.clone();
    let got = modern.clone().field("mcp-session-id", Some(&named)).post(&list).await;
    assert_eq!((got.result()["resultType"].as_str(), &got.session), (Some("complete"), &None));
    // Both use id 1 at once, and the modern disconnect ends the modern call alone.
    let mut silent = call(1, "silent", json!({}));
    silent["params"]["_meta"] = meta.clone();
    let silent_client =
        modern.clone().field("mcp-method", Some("tools/call")).field("mcp-name", Some("silent"));
    let (running, left) = tokio::join!(
        legacy.call(1, "silent", json!({ "ms": 100 })),
        tokio::time::timeout(Ms(10).into(), silent_client.post(&silent)),
    );
    assert!(left.is_err());
    assert_eq!(running.result()["content"][0]["text"], "nothing was said for 100 ms");
    // What is wrong with a modern message is told by modern rules, and so for legacy ones.
    let cases = [
        (modern.clone().field("mcp-method", Some("tools/call")), list.clone(), (400, -32020)),
        (modern.clone().field("mcp-protocol-version", Some("2025-11-25")), list.clone(), (400, -32020)),
        (modern.clone(), request(1, "tools/list", json!({})), (400, -32602)),
        (
            modern.clone().field("mcp-method", Some("initialize")),
            request(1, "initialize", json!({ "_meta": meta })),
            (404, -32601),
        ),
        (modern.clone(), initialize("2026-07-28", &json!({})), (200, 0)),
        (Client::new(&core), request(1, "tools/list", json!({})), (400, -32600)),
        (
            legacy.clone().field("mcp-session-id", Some("x")),
            request(1, "tools/list", json!({})),
            (404, -32600),
        ),
        (modern.clone(), note("notifications/cancelled"), (202, 0)),
    ];
    for method in ["GET", "DELETE"] {
        let client = modern.clone().field("mcp-session-id", Some(&named));
        assert_eq!(client.send(method, "").await.status(), 405, "{method}");
    }
    for (client, body, expected) in cases {
        let got = client.post(&body).await;
        assert_eq!((got.status, got.code()), expected, "{body}");
    }
}

#[tokio::test(start_paused = true)]
async fn before_the_handshake_one_server_refuses_one_answers_and_one_is_silent() {
    let list = request(1, "tools/list", json!({}));
    let cases = [
        (ServerEra::Legacy, AnswerMode::Auto, Some((400, -32600))),
        (ServerEra::LenientLegacy, AnswerMode::Auto, Some((200, 0))),
        (ServerEra::Legacy, AnswerMode::LegacyStateless, Some((200, 0))),
        (ServerEra::SilentLegacy, AnswerMode::Auto, None),
    ];
    for (era, mode, expected) in cases {
        let client = Client::new(&core(era, mode));
        let probe = client.clone().field("mcp-protocol-version", Some("2026-07-28"));
        let got = tokio::time::timeout(Ms(10_000).into(), client.post(&list)).await;
        assert_eq!(got.ok().map(|got| (got.status, got.code())), expected, "{era:?} {mode:?}");
        let got = tokio::time::timeout(Ms(10_000).into(), probe.post(&list)).await;
        assert_eq!(got.ok().map(|got| got.status), expected.map(|_| 400), "a modern probe {era:?} {mode:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_sessions_each_request_stands_alone() {
    let core = core(ServerEra::Legacy, AnswerMode::LegacyStateless);
    let client = Client::new(&core);
    let opened = client.post(&initialize("2025-11-25", &json!({ "elicitation": {} }))).await;
    assert_eq!((opened.status, opened.session), (200, None));
    assert_eq!(client.post(&note("notifications/initialized")).await.status, 202);
    let client = client.field("mcp-protocol-version", Some("2025-11-25"));
    assert_eq!(client.call(1, "echo", json!({})).await.status, 200);
    assert_eq!(client.call(1, "ask_user", json!({})).await.result()["isError"], true, "nobody can be asked");
    for method in ["GET", "DELETE"] {
        let refused = client.send(method, "").await;
        assert_eq!((refused.status().as_u16(), refused.headers()["allow"].as_bytes()), (405, &b"POST"[..]));
    }
}

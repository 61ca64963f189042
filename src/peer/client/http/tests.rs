//! Sessions of older eras: what the client keeps to, what it answers, and what it resumes.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::peer::client::answers::Answers;
use crate::peer::client::era::{EraPolicy, EraRule};
use crate::peer::client::scripted::{self, Answer};
use crate::peer::client::{CallOptions, Client, Outcome, Report, raw};
use crate::peer::server::{ServerEra, ServerOptions, serve_http};
use crate::spec::era::Era;
use crate::time::{Ms, TimerClock};

/// How long a test waits for what must happen at once.
const LIMIT: Ms = Ms(5000);

fn legacy() -> EraPolicy {
    EraPolicy { rule: EraRule::Legacy, probe_limit: LIMIT, initialize_limit: LIMIT, ..EraPolicy::default() }
}

/// The opening of a session, which every scripted server has; `None`: something else is asked.
fn opening(body: &Value) -> Option<Answer> {
    match body["method"].as_str() {
        Some("initialize") => {
            let info = json!({ "name": "old", "version": "1" });
            let result = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": info });
            let (start, text) =
                scripted::json("200 OK", &json!({ "jsonrpc": "2.0", "id": body["id"], "result": result }));
            Some((format!("{start}\r\nMcp-Session-Id: s-1"), text))
        }
        Some(method) if method.starts_with("notifications/") => {
            Some(("202 Accepted".to_owned(), String::new()))
        }
        _ => None,
    }
}

fn stream(text: &str) -> Answer {
    ("200 OK\r\nContent-Type: text/event-stream".to_owned(), text.to_owned())
}

async fn settled(url: &str, answers: Answers) -> Client {
    let client = Client::http(url).unwrap().with_answers(answers);
    let report = client.settle(&legacy(), &CallOptions::default()).await.unwrap();
    assert!(report.settled.is_some(), "{report:?}");
    client
}

async fn call(client: &Client, tool: &str, arguments: Value, options: &CallOptions) -> Report {
    client.call(tool, &raw(&arguments), options, |_| {}).await.unwrap()
}

/// Waits until a request is heard that is the one looked for.
async fn heard(
    requests: &mut tokio::sync::mpsc::UnboundedReceiver<scripted::HeardRequest>,
    is_it: impl Fn(&str, &Value) -> bool,
) -> (String, Value) {
    let looking = async {
        loop {
            let (head, body) = requests.recv().await.unwrap();
            if is_it(&head, &body) {
                return (head, body);
            }
        }
    };
    tokio::time::timeout(LIMIT.into(), looking).await.unwrap()
}

#[tokio::test]
async fn a_broken_stream_is_resumed_after_its_last_event_and_not_too_soon() {
    let asked = Arc::new(Mutex::new(Value::Null));
    let answering = move |head: &str, body: &Value| {
        if let Some(answer) = opening(body) {
            return answer;
        }
        if body["method"] == "tools/call" {
            *asked.lock().unwrap() = body["id"].clone();
            return stream("id: e-1\nretry: 300\ndata:\n\n");
        }
        if head.contains("last-event-id: e-1") {
            return stream("id: e-2\nretry: 0\ndata:\n\n");
        }
        if head.contains("last-event-id: e-2") {
            let id = asked.lock().unwrap().clone();
            return scripted::events(&[json!({ "jsonrpc": "2.0", "id": id, "result": { "content": [] } })]);
        }
        ("405 Method Not Allowed".to_owned(), String::new())
    };
    let (url, mut requests) = scripted::serve(answering).await;
    let client = settled(&url, Answers::default()).await;
    let clock = TimerClock::start();
    let report = call(&client, "slow", json!({}), &CallOptions::default()).await;
    assert!(matches!(report.outcome, Outcome::Complete(_)), "{report:?}");
    assert!(clock.now() >= Ms(300), "{:?}", clock.now());
    for id in ["e-1", "e-2"] {
        let field = format!("last-event-id: {id}");
        let (head, _) = heard(&mut requests, |head, _| head.contains(&field)).await;
        assert!(head.starts_with("get") && head.contains("mcp-session-id: s-1"), "{head}");
    }
    client.close().await.unwrap();
    heard(&mut requests, |head, _| head.starts_with("delete") && head.contains("mcp-session-id: s-1")).await;
}

#[tokio::test]
async fn a_stream_that_offers_no_more_is_a_loss() {
    let answering = |_: &str, body: &Value| {
        let stays = ("404 Not Found".to_owned(), String::new());
        opening(body).unwrap_or_else(|| {
            if body["method"] == "tools/call" { stream("id: e-1\ndata:\n\n") } else { stays }
        })
    };
    let (url, _requests) = scripted::serve(answering).await;
    let client = settled(&url, Answers::default()).await;
    let report = call(&client, "slow", json!({}), &CallOptions::default()).await;
    let Outcome::Lost(why) = &report.outcome else { panic!("{report:?}") };
    assert!(why.contains("could not be resumed: status 404"), "{why}");
}

#[tokio::test]
async fn a_question_on_the_stream_of_a_call_is_answered_by_a_post_of_its_own() {
    let answering = |_: &str, body: &Value| {
        if let Some(answer) = opening(body) {
            return answer;
        }
        match body["method"].as_str() {
            Some("tools/call") => {
                let schema = json!({ "properties": { "name": { "type": "string", "default": "Ada" } } });
                let params = json!({ "message": "?", "requestedSchema": schema });
                let question = json!({ "jsonrpc": "2.0", "id": "q-1", "method": "elicitation/create", "params": params });
                let result = json!({ "jsonrpc": "2.0", "id": body["id"], "result": { "content": [] } });
                scripted::events(&[question, result])
            }
            // A response of the client.
            None if body.is_object() => ("202 Accepted".to_owned(), String::new()),
            _ => ("405 Method Not Allowed".to_owned(), String::new()),
        }
    };
    let (url, mut requests) = scripted::serve(answering).await;
    let client = settled(&url, Answers { fills_forms: true, ..Answers::default() }).await;
    let report = call(&client, "ask", json!({}), &CallOptions::default()).await;
    assert!(matches!(report.outcome, Outcome::Complete(_)) && report.faults.is_empty(), "{report:?}");
    let (head, body) = heard(&mut requests, |_, body| body.get("result").is_some()).await;
    assert!(head.contains("mcp-session-id: s-1") && head.contains("mcp-protocol-version: 2025-11-25"));
    let content = json!({ "action": "accept", "content": { "name": "Ada" } });
    assert_eq!(body, json!({ "jsonrpc": "2.0", "id": "q-1", "result": content }));
}

#[tokio::test]
async fn giving_up_in_a_session_is_a_message_and_never_for_the_opening() {
    let answering = |head: &str, body: &Value| {
        opening(body).unwrap_or_else(|| {
            let waits = "200 OK\r\nContent-Type: text/event-stream\r\nX-Waits: yes";
            if head.starts_with("post") {
                (waits.to_owned(), "id: e\nretry: 60000\ndata:\n\n".to_owned())
            } else {
                ("405 No".to_owned(), String::new())
            }
        })
    };
    let (url, mut requests) = scripted::serve(answering).await;
    let client = settled(&url, Answers::default()).await;
    let options = CallOptions { cancel_after: Some(Ms(100)), ..CallOptions::default() };
    let report = call(&client, "slow", json!({}), &options).await;
    assert!(matches!(report.outcome, Outcome::GivenUp(_)), "{report:?}");
    let (head, body) = heard(&mut requests, |_, body| body["method"] == "notifications/cancelled").await;
    assert!(head.starts_with("post") && head.contains("mcp-session-id: s-1"), "{head}");
    assert_eq!(body["params"]["requestId"].to_string(), report.id.to_string());
}

/// The reference server of older eras at a path; a URL.
#[expect(clippy::disallowed_methods, reason = "a test lets its server end with the runtime")]
async fn reference(path: &str) -> String {
    let options =
        ServerOptions { era: ServerEra::Legacy, max_progress_per_s: None, ..ServerOptions::default() };
    let any = "127.0.0.1:0".parse().unwrap();
    let (addr, serving) = serve_http(any, options, CancellationToken::new()).await.unwrap();
    tokio::spawn(serving);
    format!("http://{addr}{path}")
}

#[tokio::test]
async fn both_older_forms_of_http_hold_the_same_conversation() {
    for (path, era) in [("/mcp", Era::V2025_11_25), ("/sse", Era::V2024_11_05)] {
        let url = reference(path).await;
        let client =
            Client::http(&url).unwrap().with_answers(Answers { fills_forms: true, ..Answers::default() });
        let capabilities = json!({ "elicitation": { "form": {} } });
        let options = CallOptions { wants_progress: true, capabilities, ..CallOptions::default() };
        let policy = EraPolicy { rule: EraRule::Allowed, ..legacy() };
        let report = client.settle(&policy, &options).await.unwrap();
        assert_eq!(report.settled.as_ref().map(|settled| settled.speech.era), Some(era), "{report:?}");
        let told = call(&client, "slow", json!({ "steps": 4, "step_ms": 1 }), &options).await;
        assert_eq!(told.progress, 4, "{path} {told:?}");
        assert!(matches!(told.outcome, Outcome::Complete(_)), "{path} {told:?}");
        let asked = call(&client, "ask_user", json!({}), &options).await;
        let Outcome::Complete(result) = &asked.outcome else { panic!("{path} {asked:?}") };
        let is_asked = result.get().contains("Hello, ");
        // The oldest revision has no elicitation.
        assert_eq!(is_asked, era >= Era::V2025_06_18, "{path} {asked:?}");
        let limited = CallOptions { cancel_after: Some(Ms(100)), ..CallOptions::default() };
        let given_up = call(&client, "silent", json!({}), &limited).await;
        assert!(matches!(given_up.outcome, Outcome::GivenUp(_)), "{path} {given_up:?}");
        let after = call(&client, "echo", json!({ "text": "after" }), &options).await;
        assert!(matches!(after.outcome, Outcome::Complete(_)), "{path} {after:?}");
        client.close().await.unwrap();
    }
}

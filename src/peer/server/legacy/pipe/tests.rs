//! Legacy sessions over in-memory pipes on paused time.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::peer::server::core::Core;
use crate::peer::server::{ServerOptions, stdio};
use crate::time::Ms;

struct Client {
    input: DuplexStream,
    output: Lines<BufReader<DuplexStream>>,
}

impl Client {
    #[expect(clippy::disallowed_methods, reason = "a test lets its server end with the runtime")]
    fn start(era: ServerEra) -> Client {
        let (input, server_in) = tokio::io::duplex(1 << 16);
        let (server_out, output) = tokio::io::duplex(1 << 16);
        let core = Core::new(ServerOptions { era, ..ServerOptions::default() });
        tokio::spawn(stdio::serve(core, server_in, server_out, CancellationToken::new()));
        Client { input, output: BufReader::new(output).lines() }
    }

    async fn connected(era: ServerEra, version: &str, capabilities: Value) -> Client {
        let mut client = Client::start(era);
        let info = json!({ "name": "test", "version": "1" });
        let params = json!({ "protocolVersion": version, "capabilities": capabilities, "clientInfo": info });
        let opened = client.ask(&request("init", "initialize", params)).await;
        assert_eq!(opened["result"]["protocolVersion"], version);
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        client
    }

    async fn send(&mut self, message: &Value) {
        self.input.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    /// The next message; null when none comes.
    async fn next(&mut self) -> Value {
        match tokio::time::timeout(Ms(10_000).into(), self.output.next_line()).await {
            Ok(line) => serde_json::from_str(&line.unwrap().expect("the server goes on")).unwrap(),
            Err(_) => Value::Null,
        }
    }

    async fn ask(&mut self, message: &Value) -> Value {
        self.send(message).await;
        self.next().await
    }
}

fn request(id: &str, method: &str, params: Value) -> Value {
    let mut message = json!({ "jsonrpc": "2.0", "id": id, "method": method });
    message["params"] = params;
    message
}

fn call(id: &str, tool: &str, arguments: Value) -> Value {
    let mut params = json!({ "name": tool, "_meta": { "progressToken": id } });
    params["arguments"] = arguments;
    request(id, "tools/call", params)
}

fn modern(mut message: Value) -> Value {
    message["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    message
}

#[tokio::test(start_paused = true)]
async fn the_first_message_is_answered_as_the_server_is_told_to() {
    let (list, ping) = (request("1", "tools/list", json!({})), request("1", "ping", json!({})));
    let probe = modern(request("1", "server/discover", json!({})));
    let odd = request("1", "nothing", json!({}));
    // A result is 0, silence is 1.
    let cases = [
        (ServerEra::Modern, &list, -32602),
        (ServerEra::Modern, &probe, 0),
        (ServerEra::Legacy, &list, -32600),
        (ServerEra::Legacy, &ping, 0),
        (ServerEra::Legacy, &probe, -32601),
        (ServerEra::Legacy, &odd, -32601),
        (ServerEra::Dual, &list, -32602),
        (ServerEra::Dual, &probe, 0),
        (ServerEra::LenientLegacy, &list, 0),
        (ServerEra::LenientLegacy, &probe, -32601),
        (ServerEra::SilentLegacy, &list, 1),
        (ServerEra::SilentLegacy, &probe, 1),
        (ServerEra::SilentLegacy, &ping, 0),
    ];
    for (era, message, expected) in cases {
        let answer = Client::start(era).ask(message).await;
        let code = if answer.is_null() { 1 } else { answer["error"]["code"].as_i64().unwrap_or(0) };
        assert_eq!(code, expected, "{era:?} {message}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_revision_is_served_over_pipes() {
    for era in [ServerEra::Legacy, ServerEra::Dual, ServerEra::LenientLegacy, ServerEra::SilentLegacy] {
        for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
            let mut client = Client::connected(era, version, json!({ "elicitation": {} })).await;
            let listed = client.ask(&request("1", "tools/list", json!({}))).await;
            assert!(listed["result"]["tools"].is_array() && listed["result"].get("resultType").is_none());
            let told = client.ask(&call("2", "slow", json!({ "steps": 1, "step_ms": 5 }))).await;
            assert_eq!(told["method"], "notifications/progress");
            assert_eq!(client.next().await["id"], "2");
            let again = client.ask(&request("3", "initialize", json!({}))).await;
            assert_eq!(again["error"]["code"], -32600, "{version}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_server_asks_and_both_sides_may_cancel_or_answer() {
    let mut client = Client::connected(ServerEra::Legacy, "2025-06-18", json!({ "elicitation": {} })).await;
    for (said, expected) in [
        (json!({ "result": { "action": "accept", "content": { "name": "Ada" } } }), "Hello, Ada"),
        (json!({ "result": { "action": "cancel" } }), "No name, no greeting"),
        (
            json!({ "error": { "code": -1, "message": "no user" } }),
            "the client refuses elicitation/create: no user",
        ),
    ] {
        let question = client.ask(&call("1", "ask_user", json!({}))).await;
        let mut response = said;
        response["jsonrpc"] = json!("2.0");
        response["id"] = question["id"].clone();
        let answer = client.ask(&response).await;
        assert_eq!(answer["result"]["content"][0]["text"], expected);
    }
    // A call that waits for its answer can be cancelled; the late answer is ignored.
    let question = client.ask(&call("2", "ask_user", json!({}))).await;
    client
        .send(
            &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "2" } }),
        )
        .await;
    client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": "cancel" } })).await;
    assert_eq!(client.ask(&request("3", "ping", json!({}))).await["id"], "3");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_answer_is_waited_for_a_while() {
    let mut client = Client::connected(ServerEra::Legacy, "2025-06-18", json!({ "sampling": {} })).await;
    let question = client.ask(&call("1", "ask_model", json!({}))).await;
    tokio::time::sleep(Ms(299_000).into()).await;
    let given_up = client.next().await;
    assert_eq!(given_up["method"], "notifications/cancelled");
    assert_eq!(given_up["params"]["requestId"], question["id"]);
    assert_eq!(client.next().await["result"]["isError"], true);
}

#[tokio::test(start_paused = true)]
async fn a_client_asks_its_model_and_names_its_roots() {
    let capabilities = json!({ "sampling": {}, "roots": {} });
    let mut client = Client::connected(ServerEra::Dual, "2024-11-05", capabilities).await;
    let text = json!({ "role": "assistant", "model": "m", "content": { "type": "text", "text": "four" } });
    let roots = json!({ "roots": [{ "uri": "file:///a" }, { "uri": "file:///b" }] });
    for (tool, said, expected) in [
        ("ask_model", text, "The model says: four"),
        ("ask_roots", roots, "file:///a, file:///b"),
        ("ping_client", json!({}), "the client is there"),
    ] {
        let question = client.ask(&call("1", tool, json!({}))).await;
        let answer = client.ask(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": said })).await;
        assert_eq!(answer["result"]["content"][0]["text"], expected);
    }
    let modern = client.ask(&modern(call("2", "ping_client", json!({})))).await;
    assert_eq!(modern["result"]["isError"], true, "it has no ping");
}

#[tokio::test(start_paused = true)]
async fn changes_are_told_over_pipes_too() {
    let mut client = Client::connected(ServerEra::Dual, "2025-03-26", json!({})).await;
    let watched = json!({ "uri": "notes://today" });
    assert_eq!(client.ask(&request("1", "resources/subscribe", watched.clone())).await["result"], json!({}));
    client.send(&call("2", "note_write", json!({ "name": "today", "text": "another" }))).await;
    let mut got = [client.next().await, client.next().await];
    got.sort_by_key(|message| message.get("id").is_some());
    assert_eq!((&got[0]["method"], &got[0]["params"]), (&json!("notifications/resources/updated"), &watched));
}

#[tokio::test(start_paused = true)]
async fn both_eras_run_on_one_pair_of_pipes() {
    let mut client = Client::connected(ServerEra::Dual, "2025-11-25", json!({})).await;
    client.send(&call("old", "silent", json!({ "ms": 50 }))).await;
    let new = client.ask(&modern(call("new", "echo", json!({ "text": "hi" })))).await;
    assert_eq!((new["id"].as_str(), new["result"]["resultType"].as_str()), (Some("new"), Some("complete")));
    let old = client.next().await;
    assert_eq!((old["id"].as_str(), old["result"].get("resultType")), (Some("old"), None));
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_for_one_revision_only() {
    let batch = json!([request("1", "ping", json!({})), call("2", "echo", json!({ "text": "hi" }))]);
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut client = Client::connected(ServerEra::Legacy, version, json!({})).await;
        let answer = client.ask(&batch).await;
        let is_batch = version == "2025-03-26";
        assert_eq!(answer.as_array().map(Vec::len), is_batch.then_some(2), "{version} {answer}");
        assert_eq!(answer["error"]["code"].as_i64(), (!is_batch).then_some(-32600));
    }
}

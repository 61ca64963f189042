//! Tasks of 2025-11-25 over in-memory pipes on paused time.

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::peer::server::core::Core;
use crate::peer::server::{ServerEra, ServerOptions, stdio};

struct Client {
    input: DuplexStream,
    output: Lines<BufReader<DuplexStream>>,
}

impl Client {
    #[expect(clippy::disallowed_methods, reason = "a test lets its server end with the runtime")]
    async fn connected(version: &str) -> Client {
        let (input, server_in) = tokio::io::duplex(1 << 16);
        let (server_out, output) = tokio::io::duplex(1 << 16);
        let core = Core::new(ServerOptions { era: ServerEra::Dual, ..ServerOptions::default() });
        tokio::spawn(stdio::serve(core, server_in, server_out, CancellationToken::new()));
        let mut client = Client { input, output: BufReader::new(output).lines() };
        let info = json!({ "name": "test", "version": "1" });
        let capabilities = json!({ "elicitation": {} });
        let params = json!({ "protocolVersion": version, "capabilities": capabilities, "clientInfo": info });
        let opened = client.ask("initialize", params).await;
        assert_eq!(opened["result"]["capabilities"].get("tasks").is_some(), version == "2025-11-25");
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        client
    }

    async fn send(&mut self, message: &Value) {
        self.input.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn next(&mut self) -> Value {
        let line = tokio::time::timeout(Ms(60_000).into(), self.output.next_line()).await;
        serde_json::from_str(&line.expect("nothing comes").unwrap().unwrap()).unwrap()
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })).await;
        self.next().await
    }

    /// Calls for a task: its id.
    async fn start(&mut self, arguments: Value) -> String {
        let params = json!({ "name": "generate_report", "arguments": arguments, "task": { "ttl": 60_000 } });
        let answer = self.ask("tools/call", params).await;
        let task = &answer["result"]["task"];
        assert_eq!((&task["status"], &task["ttl"]), (&json!("working"), &json!(60_000)), "{answer}");
        assert!(task["pollInterval"].is_u64() && task.get("ttlMs").is_none());
        task["taskId"].as_str().unwrap().to_owned()
    }

    async fn about(&mut self, method: &str, id: &str) -> Value {
        self.ask(method, json!({ "taskId": id })).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_result_is_waited_for_and_names_its_task() {
    let mut client = Client::connected("2025-11-25").await;
    for (ends, expected) in [("well", Some(json!(null))), ("tool error", Some(json!(true))), ("broken", None)]
    {
        let id = client.start(json!({ "sections": 2, "section_ms": 100, "ends": ends })).await;
        assert_eq!(client.about("tasks/get", &id).await["result"]["status"], "working");
        let answer = client.about("tasks/result", &id).await;
        match &expected {
            Some(is_error) => {
                assert_eq!(answer["result"]["isError"], *is_error, "{answer}");
                assert_eq!(answer["result"]["_meta"][meta::RELATED_TASK]["taskId"], json!(id));
            }
            None => assert_eq!(answer["error"]["code"], -32603),
        }
        let state = client.about("tasks/get", &id).await;
        let status = if expected.is_some() { "completed" } else { "failed" };
        assert_eq!(state["result"]["status"], status);
        for newer in ["result", "error", "ttlMs", "resultType"] {
            assert!(state["result"].get(newer).is_none(), "{newer}");
        }
    }
    let listed = client.ask("tasks/list", json!({})).await;
    assert_eq!(listed["result"]["tasks"].as_array().map(Vec::len), Some(3));
}

#[tokio::test(start_paused = true)]
async fn what_the_worker_needs_is_asked_by_the_request_that_waits() {
    let mut client = Client::connected("2025-11-25").await;
    let id = client.start(json!({ "sections": 1, "section_ms": 10, "ask": true })).await;
    let question = client.about("tasks/result", &id).await;
    assert_eq!(question["method"], "elicitation/create");
    assert_eq!(question["params"]["_meta"][meta::RELATED_TASK]["taskId"], json!(id));
    let said = json!({ "action": "accept", "content": { "title": "Winter" } });
    client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": said })).await;
    assert_eq!(client.next().await["result"]["content"][0]["text"], "Winter: 1 sections");
}

#[tokio::test(start_paused = true)]
async fn a_cancel_is_an_order_and_comes_too_late_for_what_is_over() {
    let mut client = Client::connected("2025-11-25").await;
    for ask in [false, true] {
        let id = client.start(json!({ "sections": 9, "section_ms": 1000, "ask": ask })).await;
        assert_eq!(client.about("tasks/cancel", &id).await["result"]["status"], "cancelled");
        assert_eq!(client.about("tasks/result", &id).await["error"]["code"], -32602);
        assert_eq!(client.about("tasks/cancel", &id).await["error"]["code"], -32602, "it is over");
        tokio::time::sleep(Ms(10_000).into()).await;
        assert_eq!(client.about("tasks/get", &id).await["result"]["status"], "cancelled", "and stays so");
    }
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        assert_eq!(client.about(method, "no-such").await["error"]["code"], -32602, "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_forgotten_ends_those_who_wait_for_it() {
    let mut client = Client::connected("2025-11-25").await;
    let id = client.start(json!({ "sections": 1000, "section_ms": 1000 })).await;
    tokio::time::sleep(Ms(30_000).into()).await;
    assert_eq!(client.about("tasks/result", &id).await["error"]["code"], -32602);
}

#[tokio::test(start_paused = true)]
async fn a_tool_is_a_task_or_none_and_says_so_in_the_revision_that_has_them() {
    for version in ["2025-06-18", "2025-11-25"] {
        let mut client = Client::connected(version).await;
        let has_tasks = version == "2025-11-25";
        let listed = client.ask("tools/list", json!({})).await;
        let support = |name: &str| {
            let tools = listed["result"]["tools"].as_array().unwrap();
            let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
            tool.pointer("/execution/taskSupport").and_then(Value::as_str).map(str::to_owned)
        };
        assert_eq!(support("generate_report").as_deref(), has_tasks.then_some("required"));
        assert_eq!(support("echo"), None);
        let plain = client.ask("tools/call", json!({ "name": "generate_report" })).await;
        let with = json!({ "name": "echo", "arguments": { "text": "hi" }, "task": {} });
        let with = client.ask("tools/call", with).await;
        if has_tasks {
            assert_eq!((&plain["error"]["code"], &with["error"]["code"]), (&json!(-32601), &json!(-32601)));
        } else {
            assert_eq!(plain["result"]["isError"], true);
            assert_eq!(with["result"]["content"][0]["text"], "hi", "a member that it does not know");
            assert_eq!(client.ask("tasks/list", json!({})).await["error"]["code"], -32601);
        }
    }
}

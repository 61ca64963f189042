//! The life of a task, as clients see it, on both transports.

use serde_json::{Value, json};

use crate::peer::server::ServerOptions;
use crate::peer::server::wire::{BOTH, Wire};
use crate::spec::transport::Transport;
use crate::time::{Ms, TimerClock};

const TASKS: &str = "io.modelcontextprotocol/tasks";

fn start(transport: Transport) -> Wire {
    with_tasks(Wire::start(transport, ServerOptions::default()))
}

fn with_tasks(mut wire: Wire) -> Wire {
    wire.capabilities = json!({ "extensions": { TASKS: {} }, "elicitation": {} });
    wire
}

/// Starts a report: the id of its task.
async fn report(wire: &mut Wire, arguments: Value) -> String {
    let handle = wire.call("generate_report", arguments).await;
    assert_eq!((&handle["resultType"], &handle["status"]), (&json!("task"), &json!("working")), "{handle}");
    assert!(handle["ttlMs"].is_u64() && handle["pollIntervalMs"].is_u64());
    assert!(handle.get("result").is_none() && handle.get("requestState").is_none());
    handle["taskId"].as_str().unwrap().to_owned()
}

async fn about(wire: &mut Wire, method: &str, task: &str) -> Value {
    wire.ask(method, json!({ "taskId": task })).await
}

async fn state(wire: &mut Wire, task: &str) -> Value {
    about(wire, "tasks/get", task).await["result"].take()
}

async fn go_to(clock: &TimerClock, at: u64) {
    tokio::time::sleep_until(clock.instant(Ms(at)).unwrap()).await;
}

#[tokio::test(start_paused = true)]
async fn a_cancel_is_a_wish_that_the_worker_sees_at_its_checkpoint() {
    // Sections of 1000 ms; the wish at this time; states at later times.
    let rows = [
        (3, 1500, &[(1500, "working"), (1999, "working"), (2001, "cancelled"), (9000, "cancelled")][..]),
        (3, 2500, &[(2500, "working"), (3001, "completed"), (9000, "completed")]),
        (1, 1500, &[(1500, "completed")]),
    ];
    for transport in BOTH {
        for (sections, wish, states) in rows {
            let mut wire = start(transport);
            let clock = TimerClock::start();
            let task = report(&mut wire, json!({ "sections": sections })).await;
            go_to(&clock, wish).await;
            let heard = about(&mut wire, "tasks/cancel", &task).await;
            let members: Vec<&String> = heard["result"].as_object().unwrap().keys().collect();
            assert_eq!(members, ["_meta", "resultType"], "no word of the task");
            assert_eq!(heard["result"]["resultType"], "complete");
            for (at, expected) in states {
                go_to(&clock, *at).await;
                let found = state(&mut wire, &task).await;
                assert_eq!(found["status"], *expected, "{sections} sections, wish at {wish}, at {at}");
                assert_eq!(found.get("result").is_some(), *expected == "completed");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_ends_as_its_tool_would_have() {
    for transport in BOTH {
        let mut wire = start(transport);
        for ends in ["well", "tool error", "broken"] {
            let task = report(&mut wire, json!({ "sections": 1, "section_ms": 10, "ends": ends })).await;
            tokio::time::sleep(Ms(20).into()).await;
            let found = state(&mut wire, &task).await;
            assert_eq!(found["resultType"], "complete");
            match ends {
                "broken" => {
                    assert_eq!(
                        (&found["status"], &found["error"]["code"]),
                        (&json!("failed"), &json!(-32603))
                    );
                    assert!(found["error"]["message"].is_string() && found.get("result").is_none());
                }
                ends => {
                    assert_eq!(found["status"], "completed");
                    assert_eq!(found["result"]["isError"] == true, ends == "tool error");
                    assert!(found["result"]["content"].is_array() && found.get("error").is_none());
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_asks_and_goes_on_with_the_answer_or_ends_without() {
    for transport in BOTH {
        let mut wire = start(transport);
        let task = report(&mut wire, json!({ "ask": true, "sections": 1, "section_ms": 1 })).await;
        // Long enough for the worker, and less than any section.
        tokio::time::sleep(Ms(1).into()).await;
        let asking = state(&mut wire, &task).await;
        assert_eq!(asking["status"], "input_required");
        let (key, question) = asking["inputRequests"].as_object().unwrap().iter().next().unwrap();
        assert_eq!(question["method"], "elicitation/create");
        let answers = json!({ key: { "action": "accept", "content": { "title": "Stock" } }, "other": {} });
        let heard = wire.ask("tasks/update", json!({ "taskId": task, "inputResponses": answers })).await;
        assert_eq!(heard["result"]["resultType"], "complete");
        tokio::time::sleep(Ms(10).into()).await;
        let done = state(&mut wire, &task).await;
        assert_eq!(done["result"]["content"][0]["text"], "Stock: 1 sections");

        let task = report(&mut wire, json!({ "ask": true })).await;
        tokio::time::sleep(Ms(1).into()).await;
        about(&mut wire, "tasks/cancel", &task).await;
        tokio::time::sleep(Ms(1).into()).await;
        assert_eq!(state(&mut wire, &task).await["status"], "cancelled");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_not_declared_not_there_or_not_ones_own_is_refused() {
    for transport in BOTH {
        let mut wire = start(transport);
        let task = report(&mut wire, json!({})).await;
        let mut stranger = Wire::to(transport, &wire.core);
        let undeclared = stranger.ask("tools/call", json!({ "name": "generate_report" })).await;
        let required = json!({ "requiredCapabilities": { "extensions": { TASKS: {} } } });
        assert_eq!((&undeclared["error"]["code"], &undeclared["error"]["data"]), (&json!(-32021), &required));
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            for id in [&task, "unknown"] {
                let refused = about(&mut stranger, method, id).await;
                assert_eq!(
                    (&refused["error"]["code"], &refused["error"]["data"]),
                    (&json!(-32021), &required)
                );
            }
            let params = json!({ "taskId": "unknown", "inputResponses": {} });
            assert_eq!(wire.ask(method, params).await["error"]["code"], -32602, "{method}");
            assert_eq!(wire.ask(method, json!({})).await["error"]["code"], -32602, "{method}");
        }
        assert_eq!(about(&mut wire, "tasks/update", &task).await["error"]["code"], -32602, "no answers");
        for method in ["tasks/result", "tasks/list"] {
            assert_eq!(about(&mut wire, method, &task).await["error"]["code"], -32601);
        }
        if transport == Transport::Http {
            let mut other = with_tasks(Wire::to(transport, &wire.core));
            other.principal = Some("Bearer other");
            assert_eq!(about(&mut other, "tasks/get", &task).await["error"]["code"], -32602);
        }
        wire.capabilities = json!({ "extensions": { TASKS: {} } });
        let params = json!({ "name": "generate_report", "arguments": { "ask": true } });
        assert_eq!(wire.ask("tools/call", params).await["error"]["code"], -32021, "it could not ask");
    }
}

// On pipes the server ends with its connection, and all its tasks do.
#[tokio::test(start_paused = true)]
async fn a_task_outlives_the_connection_that_made_it_and_ends_with_its_time() {
    let mut wire = start(Transport::Http);
    let core = wire.core.clone();
    let task = report(&mut wire, json!({ "sections": 2, "ttl_ms": 5000 })).await;
    drop(wire);
    let mut later = with_tasks(Wire::to(Transport::Http, &core));
    assert_eq!(state(&mut later, &task).await["status"], "working");
    tokio::time::sleep(Ms(2500).into()).await;
    assert_eq!(state(&mut later, &task).await["status"], "completed");
    tokio::time::sleep(Ms(3000).into()).await;
    assert_eq!(about(&mut later, "tasks/get", &task).await["error"]["code"], -32602);
}

#[tokio::test(start_paused = true)]
async fn states_are_pushed_to_those_who_may_know_and_a_dropped_stream_changes_nothing() {
    for transport in BOTH {
        let mut wire = start(transport);
        let task = report(&mut wire, json!({ "sections": 2 })).await;
        let wish = json!({ "notifications": { "taskIds": [task, "unknown"] } });

        let mut stranger = Wire::to(transport, &wire.core);
        stranger.open("subscriptions/listen", wish.clone()).await;
        assert_eq!(stranger.heard().await.unwrap()["params"]["notifications"], json!({}), "not declared");

        let mut listener = with_tasks(Wire::to(transport, &wire.core));
        let id = listener.open("subscriptions/listen", wish.clone()).await;
        let granted = listener.heard().await.unwrap()["params"]["notifications"].take();
        assert_eq!(granted, json!({ "taskIds": [task] }));
        let told = listener.heard().await.unwrap();
        assert_eq!(told["method"], "notifications/tasks");
        let params = &told["params"];
        assert_eq!((&params["taskId"], &params["status"]), (&json!(task), &json!("working")));
        assert_eq!(params["statusMessage"], "section 1 of 2");
        listener.leave(id).await;

        let id = listener.open("subscriptions/listen", wish).await;
        listener.heard().await.unwrap();
        let mut statuses = Vec::new();
        loop {
            let told = listener.heard().await.unwrap();
            let params = &told["params"];
            statuses.push(params["status"].as_str().unwrap().to_owned());
            if params["status"] != "working" {
                assert!(params["result"]["content"].is_array(), "the full state");
                break;
            }
        }
        // What still waits when the end comes gives way to it.
        assert_eq!(statuses.last().unwrap(), "completed");
        listener.leave(id).await;
        assert_eq!(state(&mut wire, &task).await["status"], "completed");
    }
}

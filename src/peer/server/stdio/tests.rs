//! The server over in-memory pipes on paused time.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::peer::server::core::Core;
use crate::peer::server::{PeerError, ServerOptions};
use crate::time::{Ms, TimerClock};

struct Peer {
    input: DuplexStream,
    output: Lines<BufReader<DuplexStream>>,
    served: JoinHandle<Result<(), PeerError>>,
}

impl Peer {
    #[expect(clippy::disallowed_methods, reason = "a test owns its task through the handle")]
    fn start_with(options: ServerOptions, pipe_bytes: usize) -> Peer {
        let (input, server_in) = tokio::io::duplex(pipe_bytes);
        let (server_out, output) = tokio::io::duplex(pipe_bytes);
        let core = Core::new(options);
        let served = tokio::spawn(super::serve(core, server_in, server_out, CancellationToken::new()));
        Peer { input, output: BufReader::new(output).lines(), served }
    }

    fn start() -> Peer {
        Peer::start_with(ServerOptions::default(), 1 << 16)
    }

    async fn send(&mut self, text: &str) {
        self.input.write_all(text.as_bytes()).await.unwrap();
        self.input.write_all(b"\n").await.unwrap();
    }

    async fn call(&mut self, id: Value, tool: &str, arguments: Value, token: Option<Value>) {
        self.send(&request(&id, "tools/call", json!({ "name": tool, "arguments": arguments }), token)).await;
    }

    async fn cancel(&mut self, id: Value) {
        let note =
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } });
        self.send(&note.to_string()).await;
    }

    async fn next(&mut self) -> Value {
        let line = self.output.next_line().await.unwrap().expect("the server goes on");
        serde_json::from_str(&line).unwrap()
    }

    /// Ends the input; what the server still says.
    async fn end(mut self) -> Vec<Value> {
        self.input.shutdown().await.unwrap();
        let mut rest = Vec::new();
        while let Some(line) = self.output.next_line().await.unwrap() {
            rest.push(serde_json::from_str(&line).unwrap());
        }
        self.served.await.unwrap().unwrap();
        rest
    }
}

fn request(id: &Value, method: &str, mut params: Value, token: Option<Value>) -> String {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    if let Some(token) = token {
        params["_meta"]["progressToken"] = token;
    }
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

#[tokio::test(start_paused = true)]
async fn discovery_and_list_carry_what_the_revision_asks_for() {
    let mut peer = Peer::start();
    peer.send(&request(&json!("d"), "server/discover", json!({}), None)).await;
    let answer = peer.next().await;
    let result = &answer["result"];
    assert_eq!(answer["id"], "d");
    assert_eq!(result["supportedVersions"], json!(["2026-07-28"]));
    let capabilities = json!({
        "tools": { "listChanged": true },
        "resources": { "listChanged": true, "subscribe": true },
        "prompts": { "listChanged": true },
        "completions": {},
        "logging": {},
        "extensions": { "io.modelcontextprotocol/tasks": {} },
    });
    assert_eq!(result["capabilities"], capabilities);
    assert_eq!((&result["resultType"], &result["cacheScope"]), (&json!("complete"), &json!("public")));
    assert!(result["ttlMs"].is_u64());
    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "midwire-reference");
    assert!(peer.end().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn pages_of_the_list_join_to_the_whole_and_a_foreign_cursor_is_refused() {
    let mut peer =
        Peer::start_with(ServerOptions { page_size: Some(3), ..ServerOptions::default() }, 1 << 16);
    let mut names = Vec::new();
    let mut params = json!({});
    loop {
        peer.send(&request(&json!(names.len()), "tools/list", params, None)).await;
        let result = peer.next().await["result"].take();
        assert!(result["ttlMs"].is_u64() && result["cacheScope"] == "public");
        let tools = result["tools"].as_array().unwrap();
        assert!(tools.iter().all(|tool| tool["inputSchema"]["type"] == "object"));
        names.extend(tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()));
        let Some(cursor) = result.get("nextCursor") else { break };
        params = json!({ "cursor": cursor });
    }
    assert_eq!(names[..7], ["echo", "slow", "silent", "flood", "big", "fails", "ask_user"]);
    assert!(names.iter().all(|name| names.iter().filter(|other| *other == name).count() == 1), "{names:?}");
    for (k, cursor) in [json!("after-99"), json!("after-0"), json!(""), json!(3)].into_iter().enumerate() {
        peer.send(&request(&json!(format!("c{k}")), "tools/list", json!({ "cursor": cursor }), None)).await;
        assert_eq!(peer.next().await["error"]["code"], -32602, "{cursor}");
    }
}

#[tokio::test(start_paused = true)]
async fn progress_comes_step_by_step_and_before_the_result() {
    let mut peer = Peer::start();
    let clock = TimerClock::start();
    peer.call(json!(7), "slow", json!({ "steps": 3, "step_ms": 100 }), Some(json!("t"))).await;
    for k in 1..=3 {
        let told = peer.next().await;
        assert_eq!(told["method"], "notifications/progress");
        assert_eq!(told["params"]["progressToken"], "t");
        assert_eq!((&told["params"]["progress"], &told["params"]["total"]), (&json!(k), &json!(3)));
        assert_eq!(clock.now(), Ms(k * 100));
    }
    let answer = peer.next().await;
    assert_eq!((&answer["id"], &answer["result"]["resultType"]), (&json!(7), &json!("complete")));
    peer.call(json!(8), "slow", json!({ "steps": 2, "step_ms": 1 }), None).await;
    assert_eq!(peer.next().await["id"], 8, "no token, no progress");
}

#[tokio::test(start_paused = true)]
async fn the_pace_of_progress_is_held_and_the_last_step_is_told() {
    let options = ServerOptions { max_progress_per_s: Some(10), ..ServerOptions::default() };
    let mut peer = Peer::start_with(options, 1 << 16);
    peer.call(json!(1), "slow", json!({ "steps": 25, "step_ms": 10 }), Some(json!(1))).await;
    let mut told = Vec::new();
    loop {
        let message = peer.next().await;
        if message.get("result").is_some() {
            break;
        }
        told.push(message["params"]["progress"].as_u64().unwrap());
    }
    assert_eq!(told, [1, 11, 21, 25]);
}

#[tokio::test(start_paused = true)]
async fn nothing_follows_a_cancel_and_the_rest_lives_on() {
    let mut peer = Peer::start();
    peer.call(json!(1), "slow", json!({ "steps": 100, "step_ms": 10 }), Some(json!(1))).await;
    peer.call(json!("1"), "slow", json!({ "steps": 3, "step_ms": 10 }), None).await;
    assert_eq!(peer.next().await["params"]["progress"], 1);
    peer.cancel(json!(1)).await;
    assert_eq!(peer.next().await["id"], "1", "an id is a value with its type");
    peer.call(json!(2), "echo", json!({ "text": "here" }), None).await;
    let answer = peer.next().await;
    assert_eq!(answer["result"]["content"][0]["text"], "here");
    assert!(peer.end().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_flood_stops_at_the_cancel_although_messages_were_waiting() {
    // The pipe holds a few messages only, so most of the flood waits inside the server.
    let mut peer = Peer::start_with(ServerOptions::default(), 1000);
    peer.call(json!(1), "flood", json!({ "n": 100_000, "size": 50 }), Some(json!(1))).await;
    tokio::time::sleep(Ms(10).into()).await;
    peer.cancel(json!(1)).await;
    tokio::time::sleep(Ms(10).into()).await;
    peer.call(json!(2), "echo", json!({}), None).await;
    let mut flooded = 0;
    while peer.next().await.get("result").is_none() {
        flooded += 1;
    }
    assert!(flooded < 1000, "{flooded} of 100000: what the pipe and one buffer held");
}

#[tokio::test(start_paused = true)]
async fn cancels_that_mean_nothing_are_ignored() {
    let mut peer = Peer::start();
    peer.call(json!(1), "slow", json!({ "steps": 1, "step_ms": 100 }), None).await;
    for params in [
        json!(null),
        json!([]),
        json!({}),
        json!({ "requestId": null }),
        json!({ "requestId": true }),
        json!({ "requestId": 1.5 }),
        json!({ "requestId": [1] }),
        json!({ "requestId": "1" }),
        json!({ "requestId": 99 }),
    ] {
        let note = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
        peer.send(&note.to_string()).await;
    }
    peer.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#).await;
    assert_eq!(peer.next().await["id"], 1);
    peer.cancel(json!(1)).await;
    assert!(peer.end().await.is_empty(), "a late cancel has no answer either");
}

#[tokio::test(start_paused = true)]
async fn what_is_no_request_is_refused_and_the_server_goes_on() {
    let mut peer = Peer::start();
    let busy = request(&json!(5), "tools/call", json!({ "name": "silent" }), Some(json!("t")));
    peer.send(&busy).await;
    let token = request(&json!(6), "tools/call", json!({ "name": "echo" }), Some(json!("t")));
    let cases: [(&str, Value, i64); 8] = [
        ("{", json!(null), -32700),
        ("", json!(null), -32700),
        ("[]", json!(null), -32600),
        (r#"{"jsonrpc":"2.0","id":9,"method":"tools/list"}"#, json!(9), -32602),
        (r#"{"jsonrpc":"2.0","id":9,"method":"initialize","params":{}}"#, json!(9), -32022),
        (&request(&json!(9), "ping", json!({}), None), json!(9), -32601),
        (&busy, json!(5), -32600),
        (&token, json!(6), -32600),
    ];
    for (line, id, code) in cases {
        peer.send(line).await;
        let answer = peer.next().await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&id, &json!(code)), "{line}");
    }
    peer.send(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).await;
    peer.send(r#"{"jsonrpc":"2.0","method":"notifications/unknown"}"#).await;
    assert!(peer.end().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn tools_fail_in_the_way_that_is_meant() {
    let mut peer = Peer::start();
    let tool_errors = [
        ("fails", json!({ "text": "out of paper" }), "out of paper"),
        ("echo", json!({ "text": 7 }), "text must be a string"),
        ("slow", json!({ "steps": -1 }), "steps must be a whole number from 0 to 1000000"),
        ("big", json!({ "bytes": 1e18 }), "bytes must be a whole number from 0 to 67108864"),
    ];
    for (tool, arguments, text) in tool_errors {
        peer.call(json!(1), tool, arguments, None).await;
        let result = peer.next().await["result"].take();
        assert_eq!((&result["isError"], &result["content"][0]["text"]), (&json!(true), &json!(text)));
        assert_eq!(result["resultType"], "complete");
    }
    peer.call(json!(2), "no such tool", json!({}), None).await;
    assert_eq!(peer.next().await["error"]["code"], -32602);
    peer.call(json!(3), "ask_user", json!({}), None).await;
    let error = peer.next().await["error"].take();
    assert_eq!(error["code"], -32021);
    assert_eq!(error["data"], json!({ "requiredCapabilities": { "elicitation": {} } }));
}

#[tokio::test(start_paused = true)]
async fn asking_the_user_takes_two_rounds() {
    let mut peer = Peer::start();
    let round = |id: u64, extra: Value| {
        let mut params = json!({ "name": "ask_user", "arguments": {} });
        for (name, value) in extra.as_object().unwrap() {
            params[name] = value.clone();
        }
        request(&json!(id), "tools/call", params, None).replace(
            r#""io.modelcontextprotocol/clientCapabilities":{}"#,
            r#""io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}"#,
        )
    };
    peer.send(&round(1, json!({}))).await;
    let first = peer.next().await["result"].take();
    assert_eq!(first["resultType"], "input_required");
    assert_eq!(first["inputRequests"]["name"]["method"], "elicitation/create");
    let answered = json!({ "name": { "action": "accept", "content": { "name": "Ada" } } });
    let state = first["requestState"].clone();
    peer.send(&round(2, json!({ "requestState": state, "inputResponses": answered }))).await;
    assert_eq!(peer.next().await["result"]["content"][0]["text"], "Hello, Ada");
    peer.send(&round(3, json!({ "inputResponses": answered }))).await;
    assert_eq!(peer.next().await["error"]["code"], -32602, "without the state");
}

#[tokio::test(start_paused = true)]
async fn big_results_have_the_size_that_was_asked_for() {
    let mut peer = Peer::start();
    peer.call(json!(1), "big", json!({ "bytes": 300_001 }), None).await;
    let text = peer.next().await["result"]["content"][0]["text"].take();
    assert_eq!(text.as_str().unwrap().len(), 300_001);
}

#[tokio::test(start_paused = true)]
async fn it_ends_soon_after_its_input_ends_even_when_nobody_reads() {
    let mut peer = Peer::start_with(ServerOptions::default(), 1000);
    peer.call(json!(1), "silent", json!({}), None).await;
    peer.call(json!(2), "big", json!({ "bytes": 100_000 }), None).await;
    tokio::time::sleep(Ms(10).into()).await;
    let clock = TimerClock::start();
    peer.input.shutdown().await.unwrap();
    let Peer { served, output, .. } = peer;
    served.await.unwrap().unwrap();
    assert!(clock.now() < Ms(500), "{:?}", clock.now());
    drop(output);
}

#[tokio::test(start_paused = true)]
async fn what_was_asked_before_the_input_ended_is_answered_if_it_is_quick() {
    let mut peer = Peer::start();
    for id in 0..100 {
        peer.call(json!(id), "echo", json!({}), None).await;
    }
    peer.call(json!("quick"), "slow", json!({ "steps": 1, "step_ms": 100 }), None).await;
    peer.call(json!("long"), "slow", json!({ "steps": 1, "step_ms": 200 }), None).await;
    let rest = peer.end().await;
    assert_eq!(rest.len(), 101);
    assert_eq!(rest[100]["id"], "quick");
}

#[tokio::test(start_paused = true)]
async fn answers_come_while_more_is_asked_and_none_is_missing() {
    const CALLS: usize = 20_000;
    let Peer { mut input, mut output, served } = Peer::start();
    let ask = async {
        for id in 0..CALLS {
            let call = request(&json!(id), "tools/call", json!({ "name": "echo" }), None);
            input.write_all(format!("{call}\n").as_bytes()).await.unwrap();
        }
        input.shutdown().await.unwrap();
    };
    let mut seen = vec![false; CALLS];
    let read = async {
        while let Some(line) = output.next_line().await.unwrap() {
            let answer: Value = serde_json::from_str(&line).unwrap();
            let id = usize::try_from(answer["id"].as_u64().unwrap()).unwrap();
            assert!(!std::mem::replace(&mut seen[id], true), "answered twice: {id}");
        }
    };
    tokio::join!(ask, read);
    served.await.unwrap().unwrap();
    assert!(seen.iter().all(|is_seen| *is_seen));
}

#[tokio::test(start_paused = true)]
async fn it_ends_when_its_output_is_closed() {
    let mut peer = Peer::start();
    drop(peer.output);
    peer.input.write_all(b"{\n").await.unwrap();
    peer.served.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_cancel_near_the_end_wins_or_loses_as_a_whole() {
    let mut answered = Vec::new();
    for delay in [5, 9, 10, 11, 15] {
        let mut peer = Peer::start();
        peer.call(json!(1), "slow", json!({ "steps": 1, "step_ms": 10 }), Some(json!("t"))).await;
        tokio::time::sleep(Ms(delay).into()).await;
        peer.cancel(json!(1)).await;
        // Its answer proves that the server has read past the cancel.
        peer.call(json!("witness"), "echo", json!({}), None).await;
        let mut before = Vec::new();
        loop {
            let message = peer.next().await;
            if message["id"] == "witness" {
                break;
            }
            before.push(message["id"] == 1);
        }
        assert!(peer.end().await.is_empty(), "{delay}: something followed the witness");
        let won = [false, true];
        assert!(before.is_empty() || before == won || before == won[..1], "{delay}: {before:?}");
        answered.push(before.last() == Some(&true));
    }
    assert_eq!((answered.first(), answered.last()), (Some(&false), Some(&true)));
}

#[tokio::test(start_paused = true)]
async fn a_flood_that_nobody_reads_is_merged_and_its_answer_is_kept() {
    // The pipe holds a few messages only.
    let options = ServerOptions { buffer: Some(3), ..ServerOptions::default() };
    let mut peer = Peer::start_with(options, 1000);
    peer.call(json!(1), "flood", json!({ "n": 100, "size": 300 }), Some(json!("a"))).await;
    peer.call(json!(2), "flood", json!({ "n": 100, "size": 300 }), Some(json!("b"))).await;
    // At the pace of a flood before a reader that has stopped, both are long done.
    tokio::time::sleep(Ms(60_000).into()).await;
    let (mut answered, mut last) = (Vec::new(), [0, 0]);
    while answered.len() < 2 {
        let message = peer.next().await;
        match message["params"]["progressToken"].as_str() {
            Some(token) => {
                let value = message["params"]["progress"].as_u64().unwrap();
                let last = &mut last[usize::from(token == "b")];
                assert!(value > *last, "{token} {value}");
                *last = value;
            }
            None => answered.push(message["id"].as_u64().unwrap()),
        }
    }
    answered.sort_unstable();
    assert_eq!(answered, [1, 2]);
    assert!(last.iter().all(|value| *value > 0), "{last:?}");
    assert!(peer.end().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_has_no_room_in_a_given_buffer_ends_the_server_loudly() {
    let options = ServerOptions { buffer: Some(3), ..ServerOptions::default() };
    let mut peer = Peer::start_with(options, 600);
    for id in 0..8 {
        peer.call(json!(id), "silent", json!({ "ms": 100 }), None).await;
    }
    tokio::time::sleep(Ms(150).into()).await;
    let rest = async {
        let mut ids = Vec::new();
        while let Some(line) = peer.output.next_line().await.unwrap() {
            ids.push(serde_json::from_str::<Value>(&line).unwrap()["id"].as_u64().unwrap());
        }
        ids
    };
    let (rest, served) = tokio::join!(rest, peer.served);
    let error = served.unwrap().unwrap_err();
    assert!(matches!(error, PeerError::Overrun { .. }), "{error}");
    // Those that had room come, each once, and no other.
    assert!((3..8).contains(&rest.len()), "{rest:?}");
    assert!(rest.is_sorted_by(|one, next| one < next), "{rest:?}");
}

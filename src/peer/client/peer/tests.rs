//! Calls that are lost, and what a client does about them.

use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::json;

use super::*;
use crate::peer::client::raw;
use crate::peer::client::scripted::{self, HeardMessages};
use crate::time::Ms;

/// Every process that was started, by what it has heard.
type Started = Arc<Mutex<Vec<HeardMessages>>>;

/// A modern server whose first `bad` processes end when a tool is called.
fn failing(bad: u32) -> (Dial, Started) {
    let started = Started::default();
    let (keep, count) = (started.clone(), AtomicU32::new(0));
    let dial: Dial = Arc::new(move || {
        let is_bad = count.fetch_add(1, Ordering::Relaxed) < bad;
        let (client, heard) = scripted::pipes(move |message| {
            let result = match message["method"].as_str() {
                Some("server/discover") => {
                    json!({ "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {} })
                }
                Some("tools/call") if is_bad => return vec![json!("close")],
                Some("notifications/cancelled") => return Vec::new(),
                _ => json!({ "resultType": "complete", "content": [] }),
            };
            vec![json!({ "jsonrpc": "2.0", "id": message["id"], "result": result })]
        });
        keep.lock().unwrap().push(heard);
        Ok(client)
    });
    (dial, started)
}

fn contract(text: &str) -> Vec<Contract> {
    vec![toml::from_str(&format!("tools = [\"charge\"]\n{text}")).unwrap()]
}

async fn charge(setup: Setup, bad: u32, key: Option<&str>) -> (Conversation, Started, Vec<String>) {
    let (dial, started) = failing(bad);
    let options = CallOptions::default();
    let mut peer = Peer::connect("shop", dial, setup, Arc::default(), &options).await.unwrap();
    let arguments = key.map_or_else(|| json!({ "cents": 1200 }), |key| json!({ "cents": 1200, "key": key }));
    let params =
        Params::from([("name".to_owned(), raw("charge")), ("arguments".to_owned(), raw(&arguments))]);
    let mut notes = Vec::new();
    let talk = peer.request("tools/call", &params, &options, |during| {
        if let During::Note(note) = during {
            notes.push(note.to_owned());
        }
    });
    let talk = talk.await.unwrap();
    (talk, started, notes)
}

#[tokio::test(start_paused = true)]
async fn a_lost_call_is_made_again_only_where_its_contract_allows_it() {
    let keyed = "side_effect = \"effect\"\nkey = \"/key\"";
    // Contract, key, retries allowed, processes that fail; class, retries made, is it answered.
    let cases = [
        (None, None, 3, 1, Class::Unsafe, 0, false),
        (Some("side_effect = \"effect\""), Some("k"), 3, 1, Class::Unsafe, 0, false),
        (Some(keyed), None, 3, 1, Class::Unsafe, 0, false),
        (Some(keyed), Some(" "), 3, 1, Class::Unsafe, 0, false),
        (Some(keyed), Some("checkout-7"), 0, 1, Class::Conditional, 0, false),
        (Some(keyed), Some("checkout-7"), 3, 2, Class::Conditional, 2, true),
        (Some("side_effect = \"none\""), None, 1, 1, Class::Safe, 1, true),
        (Some("side_effect = \"none\""), None, 1, 5, Class::Safe, 1, false),
        (None, None, 0, 0, Class::Unsafe, 0, true),
    ];
    for (contracts, key, retries, bad, class, made, is_answered) in cases {
        let contracts = contracts.map(contract).unwrap_or_default();
        let setup =
            Setup { contracts, retries, spread: Spread::Named("client-a".to_owned()), ..Setup::default() };
        let (talk, started, notes) = charge(setup, bad, key).await;
        let told = format!("{key:?} {retries} {bad}: {talk:?} {notes:?}");
        assert_eq!((talk.class.0, talk.retries), (class, made), "{told}");
        assert_eq!(matches!(talk.outcome, Outcome::Complete(_)), is_answered, "{told}");
        let started = started.lock().unwrap();
        let calls: Vec<Value> = started
            .iter()
            .flat_map(|heard| heard.lock().unwrap().clone())
            .filter(|message| message["method"] == "tools/call")
            .collect();
        assert_eq!(calls.len(), usize::try_from(made + 1).unwrap(), "{told}");
        for pair in calls.windows(2) {
            assert_ne!(pair[0]["id"], pair[1]["id"], "a new id for each attempt");
            assert_eq!(pair[0]["params"]["arguments"], pair[1]["params"]["arguments"]);
        }
        // A process of its own for each, asked for its era first.
        for heard in started.iter() {
            assert_eq!(scripted::methods(heard).first().map(String::as_str), Some("server/discover"));
        }
        assert_eq!(!notes.is_empty(), made > 0 || (bad > 0 && class == Class::Unsafe), "{told}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_waits_are_those_of_the_backoff() {
    let setup = Setup {
        contracts: contract("side_effect = \"none\""),
        retries: 4,
        spread: Spread::Named("client-a".to_owned()),
        ..Setup::default()
    };
    let clock = TimerClock::start();
    let (talk, _, notes) = charge(setup, 3, None).await;
    assert_eq!((talk.retries, clock.now()), (3, Ms(162 + 384 + 587)), "{notes:?}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ends_over_the_first_question_is_met_anew_only_if_it_may_be_old() {
    for (rule, starts, is_available) in
        [(EraRule::Strict, 1, false), (EraRule::Allowed, 2, true), (EraRule::Lenient, 2, true)]
    {
        let count = Arc::new(AtomicU32::new(0));
        let counted = count.clone();
        let dial: Dial = Arc::new(move || {
            counted.fetch_add(1, Ordering::Relaxed);
            let (client, _) = scripted::pipes(|message| match message["method"].as_str() {
                Some("server/discover") => vec![json!("close")],
                Some("initialize") => {
                    let info = json!({ "name": "old", "version": "1" });
                    let result = json!({
                        "protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": info,
                    });
                    vec![json!({ "jsonrpc": "2.0", "id": message["id"], "result": result })]
                }
                _ => Vec::new(),
            });
            Ok(client)
        });
        let setup = Setup { era: EraPolicy { rule, ..EraPolicy::default() }, ..Setup::default() };
        let options = CallOptions::default();
        let mut peer = Peer::connect("old", dial, setup, Arc::default(), &options).await.unwrap();
        assert_eq!((count.load(Ordering::Relaxed), peer.is_available()), (starts, is_available), "{rule:?}");
        if !is_available {
            let error = peer.request("tools/list", &Params::new(), &options, |_| {}).await.unwrap_err();
            assert!(matches!(error, PeerError::Unavailable { .. }), "{error}");
        }
    }
}

/// A modern HTTP server with one tool whose argument is mirrored; says no to a call without the field.
fn mirroring(head: &str, body: &Value) -> scripted::Answer {
    let schema = json!({ "type": "object", "properties": {
        "region": { "type": "string", "x-mcp-header": "Region" },
    } });
    let bad = json!({ "type": "object", "properties": { "n": { "type": "number", "x-mcp-header": "N" } } });
    let error = |code: i64| json!({ "code": code, "message": "no" });
    let (member, value) = match body["method"].as_str() {
        Some("server/discover") => (
            "result",
            json!({ "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {} }),
        ),
        Some("tools/list") => {
            let tools =
                json!([{ "name": "book", "inputSchema": schema }, { "name": "bad", "inputSchema": bad }]);
            (
                "result",
                json!({ "resultType": "complete", "tools": tools, "ttlMs": 60_000, "cacheScope": "public" }),
            )
        }
        _ if head.contains("mcp-param-region: eu") => {
            ("result", json!({ "resultType": "complete", "content": [] }))
        }
        _ => ("error", error(-32020)),
    };
    scripted::json("200 OK", &json!({ "jsonrpc": "2.0", "id": body["id"], member: value }))
}

#[tokio::test]
async fn over_http_arguments_are_mirrored_and_a_bad_tool_is_not_called() {
    let (url, mut requests) = scripted::serve(mirroring).await;
    let dial: Dial = Arc::new(move || Client::http(&url));
    let options = CallOptions::default();
    let mut peer = Peer::connect("http", dial, Setup::default(), Arc::default(), &options).await.unwrap();
    let params = |tool: &str, region: Value| {
        let arguments = json!({ "region": region });
        Params::from([("name".to_owned(), raw(tool)), ("arguments".to_owned(), raw(&arguments))])
    };
    let cases = [
        (params("book", json!("eu")), "Complete", vec!["tools/list", "tools/call"]),
        // The list is kept for as long as the server says.
        (params("book", json!("eu")), "Complete", vec!["tools/call"]),
        (params("bad", json!("eu")), "Invalid", vec![]),
        // No field for what is null; a refusal of the fields has the tools listed again, once.
        (params("book", json!(null)), "Error", vec!["tools/call", "tools/list", "tools/call"]),
    ];
    assert_eq!(requests.recv().await.unwrap().1["method"], "server/discover");
    for (params, outcome, sent) in cases {
        let talk = peer.request("tools/call", &params, &options, |_| {}).await.unwrap();
        assert!(format!("{:?}", talk.outcome).starts_with(outcome), "{talk:?}");
        let mut heard = Vec::new();
        while let Ok((_, body)) = requests.try_recv() {
            heard.push(body["method"].as_str().unwrap().to_owned());
        }
        assert_eq!(heard, sent, "{params:?}");
    }
}

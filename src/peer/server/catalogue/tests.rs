//! Lists, what stands in them, and what can be asked about it, over both transports.

use serde_json::{Value, json};

use crate::peer::server::wire::{BOTH, When, Wire};
use crate::peer::server::{AnswerMode, ServerOptions};
use crate::spec::transport::Transport;
use crate::time::Ms;

const LISTS: [(&str, &str, &str); 4] = [
    ("tools/list", "tools", "name"),
    ("resources/list", "resources", "uri"),
    ("resources/templates/list", "resourceTemplates", "uriTemplate"),
    ("prompts/list", "prompts", "name"),
];

#[tokio::test(start_paused = true)]
async fn the_pages_of_each_list_join_to_the_whole() {
    for transport in BOTH {
        let mut whole = Wire::start(transport, ServerOptions::default());
        let paged = ServerOptions { page_size: Some(2), ..ServerOptions::default() };
        let mut paged = Wire::start(transport, paged);
        for (method, member, key) in LISTS {
            let all = whole.ask(method, json!({})).await["result"].take();
            assert!(all.get("nextCursor").is_none(), "{method}");
            let (mut joined, mut params) = (Vec::new(), json!({}));
            loop {
                let page = paged.ask(method, params).await["result"].take();
                assert!(page["ttlMs"].is_u64() && page["cacheScope"] == "public", "{method}: {page}");
                let items = page[member].as_array().unwrap().clone();
                assert!((1..=2).contains(&items.len()));
                joined.extend(items);
                let Some(cursor) = page.get("nextCursor") else { break };
                params = json!({ "cursor": cursor });
            }
            assert_eq!(json!(joined), all[member], "{method}");
            assert!(joined.len() > 1 && joined.iter().all(|item| item[key].is_string()), "{method}");
            for cursor in [json!("after-99"), json!(""), json!(3), json!("after-1000000000000000000000")] {
                let answer = paged.ask(method, json!({ "cursor": cursor })).await;
                assert_eq!(answer["error"]["code"], -32602, "{method} {cursor}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_listed_resource_can_be_read_and_one_that_is_none_is_refused_by_its_uri() {
    for transport in BOTH {
        let mut wire = Wire::start(transport, ServerOptions::default());
        wire.capabilities = json!({ "elicitation": {} });
        let list = wire.ask("resources/list", json!({})).await["result"]["resources"].take();
        for resource in list.as_array().unwrap() {
            let uri = &resource["uri"];
            let result = wire.ask("resources/read", json!({ "uri": uri })).await["result"].take();
            if result["resultType"] == "input_required" {
                continue;
            }
            assert_eq!(&result["contents"][0]["uri"], uri);
            assert!(result["ttlMs"].is_u64(), "{uri}");
        }
        for uri in ["notes://nothing", "notes://Not/A-Name", "nowhere", "extra://resource", "slow://x"] {
            let error = wire.ask("resources/read", json!({ "uri": uri })).await["error"].take();
            assert_eq!((&error["code"], &error["data"]), (&json!(-32602), &json!({ "uri": uri })));
        }
        assert_eq!(wire.ask("resources/read", json!({})).await["error"]["code"], -32602);
    }
}

#[tokio::test(start_paused = true)]
async fn what_clients_change_is_changed_for_everybody() {
    let mut one = Wire::start(Transport::Stdio, ServerOptions::default());
    let mut two = Wire::to(Transport::Http, &one.core);
    for (name, text) in [("later", "first"), ("later", "second"), ("today", "rewritten")] {
        one.call("note_write", json!({ "name": name, "text": text })).await;
        let uri = format!("notes://{name}");
        let read = two.ask("resources/read", json!({ "uri": uri })).await;
        assert_eq!(read["result"]["contents"][0]["text"], text);
    }
    for (name, text) in [
        ("Upper", "x".to_owned()),
        ("", "x".to_owned()),
        ("a/b", "x".to_owned()),
        ("big", "x".repeat(70_000)),
    ] {
        let refused = one.call("note_write", json!({ "name": name, "text": text })).await;
        assert_eq!(refused["isError"], true, "{name}");
    }
    for (what, method, member) in [
        ("tool", "tools/list", "tools"),
        ("prompt", "prompts/list", "prompts"),
        ("resource", "resources/list", "resources"),
    ] {
        let mut lengths = Vec::new();
        for on in [false, true, true, false] {
            one.call("switch_extra", json!({ "what": what, "on": on })).await;
            let list = two.ask(method, json!({})).await["result"][member].take();
            lengths.push(list.as_array().unwrap().len());
        }
        let few = lengths[0];
        assert_eq!(lengths, [few, few + 1, few + 1, few], "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn prompts_are_made_of_their_arguments() {
    let mut wire = Wire::start(Transport::Http, ServerOptions::default());
    let cases = [
        (json!({ "name": "letter", "arguments": { "country": "Japan" } }), "Write a letter from Japan."),
        (
            json!({ "name": "letter", "arguments": { "country": "Japan", "city": "Kyoto" } }),
            "Write a letter from Kyoto, Japan.",
        ),
        (json!({ "name": "slow_prompt", "arguments": { "ms": "5" } }), "This took 5 ms."),
    ];
    for (params, text) in cases {
        let result = wire.ask("prompts/get", params).await["result"].take();
        assert_eq!(result["messages"][0]["content"]["text"], text);
        assert!(result["description"].is_string());
    }
    for params in [
        json!({ "name": "letter" }),
        json!({ "name": "letter", "arguments": { "country": 7 } }),
        json!({ "name": "letter", "arguments": [] }),
        json!({ "name": "extra_prompt" }),
        json!({ "name": "slow_prompt", "arguments": { "ms": "soon" } }),
        json!({}),
    ] {
        assert_eq!(wire.ask("prompts/get", params.clone()).await["error"]["code"], -32602, "{params}");
    }
}

#[tokio::test(start_paused = true)]
async fn completion_knows_what_was_typed_and_what_is_known() {
    let mut wire = Wire::start(Transport::Stdio, ServerOptions::default());
    let prompt = |argument: &str, value: &str, context: Value| {
        json!({
            "ref": { "type": "ref/prompt", "name": "letter" },
            "argument": { "name": argument, "value": value },
            "context": { "arguments": context },
        })
    };
    let note = json!({
        "ref": { "type": "ref/resource", "uri": "notes://{name}" },
        "argument": { "name": "name", "value": "to" },
    });
    let cases = [
        (prompt("country", "", json!({})), json!(["France", "Germany", "Japan"])),
        (prompt("country", "j", json!({})), json!(["Japan"])),
        (prompt("city", "", json!({ "country": "Japan" })), json!(["Kyoto", "Osaka", "Tokyo"])),
        (prompt("city", "L", json!({})), json!(["Lyon", "Leipzig"])),
        (prompt("city", "x", json!({})), json!([])),
        (note, json!(["today"])),
    ];
    for (params, values) in cases {
        let completion = wire.ask("completion/complete", params).await["result"]["completion"].take();
        assert_eq!(completion["values"], values);
        assert_eq!(completion["hasMore"], false);
    }
    let many = json!({
        "ref": { "type": "ref/prompt", "name": "slow_prompt" }, "argument": { "name": "ms", "value": "" },
    });
    let completion = wire.ask("completion/complete", many).await["result"]["completion"].take();
    assert_eq!(completion["values"].as_array().unwrap().len(), 100, "CMP-01");
    assert_eq!((&completion["total"], &completion["hasMore"]), (&json!(1000), &json!(true)));
    for params in [
        json!({}),
        json!({ "ref": { "type": "ref/other" }, "argument": { "name": "a", "value": "" } }),
        prompt("nothing", "", json!({})),
        json!({ "ref": { "type": "ref/prompt", "name": "no" }, "argument": { "name": "a", "value": "" } }),
        json!({ "ref": { "type": "ref/resource", "uri": "no://" }, "argument": { "name": "a", "value": "" } }),
    ] {
        let answer = wire.ask("completion/complete", params.clone()).await;
        assert_eq!(answer["error"]["code"], -32602, "{params}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_reaches_tools_prompts_and_resources_alike() {
    let requests = [
        ("tools/call", json!({ "name": "silent" })),
        ("prompts/get", json!({ "name": "slow_prompt", "arguments": { "ms": "3600000" } })),
        ("resources/read", json!({ "uri": "slow://3600000" })),
    ];
    for transport in BOTH {
        for (method, params) in &requests {
            let mut wire = Wire::start(transport, ServerOptions::default());
            // The writer of the pipes is one that runs all the time.
            let before = wire.core.handlers.len();
            let given_up = wire.give_up_request(method, params.clone(), When::After(Ms(50))).await;
            assert!(given_up, "{transport:?} {method} was answered");
            let ended = async {
                while wire.core.handlers.len() > before.max(usize::from(transport == Transport::Stdio)) {
                    tokio::task::yield_now().await;
                }
            };
            tokio::time::timeout(Ms(100).into(), ended).await.expect("its handler goes on");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_deaf_server_works_on_for_nobody() {
    let slow = json!({ "steps": 5, "step_ms": 100 });
    for (mode, works_on) in [
        (AnswerMode::Auto, false),
        (AnswerMode::Sse, false),
        (AnswerMode::Json, false),
        (AnswerMode::JsonDeaf, true),
        (AnswerMode::LegacyStateless, true),
    ] {
        let mut wire = Wire::start(Transport::Http, ServerOptions { mode, ..ServerOptions::default() });
        assert!(wire.give_up("slow", slow.clone(), When::After(Ms(250))).await, "{mode:?}");
        tokio::time::sleep(Ms(10).into()).await;
        assert_eq!(!wire.core.handlers.is_empty(), works_on, "{mode:?}");
        tokio::time::sleep(Ms(300).into()).await;
        assert!(wire.core.handlers.is_empty(), "{mode:?} goes on although the work is done");
    }
}

#[tokio::test(start_paused = true)]
async fn logs_come_for_a_request_that_asks_and_from_its_level_on() {
    for (level, expected) in [(None, 0), (Some("debug"), 8), (Some("error"), 4), (Some("emergency"), 1)] {
        for transport in BOTH {
            let mut wire = Wire::start(transport, ServerOptions::default());
            wire.log_level = level;
            let id = wire.open("tools/call", json!({ "name": "logs" })).await;
            let mut logs = Vec::new();
            let mut message = wire.heard().await;
            while let Some(log) = message.as_ref().filter(|message| message["id"] != id) {
                assert_eq!(log["method"], "notifications/message");
                logs.push(log["params"]["level"].clone());
                message = wire.heard().await;
            }
            assert_eq!(logs.len(), expected, "{level:?} {transport:?}");
            assert!(level.is_none() || logs[0] == json!(level.unwrap()));
        }
    }
    let mut wire = Wire::start(Transport::Http, ServerOptions::default());
    wire.log_level = Some("loud");
    assert_eq!(wire.ask("tools/list", json!({})).await["error"]["code"], -32602, "LOG-07");
}

#[tokio::test(start_paused = true)]
async fn structured_content_fits_its_schema_and_repeats_as_text() {
    let mut wire = Wire::start(Transport::Http, ServerOptions::default());
    let sum = wire.call("sum", json!({ "numbers": [1, 2.0, 39] })).await;
    assert_eq!(sum["structuredContent"], json!({ "sum": 42, "count": 3 }));
    let text: Value = serde_json::from_str(sum["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(text, sum["structuredContent"]);
    for numbers in [json!("1"), json!([1.5]), json!([i64::MAX, 1]), json!([null])] {
        assert_eq!(wire.call("sum", json!({ "numbers": numbers })).await["isError"], true, "{numbers}");
    }
    let kinds: Vec<Value> = wire.call("contents", json!({})).await["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["type"].clone())
        .collect();
    assert_eq!(json!(kinds), json!(["text", "image", "audio", "resource_link", "resource"]));
}

#[tokio::test(start_paused = true)]
async fn the_page_of_the_server_names_all_that_it_offers() {
    let page = include_str!("../../../../docs/serve.md");
    let mut wire = Wire::start(Transport::Stdio, ServerOptions::default());
    for (method, member, key) in LISTS {
        let list = wire.ask(method, json!({})).await["result"][member].take();
        for item in list.as_array().unwrap() {
            let name = item[key].as_str().unwrap();
            // Of a family of resources the page names the scheme.
            let named =
                name.split_once("://").map_or(format!("`{name}`"), |(scheme, _)| format!("`{scheme}://"));
            assert!(page.contains(&named), "docs/serve.md lacks {named}");
        }
    }
}

//! Who is answered how: sessions, statuses, eras.

use super::*;

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
async fn who_cannot_be_asked_is_told_so_as_the_result() {
    for (version, capabilities) in [("2025-11-25", json!({})), ("2025-03-26", json!({ "elicitation": {} }))] {
        let core = core(ServerEra::Legacy, AnswerMode::Auto);
        let client = Client::connected(&core, version, capabilities).await;
        let got = client.call(1, "ask_user", json!({})).await;
        assert_eq!(got.result()["isError"], true, "{got:?}");
    }
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

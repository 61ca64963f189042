//! What comes on streams, and what becomes of it when their connections break.

use super::*;

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
    let slow = call(5, "slow", json!({ "steps": 4, "step_ms": 100 })).to_string();
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

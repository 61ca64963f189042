//! Rounds over both transports, on paused time.

use serde_json::{Value, json};

use crate::peer::server::ServerOptions;
use crate::peer::server::wire::{BOTH, Wire};
use crate::spec::transport::Transport;
use crate::time::Ms;

/// A tool, a prompt and a resource that ask for a name: method, parameters, the place of the answer.
fn askers() -> [(&'static str, Value, &'static str); 3] {
    [
        ("tools/call", json!({ "name": "ask_user", "arguments": {} }), "/content/0/text"),
        ("prompts/get", json!({ "name": "greeting" }), "/messages/0/content/text"),
        ("resources/read", json!({ "uri": "greeting://reader" }), "/contents/0/text"),
    ]
}

fn with(params: &Value, members: &[(&str, Value)]) -> Value {
    let mut params = params.clone();
    for (name, value) in members {
        params[*name] = value.clone();
    }
    params
}

fn asking(transport: Transport, options: ServerOptions) -> Wire {
    let mut wire = Wire::start(transport, options);
    wire.capabilities = json!({ "elicitation": {}, "sampling": {}, "roots": {} });
    wire
}

fn ada() -> Value {
    json!({ "name": { "action": "accept", "content": { "name": "Ada" } } })
}

#[tokio::test(start_paused = true)]
async fn a_tool_a_prompt_and_a_resource_ask_and_go_on_with_the_answer() {
    for transport in BOTH {
        for (method, params, place) in askers() {
            let mut wire = asking(transport, ServerOptions::default());
            let first = wire.ask(method, params.clone()).await["result"].take();
            assert_eq!(first["resultType"], "input_required", "{method}");
            assert_eq!(first["inputRequests"]["name"]["method"], "elicitation/create");
            assert!(first.get("ttlMs").is_none(), "MRT-14: {first}");
            let state = first["requestState"].clone();
            let retry = with(&params, &[("requestState", state), ("inputResponses", ada())]);
            let second = wire.ask(method, retry).await["result"].take();
            assert_eq!(second["resultType"], "complete");
            let text = second.pointer(place).and_then(Value::as_str).unwrap();
            assert!(text.contains("Ada"), "{method}: {text}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_client_does_not_declare_is_not_asked() {
    for (method, params, _) in askers() {
        for (declared, required) in [
            (json!({}), json!({ "elicitation": {} })),
            (json!({ "elicitation": { "url": {} } }), json!({ "elicitation": { "form": {} } })),
            (json!({ "elicitation": null }), json!({ "elicitation": {} })),
        ] {
            let mut wire = Wire::start(Transport::Http, ServerOptions::default());
            wire.capabilities = declared;
            let error = wire.ask(method, params.clone()).await["error"].take();
            assert_eq!(error["code"], -32021, "{method}");
            assert_eq!(error["data"], json!({ "requiredCapabilities": required }));
        }
    }
}

/// How a retry goes wrong, and what comes of it: an error code, or a result type.
#[tokio::test(start_paused = true)]
async fn only_the_state_that_was_given_out_for_this_request_is_taken() {
    let call = json!({ "name": "ask_user", "arguments": {} });
    let other = json!({ "name": "ask_user", "arguments": { "x": 1 } });
    let mut wire = asking(Transport::Http, ServerOptions::default());
    wire.principal = Some("Bearer one");
    let state = wire.ask("tools/call", call.clone()).await["result"]["requestState"].take();
    let text = state.as_str().unwrap();
    let forged = json!(format!("{text}x"));
    let answers = ("inputResponses", ada());
    let retries = [
        ("right", with(&call, &[("requestState", state.clone()), answers.clone()]), json!("complete")),
        ("again", with(&call, &[("requestState", state.clone()), answers.clone()]), json!("complete")),
        ("without the state", with(&call, std::slice::from_ref(&answers)), json!(-32602)),
        ("forged", with(&call, &[("requestState", forged), answers.clone()]), json!(-32602)),
        ("no string", with(&call, &[("requestState", json!(7)), answers.clone()]), json!(-32602)),
        ("other arguments", with(&other, &[("requestState", state.clone()), answers.clone()]), json!(-32602)),
        (
            "no object",
            with(&call, &[("requestState", state.clone()), ("inputResponses", json!(null))]),
            json!(-32602),
        ),
        ("no answer", with(&call, &[("requestState", state.clone())]), json!("input_required")),
        (
            "another key",
            with(
                &call,
                &[("requestState", state.clone()), ("inputResponses", json!({ "x": ada()["name"] }))],
            ),
            json!("input_required"),
        ),
        (
            "no shape",
            with(&call, &[("requestState", state.clone()), ("inputResponses", json!({ "name": 12345 }))]),
            json!("input_required"),
        ),
        (
            "more than asked",
            with(
                &call,
                &[
                    ("requestState", state.clone()),
                    ("inputResponses", json!({ "name": ada()["name"], "more": { "action": "cancel" } })),
                ],
            ),
            json!("complete"),
        ),
    ];
    for (what, params, expected) in retries {
        let answer = wire.ask("tools/call", params).await;
        let came =
            answer["error"].get("code").cloned().unwrap_or_else(|| answer["result"]["resultType"].clone());
        assert_eq!(came, expected, "{what}: {answer}");
    }
    let retry = with(&call, &[("requestState", state), answers]);
    wire.principal = Some("Bearer two");
    assert_eq!(wire.ask("tools/call", retry.clone()).await["error"]["code"], -32602, "for somebody else");
    wire.principal = Some("Bearer one");
    tokio::time::sleep(Ms(3_600_001).into()).await;
    assert_eq!(wire.ask("tools/call", retry).await["error"]["code"], -32602, "too late");
}

#[tokio::test(start_paused = true)]
async fn answers_of_earlier_rounds_travel_on() {
    let options = ServerOptions { conformance: true, ..ServerOptions::default() };
    let mut wire = asking(Transport::Stdio, options);
    let call = json!({ "name": "test_input_required_result_multi_round", "arguments": {} });
    let answer = |field: &str| json!({ "action": "accept", "content": { field: "x" } });
    let mut result = wire.ask("tools/call", call.clone()).await["result"].take();
    for (key, field) in [("step1", "name"), ("step2", "color")] {
        let asked: Vec<&String> = result["inputRequests"].as_object().unwrap().keys().collect();
        assert_eq!(asked, [key]);
        let responses = json!({ key: answer(field) });
        let retry =
            with(&call, &[("requestState", result["requestState"].clone()), ("inputResponses", responses)]);
        result = wire.ask("tools/call", retry).await["result"].take();
    }
    assert_eq!(result["content"][0]["text"], "both rounds answered");
}

#[tokio::test(start_paused = true)]
async fn a_part_of_the_answers_leaves_the_rest_to_be_asked() {
    let options = ServerOptions { conformance: true, ..ServerOptions::default() };
    let mut wire = asking(Transport::Http, options);
    let call = json!({ "name": "test_input_required_result_multiple_inputs", "arguments": {} });
    let first = wire.ask("tools/call", call.clone()).await["result"].take();
    assert_eq!(first["inputRequests"].as_object().unwrap().len(), 3);
    let some = json!({ "user_name": ada()["name"], "client_roots": { "roots": [] } });
    let retry = with(&call, &[("requestState", first["requestState"].clone()), ("inputResponses", some)]);
    let second = wire.ask("tools/call", retry).await["result"].take();
    let asked: Vec<&String> = second["inputRequests"].as_object().unwrap().keys().collect();
    assert_eq!(asked, ["greeting"]);
    let rest = json!({ "greeting": { "role": "assistant", "content": { "type": "text", "text": "hi" } } });
    let retry = with(&call, &[("requestState", second["requestState"].clone()), ("inputResponses", rest)]);
    assert_eq!(wire.ask("tools/call", retry).await["result"]["resultType"], "complete");
}

#[tokio::test(start_paused = true)]
async fn a_round_may_go_on_with_another_server_that_has_the_key() {
    let call = json!({ "name": "ask_user", "arguments": {} });
    let with_key = |key: &str| ServerOptions { state_key: Some(key.into()), ..ServerOptions::default() };
    let mut one = asking(Transport::Http, with_key("shared"));
    let state = one.ask("tools/call", call.clone()).await["result"]["requestState"].take();
    let retry = with(&call, &[("requestState", state), ("inputResponses", ada())]);
    for (key, expected) in [("shared", json!("complete")), ("other", Value::Null)] {
        let mut two = asking(Transport::Http, with_key(key));
        let answer = two.ask("tools/call", retry.clone()).await;
        assert_eq!(answer["result"]["resultType"], expected, "{key}: {answer}");
    }
}

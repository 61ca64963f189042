//! Messages as they are written and read, of each era.

use super::*;

/// A frame, told short.
fn told(text: &str, era: Era) -> String {
    match read(text.as_bytes(), era).remove(0) {
        Read::Answer { id, outcome } => {
            let id = id.map_or_else(|| "-".to_owned(), |id| id.to_string());
            let outcome = match outcome {
                Outcome::Complete(_) => "complete".to_owned(),
                Outcome::InputRequired(_) => "input".to_owned(),
                Outcome::Task(_) => "task".to_owned(),
                Outcome::Error { code, .. } => format!("error {code}"),
                Outcome::Invalid(_) => "invalid".to_owned(),
                other => format!("{other:?}"),
            };
            format!("{id} {outcome}")
        }
        Read::Progress { token, progress } => format!("{token} at {}", progress.value),
        Read::Notice(notice) => {
            let about = notice.about.map(|id| format!(" about {id}")).unwrap_or_default();
            format!("notice{about}")
        }
        Read::Asked(asked) => format!("{} asks", asked.id),
        Read::Bad(_) => "bad".to_owned(),
    }
}

#[test]
fn an_answer_is_judged_by_its_letter() {
    let cases = [
        (r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}"#, "1 complete"),
        (r#"{"jsonrpc":"2.0","id":"1","result":{"resultType":"input_required"}}"#, "\"1\" input"),
        (r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"task"}}"#, "1 task"),
        (r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"odd"}}"#, "1 invalid"),
        (r#"{"jsonrpc":"2.0","id":1,"result":[]}"#, "1 invalid"),
        (r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":1}}"#, "1 invalid"),
        (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, "1 invalid"),
        (r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}"#, "1 error -32601"),
        (r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"no"}}"#, "- error -32700"),
        (r#"{"jsonrpc":"2.0","id":1,"error":{"code":1.5,"message":"no"}}"#, "1 invalid"),
        (r#"{"jsonrpc":"2.0","id":1,"error":{"code":1}}"#, "1 invalid"),
        (r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#, "bad"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#, "bad"),
        (r#"{"jsonrpc":"2.0","method":"notifications/message"}"#, "notice"),
        (
            r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":7}}}"#,
            "notice about 7",
        ),
        (
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"7"}}"#,
            "notice about \"7\"",
        ),
        (r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#, "bad"),
        (
            r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":0.5}}"#,
            "7 at 0.5",
        ),
        ("[]", "bad"),
        ("hello", "bad"),
        ("", "bad"),
    ];
    for (text, want) in cases {
        assert_eq!(told(text, Era::V2026_07_28), want, "{text}");
    }
}

#[test]
fn each_request_is_stamped_and_big_numbers_pass_unrounded() {
    let arguments: Box<RawValue> = serde_json::from_str(r#"{"n": 12345678901234567890123}"#).unwrap();
    let params = Params::from([("name".to_owned(), raw("größe")), ("arguments".to_owned(), arguments)]);
    let options = CallOptions { wants_progress: true, ..CallOptions::default() };
    let outgoing = Outgoing::new(3, "tools/call", params, &options, Speech::modern());
    assert_eq!(outgoing.target.as_deref(), Some("größe"));
    let text = std::str::from_utf8(&outgoing.body).unwrap();
    assert!(text.contains(r#""arguments":{"n": 12345678901234567890123}"#), "{text}");
    let body: serde_json::Value = serde_json::from_str(text).unwrap();
    let meta = &body["params"]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], json!({}));
    assert_eq!((&meta["progressToken"], &body["id"]), (&json!("progress-3"), &json!(3)));
}

#[test]
fn older_eras_have_no_result_type_ask_themselves_and_one_has_batches() {
    let result = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    let asks = r#"{"jsonrpc":"2.0","id":"r","method":"roots/list"}"#;
    let batch = format!("[{result},{asks}]");
    for era in Era::ALL {
        let is_old = !era.is_modern();
        assert_eq!(told(result, era), if is_old { "1 complete" } else { "1 invalid" }, "{era:?}");
        assert_eq!(told(asks, era), if is_old { "\"r\" asks" } else { "bad" }, "{era:?}");
        let read = read(batch.as_bytes(), era);
        assert_eq!(read.len(), if era == Era::V2025_03_26 { 2 } else { 1 }, "{era:?} {read:?}");
    }
}

#[test]
fn an_older_request_has_no_stamp_and_no_mirrored_fields() {
    let mirrored = vec![("Mcp-Param-Region".to_owned(), "eu".to_owned())];
    let options = CallOptions { wants_progress: true, mirrored, ..CallOptions::default() };
    let outgoing = Outgoing::new(4, "tools/call", Params::new(), &options, Speech::of(Era::V2025_06_18));
    let body: serde_json::Value = serde_json::from_slice(&outgoing.body).unwrap();
    assert_eq!(body["params"], json!({ "_meta": { "progressToken": "progress-4" } }));
    assert!(outgoing.mirrored.is_empty());
    let opening = Outgoing::initialize(5, Era::V2025_11_25, &CallOptions::default());
    let body: serde_json::Value = serde_json::from_slice(&opening.body).unwrap();
    assert_eq!(body["params"]["protocolVersion"], "2025-11-25");
    assert!(opening.speech.version.is_empty() && body["params"].get("_meta").is_none());
}

#[test]
fn a_question_of_the_server_gets_one_answer_under_its_own_id() {
    let asked = |method: &str| Asked { id: Id::Str("q".into()), method: method.to_owned(), params: None };
    let by_name = [("roots/list".to_owned(), raw(&json!({ "roots": [] })))].into();
    let answers = Answers { by_name, fills_forms: false };
    let cases = [
        ("ping", r#""result":{}"#),
        ("roots/list", r#""result":{"roots":[]}"#),
        ("elicitation/create", r#""result":{"action":"cancel"}"#),
        ("sampling/createMessage", r#""error":{"code":-32601,"message":"this client does not answer that"}"#),
    ];
    for (method, end) in cases {
        let expected = format!(r#"{{"jsonrpc":"2.0","id":"q",{end}}}"#);
        assert_eq!(String::from_utf8_lossy(&reply(&asked(method), &answers)), expected, "{method}");
    }
}

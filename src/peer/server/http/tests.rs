//! Exchanges without sockets, on paused time; and real connections.

mod sockets;

use http_body_util::Full;
use hyper::StatusCode;
use serde_json::{Value, json};

use super::*;
use crate::peer::server::ServerOptions;
use crate::peer::server::core::Core;
use crate::spec::headers;
use crate::time::TimerClock;

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"progressToken":"t"}"#;

/// A request that is right in everything, as head fields and body.
struct Case {
    method: &'static str,
    path: &'static str,
    fields: Vec<(&'static str, String)>,
    body: String,
}

impl Case {
    fn call(tool: &str, arguments: &Value) -> Case {
        Case {
            method: "POST",
            path: "/mcp",
            fields: vec![
                ("accept", "application/json, text/event-stream".to_owned()),
                ("content-type", "application/json".to_owned()),
                ("mcp-protocol-version", "2026-07-28".to_owned()),
                ("mcp-method", "tools/call".to_owned()),
                ("mcp-name", tool.to_owned()),
            ],
            body: format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments},{META}}}}}"#
            ),
        }
    }

    /// A request of any method about `target`, which stands in `member` of its parameters.
    fn of(method: &'static str, member: &str, target: &str) -> Case {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"{member}":{},{META}}}}}"#,
            json!(target)
        );
        Case::echo()
            .field("mcp-method", Some(method))
            .field("mcp-name", Some(&headers::encode(target)))
            .body(body)
    }

    /// A call whose arguments stand in fields too.
    fn region(arguments: &Value, fields: &[(&'static str, &str)]) -> Case {
        let call = Case::call("region", arguments);
        fields.iter().fold(call, |call, (name, value)| call.also(name, Some(value)))
    }

    fn echo() -> Case {
        Case::call("echo", &json!({ "text": "hi" }))
    }

    /// With this field set to `value`, or taken away.
    fn field(mut self, name: &'static str, value: Option<&str>) -> Case {
        self.fields.retain(|(known, _)| *known != name);
        self.also(name, value)
    }

    /// With one more field of this name.
    fn also(mut self, name: &'static str, value: Option<&str>) -> Case {
        self.fields.extend(value.map(|value| (name, value.to_owned())));
        self
    }

    fn body(self, body: impl Into<String>) -> Case {
        Case { body: body.into(), ..self }
    }

    fn replaced(self, from: &str, to: &str) -> Case {
        let body = self.body.replace(from, to);
        assert_ne!(body, self.body, "{from} is not in the body");
        Case { body, ..self }
    }

    fn request(&self) -> HttpRequest<Full<Bytes>> {
        let mut request = HttpRequest::builder().method(self.method).uri(self.path);
        for (name, value) in &self.fields {
            request = request.header(*name, value);
        }
        request.body(Full::new(Bytes::from(self.body.clone()))).unwrap()
    }

    async fn answer(&self, core: &SharedCore) -> HttpResponse<Answer> {
        respond(core.clone(), self.request(), None).await
    }
}

fn core(mode: AnswerMode) -> SharedCore {
    let allowed_origins = vec!["http://app.example".to_owned()];
    Core::new(ServerOptions { mode, allowed_origins, ..ServerOptions::default() })
}

async fn text(answer: HttpResponse<Answer>) -> String {
    String::from_utf8(answer.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

/// Status and JSON-RPC error code; code 0: a result or an empty body, 1: another body.
async fn outcome(case: &Case) -> (u16, i64) {
    let answer = case.answer(&core(AnswerMode::Auto)).await;
    let status = answer.status().as_u16();
    assert!(answer.headers().get("mcp-session-id").is_none());
    let body = text(answer).await;
    let code = match serde_json::from_str::<Value>(&body) {
        Ok(body) => body["error"]["code"].as_i64().unwrap_or(0),
        Err(_) => i64::from(!body.is_empty()),
    };
    (status, code)
}

#[tokio::test(start_paused = true)]
async fn each_input_has_its_status_and_code() {
    let echo = Case::echo;
    let large = "x".repeat(BODY_LIMIT_BYTES);
    let with_name = |tool: &str| Case::call(tool, &json!({})).field("mcp-name", Some("=?base64?ZWNobw==?="));
    let method = |method| Case { method, ..echo() };
    let plain = |name, value| echo().field(name, value);
    let cases = [
        ("right", echo(), (200, 0)),
        ("query", Case { path: "/mcp?x=1", ..echo() }, (200, 0)),
        ("other path", Case { path: "/", ..echo() }, (404, 1)),
        ("longer path", Case { path: "/mcp/", ..echo() }, (404, 1)),
        ("foreign origin", plain("origin", Some("http://evil.example")), (403, 1)),
        ("null origin", plain("origin", Some("null")), (403, 1)),
        ("longer origin", plain("origin", Some("http://app.example.evil")), (403, 1)),
        ("listed origin", plain("origin", Some("http://app.example")), (200, 0)),
        (
            "two origins",
            plain("origin", Some("http://app.example")).also("origin", Some("http://x")),
            (400, 1),
        ),
        ("GET", method("GET"), (405, 1)),
        ("DELETE", method("DELETE"), (405, 1)),
        ("path before origin", Case { path: "/", ..plain("origin", Some("null")) }, (404, 1)),
        ("origin before method", Case { method: "GET", ..plain("origin", Some("null")) }, (403, 1)),
        ("no content type", plain("content-type", None), (415, 1)),
        ("text", plain("content-type", Some("text/plain")), (415, 1)),
        ("charset", plain("content-type", Some("Application/JSON; charset=utf-8")), (200, 0)),
        ("no accept", plain("accept", None), (406, 1)),
        ("accept JSON only", plain("accept", Some("application/json")), (406, 1)),
        ("accept stream only", plain("accept", Some("text/event-stream")), (406, 1)),
        ("accept wildcard", plain("accept", Some("*/*")), (406, 1)),
        (
            "accept in two fields",
            plain("accept", Some("text/event-stream;q=1")).also("accept", Some("application/json")),
            (200, 0),
        ),
        ("no JSON", echo().body("{"), (400, -32700)),
        ("empty", echo().body(""), (400, -32700)),
        ("large", echo().replaced("hi", &large), (400, -32700)),
        ("batch", echo().body("[]"), (400, -32600)),
        ("response", echo().body(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#), (400, -32600)),
        ("null id", echo().replaced("\"id\":1", "\"id\":null"), (400, -32600)),
        ("no _meta", echo().replaced("_meta", "meta"), (400, -32602)),
        ("no capabilities", echo().replaced("clientCapabilities", "x"), (400, -32602)),
        ("_meta before mirrors", echo().replaced("_meta", "meta").field("mcp-method", None), (400, -32602)),
        ("no version field", plain("mcp-protocol-version", None), (400, -32020)),
        ("other version field", plain("mcp-protocol-version", Some("2025-11-25")), (400, -32020)),
        ("no method field", plain("mcp-method", None), (400, -32020)),
        ("method in other case", plain("mcp-method", Some("Tools/Call")), (400, -32020)),
        ("no name field", plain("mcp-name", None), (400, -32020)),
        ("other name", plain("mcp-name", Some("slow")), (400, -32020)),
        ("name in other case", plain("mcp-name", Some("Echo")), (400, -32020)),
        ("two equal names", echo().also("mcp-name", Some("echo")), (400, -32020)),
        ("name in Base64", with_name("echo"), (200, 0)),
        ("other name in Base64", with_name("slow"), (400, -32020)),
        ("bad Base64", plain("mcp-name", Some("=?base64?ZW?=")), (400, -32020)),
        (
            "agreed version",
            echo().replaced("2026-07-28", "2027-01-01").field("mcp-protocol-version", Some("2027-01-01")),
            (400, -32022),
        ),
        ("mirrors before version", echo().replaced("2026-07-28", "2027-01-01"), (400, -32020)),
        (
            "unknown method",
            echo().replaced("tools/call", "tools/x").field("mcp-method", Some("tools/x")),
            (404, -32601),
        ),
        (
            "version before method",
            echo()
                .replaced("tools/call", "x")
                .field("mcp-method", Some("x"))
                .replaced("2026-07-28", "1")
                .field("mcp-protocol-version", Some("1")),
            (400, -32022),
        ),
        ("unknown tool", Case::call("nothing", &json!({})), (200, -32602)),
        ("missing capability", Case::call("ask_user", &json!({})), (400, -32021)),
        ("tool error", Case::call("fails", &json!({})), (200, 0)),
        (
            "session and resumption",
            plain("mcp-session-id", Some("s")).field("last-event-id", Some("7")),
            (200, 0),
        ),
        ("notification", echo().body(r#"{"jsonrpc":"2.0","method":"notifications/x"}"#), (202, 0)),
        (
            "initialize",
            echo().body(
                r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#,
            ),
            (400, -32022),
        ),
    ];
    for (name, case, expected) in cases {
        assert_eq!(outcome(&case).await, expected, "{name}");
    }
    let refused = Case { method: "GET", ..echo() }.answer(&core(AnswerMode::Auto)).await;
    assert_eq!(refused.headers()["allow"], "POST");
}

#[tokio::test(start_paused = true)]
async fn fields_mirror_the_target_of_each_method_and_the_arguments_that_ask_for_it() {
    let read = |uri: &str| Case::of("resources/read", "uri", uri);
    let get = || Case::of("prompts/get", "name", "slow_prompt");
    let (region, shard) = ("mcp-param-region", "Mcp-Param-Shard");
    let at = |fields: &[(&'static str, &str)]| Case::region(&json!({ "region": "eu", "shard": 7 }), fields);
    let some =
        |value: Value, fields: &[(&'static str, &str)]| Case::region(&json!({ "region": value }), fields);
    let long = "x".repeat(3000);
    let cases = [
        ("resource", read("notes://today"), (200, 0)),
        (
            "resource in other case",
            read("notes://today").field("mcp-name", Some("Notes://today")),
            (400, -32020),
        ),
        ("resource without its field", read("notes://today").field("mcp-name", None), (400, -32020)),
        ("no such resource, well mirrored", read("notes://日本"), (200, -32602)),
        ("not encoded", read("notes://日本").field("mcp-name", Some("notes://?")), (400, -32020)),
        ("looks encoded", read("=?base64?literal?="), (200, -32602)),
        ("outer space", read(" padded "), (200, -32602)),
        ("prompt", get(), (200, 0)),
        ("prompt by another name", get().field("mcp-name", Some("letter")), (400, -32020)),
        ("name of nothing", Case::of("tools/list", "x", "y"), (200, 0)),
        ("listing with a cursor of nobody", Case::of("tools/list", "cursor", "y"), (200, -32602)),
        ("arguments mirrored", at(&[(region, "eu"), (shard, "7")]), (200, 0)),
        ("an integer as a number", at(&[(region, "eu"), (shard, "7.0")]), (200, 0)),
        ("another integer", at(&[(region, "eu"), (shard, "8")]), (400, -32020)),
        ("no integer", at(&[(region, "eu"), (shard, "seven")]), (400, -32020)),
        ("one missing", at(&[(region, "eu")]), (400, -32020)),
        ("another value", at(&[(region, "us"), (shard, "7")]), (400, -32020)),
        ("twice", at(&[(region, "eu"), (region, "eu"), (shard, "7")]), (400, -32020)),
        ("null is not mirrored", some(Value::Null, &[]), (200, 0)),
        ("null mirrored", some(Value::Null, &[(region, "null")]), (400, -32020)),
        ("mirror of nothing", Case::region(&json!({}), &[(region, "eu")]), (400, -32020)),
        ("encoded", some(json!("größe"), &[(region, "=?base64?Z3LDtsOfZQ==?=")]), (200, 0)),
        ("not encoded enough", some(json!("größe"), &[(region, "=?base64?Z3LDtsOfZQ?=")]), (400, -32020)),
        (
            "half a sentinel is a literal",
            some(json!("=?base64?eA=="), &[(region, "=?base64?eA==")]),
            (200, 0),
        ),
        ("long", some(json!(long), &[(region, &long)]), (200, 0)),
        ("a field that no schema knows", Case::region(&json!({}), &[("mcp-param-other", "x")]), (200, 0)),
        ("a tool without such arguments", Case::echo().also(region, Some("eu")), (200, 0)),
        (
            "fields before version",
            at(&[(region, "us")])
                .replaced("2026-07-28", "2027-01-01")
                .field("mcp-protocol-version", Some("2027-01-01")),
            (400, -32020),
        ),
    ];
    for (name, case, expected) in cases {
        assert_eq!(outcome(&case).await, expected, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn hostile_bodies_have_the_answer_that_is_written_down() {
    let deep =
        |open: &str, close: &str, levels: usize| format!("{}{}", open.repeat(levels), close.repeat(levels));
    let lists = deep("[", "]", 100_000);
    let argument = |raw: &str| Case::echo().replaced("\"hi\"", raw);
    let nested = format!("{}1{}", r#"{"a":"#.repeat(10), "}".repeat(10));
    let in_meta =
        Case::echo().replaced(r#"clientCapabilities":{}"#, &format!(r#"clientCapabilities":{nested}"#));
    let cases = [
        ("a deep argument is a wrong one", argument(&lists), (200, 0)),
        ("a deep batch", Case::echo().body(lists.clone()), (400, -32600)),
        ("an open end", Case::echo().body("[".repeat(100_000)), (400, -32700)),
        ("half of a character", argument("\"\\ud800\""), (200, 0)),
        ("not UTF-8 as text", Case::echo().replaced("hi", "\u{fffd}"), (200, 0)),
        ("an id twice", Case::echo().replaced("\"id\":1", "\"id\":1,\"id\":2"), (400, -32600)),
        ("a large number", Case::echo().replaced("\"id\":1", "\"id\":18446744073709551617"), (200, 0)),
        ("an exponent", Case::echo().replaced("\"id\":1", "\"id\":1e999999999"), (400, -32600)),
        ("capabilities in ten levels", in_meta, (200, 0)),
    ];
    for (name, case, expected) in cases {
        assert_eq!(outcome(&case).await, expected, "{name}");
    }
    let mut request = Case::echo().request();
    let mut body = Case::echo().body.into_bytes();
    let at = body.windows(2).position(|two| two == b"hi").unwrap();
    body[at] = 0xff;
    *request.body_mut() = Full::new(Bytes::from(body));
    let answer = respond(core(AnswerMode::Auto), request, None).await;
    assert_eq!(answer.status(), 400);
    assert!(text(answer).await.contains("-32700"), "not UTF-8");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_at_once_keeps_its_status_in_every_mode() {
    for mode in [AnswerMode::Auto, AnswerMode::Sse, AnswerMode::Json, AnswerMode::LegacyStateless] {
        let answer = Case::call("ask_user", &json!({})).answer(&core(mode)).await;
        assert_eq!(answer.status(), 400, "{mode:?}");
        assert!(text(answer).await.contains("-32021"), "{mode:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_not_spoken_is_told_with_exactly_two_lists() {
    let case = Case::echo().replaced("2026-07-28", "2027-01-01");
    let case = case.field("mcp-protocol-version", Some("2027-01-01"));
    let body: Value = serde_json::from_str(&text(case.answer(&core(AnswerMode::Auto)).await).await).unwrap();
    assert_eq!(body["error"]["data"], json!({ "supported": ["2026-07-28"], "requested": "2027-01-01" }));
}

#[tokio::test(start_paused = true)]
async fn the_first_progress_makes_a_stream_with_the_fields_that_proxies_need() {
    let slow = Case::call("slow", &json!({ "steps": 2, "step_ms": 10 }));
    let answer = slow.answer(&core(AnswerMode::Auto)).await;
    for (name, value) in
        [("content-type", "text/event-stream"), ("cache-control", "no-cache"), ("x-accel-buffering", "no")]
    {
        assert_eq!(answer.headers()[name], value);
    }
    let text = text(answer).await;
    let events: Vec<Value> = text
        .split_terminator("\n\n")
        .map(|event| serde_json::from_str(event.strip_prefix("data: ").unwrap()).unwrap())
        .collect();
    let progress: Vec<&Value> = events.iter().map(|event| &event["params"]["progress"]).collect();
    assert_eq!(progress, [&json!(1), &json!(2), &json!(null)]);
    assert_eq!(events[2]["id"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_quiet_call_becomes_a_stream_of_comments_and_its_answer_ends_it() {
    let silent = Case::call("silent", &json!({ "ms": 40_000 }));
    let clock = TimerClock::start();
    let answer = silent.answer(&core(AnswerMode::Auto)).await;
    assert_eq!(
        (clock.now(), answer.headers()["content-type"].as_bytes()),
        (Ms(15_000), &b"text/event-stream"[..])
    );
    let text = text(answer).await;
    assert!(text.starts_with(": keep-alive\n\n: keep-alive\n\ndata: "), "{text}");
    assert_eq!(clock.now(), Ms(40_000));
}

#[tokio::test(start_paused = true)]
async fn the_other_modes_keep_to_one_form() {
    let slow = Case::call("slow", &json!({ "steps": 3, "step_ms": 20_000 }));
    let answer = slow.answer(&core(AnswerMode::Json)).await;
    assert_eq!(answer.headers()["content-type"], "application/json");
    assert!(text(answer).await.contains("3 steps done"));
    let clock = TimerClock::start();
    let answer = slow.answer(&core(AnswerMode::Sse)).await;
    assert_eq!((clock.now(), answer.status()), (Ms(0), StatusCode::OK));
    drop(answer);
    let refused = Case::call("nothing", &json!({})).field("mcp-name", None);
    let answer = refused.answer(&core(AnswerMode::Sse)).await;
    assert_eq!(answer.status(), 400, "a refusal before the handler is never a stream");
}

/// Waits until no handler runs any more.
async fn all_ended(core: &SharedCore) {
    core.handlers.close();
    tokio::time::timeout(Ms(5000).into(), core.handlers.wait()).await.expect("a handler goes on");
}

#[tokio::test(start_paused = true)]
async fn leaving_an_exchange_cancels_its_handler_before_and_after_the_head() {
    let core = core(AnswerMode::Auto);
    for mode_case in [Case::call("silent", &json!({})), Case::call("flood", &json!({ "n": 1_000_000 }))] {
        // Before the head: the exchange itself is dropped.
        let left = tokio::time::timeout(Ms(1).into(), Case::call("silent", &json!({})).answer(&core)).await;
        assert!(left.is_err());
        // After it: the body is.
        let mut answer = mode_case.answer(&core).await;
        assert!(answer.body_mut().frame().await.is_some());
        drop(answer);
    }
    all_ended(&core).await;
}

#[tokio::test(start_paused = true)]
async fn a_body_that_nobody_reads_holds_the_newest_progress_and_the_answer() {
    let options = ServerOptions { buffer: Some(3), mode: AnswerMode::Sse, ..ServerOptions::default() };
    let core = Core::new(options);
    let answer = Case::call("flood", &json!({ "n": 100 })).answer(&core).await;
    tokio::time::sleep(Ms(60_000).into()).await;
    let text = text(answer).await;
    let events: Vec<Value> = text
        .split_terminator("\n\n")
        .filter_map(|event| serde_json::from_str(event.strip_prefix("data: ")?).ok())
        .collect();
    let progress: Vec<&Value> = events.iter().map(|event| &event["params"]["progress"]).collect();
    assert_eq!(progress.last(), Some(&&json!(null)), "{text}");
    assert!(progress.len() <= 4 && progress.contains(&&json!(100)), "{progress:?}");
}

#[tokio::test(start_paused = true)]
async fn a_posted_cancel_is_accepted_and_has_no_effect() {
    let core = core(AnswerMode::Auto);
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    let slow = Case::call("slow", &json!({ "steps": 1, "step_ms": 50 }));
    let posted = async {
        tokio::time::sleep(Ms(10).into()).await;
        Case::echo().body(cancel).answer(&core).await
    };
    let (answer, posted) = tokio::join!(slow.answer(&core), posted);
    assert_eq!(posted.status(), 202);
    assert!(text(posted).await.is_empty());
    assert!(text(answer).await.contains("1 steps done"));
}

#[tokio::test(start_paused = true)]
async fn a_body_that_stalls_is_refused_after_five_seconds() {
    let stalled = http_body_util::StreamBody::new(futures_util::stream::pending::<
        Result<hyper::body::Frame<Bytes>, Infallible>,
    >());
    let request = Case::echo().request().map(|_| stalled);
    let clock = TimerClock::start();
    let answer = respond(core(AnswerMode::Auto), request, None).await;
    assert_eq!((clock.now(), answer.status().as_u16()), (Ms(5000), 400));
    assert!(text(answer).await.contains("-32700"));
}

#[tokio::test(start_paused = true)]
async fn a_body_that_drips_is_refused_in_the_end() {
    let drips = futures_util::stream::unfold((), |()| async {
        tokio::time::sleep(Ms(4000).into()).await;
        Some((Ok::<_, Infallible>(hyper::body::Frame::data(Bytes::from_static(b" "))), ()))
    });
    let request = Case::echo().request().map(|_| http_body_util::StreamBody::new(Box::pin(drips)));
    let clock = TimerClock::start();
    let answer = respond(core(AnswerMode::Auto), request, None).await;
    assert_eq!((clock.now(), answer.status().as_u16()), (BODY_TIME, 400));
    assert!(text(answer).await.contains("-32700"));
}

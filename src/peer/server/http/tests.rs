//! Exchanges without sockets, on paused time, and the ends of real connections.

use http_body_util::Full;
use hyper::StatusCode;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::peer::server::ServerOptions;
use crate::peer::server::core::Core;
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

/// How a client can leave a connection.
#[derive(Debug, Clone, Copy)]
enum Leave {
    Fin,
    Reset,
    HalfClose,
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "a test owns its task through the handle")]
async fn every_way_of_leaving_a_socket_cancels_and_the_server_ends_in_time() {
    for tool in ["silent", "flood"] {
        for leave in [Leave::Fin, Leave::Reset, Leave::HalfClose] {
            let core = core(AnswerMode::Auto);
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let addr = listener.local_addr().unwrap();
            let cancel = CancellationToken::new();
            let serving = tokio::spawn(serve(core.clone(), listener, cancel.clone()));
            let case = Case::call(tool, &json!({ "n": 1_000_000, "size": 1000 }));
            let mut stream = TcpStream::connect(addr).await.unwrap();
            stream.write_all(head_and_body(&case).as_bytes()).await.unwrap();
            if tool == "flood" {
                stream.read_exact(&mut [0; 64]).await.unwrap();
            } else {
                while core.handlers.is_empty() {
                    tokio::task::yield_now().await;
                }
            }
            match leave {
                Leave::Fin => drop(stream),
                Leave::Reset => {
                    socket2::SockRef::from(&stream).set_linger(Some(std::time::Duration::ZERO)).unwrap();
                    drop(stream);
                }
                Leave::HalfClose => {
                    stream.shutdown().await.unwrap();
                    // It goes on reading, as such a client does.
                    tokio::spawn(async move { stream.read_to_end(&mut Vec::new()).await });
                }
            }
            tracing::debug!(?leave, tool);
            all_ended(&core).await;
            cancel.cancel();
            tokio::time::timeout(Ms(500).into(), serving).await.expect("the server goes on").unwrap();
        }
    }
}

fn head_and_body(case: &Case) -> String {
    let fields: Vec<String> = case.fields.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    let fields = fields.join("\r\n");
    let length = case.body.len();
    format!("POST /mcp HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n{fields}\r\n\r\n{}", case.body)
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "a test owns its task through the handle")]
async fn it_ends_in_time_although_calls_are_open() {
    let core = core(AnswerMode::Auto);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let cancel = CancellationToken::new();
    let serving = tokio::spawn(serve(core.clone(), listener, cancel.clone()));
    let mut stream = TcpStream::connect(addr).await.unwrap();
    stream.write_all(head_and_body(&Case::call("silent", &json!({}))).as_bytes()).await.unwrap();
    while core.handlers.is_empty() {
        tokio::task::yield_now().await;
    }
    cancel.cancel();
    tokio::time::timeout(Ms(500).into(), serving).await.expect("the server goes on").unwrap();
    assert_eq!(stream.read(&mut [0; 8]).await.unwrap_or(0), 0, "no answer");
    assert!(core.handlers.is_empty());
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "a test lets its server end with the runtime")]
async fn h2_with_prior_knowledge_is_served() {
    use hyper_util::rt::TokioExecutor;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(serve(core(AnswerMode::Auto), listener, CancellationToken::new()));
    let stream = TokioIo::new(TcpStream::connect(addr).await.unwrap());
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    tokio::spawn(connection);
    let mut request = Case::echo().request();
    *request.uri_mut() = format!("http://{addr}/mcp").parse().unwrap();
    let answer = sender.send_request(request).await.unwrap();
    assert_eq!(answer.status(), 200);
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    assert!(body.windows(2).any(|two| two == b"hi"));
}

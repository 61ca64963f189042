//! Client and server together: on paused time over in-memory pipes, and over sockets.

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::peer::server::{AnswerMode, ServerOptions, serve_http, serve_pipes};

/// How long a test waits for what must happen at once.
const LIMIT: Ms = Ms(5000);

/// A client of the reference server over pipes.
#[expect(clippy::disallowed_methods, reason = "a test lets its server end with the runtime")]
fn over_pipes() -> Client {
    let (client_side, server_in) = tokio::io::duplex(1 << 16);
    let (server_out, client_read) = tokio::io::duplex(1 << 16);
    let options = ServerOptions::default();
    tokio::spawn(serve_pipes(options, server_in, server_out, CancellationToken::new()));
    Client::over_pipes(client_read, client_side)
}

/// A client whose server is the test itself.
fn by_hand() -> (Client, BufReader<DuplexStream>, DuplexStream) {
    let (client_side, server_in) = tokio::io::duplex(1 << 16);
    let (server_out, client_read) = tokio::io::duplex(1 << 16);
    (Client::over_pipes(client_read, client_side), BufReader::new(server_in), server_out)
}

/// A client of the reference server over sockets.
#[expect(clippy::disallowed_methods, reason = "a test lets its server end with the runtime")]
async fn over_http(mode: AnswerMode) -> Client {
    let options = ServerOptions { mode, max_progress_per_s: None, ..ServerOptions::default() };
    let any = "127.0.0.1:0".parse().unwrap();
    let (addr, serving) = serve_http(any, options, CancellationToken::new()).await.unwrap();
    tokio::spawn(serving);
    Client::http(&format!("http://{addr}/mcp")).unwrap()
}

async fn call(client: &Client, tool: &str, arguments: serde_json::Value, options: &CallOptions) -> Report {
    client.call(tool, &message::raw(&arguments), options, |_| {}).await.unwrap()
}

/// The first text of a complete result.
fn text(report: &Report) -> String {
    let Outcome::Complete(result) = &report.outcome else { panic!("{report:?}") };
    let result: serde_json::Value = serde_json::from_str(result.get()).unwrap();
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

fn given_up(report: &Report) -> Reason {
    let Outcome::GivenUp(reason) = report.outcome else { panic!("{report:?}") };
    reason
}

fn with_progress() -> CallOptions {
    CallOptions { wants_progress: true, ..CallOptions::default() }
}

/// The same conversation whatever the transport.
async fn converse(client: &Client) {
    let options = CallOptions::default();
    let discovered = client.discover(&options).await.unwrap();
    let Outcome::Complete(result) = &discovered.outcome else { panic!("{discovered:?}") };
    assert!(result.get().contains("supportedVersions"));
    let listed = client.list(None, &options).await.unwrap();
    let Outcome::Complete(page) = &listed.outcome else { panic!("{listed:?}") };
    assert!(page.get().contains("\"echo\"") && next_cursor(page).is_none());
    assert_eq!(text(&call(client, "echo", json!({ "text": "größe" }), &options).await), "größe");
    let big = call(client, "big", json!({ "bytes": 1_000_000 }), &options).await;
    assert_eq!(text(&big).len(), 1_000_000);
    let failed = call(client, "fails", json!({}), &options).await;
    assert_eq!(text(&failed), "this tool always fails");
    let refused = call(client, "no such tool", json!({}), &options).await;
    assert!(matches!(refused.outcome, Outcome::Error { code: -32602, .. }), "{refused:?}");
    let unknown = client.request("ping", Params::new(), &options, |_| {}).await.unwrap();
    assert!(matches!(unknown.outcome, Outcome::Error { code: -32601, .. }), "{unknown:?}");
}

#[tokio::test(start_paused = true)]
async fn the_conversation_holds_over_pipes() {
    let client = over_pipes();
    converse(&client).await;
    let mut values = Vec::new();
    let arguments = message::raw(&json!({ "steps": 4, "step_ms": 100 }));
    let report = client
        .call("slow", &arguments, &with_progress(), |progress| values.push(progress.value))
        .await
        .unwrap();
    assert_eq!((values.len(), report.progress, text(&report)), (4, 4, "4 steps done".to_owned()));
    assert_eq!(client.strays(), 0);
    assert_eq!(client.close().await.unwrap(), None);
}

#[tokio::test]
async fn the_conversation_holds_over_sockets_in_every_mode() {
    for (mode, told) in [(AnswerMode::Auto, 4), (AnswerMode::Sse, 4), (AnswerMode::Json, 0)] {
        let client = over_http(mode).await;
        converse(&client).await;
        let report = call(&client, "slow", json!({ "steps": 4, "step_ms": 1 }), &with_progress()).await;
        assert_eq!((report.progress, text(&report)), (told, "4 steps done".to_owned()), "{mode:?}");
        assert!(report.faults.is_empty() && report.status == Some(200));
        let flood = call(&client, "flood", json!({ "n": 5000, "size": 100 }), &with_progress()).await;
        assert_eq!(flood.progress, if told == 0 { 0 } else { 5000 });
        client.close().await.unwrap();
    }
}

#[tokio::test]
async fn parallel_calls_each_get_their_own_answer() {
    for client in [over_pipes(), over_http(AnswerMode::Auto).await] {
        let options = with_progress();
        let calls = (0..50).map(|k| call(&client, "echo", json!({ "text": k.to_string() }), &options));
        let reports = futures_util::future::join_all(calls).await;
        for (k, report) in reports.iter().enumerate() {
            assert_eq!(text(report), k.to_string());
        }
        assert_eq!(client.strays(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn deadlines_fire_for_their_own_reason_and_tell_the_server() {
    let limits = |idle, max| CallOptions { idle: Ms(idle), max: Ms(max), ..with_progress() };
    let client = over_pipes();
    let silent = call(&client, "silent", json!({}), &limits(500, 2000)).await;
    assert_eq!((given_up(&silent), silent.elapsed), (Reason::Idle, Ms(500)));
    // Progress each 450 ms keeps the idle clock from firing, and the maximum fires all the same.
    let slow = call(&client, "slow", json!({ "steps": 100, "step_ms": 450 }), &limits(500, 2000)).await;
    assert_eq!((given_up(&slow), slow.elapsed, slow.progress), (Reason::Maximum, Ms(2000), 4));
    let in_time = call(&client, "silent", json!({ "ms": 499 }), &limits(500, 2000)).await;
    assert_eq!((in_time.elapsed, client.strays()), (Ms(499), 0));
    let error = client.call("echo", RawValue::NULL, &limits(0, 0), |_| {}).await.unwrap_err();
    assert!(error.to_string().starts_with("the idle limit is 0 ms"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn giving_up_on_pipes_is_a_notification_and_late_messages_are_dropped() {
    let (client, mut server_in, mut server_out) = by_hand();
    let options = CallOptions { cancel_after: Some(Ms(50)), ..with_progress() };
    let report = call(&client, "slow", json!({}), &options).await;
    assert_eq!((given_up(&report), report.elapsed), (Reason::Cancelled, Ms(50)));
    let mut line = String::new();
    server_in.read_line(&mut line).await.unwrap();
    line.clear();
    server_in.read_line(&mut line).await.unwrap();
    let cancel: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(cancel["method"], "notifications/cancelled");
    assert_eq!(cancel["params"], json!({ "requestId": 1, "reason": "cancelled by the user" }));
    for late in [
        json!({ "jsonrpc": "2.0", "id": 1, "result": { "resultType": "complete" } }),
        json!({ "jsonrpc": "2.0", "method": "notifications/progress",
                "params": { "progressToken": "progress-1", "progress": 1 } }),
    ] {
        server_out.write_all(format!("{late}\n").as_bytes()).await.unwrap();
    }
    tokio::time::timeout(LIMIT.into(), async {
        while client.strays() < 2 {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_answer_counts_only_with_the_right_id_type_and_rising_progress() {
    let (client, _server_in, mut server_out) = by_hand();
    let script = r#"
{"jsonrpc":"2.0","id":"1","result":{"resultType":"complete"}}
{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"progress-1","progress":2}}
{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"progress-1","progress":2}}
{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":3}}
not a message
{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[]}}
"#;
    let options = with_progress();
    let arguments = message::raw(&json!({}));
    let asked = client.call("echo", &arguments, &options, |_| {});
    let answered = async {
        tokio::time::sleep(Ms(5).into()).await;
        server_out.write_all(script.trim_start().as_bytes()).await.unwrap();
    };
    let (report, ()) = tokio::join!(asked, answered);
    let report = report.unwrap();
    assert!(matches!(report.outcome, Outcome::Complete(_)), "{report:?}");
    assert_eq!((report.progress, report.rejected, client.strays()), (1, 1, 3));
}

#[tokio::test(start_paused = true)]
async fn calls_are_lost_when_the_server_ends() {
    let (client, server_in, server_out) = by_hand();
    let options = CallOptions::default();
    let ends = async {
        tokio::time::sleep(Ms(5).into()).await;
        drop((server_in, server_out));
    };
    let (report, ()) = tokio::join!(call(&client, "echo", json!({}), &options), ends);
    assert!(matches!(report.outcome, Outcome::Lost(_)), "{report:?}");
    let error = client.call("echo", RawValue::NULL, &options, |_| {}).await.unwrap_err();
    assert!(matches!(error, PeerError::Gone));
}

/// Reads a request off a socket, up to the end of its body.
async fn read_request(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    let mut buf = [0; 4096];
    loop {
        let len = stream.read(&mut buf).await.unwrap();
        text.extend_from_slice(&buf[..len]);
        let so_far = String::from_utf8_lossy(&text).into_owned();
        if let Some((head, body)) = so_far.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
            if body.len() == length.unwrap().parse::<usize>().unwrap() {
                return so_far;
            }
        }
        assert!(len > 0, "the request ended early: {so_far}");
    }
}

/// Runs a call against a server that answers nothing, or a first event; how the connection ends.
async fn ends_how(first: &str, options: CallOptions) -> (Report, String, std::io::Result<usize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = Client::http(&format!("http://{}/mcp", listener.local_addr().unwrap())).unwrap();
    let served = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let request = read_request(&mut stream).await;
        stream.write_all(first.as_bytes()).await.unwrap();
        let ended = tokio::time::timeout(LIMIT.into(), stream.read(&mut [0; 16])).await.unwrap();
        (request, ended)
    };
    let (report, (request, ended)) = tokio::join!(call(&client, "slow", json!({}), &options), served);
    (report, request, ended)
}

const FIRST_EVENT: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n\
    8\r\n: hello\n\r\n";

#[tokio::test]
async fn giving_up_on_http_closes_the_connection_before_and_after_the_head() {
    for first in ["", FIRST_EVENT] {
        let options = CallOptions { cancel_after: Some(Ms(100)), ..CallOptions::default() };
        let (report, request, ended) = ends_how(first, options).await;
        assert_eq!((given_up(&report), ended.unwrap()), (Reason::Cancelled, 0));
        assert_eq!(report.status, (!first.is_empty()).then_some(200));
        for field in [
            "POST /mcp HTTP/1.1\r\n",
            "\r\nAccept: application/json, text/event-stream\r\n",
            "\r\nMcp-Protocol-Version: 2026-07-28\r\n",
            "\r\nMcp-Method: tools/call\r\n",
            "\r\nMcp-Name: slow\r\n",
            "\r\nHost: 127.0.0.1:",
        ] {
            assert!(request.contains(field), "{field} in {request}");
        }
        let options = CallOptions { drop_after: Some(Ms(100)), ..CallOptions::default() };
        let (report, _, ended) = ends_how(first, options).await;
        assert_eq!(given_up(&report), Reason::Dropped);
        assert_eq!(ended.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
    }
}

#[tokio::test]
async fn a_comment_on_the_stream_does_not_restart_the_idle_clock() {
    let options = CallOptions { idle: Ms(100), ..with_progress() };
    let (report, _, ended) = ends_how(FIRST_EVENT, options).await;
    assert_eq!((given_up(&report), ended.unwrap()), (Reason::Idle, 0));
}

#[tokio::test]
async fn what_is_wrong_with_an_http_answer_is_said() {
    let json = |status: &str, body: &str| {
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let sse = |body: &str| {
        format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n{body}")
    };
    let good = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}"#;
    let other = r#"{"jsonrpc":"2.0","id":"1","result":{"resultType":"complete"}}"#;
    let cases = [
        (json("200 OK", good), "Complete", 0),
        (json("200 OK", other), "Invalid", 0),
        (json("200 OK", "{"), "Invalid", 0),
        (json("502 Bad Gateway", "gone fishing"), "Refused { body: \"gone fishing\"", 0),
        (
            json("404 Not Found", r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":""}}"#),
            "Error",
            0,
        ),
        (json("400 Bad Request", r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":""}}"#), "Error", 0),
        (sse(&format!("data: {other}\n\ndata: {good}\n\n")), "Complete", 1),
        (sse("data:\n\n: comment\n\n"), "Lost", 0),
        (String::new(), "Lost", 0),
    ];
    for (answer, outcome, faults) in cases {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = Client::http(&format!("http://{}/mcp", listener.local_addr().unwrap())).unwrap();
        let options = CallOptions::default();
        let served = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            read_request(&mut stream).await;
            stream.write_all(answer.as_bytes()).await.unwrap();
        };
        let (report, ()) = tokio::join!(call(&client, "echo", json!({}), &options), served);
        assert!(format!("{:?}", report.outcome).starts_with(outcome), "{outcome}: {report:?}");
        assert_eq!(report.faults.len(), faults, "{report:?}");
    }
}

#[tokio::test]
async fn what_cannot_be_reached_or_started_says_so() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    drop(listener);
    let client = Client::http(&url).unwrap();
    let error = client.discover(&CallOptions::default()).await.unwrap_err();
    assert!(error.to_string().starts_with(&format!("cannot connect to {url}: ")), "{error}");
    for (url, why) in [
        ("ftp://x/mcp", "only http:// and https:// are spoken here"),
        ("/mcp", "only http:// and https:// are"),
    ] {
        assert!(Client::http(url).unwrap_err().to_string().contains(why));
    }
    assert!(matches!(Client::spawn(&[]).unwrap_err(), PeerError::NoCommand));
    let error = Client::spawn(&["/no/such/program".to_owned()]).unwrap_err();
    assert!(error.to_string().starts_with("cannot start /no/such/program: "), "{error}");
}

#[tokio::test]
async fn a_server_process_is_ended_in_order() {
    // It answers nothing and ends with its input.
    let client = Client::spawn(&["cat".to_owned(), "-".to_owned()]).unwrap();
    let exit = client.close().await.unwrap().unwrap();
    assert!(exit.status.success() && !exit.was_forced);
}

#[tokio::test(start_paused = true)]
async fn a_server_process_that_ignores_the_end_of_its_input_is_ended_by_a_signal() {
    let client = Client::spawn(&["sleep".to_owned(), "600".to_owned()]).unwrap();
    let exit = client.close().await.unwrap().unwrap();
    assert!(!exit.status.success() && exit.was_forced);
}

#[tokio::test]
async fn connections_are_used_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = Client::http(&format!("http://{}/mcp", listener.local_addr().unwrap())).unwrap();
    let served = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        for id in 1..=3 {
            read_request(&mut stream).await;
            let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete"}}}}"#);
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}",
                body.len()
            );
            stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).await.unwrap();
        }
    };
    let asked = async {
        for _ in 0..3 {
            let report = client.discover(&CallOptions::default()).await.unwrap();
            assert!(matches!(report.outcome, Outcome::Complete(_)), "{report:?}");
        }
    };
    let both = Box::pin(async { tokio::join!(served, asked) });
    tokio::time::timeout(LIMIT.into(), both).await.unwrap();
}

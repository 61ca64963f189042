//! The ends of real connections.

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;
use crate::peer::PeerError;

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

#[tokio::test(start_paused = true)]
#[expect(clippy::disallowed_methods, reason = "a test owns its task through the handle")]
async fn a_connection_on_which_nothing_goes_on_is_closed() {
    let whole = head_and_body(&Case::echo());
    for sent in ["", "P", "PRI * HT", "POST /mcp HTTP/1.1\r\nhost", &whole] {
        let (mut client, server) = tokio::io::duplex(1 << 16);
        let tracker = TaskTracker::new();
        let serving = connection(core(AnswerMode::Auto), (server, None), tracker, CancellationToken::new());
        let serving = tokio::spawn(serving);
        let clock = TimerClock::start();
        client.write_all(sent.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        // It may be told first that it took too long.
        client.read_to_end(&mut answer).await.unwrap();
        serving.await.unwrap();
        let took = clock.now();
        assert!((IDLE.0..=2 * IDLE.0).contains(&took.0), "{sent:?}: {took:?}");
        assert_eq!(answer.starts_with(b"HTTP/1.1 200"), sent == whole, "{sent:?}");
    }
}

#[tokio::test(start_paused = true)]
#[expect(clippy::disallowed_methods, reason = "a test owns its task through the handle")]
async fn a_connection_with_a_quiet_call_stays_open() {
    let (mut client, server) = tokio::io::duplex(1 << 16);
    let tracker = TaskTracker::new();
    let core = core(AnswerMode::Json);
    tokio::spawn(connection(core, (server, None), tracker, CancellationToken::new()));
    let call = Case::call("silent", &json!({ "ms": 10 * IDLE.0 }));
    let clock = TimerClock::start();
    client.write_all(head_and_body(&call).as_bytes()).await.unwrap();
    let mut first = [0; 12];
    client.read_exact(&mut first).await.unwrap();
    assert_eq!((&first, clock.now()), (b"HTTP/1.1 200", Ms(10 * IDLE.0)));
}

#[tokio::test(start_paused = true)]
#[expect(clippy::disallowed_methods, reason = "a test owns its task through the handle")]
async fn what_is_no_request_has_the_answer_that_is_written_down() {
    let call = Case::echo();
    let with = |fields: &str| {
        let head = head_and_body(&call);
        head.replacen("host: x", &format!("host: x\r\n{fields}"), 1)
    };
    let many: Vec<String> = (0..200).map(|k| format!("x-{k}: y\r\n")).collect();
    let many = many.concat();
    let long = format!("x-long: {}", "y".repeat(100_000));
    let length = call.body.len();
    let cases = [
        ("right", with("x: y"), "200"),
        ("not HTTP", "{\"jsonrpc\":\"2.0\"}\n\r\n\r\n".to_owned(), "400"),
        ("many fields", with(many.trim_end()), "431"),
        ("a long field", with(&long), "431"),
        ("two lengths", with("content-length: 5"), "400"),
        (
            "a wrong length",
            with("x: y").replace(&format!("content-length: {length}"), "content-length: -1"),
            "400",
        ),
        ("a field with a control character", with("x: \u{1}"), "400"),
        ("a field without a name", with(": y"), "400"),
        ("two methods", with("mcp-method: tools/call"), "400"),
    ];
    for (name, request, status) in cases {
        let (mut client, server) = tokio::io::duplex(1 << 20);
        let tracker = TaskTracker::new();
        let core = core(AnswerMode::Auto);
        tokio::spawn(connection(core, (server, None), tracker, CancellationToken::new()));
        client.write_all(request.as_bytes()).await.unwrap();
        let mut answer = [0; 12];
        client.read_exact(&mut answer).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&answer), format!("HTTP/1.1 {status}"), "{name}");
    }
}

#[tokio::test]
async fn the_network_is_let_in_only_if_somebody_says_so() {
    for (address, is_open, is_served) in [
        ("127.0.0.1:0", false, true),
        ("[::1]:0", false, true),
        ("0.0.0.0:0", false, false),
        ("[::]:0", false, false),
        ("0.0.0.0:0", true, true),
    ] {
        let options = ServerOptions { is_open_to_network: is_open, ..ServerOptions::default() };
        let served =
            crate::peer::server::serve_http(address.parse().unwrap(), options, CancellationToken::new());
        let is_refused = matches!(served.await, Err(PeerError::OpenToNetwork { .. }));
        assert_eq!(!is_refused, is_served, "{address} {is_open}");
    }
}

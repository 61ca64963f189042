//! The ends of real connections.

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;

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

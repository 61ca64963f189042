//! Servers that tests script: what each request over HTTP is answered with.

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// One HTTP request as a server reads it: its head in lower case, and its body.
async fn read_request(stream: &mut TcpStream) -> Option<(String, Value)> {
    let mut text = Vec::new();
    let mut buf = [0; 4096];
    loop {
        let so_far = String::from_utf8_lossy(&text).into_owned();
        if let Some((head, body)) = so_far.split_once("\r\n\r\n") {
            let head = head.to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() == length.map_or(0, |length| length.parse::<usize>().unwrap()) {
                return Some((head, serde_json::from_str(body).unwrap_or_default()));
            }
        }
        let len = stream.read(&mut buf).await.unwrap_or(0);
        if len == 0 {
            return None;
        }
        text.extend_from_slice(&buf[..len]);
    }
}

/// What is answered: status line and fields, and the body. Given: the head in lower case, and the
/// body as JSON.
pub(super) type Answer = (String, String);

/// An answer that is one JSON body.
pub(super) fn json(status: &str, body: &Value) -> Answer {
    (format!("{status}\r\nContent-Type: application/json"), body.to_string())
}

/// An answer that is an event stream with these messages, which ends after them.
pub(super) fn events(messages: &[Value]) -> Answer {
    let events = messages.iter().map(|message| format!("data: {message}\n\n"));
    ("200 OK\r\nContent-Type: text/event-stream".to_owned(), events.collect())
}

/// A request as it was heard: its head in lower case, and its body.
pub(super) type HeardRequest = (String, Value);

/// Serves HTTP until the runtime ends: the URL, and every request as it comes.
#[expect(clippy::disallowed_methods, reason = "a test lets its server end with the runtime")]
pub(super) async fn serve<F>(answering: F) -> (String, mpsc::UnboundedReceiver<HeardRequest>)
where
    F: FnMut(&str, &Value) -> Answer + Send + Clone + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let (heard, requests) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let (heard, mut answering) = (heard.clone(), answering.clone());
            tokio::spawn(async move {
                while let Some((head, body)) = read_request(&mut stream).await {
                    let (start, text) = answering(&head, &body);
                    let _ = heard.send((head, body));
                    let length = text.len();
                    let answer = format!("HTTP/1.1 {start}\r\nContent-Length: {length}\r\n\r\n{text}");
                    if stream.write_all(answer.as_bytes()).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    (url, requests)
}

//! Servers that tests script: what each request is answered with, over HTTP or pipes.

use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use super::Client;

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

/// Every message that a server on pipes has heard.
pub(super) type HeardMessages = Arc<Mutex<Vec<Value>>>;

/// A client of a server on pipes that answers each message with these messages; `"close"` in the place
/// of a message ends it.
#[expect(clippy::disallowed_methods, reason = "a test lets its server end with the runtime")]
pub(super) fn pipes<F>(mut answering: F) -> (Client, HeardMessages)
where
    F: FnMut(&Value) -> Vec<Value> + Send + 'static,
{
    let (client_side, server_in) = tokio::io::duplex(1 << 16);
    let (mut server_out, client_read) = tokio::io::duplex(1 << 16);
    let heard = HeardMessages::default();
    let keep = heard.clone();
    tokio::spawn(async move {
        let mut lines = BufReader::new(server_in).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let message: Value = serde_json::from_str(&line).unwrap();
            keep.lock().unwrap().push(message.clone());
            for answer in answering(&message) {
                if answer == "close" {
                    return;
                }
                let _ = server_out.write_all(format!("{answer}\n").as_bytes()).await;
            }
        }
    });
    (Client::over_pipes(client_read, client_side), heard)
}

/// The methods of what was heard, in order.
pub(super) fn methods(heard: &HeardMessages) -> Vec<String> {
    let heard = heard.lock().unwrap();
    heard.iter().map(|message| message["method"].as_str().unwrap_or_default().to_owned()).collect()
}

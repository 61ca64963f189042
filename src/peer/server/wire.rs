//! For tests: one server, asked over either transport, with paused time and without sockets.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::Request as HttpRequest;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::core::Core;
use super::http::answer::Answer;
use super::{ENDPOINT, ServerOptions, SharedCore, http, stdio};
use crate::spec::transport::Transport;
use crate::time::Ms;

/// A client of the server.
pub(super) struct Wire {
    pub(super) core: SharedCore,
    /// What the client declares.
    pub(super) capabilities: Value,
    /// Over HTTP: on whose behalf it asks.
    pub(super) principal: Option<&'static str>,
    /// From which level on it wants to hear logs.
    pub(super) log_level: Option<&'static str>,
    transport: Transport,
    /// Over HTTP: the answer that is being read, and what was read of it.
    stream: Option<(Answer, String)>,
    pipes: (DuplexStream, Lines<BufReader<DuplexStream>>),
    last_id: u64,
    /// Keeps the stdio side running.
    _served: TaskTracker,
}

/// When a call is given up.
#[derive(Debug, Clone, Copy)]
pub(super) enum When {
    /// After this long.
    After(Ms),
    /// At its first progress.
    Progress,
}

pub(super) const BOTH: [Transport; 2] = [Transport::Stdio, Transport::Http];

impl Wire {
    pub(super) fn start(transport: Transport, options: ServerOptions) -> Wire {
        Wire::to(transport, &Core::new(options))
    }

    /// Another client of the same server.
    pub(super) fn to(transport: Transport, core: &SharedCore) -> Wire {
        let (input, server_in) = tokio::io::duplex(1 << 16);
        let (server_out, output) = tokio::io::duplex(1 << 16);
        let served = TaskTracker::new();
        if transport == Transport::Stdio {
            served.spawn(stdio::serve(core.clone(), server_in, server_out, CancellationToken::new()));
        }
        Wire {
            core: core.clone(),
            capabilities: json!({}),
            principal: None,
            log_level: None,
            transport,
            stream: None,
            pipes: (input, BufReader::new(output).lines()),
            last_id: 0,
            _served: served,
        }
    }

    /// A request to its response: the whole message.
    pub(super) async fn ask(&mut self, method: &str, params: Value) -> Value {
        let (id, body) = self.body(method, params);
        if self.transport == Transport::Http {
            let answer = http::respond(self.core.clone(), self.post(method, &body), None).await;
            let bytes = answer.into_body().collect().await.unwrap().to_bytes();
            let text = String::from_utf8(bytes.to_vec()).unwrap();
            let last = text.lines().filter_map(|line| line.strip_prefix("data: ")).next_back();
            return serde_json::from_str(last.unwrap_or(&text)).unwrap_or(Value::Null);
        }
        self.write(&body).await;
        loop {
            let message = self.next().await;
            if message["id"] == json!(id) {
                return message;
            }
        }
    }

    /// A call of a tool to its result.
    pub(super) async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({ "name": tool, "arguments": arguments })).await["result"].take()
    }

    /// Opens a request whose messages are read one by one; its id.
    pub(super) async fn open(&mut self, method: &str, params: Value) -> u64 {
        let (id, body) = self.body(method, params);
        if self.transport == Transport::Http {
            let answer = http::respond(self.core.clone(), self.post(method, &body), None).await;
            self.stream = Some((answer.into_body(), String::new()));
        } else {
            self.write(&body).await;
        }
        id
    }

    /// The next message of the request that is open; `None`: its stream has ended.
    pub(super) async fn heard(&mut self) -> Option<Value> {
        let Some((body, read)) = &mut self.stream else { return Some(self.next().await) };
        loop {
            if let Some((event, rest)) = read.split_once("\n\n") {
                let message = event.strip_prefix("data: ").map(|data| serde_json::from_str(data).unwrap());
                *read = rest.to_owned();
                if message.is_some() {
                    return message;
                }
                continue;
            }
            let Some(frame) = body.frame().await else {
                // One JSON body, or nothing more.
                let whole = std::mem::take(read);
                return serde_json::from_str(&whole).ok();
            };
            let frame = frame.unwrap().into_data().unwrap();
            read.push_str(std::str::from_utf8(&frame).unwrap());
        }
    }

    /// Over HTTP: the next piece of the answer as it comes; `None`: it has ended.
    pub(super) async fn read_on(&mut self) -> Option<String> {
        let (body, _) = self.stream.as_mut()?;
        let frame = body.frame().await?.unwrap().into_data().unwrap();
        Some(String::from_utf8(frame.to_vec()).unwrap())
    }

    /// Gives up the request that is open, in the way of the transport.
    pub(super) async fn leave(&mut self, id: u64) {
        self.stream = None;
        if self.transport == Transport::Stdio {
            let params = json!({ "requestId": id });
            let note = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
            self.write(&note.to_string()).await;
        }
    }

    /// Starts a call, and gives it up, in the way of the transport; false: it was answered.
    pub(super) async fn give_up(&mut self, tool: &str, arguments: Value, when: When) -> bool {
        self.give_up_request("tools/call", json!({ "name": tool, "arguments": arguments }), when).await
    }

    /// Starts a request, and gives it up, in the way of the transport; false: it was answered.
    pub(super) async fn give_up_request(&mut self, method: &str, params: Value, when: When) -> bool {
        let (id, body) = self.body(method, params);
        if self.transport == Transport::Http {
            let answer = http::respond(self.core.clone(), self.post(method, &body), None);
            return match when {
                When::After(time) => {
                    let whole = async { answer.await.into_body().collect().await.unwrap() };
                    tokio::time::timeout(time.into(), whole).await.is_err()
                }
                When::Progress => {
                    let first = answer.await.into_body().frame().await.unwrap().unwrap();
                    let first = String::from_utf8(first.into_data().unwrap().to_vec()).unwrap();
                    first.contains("notifications/progress")
                }
            };
        }
        self.write(&body).await;
        let mut is_answered = false;
        match when {
            When::After(time) => tokio::time::sleep(time.into()).await,
            When::Progress => is_answered = self.next().await["method"] != "notifications/progress",
        }
        let params = json!({ "requestId": id });
        let note = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
        self.write(&note.to_string()).await;
        // What was written before the answer to this has come by then.
        let (probe, body) = self.body("server/discover", json!({}));
        self.write(&body).await;
        loop {
            let message = self.next().await;
            is_answered |= message["id"] == json!(id);
            if message["id"] == json!(probe) {
                return !is_answered;
            }
        }
    }

    fn body(&mut self, method: &str, mut params: Value) -> (u64, String) {
        self.last_id += 1;
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": self.capabilities,
            "progressToken": self.last_id,
        });
        if let Some(level) = self.log_level {
            params["_meta"]["io.modelcontextprotocol/logLevel"] = json!(level);
        }
        let body = json!({ "jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params });
        (self.last_id, body.to_string())
    }

    fn post(&self, method: &str, body: &str) -> HttpRequest<Full<Bytes>> {
        let params = serde_json::from_str::<Value>(body).unwrap()["params"].take();
        let name = ["name", "uri", "taskId"].into_iter().find_map(|name| params[name].as_str());
        let mut request = HttpRequest::post(ENDPOINT)
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", method);
        for (field, value) in [("mcp-name", name), ("authorization", self.principal)] {
            if let Some(value) = value {
                request = request.header(field, value);
            }
        }
        request.body(Full::new(Bytes::copy_from_slice(body.as_bytes()))).unwrap()
    }

    async fn write(&mut self, line: &str) {
        self.pipes.0.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    async fn next(&mut self) -> Value {
        let line = self.pipes.1.next_line().await.unwrap().expect("the server goes on");
        serde_json::from_str(&line).unwrap()
    }
}

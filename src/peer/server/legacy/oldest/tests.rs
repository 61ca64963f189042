//! HTTP+SSE without sockets, on paused time.

use http_body_util::{BodyExt, Full};
use hyper::Request as HttpRequest;
use serde_json::{Value, json};

use super::*;
use crate::peer::server::core::Core;
use crate::peer::server::http::respond;
use crate::peer::server::{ServerEra, ServerOptions};

async fn send(core: &SharedCore, method: &str, uri: &str, body: &str) -> HttpResponse<Answer> {
    let request = HttpRequest::builder().method(method).uri(uri).header("content-type", "application/json");
    let request = request.body(Full::new(Bytes::from(body.to_owned()))).unwrap();
    respond(core.clone(), request, None).await
}

/// A client whose stream is open.
struct Client {
    core: SharedCore,
    stream: HttpResponse<Answer>,
    address: String,
}

impl Client {
    async fn open(core: &SharedCore) -> Client {
        let mut stream = send(core, "GET", "/sse", "").await;
        assert_eq!(stream.headers()["content-type"], "text/event-stream");
        let text = next(&mut stream).await;
        let address = text.strip_prefix("event: endpoint\ndata: ").unwrap().trim_end().to_owned();
        Client { core: core.clone(), stream, address }
    }

    async fn post(&self, message: &Value) -> u16 {
        send(&self.core, "POST", &self.address, &message.to_string()).await.status().as_u16()
    }

    /// Sends a message; the next that comes on the stream.
    async fn ask(&mut self, message: &Value) -> Value {
        assert_eq!(self.post(message).await, 202);
        self.next().await
    }

    async fn next(&mut self) -> Value {
        let text = next(&mut self.stream).await;
        serde_json::from_str(text.strip_prefix("event: message\ndata: ").unwrap()).unwrap()
    }

    async fn initialize(&mut self) {
        let info = json!({ "name": "test", "version": "1" });
        let params = json!({ "protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": info });
        let opened = self.ask(&request(0, "initialize", params)).await;
        assert_eq!(opened["result"]["protocolVersion"], "2024-11-05");
        self.post(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    }
}

async fn next(stream: &mut HttpResponse<Answer>) -> String {
    let frame = tokio::time::timeout(Ms(60_000).into(), stream.body_mut().frame()).await;
    let data = frame.expect("nothing comes").unwrap().unwrap().into_data().unwrap();
    String::from_utf8(data.to_vec()).unwrap()
}

fn request(id: i64, method: &str, params: Value) -> Value {
    let mut message = json!({ "jsonrpc": "2.0", "id": id, "method": method });
    message["params"] = params;
    message
}

fn call(id: i64, tool: &str, arguments: Value) -> Value {
    let mut params = json!({ "name": tool, "_meta": { "progressToken": id } });
    params["arguments"] = arguments;
    request(id, "tools/call", params)
}

fn core(era: ServerEra) -> SharedCore {
    Core::new(ServerOptions { era, ..ServerOptions::default() })
}

#[tokio::test(start_paused = true)]
async fn all_answers_come_on_the_one_stream() {
    for era in [ServerEra::Legacy, ServerEra::Dual] {
        let core = core(era);
        let mut client = Client::open(&core).await;
        let refused = client.ask(&request(1, "tools/list", json!({}))).await;
        assert_eq!(refused["error"]["code"], -32600, "initialize comes first");
        client.initialize().await;
        let listed = client.ask(&request(1, "tools/list", json!({}))).await;
        assert!(listed["result"]["tools"].is_array());
        let told = client.ask(&call(2, "slow", json!({ "steps": 1, "step_ms": 5 }))).await;
        assert_eq!(told["params"]["progress"], 1);
        assert_eq!(client.next().await["id"], 2);
        // Cancelled: nothing comes of it, and the next answer is that of the next request.
        assert_eq!(client.post(&call(3, "silent", json!({}))).await, 202);
        let params = json!({ "requestId": 3 });
        client
            .post(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }))
            .await;
        assert_eq!(client.ask(&request(4, "ping", json!({}))).await["id"], 4);
    }
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_stream_ends_its_session_and_no_other() {
    let core = core(ServerEra::Legacy);
    let (mut one, mut two) = (Client::open(&core).await, Client::open(&core).await);
    one.initialize().await;
    two.initialize().await;
    one.post(&call(1, "silent", json!({}))).await;
    two.post(&call(1, "silent", json!({ "ms": 50 }))).await;
    let address = one.address.clone();
    drop(one);
    assert_eq!(send(&core, "POST", &address, "{}").await.status(), 404);
    assert_eq!(two.next().await["result"]["content"][0]["text"], "nothing was said for 50 ms");
    assert_eq!(core.links.lock().len(), 1);
    drop(two);
    core.handlers.close();
    tokio::time::timeout(Ms(1000).into(), core.handlers.wait()).await.expect("a handler goes on");
    assert_eq!(core.hub.len(), 0, "nobody listens any more");
}

#[tokio::test(start_paused = true)]
async fn what_is_none_of_its_exchanges_has_a_status() {
    let legacy = core(ServerEra::Legacy);
    let address = Client::open(&legacy).await.address;
    let open = Client::open(&legacy).await;
    let modern = core(ServerEra::Modern);
    let cases = [
        (&legacy, "POST", "/sse", 405),
        (&legacy, "GET", "/messages", 405),
        (&legacy, "POST", "/messages", 400),
        (&legacy, "POST", "/messages?session=x", 404),
        (&legacy, "POST", &address, 404),
        (&legacy, "POST", &open.address, 400),
        (&modern, "GET", "/sse", 404),
        (&modern, "POST", "/messages", 404),
    ];
    for (core, method, uri, status) in cases {
        assert_eq!(send(core, method, uri, "{").await.status(), status, "{method} {uri}");
    }
}

//! Bytes as a script of traffic: each few bytes say one thing that a peer or a tap does, so that a
//! fuzzer finds its way into lifecycles instead of into the syntax of recordings.

use midwire::spec::methods;
use serde_json::{Value, json};

/// Things done in one script. More would only be slower.
const STEP_LIMIT: usize = 64;

/// The bytes of a script, taken from the front; 0 when they are used up.
struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn pick<T: Copy, const N: usize>(&mut self, of: [T; N]) -> T {
        of[usize::from(self.byte()) % N]
    }

    fn is(&mut self) -> bool {
        self.byte() % 2 == 1
    }
}

/// The recording that a script stands for.
pub fn recording(data: &[u8]) -> Vec<u8> {
    let mut script = Script(data);
    let (mut text, mut now_ms) = (Vec::new(), 0u64);
    for _ in 0..STEP_LIMIT {
        if script.0.is_empty() {
            break;
        }
        // Up to 65 s between two things: all limits are in reach.
        let wait = u64::from(script.byte());
        now_ms += wait * wait;
        let mut line = step(&mut script);
        line["t_ms"] = json!(now_ms);
        text.extend_from_slice(line.to_string().as_bytes());
        text.push(b'\n');
    }
    text
}

fn step(script: &mut Script<'_>) -> Value {
    if script.is() {
        return stdio(script);
    }
    let mut line = http(script);
    line["transport"] = json!("http");
    line["stream"] = json!(script.byte() % 4 + 1);
    line["conn"] = json!(script.byte() % 2 + 1);
    line
}

fn stdio(script: &mut Script<'_>) -> Value {
    match script.byte() % 16 {
        0 => json!({"dir": "tap", "event": "spawn", "pid": 1, "command": ["server"]}),
        1 => json!({"dir": "c2s", "event": "client_closed"}),
        2 => json!({"dir": "s2c", "event": "server_closed", "exit_code": script.byte() % 3}),
        3 => json!({"dir": "stderr", "raw": "something\n"}),
        4 => json!({"dir": "tap", "event": "signal", "signal": "SIGTERM", "why": "stdin closed"}),
        5 => tap(script),
        6 => {
            json!({"dir": "s2c", "raw": script.pick(["noise\n", "\n", "{\"jsonrpc\":", "[]\n", "Content-Length: 7\r\n"])})
        }
        side => {
            let dir = if side % 2 == 0 { "c2s" } else { "s2c" };
            json!({"dir": dir, "raw": format!("{}\n", message(script))})
        }
    }
}

fn http(script: &mut Script<'_>) -> Value {
    match script.byte() % 12 {
        0 => {
            json!({"dir": "c2s", "event": "client_closed", "how": script.pick(["eof", "reset", "half_close"])})
        }
        1 => json!({"dir": "s2c", "event": "server_closed", "how": script.pick(["eof", "reset", "timeout"])}),
        2 => tap(script),
        3 => {
            json!({"dir": "c2s", "event": "request", "method": script.pick(["GET", "DELETE", "PUT"]), "path": "/mcp", "headers": headers(script)})
        }
        4 | 5 => {
            json!({"dir": "s2c", "event": "response_head", "status": script.pick([200, 202, 400, 404, 405, 502]), "headers": headers(script)})
        }
        6 => json!({"dir": "s2c", "event": "body", "raw": message(script).to_string()}),
        7 => {
            json!({"dir": "s2c", "event": "sse_chunk", "raw": script.pick([": keep-alive\n\n", "id: 7\ndata:\n\n", "data: {\n", "\n"])})
        }
        8 | 9 => json!({"dir": "s2c", "event": "sse_chunk", "raw": format!("data: {}\n\n", message(script))}),
        _ => {
            let body = message(script).to_string();
            json!({"dir": "c2s", "event": "request", "method": "POST", "path": "/mcp", "headers": headers(script), "body": body})
        }
    }
}

fn headers(script: &mut Script<'_>) -> Value {
    let mut headers =
        json!({"Content-Type": script.pick(["application/json", "text/event-stream", "text/html"])});
    for (name, value) in [
        ("MCP-Protocol-Version", script.pick(["2026-07-28", "2025-11-25", "2025-03-26", "x"])),
        ("Mcp-Method", script.pick(["tools/call", "tools/list", "ping"])),
        ("Mcp-Session-Id", script.pick(["a", "b"])),
        ("Last-Event-ID", "7"),
        ("User-Agent", "node"),
    ] {
        if script.byte().is_multiple_of(4) {
            headers[name] = json!(value);
        }
    }
    headers
}

/// What a tap says by itself.
fn tap(script: &mut Script<'_>) -> Value {
    match script.byte() % 5 {
        0 => json!({"dir": "tap", "event": "inject", "what": "cancel", "target": "1", "by": "viewer"}),
        1 => json!({"dir": "tap", "event": "gap", "lost": 1, "bytes": 9, "why": "the disk is full"}),
        2 => {
            json!({"dir": "tap", "event": "queue", "events": script.byte(), "bytes": 9, "capacity": 3, "coalesced": 0, "evicted": 0, "discarded": 0, "refused": 0, "blocked_ms": script.byte()})
        }
        3 => json!({"dir": "s2c", "event": "telemetry", "data": {"done": id(script)}}),
        _ => json!({"dir": "tap", "event": "capture_end", "events": 9, "complete": true}),
    }
}

fn message(script: &mut Script<'_>) -> Value {
    let mut message = json!({"jsonrpc": "2.0"});
    match script.byte() % 8 {
        0 | 1 => {
            message["id"] = id(script);
            message["method"] = json!(method(script));
            message["params"] = params(script);
        }
        2 => {
            message["method"] = json!(method(script));
            message["params"] = params(script);
        }
        3 => {
            message["method"] = json!(methods::CANCELLED);
            message["params"] = json!({"requestId": id(script), "reason": "enough"});
        }
        4 => {
            message["method"] = json!(methods::PROGRESS);
            message["params"] = json!({"progressToken": id(script), "progress": script.byte(), "total": 9});
        }
        5 => {
            message["id"] = id(script);
            message["error"] = json!({"code": -32000 - i32::from(script.byte() % 100), "message": "no"});
        }
        _ => {
            message["id"] = id(script);
            message["result"] = result(script);
        }
    }
    message
}

fn id(script: &mut Script<'_>) -> Value {
    [json!(1), json!(2), json!(3), json!("1"), json!("L"), json!(null), json!(1.5)]
        [usize::from(script.byte() % 7)]
    .clone()
}

fn method(script: &mut Script<'_>) -> &'static str {
    let at = usize::from(script.byte());
    methods::ALL.get(at % (methods::ALL.len() + 1)).map_or("no/such", |method| method.name)
}

fn params(script: &mut Script<'_>) -> Value {
    let mut params = match script.byte() % 6 {
        0 => json!({}),
        1 => {
            json!({"name": script.pick(["search", "charge"]), "arguments": {"key": "k", "cents": script.byte()}})
        }
        2 => json!({"notifications": {"toolsListChanged": true, "resourceSubscriptions": ["a://b"]}}),
        3 => json!({"taskId": script.pick(["t", "u"]), "uri": "a://b"}),
        4 => {
            json!({"protocolVersion": script.pick(["2025-11-25", "2025-03-26"]), "capabilities": {}, "clientInfo": {"name": "mcp", "version": "1"}})
        }
        _ => json!([script.byte()]),
    };
    if params.is_object() {
        if script.is() {
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
        }
        if script.is() {
            params["_meta"]["progressToken"] = id(script);
        }
        if script.byte().is_multiple_of(4) {
            params["_meta"]["io.modelcontextprotocol/subscriptionId"] = id(script);
        }
    }
    params
}

fn result(script: &mut Script<'_>) -> Value {
    match script.byte() % 8 {
        0 => json!({}),
        1 => json!({"resultType": "complete", "content": [{"type": "text", "text": "x"}]}),
        2 => json!({"resultType": "input_required", "inputRequests": {"a": {}}, "requestState": "s"}),
        3 => {
            json!({"resultType": "task", "taskId": script.pick(["t", "u"]), "status": script.pick(["working", "completed", "cancelled"]), "ttlMs": 9})
        }
        4 => {
            json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}})
        }
        5 => json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {}}),
        6 => json!({"tools": [{"name": "search", "inputSchema": {"type": "object"}}], "nextCursor": "c"}),
        _ => json!({"content": [], "isError": true, "structuredContent": {"receipt": script.byte()}}),
    }
}

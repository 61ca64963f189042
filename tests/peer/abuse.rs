//! Clients that mean no good, against `midwire serve http` as a process: what it answers, and that
//! it holds nothing when they are gone (`docs/serve.md`).
#![cfg(target_os = "linux")]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use midwire::time::{Clock, Ms};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;

use crate::MIDWIRE;

/// How long anything here may take.
const LIMIT: Ms = Ms(20_000);
/// Memory that a server may hold more than before, when all is over: pages that its allocator
/// keeps.
const MORE_KIB: u64 = 32 << 10;

struct Server {
    child: Child,
    address: SocketAddr,
}

impl Server {
    fn start() -> Server {
        let mut child = Command::new(MIDWIRE)
            .args(["serve", "http", "--listen", "127.0.0.1:0", "--ledger", "memory"])
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.split("http://").nth(1).unwrap().split('/').next().unwrap();
        Server { address: address.parse().unwrap(), child }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(LIMIT.0))).unwrap();
        stream
    }

    /// Open files of the process.
    fn files(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap().count()
    }

    /// A figure of the process: `VmRSS` in KiB, `Threads`.
    fn figure(&self, name: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// An ordinary call on a connection of its own, and how long it took.
    fn echo(&self) -> Ms {
        let clock = Clock::start();
        let mut stream = self.connect();
        stream.write_all(request("tools/call", Some("echo"), &json!({ "name": "echo" })).as_bytes()).unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200");
        clock.now().to_ms()
    }

    /// Waits until the process has no more open files than `files`.
    fn is_back_at(&self, files: usize) {
        let clock = Clock::start();
        while self.files() > files {
            assert!(clock.now().to_ms() < LIMIT, "{} files are open, {files} were", self.files());
            std::thread::yield_now();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A request as it stands on the wire.
fn request(method: &str, name: Option<&str>, params: &serde_json::Value) -> String {
    let mut params = params.clone();
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let name = name.map_or_else(String::new, |name| format!("mcp-name: {name}\r\n"));
    let fields = "accept: application/json, text/event-stream\r\ncontent-type: application/json\r\n";
    let version = "mcp-protocol-version: 2026-07-28\r\n";
    let length = body.len();
    format!(
        "POST /mcp HTTP/1.1\r\nhost: x\r\n{fields}{version}mcp-method: {method}\r\n{name}content-length: {length}\r\n\r\n{body}"
    )
}

fn listen() -> String {
    request("subscriptions/listen", None, &json!({ "notifications": { "toolsListChanged": true } }))
}

/// Reads until this text has come.
fn read_until(stream: &mut TcpStream, text: &str) {
    let mut read = Vec::new();
    let mut some = [0; 4096];
    while !String::from_utf8_lossy(&read).contains(text) {
        let len = stream.read(&mut some).unwrap();
        assert!(len > 0, "ended before {text}: {}", String::from_utf8_lossy(&read));
        read.extend_from_slice(&some[..len]);
    }
}

#[test]
fn a_thousand_slow_clients_keep_nobody_from_being_served_and_leave_nothing_behind() {
    let server = Server::start();
    let files = server.files();
    server.echo();
    server.is_back_at(files);
    let threads = server.figure("Threads");
    let memory = server.figure("VmRSS");
    let whole = request("tools/call", Some("silent"), &json!({ "name": "silent" }));
    let flood = json!({ "name": "flood", "arguments": { "n": 1_000_000, "size": 10_000 } });
    let flood = request("tools/call", Some("flood"), &flood)
        .replace("\"_meta\":{", "\"_meta\":{\"progressToken\":1,");
    let length = flood.split("\r\n\r\n").nth(1).unwrap().len();
    let old_length = length - "\"progressToken\":1,".len();
    let flood = flood.replace(&format!("content-length: {old_length}"), &format!("content-length: {length}"));
    let clock = Clock::start();
    let mut clients = Vec::new();
    for k in 0..1000 {
        let mut stream = server.connect();
        let sent = match k % 50 {
            // A flood that nobody reads, half of a head, half of a body, a call that never ends, and
            // changes that nobody reads.
            0 => flood.as_str(),
            1..13 => whole.get(..40).unwrap(),
            13..25 => whole.get(..whole.len() - 20).unwrap(),
            25..37 => whole.as_str(),
            _ => &listen(),
        };
        stream.write_all(sent.as_bytes()).unwrap();
        clients.push(stream);
    }
    assert!(server.echo() < Ms(5000), "served beside a thousand slow ones");
    // Half of a body is refused after five seconds.
    assert!(server.files() >= files + 1000 || clock.now().to_ms() > Ms(5000));
    drop(clients);
    server.is_back_at(files);
    assert_eq!(server.figure("Threads"), threads);
    let now = server.figure("VmRSS");
    assert!(now < memory + 2 * MORE_KIB, "{memory} KiB before, {now} KiB after");
    server.echo();
}

/// Lets this process and its children open as many files as they may; how many that is.
fn raise_file_limit() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.map_or(FILES, |most| most.min(FILES));
    let now = limit.current.unwrap_or(u64::MAX);
    if now < wanted {
        // Where that is refused, fewer are open at once.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), ..limit });
    }
    usize::try_from(getrlimit(Resource::Nofile).current.unwrap_or(FILES)).unwrap()
}

/// Open files that a round of subscriptions takes on either side, with those that are open anyway.
const FILES: u64 = 3000;

/// Memory that a round may cost for good: 2.4 KiB for each of its subscriptions, where one that is held
/// takes more than 20.
const ROUND_KIB: u64 = 6 << 10;

#[test]
fn ten_thousand_subscriptions_leave_no_file_and_no_memory_behind() {
    const ALL: usize = 10_000;
    let at_once = (raise_file_limit() - 200).min(ALL / 4);
    let server = Server::start();
    let threads = server.figure("Threads");
    let open = |count: usize| {
        let mut streams: Vec<TcpStream> = Vec::with_capacity(count);
        // No more wait to be accepted than the system lets.
        for _ in 0..count.div_ceil(100) {
            let from = streams.len();
            streams.extend((from..count.min(from + 100)).map(|_| server.connect()));
            for stream in &mut streams[from..] {
                stream.write_all(listen().as_bytes()).unwrap();
            }
            for stream in &mut streams[from..] {
                read_until(stream, "notifications/subscriptions/acknowledged");
            }
        }
    };
    let files = server.files();
    // What an allocator keeps grows less with each round, what is lost does not.
    let mut memory = Vec::new();
    for _ in 0..ALL / at_once {
        open(at_once);
        server.is_back_at(files);
        memory.push(server.figure("VmRSS"));
    }
    let least = memory.windows(2).map(|two| two[1].saturating_sub(two[0])).min();
    assert!(least.is_none_or(|least| least < ROUND_KIB), "{memory:?} KiB after each round of {at_once}");
    assert_eq!(server.figure("Threads"), threads);
    server.echo();
}

#[test]
fn what_is_too_much_has_its_answer_and_the_server_goes_on() {
    let server = Server::start();
    let call = request("tools/call", Some("echo"), &json!({ "name": "echo" }));
    let large = json!({ "name": "echo", "arguments": { "text": "x".repeat(2 << 20) } });
    let many: Vec<String> = (0..500).map(|k| format!("x-{k}: y\r\n")).collect();
    let many = many.concat();
    let chunk = format!("8000\r\n{}\r\n", "x".repeat(0x8000));
    let chunked = call.replace("host: x\r\n", "host: x\r\ntransfer-encoding: chunked\r\n");
    let (head, _) = chunked.split_once("\r\n\r\n").unwrap();
    let head: String = head
        .lines()
        .filter(|line| !line.starts_with("content-length"))
        .fold(String::new(), |head, line| head + line + "\r\n");
    let cases = [
        ("a large body", request("tools/call", Some("echo"), &large), "HTTP/1.1 400", "-32700"),
        (
            "a large body in chunks",
            format!("{head}\r\n{}0\r\n\r\n", chunk.repeat(64)),
            "HTTP/1.1 400",
            "-32700",
        ),
        ("many fields", call.replacen("host: x\r\n", &format!("host: x\r\n{many}"), 1), "HTTP/1.1 431", ""),
        ("no HTTP", "\0\u{1}\u{2}\r\n\r\n".to_owned(), "HTTP/1.1 400", ""),
    ];
    for (name, sent, status, text) in cases {
        let mut stream = server.connect();
        stream.write_all(sent.as_bytes()).unwrap();
        let mut answer = vec![0; 4096];
        let len = stream.read(&mut answer).unwrap();
        let answer = String::from_utf8_lossy(&answer[..len]).into_owned();
        assert!(answer.starts_with(status), "{name}: {answer}");
        assert!(answer.contains(text), "{name}: {answer}");
        server.echo();
    }
}

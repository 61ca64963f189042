//! Which server a client gets on with: `midwire serve --era …` at the other end of `midwire call`,
//! over real pipes and sockets.
#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside the test functions")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

const MIDWIRE: &str = env!("CARGO_BIN_EXE_midwire");

/// A server on HTTP, ended when it is dropped.
struct Server {
    process: Child,
    url: String,
}

impl Server {
    fn start(era: &str) -> Server {
        let mut process = Command::new(MIDWIRE)
            .args(["serve", "http", "--listen", "127.0.0.1:0", "--era", era])
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // It says on one of its outputs where it listens.
        let mut line = String::new();
        BufReader::new(process.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.split_whitespace().last().unwrap().to_owned();
        assert!(url.starts_with("http://"), "{line}");
        Server { process, url }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

/// The exit status of `midwire call echo` with these options.
fn call(options: &[&str], server: &[&str]) -> Option<i32> {
    let limits = ["--discover-limit", "2000", "--initialize-limit", "10000", "--timeout", "10000"];
    let called = Command::new(MIDWIRE)
        .args(["call", "echo", "--arg", "text=hi"])
        .args(options)
        .args(limits)
        .args(server)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    if called.status.code() == Some(0) {
        assert!(String::from_utf8_lossy(&called.stdout).contains("hi"), "{called:?}");
    }
    called.status.code()
}

#[test]
fn a_client_gets_on_with_the_eras_that_it_is_allowed_to_speak() {
    let cases: [(&str, &[&str], bool); 12] = [
        ("modern", &[], true),
        ("modern", &["--legacy"], false),
        ("dual", &[], true),
        ("dual", &["--legacy"], true),
        ("legacy", &[], false),
        ("legacy", &["--allow-legacy"], true),
        ("legacy", &["--legacy"], true),
        ("legacy", &["--modern"], false),
        ("lenient-legacy", &[], false),
        ("lenient-legacy", &["--allow-legacy"], true),
        ("silent-legacy", &[], false),
        ("silent-legacy", &["--legacy"], true),
    ];
    for (era, options, is_served) in cases {
        let stdio = call(options, &["--", MIDWIRE, "serve", "stdio", "--era", era]);
        assert_eq!(stdio == Some(0), is_served, "{era} {options:?} over stdio: {stdio:?}");
        let server = Server::start(era);
        let http = call(options, &["--url", &server.url]);
        assert_eq!(http == Some(0), is_served, "{era} {options:?} over HTTP: {http:?}");
    }
}

/// The answers of a server on pipes to these messages, up to so many.
fn answers(era: &str, messages: &[Value], count: usize) -> Vec<Value> {
    let mut server = Command::new(MIDWIRE)
        .args(["serve", "stdio", "--era", era])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = server.stdin.take().unwrap();
    for message in messages {
        writeln!(input, "{message}").unwrap();
    }
    let output = BufReader::new(server.stdout.take().unwrap());
    let lines = output.lines().take(count).map(|line| serde_json::from_str(&line.unwrap()).unwrap());
    let lines = lines.collect();
    drop(input);
    assert!(server.wait().unwrap().success());
    lines
}

#[test]
fn an_operation_before_the_handshake_tells_nothing_about_the_era() {
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {} });
    let discover = json!({ "jsonrpc": "2.0", "id": 2, "method": "server/discover", "params": {} });
    // A ping is answered at any time: what comes before it is all that comes.
    let ping = json!({ "jsonrpc": "2.0", "id": 3, "method": "ping", "params": {} });
    let codes = |era: &str, count: usize| -> Vec<(i64, i64)> {
        let mut got: Vec<(i64, i64)> = answers(era, &[list.clone(), discover.clone(), ping.clone()], count)
            .iter()
            .map(|answer| (answer["id"].as_i64().unwrap(), answer["error"]["code"].as_i64().unwrap_or(0)))
            .collect();
        got.sort_unstable();
        got
    };
    assert_eq!(codes("lenient-legacy", 3), [(1, 0), (2, -32601), (3, 0)]);
    assert_eq!(codes("legacy", 3), [(1, -32600), (2, -32601), (3, 0)]);
    assert_eq!(codes("silent-legacy", 1), [(3, 0)]);
}

//! The reference peers as processes: `midwire serve` at the other end of real pipes.
#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside the test functions")]

#[path = "peer/abuse.rs"]
mod abuse;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Command, Stdio};

use midwire::peer::client::{CallOptions, Client, Outcome, Reason, raw};
use midwire::time::{Clock, Ms};
use serde_json::json;

const MIDWIRE: &str = env!("CARGO_BIN_EXE_midwire");

fn call_line(tool: &str) -> String {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "name": tool, "_meta": meta });
    json!({ "jsonrpc": "2.0", "id": tool, "method": "tools/call", "params": params }).to_string()
}

#[tokio::test]
async fn a_client_starts_a_server_calls_cancels_and_ends_it() {
    let command = [MIDWIRE, "serve", "stdio"].map(str::to_owned);
    let client = Client::spawn(&command).unwrap();
    let options = CallOptions { wants_progress: true, ..CallOptions::default() };
    let arguments = raw(&json!({ "steps": 3, "step_ms": 110 }));
    let report = client.call("slow", &arguments, &options, |_| {}).await.unwrap();
    assert!(matches!(report.outcome, Outcome::Complete(_)), "{report:?}");
    assert_eq!(report.progress, 3);
    let limited = CallOptions { idle: Ms(50), ..options.clone() };
    let report = client.call("silent", &raw(&json!({})), &limited, |_| {}).await.unwrap();
    assert!(matches!(report.outcome, Outcome::GivenUp(Reason::Idle)), "{report:?}");
    let report = client.call("big", &raw(&json!({ "bytes": 2_000_000 })), &options, |_| {}).await.unwrap();
    assert!(matches!(report.outcome, Outcome::Complete(_)));
    assert_eq!(client.strays(), 0, "nothing came after the cancel");
    let exit = client.close().await.unwrap().unwrap();
    assert!(exit.status.success() && !exit.was_forced, "{exit:?}");
}

#[test]
fn a_server_ends_within_half_a_second_of_its_input_and_keeps_its_output_clean() {
    let mut server = Command::new(MIDWIRE)
        .args(["serve", "stdio"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = server.stdin.take().unwrap();
    let mut output = BufReader::new(server.stdout.take().unwrap());
    writeln!(input, "{}\nno message\n{}", call_line("silent"), call_line("echo")).unwrap();
    let mut lines = Vec::new();
    for _ in 0..2 {
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        lines.push(serde_json::from_str::<serde_json::Value>(&line).unwrap());
    }
    assert_eq!((&lines[0]["error"]["code"], &lines[1]["id"]), (&json!(-32700), &json!("echo")));
    let clock = Clock::start();
    drop(input);
    let status = server.wait().unwrap();
    assert!(status.success(), "{status}");
    assert!(clock.now().to_ms() <= Ms(500), "{:?}", clock.now());
    assert_eq!(output.lines().count(), 0, "nothing else was said");
}

#[test]
fn a_server_that_is_none_of_mcp_is_told_in_one_harmless_line() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", server.local_addr().unwrap());
    let serving = std::thread::spawn(move || {
        let (mut peer, _) = server.accept().unwrap();
        let _ = peer.read(&mut [0; 4096]).unwrap();
        let body = "<html>\n<h1>\u{1b}[31mno</h1>\n</html>\n";
        let head = "HTTP/1.1 501 Unsupported\r\nContent-Type: text/html\r\nConnection: close\r\n";
        write!(peer, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    });
    let called = Command::new(MIDWIRE).args(["call", "list", "--url", &url]).output().unwrap();
    serving.join().unwrap();
    let said = String::from_utf8(called.stdout).unwrap();
    assert_eq!(called.status.code(), Some(1));
    assert!(said.starts_with("refused with status 501, without an MCP answer"), "{said}");
    assert!(said.trim_end().lines().count() == 1 && !said.contains('\u{1b}'), "{said:?}");
}

#[tokio::test]
async fn cleanup_is_cut_off_at_the_limit_that_was_asked_for() {
    let command = [MIDWIRE, "serve", "stdio", "--cleanup-limit-ms", "20"].map(str::to_owned);
    let client = Client::spawn(&command).unwrap();
    let arguments = raw(&json!({ "title": "Momo", "payment_ms": 0, "release_ms": 60_000 }));
    let report = client.call("order_book", &arguments, &CallOptions::default(), |_| {}).await.unwrap();
    let Outcome::Complete(result) = report.outcome else { panic!("{report:?}") };
    let result: serde_json::Value = serde_json::from_str(result.get()).unwrap();
    assert_eq!(result["isError"], true);
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.ends_with("was not released within 20 ms"), "{text}");
    client.close().await.unwrap();
}

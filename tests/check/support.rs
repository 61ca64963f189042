//! Recordings with faults, and the running of the program on them.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// A call that is answered long after its cancel (CAN-05, a warning), in four events.
pub(crate) const LATE: &str = r#"{"t_ms":0,"dir":"c2s","transport":"stdio","raw":"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"a\",\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\"io.modelcontextprotocol/clientCapabilities\":{},\"io.modelcontextprotocol/clientInfo\":{\"name\":\"c\",\"version\":\"1\"}}}}\n"}
{"t_ms":100,"dir":"c2s","transport":"stdio","raw":"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":1,\"reason\":\"enough\"}}\n"}
{"t_ms":9000,"dir":"s2c","transport":"stdio","raw":"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"resultType\":\"complete\",\"content\":[],\"_meta\":{\"io.modelcontextprotocol/serverInfo\":{\"name\":\"s\",\"version\":\"1\"}}}}\n"}
{"t_ms":9100,"dir":"tap","transport":"stdio","event":"capture_end"}
"#;

/// The rules that the recording below is about; others may have a word about it too.
pub(crate) const HOSTILE_RULES: &str = "--rule=RPC-08,REL-11,STD-01,STD-04";

/// Faults of every severity in six events, with a name, an id and noise that try to steer
/// terminals, close XML elements and open Markdown ones: a stray answer (RPC-08, error), a call
/// that is therefore never answered (REL-11, warning), a line that is no message (STD-01, error)
/// and lines that end in CR LF (STD-04, hint).
pub(crate) const HOSTILE: &str = r#"{"t_ms":0,"dir":"c2s","transport":"stdio","raw":"{\"jsonrpc\":\"2.0\",\"id\":\"\\u001b]0;x\\u0007|<b>&\u202e@all`\",\"method\":\"tools/call\",\"params\":{\"name\":\"]]></failure>\\u001b\u009b31m| [x](http://a.b) #1 $x$\"}}\n"}
{"t_ms":1,"dir":"s2c","transport":"stdio","raw":"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\r\n"}
{"t_ms":2,"dir":"s2c","transport":"stdio","raw":"\u001b[31m<noise>\n"}
{"t_ms":40000,"dir":"c2s","transport":"stdio","event":"client_closed"}
{"t_ms":40001,"dir":"s2c","transport":"stdio","event":"server_closed"}
{"t_ms":40002,"dir":"tap","transport":"stdio","event":"capture_end"}
"#;

pub(crate) const CLEAN: &str = "recordings/stdio-clean.mw.jsonl";

/// Runs `midwire check` in the crate's folder with this on its standard input.
pub(crate) fn check(args: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_midwire"))
        .arg("check")
        .args(args)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A child that ended before it read its input is judged by its exit code.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

/// What it prints.
pub(crate) fn printed(args: &[&str], input: &str) -> String {
    String::from_utf8(check(args, input).stdout).unwrap()
}

/// The same events with numbers from 11 on: the beginning was not seen.
pub(crate) fn without_beginning(recording: &str) -> String {
    let line = |(n, line): (u32, &str)| line.replacen('{', &format!("{{\"n\":{n},"), 1) + "\n";
    (11..).zip(recording.lines()).map(line).collect()
}

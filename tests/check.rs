//! `midwire check` as a script meets it: exit codes, standard input, one clear line on bad input.
#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside the test functions")]

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const LATE: &str = r#"{"t_ms":0,"dir":"c2s","transport":"stdio","raw":"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"a\",\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\"io.modelcontextprotocol/clientCapabilities\":{}}}}\n"}
{"t_ms":100,"dir":"c2s","transport":"stdio","raw":"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":1,\"reason\":\"enough\"}}\n"}
{"t_ms":9000,"dir":"s2c","transport":"stdio","raw":"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"resultType\":\"complete\",\"content\":[]}}\n"}
{"t_ms":9100,"dir":"tap","transport":"stdio","event":"capture_end"}
"#;

/// Runs `midwire check` in the crate's folder with this on its standard input.
fn check(args: &[&str], input: &str) -> Output {
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

#[test]
fn the_exit_code_says_whether_anything_as_bad_was_found() {
    let clean = "recordings/stdio-clean.mw.jsonl";
    let cases: [(&[&str], i32); 6] = [
        (&[clean], 0),
        (&["-"], 1),
        (&[clean, "-"], 1),
        (&["--fail-on", "error", "-"], 0),
        (&["--format", "json", "-"], 1),
        (&[], 2),
    ];
    for (args, code) in cases {
        let output = check(args, LATE);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {output:?}");
    }
}

#[test]
fn findings_name_their_rule_and_their_evidence() {
    let text = String::from_utf8(check(&["-"], LATE).stdout).unwrap();
    assert!(text.starts_with("warning CAN-05 [2026-07-28, server]"), "{text}");
    let json: Value = serde_json::from_slice(&check(&["--format", "json", "-"], LATE).stdout).unwrap();
    let finding = &json["recordings"][0]["findings"][0];
    assert_eq!((&finding["rule"], &finding["ids"][0]), (&Value::from("CAN-05"), &Value::from(1)));
    assert!(finding["evidence"].as_array().unwrap().contains(&Value::from(3)), "the answer that came late");
}

#[test]
fn what_is_no_recording_gets_one_clear_line() {
    let cases = [
        (&["no/such/file"][..], "", "cannot open the recording no/such/file"),
        (&["README.md"], "", "README.md is not a recording"),
        (&["-"], "", "holds no event"),
        (&["-"], "not json\n", "is not a recording"),
    ];
    for (args, input, said) in cases {
        let output = check(args, input);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
        assert!(stderr.contains(said) && stderr.lines().count() == 1, "{args:?}: {stderr}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn what_was_passed_over_is_said_once_and_does_not_stop_the_check() {
    let odd =
        format!("{LATE}{{\"t_ms\":9200,\"dir\":\"tap\",\"event\":\"weather\",\"sky\":1}}\n[1]\n{{\"t_ms\":9");
    let output = check(&["-"], &odd);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    for said in ["1 line passed over", "bytes of an unfinished last line", "weather"] {
        assert_eq!(stderr.matches(said).count(), 1, "{said}: {stderr}");
    }
}

#[test]
fn nothing_foreign_steers_the_terminal() {
    let input = format!("{LATE}{}\n", r#"{"t_ms":9200,"dir":"tap","event":"\u001b]0;x\u0007\u202e"}"#);
    for (args, input) in [(&["-"][..], input.as_str()), (&["no/\u{1b}[31m\u{202e}file"], "")] {
        let output = check(args, input);
        let shown = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(shown.contains('\u{fffd}'), "{shown}");
        let steers = |c: char| c != '\n' && (c.is_control() || c == '\u{202e}');
        assert!(!shown.contains(steers), "{shown:?}");
    }
}

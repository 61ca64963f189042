//! The recording of a stdio session: complete, in causal order, and never in the way.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::support::{Tap, command, recorded_bytes};

/// A server that answers each call at once.
const ANSWER: &str = r#"s/"method":"ping"/"result":{}/"#;

fn call(id: usize) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n")
}

/// Calls one after the other, each answered before the next.
fn call_in_turn(tap: &mut Tap, count: usize, pause: Duration) {
    let mut stdin = tap.child.stdin.take().unwrap();
    let mut answers = BufReader::new(tap.child.stdout.take().unwrap());
    let mut line = String::new();
    for id in 1..=count {
        stdin.write_all(call(id).as_bytes()).unwrap();
        line.clear();
        answers.read_line(&mut line).unwrap();
        assert!(line.contains(&format!("\"id\":{id},")), "{line}");
        thread::sleep(pause);
    }
}

/// One direction of a recording, put together again from lines and fragments.
#[derive(Default)]
struct Side {
    partial: Vec<u8>,
    ids: Vec<usize>,
}

impl Side {
    /// Adds an event's bytes; a whole line is a message.
    fn add(&mut self, bytes: &[u8]) {
        self.partial.extend_from_slice(bytes);
        if self.partial.ends_with(b"\n") {
            let message: Value = serde_json::from_slice(&self.partial).unwrap();
            self.ids.push(usize::try_from(message["id"].as_u64().unwrap()).unwrap());
            self.partial.clear();
        }
    }
}

/// Every message in the file, numbered without a hole, each call whole before the first byte of
/// its answer; `count` of each.
fn check_order(recording: &[Value], count: usize) {
    let (mut calls, mut answers) = (Side::default(), Side::default());
    for (line, event) in recording.iter().enumerate() {
        assert_eq!(event["n"], line + 1, "a hole in the numbers");
        let Some(bytes) = recorded_bytes(event) else { continue };
        if event["dir"] == "c2s" {
            calls.add(&bytes);
        } else {
            assert!(answers.ids.len() < calls.ids.len(), "an answer stands before its call");
            answers.add(&bytes);
        }
    }
    assert_eq!((calls.ids.len(), answers.ids.len()), (count, count));
    assert_eq!(calls.ids, answers.ids);
}

#[test]
fn no_answer_stands_before_its_call_at_full_speed() {
    let mut tap = Tap::start(&[], &["sed", "-u", ANSWER]);
    call_in_turn(&mut tap, 50_000, Duration::ZERO);
    check_order(&tap.end().recording, 50_000);
}

#[test]
fn no_answer_stands_before_its_call_at_a_slow_pace() {
    let mut tap = Tap::start(&[], &["sed", "-u", ANSWER]);
    call_in_turn(&mut tap, 300, Duration::from_millis(10));
    check_order(&tap.end().recording, 300);
}

#[test]
fn a_hundred_thousand_pipelined_calls_are_all_in_the_file() {
    let count = 100_000;
    let input: String = (1..=count).map(call).collect();
    let ended = Tap::start(&[], &["sed", ANSWER]).talk(input.into_bytes(), vec![1 << 20]);
    assert_eq!(ended.stdout.split(|byte| *byte == b'\n').count(), count + 1);
    check_order(&ended.recording, count);
}

#[test]
fn a_full_disk_stops_the_recording_but_not_the_path() {
    let mut tap = Tap::start_recording(Path::new("/dev/full"), &["sed", "-u", ANSWER]);
    call_in_turn(&mut tap, 500, Duration::ZERO);
    assert!(tap.end().status.success());
}

#[test]
fn a_folder_that_cannot_be_written_is_said_and_the_path_goes_on() {
    let mut tap = Tap::start_recording(Path::new("/proc/nobody/session.mw.jsonl"), &["sed", "-u", ANSWER]);
    call_in_turn(&mut tap, 50, Duration::ZERO);
    let ended = tap.end();
    assert!(ended.status.success());
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(said.contains("/proc/nobody"), "{said}");
}

#[test]
fn a_limit_on_the_size_of_files_stops_the_recording_but_not_the_path() {
    let folder = tempfile::TempDir::new().unwrap();
    let record = folder.path().join("session.mw.jsonl");
    let tap = command(&[], &record, &["sh", "-c", "head -c 300000 /dev/zero; exit 7"]);
    let mut limited = std::process::Command::new("sh");
    limited.args(["-c", "ulimit -f 8; exec \"$0\" \"$@\""]).arg(tap.get_program()).args(tap.get_args());
    let ended = limited.env("MIDWIRE_STATE_DIR", folder.path()).output().unwrap();
    assert_eq!((ended.status.code(), ended.stdout.len()), (Some(7), 300_000));
}

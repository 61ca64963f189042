//! A viewer that comes before, during or after a session knows the same in the end.
#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside the test functions")]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use midwire::model::Model;
use midwire::rules::Judge;
use midwire::trace::{Ending, Follower, Recording};
use portable_pty::{CommandBuilder, PtySize, native_pty_system};

/// What somebody knows: calls, rows and findings, in words.
fn known(model: &Model, judge: &Judge) -> String {
    format!("{:#?}\n{:#?}\n{:#?}", model.calls(), model.rows(), judge.findings())
}

/// Follows a recording to its end, as the viewer does.
fn followed(path: &Path) -> String {
    let mut follower = Follower::open(&[path]).unwrap();
    let (mut model, mut judge, mut idx) = (Model::new(), Judge::new(), 0);
    loop {
        while let Some((event, _)) = follower.next().unwrap() {
            model.fold(&event, idx);
            judge.look(&model);
            idx += 1;
        }
        if matches!(follower.recording().ending(), Ending::Clean { .. }) {
            return known(&model, &judge);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Opens a finished recording.
fn opened(path: &Path) -> String {
    let mut recording = Recording::open(path).unwrap();
    let (mut model, mut judge, mut idx) = (Model::new(), Judge::new(), 0);
    while let Some((event, _)) = recording.next().unwrap() {
        model.fold(&event, idx);
        judge.look(&model);
        idx += 1;
    }
    known(&model, &judge)
}

fn started(record: &Path, state: &Path) -> (Child, ChildStdin) {
    let midwire = env!("CARGO_BIN_EXE_midwire");
    let mut tap = Command::new(midwire)
        .args(["stdio", "--record"])
        .arg(record)
        .args(["--", midwire, "serve", "stdio"])
        .env("MIDWIRE_STATE_DIR", state)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let stdin = tap.stdin.take().unwrap();
    (tap, stdin)
}

fn call(id: u32, tool: &str, arguments: &str) -> String {
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"{tool}\",\
         \"arguments\":{arguments},\"_meta\":{{\"progressToken\":{id},\
         \"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\
         \"io.modelcontextprotocol/clientCapabilities\":{{}}}}}}}}\n"
    )
}

#[test]
fn a_follower_from_the_start_one_from_the_middle_and_a_later_reader_know_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let record: PathBuf = folder.path().join("session.mw.jsonl");
    let (mut tap, mut stdin) = started(&record, folder.path());
    let mut answers = BufReader::new(tap.stdout.take().unwrap()).lines();
    while !record.exists() {
        std::thread::sleep(Duration::from_millis(2));
    }
    let early = {
        let record = record.clone();
        std::thread::spawn(move || followed(&record))
    };

    for id in 1..=20 {
        stdin.write_all(call(id, "echo", r#"{"text":"hello"}"#).as_bytes()).unwrap();
        answers.next().unwrap().unwrap();
    }
    let late = {
        let record = record.clone();
        std::thread::spawn(move || followed(&record))
    };

    stdin.write_all(call(21, "slow", r#"{"steps":5,"step_ms":5}"#).as_bytes()).unwrap();
    while !answers.next().unwrap().unwrap().contains("\"id\":21") {}
    stdin.write_all(call(22, "silent", "{}").as_bytes()).unwrap();
    stdin
        .write_all(
            b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":22}}\n",
        )
        .unwrap();
    drop(stdin);
    assert!(tap.wait().unwrap().success());

    let afterwards = opened(&record);
    assert!(afterwards.contains("CancelledByClient"), "{afterwards}");
    assert_eq!(early.join().unwrap(), afterwards);
    assert_eq!(late.join().unwrap(), afterwards);
}

/// Echoes `count` calls through the tap.
fn talk(
    stdin: &mut ChildStdin,
    answers: &mut impl Iterator<Item = std::io::Result<String>>,
    first: u32,
    count: u32,
) {
    for id in first..first + count {
        stdin.write_all(call(id, "echo", r#"{"text":"hello"}"#).as_bytes()).unwrap();
        assert!(answers.next().unwrap().unwrap().contains(&format!("\"id\":{id},")));
    }
}

#[test]
fn the_path_does_not_notice_a_viewer_that_is_stopped_or_killed_or_whose_terminal_hangs() {
    let folder = tempfile::tempdir().unwrap();
    let record: PathBuf = folder.path().join("session.mw.jsonl");
    let (mut tap, mut stdin) = started(&record, folder.path());
    let mut answers = BufReader::new(tap.stdout.take().unwrap()).lines();
    talk(&mut stdin, &mut answers, 1, 10);

    // Nobody ever reads from this terminal.
    let terminal = native_pty_system().openpty(PtySize { rows: 24, cols: 80, ..PtySize::default() }).unwrap();
    let mut viewer = CommandBuilder::new(env!("CARGO_BIN_EXE_midwire"));
    viewer.arg("open");
    viewer.arg(&record);
    viewer.env("MIDWIRE_STATE_DIR", folder.path());
    viewer.env("TERM", "xterm-256color");
    let mut viewer = terminal.slave.spawn_command(viewer).unwrap();
    let signal = |name: &str| {
        let pid = viewer.process_id().unwrap().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    };
    talk(&mut stdin, &mut answers, 11, 500);
    signal("-STOP");
    talk(&mut stdin, &mut answers, 511, 500);
    signal("-KILL");
    talk(&mut stdin, &mut answers, 1011, 500);
    viewer.wait().unwrap();

    drop(stdin);
    assert!(tap.wait().unwrap().success());
    let known = opened(&record);
    assert_eq!(known.matches("state: AnsweredOk").count(), 1510);
}

//! How a session ends: by the server, by the client, by neither.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

use crate::support::{Tap, command, events, is_running, recorded, signal, wait_until};

#[test]
fn the_exit_status_is_the_servers() {
    let cases =
        [("exit 0", 0), ("exit 7", 7), ("exit 255", 255), ("kill -SEGV $$", 139), ("kill -9 $$", 137)];
    for (script, status) in cases {
        let ended = Tap::start(&[], &["sh", "-c", script]).end();
        assert_eq!(ended.status.code(), Some(status), "{script}");
        let closed = events(&ended.recording, "server_closed");
        assert_eq!(closed.len(), 1, "{script}: {closed:?}");
        let expected =
            if status > 128 && status < 255 { ("signal", status - 128) } else { ("exit_code", status) };
        assert_eq!(closed[0][expected.0], expected.1, "{script}");
    }
}

#[test]
fn last_words_are_delivered_before_the_end() {
    let script = "head -c 60000 /dev/zero | tr '\\0' x; echo; echo bye >&2; exit 3";
    let ended = Tap::start(&[], &["sh", "-c", script]).end();
    assert_eq!((ended.stdout.len(), ended.stderr.as_slice()), (60_001, &b"bye\n"[..]));
    assert_eq!(ended.status.code(), Some(3));
    assert_eq!(recorded(&ended.recording, "s2c").len(), 60_001);
    let last = ended.recording.iter().rfind(|event| event["event"] != "capture_end").unwrap();
    assert_eq!(last["event"], "server_closed", "nothing from the server stands after its end");
}

#[test]
fn a_client_that_ends_stdin_is_seen_by_the_server_and_recorded() {
    let ended = Tap::start(&[], &["sh", "-c", "cat; echo ended"]).talk(b"x\n".to_vec(), vec![2]);
    assert_eq!(ended.stdout, b"x\nended\n");
    assert_eq!(events(&ended.recording, "client_closed").len(), 1);
    assert!(events(&ended.recording, "signal").is_empty(), "a server that obeys is sent no signal");
}

#[test]
fn a_server_that_ignores_eof_is_ended_after_the_stated_waits() {
    let options = ["--eof-wait-ms", "300", "--term-wait-ms", "200"];
    let stubborn = "trap '' TERM; echo $$ >pid; while :; do sleep 0.05; done";
    let tap = Tap::start(&options, &["sh", "-c", stubborn]);
    let pid = tap.number_in("pid");
    let ended = tap.end();
    assert_eq!(ended.status.code(), Some(128 + 9));
    assert!(!is_running(pid));
    let sent: Vec<_> = ended.recording.iter().filter(|event| !event["event"].is_null()).collect();
    let at = |name: &str, signal: &str| {
        let found = sent.iter().find(|e| e["event"] == name && (signal.is_empty() || e["signal"] == signal));
        found.unwrap()["t_ms"].as_f64().unwrap()
    };
    let closed = at("client_closed", "");
    let (term, kill) = (at("signal", "SIGTERM"), at("signal", "SIGKILL"));
    assert!(term - closed >= 299.0 && kill - term >= 199.0, "{closed} {term} {kill}");
}

#[test]
fn a_grandchild_that_holds_the_pipe_does_not_keep_the_tap() {
    let tap = Tap::start(&[], &["sh", "-c", "sleep 300 & echo $! >pid; echo out; exit 5"]);
    let grandchild = tap.number_in("pid");
    let ended = tap.end();
    assert_eq!((ended.status.code(), ended.stdout.as_slice()), (Some(5), &b"out\n"[..]));
    assert!(!is_running(grandchild), "it is in the group, and the group does not outlive the tap");
    assert_eq!(events(&ended.recording, "signal").len(), 1);
}

#[test]
fn a_daemon_that_holds_the_pipe_does_not_keep_the_tap() {
    let tap =
        Tap::start(&[], &["sh", "-c", "setsid sh -c 'echo $$ >pid; exec sleep 300' & sleep 0.2; exit 6"]);
    let daemon = tap.number_in("pid");
    let ended = tap.end();
    assert_eq!(ended.status.code(), Some(6));
    assert!(is_running(daemon), "it left the group on purpose, as it may without a tap");
    signal(daemon, "KILL");
}

#[test]
fn a_stdout_that_the_server_closes_ends_for_the_client_while_the_server_lives() {
    let mut tap = Tap::start(&[], &["sh", "-c", "echo last; exec >&-; echo $$ >pid; read line; exit 4"]);
    let mut stdout = String::new();
    tap.child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
    assert_eq!(stdout, "last\n");
    assert!(is_running(tap.number_in("pid")));
    tap.write(b"go\n");
    let ended = tap.end();
    assert_eq!(ended.status.code(), Some(4));
    let closed = events(&ended.recording, "server_closed");
    assert_eq!((&closed[0]["how"], &closed[1]["exit_code"]), (&"eof".into(), &4.into()));
}

#[test]
fn a_client_that_closes_its_stdout_breaks_the_servers_pipe() {
    let mut tap = Tap::start(&[], &["sh", "-c", "while echo tick; do sleep 0.01; done; exit 9"]);
    assert_eq!(tap.read_exact(5), b"tick\n");
    drop(tap.child.stdout.take());
    // Its stdin stays open: only the broken pipe ends this server.
    let status = tap.wait();
    assert!([Some(9), Some(128 + 13)].contains(&status.code()), "{status}");
}

#[test]
fn a_server_that_closes_its_stdin_breaks_the_clients_pipe() {
    let mut tap = Tap::start(&[], &["sh", "-c", "exec <&-; echo $$ >pid; exec sleep 300"]);
    let server = tap.number_in("pid");
    let stdin = tap.child.stdin.as_mut().unwrap();
    wait_until("writing fails", || stdin.write_all(b"anybody there?\n").is_err());
    assert!(is_running(server));
    signal(server, "KILL");
    let ended = tap.end();
    assert_eq!(ended.status.code(), Some(128 + 9));
    assert_eq!(events(&ended.recording, "mark").len(), 1, "what was not taken is said");
}

#[test]
fn a_command_that_cannot_be_started_is_one_clear_line_and_status_2() {
    let folder = tempfile::tempdir().unwrap();
    let plain = folder.path().join("plain");
    fs::write(&plain, "").unwrap();
    for program in ["/no/such/program", plain.to_str().unwrap()] {
        let output = command(&[], &folder.path().join("r.mw.jsonl"), &[program])
            .env("MIDWIRE_STATE_DIR", folder.path())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert_eq!(output.status.signal(), None);
        assert!(output.stdout.is_empty());
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.starts_with("midwire: cannot start `") && text.contains(program), "{text}");
    }
}

#[test]
fn an_end_that_the_system_hides_is_not_taken_for_success() {
    // A parent that ignores SIGCHLD hands that on, and its children's children are reaped unseen.
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("session.mw.jsonl");
    let script = format!(
        "trap '' CHLD; exec '{}' stdio --record '{}' -- sh -c 'exit 3'",
        env!("CARGO_BIN_EXE_midwire"),
        record.display()
    );
    let status = Command::new("sh").args(["-c", &script]).stdin(Stdio::null()).status().unwrap();
    assert!(!status.success(), "{status}");
}

//! Signals reach the server as they would without a tap, and nobody is left behind.

use std::os::unix::process::ExitStatusExt;

use crate::support::{Tap, events, is_running, read_recording, wait_until};

#[test]
fn a_signal_to_the_tap_is_passed_on_and_recorded() {
    let cases = [("TERM", 15), ("INT", 2), ("HUP", 1), ("QUIT", 3), ("USR1", 10)];
    for (name, number) in cases {
        let script = format!(
            "trap 'echo got; exit {}' {name}; echo $$ >pid; while :; do sleep 0.02; done",
            40 + number
        );
        let tap = Tap::start(&[], &["sh", "-c", &script]);
        tap.number_in("pid");
        tap.signal(name);
        let ended = tap.end();
        assert_eq!(ended.status.code(), Some(40 + number), "{name}");
        assert_eq!(ended.stdout, b"got\n", "{name}");
        let signals = events(&ended.recording, "signal");
        assert_eq!(signals[0]["signal"], format!("SIG{name}"));
    }
}

#[test]
fn a_server_that_a_passed_on_signal_ends_gives_128_plus_its_number() {
    let mut tap = Tap::start(&[], &["sh", "-c", "echo $$ >pid; exec sleep 300"]);
    let server = tap.number_in("pid");
    tap.signal("TERM");
    // The client's pipes stay open, as with a client that signals before it closes.
    let status = tap.wait();
    assert_eq!((status.code(), status.signal()), (Some(128 + 15), None));
    assert!(!is_running(server));
}

#[test]
fn a_signal_that_the_server_refuses_does_not_end_the_tap_before_it() {
    let mut tap = Tap::start(&[], &["sh", "-c", "trap '' TERM; echo $$ >pid; exec cat"]);
    tap.number_in("pid");
    tap.signal("TERM");
    tap.write(b"still there?\n");
    assert_eq!(tap.read_exact(13), b"still there?\n");
    assert!(tap.end().status.success());
}

#[test]
fn nobody_is_left_when_the_tap_is_killed() {
    let script =
        "trap '' TERM HUP; sleep 300 & echo $! >grandchild; echo $$ >pid; while :; do sleep 0.02; done";
    let mut tap = Tap::start(&[], &["sh", "-c", script]);
    let (grandchild, server) = (tap.number_in("grandchild"), tap.number_in("pid"));
    tap.child.kill().unwrap();
    wait_until("server and grandchild have gone", || !is_running(server) && !is_running(grandchild));
}

#[test]
fn what_is_older_than_100_ms_survives_a_kill() {
    let mut tap = Tap::start(&[], &["cat"]);
    for number in 0..50 {
        let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{number},\"method\":\"ping\"}}\n");
        tap.write(line.as_bytes());
        tap.read_exact(line.len());
    }
    std::thread::sleep(std::time::Duration::from_millis(100));
    tap.child.kill().unwrap();
    tap.child.wait().unwrap();
    let recording = read_recording(&tap.record);
    let count = |dir: &str| recording.iter().filter(|event| event["dir"] == dir).count();
    assert_eq!((count("c2s"), count("s2c")), (50, 50));
}

#[test]
fn a_stopped_tap_stops_its_server_and_goes_on_with_it() {
    let mut tap = Tap::start(&[], &["sh", "-c", "echo $$ >pid; exec cat"]);
    let server = tap.number_in("pid");
    tap.signal("TSTP");
    wait_until("both have stopped", || [tap.child.id(), server].into_iter().all(is_stopped));
    tap.signal("CONT");
    tap.write(b"x");
    assert_eq!(tap.read_exact(1), b"x");
    assert!(tap.end().status.success());
}

fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
}

#[test]
fn a_signal_that_was_ignored_at_the_start_stays_ignored_by_tap_and_server() {
    let tap = env!("CARGO_BIN_EXE_midwire");
    let script = format!(
        "trap '' HUP; kill -HUP $$; exec {tap} stdio --record off -- sh -c 'kill -HUP $$; echo alive'"
    );
    let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
    assert_eq!(output.stdout, b"alive\n");
    assert!(output.status.success());
}

#[test]
fn a_client_that_ends_the_tap_without_reading_does_not_wait_for_ever() {
    let mut tap = Tap::start(&[], &["sh", "-c", "yes | head -c 1000000 & sleep 0.3; echo $$ > pid; wait"]);
    tap.number_in("pid");
    tap.signal("TERM");
    assert_eq!(tap.wait().code(), Some(143));
}

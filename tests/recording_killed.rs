//! A tap that is killed in the middle of its work leaves a recording that opens and holds
//! everything older than 100 ms.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and reads the clock"
)]

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use midwire::event::{Dir, What};
use midwire::trace::{Ending, Recording};

/// Runs a tap around `cat`, sends numbered lines for `age`, kills the tap, and returns how many
/// lines had come back 100 ms before.
fn run_and_kill(recording: &std::path::Path, age: Duration) -> usize {
    let mut tap = Command::new(env!("CARGO_BIN_EXE_midwire"))
        .args(["stdio", "--record"])
        .arg(recording)
        .args(["--", "cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = tap.stdin.take().unwrap();
    let stdout = BufReader::new(tap.stdout.take().unwrap());
    let came_back = Arc::new(Mutex::new(Vec::new()));
    let seen = came_back.clone();
    let reader = std::thread::spawn(move || {
        for line in stdout.lines() {
            if line.is_err() {
                return;
            }
            seen.lock().unwrap().push(Instant::now());
        }
    });
    let writer = std::thread::spawn(move || {
        for number in 0.. {
            let line = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":{number}}}\n");
            if stdin.write_all(line.as_bytes()).is_err() {
                return;
            }
            // Steady traffic that any machine can record, not a race against an unoptimised build.
            if number % 5 == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    });
    while came_back.lock().unwrap().is_empty() {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(age);
    let old = Instant::now().checked_sub(Duration::from_millis(100)).unwrap();
    tap.kill().unwrap();
    tap.wait().unwrap();
    reader.join().unwrap();
    writer.join().unwrap();
    let came_back = came_back.lock().unwrap();
    came_back.iter().filter(|at| **at < old).count()
}

/// Reads the recording of a killed tap, checks it, and returns how many lines it holds of what
/// came back.
fn lines_in(recording: &std::path::Path) -> usize {
    let mut recording = Recording::open(recording).unwrap();
    let (mut answers, mut n) = (Vec::new(), 0);
    while let Some((event, _)) = recording.next().unwrap() {
        n += 1;
        assert_eq!(event.n, n);
        if let (Dir::S2c, What::Bytes { bytes, .. }) = (event.dir, event.what) {
            answers.extend_from_slice(&bytes);
        }
    }
    assert_eq!(recording.ending(), Ending::Cut);
    assert_eq!(recording.faults().bad_lines, 0);
    let lines = answers.split_inclusive(|&byte| byte == b'\n');
    let whole: Vec<_> = lines.filter(|line| line.ends_with(b"\n")).collect();
    for (number, line) in whole.iter().enumerate() {
        assert!(line.ends_with(format!("\"params\":{number}}}\n").as_bytes()));
    }
    whole.len()
}

#[test]
fn what_is_older_than_100_ms_survives_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    for ending in ["mw.jsonl", "mw.jsonl.zst"] {
        for age_ms in [130, 250, 333, 410] {
            // A machine that gives the recorder no time within 40 ms proves nothing: try again.
            let is_kept = (0..5).any(|attempt| {
                let recording = folder.path().join(format!("{age_ms}-{attempt}.{ending}"));
                let must = run_and_kill(&recording, Duration::from_millis(age_ms));
                lines_in(&recording) >= must
            });
            assert!(is_kept, "{ending}: something older than 100 ms was lost after {age_ms} ms, five times");
        }
    }
}

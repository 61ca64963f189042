//! `midwire selftest`: each of its lines holds, and each can fail.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "helpers of tests stand outside the test functions"
)]

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

const MIDWIRE: &str = env!("CARGO_BIN_EXE_midwire");

/// How long something may take to come about.
const LIMIT: Duration = Duration::from_secs(20);

/// The self-test in a folder of its own, without a home and without anything else that is set.
fn selftest(arguments: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(MIDWIRE);
    command.arg("selftest").args(arguments).env_clear().env("TMPDIR", folder);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs it to its end; nothing of it is left then.
fn run(arguments: &[&str]) -> (Output, Value) {
    let folder = TempDir::new().unwrap();
    let done = selftest(&[arguments, &["--json"]].concat(), folder.path()).output().unwrap();
    assert_nothing_is_left(folder.path());
    let told = serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{done:?}"));
    (done, told)
}

/// No file in the folder, and no process that was started with it.
fn assert_nothing_is_left(folder: &Path) {
    let mark = format!("TMPDIR={}", folder.display()).into_bytes();
    let is_ours = |environment: Vec<u8>| environment.split(|byte| *byte == 0).any(|one| one == mark);
    let begun = Instant::now();
    loop {
        let files = std::fs::read_dir(folder).unwrap().count();
        // Where there is no such folder, files alone must tell.
        let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let processes = all
            .filter_map(|entry| std::fs::read(entry.path().join("environ")).ok())
            .filter(|one| is_ours(one.clone()));
        let left = (files, processes.count());
        if left == (0, 0) {
            return;
        }
        assert!(begun.elapsed() < LIMIT, "{left:?} files and processes are left");
        std::thread::yield_now();
    }
}

/// The statement holds, and with each of these faults it does not.
fn check(number: u8, faults: &[&str]) {
    let number = number.to_string();
    let (done, told) = run(&[&number]);
    assert_eq!((done.status.code(), &told["passed"]), (Some(0), &Value::Bool(true)), "{told:#}");
    for fault in faults {
        let (done, told) = run(&[&number, "--fault", fault]);
        let lines = told["statements"].as_array().unwrap();
        assert_eq!((lines.len(), lines[0]["number"].to_string()), (1, number.clone()));
        assert_eq!(
            (done.status.code(), &lines[0]["passed"]),
            (Some(1), &Value::Bool(false)),
            "{fault}: {told:#}"
        );
        let evidence = told.to_string();
        // It fails by what was seen, and not for want of a scene.
        assert!(
            !evidence.contains("could not be played") && !evidence.contains("did not end within"),
            "{fault}: {told:#}"
        );
    }
}

/// One test for each statement.
macro_rules! statements {
    ($($number:literal $name:ident $faults:expr;)*) => {
        $(#[test]
        fn $name() {
            check($number, &$faults);
        })*
    };
}

statements! {
    1 nothing_answers_a_cancel_on_stdio ["answers_notifications"];
    2 a_cancel_over_http_posts_nothing ["posts_cancel"];
    3 a_cancel_that_is_first_suppresses_the_answer ["late_answer", "works_on"];
    4 an_answer_that_is_first_is_kept ["answers_twice", "drop_response_after_commit"];
    5 progress_moves_the_idle_clock_only ["no_maximum"];
    6 a_new_id_executes_again ["reuses_id"];
    7 one_key_under_a_race_executes_once ["check_then_act", "no_key_support"];
    8 a_reopened_ledger_keeps_the_receipt ["memory_ledger"];
    9 a_changed_copy_harms_nobody ["alias_results"];
    10 a_buffer_is_bounded_and_keeps_the_answer ["unbounded"];
    11 a_reconnect_is_new_and_reads_again ["careless_reconnect", "resumes"];
    12 an_acknowledged_cancel_leaves_the_task_in_its_course ["finishes_anyway"];
}

#[test]
fn twelve_lines_are_printed_and_all_of_them_hold() {
    let folder = TempDir::new().unwrap();
    let done = selftest(&[], folder.path()).output().unwrap();
    let text = String::from_utf8(done.stdout.clone()).unwrap();
    assert_eq!((done.status.code(), text.lines().count()), (Some(0), 12), "{done:?}");
    for (line, number) in text.lines().zip(1..) {
        assert!(line.starts_with(&format!("passed {number:>2}  ")), "{line}");
    }
    assert!(done.stderr.is_empty(), "{done:?}");
    assert_nothing_is_left(folder.path());
}

#[test]
fn recordings_are_kept_where_that_is_wanted() {
    let keep = TempDir::new().unwrap();
    let folder = keep.path().join("made");
    run(&["2", "4", "--keep", folder.to_str().unwrap()]);
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .map(|name| name.rsplit_once('-').unwrap().0.to_owned())
        .collect();
    names.sort();
    assert_eq!(names, ["2-http", "4-http", "4-stdio"]);
}

#[test]
fn a_self_test_that_is_ended_leaves_nothing_behind() {
    for signal in [Signal::INT, Signal::TERM] {
        let folder = TempDir::new().unwrap();
        let mut child: Child = selftest(&[], folder.path()).spawn().unwrap();
        let begun = Instant::now();
        while std::fs::read_dir(folder.path()).unwrap().count() == 0 {
            assert!(begun.elapsed() < LIMIT, "it does not begin");
            std::thread::yield_now();
        }
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(2));
        assert_nothing_is_left(folder.path());
    }
}

#[test]
fn what_is_no_statement_is_refused() {
    let folder = TempDir::new().unwrap();
    for arguments in [&["0"][..], &["13"], &["--fault", "no such"]] {
        assert_eq!(
            selftest(arguments, folder.path()).output().unwrap().status.code(),
            Some(2),
            "{arguments:?}"
        );
    }
}

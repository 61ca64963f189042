//! Recipes and orders end to end: the reference peers with a tap between them, all as processes.
#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside the test functions")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};

const MIDWIRE: &str = env!("CARGO_BIN_EXE_midwire");

/// Tries of something that comes true when another process is ready; each starts a process itself.
const TRIES: usize = 400;

fn midwire(state: &Path) -> Command {
    let mut command = Command::new(MIDWIRE);
    command.env("MIDWIRE_STATE_DIR", state);
    command
}

fn plan(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("plans").join(name)
}

/// One call through a stdio tap with this plan; what the client printed, and the recording.
fn call(state: &Path, name: &str, seed: &str, args: &[&str]) -> (Output, PathBuf) {
    let recording = state.join(format!("{name}-{seed}-{}.mw.jsonl", args.len()));
    let _ = std::fs::remove_file(&recording);
    let mut client = midwire(state);
    client.arg("call").args(args).args(["--timeout", "15000", "--", MIDWIRE, "stdio", "--telemetry"]);
    client.arg("--faults").arg(plan(name)).args(["--seed", seed, "--record"]).arg(&recording);
    client.args(["--", MIDWIRE, "serve", "stdio", "--telemetry", "--ledger", "memory"]);
    (client.output().unwrap(), recording)
}

fn check(state: &Path, name: &str, recording: &Path) -> Output {
    let mut check = midwire(state);
    check.args(["check", "--format", "json", "--faults"]).arg(plan(name)).arg(recording);
    check.output().unwrap()
}

/// What midwire did, in the order in which it did it: what, to what, by which rule.
fn injected(recording: &Path) -> Vec<(String, String, String)> {
    let text = std::fs::read_to_string(recording).unwrap();
    let events = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let of = |event: &Value, name: &str| event[name].as_str().unwrap_or_default().to_owned();
    events
        .filter(|event| event["event"] == "inject")
        .map(|event| (of(&event, "what"), of(&event, "target"), of(&event, "cause")))
        .collect()
}

/// A plan, the call that it meets, what the client says where it fails, and what is done to it.
type Played<'a> = (&'a str, &'a [&'a str], Option<&'a str>, &'a [&'a str]);

#[test]
fn the_plans_hold_for_the_reference_peers() {
    let state = tempfile::tempdir().unwrap();
    let charge = ["charge_account", "--arg", "account=a", "--arg", "cents=5", "--arg", "idempotency_key=k1"];
    let cases: [Played<'_>; 3] = [
        ("impatient-client.toml", &["slow"], Some("cancelled by midwire"), &["cancel", "answer"]),
        ("bad-proxy.toml", &["echo", "--arg", "text=hi"], None, &["slice", "delay"]),
        ("dying-server.toml", &charge, Some("lost"), &["disconnect"]),
    ];
    for (name, args, says, effects) in cases {
        let (ran, recording) = call(state.path(), name, "7", args);
        let said = String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned();
        assert_eq!(ran.status.success(), says.is_none(), "{name}: {said}");
        assert!(says.is_none_or(|words| said.contains(words)), "{name}: {said}");
        let done = injected(&recording);
        for effect in effects {
            assert!(done.iter().any(|(what, ..)| what == effect), "{name}: no {effect} in {done:?}");
        }
        let checked = check(state.path(), name, &recording);
        let report = String::from_utf8_lossy(&checked.stdout).into_owned();
        assert_eq!(checked.status.code(), Some(0), "{name}: {report}");
        let report: Value = serde_json::from_str(&report).unwrap();
        let expectations = report["expectations"].as_array().unwrap();
        assert!(!expectations.is_empty() && expectations.iter().all(|one| one["held"] == true), "{report}");
    }
}

#[test]
fn a_plan_that_was_not_played_fails_its_check() {
    let state = tempfile::tempdir().unwrap();
    let (_, recording) = call(state.path(), "bad-proxy.toml", "7", &["echo", "--arg", "text=hi"]);
    let checked = check(state.path(), "dying-server.toml", &recording);
    let report: Value = serde_json::from_slice(&checked.stdout).unwrap();
    assert_eq!(checked.status.code(), Some(1), "{report}");
    assert_eq!(report["expectations"][1]["why"], "the fault was never done");
}

#[test]
fn the_same_seed_does_the_same_and_another_one_does_not() {
    let state = tempfile::tempdir().unwrap();
    let run = |seed: &str, args: &[&str]| {
        let (_, recording) = call(state.path(), "bad-proxy.toml", seed, args);
        injected(&recording)
    };
    let (one, two) = (["echo", "--arg", "text=hi"], ["echo", "--arg", "text=hi", "--progress"]);
    let first = run("7", &one);
    assert!(!first.is_empty());
    assert_eq!(first, run("7", &one));
    assert_ne!(first, run("8", &one));
    assert!(!run("7", &two).is_empty());
}

/// A running tap with the reference server behind it; its client is the test.
struct Tap(Child);

impl Drop for Tap {
    fn drop(&mut self) {
        // Its client leaves, so it ends by itself.
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

#[test]
fn orders_reach_a_running_tap_and_each_gets_an_answer() {
    let state = tempfile::tempdir().unwrap();
    let ctl = |words: &[&str]| midwire(state.path()).arg("ctl").args(words).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let early = ctl(&["-", "status"]);
    assert_eq!(early.status.code(), Some(2));
    assert!(text(&early.stderr).contains("no tap is running"), "{}", text(&early.stderr));
    let mut tap = midwire(state.path());
    tap.args(["stdio", "--label", "mine", "--record", "off", "--", MIDWIRE, "serve", "stdio", "--ledger"]);
    tap.arg("memory").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut tap = Tap(tap.spawn().unwrap());
    let ready = (0..TRIES).any(|_| ctl(&["mine", "status"]).status.success());
    assert!(ready, "the tap takes no orders");
    let armed = ctl(&["-", "hold", "on=kind:request method:tools/call", "name=mine"]);
    assert_eq!(text(&armed.stdout), "rule 1 is armed\n", "{}", text(&armed.stderr));
    let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let request = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"hi"}},"_meta":{meta}}}}}"#
    );
    writeln!(tap.0.stdin.as_mut().unwrap(), "{request}").unwrap();
    let held = || -> Option<Value> {
        let status: Value = serde_json::from_slice(&ctl(&["mine", "--json", "status"]).stdout).unwrap();
        status["status"]["held"].get(0).cloned()
    };
    let held = (0..TRIES).find_map(|_| held()).unwrap();
    assert_eq!((&held["number"], &held["text"]), (&json!(1), &json!(request)));
    let answered = ctl(&["mine", "answer", "1", "error=-32001", "message=not now"]);
    assert_eq!(answered.status.code(), Some(0), "{}", text(&answered.stderr));
    let mut line = String::new();
    BufReader::new(tap.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let line: Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&line["id"], &line["error"]["message"]), (&json!(1), &json!("not now")));
    let cases: [(&[&str], i32, &str); 5] = [
        (&["mine", "drop", "9"], 1, "9"),
        (&["mine", "dely", "ms=3"], 2, "column 1: no verb `dely`"),
        (&["mine", "delay", "on=id:(", "ms=3"], 2, "column 7: `on`: filter"),
        (&["nobody", "status"], 2, "no running tap is called `nobody`"),
        (&["mine"], 2, "say which tap and what it is to do"),
    ];
    for (words, code, says) in cases {
        let said = ctl(words);
        assert_eq!(said.status.code(), Some(code), "{words:?}");
        assert!(text(&said.stderr).contains(says), "{words:?}: {}", text(&said.stderr));
    }
    drop(tap);
    assert_eq!(ctl(&["mine", "status"]).status.code(), Some(2));
}

#[test]
fn a_bad_recipe_starts_nothing() {
    let state = tempfile::tempdir().unwrap();
    let recipe = state.path().join("bad.toml");
    std::fs::write(&recipe, "seed = 1\n\n[[fault]]\ndo = 'delay'\nmss = 3\n").unwrap();
    for words in [&["faults"][..], &["stdio", "--record", "off", "--faults"][..]] {
        let mut command = midwire(state.path());
        command.args(words).arg(&recipe);
        if words.len() > 1 {
            command.args(["--", MIDWIRE, "serve", "stdio"]);
        }
        let ran = command.stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(ran.status.code(), Some(2), "{said}");
        assert!(said.contains("bad.toml:5:7: `delay` takes no `mss`; it takes ms, jitter, on"), "{said}");
    }
}

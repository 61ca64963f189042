//! Recordings with known answers, folded and judged: what must be found, what must not be, and
//! clean ones left in peace. They lie beside the checkout; where they do not, this test says so.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests stand outside the test functions; the score is printed"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use midwire::model::{Model, RowKind};
use midwire::rules::{Blame, Finding, Judge, Severity};
use midwire::trace::Recording;
use serde_json::Value;

/// What a rule of ours says in the words of the cases.
const HINTS: &[(&str, &[&str])] = &[
    ("RPC-04", &["id-null"]),
    ("RPC-05", &["id-in-flight-twice"]),
    ("RPC-06", &["id-in-flight-twice"]),
    ("RPC-08", &["id-never-issued"]),
    ("RPC-09", &["id-type-changed"]),
    ("RPC-10", &["duplicate-reply"]),
    ("RPC-22", &["batch-not-in-era"]),
    ("RPC-24", &["server-request-in-era"]),
    ("RPC-26", &["bad-utf8"]),
    ("RPC-29", &["number-precision", "id-precision"]),
    ("VER-04", &["version-not-negotiated"]),
    ("VER-18", &["version-not-negotiated"]),
    ("STD-01", &["stdout-noise"]),
    ("STD-02", &["stdin-noise"]),
    ("STD-03", &["embedded-newline"]),
    ("STD-06", &["torn-line"]),
    ("STD-08", &["connection-lost-with-pending", "server-exit"]),
    ("STD-09", &["eof-ignored"]),
    ("STD-11", &["connection-lost-with-pending"]),
    ("STD-13", &["header-framing"]),
    ("SSE-01", &["sse-bad-json"]),
    ("SSE-03", &["message-on-foreign-stream"]),
    ("SSE-06", &["reply-lost"]),
    ("SSE-10", &["sse-unterminated"]),
    ("HTTP-04", &["header-body-mismatch"]),
    ("HTTP-05", &["header-body-mismatch"]),
    ("HTTP-07", &["header-body-mismatch"]),
    ("HTTP-16", &["notification-status"]),
    ("HTTP-19", &["get-wrong-answer"]),
    ("HTTP-20", &["resume-unsupported"]),
    ("HTTP-27", &["header-body-mismatch"]),
    ("AUT-02", &["auth-header-missing"]),
    ("AUT-06", &["auth-token-raced"]),
    ("CAN-01", &["cancel-unknown-id"]),
    ("CAN-02", &["id-type-changed"]),
    ("CAN-04", &["race"]),
    ("CAN-05", &["reply-after-cancel"]),
    ("CAN-06", &["cancel-ignored"]),
    ("CAN-07", &["cancel-not-allowed"]),
    ("CAN-10", &["cancel-wrong-channel"]),
    ("CAN-13", &["cancel-not-allowed"]),
    ("CAN-14", &["task-cancel-wrong-way"]),
    ("CAN-15", &["task-cancel-wrong-way"]),
    ("LOG-04", &["message-on-foreign-stream"]),
    ("PRG-01", &["progress-unknown-token"]),
    ("PRG-02", &["progress-after-end"]),
    ("PRG-03", &["progress-not-increasing"]),
    ("PRG-04", &["message-on-foreign-stream"]),
    ("PRG-10", &["progress-unknown-token"]),
    ("PRG-11", &["progress-flood"]),
    ("SUB-02", &["listen-no-ack"]),
    ("SUB-05", &["listen-type-not-requested"]),
    ("SUB-11", &["message-on-foreign-stream"]),
    ("SUB-14", &["listen-abrupt-end"]),
    ("VER-14", &["get-before-initialize"]),
    ("LEG-03", &["session-lost-not-renewed"]),
    ("LEG-04", &["session-not-shared"]),
    ("LEG-05", &["version-header-not-agreed"]),
    ("LEG-08", &["get-wrong-answer", "stale-stream-409"]),
    ("LEG-12", &["resume-foreign-events"]),
    ("LEG-15", &["reply-lost"]),
    ("TOOL-03", &["tool-name-twice"]),
    ("REL-11", &["accepted-never-answered", "pending-at-close", "pending-without-deadline", "reply-lost"]),
    ("REL-18", &["unsafe-integer"]),
    ("TMO-01", &["pending-without-deadline"]),
    ("TMO-02", &["no-max-clock"]),
    ("TMO-04", &["progress-did-not-reset-clock"]),
    ("REL-01", &["possible-duplicate-effect"]),
    ("REL-08", &["timeout-idle-transport"]),
    ("REL-13", &["timeout-cut", "timeout-idle-transport"]),
    ("REL-14", &["progress-did-not-reset-clock"]),
    ("REL-15", &["no-progress-token"]),
    ("REL-16", &["timeout-very-short"]),
    ("REL-17", &["idle-cut"]),
    ("REL-19", &["gateway-error", "head-late"]),
    ("REL-20", &["reconnect-loop"]),
    ("REL-21", &["streams-not-released", "stream-left-open"]),
    ("REL-22", &["sse-compressed"]),
    ("REL-23", &["stderr-stall"]),
    ("SSE-13", &["sse-late-burst"]),
];

fn folder() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().map(|at| at.join("shared/cases"));
    beside.chain(std::env::var_os("MIDWIRE_CASES").map(PathBuf::from)).find(|path| path.is_dir())
}

/// A case: its recording judged, and the right answer.
struct Case {
    name: String,
    model: Model,
    findings: Vec<Finding>,
    answer: Value,
}

/// A recording, folded and judged to its end.
fn judged(path: &Path) -> (Model, Vec<Finding>) {
    let mut recording = Recording::open(path).unwrap();
    let (mut model, mut judge) = (Model::new(), Judge::new());
    let mut idx = 0;
    while let Some((event, _)) = recording.next().unwrap() {
        model.fold(&event, idx);
        judge.look(&model);
        idx += 1;
    }
    model.cut();
    judge.look(&model);
    (model, judge.findings().to_vec())
}

impl Case {
    fn open(path: &Path) -> Case {
        let (model, findings) = judged(path);
        let answer = fs::read_to_string(path.with_extension("expect.json")).unwrap();
        Case {
            name: path.file_stem().unwrap().to_string_lossy().into_owned(),
            findings,
            model,
            answer: serde_json::from_str(&answer).unwrap(),
        }
    }

    /// Ids that a finding is about, as JSON.
    fn ids(&self, finding: &Finding) -> BTreeSet<String> {
        let of_calls = finding.calls.iter().filter_map(|idx| self.model.call(*idx));
        of_calls.map(|call| call.id.to_string()).chain(finding.ids.iter().cloned()).collect()
    }

    /// Ids of everything found under a hint; `None`: nothing was.
    fn found(&self, hint: &str) -> Option<BTreeSet<String>> {
        let mine = self.findings.iter().filter(|finding| hints(self, finding).contains(&hint));
        mine.map(|finding| self.ids(finding)).reduce(|all, more| &all | &more)
    }

    fn list(&self, member: &str) -> Vec<(String, BTreeSet<String>)> {
        let items = self.answer[member].as_array().unwrap();
        let ids = |item: &Value| item["ids"].as_array().unwrap().iter().map(Value::to_string).collect();
        items.iter().map(|item| (item["rule_hint"].as_str().unwrap().to_owned(), ids(item))).collect()
    }
}

/// The words of the cases for a finding. An id used again is another thing while it is open, what
/// comes after a cancel is another thing when it is the answer, and so is a cancel of the other side's
/// request by whom it is.
fn hints(case: &Case, finding: &Finding) -> Vec<&'static str> {
    if finding.rule == "RPC-07" {
        let mut calls = finding.calls.iter().map(|idx| case.model.call(*idx).unwrap());
        let (again, before) = (calls.next().unwrap(), calls.next().unwrap());
        let in_flight = before.ended.is_none_or(|ended| ended > again.started);
        return vec![if in_flight { "id-in-flight-twice" } else { "id-reused-in-session" }];
    }
    match (finding.rule, finding.blame) {
        ("CAN-11" | "CAN-17", _) => {
            let rows = case.model.rows().iter().filter(|row| finding.evidence.contains(&row.n));
            let is_answer = rows.clone().any(|row| matches!(row.kind, RowKind::Result | RowKind::Error));
            return vec![if is_answer { "reply-after-cancel" } else { "cancel-ignored" }];
        }
        ("CAN-16", Blame::Client) => return vec!["cancel-unknown-id"],
        ("CAN-16", _) => return vec!["cancel-not-allowed"],
        _ => {}
    }
    HINTS.iter().filter(|(rule, _)| *rule == finding.rule).flat_map(|(_, hints)| *hints).copied().collect()
}

fn cases() -> Option<Vec<Case>> {
    let Some(folder) = folder() else {
        println!("no cases beside the checkout: nothing is checked");
        return None;
    };
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|ext| ext == "jsonl")).collect();
    paths.sort();
    assert!(paths.len() >= 54, "cases are missing");
    Some(paths.iter().map(|path| Case::open(path)).collect())
}

#[test]
fn clean_cases_are_left_in_peace_and_nothing_forbidden_is_found() {
    let mut wrong = Vec::new();
    for case in cases().unwrap_or_default() {
        for finding in &case.findings {
            let is_clean = case.answer["clean"] == true;
            if is_clean && finding.severity > Severity::Hint {
                wrong.push(format!("{} is clean: {finding:?}", case.name));
            }
        }
        for (hint, ids) in case.list("must_not_find") {
            if let Some(found) = case.found(&hint)
                && (ids.is_empty() || !found.is_disjoint(&ids))
            {
                wrong.push(format!("{}: {hint} {ids:?} must not be found: {:#?}", case.name, case.findings));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The recordings that ship with the source are of healthy peers: nothing above a hint.
#[test]
fn healthy_recordings_are_left_in_peace() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings");
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut seen = 0;
    for path in paths.filter(|path| path.to_string_lossy().ends_with(".mw.jsonl")) {
        let (model, findings) = judged(&path);
        let bad: Vec<_> = findings.iter().filter(|finding| finding.severity > Severity::Hint).collect();
        assert!(bad.is_empty(), "{}: {bad:#?}", path.display());
        assert!(!model.calls().is_empty(), "{}", path.display());
        seen += 1;
    }
    assert!(seen > 0);
}

#[test]
fn what_must_be_found_is_found_with_its_ids_and_the_right_blame() {
    let mut wrong = Vec::new();
    for case in cases().unwrap_or_default() {
        for item in case.answer["must_find"].as_array().unwrap() {
            let hint = item["rule_hint"].as_str().unwrap();
            let ids: BTreeSet<String> =
                item["ids"].as_array().unwrap().iter().map(Value::to_string).collect();
            let found = case.found(hint);
            if found.as_ref().is_none_or(|found| !found.is_superset(&ids)) {
                wrong.push(format!("{}: {hint} {ids:?}, found {found:?}", case.name));
            }
            let mine = case.findings.iter().filter(|finding| hints(&case, finding).contains(&hint));
            let blamed: BTreeSet<&str> = mine.map(|finding| finding.blame.as_str()).collect();
            let is_blamed = item["blame"].as_str().is_none_or(|blame| blamed.contains(blame));
            if found.is_some() && !is_blamed {
                wrong.push(format!(
                    "{}: {hint} is the fault of {}, not of {blamed:?}",
                    case.name, item["blame"]
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

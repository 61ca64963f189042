//! Reports of small recordings.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{json as as_json, *};
use crate::event::Dir::{C2s, S2c};
use crate::model::script::{Script, any_script};
use crate::rules::Judge;
use crate::time::Ms;

fn report(script: &Script, options: &Options) -> Report {
    let (mut model, mut judge) = (Model::new(), Judge::new());
    for (idx, event) in script.events.iter().enumerate() {
        model.fold(event, u32::try_from(idx).unwrap());
        judge.look(&model);
    }
    Report::new("a\u{1b}.jsonl".to_owned(), &model, &judge, options, Lines::default())
}

/// A call that is answered, in three events.
fn answered() -> Script {
    let mut script = Script::default();
    script.line(0, C2s, r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"t"}}"#);
    script.line(1, S2c, r#"{"jsonrpc":"2.0","id":"a","result":{"content":[]}}"#).end(2);
    script
}

/// A report about it with these findings.
fn report_of(findings: &[Finding], options: &Options) -> Report {
    let none =
        Selection { ignored: catalogue::entries().iter().map(|entry| entry.id).collect(), only: vec![] };
    let clean = report(&answered(), &Options { selection: none, ..Options::default() });
    Report { items: told(&answered().fold(), findings, options), ..clean }
}

fn checked(findings: &[Finding]) -> Checked {
    Checked { reports: vec![report_of(findings, &Options::default())], ..Checked::default() }
}

/// A stray answer, and what follows from it for the call.
fn findings() -> [Finding; 2] {
    let first = Finding {
        rule: "RPC-08",
        severity: Severity::Error,
        era: None,
        blame: Blame::Server,
        calls: Vec::new(),
        ids: vec!["0".to_owned()],
        evidence: vec![2],
        sentence: "an answer has the id 0".to_owned(),
        remedy: "Send it back.",
        cause: None,
    };
    let second = Finding {
        rule: "REL-11",
        severity: Severity::Warning,
        era: Some(Era::V2026_07_28),
        calls: vec![CallIdx(0)],
        ids: Vec::new(),
        evidence: (1..=9).collect(),
        sentence: "t was\u{1b} never answered".to_owned(),
        cause: Some(0),
        ..first.clone()
    };
    [first, second]
}

#[test]
fn text_hangs_consequences_under_their_cause() {
    let [rpc_08, rel_11] = ["RPC-08", "REL-11"].map(rule_text);
    let expected = format!(
        "\
error RPC-08 [era not known, server] an answer has the id 0.
  rule: {rpc_08}
  evidence: #2
  what to do: Send it back.

  warning REL-11 [2026-07-28, server] t was\u{fffd} never answered.
    rule: {rel_11}
    evidence: #1 #2 #3 #4 #5 #6 #7 #8 …
    what to do: Send it back.

a\u{fffd}.jsonl: 1 error, 1 warning, 0 hints in 3 events with 1 call
"
    );
    assert_eq!(text(&checked(&findings())), expected);
}

#[test]
fn a_clean_recording_is_one_line() {
    let checked = checked(&[]);
    assert_eq!(text(&checked), "a\u{fffd}.jsonl: clean, nothing found in 3 events with 1 call\n");
    assert!(!checked.fails());
}

#[test]
fn json_keeps_the_type_of_ids_and_links_causes_within_the_one_array() {
    let report = report_of(&findings(), &Options::default());
    let text = as_json(&Checked { reports: vec![report.clone(), report], ..Checked::default() });
    assert!(text.contains(r"a\u001b.jsonl"));
    let findings: Value = serde_json::from_str(&text).unwrap();
    let of = |member: &str| -> Vec<_> { (0..4).map(|at| findings[at][member].clone()).collect() };
    let (zero, a) = (json!([0]), json!(["a"]));
    assert_eq!(of("subjects"), [zero.clone(), a.clone(), zero, a]);
    assert_eq!(of("caused_by"), [json!(null), json!(0), json!(null), json!(2)]);
    assert!(findings[4].is_null());
}

#[test]
fn json_escapes_what_steers_a_terminal() {
    let hostile = "\u{7f}\u{9b}31m\u{202e}\n é";
    let text = super::json::written(&[hostile]);
    assert_eq!(text, "[\n  \"\\u007f\\u009b31m\\u202e\\n é\"\n]\n");
    assert_eq!(serde_json::from_str::<Vec<String>>(&text).unwrap(), [hostile]);
}

/// Rule, cause and whether it fails.
type Told = (&'static str, Option<usize>, bool);

#[test]
fn what_is_told_and_what_fails_is_the_users_choice() {
    let only = |only: &[&'static str], ignored: &[&'static str]| Selection {
        only: only.to_vec(),
        ignored: ignored.to_vec(),
    };
    let fail = |least, rules: &[&'static str]| FailOn { least, rules: rules.to_vec() };
    let default = FailOn::default;
    let cases: [(Selection, FailOn, &[Told]); 7] = [
        (only(&[], &[]), default(), &[("RPC-08", None, true), ("REL-11", Some(0), true)]),
        (only(&[], &["RPC-08"]), default(), &[("REL-11", None, true)]),
        (only(&["RPC-08"], &[]), default(), &[("RPC-08", None, true)]),
        (only(&["RPC-08"], &["RPC-08"]), default(), &[]),
        (
            only(&[], &[]),
            fail(Some(Severity::Error), &[]),
            &[("RPC-08", None, true), ("REL-11", Some(0), false)],
        ),
        (only(&[], &[]), fail(None, &["REL-11"]), &[("RPC-08", None, false), ("REL-11", Some(0), true)]),
        (only(&[], &[]), fail(None, &[]), &[("RPC-08", None, false), ("REL-11", Some(0), false)]),
    ];
    for (selection, fail_on, expected) in cases {
        let options = Options { selection, fail_on, ..Options::default() };
        let report = report_of(&findings(), &options);
        let told: Vec<Told> =
            report.items.iter().map(|item| (item.rule, item.caused_by, item.fails)).collect();
        assert_eq!(told, expected, "{options:?}");
        assert_eq!(report.fails(), expected.iter().any(|(.., fails)| *fails));
    }
}

/// Depth and number of each finding.
type Depths = &'static [(usize, u64)];

#[test]
fn causes_stand_before_what_follows_whatever_the_order() {
    let mut report = report_of(&findings(), &Options::default());
    let item = report.items[0].clone();
    let cases: [(&[Option<usize>], Depths); 5] = [
        (&[None, Some(0), Some(1)], &[(0, 0), (1, 1), (2, 2)]),
        (&[Some(2), None, Some(1)], &[(0, 1), (1, 2), (2, 0)]),
        (&[None, None, Some(0)], &[(0, 0), (1, 2), (0, 1)]),
        (&[Some(9), Some(0), None], &[(0, 2), (0, 0), (1, 1)]),
        (&[Some(1), Some(0), Some(2)], &[(0, 0), (1, 1), (0, 2)]),
    ];
    for (causes, expected) in cases {
        let numbered = (0..).zip(causes);
        let with =
            |(n, cause): (u64, &Option<usize>)| Item { evidence: vec![n], caused_by: *cause, ..item.clone() };
        report.items = numbered.map(with).collect();
        let tree: Vec<_> = report.tree().iter().map(|(depth, item)| (*depth, item.evidence[0])).collect();
        assert_eq!(tree, expected, "{causes:?}");
    }
}

/// Three calls: 0–5000, 100–900 and 100–unanswered, and a subscription.
fn busy() -> Script {
    let mut script = Script::default();
    let call =
        |id: u32| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t"}}}}"#);
    let answer = |id: u32| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
    script.line(0, C2s, r#"{"jsonrpc":"2.0","id":"s","method":"subscriptions/listen","params":{}}"#);
    script.line(0, C2s, &call(1)).line(100, C2s, &call(2)).line(100, C2s, &call(3));
    script.line(900, S2c, &answer(2)).line(5000, S2c, &answer(1)).end(9000);
    script
}

/// Ids, event numbers and message.
type Exceeds = (&'static [&'static str], &'static [u64], &'static str);

#[test]
fn what_exceeds_a_budget_is_told_with_its_calls_and_events() {
    let budget = |ms: Option<u64>, in_flight| Budget { duration: ms.map(Ms), in_flight };
    let cases: [(Budget, &[Exceeds]); 7] = [
        (budget(None, None), &[]),
        (budget(Some(8900), Some(3)), &[]),
        (
            budget(Some(8899), None),
            &[(&["3"], &[4], "tools/call t (id 3) was still open after 8900 ms; the budget is 8899 ms")],
        ),
        (
            budget(Some(4999), None),
            &[
                (&["1"], &[2, 6], "tools/call t (id 1) took 5000 ms; the budget is 4999 ms"),
                (&["3"], &[4], "tools/call t (id 3) was still open after 8900 ms; the budget is 4999 ms"),
            ],
        ),
        (
            budget(None, Some(2)),
            &[(&["1", "2", "3"], &[2, 3, 4], "3 calls were open at once; the budget is 2")],
        ),
        (
            budget(None, Some(1)),
            &[(&["1", "2", "3"], &[2, 3, 4], "3 calls were open at once; the budget is 1")],
        ),
        (
            budget(None, Some(0)),
            &[(&["1", "2", "3"], &[2, 3, 4], "3 calls were open at once; the budget is 0")],
        ),
    ];
    for (budget, expected) in cases {
        let selection = Selection { only: vec!["CAN-05"], ignored: Vec::new() };
        let report = report(&busy(), &Options { selection, budget, ..Options::default() });
        let told: Vec<_> = report
            .items
            .iter()
            .map(|item| (item.subjects.clone(), item.evidence.clone(), item.message.as_str()))
            .collect();
        let expected: Vec<_> = expected
            .iter()
            .map(|(ids, events, text)| {
                (ids.iter().map(ToString::to_string).collect(), events.to_vec(), *text)
            })
            .collect();
        assert_eq!(told, expected, "{budget:?}");
        assert_eq!(report.fails(), !expected.is_empty());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever was recorded, and whatever text a message brings in: each form stays what it is.
    #[test]
    fn every_form_stays_readable(script in any_script(), foreign in any::<String>(), in_flight in 0_usize..4) {
        let budget = Budget { duration: Some(Ms(500)), in_flight: Some(in_flight) };
        let options = Options { budget, undecided: true, ..Options::default() };
        let mut report = report(&script, &options);
        report.trace.clone_from(&foreign);
        for item in &mut report.items {
            item.message.push_str(&foreign);
        }
        let (reports, unread) = (vec![report], vec![Unread { trace: foreign.clone(), reason: foreign.clone() }]);
        let told = reports[0].items.len();
        let mut checked = Checked { reports, unread, tells_undecided: false };
        let findings: Vec<Value> = serde_json::from_str(&as_json(&checked)).unwrap();
        prop_assert_eq!(findings.len(), told);
        prop_assert!(findings.iter().all(|finding| finding["trace"] == foreign));
        checked.tells_undecided = true;
        let (xml, log, comment) = (junit(&checked), sarif(&checked, budget), markdown(&checked));
        let log: Value = serde_json::from_str(&log).unwrap();
        let fails = |result: &&Value| result["kind"] == "fail";
        prop_assert_eq!(log["runs"][0]["results"].as_array().unwrap().iter().filter(fails).count(), told);
        let document = roxmltree::Document::parse(&xml).unwrap();
        prop_assert_eq!(document.root_element().children().filter(roxmltree::Node::is_element).count(), 2);
        let rows = comment.lines().filter(|line| line.starts_with('|'));
        prop_assert!(rows.clone().all(|row| row.matches('|').count() == 7));
        prop_assert_eq!(rows.count(), if told == 0 { 0 } else { told + 2 });
        let steers = |c: char| c != '\n' && super::harmless::steers(c);
        for form in [text(&checked), as_json(&checked), xml, comment] {
            prop_assert!(!form.contains(steers));
        }
    }
}

#[test]
fn expectations_are_told_in_every_form() {
    let mut report = report_of(&[], &Options::default());
    let expected = |words: &str, why: Option<&str>, evidence: &[u64]| Expected {
        words: words.to_owned(),
        is_held: why.is_none(),
        why: why.map(str::to_owned),
        evidence: evidence.to_vec(),
    };
    report.expect(expected("the first", None, &[3, 1, 1]));
    assert!(!report.fails());
    report.expect(expected("the <second>", Some("it was not so"), &[2]));
    assert!(report.fails());
    let checked = Checked { reports: vec![report], ..Checked::default() };
    let text = text(&checked);
    assert!(text.contains("held: the first (#1 #3)"), "{text}");
    assert!(
        text.contains("error expectation [era not known, unknown] the <second>; but it was not so."),
        "{text}"
    );
    let told: Value = serde_json::from_str(&as_json(&checked)).unwrap();
    let (first, second) = (&told["expectations"][0], &told["expectations"][1]);
    assert_eq!((&first["held"], &first["evidence"]), (&json!(true), &json!([1, 3])));
    assert_eq!((&second["held"], &second["why"]), (&json!(false), &json!("it was not so")));
    assert_eq!(told["findings"][0]["rule"], "expectation");
    let xml = junit(&checked);
    let document = roxmltree::Document::parse(&xml).unwrap();
    let root = document.root_element();
    assert_eq!((root.attribute("tests"), root.attribute("failures")), (Some("3"), Some("1")), "{xml}");
    let failed = document.descendants().find(|node| node.has_tag_name("failure")).unwrap();
    let case = failed.parent().unwrap().attribute("name");
    assert_eq!(case, Some("expectation the <second>"));
    let comment = markdown(&checked);
    assert!(comment.contains("- ✅ the first"), "{comment}");
    assert!(comment.contains("- ❌ the") && comment.contains("it was not so"), "{comment}");
    let log: Value = serde_json::from_str(&sarif(&checked, Budget::default())).unwrap();
    assert_eq!(log["runs"][0]["results"][0]["ruleId"], "expectation");
}

//! Rules on small recordings: each fires where it should, and stays silent where nothing is wrong
//! or the era is another.

use proptest::prelude::*;

use crate::event::Dir::{C2s, S2c};
use crate::event::{Dir, What};
use crate::model::Model;
use crate::model::script::{Script, any_script};
use crate::rules::findings::EVIDENCE_LIMIT;
use crate::rules::{Finding, Judge, Severity, catalogue};

fn judge(script: &Script) -> Vec<Finding> {
    let mut model = Model::new();
    let mut judge = Judge::new();
    for (idx, event) in script.events.iter().enumerate() {
        model.fold(event, u32::try_from(idx).unwrap());
        judge.look(&model);
    }
    judge.findings().to_vec()
}

/// One line of a pipe: when, which way, what.
type Line = (u64, Dir, &'static str);

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"client","version":"1"}}"#;

/// Results with nothing in them, of the legacy eras and of the modern one.
const OLD_DONE: &str = r#"{"content":[]}"#;
const DONE: &str = r#"{"resultType":"complete","content":[],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"server","version":"1"}}}"#;

/// Short words for lines: `call 1`, `ok 1`, `cancel 1`, `progress 1 5`; anything else is the line.
fn line(text: &str, is_modern: bool) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    let meta = |more: &str| match (is_modern, more) {
        (true, "") => format!(",{META}"),
        (true, more) => format!(",{}", META.replacen(":{", &format!(":{{{more},"), 1)),
        (false, "") => String::new(),
        (false, more) => format!(r#","_meta":{{{more}}}"#),
    };
    match words.as_slice() {
        ["call", id] => format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t"{}}}}}"#,
            meta(&format!(r#""progressToken":{id}"#))
        ),
        ["listen", id] => format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"subscriptions/listen","params":{{"notifications":{{"toolsListChanged":true}}{}}}}}"#,
            meta("")
        ),
        ["tagged", id, method] => format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/{method}","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}}}"#
        ),
        ["ok", id] => {
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{}}}"#, if is_modern { DONE } else { OLD_DONE })
        }
        ["cancel", id] => {
            format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":"user"}}}}"#
            )
        }
        ["progress", id, value] => format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{id},"progress":{value}}}}}"#
        ),
        _ => text.to_owned(),
    }
}

/// Rules that fire on these lines, in a modern or in a legacy (2025-11-25) process.
fn fires(lines: &[Line], is_modern: bool) -> Vec<&'static str> {
    let mut script = Script::default();
    if !is_modern {
        script.line(0, C2s, r#"{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}"#);
        script.line(0, S2c, r#"{"jsonrpc":"2.0","id":"i","result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"server","version":"1"}}}"#);
        script.line(0, C2s, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    }
    for (ms, dir, text) in lines {
        match *text {
            "EOF" => script.client_closed(*ms, None),
            "EXIT" => script.server_closed(*ms, None),
            "END" => script.end(*ms),
            text => script.line(*ms, *dir, &line(text, is_modern)),
        };
    }
    judge(&script).iter().map(|finding| finding.rule).collect()
}

#[test]
fn each_rule_fires_in_its_era_and_only_there() {
    // Lines, what fires in the modern era, what fires in a legacy one.
    type Row = (&'static [Line], &'static [&'static str], &'static [&'static str]);
    let cases: &[Row] = &[
        (&[(1, C2s, "call 1"), (2, S2c, "ok 1")], &[], &[]),
        // Subscriptions.
        (&[(1, C2s, "listen 1"), (2, S2c, "tagged 1 tools/list_changed")], &["SUB-02"], &["RPC-28"]),
        (
            &[(1, C2s, "listen 1"), (2, S2c, "tagged 2 tools/list_changed")],
            &["SUB-10"],
            &["RPC-28", "SUB-10"],
        ),
        // Ends.
        (&[(1, C2s, "call 1"), (2, S2c, "EXIT")], &["STD-08"], &["STD-08"]),
        (&[(1, C2s, "call 1"), (2, C2s, "EOF"), (3, S2c, "EXIT")], &["STD-11"], &["STD-11"]),
        (&[(1, C2s, "call 1"), (2, S2c, "ok 1"), (3, C2s, "EOF"), (4, S2c, "EXIT")], &[], &[]),
        (&[(1, C2s, "call 1"), (40_000, C2s, "EOF"), (40_001, S2c, "EXIT")], &["REL-11"], &["REL-11"]),
        (
            &[(1, C2s, "call 1"), (2, S2c, "ok 1"), (3, C2s, "EOF"), (9_000, C2s, "END")],
            &["STD-09"],
            &["STD-09"],
        ),
        (&[(1, C2s, "call 1"), (9_000, C2s, "END")], &[], &[]),
    ];
    for (lines, modern, legacy) in cases {
        assert_eq!(fires(lines, true), *modern, "modern: {lines:?}");
        assert_eq!(fires(lines, false), *legacy, "legacy: {lines:?}");
    }
}

#[test]
fn what_repeats_is_one_finding() {
    let mut script = Script::default();
    for ms in 0..100 {
        script.line(ms, S2c, "debug text");
    }
    let findings = judge(&script);
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].sentence, "100 lines on stdout that are no message");
    assert_eq!(findings[0].evidence.len(), EVIDENCE_LIMIT);
    assert_eq!(findings[0].evidence[..3], [1, 2, 3]);
}

#[test]
fn what_follows_from_an_injection_is_nobodys_fault() {
    let mut script = Script::default();
    script.line(0, C2s, &line("call 1", true));
    script.push(
        1,
        Dir::Tap,
        None,
        What::Inject {
            what: "kill".into(),
            target: "server".into(),
            by: "viewer".into(),
            cause: None,
            sent: None,
        },
    );
    script.server_closed(2, None);
    assert_eq!(judge(&script), []);
}

#[test]
fn without_the_beginning_unknown_ids_are_hints() {
    let mut script = Script::default();
    script.line(0, S2c, &line("ok 7", true)).line(1, C2s, &line("cancel 8", true));
    for event in &mut script.events {
        event.n += 100;
    }
    let severities: Vec<_> = judge(&script).iter().map(|finding| (finding.rule, finding.severity)).collect();
    assert_eq!(severities, [("RPC-08", Severity::Hint), ("CAN-01", Severity::Hint)]);
}

#[test]
fn a_loss_hangs_under_the_answer_that_went_astray() {
    let mut script = Script::default();
    script.line(0, C2s, &line("call 1", true)).line(1, S2c, &line("ok 2", true));
    script.client_closed(40_000, None).server_closed(40_001, None);
    let findings = judge(&script);
    assert_eq!((findings[0].rule, findings[1].rule), ("RPC-08", "REL-11"));
    assert_eq!(findings[1].cause, Some(0));
}

proptest! {
    /// Whatever comes over the wire, a finding points to events that were seen, to calls that
    /// exist and to a cause before it; and what was found once is only added to, never taken back.
    #[test]
    fn any_order_of_events_gives_findings_that_can_be_looked_up(script in any_script()) {
        let (mut model, mut bench) = (Model::new(), Judge::new());
        for (idx, event) in script.events.iter().enumerate() {
            let before: Vec<_> = bench.findings().iter().map(|finding| finding.rule).collect();
            model.fold(event, u32::try_from(idx).unwrap());
            bench.look(&model);
            let rules: Vec<_> = bench.findings().iter().map(|finding| finding.rule).collect();
            prop_assert!(rules.starts_with(&before), "{before:?} became {rules:?}");
            for (position, finding) in bench.findings().iter().enumerate() {
                prop_assert!(catalogue::find(finding.rule).is_some(), "{finding:?}");
                prop_assert!(!finding.evidence.is_empty(), "{finding:?}");
                prop_assert!(finding.evidence.iter().all(|n| (1..=event.n).contains(n)), "{finding:?}");
                prop_assert!(finding.evidence.is_sorted(), "{finding:?}");
                prop_assert!(finding.calls.iter().all(|call| model.call(*call).is_some()), "{finding:?}");
                prop_assert!(finding.cause.is_none_or(|cause| cause < position), "{finding:?}");
                prop_assert!(!finding.sentence.is_empty() && !finding.remedy.is_empty(), "{finding:?}");
            }
        }
        prop_assert_eq!(bench.findings(), judge(&script), "judged twice");
    }
}

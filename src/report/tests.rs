//! Reports of a small recording.

use super::*;
use crate::event::Dir::{C2s, S2c};
use crate::model::script::Script;
use crate::rules::Judge;

fn judged(script: &Script) -> (Model, Vec<Finding>) {
    let (mut model, mut judge) = (Model::new(), Judge::new());
    for (idx, event) in script.events.iter().enumerate() {
        model.fold(event, u32::try_from(idx).unwrap());
        judge.look(&model);
    }
    let findings = judge.findings().to_vec();
    (model, findings)
}

/// A stray answer, and a call that is therefore never answered.
fn faulty() -> Script {
    let mut script = Script::default();
    script.line(0, C2s, r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"t"}}"#);
    script.line(1, S2c, r#"{"jsonrpc":"2.0","id":0,"result":{}}"#);
    script.client_closed(40_000, None).server_closed(40_001, None).end(40_002);
    script
}

#[test]
fn text_hangs_consequences_under_their_cause() {
    let (model, findings) = judged(&faulty());
    let judged = Judged { name: "a\u{1b}.jsonl", model: &model, findings: &findings };
    let expected = r#"error RPC-08 [era not known, server] an answer has the id 0, which no request of the other side had.
  rule: An answer belongs to a request that the other side sent.
  evidence: #2
  what to do: Send the id back exactly as it came.

  warning REL-11 [era not known, server] tools/call t (id "a") was never answered; the client closed after 40.0 s of silence.
    rule: Every request ends: answered, cancelled or closed.
    evidence: #1 #4
    what to do: See what the server was doing; give the client a limit and have it cancel.

a�.jsonl: 1 error, 1 warning, 0 hints in 5 events with 1 call
"#;
    assert_eq!(text(&judged), expected);
    let counts = [Severity::Error, Severity::Warning, Severity::Hint].map(|least| judged.at_least(least));
    assert_eq!(counts, [1, 2, 2]);
}

#[test]
fn a_clean_recording_is_one_line() {
    let mut script = Script::default();
    script.line(0, C2s, r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    script.line(1, S2c, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).end(2);
    let (model, findings) = judged(&script);
    let judged = Judged { name: "a", model: &model, findings: &findings };
    assert_eq!(text(&judged), "a: clean, nothing found in 3 events with 1 call\n");
}

#[test]
fn json_keeps_the_type_of_ids_and_links_causes() {
    let (model, findings) = judged(&faulty());
    let text = json(&[Judged { name: "a", model: &model, findings: &findings }]);
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let one = &value["recordings"][0];
    assert_eq!(value["midwire_check"], SCHEMA_VERSION);
    assert_eq!((&one["capture"], &one["complete"]), (&"ended".into(), &true.into()));
    assert_eq!(one["findings"][0]["ids"], serde_json::json!([0]));
    assert_eq!(one["findings"][1]["ids"], serde_json::json!(["a"]));
    assert_eq!(one["findings"][1]["cause"], 0);
    assert_eq!((&one["errors"], &one["warnings"], &one["hints"]), (&1.into(), &1.into(), &0.into()));
}

#[test]
fn every_member_of_the_json_is_documented() {
    let (model, findings) = judged(&faulty());
    let text = json(&[Judged { name: "a", model: &model, findings: &findings }]);
    let page = include_str!("../../docs/check-json.md");
    let members = text.lines().filter_map(|line| line.trim().strip_prefix('"')?.split_once("\":"));
    for (member, _) in members {
        assert!(page.contains(&format!("`{member}`")), "docs/check-json.md lacks {member}");
    }
}

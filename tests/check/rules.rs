//! `midwire rules`.

use std::process::{Command, Output};

use serde_json::Value;

const PAGE: &str = include_str!("../../docs/check.md");

fn rules(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_midwire")).arg("rules").args(args).output().unwrap()
}

/// Arguments, exit code, what is told and what is not.
type Case = (&'static [&'static str], i32, &'static [&'static str], &'static [&'static str]);

#[test]
fn words_pick_rules_and_an_id_explains_one() {
    let cases: [Case; 9] = [
        (&[], 0, &["RPC-01", "CAN-05", "REL-11", "rules; `midwire rules CAN-05`"], &[]),
        (&["CAN-"], 0, &["CAN-05", "CAN-06"], &["RPC-01"]),
        (&["Cancel", "stdio", "warning"], 0, &["CAN-05 ", "[modern]"], &["RPC-01", "CAN-13"]),
        (&["CAN-05"], 0, &["CAN-05  warning", "what to do", "specification 2026-07-28, basic/"], &["CAN-06"]),
        (&["prg-03"], 0, &["A trace that breaks it", "→ error: progress of", "One that does not"], &[]),
        (&["CAN-99"], 1, &["CAN-05"], &["RPC-01"]),
        (&["NO-01"], 1, &["`midwire rules` lists"], &[]),
        (&["no", "such", "wörds\u{1b}"], 1, &["no such wörds\u{fffd}"], &["\u{1b}"]),
        (&["--colour"], 2, &["--colour"], &[]),
    ];
    for (args, code, told, silent) in cases {
        let output = rules(args);
        assert_eq!(output.status.code(), Some(code), "{args:?}");
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(told.iter().all(|words| text.contains(words)), "{args:?}: {text}");
        assert!(!silent.iter().any(|words| text.contains(words)), "{args:?}: {text}");
    }
}

#[test]
fn json_has_every_member_that_the_page_names() {
    let page = PAGE.split("## The rules").nth(1).unwrap();
    let named: Vec<&str> =
        page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    let all: Value = serde_json::from_slice(&rules(&["--json"]).stdout).unwrap();
    let all = all.as_array().unwrap();
    assert!(all.len() > 50);
    for rule in all {
        let mut members: Vec<&str> = rule.as_object().unwrap().keys().map(String::as_str).collect();
        members.sort_by_key(|member| named.iter().position(|name| name == member));
        assert_eq!(members, named);
    }
    let one: Value = serde_json::from_slice(&rules(&["CAN-05", "--json"]).stdout).unwrap();
    assert_eq!((&one[0]["id"], one.as_array().unwrap().len()), (&"CAN-05".into(), 1));
    assert_eq!(String::from_utf8(rules(&["wörds\u{1b}", "--json"]).stdout).unwrap(), "[]\n");
}

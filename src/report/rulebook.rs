//! The rules themselves: a list, one rule explained, and the same as JSON.

use std::fmt::Write as _;

use serde::Serialize;

use super::json::written;
use super::plural;
use crate::event::Transport;
use crate::model::Model;
use crate::rules::Judge;
use crate::rules::catalogue::{Entry, Need};
use crate::rules::example::{self, Example};
use crate::spec::era::Era;

/// One line a rule: id, severity, transports, the rule in one sentence, and its eras where they are
/// not all.
#[must_use]
pub fn rule_list(entries: &[&Entry]) -> String {
    let mut out = String::new();
    for Entry { id, severity, transports, rule, eras, .. } in entries {
        let eras = if eras.is_all() { String::new() } else { format!(" [{eras}]") };
        let _ = writeln!(out, "{id:8} {:7}  {transports:5}  {rule}{eras}", severity.as_str());
    }
    let _ = writeln!(out, "\n{}; `midwire rules CAN-05` explains one", plural(entries.len(), "rule"));
    out
}

/// One rule explained: what it says, when it applies, what to do, and examples with what midwire
/// says about them.
#[must_use]
pub fn rule_page(entry: &Entry) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}  {}\n\n  {}\n", entry.id, entry.severity.as_str(), entry.rule);
    let needs: Vec<&str> = entry.needs.iter().map(|need| need.words()).collect();
    let facts = [
        ("what to do", entry.remedy),
        ("eras", &entry.eras.to_string()),
        ("transports", if entry.transports == "both" { "stdio, http" } else { entry.transports }),
        ("at fault", &entry.sender.replace(',', ", ")),
        ("needs", &needs.join("; ")),
        ("clause", &clause(entry.clause)),
        ("note", entry.note),
    ];
    for (name, fact) in facts.iter().filter(|(_, fact)| !fact.is_empty()) {
        let _ = writeln!(out, "  {name:11} {fact}");
    }
    let examples: Vec<&Example> = examples(entry).collect();
    for example in &examples {
        let what = if example.fires { "A trace that breaks it" } else { "One that does not" };
        let _ = writeln!(out, "\n{what} ({}, {}):\n", transport(example.transport), example.era.as_str());
        for line in &example.lines {
            let _ = writeln!(out, "    {line}");
        }
        for (severity, sentence) in said(example) {
            let _ = writeln!(out, "\n    → {severity}: {sentence}.");
        }
    }
    if examples.is_empty() {
        let is_out_of_sight = [Need::Never, Need::TwoTaps].iter().any(|need| entry.needs.contains(need));
        let why = if is_out_of_sight { ": one recording does not show it" } else { " yet" };
        let _ = writeln!(out, "\nThere is no example{why}.");
    } else {
        out.push_str(LEGEND);
    }
    out
}

/// How the lines of an example are read.
const LEGEND: &str = "
Times are in ms; > is from the client, < from the server, 1> and 1< belong to HTTP exchange 1. What every
message of its era has (jsonrpc, _meta, header fields, the handshake) is left out. Lines with | are a policy file.
";

/// The rules with everything that is known of them as one JSON array; `docs/check.md` says what each
/// member means.
#[must_use]
pub fn rules_json(entries: &[&Entry]) -> String {
    let rules: Vec<OneRule<'_>> = entries.iter().map(|entry| one_rule(entry)).collect();
    written(&rules)
}

#[derive(Serialize)]
struct OneRule<'a> {
    id: &'static str,
    severity: &'static str,
    eras: Vec<&'static str>,
    transports: Vec<&'static str>,
    sender: Vec<&'a str>,
    needs: Vec<&'static str>,
    clause: &'static str,
    rule: &'static str,
    remedy: &'static str,
    note: Option<&'static str>,
    examples: Vec<OneExample<'a>>,
}

#[derive(Serialize)]
struct OneExample<'a> {
    fires: bool,
    transport: &'static str,
    era: &'static str,
    lines: &'a [String],
}

fn one_rule(entry: &Entry) -> OneRule<'_> {
    let one_example = |example: &'static Example| OneExample {
        fires: example.fires,
        transport: transport(example.transport),
        era: example.era.as_str(),
        lines: &example.lines,
    };
    OneRule {
        id: entry.id,
        severity: entry.severity.as_str(),
        eras: entry.eras.iter().map(Era::as_str).collect(),
        transports: if entry.transports == "both" { vec!["stdio", "http"] } else { vec![entry.transports] },
        sender: entry.sender.split(',').collect(),
        needs: entry.needs.iter().map(|need| need.as_str()).collect(),
        clause: entry.clause,
        rule: entry.rule,
        remedy: entry.remedy,
        note: Some(entry.note).filter(|note| !note.is_empty()),
        examples: examples(entry).map(one_example).collect(),
    }
}

/// What breaks a rule first, then what does not.
fn examples(entry: &Entry) -> impl Iterator<Item = &'static Example> {
    let id = entry.id;
    let of = move |fires| example::all().iter().filter(move |one| one.rule == id && one.fires == fires);
    of(true).chain(of(false))
}

/// What midwire says about an example by its rule.
fn said(example: &Example) -> Vec<(&'static str, String)> {
    let (mut model, mut judge) = (Model::new(), Judge::with_policy(example.policy.clone()));
    model.set_grace(example.policy.limits.grace);
    for (event, idx) in example.events.iter().zip(0..) {
        model.fold(event, idx);
        judge.look(&model);
    }
    let findings = judge.findings().iter().filter(|finding| finding.rule == example.rule);
    findings.map(|finding| (finding.severity.as_str(), finding.sentence.clone())).collect()
}

fn transport(transport: Transport) -> &'static str {
    match transport {
        Transport::Stdio => "stdio",
        Transport::Http => "http",
    }
}

/// Where a rule is written, in words.
fn clause(clause: &str) -> String {
    match clause.split_once(':') {
        Some(("ours", section)) => format!("none, a rule of midwire's own: docs/semantics.md#{section}"),
        Some(("ext-tasks", page)) => format!("tasks extension, {page}"),
        Some((revision, page)) => format!("specification {revision}, {page}"),
        None => format!("specification {}, {clause}", Era::V2026_07_28.as_str()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::catalogue;

    #[test]
    fn every_rule_is_explained_and_its_example_is_judged() {
        for entry in catalogue::entries() {
            let page = rule_page(entry);
            let facts = [entry.id, entry.rule, entry.remedy, entry.note, &clause(entry.clause)];
            assert!(facts.iter().all(|fact| page.contains(fact)), "{page}");
            for need in &entry.needs {
                assert!(page.contains(need.words()), "{page}");
            }
            let fires = examples(entry).filter(|example| example.fires).count();
            assert!(page.matches("\n    → ").count() >= fires, "{page}");
            assert_eq!(page.matches("A trace that breaks it").count(), fires);
        }
    }

    #[test]
    fn a_clause_is_named_in_words() {
        let cases = [
            ("basic/index#messages", "specification 2026-07-28, basic/index#messages"),
            ("2025-03-26:basic/lifecycle#a", "specification 2025-03-26, basic/lifecycle#a"),
            ("ext-tasks:tasks#a", "tasks extension, tasks#a"),
            ("ours:a", "none, a rule of midwire's own: docs/semantics.md#a"),
        ];
        for (text, words) in cases {
            assert_eq!(clause(text), words);
        }
    }
}

//! The table of rules in `docs/rules.md` is made from the catalogue and the examples, and every rule
//! has what proves it: a trace that it fires on, one that it leaves in peace, and, where it belongs to
//! some eras only, another era in which the first one is silent.
#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside the test functions")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use midwire::rules::catalogue::{self, Entry, Need};
use midwire::rules::example::{self, Example};
use midwire::spec::era::Era;

/// Set it to write the page anew.
const WRITE: &str = "MIDWIRE_WRITE_DOCS";

fn examples() -> BTreeMap<&'static str, Vec<&'static Example>> {
    let mut by_rule: BTreeMap<&str, Vec<&Example>> = BTreeMap::new();
    for example in example::all() {
        by_rule.entry(example.rule.as_str()).or_default().push(example);
    }
    by_rule
}

/// Eras in which the firing examples of a rule are judged and must be silent.
fn other_eras(entry: &Entry) -> usize {
    Era::ALL.into_iter().filter(|era| !entry.eras.has(Some(*era))).count()
}

fn page() -> String {
    let examples = examples();
    let mut page = String::from(
        "# Rules\n\nEvery rule, made from the catalogue and its examples by `tests/coverage.rs`\n(`MIDWIRE_WRITE_DOCS=1 cargo test --test coverage` writes this page anew).\n`midwire rules ID` explains one with an example that fires and one that does not.\n\n",
    );
    let all = catalogue::entries();
    let two = all.iter().filter(|entry| entry.needs.contains(&Need::TwoTaps)).count();
    let never = all.iter().filter(|entry| entry.needs.contains(&Need::Never)).count();
    writeln!(
        page,
        "{} rules. {two} of them need recordings on both sides of an intermediary and are described only;\n{never} cannot be decided from traffic at all.\n",
        all.len()
    )
    .unwrap();
    page.push_str("| rule | severity | eras | transports | says | needs | fires | clean | other eras |\n");
    page.push_str("|---|---|---|---|---|---|---|---|---|\n");
    for entry in catalogue::entries() {
        let mine = examples.get(entry.id).map(Vec::as_slice).unwrap_or_default();
        let fires = mine.iter().filter(|example| example.fires).count();
        let needs: Vec<_> = entry.needs.iter().map(|need| need.as_str()).collect();
        writeln!(
            page,
            "| {} | {} | {} | {} | {} | {} | {fires} | {} | {} |",
            entry.id,
            entry.severity.as_str(),
            entry.eras,
            entry.transports,
            entry.rule.replace('|', "\\|"),
            needs.join(", "),
            mine.len() - fires,
            other_eras(entry),
        )
        .unwrap();
    }
    page.push_str("\n## Notes\n\nWhy a rule is decided more mildly than it reads, or cannot be decided.\n\n");
    for entry in catalogue::entries().iter().filter(|entry| !entry.note.is_empty()) {
        writeln!(page, "- **{}** {}", entry.id, entry.note).unwrap();
    }
    page
}

#[test]
fn the_page_of_rules_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/rules.md");
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&path, page()).unwrap();
    }
    let now = std::fs::read_to_string(path).unwrap_or_default();
    assert!(now == page(), "docs/rules.md is not what the catalogue says; {WRITE}=1 writes it anew");
}

#[test]
fn every_decidable_rule_is_proved_by_both_kinds_of_examples() {
    let examples = examples();
    let lacking: Vec<_> = catalogue::entries()
        .iter()
        .filter(|entry| !entry.needs.contains(&Need::Never) && !entry.needs.contains(&Need::TwoTaps))
        .filter(|entry| {
            let mine = examples.get(entry.id).map(Vec::as_slice).unwrap_or_default();
            !(mine.iter().any(|example| example.fires) && mine.iter().any(|example| !example.fires))
        })
        .map(|entry| entry.id)
        .collect();
    assert!(lacking.is_empty(), "no examples: {lacking:?}");
}

#[test]
fn a_rule_of_our_own_is_written_down() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/semantics.md");
    let page = std::fs::read_to_string(path).unwrap();
    let sections: Vec<_> = page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    let ours = catalogue::entries().iter().filter_map(|entry| entry.clause.strip_prefix("ours:"));
    let lost: Vec<_> = ours.filter(|section| !sections.contains(section)).collect();
    assert!(lost.is_empty(), "no such section in docs/semantics.md: {lost:?}");
}

/// Groups of rules, and how many each has at least.
const GROUPS: [(&str, usize); 30] = [
    ("RPC", 29),
    ("MET", 17),
    ("ICO", 1),
    ("VER", 21),
    ("STD", 13),
    ("HTTP", 31),
    ("SSE", 13),
    ("CAN", 21),
    ("TMO", 6),
    ("RTY", 2),
    ("PRG", 13),
    ("LOG", 9),
    ("SUB", 24),
    ("MRT", 16),
    ("ELI", 8),
    ("SAM", 5),
    ("ROO", 1),
    ("CCH", 10),
    ("PAG", 5),
    ("TOOL", 19),
    ("RES", 6),
    ("PMT", 3),
    ("CMP", 3),
    ("TSK", 26),
    ("TSL", 7),
    ("LEG", 21),
    ("AUT", 5),
    ("PRX", 7),
    ("FLW", 4),
    ("REL", 23),
];

#[test]
fn no_rule_has_gone_missing() {
    let missing: Vec<_> = GROUPS
        .iter()
        .flat_map(|(group, count)| (1..=*count).map(move |number| format!("{group}-{number:02}")))
        .filter(|id| catalogue::find(id).is_none())
        .collect();
    assert!(missing.is_empty(), "{} rules are missing: {missing:?}", missing.len());
}

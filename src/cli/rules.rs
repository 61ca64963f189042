//! `midwire rules`: the catalogue, or one rule explained.

use std::io::Write;

use super::args::RulesArgs;
use super::args::check::no_rule;
use super::{CLEAN, FINDINGS, say};
use crate::report;
use crate::rules::catalogue::{self, Entry};

/// Prints the rules that have all of the words; a single id is explained.
pub(super) fn rules(args: &RulesArgs) -> anyhow::Result<u8> {
    let exact = match args.words.as_slice() {
        [word] => catalogue::find(&word.to_ascii_uppercase()),
        _ => None,
    };
    let found: Vec<&Entry> = match exact {
        Some(entry) => vec![entry],
        None => catalogue::entries().iter().filter(|entry| has_all(entry, &args.words)).collect(),
    };
    let text = match exact {
        _ if args.json => report::rules_json(&found),
        Some(entry) => report::rule_page(entry),
        None if found.is_empty() => String::new(),
        None => report::rule_list(&found),
    };
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    if !found.is_empty() {
        return Ok(CLEAN);
    }
    say(&match args.words.as_slice() {
        [id] if id.contains(|c: char| c.is_ascii_digit()) => format!("{id}: {}", no_rule(id)),
        words => format!("no rule has all of: {}; `midwire rules` lists every one", words.join(" ")),
    });
    Ok(FINDINGS)
}

/// Whether each word stands somewhere in the rule, in letters of either case.
fn has_all(entry: &Entry, words: &[String]) -> bool {
    let Entry { id, severity, eras, transports, sender, clause, rule, remedy, note, .. } = entry;
    let transports = if *transports == "both" { "both stdio http" } else { transports };
    let severity = severity.as_str();
    let text = format!("{id} {severity} {eras} {transports} {sender} {clause} {rule} {remedy} {note}");
    let text = text.to_lowercase();
    words.iter().all(|word| text.contains(&word.to_lowercase()))
}

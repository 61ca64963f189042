//! One paragraph a finding, and a line that sums up.

use std::fmt::Write as _;

use super::Judged;
use crate::model::Capture;
use crate::rules::{Finding, Severity, catalogue};

/// Event numbers shown of one finding.
const SHOWN: usize = 8;

/// The findings of one recording, causes before what follows from them, and a summary line.
#[must_use]
pub fn text(judged: &Judged<'_>) -> String {
    let mut out = String::new();
    for (at, finding) in judged.findings.iter().enumerate() {
        let hangs = finding.cause.is_some_and(|cause| cause < judged.findings.len() && cause != at);
        if !hangs {
            paragraph(judged, at, finding, 0, &mut out);
        }
    }
    summary(judged, &mut out);
    out
}

/// A finding, and below it what follows from it.
fn paragraph(judged: &Judged<'_>, at: usize, finding: &Finding, depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth);
    let era = finding.era.map_or("era not known", |era| era.as_str());
    let _ = writeln!(
        out,
        "{indent}{} {} [{era}, {}] {}.",
        finding.severity.as_str(),
        finding.rule,
        finding.blame.as_str(),
        harmless(&finding.sentence)
    );
    if let Some(entry) = catalogue::find(finding.rule) {
        let _ = writeln!(out, "{indent}  rule: {}", entry.rule);
    }
    let _ = writeln!(out, "{indent}  evidence: {}", evidence(&finding.evidence));
    let _ = writeln!(out, "{indent}  what to do: {}", finding.remedy);
    out.push('\n');
    // A consequence stands after its cause, so this ends.
    let follows = |(later, one): &(usize, &Finding)| *later > at && one.cause == Some(at);
    for (later, one) in judged.findings.iter().enumerate().filter(follows) {
        paragraph(judged, later, one, depth + 1, out);
    }
}

fn evidence(numbers: &[u64]) -> String {
    let mut text: Vec<String> = numbers.iter().take(SHOWN).map(|n| format!("#{n}")).collect();
    if numbers.len() > SHOWN {
        text.push("…".to_owned());
    }
    if text.is_empty() { "the end of the recording".to_owned() } else { text.join(" ") }
}

fn summary(judged: &Judged<'_>, out: &mut String) {
    let counts = judged.model.overview().counts;
    let of = |severity| judged.findings.iter().filter(|finding| finding.severity == severity).count();
    let name = harmless(judged.name);
    let found = if judged.findings.is_empty() {
        "clean, nothing found".to_owned()
    } else {
        let words = [
            count(of(Severity::Error), "error"),
            count(of(Severity::Warning), "warning"),
            count(of(Severity::Hint), "hint"),
        ];
        words.join(", ")
    };
    let _ = write!(
        out,
        "{name}: {found} in {} with {}",
        count(usize::try_from(counts.events).unwrap_or(usize::MAX), "event"),
        count(usize::try_from(counts.calls).unwrap_or(usize::MAX), "call")
    );
    if counts.gaps > 0 {
        let gaps = count(usize::try_from(counts.gaps).unwrap_or(usize::MAX), "gap");
        let _ = write!(out, "; {gaps} in the recording");
    }
    if judged.model.overview().capture == Capture::Cut {
        out.push_str("; the recording was cut off");
    }
    out.push('\n');
}

fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// The text with a mark in place of each control character and direction mark, so that nothing in
/// it steers a terminal.
#[must_use]
pub fn harmless(text: &str) -> String {
    let is_bad = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|c| if is_bad(c) { '\u{fffd}' } else { c }).collect()
}

//! One paragraph a finding, and a line that sums up.

use std::fmt::Write as _;

use super::undecided::by_need;
use super::{Checked, Item, Report, counted, harmless, plural, rule_text};
use crate::model::Capture;

/// Event numbers shown of one finding.
const SHOWN: usize = 8;

/// How far consequences are moved in at most, in steps. ours: deeper ones stay readable.
const DEEPEST: usize = 8;

/// The findings of each recording, causes before what follows from them, and a line that sums up.
/// With several, each with findings begins with its name, and the last line sums up all.
#[must_use]
pub fn text(checked: &Checked) -> String {
    let mut out = String::new();
    let count = checked.reports.len();
    for report in &checked.reports {
        if count > 1 && !report.items.is_empty() {
            let _ = writeln!(out, "{}\n", harmless(report.title()));
        }
        for (depth, item) in report.tree() {
            paragraph(item, depth, &mut out);
        }
        for expected in report.expected.iter().filter(|expected| expected.is_held) {
            let shown = match &expected.evidence[..] {
                [] => String::new(),
                numbers => format!(" ({})", evidence(numbers)),
            };
            let _ = writeln!(out, "held: {}{shown}", harmless(&expected.words));
        }
        summary(report, &mut out);
        if checked.tells_undecided {
            not_decidable(report, &mut out);
        }
    }
    if count > 1 {
        let _ = writeln!(out, "{}: {}", plural(count, "recording"), checked.counted());
    }
    out
}

fn paragraph(item: &Item, depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth.min(DEEPEST));
    let _ = writeln!(
        out,
        "{indent}{} {} [{}, {}] {}.",
        item.severity.as_str(),
        item.rule,
        item.era_text(),
        item.blame.as_str(),
        harmless(&item.message)
    );
    let _ = writeln!(out, "{indent}  rule: {}", rule_text(item.rule));
    let _ = writeln!(out, "{indent}  evidence: {}", evidence(&item.evidence));
    let _ = writeln!(out, "{indent}  what to do: {}\n", item.remedy);
}

fn evidence(numbers: &[u64]) -> String {
    let mut text: Vec<String> = numbers.iter().take(SHOWN).map(|n| format!("#{n}")).collect();
    if numbers.len() > SHOWN {
        text.push("…".to_owned());
    }
    if text.is_empty() { "the end of the recording".to_owned() } else { text.join(" ") }
}

fn summary(report: &Report, out: &mut String) {
    let found = if report.items.is_empty() {
        "clean, nothing found".to_owned()
    } else {
        counted(|severity| report.count(severity))
    };
    let _ = write!(out, "{}: {found} in {}", harmless(report.title()), contents(report));
    if report.counts.gaps > 0 {
        let _ = write!(out, "; {} in the recording", plural(report.counts.gaps, "gap"));
    }
    if report.capture == Capture::Cut {
        out.push_str("; the recording was cut off");
    }
    out.push('\n');
}

fn not_decidable(report: &Report, out: &mut String) {
    if report.undecided.is_empty() {
        out.push_str("  every rule that holds for it could be decided\n");
    }
    for (need, rules) in by_need(&report.undecided) {
        let _ = writeln!(out, "  not decidable without {}: {}", need.words(), rules.join(", "));
    }
}

/// How much a recording holds.
pub(super) fn contents(report: &Report) -> String {
    format!("{} with {}", plural(report.counts.events, "event"), plural(report.counts.calls, "call"))
}

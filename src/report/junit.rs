//! Findings as `JUnit` XML: a suite for each recording, in it a case for each rule that found something.
//!
//! GitLab and Jenkins show one failure a case, so a case gathers all findings of its rule. A rule
//! whose findings do not fail the check is a case that passes and says what it saw; a recording
//! without findings is one case that passes; one that cannot be read is a case with an error.

use std::fmt::Write as _;

use super::undecided::reason;
use super::{Checked, Expected, Item, Report, Unread, harmless, rule_text};
use crate::rules::undecided::Undecided;

/// All recordings as one XML document.
#[must_use]
pub fn junit(checked: &Checked) -> String {
    let suites: Vec<Suite<'_>> = checked.reports.iter().map(suite).collect();
    let tests = suites.iter().map(Suite::tests).sum::<usize>() + checked.unread.len();
    let failures: usize = suites.iter().map(Suite::failures).sum();
    let skipped: usize = suites.iter().map(|suite| suite.undecided.len()).sum();
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let errors = checked.unread.len();
    let _ = writeln!(
        out,
        r#"<testsuites name="midwire check" tests="{tests}" failures="{failures}" errors="{errors}" skipped="{skipped}">"#
    );
    for suite in &suites {
        write_suite(suite, &mut out);
    }
    for unread in &checked.unread {
        write_unread(unread, &mut out);
    }
    out.push_str("</testsuites>\n");
    out
}

struct Suite<'a> {
    trace: &'a str,
    /// The findings of each rule, in the order of the first ones.
    cases: Vec<Vec<&'a Item>>,
    expected: &'a [Expected],
    undecided: &'a [Undecided],
}

impl Suite<'_> {
    fn tests(&self) -> usize {
        self.cases.len() + self.expected.len() + self.undecided.len()
    }

    fn failures(&self) -> usize {
        let cases = self.cases.iter().filter(|items| items.iter().any(|item| item.fails)).count();
        cases + self.expected.iter().filter(|expected| !expected.is_held).count()
    }
}

fn suite(report: &Report) -> Suite<'_> {
    let mut cases: Vec<Vec<&Item>> = Vec::new();
    // Each expectation is a case of its own.
    for (_, item) in report.tree().into_iter().filter(|(_, item)| !item.is_expectation()) {
        let same = |items: &&mut Vec<&Item>| items.first().is_some_and(|first| first.rule == item.rule);
        match cases.iter_mut().find(same) {
            Some(items) => items.push(item),
            None => cases.push(vec![item]),
        }
    }
    if cases.is_empty() {
        cases.push(Vec::new());
    }
    Suite { trace: &report.trace, cases, expected: &report.expected, undecided: &report.undecided }
}

fn write_suite(suite: &Suite<'_>, out: &mut String) {
    let (tests, failures, skipped) = (suite.tests(), suite.failures(), suite.undecided.len());
    let name = xml(suite.trace);
    let _ = writeln!(
        out,
        r#"  <testsuite name="{name}" tests="{tests}" failures="{failures}" errors="0" skipped="{skipped}">"#
    );
    for items in &suite.cases {
        write_case(suite.trace, items, out);
    }
    for expected in suite.expected {
        write_expected(suite.trace, expected, out);
    }
    for one in suite.undecided {
        write_undecided(suite.trace, one, out);
    }
    out.push_str("  </testsuite>\n");
}

fn write_case(trace: &str, items: &[&Item], out: &mut String) {
    let name = items.first().map_or_else(|| "nothing found".to_owned(), |first| case_name(first.rule));
    begin_case(trace, &name, out);
    let Some(first) = items.iter().find(|item| item.fails).or(items.first()) else {
        out.push_str("/>\n");
        return;
    };
    out.push_str(">\n");
    let body: String = items.iter().map(|item| told(item)).collect();
    if first.fails {
        let (message, kind) = (xml(&first.message), first.severity.as_str());
        let _ = writeln!(out, r#"      <failure message="{message}" type="{kind}">{body}</failure>"#);
    } else {
        let _ = writeln!(out, "      <system-out>{body}</system-out>");
    }
    out.push_str("    </testcase>\n");
}

fn write_expected(trace: &str, expected: &Expected, out: &mut String) {
    begin_case(trace, &format!("expectation {}", expected.words), out);
    let Some(why) = &expected.why else {
        out.push_str("/>\n");
        return;
    };
    let events: Vec<String> = expected.evidence.iter().map(u64::to_string).collect();
    let (message, body) = (xml(why), xml(&format!("events: {}", events.join(", "))));
    let _ = writeln!(out, ">\n      <failure message=\"{message}\" type=\"error\">{body}</failure>");
    out.push_str("    </testcase>\n");
}

fn case_name(rule: &str) -> String {
    format!("{rule} {}", rule_text(rule))
}

/// Begins the tag of a case.
fn begin_case(trace: &str, name: &str, out: &mut String) {
    let (class, file, name) = (xml(&class(trace)), xml(trace), xml(name));
    let _ = write!(out, r#"    <testcase classname="{class}" name="{name}" file="{file}""#);
}

fn write_undecided(trace: &str, one: &Undecided, out: &mut String) {
    begin_case(trace, &case_name(one.rule), out);
    let reason = xml(&reason(one));
    let _ = write!(out, ">\n      <skipped message=\"{reason}\"/>\n    </testcase>\n");
}

fn told(item: &Item) -> String {
    let events: Vec<String> = item.evidence.iter().map(u64::to_string).collect();
    let lines = [
        format!(
            "{} [{}, {}] {}.",
            item.severity.as_str(),
            item.era_text(),
            item.blame.as_str(),
            item.message
        ),
        format!("  events: {}", events.join(", ")),
        format!("  what to do: {}", item.remedy),
    ];
    lines.iter().map(|line| xml(line) + "\n").collect()
}

fn write_unread(unread: &Unread, out: &mut String) {
    let (name, reason) = (xml(&unread.trace), xml(&unread.reason));
    let _ = writeln!(out, r#"  <testsuite name="{name}" tests="1" failures="0" errors="1" skipped="0">"#);
    begin_case(&unread.trace, "the recording is read", out);
    let _ = write!(out, ">\n      <error message=\"{reason}\" type=\"unreadable\"/>\n    </testcase>\n");
    out.push_str("  </testsuite>\n");
}

/// The name of a recording as a class. Jenkins takes what stands before the last dot for a package.
fn class(trace: &str) -> String {
    let endings = [".zst", ".jsonl", ".mw"];
    let plain = endings.iter().fold(trace, |name, ending| name.strip_suffix(ending).unwrap_or(name));
    plain.replace('.', "_")
}

/// Text as XML 1.0 may hold it, in an element or an attribute.
fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in harmless(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            // The two characters besides control characters that XML 1.0 forbids.
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_stays_text() {
        let cases = [
            ("plain é 語", "plain é 語"),
            ("<a b='c'>&amp;]]>\"", "&lt;a b=&apos;c&apos;&gt;&amp;amp;]]&gt;&quot;"),
            (
                "\u{0}\u{1b}[31m\n\u{202e}\u{fffe}\u{ffff}",
                "\u{fffd}\u{fffd}[31m\u{fffd}\u{fffd}\u{fffd}\u{fffd}",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(xml(text), expected);
        }
    }

    #[test]
    fn a_class_has_no_packages() {
        let cases = [
            ("a/b.mw.jsonl", "a/b"),
            ("b.mw.jsonl.zst", "b"),
            ("b.jsonl", "b"),
            ("../x.y.json", "__/x_y_json"),
            ("-", "-"),
        ];
        for (trace, expected) in cases {
            assert_eq!(class(trace), expected);
        }
    }
}

//! Findings as Markdown, made for a comment on a pull request.
//!
//! A comment rings no bells: foreign text cannot name people, tickets or addresses, cannot hold
//! markup, and does not leave its table cell.

use std::fmt::Write as _;

use super::text::contents;
use super::undecided::by_need;
use super::{Checked, Item, Report, harmless, plural, rule_text};
use crate::rules::Severity;

/// Length at which no more findings are added, in bytes. Comments on GitHub end at 65,536 characters.
const LIMIT_BYTES: usize = 50_000;

/// Length of one message, in characters.
const MESSAGE_CHARS: usize = 400;

/// Event numbers shown of one finding.
const SHOWN: usize = 8;

/// A space of no width.
const GAP: &str = "&#8203;";

/// All recordings as one comment.
#[must_use]
pub fn markdown(checked: &Checked) -> String {
    let read = plural(checked.reports.len(), "recording");
    let mut out = format!("### midwire check: {} in {read}\n", checked.counted());
    for unread in &checked.unread {
        let _ = writeln!(out, "\n**{}** could not be read: {}", plain(&unread.trace), plain(&unread.reason));
    }
    let mut remedies: Vec<&Item> = Vec::new();
    let mut left_out = 0;
    for report in &checked.reports {
        left_out += table(report, &mut remedies, &mut out);
    }
    for report in checked.reports.iter().filter(|report| !report.expected.is_empty()) {
        expectations(report, &mut out);
    }
    if left_out > 0 {
        let more = plural(left_out, "more finding");
        let _ = writeln!(out, "\n{more}: `midwire check` on the recording tells them all.");
    }
    what_to_do(&remedies, &mut out);
    for report in checked.reports.iter().filter(|report| !report.undecided.is_empty()) {
        not_decidable(report, &mut out);
    }
    out
}

/// Returns how many findings found no room.
fn table<'a>(report: &'a Report, remedies: &mut Vec<&'a Item>, out: &mut String) -> usize {
    let rows = report.tree();
    if out.len() >= LIMIT_BYTES {
        return rows.len();
    }
    if rows.is_empty() {
        let _ = writeln!(out, "\nNothing found in **{}** ({}).", plain(report.title()), contents(report));
        return 0;
    }
    let _ = write!(
        out,
        "\n**{}** ({})\n\n| | rule | what happened | at fault | era | events |\n|---|---|---|---|---|---|\n",
        plain(report.title()),
        contents(report)
    );
    let mut told = 0;
    for (depth, item) in &rows {
        if out.len() >= LIMIT_BYTES {
            break;
        }
        row(*depth, item, out);
        told += 1;
        if !remedies.iter().any(|known| known.rule == item.rule) {
            remedies.push(item);
        }
    }
    rows.len() - told
}

fn row(depth: usize, item: &Item, out: &mut String) {
    let sign = match item.severity {
        Severity::Error => "❌",
        Severity::Warning => "⚠️",
        Severity::Hint => "💡",
    };
    let follows = if depth > 0 { "↳ " } else { "" };
    let mut events: Vec<String> = item.evidence.iter().take(SHOWN).map(u64::to_string).collect();
    if item.evidence.len() > SHOWN {
        events.push("…".to_owned());
    }
    let _ = writeln!(
        out,
        "| {sign} {} | {} | {follows}{} | {} | {} | {} |",
        item.severity.as_str(),
        item.rule,
        plain(&item.message),
        item.blame.as_str(),
        item.era.map_or("not known", |era| era.as_str()),
        events.join(", ")
    );
}

fn expectations(report: &Report, out: &mut String) {
    let _ = write!(out, "\nExpected of **{}**:\n\n", plain(report.title()));
    for expected in &report.expected {
        if out.len() >= LIMIT_BYTES {
            out.push_str("- …\n");
            return;
        }
        let sign = if expected.is_held { "✅" } else { "❌" };
        let _ = writeln!(out, "- {sign} {}", plain(&expected.told()));
    }
}

fn what_to_do(remedies: &[&Item], out: &mut String) {
    if remedies.is_empty() {
        return;
    }
    out.push_str("\n<details><summary>The rules, and what to do</summary>\n\n");
    for item in remedies {
        let _ = writeln!(out, "- **{}** {} *{}*", item.rule, plain(rule_text(item.rule)), plain(item.remedy));
    }
    out.push_str("\n</details>\n");
}

fn not_decidable(report: &Report, out: &mut String) {
    if out.len() >= LIMIT_BYTES {
        return;
    }
    let title = plain(report.title());
    let _ = writeln!(out, "\n<details><summary>Not decidable in {title}</summary>\n");
    for (need, rules) in by_need(&report.undecided) {
        let _ = writeln!(out, "- without {}: {}", need.words(), rules.join(", "));
    }
    out.push_str("\n</details>\n");
}

/// Text that is shown as it is and does nothing, shortened to [`MESSAGE_CHARS`].
fn plain(text: &str) -> String {
    let text = harmless(text);
    let mut out = String::with_capacity(text.len());
    for c in text.chars().take(MESSAGE_CHARS) {
        // Addresses, people and tickets are found in what is shown: a space of no width parts them.
        let parts = (c == '/' && out.ends_with(':')) || (c == '.' && out.ends_with("www"));
        if parts {
            out.push_str(GAP);
        }
        match c {
            '@' | '#' => out.extend([c.encode_utf8(&mut [0; 4]), GAP]),
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            // A backslash would not save a table or a formula from these.
            '|' => out.push_str("&#124;"),
            '$' => out.push_str("&#36;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '~' => out.extend(['\\', c]),
            other => out.push(other),
        }
    }
    if text.chars().nth(MESSAGE_CHARS).is_some() {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_does_nothing() {
        let cases = [
            ("plain: 3 é", "plain: 3 é"),
            ("a|b\n|-|", "a&#124;b\u{fffd}&#124;-&#124;"),
            ("\\|", "\\\\&#124;"),
            (
                "[x](http://a.b) `c` *d* _e_ ~f~ $g$",
                "\\[x\\](http:&#8203;//a.b) \\`c\\` \\*d\\* \\_e\\_ \\~f\\~ &#36;g&#36;",
            ),
            ("<img src=x>&lt;", "&lt;img src=x&gt;&amp;lt;"),
            ("@someone #12 www.a.b", "@&#8203;someone #&#8203;12 www&#8203;.a.b"),
        ];
        for (text, expected) in cases {
            assert_eq!(plain(text), expected);
        }
        assert_eq!(plain(&"x".repeat(1000)).chars().count(), MESSAGE_CHARS + 1);
    }
}

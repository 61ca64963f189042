//! Findings as SARIF 2.1.0, for code scanning.
//!
//! A recording is the artifact, an event a line of it. All recordings are one run.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Value, json};

use super::expected::{EXPECTATION, RULE_TEXT};
use super::json::written;
use super::undecided::reason;
use super::{Budget, Checked, Item, Report, Unread, harmless};
use crate::rules::undecided::Undecided;
use crate::rules::{Severity, catalogue};
use crate::spec::era::Era;

/// Where the published schema of the form stands.
const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// All recordings as one SARIF log. `budget` names the budgets that were given beside the rules.
#[must_use]
pub fn sarif(checked: &Checked, budget: Budget) -> String {
    let rules = rules(budget);
    let mut results = Vec::new();
    for report in &checked.reports {
        let before = results.len();
        let mut seen = HashMap::new();
        results.extend(report.items.iter().map(|item| result(report, item, &rules, before, &mut seen)));
        results.extend(report.undecided.iter().map(|one| open_result(report, one, &rules)));
    }
    let driver = Driver {
        name: "midwire",
        version: env!("CARGO_PKG_VERSION"),
        semantic_version: env!("CARGO_PKG_VERSION"),
        rules,
    };
    written(&json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": driver },
            "columnKind": "unicodeCodePoints",
            "invocations": [{
                "executionSuccessful": checked.unread.is_empty(),
                "toolExecutionNotifications": checked.unread.iter().map(notification).collect::<Vec<_>>(),
            }],
            "results": results,
        }],
    }))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Driver {
    name: &'static str,
    version: &'static str,
    semantic_version: &'static str,
    rules: Vec<Rule>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Rule {
    id: &'static str,
    short_description: Text,
    help: Text,
    default_configuration: Value,
    properties: Value,
}

#[derive(Serialize)]
struct Text {
    text: &'static str,
}

fn rules(budget: Budget) -> Vec<Rule> {
    let rule = |id, text, help, severity, properties| Rule {
        id,
        short_description: Text { text },
        help: Text { text: help },
        default_configuration: json!({ "level": level(severity) }),
        properties,
    };
    let of_catalogue = catalogue::entries().iter().map(|entry| {
        let eras: Vec<_> = entry.eras.iter().map(Era::as_str).collect();
        let properties = json!({ "eras": eras, "transports": entry.transports, "clause": entry.clause });
        rule(entry.id, entry.rule, entry.remedy, entry.severity, properties)
    });
    let budgets = budget.given().map(|name| {
        let text = Budget::rule_text(name);
        rule(name, text, "Find out what takes the time, or raise the budget.", Severity::Error, json!({}))
    });
    let expectation =
        rule(EXPECTATION, RULE_TEXT, "Look at the events that show it.", Severity::Error, json!({}));
    of_catalogue.chain([expectation]).chain(budgets).collect()
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Hint => "note",
    }
}

/// `before`: results of the recordings before this one.
fn result(report: &Report, item: &Item, rules: &[Rule], before: usize, seen: &mut Seen) -> Value {
    // The message that breaks a rule stands last in the evidence.
    let main = item.evidence.last().copied();
    let related: Vec<Value> = item
        .evidence
        .iter()
        .enumerate()
        .map(|(id, n)| {
            let mut location = location(report, Some(*n));
            if let Some(members) = location.as_object_mut() {
                members.insert("id".to_owned(), id.into());
                members.insert("message".to_owned(), json!({ "text": format!("event {n}") }));
            }
            location
        })
        .collect();
    json!({
        "ruleId": item.rule,
        "ruleIndex": index(rules, item.rule),
        "kind": "fail",
        "level": level(item.severity),
        "message": { "text": format!("{}.", harmless(&item.message)) },
        "locations": [location(report, main)],
        "relatedLocations": related,
        "partialFingerprints": { "midwireFinding/v1": format!("{:016x}", fingerprint(report, item, seen)) },
        "properties": {
            "era": item.era.map(Era::as_str),
            "blame": item.blame.as_str(),
            "causedBy": item.caused_by.map(|cause| cause.saturating_add(before)),
        },
    })
}

/// A rule that could not be decided.
fn open_result(report: &Report, one: &Undecided, rules: &[Rule]) -> Value {
    json!({
        "ruleId": one.rule,
        "ruleIndex": index(rules, one.rule),
        "kind": "open",
        "level": "none",
        "message": { "text": reason(one) },
        "locations": [location(report, None)],
    })
}

fn index(rules: &[Rule], id: &str) -> Option<usize> {
    rules.iter().position(|rule| rule.id == id)
}

/// The line of an event, or the recording as a whole.
fn location(report: &Report, event: Option<u64>) -> Value {
    let place = event.and_then(|n| report.lines.find(n));
    match place {
        Some((file, line)) => json!({ "physicalLocation": {
            "artifactLocation": { "uri": uri(file) },
            "region": { "startLine": line },
        }}),
        None => json!({ "physicalLocation": { "artifactLocation": { "uri": uri(&report.trace) } } }),
    }
}

fn notification(unread: &Unread) -> Value {
    json!({
        "level": "error",
        "message": { "text": harmless(&unread.reason) },
        "locations": [{ "physicalLocation": { "artifactLocation": { "uri": uri(&unread.trace) } } }],
    })
}

/// A path as a URI reference; standard input has a name of its own.
fn uri(path: &str) -> String {
    if path == "-" {
        return "stdin".to_owned();
    }
    let mut out = String::from(if path.starts_with('/') { "file://" } else { "" });
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                out.push(char::from(byte));
            }
            other => {
                let _ = write!(out, "%{other:02X}");
            }
        }
    }
    out
}

/// The same fault of the same recording has the same number in every run: times and ids, which
/// change, do not count; of several alike, their order does.
fn fingerprint(report: &Report, item: &Item, seen: &mut Seen) -> u64 {
    let request = item.requests.first().map_or("", String::as_str);
    let alike = hash(FNV_START, &[&report.trace, item.rule, request]);
    let nth = seen.entry(alike).or_default();
    *nth += 1;
    hash(alike, &[&nth.to_string()])
}

/// How often each fault has been met, by what is alike in its findings.
type Seen = HashMap<u64, u32>;

/// Where FNV-1a begins.
const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a over the parts with an end mark each: the same on every machine and in every version.
fn hash(start: u64, parts: &[&str]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.bytes().chain(std::iter::once(0xff)));
    bytes.fold(start, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

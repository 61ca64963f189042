//! Findings as JSON; `docs/check.md` says what each member means.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::value::RawValue;

use super::harmless::steers;
use super::undecided::reason;
use super::{Checked, Item, Report};
use crate::spec::era::Era;

#[derive(Serialize)]
struct OneFinding<'a> {
    trace: &'a str,
    rule: &'static str,
    severity: &'static str,
    era: Option<&'static str>,
    blame: &'static str,
    subjects: Vec<Box<RawValue>>,
    evidence: &'a [u64],
    message: &'a str,
    remedy: &'static str,
    caused_by: Option<usize>,
}

#[derive(Serialize)]
struct More<'a> {
    findings: Vec<OneFinding<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expectations: Option<Vec<OneExpectation<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    undecided: Option<Vec<OneUndecided<'a>>>,
}

#[derive(Serialize)]
struct OneExpectation<'a> {
    trace: &'a str,
    expectation: &'a str,
    held: bool,
    why: Option<&'a str>,
    evidence: &'a [u64],
}

#[derive(Serialize)]
struct OneUndecided<'a> {
    trace: &'a str,
    rule: &'static str,
    needs: Vec<&'static str>,
    reason: String,
}

/// The findings of all recordings as one JSON array, with a newline at its end. `caused_by` is a
/// position in this array, from 0. Where it is told which rules could not be decided, or a recipe
/// expects something: an object that holds this array and others.
#[must_use]
pub fn json(checked: &Checked) -> String {
    let mut findings = Vec::new();
    for report in &checked.reports {
        let before = findings.len();
        findings.extend(report.items.iter().map(|item| one_finding(&report.trace, item, before)));
    }
    let has_expectations = checked.reports.iter().any(|report| !report.expected.is_empty());
    if !checked.tells_undecided && !has_expectations {
        return written(&findings);
    }
    let undecided = || checked.reports.iter().flat_map(undecided).collect();
    let undecided = checked.tells_undecided.then(undecided);
    let expectations = || checked.reports.iter().flat_map(expectations).collect();
    let expectations = has_expectations.then(expectations);
    written(&More { findings, expectations, undecided })
}

fn expectations(report: &Report) -> impl Iterator<Item = OneExpectation<'_>> {
    report.expected.iter().map(|expected| OneExpectation {
        trace: &report.trace,
        expectation: &expected.words,
        held: expected.is_held,
        why: expected.why.as_deref(),
        evidence: &expected.evidence,
    })
}

fn undecided(report: &Report) -> impl Iterator<Item = OneUndecided<'_>> {
    report.undecided.iter().map(|one| OneUndecided {
        trace: &report.trace,
        rule: one.rule,
        needs: one.lacks.iter().map(|need| need.as_str()).collect(),
        reason: reason(one),
    })
}

/// Pretty JSON in which nothing steers a terminal, with a newline at its end.
pub(super) fn written(value: &impl Serialize) -> String {
    // Plain strings, numbers and lists: there is nothing that could fail to be written.
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    let mut out = String::with_capacity(text.len() + 1);
    for c in text.chars() {
        // Only line ends stand outside of strings; within, any character may be escaped.
        if c != '\n' && steers(c) {
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out.push('\n');
    out
}

fn one_finding<'a>(trace: &'a str, item: &'a Item, before: usize) -> OneFinding<'a> {
    let subjects = item.subjects.iter().filter_map(|id| RawValue::from_string(id.clone()).ok()).collect();
    OneFinding {
        trace,
        rule: item.rule,
        severity: item.severity.as_str(),
        era: item.era.map(Era::as_str),
        blame: item.blame.as_str(),
        subjects,
        evidence: &item.evidence,
        message: &item.message,
        remedy: item.remedy,
        caused_by: item.caused_by.map(|cause| cause.saturating_add(before)),
    }
}

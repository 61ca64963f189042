//! Findings as JSON; `docs/check-json.md` says what each member means.

use serde::Serialize;
use serde_json::value::RawValue;

use super::{Judged, capture_word};
use crate::rules::catalogue;
use crate::spec::era::Era;

/// Version of the form. Members may be added under the same number; none changes its meaning.
pub const SCHEMA_VERSION: u32 = 1;

#[derive(Serialize)]
struct Report<'a> {
    midwire_check: u32,
    recordings: Vec<OneRecording<'a>>,
}

#[derive(Serialize)]
struct OneRecording<'a> {
    recording: &'a str,
    capture: &'static str,
    complete: bool,
    events: u64,
    calls: u64,
    open: u64,
    errors: usize,
    warnings: usize,
    hints: usize,
    findings: Vec<OneFinding<'a>>,
}

#[derive(Serialize)]
struct OneFinding<'a> {
    rule: &'static str,
    severity: &'static str,
    era: Option<&'static str>,
    blame: &'static str,
    ids: Vec<Box<RawValue>>,
    evidence: &'a [u64],
    sentence: &'a str,
    rule_text: &'static str,
    remedy: &'static str,
    cause: Option<usize>,
}

/// The findings of several recordings as one JSON object, with a newline at its end.
#[must_use]
pub fn json(judged: &[Judged<'_>]) -> String {
    let report =
        Report { midwire_check: SCHEMA_VERSION, recordings: judged.iter().map(one_recording).collect() };
    // Plain strings, numbers and lists: there is nothing that could fail to be written.
    let mut text = serde_json::to_string_pretty(&report).unwrap_or_default();
    text.push('\n');
    text
}

fn one_recording<'a>(judged: &'a Judged<'a>) -> OneRecording<'a> {
    use crate::rules::Severity::{Error, Hint, Warning};
    let of = |severity| judged.findings.iter().filter(|finding| finding.severity == severity).count();
    let overview = judged.model.overview();
    OneRecording {
        recording: judged.name,
        capture: capture_word(overview.capture),
        complete: overview.is_full,
        events: overview.counts.events,
        calls: overview.counts.calls,
        open: overview.counts.open,
        errors: of(Error),
        warnings: of(Warning),
        hints: of(Hint),
        findings: judged.findings.iter().map(|finding| one_finding(judged, finding)).collect(),
    }
}

fn one_finding<'a>(judged: &Judged<'_>, finding: &'a crate::rules::Finding) -> OneFinding<'a> {
    let ids = judged.ids(finding).into_iter().filter_map(|id| RawValue::from_string(id).ok()).collect();
    OneFinding {
        rule: finding.rule,
        severity: finding.severity.as_str(),
        era: finding.era.map(Era::as_str),
        blame: finding.blame.as_str(),
        ids,
        evidence: &finding.evidence,
        sentence: &finding.sentence,
        rule_text: catalogue::find(finding.rule).map_or("", |entry| entry.rule),
        remedy: finding.remedy,
        cause: finding.cause,
    }
}

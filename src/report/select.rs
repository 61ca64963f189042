//! Which findings are told, and which of them make a check fail.

use crate::rules::{Finding, Severity};

/// The rules whose findings are told.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selection {
    /// Only these; empty: every rule.
    pub only: Vec<&'static str>,
    /// Not these.
    pub ignored: Vec<&'static str>,
}

impl Selection {
    /// Whether findings of this rule are told.
    #[must_use]
    pub fn has(&self, rule: &str) -> bool {
        (self.only.is_empty() || self.only.contains(&rule)) && !self.ignored.contains(&rule)
    }
}

/// The findings that make a check fail. A budget that is exceeded fails whatever stands here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailOn {
    /// Those of this severity or worse; `None`: of no severity.
    pub least: Option<Severity>,
    /// Those of these rules, whatever their severity.
    pub rules: Vec<&'static str>,
}

impl Default for FailOn {
    /// Errors and warnings fail, hints inform.
    fn default() -> FailOn {
        FailOn { least: Some(Severity::Warning), rules: Vec::new() }
    }
}

impl FailOn {
    /// Whether a finding of this rule, this bad, makes a check fail.
    #[must_use]
    pub fn has(&self, rule: &str, severity: Severity) -> bool {
        self.least.is_some_and(|least| severity >= least) || self.rules.contains(&rule)
    }
}

/// Where each finding will stand among those that are told.
pub(super) fn positions(findings: &[Finding], selection: &Selection) -> Vec<Option<usize>> {
    let mut next = 0;
    let position = |finding: &Finding| {
        let at = selection.has(finding.rule).then_some(next);
        next += usize::from(at.is_some());
        at
    };
    findings.iter().map(position).collect()
}

/// Where the nearest told cause of a finding stands.
pub(super) fn cause(finding: &Finding, findings: &[Finding], positions: &[Option<usize>]) -> Option<usize> {
    let mut cause = finding.cause?;
    // No chain is longer than all findings, unless it is a ring.
    for _ in findings {
        match positions.get(cause)? {
            Some(at) => return Some(*at),
            None => cause = findings.get(cause)?.cause?,
        }
    }
    None
}

//! Findings as text for people and as JSON for scripts.
//!
//! The same findings give the same bytes. Text from the wire is made harmless before it is shown:
//! a control character never reaches a terminal from here.

mod json;
mod text;

pub use json::{SCHEMA_VERSION, json};
pub use text::{harmless, text};

use crate::model::{Capture, Model};
use crate::rules::{Finding, Severity};

/// What was judged.
#[derive(Debug, Clone, Copy)]
pub struct Judged<'a> {
    /// Where it came from, as the user named it.
    pub name: &'a str,
    /// The recording, folded.
    pub model: &'a Model,
    /// What was found in it.
    pub findings: &'a [Finding],
}

impl Judged<'_> {
    /// How many findings are this bad or worse: what an exit code is made of.
    #[must_use]
    pub fn at_least(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity >= severity).count()
    }

    /// Ids that a finding is about, as JSON, each once and in order.
    fn ids(&self, finding: &Finding) -> Vec<String> {
        let of_calls = finding.calls.iter().filter_map(|idx| self.model.call(*idx));
        let mut ids = Vec::new();
        for id in of_calls.map(|call| call.id.to_string()).chain(finding.ids.iter().cloned()) {
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        ids
    }
}

/// How a recording stands, in a word.
fn capture_word(capture: Capture) -> &'static str {
    match capture {
        Capture::Live => "live",
        Capture::Ended { .. } => "ended",
        Capture::Cut => "cut",
    }
}

#[cfg(test)]
mod tests;

//! Detectors: model → findings. Each finding names its evidence, the side at fault, the era and the
//! clause; silence when nobody is at fault.
//!
//! [`Judge::look`] is called after each `Model::fold` and reads only what the model noticed in that
//! event, so judging is as incremental as folding. A rule is a row of `catalogue.tsv` (its words)
//! and a few lines in one of the rooms below (its test).

mod cancel;
mod case;
pub mod catalogue;
mod ends;
mod framing;
mod pairing;
mod progress;
mod subscription;

use std::collections::HashMap;

use crate::model::{CallIdx, Model, ScopeIdx};
use crate::spec::era::Era;
use case::Case;

/// How bad a finding is (protocol.md section 18), in rising order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Advice, deprecations, heuristics, operational notes.
    Hint,
    /// A SHOULD is broken, or a MUST with some doubt left.
    Warning,
    /// A MUST is broken, and that can be decided without any race.
    Error,
}

impl Severity {
    /// Its name, as commands and reports use it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Hint => "hint",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }

    /// The severity of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Severity> {
        [Severity::Hint, Severity::Warning, Severity::Error].into_iter().find(|level| level.as_str() == name)
    }
}

/// Who is at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Blame {
    /// The client.
    Client,
    /// The server.
    Server,
    /// Something between the two that is not midwire.
    Intermediary,
    /// Nobody can tell from here.
    Unknown,
}

impl Blame {
    /// Its name, as reports use it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Blame::Client => "client",
            Blame::Server => "server",
            Blame::Intermediary => "intermediary",
            Blame::Unknown => "unknown",
        }
    }
}

/// One judgement about this recording.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Id in the catalogue, such as `CAN-05`.
    pub rule: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// The era it was judged under, where that is known.
    pub era: Option<Era>,
    /// Who is at fault.
    pub blame: Blame,
    /// The calls it is about; may be empty.
    pub calls: Vec<CallIdx>,
    /// Ids that it is about and that no call has, as JSON.
    pub ids: Vec<String>,
    /// Numbers of the events that prove it, in order; the first ones when there are many.
    pub evidence: Vec<u64>,
    /// What happened in this case, in one plain sentence.
    pub sentence: String,
    /// What to do about it.
    pub remedy: &'static str,
    /// The finding that this one follows from, by its position.
    pub cause: Option<usize>,
}

/// Event numbers kept as evidence of one finding. ours: enough to look at, little to keep.
const EVIDENCE_LIMIT: usize = 32;

/// Applies every rule to a model as it grows.
#[derive(Debug, Default)]
pub struct Judge {
    findings: Vec<Finding>,
    /// Findings that gather what repeats, by rule and subject: position, and how often.
    groups: HashMap<(&'static str, u64), (usize, u32)>,
    /// The last finding of a process or session that can explain calls without an answer.
    causes: HashMap<ScopeIdx, usize>,
    ends: ends::Ends,
}

impl Judge {
    /// A judge that has seen nothing.
    #[must_use]
    pub fn new() -> Judge {
        Judge::default()
    }

    /// Judges what the model noticed in the event folded last. O(1) for each thing noticed.
    pub fn look(&mut self, model: &Model) {
        for seen in model.seen() {
            let case = Case { model, seen };
            framing::look(&case, self);
            pairing::look(&case, self);
            cancel::look(&case, self);
            progress::look(&case, self);
            subscription::look(&case, self);
            ends::look(&case, self);
        }
    }

    /// Everything found so far, in the order it was found.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }
}

#[cfg(test)]
mod tests;

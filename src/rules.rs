//! Detectors: model → findings. Each finding names its evidence, the side at fault, the era and the
//! clause; silence when nobody is at fault.
//!
//! [`Judge::look`] is called after each `Model::fold` and reads only what the model noticed in that
//! event, so judging is as incremental as folding. A rule is a row of `catalogue.tsv` (its words)
//! and a few lines in one of the rooms below (its test).

use crate::model::{CallIdx, Model};
use crate::spec::era::Era;

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
    /// Numbers of the events that prove it, in order.
    pub evidence: Vec<u64>,
    /// What happened in this case, in one plain sentence.
    pub sentence: String,
    /// What to do about it.
    pub remedy: &'static str,
    /// The finding that this one follows from, by its position.
    pub cause: Option<usize>,
}

/// Applies every rule to a model as it grows.
#[derive(Debug, Default)]
pub struct Judge {
    findings: Vec<Finding>,
}

impl Judge {
    /// A judge that has seen nothing.
    #[must_use]
    pub fn new() -> Judge {
        Judge::default()
    }

    /// Judges what the model noticed in the event folded last. O(1) for each thing noticed.
    pub fn look(&mut self, _model: &Model) {}

    /// Everything found so far, in the order it was found.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }
}

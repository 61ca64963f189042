//! What was expected of a recording beside the rules, and whether it holds.
//!
//! An expectation that does not hold is told like a finding, with an era and a side that nobody
//! knows; those that hold are told too, so that a person sees what was looked at.

use super::{Item, Report};
use crate::rules::{Blame, Severity};

/// Its name, where findings have the id of a rule.
pub(super) const EXPECTATION: &str = "expectation";

/// What an expectation is, in one sentence.
pub(super) const RULE_TEXT: &str = "What the recipe given to this check expects happens.";

/// Something that was expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// What, in words.
    pub words: String,
    /// It holds.
    pub is_held: bool,
    /// Why not.
    pub why: Option<String>,
    /// Numbers of the events that show it, in order.
    pub evidence: Vec<u64>,
}

impl Report {
    /// Takes in whether something that was expected holds; if not, it makes the check fail.
    pub fn expect(&mut self, mut expected: Expected) {
        expected.evidence.sort_unstable();
        expected.evidence.dedup();
        if !expected.is_held {
            self.items.push(Item {
                rule: EXPECTATION,
                severity: Severity::Error,
                era: None,
                blame: Blame::Unknown,
                subjects: Vec::new(),
                requests: Vec::new(),
                evidence: expected.evidence.clone(),
                message: expected.told(),
                remedy: "Look at the events, then mend the peer, or the recipe where it expects too much.",
                caused_by: None,
                fails: true,
            });
        }
        self.expected.push(expected);
    }
}

impl Item {
    /// It tells of an expectation that does not hold.
    #[must_use]
    pub fn is_expectation(&self) -> bool {
        self.rule == EXPECTATION
    }
}

impl Expected {
    /// In one sentence without a full stop.
    pub(super) fn told(&self) -> String {
        match &self.why {
            Some(why) => format!("{}; but {why}", self.words),
            None => self.words.clone(),
        }
    }
}

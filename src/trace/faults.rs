//! What was wrong with a recording. Reading goes on over all of it; each kind is said once.

use std::collections::BTreeMap;

/// How many examples of a kind are kept; all are counted.
const EXAMPLES: usize = 16;

/// Everything a reader had to pass over or to guess.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Faults {
    /// Members that this version does not know, and how often each came.
    pub unknown_members: BTreeMap<String, u64>,
    /// Events that this version does not know, and how often each came.
    pub unknown_events: BTreeMap<String, u64>,
    /// Lines that make no event.
    pub bad_lines: u64,
    /// The first of them.
    pub bad_line_examples: Vec<BadLine>,
    /// Lines longer than [`super::LINE_LIMIT_BYTES`], passed over.
    pub too_long_lines: u64,
    /// Events with an earlier time than the one before.
    pub times_out_of_order: u64,
    /// Events whose number is not above that of the one before.
    pub numbers_out_of_order: u64,
    /// Bytes of an unfinished last line: the writer was cut off.
    pub torn_bytes: u64,
    /// The compressed file ends early or is damaged; all before that was read.
    pub compression: Option<String>,
    /// The file became shorter while it was followed.
    pub was_truncated: bool,
}

/// A line that makes no event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadLine {
    /// Number of the line in its file, from 1.
    pub line: u64,
    /// What is wrong with it.
    pub reason: String,
}

impl Faults {
    /// Nothing had to be passed over or guessed. A torn tail counts; an unknown member too.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Faults::default()
    }

    pub(super) fn bad_line(&mut self, line: u64, reason: String) {
        self.bad_lines += 1;
        if self.bad_line_examples.len() < EXAMPLES {
            self.bad_line_examples.push(BadLine { line, reason });
        }
    }

    pub(super) fn unknown_member(&mut self, name: &str) {
        count(&mut self.unknown_members, name);
    }

    pub(super) fn unknown_event(&mut self, name: &str) {
        count(&mut self.unknown_events, name);
    }
}

/// Counts `name`; beyond [`EXAMPLES`] names all others share one entry.
fn count(counts: &mut BTreeMap<String, u64>, name: &str) {
    if let Some(count) = counts.get_mut(name) {
        *count += 1;
    } else {
        let name = if counts.len() < EXAMPLES { name } else { "…" };
        *counts.entry(name.to_owned()).or_default() += 1;
    }
}

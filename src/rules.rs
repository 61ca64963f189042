//! Detectors: model → findings. Each finding names its evidence, the side at fault, the era and the
//! clause; silence when nobody is at fault.
//!
//! [`Judge::look`] is called after each `Model::fold` and reads only what the model noticed in that
//! event, so judging is as incremental as folding. A rule has its words in `catalogue/GROUP.tsv`,
//! its test in the room of its group below, and two small traces in `examples/GROUP.txt`: one that
//! it fires on, one that it leaves in peace.
//!
//! - `book` holds the rules and says which ones an event concerns.
//! - `case` is what a rule looks at: one thing noticed, with its message, call and exchange.
//! - `findings` is what it writes to; `causes` hangs consequences under what they follow from.

mod book;
mod case;
pub mod catalogue;
mod causes;

pub mod example;
mod findings;
mod open;
pub mod undecided;

mod auth;
mod caching;
mod cancel;
mod completion;
mod core_tasks;
mod flow;
mod http;
mod icon;
mod input;
mod listing;
mod logging;
mod meta;
mod pagination;
mod path;
mod progress;
mod prompts;
mod reliability;
mod resources;
mod rounds;
mod rpc;
mod schema;
mod session;
mod sse;
mod stdio;
mod subscription;
mod tasks;
mod timeout;
mod tools;
mod version;

use crate::machine::policy::Policy;
use crate::model::{CallIdx, Model};
use crate::spec::era::Era;
use book::Book;
use case::Case;
use findings::Findings;

/// How bad a finding is, in rising order.
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
    /// midwire itself.
    Midwire,
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
            Blame::Midwire => "midwire",
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

/// Applies every rule to a model as it grows.
#[derive(Debug, Default)]
pub struct Judge {
    policy: Policy,
    book: Book,
    findings: Findings,
}

impl Judge {
    /// A judge that has seen nothing.
    #[must_use]
    pub fn new() -> Judge {
        Judge::default()
    }

    /// A judge that knows what is agreed outside the wire: limits, contracts of tools.
    #[must_use]
    pub fn with_policy(policy: Policy) -> Judge {
        Judge { policy, ..Judge::default() }
    }

    /// Judges what the model noticed in the event folded last. O(1) for each thing noticed.
    pub fn look(&mut self, model: &Model) {
        let Judge { policy, book, findings } = self;
        for (nth, seen) in model.seen().iter().enumerate() {
            let case = Case::new(model, policy, seen);
            if nth == 0 {
                book.wait(&case, findings);
            }
            book.look(&case, findings);
        }
    }

    /// Everything found so far, in the order it was found.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        self.findings.all()
    }
}

#[cfg(test)]
mod script_tests;
#[cfg(test)]
mod tests;

//! One thing noticed, and the making of a finding out of it.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};

use super::catalogue::{self, Entry};
use super::{Blame, EVIDENCE_LIMIT, Finding, Judge, Severity};
use crate::event::Dir;
use crate::model::{Call, CallIdx, Model, Row, RowIdx, Scope, Seen};
use crate::spec::era::Era;

/// One thing noticed, in its model.
pub(super) struct Case<'a> {
    pub model: &'a Model,
    pub seen: &'a Seen,
}

/// A finding being made.
pub(super) struct Draft {
    entry: &'static Entry,
    severity: Severity,
    blame: Blame,
    calls: Vec<CallIdx>,
    ids: Vec<String>,
    evidence: Vec<u64>,
    cause: Option<usize>,
}

impl<'a> Case<'a> {
    /// The call that it belongs to.
    pub(super) fn call(&self) -> Option<&'a Call> {
        self.model.call(self.seen.call?)
    }

    /// The row that shows it.
    pub(super) fn row(&self) -> Option<&'a Row> {
        self.model.row(self.seen.row?)
    }

    /// The process or session.
    pub(super) fn scope(&self) -> Option<&'a Scope> {
        self.model.scope(self.seen.scope)
    }

    /// The era that it is judged under: of its call, else of its row.
    pub(super) fn era(&self) -> Option<Era> {
        self.call().and_then(|call| call.era).or_else(|| self.row().and_then(|row| row.era))
    }

    /// Something was injected into its call: what follows is nobody's fault.
    pub(super) fn is_injected(&self) -> bool {
        self.call().is_some_and(|call| call.is_injected)
    }

    /// Everything since the beginning was recorded.
    pub(super) fn is_full(&self) -> bool {
        self.model.overview().is_full
    }

    /// A call in words: method, target and id.
    pub(super) fn name(&self, idx: CallIdx) -> String {
        let Some(call) = self.model.call(idx) else { return "a request".to_owned() };
        let method = self.model.text(call.method);
        match call.target {
            Some(target) => format!("{method} {} (id {})", self.model.text(target), call.id),
            None => format!("{method} (id {})", call.id),
        }
    }

    /// Its call in words.
    pub(super) fn subject(&self) -> String {
        self.seen.call.map_or_else(|| "a request".to_owned(), |idx| self.name(idx))
    }

    /// Begins a finding, when the rule applies to this era and transport and nothing was injected.
    pub(super) fn draft(&self, rule: &str) -> Option<Draft> {
        let entry = catalogue::find(rule)?;
        let transport = self
            .call()
            .map(|call| call.transport)
            .or_else(|| self.row().map(|row| row.transport))
            .or_else(|| self.scope().map(|scope| scope.transport));
        let applies = entry.eras.has(self.era()) && transport.is_none_or(|one| entry.is_for(one));
        if !applies || self.is_injected() {
            return None;
        }
        let blame = match self.row().map(|row| row.dir) {
            Some(Dir::C2s) => Blame::Client,
            Some(Dir::S2c | Dir::Stderr) => Blame::Server,
            _ => Blame::Unknown,
        };
        let mut draft = Draft {
            entry,
            severity: entry.severity,
            blame,
            calls: self.seen.call.into_iter().collect(),
            ids: Vec::new(),
            evidence: Vec::new(),
            cause: None,
        };
        if let Some(idx) = self.seen.call {
            draft.evidence.extend(self.model.call(idx).and_then(|call| number(self.model, call.row)));
        }
        if let Some(row) = self.row() {
            draft.evidence.push(row.n);
        }
        Some(draft)
    }

    /// Milliseconds in words.
    pub(super) fn ms(ns: u64) -> String {
        let ms = ns / 1_000_000;
        if ms < 10_000 { format!("{ms} ms") } else { format!("{}.{} s", ms / 1000, ms % 1000 / 100) }
    }
}

impl Draft {
    /// Who is at fault, where it is not the sender of the row.
    pub(super) fn blame(mut self, blame: Blame) -> Draft {
        self.blame = blame;
        self
    }

    /// Not worse than this.
    pub(super) fn at_most(mut self, severity: Severity) -> Draft {
        self.severity = self.severity.min(severity);
        self
    }

    /// Another call that it is about.
    pub(super) fn and_call(mut self, model: &Model, idx: CallIdx) -> Draft {
        if !self.calls.contains(&idx) {
            self.calls.push(idx);
            self.evidence.extend(model.call(idx).and_then(|call| number(model, call.row)));
        }
        self
    }

    /// An id that no call has.
    pub(super) fn and_id(mut self, id: String) -> Draft {
        self.ids.push(id);
        self
    }

    /// What it follows from.
    pub(super) fn because(mut self, cause: Option<usize>) -> Draft {
        self.cause = cause;
        self
    }

    /// A finding of its own. Returns its position.
    pub(super) fn find(self, case: &Case<'_>, judge: &mut Judge, sentence: String) -> usize {
        let mut evidence = self.evidence;
        evidence.sort_unstable();
        evidence.dedup();
        evidence.truncate(EVIDENCE_LIMIT);
        judge.findings.push(Finding {
            rule: self.entry.id,
            severity: self.severity,
            era: case.era(),
            blame: self.blame,
            calls: self.calls,
            ids: self.ids,
            evidence,
            sentence,
            remedy: self.entry.remedy,
            cause: self.cause,
        });
        judge.findings.len() - 1
    }

    /// Joins the finding of the same rule about the same subject, or begins it. `sentence` is told
    /// how often it has happened. Returns its position.
    pub(super) fn gather(
        self,
        case: &Case<'_>,
        judge: &mut Judge,
        subject: impl Hash,
        sentence: impl Fn(u32) -> String,
    ) -> usize {
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        let key = (self.entry.id, hasher.hash_one(subject));
        let Some((at, times)) = judge.groups.get_mut(&key) else {
            let at = self.find(case, judge, sentence(1));
            judge.groups.insert(key, (at, 1));
            return at;
        };
        *times = times.saturating_add(1);
        let (at, times) = (*at, *times);
        if let Some(finding) = judge.findings.get_mut(at) {
            finding.sentence = sentence(times);
            for idx in self.calls {
                if finding.calls.len() < EVIDENCE_LIMIT && !finding.calls.contains(&idx) {
                    finding.calls.push(idx);
                }
            }
            for n in self.evidence {
                if finding.evidence.len() < EVIDENCE_LIMIT && !finding.evidence.contains(&n) {
                    finding.evidence.push(n);
                }
            }
        }
        at
    }
}

fn number(model: &Model, row: RowIdx) -> Option<u64> {
    model.row(row).map(|row| row.n)
}

/// `3 lines` or `1 line`.
pub(super) fn count(times: u32, noun: &str) -> String {
    if times == 1 { format!("1 {noun}") } else { format!("{times} {noun}s") }
}

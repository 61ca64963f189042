//! What rules write to: findings, gathered where they repeat, and found again by call and session.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};

use super::case::{Case, number};
use super::catalogue::Entry;
use super::{Blame, Finding, Severity, causes};
use crate::event::Dir;
use crate::model::{CallIdx, Model, ScopeIdx};
use crate::spec::era::Era;

/// Event numbers kept as evidence of one finding. ours: enough to look at, little to keep.
pub(super) const EVIDENCE_LIMIT: usize = 32;

/// Everything found so far.
#[derive(Debug, Default)]
pub(super) struct Findings {
    all: Vec<Finding>,
    /// Findings that gather what repeats, by rule and subject: position, and how often.
    groups: HashMap<(&'static str, u64), (usize, u32)>,
    /// Findings about a call.
    by_call: HashMap<CallIdx, Vec<usize>>,
    /// The last finding of a rule in a process or session.
    by_scope: HashMap<(&'static str, ScopeIdx), usize>,
}

/// Where one rule says what it found.
pub(super) struct Out<'a> {
    /// The rule's words.
    pub entry: &'static Entry,
    /// Everything found so far.
    pub findings: &'a mut Findings,
}

/// A finding being made.
pub(super) struct Draft {
    entry: &'static Entry,
    severity: Severity,
    era: Option<Era>,
    blame: Blame,
    scope: ScopeIdx,
    calls: Vec<CallIdx>,
    ids: Vec<String>,
    evidence: Vec<u64>,
    cause: Option<usize>,
    is_silent: bool,
}

impl Findings {
    pub(super) fn all(&self) -> &[Finding] {
        &self.all
    }

    /// The latest finding of a rule about a call.
    pub(super) fn about(&self, rule: &str, call: CallIdx) -> Option<usize> {
        self.about_any(&[rule], call)
    }

    /// The latest finding of any of these rules about a call.
    pub(super) fn about_any(&self, rules: &[&str], call: CallIdx) -> Option<usize> {
        let mine = self.by_call.get(&call)?.iter().rev();
        mine.copied().find(|at| self.all.get(*at).is_some_and(|finding| rules.contains(&finding.rule)))
    }

    /// The latest finding of a rule in a process or session.
    pub(super) fn within(&self, rule: &'static str, scope: ScopeIdx) -> Option<usize> {
        self.by_scope.get(&(rule, scope)).copied()
    }

    /// A finding turns out to be another one, about the same calls.
    pub(super) fn turn(&mut self, at: usize, entry: &'static Entry, blame: Blame, sentence: String) {
        if let Some(finding) = self.all.get_mut(at) {
            finding.rule = entry.id;
            finding.severity = entry.severity;
            finding.remedy = entry.remedy;
            finding.blame = blame;
            finding.sentence = sentence;
        }
    }

    fn add(&mut self, finding: Finding, scope: ScopeIdx) -> usize {
        let at = self.all.len();
        for call in &finding.calls {
            self.by_call.entry(*call).or_default().push(at);
        }
        self.by_scope.insert((finding.rule, scope), at);
        let cause = finding.cause.or_else(|| causes::cause_of(self, &finding, scope));
        self.all.push(Finding { cause, ..finding });
        at
    }
}

impl Out<'_> {
    /// Begins a finding about the thing noticed: blamed on the sender of its row, with its call and
    /// both rows as evidence. Nothing comes of it when midwire itself had a hand in the call.
    pub(super) fn draft(&self, case: &Case<'_>) -> Draft {
        Draft::new(case, self.entry)
    }

    /// Begins a finding about a call that is not the one looked at: blamed on its sender, with its
    /// request as evidence. Nothing comes of it where the rule is not for the call's era.
    pub(super) fn about(&self, model: &Model, idx: CallIdx) -> Draft {
        Draft::about(model, self.entry, idx)
    }

    /// Says a finding as [`Out::draft`] begins it. Returns its position.
    pub(super) fn say(&mut self, case: &Case<'_>, sentence: impl Into<String>) -> Option<usize> {
        self.draft(case).say(self, sentence)
    }

    /// Says a finding that counts its repetitions: for the same subject there is one finding, and
    /// `sentence` is told how often it has happened.
    pub(super) fn gather(&mut self, case: &Case<'_>, subject: impl Hash, sentence: impl Fn(u32) -> String) {
        self.draft(case).gather(self, subject, sentence);
    }
}

/// The side that a direction comes from.
fn sender(dir: Option<Dir>) -> Blame {
    match dir {
        Some(Dir::C2s) => Blame::Client,
        Some(Dir::S2c | Dir::Stderr) => Blame::Server,
        _ => Blame::Unknown,
    }
}

impl Draft {
    fn about(model: &Model, entry: &'static Entry, idx: CallIdx) -> Draft {
        let call = model.call(idx);
        Draft {
            entry,
            severity: entry.severity,
            era: call.and_then(|call| call.era),
            blame: sender(call.map(|call| call.sender)),
            scope: call.map_or(ScopeIdx(0), |call| call.scope),
            calls: vec![idx],
            ids: Vec::new(),
            evidence: call.and_then(|call| number(model, call.row)).into_iter().collect(),
            cause: None,
            is_silent: call.is_none_or(|call| call.is_injected || !entry.applies(call.era, call.transport)),
        }
    }

    pub(super) fn new(case: &Case<'_>, entry: &'static Entry) -> Draft {
        let mut evidence = Vec::new();
        if let Some(idx) = case.seen.call {
            evidence.extend(case.model.call(idx).and_then(|call| number(case.model, call.row)));
        }
        evidence.extend(case.row().map(|row| row.n));
        Draft {
            entry,
            severity: entry.severity,
            era: case.era(),
            blame: sender(case.row().map(|row| row.dir)),
            scope: case.seen.scope,
            calls: case.seen.call.into_iter().collect(),
            ids: Vec::new(),
            evidence,
            cause: None,
            is_silent: case.is_injected(),
        }
    }

    /// About no call yet: those that it is about are added.
    pub(super) fn about_nothing(mut self) -> Draft {
        self.calls.clear();
        self
    }

    /// Who is at fault, where it is not the sender of the row.
    pub(super) fn blame(mut self, blame: Blame) -> Draft {
        self.blame = blame;
        self
    }

    /// The era that it is judged under, where that is not the era of the message.
    pub(super) fn under(mut self, era: Era) -> Draft {
        self.era = Some(era);
        self
    }

    /// Not worse than this.
    pub(super) fn at_most(mut self, severity: Severity) -> Draft {
        self.severity = self.severity.min(severity);
        self
    }

    /// Another call that it is about, with the row of its request as evidence.
    pub(super) fn and_call(mut self, model: &Model, idx: CallIdx) -> Draft {
        if !self.calls.contains(&idx) {
            self.calls.push(idx);
            self.evidence.extend(model.call(idx).and_then(|call| number(model, call.row)));
            self.is_silent |= model.call(idx).is_some_and(|call| call.is_injected);
        }
        self
    }

    /// An id that no call has.
    pub(super) fn and_id(mut self, id: String) -> Draft {
        self.ids.push(id);
        self
    }

    /// Another event that proves it.
    pub(super) fn and_event(mut self, n: u64) -> Draft {
        self.evidence.push(n);
        self
    }

    /// What it follows from.
    pub(super) fn because(mut self, cause: Option<usize>) -> Draft {
        self.cause = cause;
        self
    }

    /// A finding of its own. Returns its position.
    pub(super) fn say(self, out: &mut Out<'_>, sentence: impl Into<String>) -> Option<usize> {
        self.finish(out.findings, sentence.into())
    }

    /// Joins the finding of the same rule about the same subject, or begins it. `sentence` is told
    /// how often it has happened. Returns its position.
    pub(super) fn gather(
        self,
        out: &mut Out<'_>,
        subject: impl Hash,
        sentence: impl Fn(u32) -> String,
    ) -> Option<usize> {
        self.join(out.findings, subject, sentence)
    }

    pub(super) fn finish(self, findings: &mut Findings, sentence: String) -> Option<usize> {
        if self.is_silent {
            return None;
        }
        let mut evidence = self.evidence;
        evidence.sort_unstable();
        evidence.dedup();
        evidence.truncate(EVIDENCE_LIMIT);
        let finding = Finding {
            rule: self.entry.id,
            severity: self.severity,
            era: self.era,
            blame: self.blame,
            calls: self.calls,
            ids: self.ids,
            evidence,
            sentence,
            remedy: self.entry.remedy,
            cause: self.cause,
        };
        Some(findings.add(finding, self.scope))
    }

    pub(super) fn join(
        self,
        findings: &mut Findings,
        subject: impl Hash,
        sentence: impl Fn(u32) -> String,
    ) -> Option<usize> {
        if self.is_silent {
            return None;
        }
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        let key = (self.entry.id, hasher.hash_one(subject));
        let Some((at, times)) = findings.groups.get_mut(&key) else {
            let at = self.finish(findings, sentence(1))?;
            findings.groups.insert(key, (at, 1));
            return Some(at);
        };
        *times = times.saturating_add(1);
        let (at, times) = (*at, *times);
        let finding = findings.all.get_mut(at)?;
        finding.sentence = sentence(times);
        for idx in self.calls {
            let about = findings.by_call.entry(idx).or_default();
            if !about.contains(&at) {
                about.push(at);
            }
            if finding.calls.len() < EVIDENCE_LIMIT && !finding.calls.contains(&idx) {
                finding.calls.push(idx);
                findings.by_call.entry(idx).or_default().push(at);
            }
        }
        for n in self.evidence {
            let place = finding.evidence.binary_search(&n);
            if let (Err(place), true) = (place, finding.evidence.len() < EVIDENCE_LIMIT) {
                finding.evidence.insert(place, n);
            }
        }
        Some(at)
    }
}

//! What was found in recordings, in the forms that people and other programs read.
//!
//! A [`Report`] is made once of a model and its findings and holds all that any form needs, so the
//! model can go. The same recording gives the same bytes. Text from the wire is made harmless
//! before it is shown: a control character never reaches a terminal from here.

mod budget;
mod expected;
mod harmless;
mod json;
mod junit;
mod lines;
mod markdown;
mod rulebook;
mod sarif;
mod select;
mod text;
mod undecided;

pub use budget::Budget;
pub use expected::Expected;
pub use harmless::harmless;
pub use json::json;
pub use junit::junit;
pub use lines::Lines;
pub use markdown::markdown;
pub use rulebook::{rule_list, rule_page, rules_json};
pub use sarif::sarif;
pub use select::{FailOn, Selection};
pub use text::text;

use crate::model::{Call, CallIdx, Capture, Counts, Model};
use crate::rules::undecided::Undecided;
use crate::rules::{Blame, Finding, Judge, Severity, catalogue};
use crate::spec::era::Era;

/// What is told, and what of it makes a check fail.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The rules whose findings are told.
    pub selection: Selection,
    /// The findings that make a check fail.
    pub fail_on: FailOn,
    /// The user's own limits.
    pub budget: Budget,
    /// Tell also which rules could not be decided.
    pub undecided: bool,
}

/// Several recordings, judged.
#[derive(Debug, Clone, Default)]
pub struct Checked {
    /// Those that could be read, in the order given.
    pub reports: Vec<Report>,
    /// Those that could not.
    pub unread: Vec<Unread>,
    /// It is told which rules could not be decided.
    pub tells_undecided: bool,
}

/// A recording that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    /// As the user named it.
    pub trace: String,
    /// Why, in one line.
    pub reason: String,
}

/// One recording, judged: everything that is told about it.
#[derive(Debug, Clone)]
pub struct Report {
    /// As the user named it.
    pub trace: String,
    /// How much it holds.
    pub counts: Counts,
    /// How it stands.
    pub capture: Capture,
    /// What is told, in the order it was found; budgets last.
    pub items: Vec<Item>,
    /// What was expected beside the rules, in the order of the recipe.
    pub expected: Vec<Expected>,
    /// The rules that could not be decided, where that is told.
    pub undecided: Vec<Undecided>,
    /// Where its events stand in its files.
    pub lines: Lines,
}

/// One finding, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Id in the catalogue, such as `CAN-05`, or the name of a budget.
    pub rule: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// The era it was judged under, where that is known.
    pub era: Option<Era>,
    /// Who is at fault.
    pub blame: Blame,
    /// Ids that it is about, as JSON, each once and in order.
    pub subjects: Vec<String>,
    /// The requests that it is about by method and target: what stays the same between runs.
    pub requests: Vec<String>,
    /// Numbers of the events that prove it, in order; the first ones when there are many.
    pub evidence: Vec<u64>,
    /// What happened, in one sentence without a full stop.
    pub message: String,
    /// What to do about it.
    pub remedy: &'static str,
    /// Position in the same report of the finding that this one follows from.
    pub caused_by: Option<usize>,
    /// It makes a check fail.
    pub fails: bool,
}

impl Report {
    /// Puts what was found in a recording into words. Findings of rules that are not told are left
    /// out; what followed from one of them then follows from what that one followed from.
    #[must_use]
    pub fn new(trace: String, model: &Model, judge: &Judge, options: &Options, lines: Lines) -> Report {
        let mut items = told(model, judge.findings(), options);
        items.extend(options.budget.exceeded(model));
        let mut undecided = if options.undecided { judge.undecided(model) } else { Vec::new() };
        undecided.retain(|one| options.selection.has(one.rule));
        let overview = model.overview();
        let (counts, capture) = (overview.counts, overview.capture);
        Report { trace, counts, capture, items, expected: Vec::new(), undecided, lines }
    }

    /// What a person calls it.
    fn title(&self) -> &str {
        if self.trace == "-" { "standard input" } else { &self.trace }
    }

    /// Whether anything in it makes a check fail.
    #[must_use]
    pub fn fails(&self) -> bool {
        self.items.iter().any(|item| item.fails)
    }

    /// How many findings of this severity it tells.
    fn count(&self, severity: Severity) -> usize {
        self.items.iter().filter(|item| item.severity == severity).count()
    }

    /// Every finding once, with its depth: what follows from a finding stands below it.
    fn tree(&self) -> Vec<(usize, &Item)> {
        let mut follows: Vec<Vec<usize>> = vec![Vec::new(); self.items.len()];
        for (at, item) in self.items.iter().enumerate() {
            if let Some(of) = item.caused_by.and_then(|cause| follows.get_mut(cause)) {
                of.push(at);
            }
        }
        let (mut order, mut is_told) = (Vec::new(), vec![false; self.items.len()]);
        let roots =
            (0..self.items.len()).filter(|at| self.items.get(*at).is_some_and(|i| i.caused_by.is_none()));
        // What hangs in a ring, or under a finding that is not there, has no root and comes last.
        for root in roots.chain(0..self.items.len()) {
            let mut waiting = vec![(0, root)];
            while let Some((depth, at)) = waiting.pop() {
                let (Some(item), Some(told)) = (self.items.get(at), is_told.get_mut(at)) else { continue };
                if std::mem::replace(told, true) {
                    continue;
                }
                order.push((depth, item));
                waiting.extend(follows.get(at).into_iter().flatten().rev().map(|next| (depth + 1, *next)));
            }
        }
        order
    }
}

impl Checked {
    /// Whether anything that was read makes a check fail.
    #[must_use]
    pub fn fails(&self) -> bool {
        self.reports.iter().any(Report::fails)
    }

    /// `1 error, 2 warnings, 0 hints`
    fn counted(&self) -> String {
        counted(|severity| self.reports.iter().map(|report| report.count(severity)).sum())
    }
}

impl Item {
    fn new(model: &Model, finding: &Finding, caused_by: Option<usize>, fails: bool) -> Item {
        let (mut subjects, requests) = about(model, &finding.calls);
        for id in &finding.ids {
            add(&mut subjects, id.clone());
        }
        Item {
            rule: finding.rule,
            severity: finding.severity,
            era: finding.era,
            blame: finding.blame,
            subjects,
            requests,
            evidence: finding.evidence.clone(),
            message: finding.sentence.clone(),
            remedy: finding.remedy,
            caused_by,
            fails,
        }
    }

    /// The era in words.
    fn era_text(&self) -> &'static str {
        self.era.map_or("era not known", Era::as_str)
    }
}

/// The findings that are told, in words.
fn told(model: &Model, findings: &[Finding], options: &Options) -> Vec<Item> {
    let positions = select::positions(findings, &options.selection);
    let told = findings.iter().zip(&positions).filter(|(_, position)| position.is_some());
    let item = |(finding, _): (&Finding, _)| {
        let fails = options.fail_on.has(finding.rule, finding.severity);
        Item::new(model, finding, select::cause(finding, findings, &positions), fails)
    };
    told.map(item).collect()
}

/// A rule of the catalogue or a budget, in one sentence.
fn rule_text(rule: &str) -> &'static str {
    if rule == expected::EXPECTATION {
        return expected::RULE_TEXT;
    }
    catalogue::find(rule).map_or_else(|| Budget::rule_text(rule), |entry| entry.rule)
}

/// Ids of calls as JSON, and the calls by method and target, each once.
fn about(model: &Model, calls: &[CallIdx]) -> (Vec<String>, Vec<String>) {
    let (mut subjects, mut requests) = (Vec::new(), Vec::new());
    for call in calls.iter().filter_map(|idx| model.call(*idx)) {
        add(&mut subjects, call.id.to_string());
        add(&mut requests, request(model, call));
    }
    (subjects, requests)
}

/// A request by method and target.
fn request(model: &Model, call: &Call) -> String {
    let method = model.text(call.method);
    call.target.map_or_else(|| method.to_owned(), |target| format!("{method} {}", model.text(target)))
}

/// Adds what is not there yet.
fn add(list: &mut Vec<String>, text: String) {
    if !list.contains(&text) {
        list.push(text);
    }
}

/// `1 error, 2 warnings, 0 hints`
fn counted(of: impl Fn(Severity) -> usize) -> String {
    let words = [(Severity::Error, "error"), (Severity::Warning, "warning"), (Severity::Hint, "hint")];
    words.map(|(severity, noun)| plural(of(severity), noun)).join(", ")
}

/// `3 events` or `1 event`
fn plural(number: impl TryInto<u64>, noun: &str) -> String {
    let number: u64 = number.try_into().unwrap_or(u64::MAX);
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

#[cfg(test)]
mod tests;

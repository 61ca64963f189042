//! What a tap has recorded of a scene, understood and judged: all that a statement may rest on.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context as _, ensure};
use serde_json::Value;

use super::Shown;
use crate::event::{Dir, Event, What};
use crate::machine::policy::Policy;
use crate::model::{Call, CallIdx, MarkKind, Model, RowKind};
use crate::rules::{Judge, Severity};
use crate::trace::{Ending, Recording};
use crate::wire::jsonrpc::Kind;

/// A recording from its first event to its last.
pub(super) struct Trace {
    pub(super) model: Model,
    pub(super) events: Vec<Event>,
    /// Each error that the rules found: the rule, and its sentence.
    errors: Vec<(&'static str, String)>,
    /// The `result` of each answer, as it was sent.
    results: HashMap<CallIdx, Vec<String>>,
}

impl Trace {
    /// Reads a recording that has ended.
    ///
    /// # Errors
    /// When it cannot be read, or says itself that something is missing.
    pub(super) fn read(path: &Path) -> anyhow::Result<Trace> {
        let mut recording = Recording::open(path)?;
        let (mut model, mut judge) = (Model::new(), Judge::with_policy(Policy::default()));
        let (mut events, mut results) = (Vec::new(), HashMap::<CallIdx, Vec<String>>::new());
        while let Some((event, _)) = recording.next()? {
            model.fold(&event, u32::try_from(events.len()).context("a recording without end")?);
            judge.look(&model);
            for message in model.messages().iter().filter(|message| message.kind == Kind::Result) {
                let result = message.content.as_ref().and_then(|content| content.value().get("result"));
                if let (Some(result), Some(call)) = (result, model.row(message.row).and_then(|row| row.call))
                {
                    results.entry(call).or_default().push(result.raw().to_owned());
                }
            }
            events.push(event);
        }
        let is_whole = recording.ending() == Ending::Clean { is_complete: Some(true) };
        ensure!(is_whole, "the recording is not whole: {:?}", recording.ending());
        let errors = judge.findings().iter().filter(|finding| finding.severity == Severity::Error);
        let errors = errors.map(|finding| (finding.rule, finding.sentence.clone())).collect();
        Ok(Trace { model, events, errors, results })
    }

    /// The calls of a method, and of a tool or another target where one is named, in order.
    pub(super) fn calls(&self, method: &str, target: Option<&str>) -> Vec<(CallIdx, &Call)> {
        let is_wanted = |call: &Call| {
            let named = call.target.map(|name| self.model.text(name));
            self.model.text(call.method) == method && (target.is_none() || named == target)
        };
        let numbered = (0..).map(CallIdx).zip(self.model.calls());
        numbered.filter(|(_, call)| is_wanted(call)).collect()
    }

    /// The calls of a tool, in order.
    pub(super) fn tool(&self, name: &str) -> Vec<(CallIdx, &Call)> {
        self.calls("tools/call", Some(name))
    }

    /// The one call of a tool.
    ///
    /// # Errors
    /// When there is none, or there are several.
    pub(super) fn only(&self, tool: &str) -> Result<(CallIdx, &Call), String> {
        match self.tool(tool).as_slice() {
            [one] => Ok(*one),
            other => Err(format!("{} calls of {tool} passed, not one", other.len())),
        }
    }

    /// The results with which a call was answered, as they were sent.
    pub(super) fn results(&self, call: CallIdx) -> &[String] {
        self.results.get(&call).map_or(&[], Vec::as_slice)
    }

    /// The one result of a call.
    ///
    /// # Errors
    /// When it was not answered by exactly one.
    pub(super) fn result(&self, call: CallIdx) -> Result<&str, String> {
        match self.results(call) {
            [one] => Ok(one),
            other => Err(format!("a call got {} results", other.len())),
        }
    }

    /// A member of the structured content of a call's one result.
    ///
    /// # Errors
    /// As [`Trace::result`], and when there is none.
    pub(super) fn content(&self, call: CallIdx, name: &str) -> Result<Value, String> {
        let result: Value = serde_json::from_str(self.result(call)?).map_err(|error| error.to_string())?;
        let found = result["structuredContent"].get(name).cloned();
        found.ok_or_else(|| format!("a result without {name}"))
    }

    /// What was shown, unless the rules have found an error that the scene did not bring about itself.
    ///
    /// # Errors
    /// The first such error, in words; else what speaks against the statement.
    pub(super) fn unless_wrong(&self, shown: Shown, brings: &[&str]) -> Shown {
        let evidence = shown?;
        match self.errors.iter().find(|(rule, _)| !brings.contains(rule)) {
            Some((rule, sentence)) => Err(format!("{rule}: {sentence}")),
            None => Ok(evidence),
        }
    }

    /// Messages of the server that answer something.
    pub(super) fn answers(&self) -> usize {
        let rows = self.model.rows().iter().filter(|row| row.dir == Dir::S2c);
        rows.filter(|row| matches!(row.kind, RowKind::Result | RowKind::Error | RowKind::Invalid)).count()
    }

    /// Cancels that the client has sent as messages.
    pub(super) fn cancels(&self) -> usize {
        let rows = self.model.rows().iter().filter(|row| row.dir == Dir::C2s);
        rows.filter(|row| row.kind == RowKind::Cancelled).count()
    }

    /// A header field that some request has.
    pub(super) fn has_field(&self, name: &str) -> bool {
        self.events.iter().any(|event| match &event.what {
            What::Request(head) => head.headers.get(name).is_some(),
            _ => false,
        })
    }
}

/// As [`Trace::unless_wrong`], for several recordings.
pub(super) fn unless_wrong(traces: &[Trace], shown: Shown, brings: &[&str]) -> Shown {
    traces.iter().fold(shown, |shown, trace| trace.unless_wrong(shown, brings))
}

/// A call has an answer on its lane, in time or late.
pub(super) fn has_answer(call: &Call) -> bool {
    let is_answer =
        |kind| matches!(kind, MarkKind::Result | MarkKind::Error | MarkKind::InputRequired | MarkKind::Late);
    call.after.late_answers > 0 || call.marks.iter().any(|mark| is_answer(mark.kind))
}

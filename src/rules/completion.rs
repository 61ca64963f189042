//! Completion (CMP-01..03).

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use crate::rules::Severity;
use crate::rules::book::{Book, Look, On};
use crate::rules::case::{Case, short};
use crate::rules::findings::Out;
use crate::rules::listing::{say, string_fault};
use crate::time::Mono;
use crate::wire::json::Value;

/// Values of one answer, at most.
const VALUES: usize = 100;

/// Requests for one argument in one second that are let pass. ours: twice as many as a person types.
const PER_SECOND: usize = 10;

/// Arguments whose requests are counted; of more, all are forgotten. ours.
const ARGUMENTS: usize = 256;

pub(super) fn rules(book: &mut Book) {
    book.rule("CMP-01", &[On::ResultOf("completion/complete")], few);
    book.rule("CMP-02", &[On::RequestOf("completion/complete")], well_asked);
    book.rule("CMP-03", &[On::RequestOf("completion/complete")], Pace::default());
}

fn few(case: &Case<'_>, out: &mut Out<'_>) {
    let values = case.result().and_then(|result| result.at(&["completion", "values"]));
    let count = values.filter(|values| values.is_array()).map_or(0, Value::len);
    if count > VALUES {
        say(case, out, Severity::Error, &[format!("{count} values came, and {VALUES} are the most")]);
    }
}

fn well_asked(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(params) = case.params() else { return };
    let mut faults = Vec::new();
    faults.extend(match params.get("ref") {
        Some(target) if target.is_object() => reference_fault(target),
        Some(target) => Some(format!("ref is {}, not an object", short(target.raw()))),
        None => Some("ref is missing".to_owned()),
    });
    match params.get("argument") {
        Some(argument) if argument.is_object() => {
            let parts = ["name", "value"].into_iter().filter_map(|member| string_fault(argument, member));
            faults.extend(parts.map(|fault| format!("argument: {fault}")));
        }
        Some(argument) => faults.push(format!("argument is {}, not an object", short(argument.raw()))),
        None => faults.push("argument is missing".to_owned()),
    }
    say(case, out, Severity::Error, &faults);
}

fn reference_fault(target: Value<'_>) -> Option<String> {
    let fault = match target.get("type") {
        Some(kind) if kind.is_text("ref/prompt") => string_fault(target, "name"),
        Some(kind) if kind.is_text("ref/resource") => string_fault(target, "uri"),
        Some(kind) => Some(format!("type is {}, neither ref/prompt nor ref/resource", short(kind.raw()))),
        None => Some("type is missing".to_owned()),
    };
    fault.map(|fault| format!("ref: {fault}"))
}

/// When completions of each argument were asked for.
#[derive(Default)]
struct Pace {
    asked: HashMap<u64, VecDeque<Mono>>,
}

impl Look for Pace {
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        let Some(params) = case.params() else { return };
        let part = |path: &[&str]| params.at(path).map(Value::raw);
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        let argument = (case.seen.scope, case.seen.conn, part(&["ref"]), part(&["argument", "name"]));
        let key = hasher.hash_one(argument);
        if self.asked.len() >= ARGUMENTS && !self.asked.contains_key(&key) {
            self.asked.clear();
        }
        let asked = self.asked.entry(key).or_default();
        asked.push_back(case.seen.at);
        if asked.len() <= PER_SECOND {
            return;
        }
        let Some(first) = asked.pop_front() else { return };
        if case.seen.at.ns_since(first) < 1_000_000_000 {
            let name = params.at(&["argument", "name"]).and_then(Value::text).map(|name| short(&name));
            let name = name.unwrap_or_else(|| "one".to_owned());
            out.gather(case, key, |times| {
                let often = if times == 1 { String::new() } else { format!("; {times} requests came too soon") };
                format!("completions of the argument {name} were asked for more than {PER_SECOND} times within a second{often}")
            });
        }
    }
}

//! Requests that are refused because the client lacks a capability (MET-13..16).

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use crate::model::{CallIdx, ScopeIdx};
use crate::rules::Severity;
use crate::rules::book::{Book, Look, On};
use crate::rules::case::{Case, short};
use crate::rules::findings::Out;
use crate::spec::codes::MISSING_REQUIRED_CLIENT_CAPABILITY;
use crate::spec::meta;
use crate::wire::json::Value;

/// Levels of capabilities that are compared; the schema has three.
const DEPTH: u32 = 8;

/// Refused requests that are remembered in one process or session. ours: a retry comes soon.
const REFUSED_LIMIT: usize = 16;

pub(super) fn rules(book: &mut Book) {
    book.rule("MET-13", &[On::Error], no_list);
    book.rule("MET-14", &[On::Error], other_status);
    book.rule("MET-15", &[On::Error], declared_all);
    book.rule("MET-16", &[On::Error, On::Request], Retries::default());
}

fn is_refusal(case: &Case<'_>) -> bool {
    case.code() == Some(MISSING_REQUIRED_CLIENT_CAPABILITY) && case.is_from_server()
}

fn required<'a>(case: &Case<'a>) -> Option<Value<'a>> {
    case.error()?.at(&["data", "requiredCapabilities"])
}

fn no_list(case: &Case<'_>, out: &mut Out<'_>) {
    if is_refusal(case) && !required(case).is_some_and(Value::is_object) {
        let subject = case.subject();
        out.say(case, format!("{subject} lacks a capability, and no requiredCapabilities say which"));
    }
}

fn other_status(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(exchange) = case.exchange().filter(|_| is_refusal(case)) else { return };
    let Some(status) = exchange.status().filter(|status| *status != 400) else { return };
    // What has begun as an event stream has its status.
    let severity = if exchange.is_event_stream() { Severity::Warning } else { Severity::Error };
    let sentence = format!(
        "{} was refused with {MISSING_REQUIRED_CLIENT_CAPABILITY} and status {status}",
        case.subject()
    );
    out.draft(case).at_most(severity).say(out, sentence);
}

/// Everything that is required is declared.
fn is_declared(required: Value<'_>, declared: Option<Value<'_>>, depth: u32) -> bool {
    let Some(declared) = declared.filter(|_| depth < DEPTH) else { return false };
    required.members().all(|(name, inner)| {
        // An empty elicitation means forms.
        let is_form = depth == 1 && name == "form" && declared.is_object() && declared.is_empty();
        is_form || is_declared(inner, declared.get(&name), depth + 1)
    })
}

fn declared_all(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(required) = required(case).filter(|required| is_refusal(case) && !required.is_empty()) else {
        return;
    };
    if required.is_object() && is_declared(required, case.client_capabilities(), 0) {
        let sentence =
            format!("{} was refused for {}, which it declares", case.subject(), short(required.raw()));
        out.say(case, sentence);
    }
}

/// A request that was refused: what it asked, and what its client declared.
struct Refused {
    asked: u64,
    declared: u64,
    call: CallIdx,
}

/// Requests sent again after a refusal, as they were.
#[derive(Default)]
struct Retries {
    refused: HashMap<ScopeIdx, VecDeque<Refused>>,
}

/// Equal for requests of the same method and parameters, and for the same capabilities.
fn fingerprint(request: Value<'_>) -> Option<(u64, u64)> {
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    let params = request.get("params")?;
    let mut asked = hasher.hash_one(request.get("method")?.raw());
    // Members may come in any order.
    for (name, value) in params.members().filter(|(name, _)| name != "_meta") {
        asked = asked.wrapping_add(hasher.hash_one((name, value.raw())));
    }
    let declared = params.at(&["_meta", meta::CLIENT_CAPABILITIES])?;
    Some((asked, hasher.hash_one(declared.raw())))
}

impl Look for Retries {
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        if case.error().is_some() {
            if let Some(call) = case.seen.call.filter(|_| is_refusal(case))
                && let Some((asked, declared)) = case.request().and_then(fingerprint)
            {
                let refused = self.refused.entry(case.seen.scope).or_default();
                if refused.len() == REFUSED_LIMIT {
                    refused.pop_front();
                }
                refused.push_back(Refused { asked, declared, call });
            }
            return;
        }
        let Some(refused) = self.refused.get(&case.seen.scope).filter(|_| case.is_from_client()) else {
            return;
        };
        let Some((asked, declared)) = case.body().and_then(fingerprint) else { return };
        let before = refused.iter().rev().find(|one| one.asked == asked && one.declared == declared);
        if let Some(before) = before {
            let sentence =
                format!("{} repeats {} and declares no more", case.subject(), case.name(before.call));
            out.draft(case).and_call(case.model, before.call).say(out, sentence);
        }
    }
}

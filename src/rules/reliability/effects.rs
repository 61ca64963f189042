//! Idempotency keys, by the contracts of tools: one key, one intent, one effect, one stored result
//! (REL-02..05, REL-10).

use std::collections::VecDeque;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use hashbrown::HashMap;
use serde_json::Value as Json;

use crate::machine::fingerprint::{compact, fingerprint};
use crate::machine::policy::contract::{Contract, Pointer};
use crate::machine::retry::{Class, classify};
use crate::model::{Call, CallIdx, CallState, Name};
use crate::rules::Blame;
use crate::rules::book::{Book, Look, On};
use crate::rules::case::{Case, short};
use crate::rules::findings::Out;
use crate::time::{Mono, Span};

/// Keys that are remembered; the oldest go first. ours: a day of orders.
const KEYS: usize = 65_536;

pub(super) fn rules(book: &mut Book) {
    let when = [On::RequestOf("tools/call"), On::ResultOf("tools/call")];
    for (id, rule) in [
        ("REL-02", overlapping as fn(&Case<'_>, &Reuse<'_>, &mut Out<'_>)),
        ("REL-03", forgotten),
        ("REL-04", changed),
        ("REL-05", accepted),
        ("REL-10", two_intents),
    ] {
        book.rule(
            id,
            &when,
            Keys { used: HashMap::new(), order: VecDeque::new(), open: HashMap::new(), rule },
        );
    }
}

/// Keys as they were used.
struct Keys {
    used: HashMap<(Name, String), Used>,
    order: VecDeque<(Name, String)>,
    /// The key of each open call.
    open: HashMap<CallIdx, (Name, String)>,
    rule: fn(&Case<'_>, &Reuse<'_>, &mut Out<'_>),
}

/// One key.
struct Used {
    /// The first call with it, and what it asked for.
    first: CallIdx,
    fingerprint: String,
    /// The first result that was given for it.
    stored: Option<Stored>,
}

/// A result.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stored {
    call: CallIdx,
    at: Mono,
    /// Which effect it tells of.
    receipt: Option<String>,
    /// All but what may differ, hashed.
    body: u64,
}

/// A key that is used again.
struct Reuse<'a> {
    idx: CallIdx,
    call: &'a Call,
    key: &'a str,
    first: CallIdx,
    /// Method, target and arguments are those of the first.
    is_same: bool,
    /// The first result, and the one now; only where both are successes.
    results: Option<(&'a Stored, &'a Stored)>,
    /// It was answered now, by a success.
    is_success: bool,
}

impl Look for Keys {
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        if case.policy.contracts.is_empty() {
            return;
        }
        let (Some(idx), Some(call)) = (case.seen.call, case.call()) else { return };
        let Some(contract) = case.policy.contract(&case.model.subject(call)) else { return };
        if case.result().is_some() {
            self.answered(case, out, idx, call, contract);
        } else {
            self.asked(case, out, idx, call, contract);
        }
    }
}

impl Keys {
    fn asked(&mut self, case: &Case<'_>, out: &mut Out<'_>, idx: CallIdx, call: &Call, contract: &Contract) {
        let Some(arguments) = case.request_params().and_then(|params| params.get("arguments")) else {
            return;
        };
        let (Some(pointer), Some(tool)) = (&contract.key, call.target) else { return };
        let Ok(values) = serde_json::from_str::<Json>(arguments.raw()) else { return };
        let key = pointer.find(&values).and_then(Json::as_str);
        let is_keyed = classify(Some(contract), &values).0 == Class::Conditional;
        let Some(key) = key.filter(|_| is_keyed) else { return };
        let name = case.model.text(tool);
        let Ok(fingerprint) = fingerprint(None, name, arguments.raw(), Some(pointer)) else { return };
        let place = (tool, key.to_owned());
        self.open.insert(idx, place.clone());
        let Some(used) = self.used.get(&place) else {
            self.used.insert(place.clone(), Used { first: idx, fingerprint, stored: None });
            self.order.push_back(place);
            if self.order.len() > KEYS
                && let Some(oldest) = self.order.pop_front()
            {
                self.used.remove(&oldest);
            }
            return;
        };
        let is_same = used.fingerprint == fingerprint;
        let reuse = Reuse { idx, call, key, first: used.first, is_same, results: None, is_success: false };
        (self.rule)(case, &reuse, out);
        if !is_same {
            // What the first call means stays what the key means; this one is judged when answered.
            self.open.remove(&idx);
            self.open.insert(idx, (tool, format!("{key}\0{fingerprint}")));
        }
    }

    fn answered(
        &mut self,
        case: &Case<'_>,
        out: &mut Out<'_>,
        idx: CallIdx,
        call: &Call,
        contract: &Contract,
    ) {
        let Some((tool, key)) = self.open.remove(&idx) else { return };
        if call.state != CallState::AnsweredOk || call.is_tool_error || call.is_task {
            return;
        }
        let (key, is_same) = match key.split_once('\0') {
            Some((key, _)) => (key.to_owned(), false),
            None => (key, true),
        };
        let Some(result) = case.result() else { return };
        let Some(used) = self.used.get_mut(&(tool, key.clone())) else { return };
        let Some(stored) = stored(idx, case.seen.at, result.raw(), contract) else { return };
        let results = used.stored.as_ref().filter(|_| is_same).map(|first| (first, &stored));
        let reuse = Reuse { idx, call, key: &key, first: used.first, is_same, results, is_success: true };
        if used.first != idx || results.is_some() {
            (self.rule)(case, &reuse, out);
        }
        if is_same && used.stored.is_none() {
            used.stored = Some(stored);
        }
    }
}

fn stored(call: CallIdx, at: Mono, result: &str, contract: &Contract) -> Option<Stored> {
    let mut values: Json = serde_json::from_str(result).ok()?;
    let receipt = contract.receipt.as_ref().and_then(|pointer| pointer.find(&values)).map(Json::to_string);
    for pointer in &contract.volatile {
        remove(&mut values, pointer);
    }
    if let Some(members) = values.as_object_mut() {
        members.remove("_meta");
    }
    let text = compact(&values.to_string(), None).ok()?;
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    Some(Stored { call, at, receipt, body: hasher.hash_one(text) })
}

fn remove(values: &mut Json, pointer: &Pointer) {
    let Some((parent, name)) = pointer.as_str().rsplit_once('/') else { return };
    let name = name.replace("~1", "/").replace("~0", "~");
    match values.pointer_mut(parent) {
        Some(Json::Object(members)) => _ = members.remove(&name),
        Some(Json::Array(items)) => {
            if let Some(item) = name.parse::<usize>().ok().and_then(|at| items.get_mut(at)) {
                *item = Json::Null;
            }
        }
        _ => {}
    }
}

/// Two receipts for one key: which ones, and the call of the first.
fn two_receipts<'a>(reuse: &Reuse<'a>) -> Option<(&'a Stored, &'a str, &'a str)> {
    let (first, now) = reuse.results?;
    let (before, after) = (first.receipt.as_deref()?, now.receipt.as_deref()?);
    (before != after).then_some((first, before, after))
}

/// Whether the two calls of a key were open at the same time.
fn is_overlapping(case: &Case<'_>, reuse: &Reuse<'_>, first: &Stored) -> bool {
    let other = case.model.call(first.call);
    reuse.call.started < first.at && other.is_some_and(|other| other.started < case.seen.at)
}

fn overlapping(case: &Case<'_>, reuse: &Reuse<'_>, out: &mut Out<'_>) {
    let Some((first, before, after)) = two_receipts(reuse) else { return };
    if is_overlapping(case, reuse, first) {
        let sentence = format!(
            "{} and {} ran at once with the key {} and took effect twice: {} and {}",
            case.name(first.call),
            case.name(reuse.idx),
            short(reuse.key),
            short(before),
            short(after)
        );
        out.draft(case).and_call(case.model, first.call).blame(Blame::Server).say(out, sentence);
    }
}

fn forgotten(case: &Case<'_>, reuse: &Reuse<'_>, out: &mut Out<'_>) {
    let Some((first, before, after)) = two_receipts(reuse) else { return };
    if is_overlapping(case, reuse, first) {
        return;
    }
    let other = case.model.call(first.call);
    let place = match other {
        Some(other) if other.scope != reuse.call.scope && other.stream.is_none() => ", in another process",
        Some(other) if other.conn != reuse.call.conn => ", on another connection",
        _ => "",
    };
    let sentence = format!(
        "the key {} of {} was forgotten: {} took effect again {} later{place}: {} and {}",
        short(reuse.key),
        case.name(first.call),
        case.name(reuse.idx),
        Span(case.seen.at.ns_since(first.at)),
        short(before),
        short(after)
    );
    out.draft(case).and_call(case.model, first.call).blame(Blame::Server).say(out, sentence);
}

fn changed(case: &Case<'_>, reuse: &Reuse<'_>, out: &mut Out<'_>) {
    let Some((first, now)) = reuse.results else { return };
    let is_replay = first.receipt.is_some() && first.receipt == now.receipt;
    if is_replay && first.body != now.body {
        let sentence = format!(
            "{} brought the effect of {} again for the key {}, with another result",
            case.name(reuse.idx),
            case.name(first.call),
            short(reuse.key)
        );
        out.draft(case).and_call(case.model, first.call).blame(Blame::Server).say(out, sentence);
    }
}

fn accepted(case: &Case<'_>, reuse: &Reuse<'_>, out: &mut Out<'_>) {
    if reuse.is_same || !reuse.is_success {
        return;
    }
    let sentence = format!(
        "{} was done with the key {}, which {} had used for something else",
        case.name(reuse.idx),
        short(reuse.key),
        case.name(reuse.first)
    );
    out.draft(case).and_call(case.model, reuse.first).blame(Blame::Server).say(out, sentence);
}

fn two_intents(case: &Case<'_>, reuse: &Reuse<'_>, out: &mut Out<'_>) {
    if reuse.is_same || reuse.is_success {
        return;
    }
    let sentence = format!(
        "{} uses the key {}, which {} had used for something else",
        case.name(reuse.idx),
        short(reuse.key),
        case.name(reuse.first)
    );
    out.draft(case).and_call(case.model, reuse.first).blame(Blame::Client).say(out, sentence);
}

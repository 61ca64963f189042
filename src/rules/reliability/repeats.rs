//! Calls made again after their outcome was lost (REL-01, REL-09, RTY-01, RTY-02).

use std::collections::VecDeque;

use hashbrown::HashMap;
use serde_json::Value as Json;

use crate::event::Dir;
use crate::machine::policy::contract::SideEffect;
use crate::machine::retry::{Class, Why, classify};
use crate::model::{Call, CallIdx, CallState, Name, Sight};
use crate::rules::book::{Book, Look, On, SightKind};
use crate::rules::case::{Case, count};
use crate::rules::findings::{Draft, Out};
use crate::rules::{Blame, Severity};
use crate::time::{Mono, Span};

/// A call that is made again later than this is a new wish rather than a repetition. ours.
const MEMORY_NS: u64 = 600_000_000_000;

/// What is made again sooner than this was not thought over by anybody (REL-09). ours.
const AT_ONCE_NS: u64 = 10_000_000_000;

/// Calls between two attempts that are looked at for a look-up. ours.
const BETWEEN: u32 = 64;

/// Failed calls that are kept for RTY-02. ours: as many as a client has in its hands.
const FAILED: usize = 1_024;

/// Repetitions after the first attempt whose pauses are compared (RTY-02).
const REPEATED: u32 = 2;

/// Who waits this long between attempts does no harm. ours.
const PATIENT_NS: u64 = 30_000_000_000;

/// So many connections that retry within so long are a herd (RTY-02).
const HERD: usize = 10;
const HERD_NS: u64 = 100_000_000;

pub(super) fn rules(book: &mut Book) {
    let answered = On::Sight(SightKind::Answered);
    book.rule("REL-01", &[answered], each(possibly_twice));
    book.rule("REL-09", &[On::RequestOf("tools/call")], each(by_itself));
    book.rule("RTY-01", &[On::RequestOf("tools/call")], each(again));
    let when = [
        On::Request,
        answered,
        On::Sight(SightKind::StreamEnded),
        On::Sight(SightKind::Cancel),
        On::Sight(SightKind::ClientLeft),
        On::Sight(SightKind::ProcessEnded),
        On::Sight(SightKind::SessionEnded),
    ];
    book.rule("RTY-02", &when, Pauses::default());
}

/// A call that was made again.
struct Repeat<'a> {
    idx: CallIdx,
    call: &'a Call,
    earlier: CallIdx,
    before: &'a Call,
    /// From the end of the earlier one to this one.
    after_ns: u64,
    class: Class,
    why: Why,
    /// The tool says of itself that a repetition does no harm.
    is_hinted_harmless: bool,
}

/// Calls a rule for a call that repeats another.
fn each(rule: fn(&Case<'_>, &Repeat<'_>, &mut Out<'_>)) -> impl Look {
    move |case: &Case<'_>, out: &mut Out<'_>| {
        if let Some(repeat) = repeat(case) {
            rule(case, &repeat, out);
        }
    }
}

fn repeat<'a>(case: &Case<'a>) -> Option<Repeat<'a>> {
    let (idx, call) = (case.seen.call?, case.call()?);
    let earlier = call.retry_of.filter(|_| call.method == Name::TOOLS_CALL && call.sender == Dir::C2s)?;
    let before = case.model.call(earlier)?;
    let after_ns = call.started.ns_since(before.ended?);
    let (class, why) = class_of(case, call);
    let is_hinted_harmless = is_hinted_harmless(case, idx);
    let repeat = Repeat { idx, call, earlier, before, after_ns, class, why, is_hinted_harmless };
    (after_ns <= MEMORY_NS && is_unknown(before)).then_some(repeat)
}

/// The tool says of itself that a repetition does no harm. That is no contract, and never makes a
/// retry right; it only keeps a mere suspicion from being told.
fn is_hinted_harmless(case: &Case<'_>, idx: CallIdx) -> bool {
    let definition = case.model.definition(idx);
    let says = |hint: &str| definition?.value.at(&["annotations", hint])?.bool();
    says("readOnlyHint") == Some(true) || says("idempotentHint") == Some(true)
}

/// The class by the contract of the tool.
fn class_of(case: &Case<'_>, call: &Call) -> (Class, Why) {
    let contract = case.policy.contract(&case.model.subject(call));
    let arguments = contract.and_then(|_| case.request_params()?.get("arguments"));
    let arguments = arguments.and_then(|arguments| serde_json::from_str(arguments.raw()).ok());
    classify(contract, &arguments.unwrap_or(Json::Null))
}

/// Nobody can say whether a call took effect: not where its server told that it stopped before.
fn is_unknown(call: &Call) -> bool {
    let told = call.told.as_deref();
    !told.is_some_and(|told| told.cancel_seen.is_some() && told.effects == 0 && told.done.is_none())
}

/// What became of a call that was made again, in words.
fn outcome(call: &Call) -> &'static str {
    match call.state {
        _ if call.after.late_answers > 0 => "was answered late",
        CallState::CancelledByClient => "was cancelled",
        CallState::AbandonedByDisconnect => "was left by its client",
        CallState::AnsweredError => "was answered by a gateway",
        _ => "ended without an answer",
    }
}

/// Two attempts that may both have taken effect.
fn possibly_twice(case: &Case<'_>, repeat: &Repeat<'_>, out: &mut Out<'_>) {
    if repeat.call.state != CallState::AnsweredOk
        || repeat.call.is_tool_error
        || repeat.class != Class::Unsafe
    {
        return;
    }
    let is_declared = repeat.why != Why::NoContract;
    if !is_declared && repeat.is_hinted_harmless {
        return;
    }
    let sentence = format!(
        "{} {}, and {} did the same {} later and went through: there may be two effects; {}",
        case.name(repeat.earlier),
        outcome(repeat.before),
        case.name(repeat.idx),
        Span(repeat.after_ns),
        repeat.why.as_str()
    );
    let draft = about(case, repeat, out);
    let draft = if is_declared { draft } else { draft.at_most(Severity::Hint) };
    draft.say(out, sentence);
}

/// A finding about all attempts.
fn about(case: &Case<'_>, repeat: &Repeat<'_>, out: &Out<'_>) -> Draft {
    let attempts = case.model.attempts(repeat.idx);
    let draft = attempts.into_iter().fold(out.draft(case), |draft, idx| draft.and_call(case.model, idx));
    draft.blame(Blame::Client)
}

/// A call made again although nobody knows what the first did.
fn again(case: &Case<'_>, repeat: &Repeat<'_>, out: &mut Out<'_>) {
    if repeat.class != Class::Unsafe || (repeat.why == Why::NoContract && repeat.is_hinted_harmless) {
        return;
    }
    let sentence = format!(
        "{} is made again as {} {} after it {}; what it did is not known, and {}",
        case.name(repeat.earlier),
        repeat.call.id,
        Span(repeat.after_ns),
        outcome(repeat.before),
        repeat.why.as_str()
    );
    about(case, repeat, out).say(out, sentence);
}

/// A call with an effect and without a key, made again at once, with no look at what became of it.
fn by_itself(case: &Case<'_>, repeat: &Repeat<'_>, out: &mut Out<'_>) {
    let is_mutation = repeat.class == Class::Unsafe && repeat.why != Why::NoContract;
    if !is_mutation || repeat.after_ns > AT_ONCE_NS || has_looked(case, repeat) {
        return;
    }
    let sentence = format!(
        "{} was made again {} after {} {}, with no look at what became of it; {}",
        case.name(repeat.idx),
        Span(repeat.after_ns),
        case.name(repeat.earlier),
        outcome(repeat.before),
        repeat.why.as_str()
    );
    about(case, repeat, out).say(out, sentence);
}

/// Between the two attempts the client called something that may have told it.
fn has_looked(case: &Case<'_>, repeat: &Repeat<'_>) -> bool {
    let first = repeat.earlier.0.max(repeat.idx.0.saturating_sub(BETWEEN)) + 1;
    (first..repeat.idx.0).filter_map(|at| case.model.call(CallIdx(at))).any(|call| {
        let is_after = repeat.before.ended.is_some_and(|ended| call.started >= ended);
        let contract = case.policy.contract(&case.model.subject(call));
        let may_tell = match case.model.text(call.method) {
            "tools/call" => contract.is_none_or(|contract| contract.side_effect == SideEffect::None),
            "resources/read" | "tasks/get" | "tasks/result" => true,
            _ => false,
        };
        is_after && may_tell && call.scope == repeat.call.scope
    })
}

/// What a call asks for.
type Wish = (Name, Option<Name>, u64);

/// Failed calls, by what they ask for.
#[derive(Default)]
struct Pauses {
    open: HashMap<CallIdx, Wish>,
    failed: HashMap<Wish, Failed>,
    order: VecDeque<Wish>,
    /// Retries of the last moments, and their connections.
    herd: VecDeque<(Mono, u64)>,
}

/// A call that failed the last time it was made.
#[derive(Debug, Clone, Copy)]
struct Failed {
    idx: CallIdx,
    at: Mono,
    /// The pause before it, and how often it was repeated without a longer one.
    pause_ns: Option<u64>,
    repeated: u32,
    is_open: bool,
}

impl Look for Pauses {
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        match case.what() {
            Sight::Message => self.begun(case, out),
            Sight::ProcessEnded { calls } | Sight::SessionEnded { calls } => {
                for idx in calls {
                    self.ended(case, *idx);
                }
            }
            _ => {
                if let Some(idx) = case.seen.call {
                    self.ended(case, idx);
                }
            }
        }
    }
}

/// It was refused, or nothing became of it. A tool that says that it failed has answered.
fn has_failed(call: &Call) -> bool {
    call.state.is_unanswered() || call.state == CallState::AnsweredError
}

impl Pauses {
    fn ended(&mut self, case: &Case<'_>, idx: CallIdx) {
        let Some(call) = case.model.call(idx).filter(|call| call.state.is_terminal()) else { return };
        let Some(wish) = self.open.remove(&idx) else { return };
        if !has_failed(call) {
            self.failed.remove(&wish);
            return;
        }
        let at = case.seen.at;
        if let Some(failed) = self.failed.get_mut(&wish) {
            *failed = Failed { idx, at, is_open: false, ..*failed };
            return;
        }
        self.failed.insert(wish, Failed { idx, at, pause_ns: None, repeated: 0, is_open: false });
        self.order.push_back(wish);
        if self.order.len() > FAILED
            && let Some(oldest) = self.order.pop_front()
        {
            self.failed.remove(&oldest);
        }
    }

    fn begun(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        let (Some(idx), Some(call)) = (case.seen.call, case.call()) else { return };
        if call.sender != Dir::C2s || call.round_of.is_some() {
            return;
        }
        let Some(fingerprint) = case.model.fingerprint(idx) else { return };
        let wish = (call.method, call.target, fingerprint);
        self.open.insert(idx, wish);
        let Some(failed) = self.failed.get_mut(&wish).filter(|failed| !failed.is_open) else { return };
        let pause_ns = case.seen.at.ns_since(failed.at);
        // A tenth more, and more than timers are late by, is a pause that grows.
        let has_grown = failed
            .pause_ns
            .is_some_and(|before| pause_ns > before + before / 10 && pause_ns > before + 20_000_000);
        failed.repeated = if has_grown || pause_ns > PATIENT_NS { 0 } else { failed.repeated + 1 };
        (failed.pause_ns, failed.is_open) = (Some(pause_ns), true);
        let (repeated, before) = (failed.repeated, failed.idx);
        if repeated > REPEATED {
            let name = case.name(idx);
            let sentence = format!(
                "{name} was made again {} after failures without a longer pause, the last {} after the failure",
                count(repeated, "time"),
                Span(pause_ns)
            );
            let draft = out.draft(case).and_call(case.model, before).blame(Blame::Client);
            draft.gather(out, wish, |_| sentence.clone());
        }
        self.join_herd(case, out);
    }

    /// Many clients that try again at the same moment.
    fn join_herd(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        let Some(conn) = case.call().and_then(|call| call.conn) else { return };
        let now = case.seen.at;
        while self.herd.front().is_some_and(|(at, _)| now.ns_since(*at) > HERD_NS) {
            self.herd.pop_front();
        }
        if self.herd.iter().any(|(_, other)| *other == conn) {
            return;
        }
        self.herd.push_back((now, conn));
        if self.herd.len() >= HERD {
            let many = self.herd.len();
            self.herd.clear();
            out.draft(case).blame(Blame::Client).gather(out, "herd", |times| {
                format!("{many} connections tried again within 100 ms, {}", count(times, "time"))
            });
        }
    }
}

//! Time limits of clients: that there are any, and what they take notice of (TMO-01..05).

use std::collections::VecDeque;

use hashbrown::HashMap;

use crate::event::{Dir, Transport};
use crate::model::clocks::{Basis, Clock};
use crate::model::{Call, CallIdx, CallState, Capture, MarkKind, Name, ScopeIdx, Sight};
use crate::rules::Blame;
use crate::rules::book::{Book, Look, On, SightKind};
use crate::rules::case::Case;
use crate::rules::findings::Out;
use crate::rules::open::is_open;
use crate::time::Ms;

/// How long a call may show no sign of life where no policy says how long its client waits. ours: the
/// default of the most used library.
const IDLE: Ms = Ms(60_000);

/// The same request again, this long after the first, was not sent beside it but instead of it. ours:
/// what is meant to run in parallel is sent at once.
const INSTEAD: Ms = Ms(5_000);

/// Nobody waits less for a sign of life. ours.
const SOON: Ms = Ms(1_000);

/// Calls remembered before those that have ended are forgotten. ours.
const FULL: usize = 1024;

pub(super) fn rules(book: &mut Book) {
    book.rule("TMO-01", &[On::Request, On::Clock], Overdue::new(false));
    book.rule("TMO-02", &[On::Request, On::Clock], Overdue::new(true));
    book.rule("TMO-03", &[On::Request], Instead::default());
    let given_up = [On::Sight(SightKind::Cancel), On::Sight(SightKind::ExchangeLeft)];
    book.rule("TMO-04", &given_up, not_extended);
    book.rule("TMO-05", &[On::Sight(SightKind::Answered)], no_sign_of_life);
}

/// When a limit has passed, in nanoseconds: who keeps it may be a little late. ours.
fn past(limit: Ms) -> u64 {
    limit.to_ns().saturating_add(limit.to_ns() / 100)
}

/// The idle limit of a call's client, as far as the user has told it.
fn idle_of(case: &Case<'_>, call: &Call) -> Ms {
    let declared = case.policy.clock(&case.model.subject(call)).and_then(|clock| clock.idle);
    declared.unwrap_or(IDLE)
}

/// Calls that are open for longer than any limit: silent ones (TMO-01), or ones that progress keeps
/// alive (TMO-02).
#[derive(Debug)]
struct Overdue {
    is_alive: bool,
    /// Calls in the order of their start.
    waiting: VecDeque<CallIdx>,
    full: usize,
}

impl Overdue {
    fn new(is_alive: bool) -> Overdue {
        Overdue { is_alive, waiting: VecDeque::new(), full: FULL }
    }

    /// Looks at the call that has waited longest; false: it is not due, and so is no other.
    fn next(&mut self, case: &Case<'_>, out: &mut Out<'_>) -> bool {
        let limits = case.policy.clocks.iter().filter_map(|clock| clock.max);
        let least = limits.fold(case.policy.limits.max, Ms::min);
        let now = case.model.overview().last;
        let Some((idx, call)) = self.waiting.front().and_then(|idx| Some((*idx, case.model.call(*idx)?)))
        else {
            return false;
        };
        let age_ns = now.ns_since(call.started);
        if call.state.is_terminal()
            && call.ended.is_none_or(|ended| ended.ns_since(call.started) < least.to_ns())
        {
            self.waiting.pop_front();
            return true;
        }
        if age_ns < least.to_ns() {
            return false;
        }
        self.waiting.pop_front();
        let declared = case.policy.clock(&case.model.subject(call)).and_then(|clock| clock.max);
        let limit = declared.unwrap_or(case.policy.limits.max);
        if is_open(case.model, idx) && age_ns < past(limit) {
            // Others with a shorter limit may stand behind it.
            self.waiting.push_back(idx);
            return false;
        }
        self.judge(case, out, idx, limit);
        true
    }

    fn judge(&self, case: &Case<'_>, out: &mut Out<'_>, idx: CallIdx, limit: Ms) {
        let Some(call) = case.model.call(idx) else { return };
        let until = call.ended.unwrap_or(case.model.overview().last);
        let has_left = call.marks.last().is_some_and(|mark| mark.kind == MarkKind::Disconnect);
        if until.ns_since(call.started) < past(limit) || has_left {
            return;
        }
        let heard = call.progress.last_at.filter(|at| until.ns_since(*at) < idle_of(case, call).to_ns());
        let sentence = match (heard, self.is_alive) {
            (Some(_), true) => format!(
                "{} was still open after {}, kept alive by {} progress",
                case.name(idx),
                Case::ms(limit.to_ns()),
                call.progress.count
            ),
            (None, false) => format!(
                "{} was still open after {}: neither answered nor given up",
                case.name(idx),
                Case::ms(limit.to_ns())
            ),
            _ => return,
        };
        out.about(case.model, idx).say(out, sentence);
    }
}

impl Look for Overdue {
    fn look(&mut self, case: &Case<'_>, _out: &mut Out<'_>) {
        let is_timed = |call: &&Call| call.sender == Dir::C2s && call.method != Name::LISTEN;
        let Some(idx) = case.seen.call.filter(|_| case.call().as_ref().is_some_and(is_timed)) else { return };
        if self.waiting.len() >= self.full {
            self.waiting.retain(|idx| is_open(case.model, *idx));
            self.full = FULL.max(2 * self.waiting.len());
        }
        self.waiting.push_back(idx);
    }

    fn wait(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        // At the end nothing is left for later.
        let turns = if case.model.overview().capture == Capture::Live { 2 } else { self.waiting.len() };
        for _ in 0..turns {
            self.next(case, out);
        }
    }
}

/// The same request under a new id, while the first is neither answered nor given up.
#[derive(Debug, Default)]
struct Instead {
    /// The latest call of each fingerprint.
    latest: HashMap<(ScopeIdx, u64), CallIdx>,
    full: usize,
}

impl Look for Instead {
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        let (Some(idx), Some(call)) = (case.seen.call, case.call()) else { return };
        let is_repeatable = !matches!(case.method(), "ping" | "initialize" | "subscriptions/listen");
        // Outside a session the same request may come from another client.
        let is_one_client = call.transport == Transport::Stdio || call.scope != ScopeIdx(0);
        if call.sender != Dir::C2s || !is_repeatable || !is_one_client {
            return;
        }
        let Some(fingerprint) = case.model.fingerprint(idx) else { return };
        if self.latest.len() >= self.full.max(FULL) {
            self.latest.retain(|_, idx| is_open(case.model, *idx));
            self.full = 2 * self.latest.len();
        }
        let Some(first) = self.latest.insert((call.scope, fingerprint), idx) else { return };
        let age_ns = case.model.call(first).map_or(0, |first| call.started.ns_since(first.started));
        if is_open(case.model, first) && age_ns >= INSTEAD.to_ns() {
            let sentence = format!(
                "{} repeats {}, which had been open for {} and was not given up",
                case.subject(),
                case.name(first),
                Case::ms(age_ns)
            );
            out.draft(case).and_call(case.model, first).say(out, sentence);
        }
    }
}

/// The longest time between two signs of life of a call, from its request to its end, in nanoseconds.
fn longest_gap_ns(call: &Call) -> u64 {
    let progress = call.marks.iter().filter(|mark| mark.kind == MarkKind::Progress).map(|mark| mark.at);
    let mut last = call.started;
    let mut longest = 0;
    for at in progress.chain(call.ended) {
        longest = longest.max(at.ns_since(last));
        last = at;
    }
    longest
}

/// A limit that fits the age since the request alone is not extended by progress. Where that is only a
/// guess, the client must have waited longer for progress before than it did in the end.
fn not_extended(case: &Case<'_>, out: &mut Out<'_>) {
    let calls = match case.what() {
        Sight::ExchangeLeft => case.exchange().map_or(&[][..], |exchange| exchange.calls()),
        _ => case.seen.call.as_slice(),
    };
    for idx in calls {
        let Some(call) = case.model.call(*idx).filter(|call| call.progress.count > 0) else { continue };
        let Some(cut) = case.model.cut_by(*idx, case.policy).filter(|cut| cut.clock == Clock::Fixed) else {
            continue;
        };
        let since_ns = cut.clocks.idle_ns;
        let is_known = matches!(cut.basis, Basis::Declared(_) | Basis::Client(_) | Basis::Library(_));
        if since_ns < cut.limit.to_ns() && (is_known || since_ns < longest_gap_ns(call)) {
            let sentence = format!(
                "{} was given up at {}, {} after its last progress: progress did not extend its limit",
                case.name(*idx),
                Case::ms(cut.clocks.absolute_ns),
                Case::ms(since_ns)
            );
            out.about(case.model, *idx).say(out, sentence);
        }
    }
}

fn no_sign_of_life(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(call) = case.call().filter(|call| call.token.is_some() && call.method != Name::LISTEN) else {
        return;
    };
    let is_success = matches!(call.state, CallState::AnsweredOk | CallState::InputRequired);
    if !is_success || case.seen.at.ns_since(call.started) < SOON.to_ns() {
        return;
    }
    let gap_ns = longest_gap_ns(call);
    if gap_ns >= idle_of(case, call).to_ns() {
        let gap = Case::ms(gap_ns);
        let sentence = format!("{} asked for progress and showed no sign of life for {gap}", case.subject());
        out.draft(case).blame(Blame::Server).say(out, sentence);
    }
}

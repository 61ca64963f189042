//! What comes after a cancel (CAN-04..06, CAN-11, CAN-12, CAN-17, CAN-18, CAN-21). A crossing is no
//! fault: silence inside the window, unless a witness or telemetry proves more.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use crate::model::{CallIdx, CallState, Exchange, Lateness, Reason, ScopeIdx, Sight, Stage};
use crate::rules::book::{Book, Look, On, SightKind};
use crate::rules::case::{Case, count};
use crate::rules::findings::Out;
use crate::rules::{Blame, Severity};
use crate::time::Mono;
use crate::wire::json::Value;

/// How long a client may take until it cancels or takes up again what it has dropped (CAN-18).
const DROPPED_NS: u64 = 30_000_000_000;

/// Late answers that are remembered for what may be made of them (CAN-21). ours.
const LATE_LIMIT: usize = 1024;

pub(super) fn rules(book: &mut Book) {
    let answer = On::Sight(SightKind::AnswerAfterCancel);
    let progress = On::Sight(SightKind::ProgressAfterCancel);
    book.rule("CAN-04", &[answer], crossed);
    book.rule("CAN-05", &[answer], answered);
    book.rule("CAN-06", &[progress], went_on);
    book.rule("CAN-11", &[answer, progress, On::Sight(SightKind::Told)], went_on_after_disconnect);
    book.rule("CAN-12", &[On::Sight(SightKind::IdAgain)], id_again);
    book.rule("CAN-17", &[answer, progress], went_on_in_legacy);
    let dropped = [On::Sight(SightKind::ClientLeft), On::Sight(SightKind::HttpRequest), On::Clock];
    book.rule("CAN-18", &dropped, Dropped::default());
    book.rule("CAN-21", &[answer, On::Request], Followed::default());
}

fn crossed(case: &Case<'_>, out: &mut Out<'_>) {
    let Sight::AnswerAfterCancel(late) = case.what() else { return };
    if !late.is_late {
        let margin = Case::ms(late.margin_ns);
        let sentence = format!("the answer to {} crossed its cancel, {margin} behind it", case.subject());
        out.draft(case).blame(Blame::Unknown).gather(out, case.seen.call, |_| sentence.clone());
    }
}

fn proof(reason: Reason) -> &'static str {
    match reason {
        Reason::Witness => ", and after the answer to a request that was written behind the cancel",
        Reason::Telemetry => ", which it told that it had seen",
        _ => "",
    }
}

fn answered(case: &Case<'_>, out: &mut Out<'_>) {
    if let Sight::AnswerAfterCancel(late) = case.what() {
        say_answered(case, out, late, "its cancel");
    }
}

fn went_on(case: &Case<'_>, out: &mut Out<'_>) {
    if let Sight::ProgressAfterCancel(late) = case.what() {
        say_progress(case, out, late, "its cancel");
    }
}

fn say_answered(case: &Case<'_>, out: &mut Out<'_>, late: &Lateness, end: &str) {
    if late.is_late {
        let margin = Case::ms(late.margin_ns);
        let sentence = format!("{} was answered {margin} after {end}{}", case.subject(), proof(late.reason));
        out.gather(case, (case.seen.call, "answer"), |_| sentence.clone());
    }
}

fn say_progress(case: &Case<'_>, out: &mut Out<'_>, late: &Lateness, end: &str) {
    if late.is_late {
        let (subject, last) = (case.subject(), Case::ms(late.margin_ns));
        out.gather(case, (case.seen.call, "progress"), |times| {
            format!("{subject} went on after {end}: {times} progress, the last {last} later")
        });
    }
}

/// What changes elsewhere on the server may have other reasons; what comes on the exchange itself, or
/// is told by the server, has none.
fn went_on_after_disconnect(case: &Case<'_>, out: &mut Out<'_>) {
    match case.what() {
        Sight::AnswerAfterCancel(late) => say_answered(case, out, late, "its client had left"),
        Sight::ProgressAfterCancel(late) => say_progress(case, out, late, "its client had left"),
        Sight::Told(Stage::Checkpoint | Stage::Effect) => {
            let Some(told) = case.call().and_then(|call| call.told.as_deref()) else { return };
            if told.checkpoints_after + told.effects_after == 0 {
                return;
            }
            let sentence = format!(
                "the server told that it went on with {} after it had seen that the client left: {}, {}",
                case.subject(),
                count(told.checkpoints_after, "checkpoint"),
                count(told.effects_after, "effect")
            );
            let draft = out.draft(case).blame(Blame::Server);
            draft.gather(out, (case.seen.call, "told"), |_| sentence.clone());
        }
        _ => {}
    }
}

/// A stream taken up again tells once more what was sent before the cancel.
fn went_on_in_legacy(case: &Case<'_>, out: &mut Out<'_>) {
    if case.exchange().is_some_and(Exchange::is_resumption) {
        return;
    }
    answered(case, out);
    went_on(case, out);
}

fn id_again(case: &Case<'_>, out: &mut Out<'_>) {
    let Sight::IdAgain { earlier } = case.what() else { return };
    let Some(before) = case.model.call(*earlier) else { return };
    if !before.state.is_unanswered() || before.after.late_answers > 0 {
        return;
    }
    let is_pipe = before.stream.is_none();
    let is_known = case.call().is_some_and(|call| call.conn.is_some()) && before.conn.is_some();
    let most = match (is_pipe || case.is_one_connection(*earlier), is_known) {
        (true, _) => Severity::Warning,
        // Another client may use the same ids.
        (false, true) => return,
        (false, false) => Severity::Hint,
    };
    let sentence = format!(
        "{} has the id of {}, which was {} and never answered",
        case.subject(),
        case.name(*earlier),
        before.state.as_str()
    );
    out.draft(case).and_call(case.model, *earlier).at_most(most).say(out, sentence);
}

/// Streams that the client has dropped and may yet take up again.
#[derive(Debug, Default)]
struct Dropped {
    calls: VecDeque<(Mono, CallIdx)>,
    /// Who was heard again after that, and when: a client that is gone can do nothing.
    heard: HashMap<ScopeIdx, Mono>,
}

impl Look for Dropped {
    fn look(&mut self, case: &Case<'_>, _out: &mut Out<'_>) {
        match (case.what(), case.seen.call) {
            (Sight::ClientLeft, Some(idx)) => self.calls.push_back((case.seen.at, idx)),
            (Sight::HttpRequest, _) if !self.calls.is_empty() => self.request(case),
            _ => {}
        }
    }

    fn wait(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        let now = case.model.overview().last;
        while let Some((left, idx)) = self.calls.front().copied() {
            let silent_ns = now.ns_since(left);
            if silent_ns < DROPPED_NS {
                return;
            }
            self.calls.pop_front();
            let Some(call) = case.model.call(idx) else { continue };
            let is_over = case.model.scope(call.scope).is_none_or(|scope| scope.ended.is_some());
            let is_cancelled = call.state == CallState::CancelledByClient || call.after.late_cancels > 0;
            // Outside a session it may have been another client.
            let is_session = call.scope != ScopeIdx(0);
            let is_heard = is_session && self.heard.get(&call.scope).is_some_and(|heard| *heard > left);
            if is_heard && !is_over && !is_cancelled && !call.state.is_answered() {
                let sentence = format!(
                    "the stream of {} was dropped, and neither taken up again nor cancelled in the {} after it",
                    case.name(idx),
                    Case::ms(silent_ns)
                );
                out.about(case.model, idx).say(out, sentence);
            }
        }
        self.heard.clear();
    }
}

impl Dropped {
    fn request(&mut self, case: &Case<'_>) {
        let scope = case.seen.scope;
        self.heard.insert(scope, case.seen.at);
        if case.exchange().is_some_and(Exchange::is_resumption) {
            // Whose stream it takes up is not always known.
            self.calls.retain(|(_, idx)| case.model.call(*idx).is_some_and(|call| call.scope != scope));
        }
    }
}

/// What late answers offered, and whether the canceller makes use of it.
#[derive(Debug, Default)]
struct Followed {
    /// The cancelled call by what its late answer holds: a `requestState` or a `taskId`, hashed.
    late: HashMap<(ScopeIdx, u64), CallIdx>,
}

impl Look for Followed {
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        if let (Sight::AnswerAfterCancel(_), Some(idx)) = (case.what(), case.seen.call) {
            let result = case.result();
            let offered = ["requestState", "taskId"].map(|name| result.and_then(|result| result.get(name)));
            if self.late.len() >= LATE_LIMIT {
                self.late.clear();
            }
            self.late.extend(offered.into_iter().flatten().map(|value| (key(case, value), idx)));
            return;
        }
        if self.late.is_empty() {
            return;
        }
        let (name, what) = match case.method() {
            "tasks/get" => ("taskId", "asked for the task of"),
            _ => ("requestState", "went on with the question of"),
        };
        let Some(value) = case.params().and_then(|params| params.get(name)) else { return };
        let Some(cancelled) = self.late.remove(&key(case, value)) else { return };
        let sentence =
            format!("{} {what} {}, which its client had cancelled", case.subject(), case.name(cancelled));
        out.draft(case).and_call(case.model, cancelled).say(out, sentence);
    }
}

fn key(case: &Case<'_>, value: Value<'_>) -> (ScopeIdx, u64) {
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    (case.seen.scope, hasher.hash_one(value.raw()))
}

//! How a process ends, who ended it, and what comes after (STD-08..12).

use std::collections::{HashMap, HashSet};

use crate::event::{Dir, Transport};
use crate::model::{CallIdx, Name, Process, RowKind, Scope, ScopeIdx, Sight};
use crate::rules::book::{Book, Look, On, SightKind};
use crate::rules::case::{Case, count};
use crate::rules::findings::Out;
use crate::rules::{Blame, Severity};
use crate::time::Mono;

/// A call that had been silent for this long when its client closed was not cut short by that: it
/// had never been answered (REL-11). ours.
const PATIENCE_NS: u64 = 30_000_000_000;

/// A server that writes the same line this often, and this long, after the end of its stdin does
/// not want to leave. ours.
const EOF_SAME_LINES: u32 = 100;
const EOF_SAME_NS: u64 = 2_000_000_000;

/// How long a client waits at least between the end of stdin and a signal (STD-10).
const WAIT_NS: u64 = 100_000_000;

/// How soon a lost subscription is opened again (STD-12).
const REOPEN_NS: u64 = 10_000_000_000;

/// Lost requests that are remembered of one process. ours: a client has few under way.
const LOST_LIMIT: usize = 256;

pub(super) fn rules(book: &mut Book) {
    let (process_ended, ended) = (On::Sight(SightKind::ProcessEnded), On::Sight(SightKind::Ended));
    book.rule("STD-08", &[process_ended], server_left());
    let output = On::Sight(SightKind::ServerOutput);
    book.rule("STD-09", &[output, process_ended, ended], EofIgnored::default());
    book.rule("STD-10", &[process_ended], signalled_first);
    book.rule("STD-11", &[process_ended], client_left);
    book.rule("STD-12", &[process_ended, On::Request, ended], Restarts::default());
}

/// The client's calls that were open when their process ended, subscriptions left out, with when the
/// client asked for that end.
fn lost_calls(case: &Case<'_>) -> (Vec<CallIdx>, Option<Mono>) {
    let (Sight::ProcessEnded { calls }, Some(scope)) = (case.what(), case.scope()) else {
        return (Vec::new(), None);
    };
    let closed = [scope.process.stdin_closed, scope.process.signalled].into_iter().flatten().min();
    let is_lost = |idx: &CallIdx| {
        let call = case.model.call(*idx).filter(|call| call.sender == Dir::C2s && !call.is_injected);
        call.is_some_and(|call| call.method != Name::LISTEN)
    };
    (calls.iter().copied().filter(is_lost).collect(), closed)
}

/// A server that went by itself. The end of its stdout and that of its process may be two events:
/// what the first has told, the second does not tell again.
fn server_left() -> impl FnMut(&Case<'_>, &mut Out<'_>) + Send {
    let mut told: HashSet<ScopeIdx> = HashSet::new();
    move |case, out| {
        let (calls, None) = lost_calls(case) else { return };
        let Some(process) = case.scope().map(|scope| &scope.process) else { return };
        if !calls.is_empty() {
            told.insert(case.seen.scope);
            left_open(case, out, &calls, Blame::Server, "the server ended");
            return;
        }
        // Nothing was lost, but it did not go of its own will.
        let is_bad_end = process.exit_code.is_some_and(|code| code != 0) || process.exit_signal.is_some();
        if is_bad_end && told.insert(case.seen.scope) {
            let sentence = format!("the server ended by itself with no call open{}", exit_words(process));
            out.draft(case).at_most(Severity::Hint).blame(Blame::Server).say(out, sentence);
        }
    }
}

fn client_left(case: &Case<'_>, out: &mut Out<'_>) {
    let (mut calls, Some(closed)) = lost_calls(case) else { return };
    calls.retain(|idx| {
        let last_sign = case.model.call(*idx).map(|call| call.progress.last_at.unwrap_or(call.started));
        last_sign.is_some_and(|last| closed.ns_since(last) < PATIENCE_NS)
    });
    left_open(case, out, &calls, Blame::Client, "the client closed");
}

fn left_open(case: &Case<'_>, out: &mut Out<'_>, calls: &[CallIdx], blame: Blame, what: &str) {
    if calls.is_empty() {
        return;
    }
    let how = case.scope().map_or_else(String::new, |scope| exit_words(&scope.process));
    let many = count(u32::try_from(calls.len()).unwrap_or(u32::MAX), "call");
    let sentence = format!("{what} with {many} open{how}: {}", names(case, calls));
    let draft = calls.iter().fold(out.draft(case), |draft, idx| draft.and_call(case.model, *idx));
    draft.blame(blame).say(out, sentence);
}

/// The first few calls in words.
fn names(case: &Case<'_>, calls: &[CallIdx]) -> String {
    let mut text: Vec<String> = calls.iter().take(3).map(|idx| case.name(*idx)).collect();
    if calls.len() > 3 {
        text.push(format!("{} more", calls.len() - 3));
    }
    text.join(", ")
}

fn exit_words(process: &Process) -> String {
    match (process.exit_code, process.exit_signal) {
        (Some(code), _) => format!(" (exit status {code})"),
        (None, Some(signal)) => format!(" (signal {signal})"),
        (None, None) => String::new(),
    }
}

/// A server that lives on after the end of its stdin, told once.
#[derive(Default)]
struct EofIgnored {
    told: HashSet<ScopeIdx>,
    /// The line that a server repeats after the end of its stdin.
    repeated: HashMap<ScopeIdx, (Name, u32)>,
}

impl Look for EofIgnored {
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        let Some(scope) = case.scope().filter(|scope| scope.transport == Transport::Stdio) else { return };
        let Some(closed) = scope.process.stdin_closed else { return };
        let is_end = matches!(case.what(), Sight::ProcessEnded { .. });
        // Who was sent a signal does not leave by itself.
        if self.told.contains(&case.seen.scope) || (is_end && scope.process.signalled.is_some()) {
            return;
        }
        if !is_end && scope.process.exited.is_some() {
            return;
        }
        let since_ns = case.seen.at.ns_since(closed);
        let times = self.count_line(case);
        let insists = times >= EOF_SAME_LINES && since_ns >= EOF_SAME_NS;
        if since_ns < case.policy.limits.exit.to_ns() && !insists {
            return;
        }
        self.told.insert(case.seen.scope);
        let lived = Case::ms(since_ns);
        let sentence = if insists {
            format!("the server went on for {lived} after its stdin ended, writing one line {times} times")
        } else {
            format!("the server lived on for {lived} after its stdin ended")
        };
        out.draft(case).blame(Blame::Server).say(out, sentence);
    }
}

impl EofIgnored {
    /// How often the latest line of stderr has come in a row.
    fn count_line(&mut self, case: &Case<'_>) -> u32 {
        let row = case.row().filter(|row| row.kind == RowKind::Stderr);
        let Some(line) = row.and_then(|row| row.detail) else {
            return self.repeated.get(&case.seen.scope).map_or(0, |(_, times)| *times);
        };
        let repeated = self.repeated.entry(case.seen.scope).or_insert((line, 0));
        *repeated = if repeated.0 == line { (line, repeated.1 + 1) } else { (line, 1) };
        repeated.1
    }
}

fn signalled_first(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(process) = case.scope().map(|scope| &scope.process) else { return };
    let Some(dismissed) = process.dismissed else { return };
    let sentence = match process.stdin_closed.filter(|closed| *closed <= dismissed) {
        None => "the client sent the server a signal before it closed its stdin".to_owned(),
        Some(closed) if dismissed.ns_since(closed) < WAIT_NS => {
            let waited = Case::ms(dismissed.ns_since(closed));
            format!("the client sent the server a signal {waited} after it closed its stdin")
        }
        Some(_) => return,
    };
    out.draft(case).blame(Blame::Client).say(out, sentence);
}

/// What a client does after its server went away by itself: repeats what was lost under new ids, and
/// opens its subscriptions again.
#[derive(Default)]
struct Restarts {
    /// The first call of each process, from which its requests are counted.
    first: HashMap<ScopeIdx, CallIdx>,
    /// What the latest process of a command left behind.
    left: HashMap<Name, Left>,
}

/// What a process left behind that ended by itself.
#[derive(Default)]
struct Left {
    /// Requests, and how many the client had made before each.
    requests: Vec<(CallIdx, u32)>,
    /// A subscription that was not opened again so far.
    listen: Option<CallIdx>,
}

impl Look for Restarts {
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        let Some(scope) = case.scope() else { return };
        let Some(command) = scope.process.command else { return };
        match case.what() {
            Sight::ProcessEnded { calls } => {
                self.left.remove(&command);
                if scope.process.stdin_closed.or(scope.process.signalled).is_none() {
                    let left = self.left(case, calls);
                    self.left.insert(command, left);
                }
            }
            Sight::Message => self.request(case, out, scope, command),
            _ => self.reopened_late(case, out, scope, command),
        }
    }
}

impl Restarts {
    fn left(&self, case: &Case<'_>, calls: &[CallIdx]) -> Left {
        let first = self.first.get(&case.seen.scope).map_or(0, |idx| idx.0);
        let mut left = Left::default();
        for idx in calls {
            match case.model.call(*idx).filter(|call| call.sender == Dir::C2s && !call.is_injected) {
                Some(call) if call.method == Name::LISTEN => left.listen = Some(*idx),
                Some(_) if left.requests.len() < LOST_LIMIT => {
                    left.requests.push((*idx, idx.0.saturating_sub(first)));
                }
                _ => {}
            }
        }
        left
    }

    fn request(&mut self, case: &Case<'_>, out: &mut Out<'_>, scope: &Scope, command: Name) {
        let Some(idx) = case.seen.call else { return };
        let Some(call) = case.call().filter(|call| call.sender == Dir::C2s) else { return };
        let first = *self.first.entry(case.seen.scope).or_insert(idx);
        let Some(left) = self.left.get_mut(&command) else { return };
        if call.method == Name::LISTEN {
            left.listen = None;
        }
        // Counting ids begins anew with each process: the same id at the same place says nothing.
        let nth = idx.0.saturating_sub(first.0);
        let repeated = left.requests.iter().position(|(lost, lost_nth)| {
            let is_same = |lost: &crate::model::Call| {
                lost.id == call.id && lost.method == call.method && lost.target == call.target
            };
            *lost_nth != nth && case.model.call(*lost).is_some_and(is_same)
        });
        if let Some(at) = repeated {
            let (lost, _) = left.requests.swap_remove(at);
            let sentence =
                format!("{} was lost with its process and repeated under its old id", case.name(lost));
            out.draft(case).and_call(case.model, lost).say(out, sentence);
        }
        self.reopened_late(case, out, scope, command);
    }

    fn reopened_late(&mut self, case: &Case<'_>, out: &mut Out<'_>, scope: &Scope, command: Name) {
        let spawned = scope.process.spawned.filter(|spawned| case.seen.at.ns_since(*spawned) >= REOPEN_NS);
        let (Some(spawned), Some(left)) = (spawned, self.left.get_mut(&command)) else { return };
        let is_other =
            |idx: &CallIdx| case.model.call(*idx).is_some_and(|call| call.scope != case.seen.scope);
        let Some(listen) = left.listen.take_if(|idx| is_other(idx)) else { return };
        let waited = Case::ms(case.seen.at.ns_since(spawned));
        let sentence = format!(
            "{} was lost with its process, and {waited} after the new one began no subscription has been opened",
            case.name(listen)
        );
        out.draft(case).and_call(case.model, listen).blame(Blame::Client).say(out, sentence);
    }
}

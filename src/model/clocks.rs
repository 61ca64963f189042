//! Three clocks of a call: idle, which only its accepted progress restarts; absolute, which nothing
//! restarts; and silence, which any byte on its stream or pipe restarts, comments included.
//!
//! Limits are nowhere on the wire. What a client's limits are comes from the user's policy or from
//! the defaults of known clients; an age that fits one of them explains a call that was cut.

use super::call::{Call, CallIdx, CallState, MarkKind};
use super::{Model, Name};
use crate::event::{Dir, Transport};
use crate::machine::deadlines::Fired;
use crate::machine::policy::clock::ClockPolicy;
use crate::machine::policy::{Policy, Subject, presets};
use crate::time::{Mono, Ms, Span};

/// Limits that people set, in seconds.
const ROUND_S: [u64; 18] = [1, 2, 3, 5, 10, 15, 20, 30, 45, 60, 90, 100, 120, 180, 300, 600, 1_800, 3_600];

/// How far an age may lie from a limit that is declared, or a known default, in percent.
const NEAR_PERCENT: u64 = 3;

/// How far an age may lie from a limit that is only guessed from being round: a fiftieth, and
/// never more than this. ours: what the timers of a busy machine are late by; people who lose
/// patience rarely hit it.
const ROUND_NS: u64 = 120_000_000;

/// How a call stands against the clocks. Spans in nanoseconds; of a call that has ended, as they
/// stood then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clocks {
    /// Since its last accepted progress, or the request.
    pub idle_ns: u64,
    /// Since the request.
    pub absolute_ns: u64,
    /// Since the last byte on the stream or pipe that carries its answer, or the request.
    pub silence_ns: u64,
    /// It is open: the clocks run.
    pub is_running: bool,
}

/// Which clock cut a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Clock {
    /// The idle limit, since the last accepted progress, or since the request where none came.
    Idle,
    /// A limit since the request that progress does not restart.
    Fixed,
    /// The maximum.
    Maximum,
    /// The limit of silence.
    Silence,
}

/// Where it is known from that a clock has this limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Basis<'a> {
    /// The user's policy says so.
    Declared(&'a ClockPolicy),
    /// It is the default of this client.
    Client(&'a ClockPolicy),
    /// It is the default of a library that this client may be built on.
    Library(&'a ClockPolicy),
    /// The age is a round number, which people choose for limits.
    Round,
    /// The client says in its cancel that time was up.
    Said,
}

/// A call that its client gave up because its time was up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cut<'a> {
    /// When.
    pub at: Mono,
    /// Which clock.
    pub clock: Clock,
    /// Its limit; what [`Basis::Said`] leaves open is the age itself.
    pub limit: Ms,
    /// How that is known.
    pub basis: Basis<'a>,
    /// The clocks as they stood.
    pub clocks: Clocks,
    /// It asked for progress.
    pub has_token: bool,
    /// How many accepted progress it had.
    pub progress: u32,
}

impl Model {
    /// How a call stands against the clocks at `now`.
    #[must_use]
    pub fn clocks(&self, idx: CallIdx, now: Mono) -> Option<Clocks> {
        let call = self.call(idx)?;
        let is_running = !call.state.is_terminal();
        let heard = if is_running { self.heard(call) } else { None };
        let now = call.ended.unwrap_or(now);
        Some(Clocks {
            idle_ns: now.ns_since(call.progress.last_at.unwrap_or(call.started)),
            absolute_ns: now.ns_since(call.started),
            silence_ns: now.ns_since(call.heard.max(heard.unwrap_or(call.heard))),
            is_running,
        })
    }

    /// When the other side was last heard on what carries the answer of a call.
    pub(super) fn heard(&self, call: &Call) -> Option<Mono> {
        match (call.transport, call.stream) {
            (Transport::Http, Some(stream)) if call.sender == Dir::C2s => self.http.heard(stream),
            (Transport::Http, _) => None,
            (Transport::Stdio, _) => {
                self.flow_of(call).and_then(|idx| self.flow(idx)).map(|flow| flow.last_at)
            }
        }
    }

    /// What is known of a call, to look it up in a policy.
    #[must_use]
    pub fn subject(&self, call: &Call) -> Subject<'_> {
        let scope = self.scope(call.scope);
        let text = |name: Option<Name>| name.map(|name| self.text(name));
        let server = scope.and_then(|scope| scope.server.map(|peer| peer.name).or(scope.process.command));
        Subject {
            client: text(scope.and_then(|scope| scope.client).map(|peer| peer.name)),
            user_agent: text(scope.and_then(|scope| scope.user_agent)),
            server: text(server),
            transport: call.transport,
            method: self.text(call.method),
            tool: text(call.target.filter(|_| call.method == Name::TOOLS_CALL)),
        }
    }

    /// When this policy would have given up a call, and by which clock; `None`: not before its
    /// end, or the end of what is known.
    #[must_use]
    pub fn would_fire(&self, idx: CallIdx, policy: &ClockPolicy) -> Option<(Mono, Fired)> {
        let call = self.call(idx)?;
        // The machine counts in whole milliseconds, from the request.
        let ms = |at: Mono| Mono(at.ns_since(call.started)).to_ms();
        let accepted =
            call.marks.iter().filter(|mark| mark.kind == MarkKind::Progress).map(|mark| ms(mark.at));
        let until = call.ended.unwrap_or(self.overview.last);
        let (at, fired) = policy.would_fire(Ms(0), accepted, ms(until))?;
        Some((call.started.plus(at), fired))
    }

    /// The clock by which the client gave up a call, where its age or its own words tell.
    #[must_use]
    pub fn cut_by<'a>(&'a self, idx: CallIdx, policy: &'a Policy) -> Option<Cut<'a>> {
        let call = self.call(idx).filter(|call| call.method != Name::LISTEN && !call.is_injected)?;
        let at = self.given_up(call)?;
        let said = call.cancel_reason.map(|name| self.text(name).to_ascii_lowercase());
        let says_time = said.as_deref().is_some_and(|said| TIME.iter().any(|word| said.contains(word)));
        let clocks = Clocks { is_running: false, ..self.clocks(idx, at)? };
        let clocks = Clocks {
            idle_ns: at.ns_since(call.progress.last_at.unwrap_or(call.started)),
            absolute_ns: at.ns_since(call.started),
            ..clocks
        };
        let (clock, limit, basis) = match fitting(&self.subject(call), policy, clocks) {
            Some(fitting) => fitting,
            // Who gives a reason that has nothing to do with time has one.
            None if said.is_some() && !says_time => return None,
            None => match guessed(clocks, call.transport) {
                Some((clock, limit)) => (clock, limit, Basis::Round),
                None if says_time => (Clock::Fixed, Mono(clocks.absolute_ns).to_ms(), Basis::Said),
                None => return None,
            },
        };
        let (has_token, progress) = (call.token.is_some(), call.progress.count);
        Some(Cut { at, clock, limit, basis, clocks, has_token, progress })
    }

    /// When the client gave up a call: by its cancel, by leaving, or by ending the process.
    fn given_up(&self, call: &Call) -> Option<Mono> {
        match call.state {
            CallState::CancelledByClient | CallState::AbandonedByDisconnect => call.ended,
            CallState::Lost if call.transport == Transport::Stdio && call.sender == Dir::C2s => {
                let process = self.scope(call.scope)?.process;
                [process.stdin_closed, process.signalled].into_iter().flatten().min()
            }
            _ => None,
        }
    }
}

/// Words of a cancel's reason that mean that time was up.
const TIME: [&str; 4] = ["timeout", "timed out", "time out", "deadline"];

/// The limit of a policy that is for this call, or of a known default, that its age fits.
fn fitting<'a>(subject: &Subject<'_>, policy: &'a Policy, clocks: Clocks) -> Option<(Clock, Ms, Basis<'a>)> {
    let fits = |clock: &ClockPolicy| limit_of(clock, clocks);
    if let Some(clock) = policy.clock(subject) {
        return fits(clock).map(|(which, limit)| (which, limit, Basis::Declared(clock)));
    }
    if let Some(clock) = presets::of(subject) {
        return fits(clock).map(|(which, limit)| (which, limit, Basis::Client(clock)));
    }
    let mut libraries = presets::libraries().iter().filter(|clock| clock.is_for(subject));
    libraries.find_map(|clock| fits(clock).map(|(which, limit)| (which, limit, Basis::Library(clock))))
}

/// Which limit of a policy the clocks fit.
fn limit_of(policy: &ClockPolicy, clocks: Clocks) -> Option<(Clock, Ms)> {
    let near = |ns: u64, limit: &Ms| ns.abs_diff(limit.to_ns()) <= limit.to_ns() / 100 * NEAR_PERCENT;
    let (idle, idle_ns) = if policy.resets_on_progress {
        (Clock::Idle, clocks.idle_ns)
    } else {
        (Clock::Fixed, clocks.absolute_ns)
    };
    let idle = policy.idle.filter(|limit| near(idle_ns, limit)).map(|limit| (idle, limit));
    let max = policy.max.filter(|limit| near(clocks.absolute_ns, limit)).map(|limit| (Clock::Maximum, limit));
    let silence =
        policy.silence.filter(|limit| near(clocks.silence_ns, limit)).map(|limit| (Clock::Silence, limit));
    max.or(idle).or(silence)
}

/// A round limit that the age since the request fits, or since the last progress, or, where each call
/// has a stream of its own, since the last byte.
fn guessed(clocks: Clocks, transport: Transport) -> Option<(Clock, Ms)> {
    let is_near = |ns: u64, limit: u64| ns.abs_diff(limit) <= ROUND_NS.min(limit / 50);
    let round = |ns: u64| {
        let mut limits = ROUND_S.into_iter().map(|seconds| Ms(seconds * 1_000));
        limits.find(|limit| is_near(ns, limit.to_ns()))
    };
    let fixed = round(clocks.absolute_ns).map(|limit| (Clock::Fixed, limit));
    let idle = || round(clocks.idle_ns).map(|limit| (Clock::Idle, limit));
    let silence = || round(clocks.silence_ns).map(|limit| (Clock::Silence, limit));
    fixed.or_else(idle).or_else(|| silence().filter(|_| transport == Transport::Http))
}

impl Cut<'_> {
    /// What cut it, as one sentence without a full stop and without its subject.
    #[must_use]
    pub fn sentence(&self) -> String {
        let age = Span(self.clocks.absolute_ns);
        let idle = Span(self.clocks.idle_ns);
        let when = match self.clock {
            Clock::Idle if self.progress > 0 => format!("cut at {age}, {idle} after its last progress"),
            Clock::Silence => format!("cut at {age}, {} after the last byte", Span(self.clocks.silence_ns)),
            _ => format!("cut at {age}"),
        };
        let limit = match (self.clock, self.basis) {
            (_, Basis::Said) => "by the client's words its time was up".to_owned(),
            (_, Basis::Round) => format!("the age of a limit of {}", Span(self.limit.to_ns())),
            (clock, basis) => format!("the {} of {}", clock.word(), basis.owner()),
        };
        let asked = match (self.has_token, self.progress) {
            (false, _) => "it never asked for progress".to_owned(),
            (true, 0) => "it asked for progress and got none".to_owned(),
            (true, 1) => format!("its only progress had come {idle} before"),
            (true, times) => format!("the last of {times} progress had come {idle} before"),
        };
        format!("{when}: {limit}; {asked}")
    }
}

impl Clock {
    /// What people call it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Clock::Idle => "idle limit",
            Clock::Fixed => "limit",
            Clock::Maximum => "maximum",
            Clock::Silence => "limit of silence",
        }
    }
}

impl Basis<'_> {
    /// Whose limit it is.
    fn owner(self) -> String {
        match self {
            Basis::Declared(policy) => format!("the policy \"{}\"", policy.name),
            Basis::Client(policy) => format!("{} by default", policy.name),
            Basis::Library(policy) => {
                format!("the {} by default, on which the client may be built", policy.name)
            }
            Basis::Round | Basis::Said => "the client".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests;

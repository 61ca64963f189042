//! Races: who won between a cancel and an answer, by how much, and what makes that sure.
//!
//! The middle sees when the two passed, not when the peers read them (docs/semantics.md, races).
//! So a verdict always comes with the margin, the two rows that it stands between, and what
//! decided: the order on one channel, a witness, what the server told, the window, or the end.

use super::call::{CallIdx, CallState, MarkKind};
use super::fold::At;
use super::row::RowIdx;
use super::telemetry::Told;
use super::{Call, Model, Name};
use crate::event::{Dir, Transport};
use crate::time::{Mono, Ms, Span};

/// How long after a cancel, or after a request, nothing more is expected. ours: twice the longest
/// limit of a request (300 s).
pub const HORIZON: Ms = Ms(600_000);

/// Who won.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The answer passed first; the cancel came too late and is ignored. No fault.
    CompleteWon,
    /// No answer followed the cancel. No fault.
    CancelWon,
    /// The answer followed the cancel, but may have been under way before the server read it.
    /// No fault.
    Crossed,
    /// The answer followed the cancel, and the server must have read that before.
    LateResponse,
    /// Neither an answer nor a cancel came.
    Unresolved,
}

impl Verdict {
    /// Its name, as filters and reports use it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::CompleteWon => "complete_won",
            Verdict::CancelWon => "cancel_won",
            Verdict::Crossed => "crossed",
            Verdict::LateResponse => "late_response",
            Verdict::Unresolved => "unresolved",
        }
    }
}

/// What decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The answer passed before the cancel.
    Order,
    /// The server answered a request that was written behind the cancel on the same pipe.
    Witness,
    /// The server told what it saw, and when.
    Telemetry,
    /// The time between the two, against the grace window of the channel.
    Window,
    /// Nothing more can come: the stream, the process or the session ended.
    StreamEnd,
    /// Nothing came for as long as [`HORIZON`].
    Horizon,
    /// The recording ended first.
    RecordingEnd,
    /// Nothing yet: it may still turn.
    SoFar,
}

impl Reason {
    /// Its name, as filters and reports use it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::Order => "order",
            Reason::Witness => "witness",
            Reason::Telemetry => "telemetry",
            Reason::Window => "window",
            Reason::StreamEnd => "stream_end",
            Reason::Horizon => "horizon",
            Reason::RecordingEnd => "recording_end",
            Reason::SoFar => "so_far",
        }
    }

    /// It proves the verdict; without it, the verdict is the best guess from the middle.
    #[must_use]
    pub fn is_proof(self) -> bool {
        matches!(self, Reason::Order | Reason::Witness | Reason::Telemetry | Reason::StreamEnd)
    }
}

/// What the cancel was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Signal {
    /// `notifications/cancelled`.
    Notification,
    /// The client left the exchange, which is the signal on modern HTTP.
    Disconnect,
}

/// A verdict with all that it stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Race {
    /// Who won.
    pub verdict: Verdict,
    /// What decided.
    pub reason: Reason,
    /// From the cancel handed on to the answer read, in nanoseconds; negative where the answer
    /// passed first, from its last byte to the cancel. `None`: one of the two is missing.
    pub margin_ns: Option<i64>,
    /// The grace window when it was decided, in nanoseconds.
    pub window_ns: u64,
    /// How long nothing had come, in nanoseconds, where that is what the verdict stands on.
    pub silent_ns: u64,
    /// What the cancel was; `None`: there was none.
    pub signal: Option<Signal>,
    /// When the cancel had been handed on, or was read where that is not known.
    pub cancelled_at: Option<Mono>,
    /// The row of the cancel.
    pub cancel: Option<RowIdx>,
    /// The row of the answer.
    pub answer: Option<RowIdx>,
    /// Who asked, and cancelled.
    pub by: Dir,
    /// midwire itself took part; whoever won, nobody is at fault.
    pub is_injected: bool,
}

/// How something stands that passed after a cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lateness {
    /// From the cancel handed on to its first byte read, in nanoseconds.
    pub margin_ns: u64,
    /// The grace window then in force, in nanoseconds.
    pub window_ns: u64,
    /// Its sender must have read the cancel before.
    pub is_late: bool,
    /// What decided.
    pub reason: Reason,
}

impl Race {
    /// The verdict as one word, injections told apart.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        if self.is_injected { "injected" } else { self.verdict.as_str() }
    }

    /// The verdict as one sentence without a full stop: what happened, by how much, who is at
    /// fault.
    #[must_use]
    pub fn sentence(&self) -> String {
        let (asker, answerer) = if self.by == Dir::S2c { ("server", "client") } else { ("client", "server") };
        let signal = match self.signal {
            Some(Signal::Disconnect) => format!("the {asker} left"),
            _ => "the cancel came".to_owned(),
        };
        let end = match self.signal {
            Some(Signal::Disconnect) => format!("the {asker} had left"),
            _ => "the cancel".to_owned(),
        };
        let margin = Span(self.margin_ns.unwrap_or(0).unsigned_abs());
        let (window, silent) = (Span(self.window_ns), Span(self.silent_ns));
        let what = match (self.verdict, self.reason) {
            (Verdict::CompleteWon, _) => format!("{signal} {margin} after the answer: the answer won"),
            (Verdict::CancelWon, Reason::Telemetry) => {
                format!("the {answerer} told that it saw the cancel, and no answer came: the cancel won")
            }
            (Verdict::CancelWon, Reason::StreamEnd) => {
                format!("no answer came after {end}, and none can come any more: the cancel won")
            }
            (Verdict::CancelWon, Reason::Horizon) => {
                format!("no answer came in the {silent} after {end}: the cancel won")
            }
            (Verdict::CancelWon, _) => {
                format!(
                    "no answer came in the {silent} seen after {end}: the cancel won, as far as can be seen"
                )
            }
            (Verdict::Crossed, Reason::Telemetry) => format!(
                "the answer came {margin} after {end}, but the {answerer} was done before it saw that: the two crossed"
            ),
            (Verdict::Crossed, _) => format!(
                "the answer came {margin} after {end}, within the window of {window}: the two crossed, and neither side can tell which was first"
            ),
            (Verdict::LateResponse, Reason::Telemetry) => {
                format!("the answer came {margin} after {end}, which the {answerer} told that it had seen")
            }
            (Verdict::LateResponse, Reason::Witness) => format!(
                "the answer came {margin} after {end}, and behind the answer to a request that was written later: the {answerer} had read the cancel"
            ),
            (Verdict::LateResponse, _) => format!(
                "the answer came {margin} after {end}, more than the window of {window} explains: the {answerer} answered what it must have known to be cancelled"
            ),
            (Verdict::Unresolved, Reason::Horizon) => {
                format!("neither an answer nor a cancel came in {silent}: what became of it is not known")
            }
            (Verdict::Unresolved, _) => format!(
                "neither an answer nor a cancel came in the {silent} until the end of the recording: what became of it is not known"
            ),
        };
        let fault = match self.verdict {
            _ if self.is_injected => "; midwire itself took part, so nobody is at fault".to_owned(),
            Verdict::LateResponse => format!("; the {answerer} is at fault"),
            Verdict::Unresolved => String::new(),
            _ => "; nobody is at fault".to_owned(),
        };
        what + &fault
    }
}

impl Model {
    /// How the race of a call stands, as far as the events folded so far tell. `None`: there is
    /// no race, because it was answered in peace, was lost, or is open and not overdue.
    #[must_use]
    pub fn race(&self, idx: CallIdx) -> Option<Race> {
        let call = self.call(idx)?;
        let now = self.overview.last;
        let race = match call.race.as_deref() {
            Some(race) if race.reason == Reason::SoFar => self.settled(call, *race, now),
            Some(race) => *race,
            None => self.orphan(call, now)?,
        };
        Some(Race { is_injected: call.is_injected, ..race })
    }

    /// A race that no answer has turned: is it decided by now?
    fn settled(&self, call: &Call, race: Race, now: Mono) -> Race {
        let since = race.cancelled_at.unwrap_or(call.started);
        let is_over = self.scope(call.scope).is_some_and(|scope| scope.ended.is_some());
        let silent_ns = now.ns_since(since);
        let reason = match () {
            () if is_over => Reason::StreamEnd,
            () if silent_ns >= HORIZON.to_ns() => Reason::Horizon,
            () if self.overview.capture != super::Capture::Live => Reason::RecordingEnd,
            () => Reason::SoFar,
        };
        Race { reason, silent_ns, ..race }
    }

    /// A call that nothing ended. Subscriptions have no end of their own.
    fn orphan(&self, call: &Call, now: Mono) -> Option<Race> {
        let silent_ns = call.ended.unwrap_or(now).ns_since(call.started);
        let is_overdue = silent_ns >= HORIZON.to_ns();
        let reason = match call.state {
            CallState::Unresolved if !is_overdue => Reason::RecordingEnd,
            CallState::Unresolved | CallState::Delivered | CallState::Progressing if is_overdue => {
                Reason::Horizon
            }
            _ => return None,
        };
        let race = self.new_race(call, Verdict::Unresolved, reason);
        (call.method != Name::LISTEN).then_some(Race { silent_ns, ..race })
    }

    fn new_race(&self, call: &Call, verdict: Verdict, reason: Reason) -> Race {
        Race {
            verdict,
            reason,
            margin_ns: None,
            window_ns: self.window_ns(call.scope),
            silent_ns: 0,
            signal: None,
            cancelled_at: None,
            cancel: None,
            answer: None,
            by: call.sender,
            is_injected: false,
        }
    }

    /// The cancel signal of an open call passed: until an answer comes, the cancel has won.
    pub(super) fn cancel_leads(&mut self, idx: CallIdx, signal: Signal, at: Mono, row: RowIdx) {
        let Some(call) = self.call(idx) else { return };
        let race = Race {
            signal: Some(signal),
            cancelled_at: Some(at),
            cancel: Some(row),
            ..self.new_race(call, Verdict::CancelWon, Reason::SoFar)
        };
        if let Some(call) = self.call_mut(idx) {
            call.race = Some(Box::new(race));
        }
    }

    /// The cancel signal of a call passed after its answer.
    pub(super) fn cancel_lost(&mut self, idx: CallIdx, signal: Signal, at: Mono, row: RowIdx) {
        let Some(call) = self.call(idx) else { return };
        let Some(answered) = call.ended.filter(|_| call.race.is_none()) else { return };
        let is_answer = |kind| matches!(kind, MarkKind::Result | MarkKind::InputRequired | MarkKind::Error);
        let answer = call.marks.iter().find(|mark| is_answer(mark.kind)).map(|mark| mark.row);
        // Who leaves after the answer was handed over has got it: that is no cancel.
        let is_got = answer
            .and_then(|row| self.row(row)?.out)
            .is_some_and(|out| signal == Signal::Disconnect && out <= at);
        if is_got {
            return;
        }
        let race = Race {
            margin_ns: Some(signed(at.ns_since(answered)).saturating_neg()),
            signal: Some(signal),
            cancelled_at: Some(at),
            cancel: Some(row),
            answer,
            ..self.new_race(call, Verdict::CompleteWon, Reason::Order)
        };
        if let Some(call) = self.call_mut(idx) {
            call.race = Some(Box::new(race));
        }
    }

    /// The first answer after the cancel of a call: crossed, or late.
    pub(super) fn answer_races(&mut self, idx: CallIdx, lateness: Lateness, row: RowIdx) {
        let Some(race) = self.call_mut(idx).and_then(|call| call.race.as_deref_mut()) else { return };
        race.verdict = if lateness.is_late { Verdict::LateResponse } else { Verdict::Crossed };
        race.reason = lateness.reason;
        race.margin_ns = Some(signed(lateness.margin_ns));
        race.window_ns = lateness.window_ns;
        race.answer = Some(row);
        self.overview.counts.late += u64::from(lateness.is_late);
    }

    /// The stream of a cancelled call ended: nothing more can come on it.
    pub(super) fn race_stream_ended(&mut self, idx: CallIdx) {
        if let Some(race) = self.call_mut(idx).and_then(|call| call.race.as_deref_mut())
            && race.reason == Reason::SoFar
        {
            race.reason = Reason::StreamEnd;
        }
    }

    /// The server told that it saw the cancel of a call: that decides what the window only
    /// guessed, except where the answer was judged late before.
    pub(super) fn race_told(&mut self, idx: CallIdx) {
        if let Some(race) = self.call_mut(idx).and_then(|call| call.race.as_deref_mut())
            && matches!(race.verdict, Verdict::CancelWon | Verdict::Crossed)
        {
            race.reason = Reason::Telemetry;
        }
    }

    /// How long after the cancel of a call something of the other side passed, and whether its
    /// sender must have read the cancel before: by what it told, by a witness, or by the window.
    pub(super) fn lateness(&self, at: At, idx: CallIdx) -> Lateness {
        let lost = Lateness { margin_ns: 0, window_ns: u64::MAX, is_late: false, reason: Reason::Window };
        let Some(call) = self.call(idx) else { return lost };
        let scope = self.scope(call.scope);
        let race = call.race.as_deref();
        let margin_ns =
            race.and_then(|race| race.cancelled_at).map_or(0, |cancelled| at.first.ns_since(cancelled));
        let window_ns = self.window_ns(call.scope);
        let cancel = race.and_then(|race| race.cancel);
        let has_witness = call.transport == Transport::Stdio
            && call.sender == Dir::C2s
            && cancel.is_some_and(|cancel| scope.is_some_and(|scope| scope.witness > Some(cancel)));
        let told = call.told.as_deref().and_then(Told::saw_cancel_first);
        let (is_late, reason) = match told {
            Some(saw_cancel_first) => (saw_cancel_first, Reason::Telemetry),
            None if has_witness => (true, Reason::Witness),
            None => (margin_ns > window_ns, Reason::Window),
        };
        Lateness { margin_ns, window_ns, is_late, reason }
    }
}

fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;

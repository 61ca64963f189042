//! How a session ends: which signal is due when, and when the tap may go. A pure machine: it is
//! told what happened and when, and says what to do.

use std::time::Duration;

use rustix::process::Signal;

use super::Waits;
use crate::time::{Mono, Ms};

/// How long an end of the server's stdout may wait for the process's exit status, so that an
/// ordinary end is one event. ours: an exiting process closes its pipes well under 1 ms before.
const EXIT_FOLLOWS: Ms = Ms(20);

/// How often the tap looks again whether a pipe is drained or a group is gone; neither tells.
const LOOK_AGAIN: Ms = Ms(5);

/// How long a client that asked for the end may take nothing of what the server left for it. ours:
/// a client that reads at all, however slowly, takes something in that time.
const STUCK: Ms = Ms(2000);

/// What has been seen of the server's two pipes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    /// Both have ended, or their receiver has.
    pub(super) are_pipes_ended: bool,
    /// All that was in them when the server ended has been written on.
    pub(super) are_pipes_delivered: bool,
    /// Bytes written on so far, both together.
    pub(super) delivered_bytes: u64,
}

/// What to do now.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// Send a signal to the server's group.
    Send {
        /// Which.
        signal: Signal,
        /// Why, for the recording.
        why: String,
    },
    /// The server closed its stdout and lives on: say so, and pass the end on.
    ReportStdoutClosed,
    /// The server has ended and all its bytes are delivered: say so, and pass the end on.
    ReportExit,
    /// The session is over.
    Finish,
}

/// Where the ending is. `since`: when this stage began.
#[derive(Debug, Clone, Copy)]
enum Stage {
    /// The server's stdin is open.
    Open,
    /// The server's stdin has ended; `SIGTERM` is next.
    StdinClosed { since: Mono },
    /// `SIGTERM` was sent; `SIGKILL` is next.
    Terminated { since: Mono },
    /// `SIGKILL` was sent.
    Killed,
    /// The server has ended; its pipes are being drained.
    Exited { since: Mono },
    /// The end was reported; the rest of the group is looked for.
    Reported,
    /// The rest of the group was sent `SIGTERM`.
    LeftoverTerminated { since: Mono },
    /// Nothing more to do.
    Over,
}

/// The machine.
#[derive(Debug)]
pub(super) struct Ending {
    waits: Waits,
    stage: Stage,
    stdout_closed: Option<Mono>,
    is_hurried: bool,
    /// A signal asked for the end, at whatever stage.
    is_end_asked: bool,
    /// The bytes that had been delivered, and since when there are no more.
    delivered: (u64, Mono),
}

impl Ending {
    pub(super) fn new(waits: Waits) -> Ending {
        Ending {
            waits,
            stage: Stage::Open,
            stdout_closed: None,
            is_hurried: false,
            is_end_asked: false,
            delivered: (0, Mono(0)),
        }
    }

    /// The server's stdin has ended.
    pub(super) fn stdin_closed(&mut self, now: Mono) {
        if matches!(self.stage, Stage::Open) {
            self.stage = Stage::StdinClosed { since: now };
        }
    }

    /// The server's stdout has ended.
    pub(super) fn stdout_closed(&mut self, now: Mono) {
        self.stdout_closed = Some(now);
    }

    /// The server process has ended.
    pub(super) fn exited(&mut self, now: Mono) {
        self.stage = Stage::Exited { since: now };
        self.delivered.1 = now;
    }

    /// A signal asked for the end: once the server has ended, nothing is waited for any more.
    /// Before that, the server decides, as it would without a tap; but a client that asked for the
    /// end and then reads nothing is not waited for either.
    pub(super) fn hurry(&mut self) {
        self.is_end_asked = true;
        self.is_hurried = self.is_server_over();
    }

    fn is_server_over(&self) -> bool {
        matches!(
            self.stage,
            Stage::Exited { .. } | Stage::Reported | Stage::LeftoverTerminated { .. } | Stage::Over
        )
    }

    /// What to do now, if anything; asked again until `None`. `is_group_alive` is called only
    /// after the server's end.
    pub(super) fn next(&mut self, now: Mono, seen: Seen, is_group_alive: impl Fn() -> bool) -> Option<Act> {
        if !self.is_server_over() && self.stdout_closed.is_some_and(|at| at.plus(EXIT_FOLLOWS) <= now) {
            self.stdout_closed = None;
            return Some(Act::ReportStdoutClosed);
        }
        if seen.delivered_bytes != self.delivered.0 {
            self.delivered = (seen.delivered_bytes, now);
        }
        let is_stuck = self.is_end_asked && self.delivered.1.plus(STUCK) <= now;
        let Waits { term, kill, drain, leftover } = self.waits;
        let is_hurried = self.is_hurried;
        let is_due = |since: Mono, wait: Ms| is_hurried || since.plus(wait) <= now;
        let (stage, act) = match self.stage {
            Stage::StdinClosed { since } if is_due(since, term) => {
                (Stage::Terminated { since: now }, send(Signal::TERM, "stdin closed", term))
            }
            Stage::Terminated { since } if is_due(since, kill) => {
                (Stage::Killed, send(Signal::KILL, "SIGTERM sent", kill))
            }
            Stage::Exited { since }
                if seen.are_pipes_ended
                    || is_hurried
                    || is_stuck
                    || seen.are_pipes_delivered && is_due(since, drain) =>
            {
                (Stage::Reported, Act::ReportExit)
            }
            Stage::Reported if is_group_alive() => {
                let why = "left over after the server's end".to_owned();
                (Stage::LeftoverTerminated { since: now }, Act::Send { signal: Signal::TERM, why })
            }
            Stage::LeftoverTerminated { since } if is_group_alive() => {
                if !is_due(since, leftover) {
                    return None;
                }
                (Stage::Over, send(Signal::KILL, "left over, SIGTERM sent", leftover))
            }
            Stage::Reported | Stage::LeftoverTerminated { .. } | Stage::Over => (Stage::Over, Act::Finish),
            _ => return None,
        };
        self.stage = stage;
        Some(act)
    }

    /// How long nothing is due; `None`: until something happens.
    pub(super) fn patience(&self, now: Mono) -> Option<Duration> {
        let stage = match self.stage {
            Stage::StdinClosed { since } => Some(since.plus(self.waits.term)),
            Stage::Terminated { since } => Some(since.plus(self.waits.kill)),
            Stage::Exited { .. } | Stage::LeftoverTerminated { .. } => Some(now.plus(LOOK_AGAIN)),
            Stage::Open | Stage::Killed | Stage::Reported | Stage::Over => None,
        };
        let stdout = self.stdout_closed.filter(|_| !self.is_server_over()).map(|at| at.plus(EXIT_FOLLOWS));
        let due = stage.into_iter().chain(stdout).min()?;
        Some(Duration::from_nanos(due.ns_since(now)))
    }
}

fn send(signal: Signal, what: &str, ago: Ms) -> Act {
    Act::Send { signal, why: format!("{what} {} ms ago", ago.0) }
}

#[cfg(test)]
mod tests;

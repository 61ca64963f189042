//! What became of a call, in a word, a glyph and a sentence.

use super::ink::OutcomeGlyphs;
use super::units::span;
use crate::config::theme::Role;
use crate::event::{Dir, Transport};
use crate::model::{Call, CallState, Model, Verdict};
use crate::spec::era::Era;
use crate::time::Mono;

/// The outcome of a call in a word of at most six letters, a glyph, and a role.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outcome {
    /// The word; it alone says everything.
    pub word: &'static str,
    /// Which glyph goes with it.
    pub glyph: fn(&OutcomeGlyphs) -> char,
    /// How it looks.
    pub role: Role,
}

impl Outcome {
    /// The outcome of a call.
    #[must_use]
    pub(super) fn of(call: &Call) -> Outcome {
        let given_up = matches!(call.state, CallState::CancelledByClient | CallState::AbandonedByDisconnect);
        match call.verdict().filter(|_| given_up) {
            Some(Verdict::LateResponse) => {
                return Outcome { word: "LATE", glyph: |g| g.late, role: Role::Late };
            }
            Some(Verdict::Crossed) => {
                return Outcome { word: "CROSS", glyph: |g| g.cross, role: Role::Cancelled };
            }
            _ => {}
        }
        match call.state {
            CallState::Delivered => Outcome { word: "OPEN", glyph: |g| g.open, role: Role::Open },
            CallState::Progressing => Outcome { word: "RUN", glyph: |g| g.run, role: Role::Open },
            CallState::AnsweredOk if call.is_tool_error => {
                Outcome { word: "FAIL", glyph: |g| g.error, role: Role::Error }
            }
            CallState::AnsweredOk => Outcome { word: "OK", glyph: |g| g.ok, role: Role::Ok },
            CallState::AnsweredError => Outcome { word: "ERR", glyph: |g| g.error, role: Role::Error },
            CallState::InputRequired => Outcome { word: "INPUT", glyph: |g| g.input, role: Role::Input },
            CallState::CancelledByClient => {
                Outcome { word: "CANCEL", glyph: |g| g.cancel, role: Role::Cancelled }
            }
            CallState::AbandonedByDisconnect => {
                Outcome { word: "DISC", glyph: |g| g.disconnect, role: Role::Cancelled }
            }
            CallState::Lost => Outcome { word: "LOST", glyph: |g| g.lost, role: Role::Error },
            CallState::Unresolved => Outcome { word: "CUT", glyph: |g| g.cut, role: Role::Warn },
        }
    }
}

/// How long a call took, or has taken until `now`.
#[must_use]
pub(super) fn duration_ns(call: &Call, now: Mono) -> u64 {
    call.ended.unwrap_or(now.max(call.started)).ns_since(call.started)
}

/// The one-line answer: waiting for what, since when, who acts next; or how it ended.
#[must_use]
pub(super) fn answer(model: &Model, call: &Call, now: Mono) -> String {
    let (asker, answerer) = if call.sender == Dir::S2c { ("server", "client") } else { ("client", "server") };
    let took = span(duration_ns(call, now));
    match call.state {
        CallState::Delivered => {
            format!("waiting for the {answerer} since {took}; nothing back yet; the {answerer} acts next")
        }
        CallState::Progressing => {
            format!("the {answerer} is at work since {took}{}; the {answerer} acts next", progress(call, now))
        }
        CallState::AnsweredOk if call.is_tool_error => {
            format!("the tool failed after {took}: the result says isError{}", after(call))
        }
        CallState::AnsweredOk => format!("answered after {took}{}{}", count_of_progress(call), after(call)),
        CallState::AnsweredError => format!("refused after {took}{}{}", error(call), after(call)),
        CallState::InputRequired => {
            format!("the {answerer} asked for input after {took}; the {asker} acts next, with a new request")
        }
        CallState::CancelledByClient => {
            let reason =
                call.cancel_reason.map(|name| format!(", \"{}\"", model.text(name))).unwrap_or_default();
            format!("cancelled by the {asker} after {took}{reason}{}", late(call))
        }
        CallState::AbandonedByDisconnect => {
            let is_cancel = call.transport == Transport::Http && call.era.is_none_or(Era::is_modern);
            let meaning =
                if is_cancel { ", which is the cancel signal here" } else { "; that alone cancels nothing" };
            format!("the {asker} left after {took}{meaning}{}", late(call))
        }
        CallState::Lost => {
            format!("the stream or the process ended after {took}, before an answer; the {asker} acts next")
        }
        CallState::Unresolved => format!("the recording ended after {took}; what followed is not known"),
    }
}

/// ` 3 of 10, last one 1.2 s ago`.
fn progress(call: &Call, now: Mono) -> String {
    let Some(last_at) = call.progress.last_at else { return String::new() };
    let value = call.progress.last.map(|last| match call.progress.total {
        Some(total) => format!("{last} of {total}, "),
        None => format!("{last}, "),
    });
    format!(": {}last progress {} ago", value.unwrap_or_default(), span(now.ns_since(last_at)))
}

fn count_of_progress(call: &Call) -> String {
    match call.progress.count {
        0 => String::new(),
        n => format!(" with {n} progress"),
    }
}

fn error(call: &Call) -> String {
    match (call.error_code, call.status) {
        (Some(code), Some(status)) if status != 200 => format!(" with error {code} and HTTP status {status}"),
        (Some(code), _) => format!(" with error {code}"),
        (None, Some(status)) => format!(" with HTTP status {status}"),
        (None, None) => String::new(),
    }
}

/// What came after an answer.
fn after(call: &Call) -> String {
    let after = call.after;
    let mut parts = Vec::new();
    for (n, what) in [
        (after.late_cancels, "cancel came later"),
        (after.late_progress, "progress came later"),
        (after.duplicate_answers, "more answers came"),
    ] {
        if n > 0 {
            parts.push(format!("{n} {what}"));
        }
    }
    if parts.is_empty() { String::new() } else { format!("; {}", parts.join(", ")) }
}

/// What came after the client had given up.
fn late(call: &Call) -> String {
    if call.verdict() == Some(Verdict::Crossed) {
        return "; the answer was under way at once, nobody is at fault".to_owned();
    }
    match (call.after.late_answers, call.after.late_progress) {
        (0, 0) => "; nothing came after it".to_owned(),
        (0, n) => format!("; {n} progress came after it"),
        (_, 0) => "; an answer came all the same".to_owned(),
        (_, n) => format!("; {n} progress and an answer came all the same"),
    }
}

/// A call whose end somebody will want to look into.
#[must_use]
pub(super) fn is_trouble(call: &Call) -> bool {
    call.is_tool_error
        || call.verdict() == Some(Verdict::LateResponse)
        || matches!(call.state, CallState::AnsweredError | CallState::Lost)
}

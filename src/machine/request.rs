//! The life of one request, once as its server knows it and once as its client does.
//!
//! The two are never one struct: the client has given up when it sends the signal, the server
//! when it receives it, and neither can tell what the other saw first. On either side the first
//! terminal event wins and nothing changes it later.

use super::deadlines::{Deadlines, Fired};
use crate::time::Ms;

/// Where a request stands for its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ServerState {
    /// The handler runs.
    InProgress,
    /// The handler has come to its end.
    Completed,
    /// The client's cancel signal came first; nothing is ever said again.
    Cancelled,
}

/// What a cancel signal does to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CancelEffect {
    /// It ends the request.
    Cancelled,
    /// The work cannot be stopped: it goes on, but nothing of it is told any more
    /// (spec 2026-07-28 basic/patterns/cancellation: a server may ignore what it cannot honour).
    NotHonoured,
    /// None: the request was over.
    Ignored,
}

/// What becomes of the response that a handler hands over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completion<'a, R> {
    /// Give it out.
    Emit(&'a R),
    /// There was one before: this is the response of the request, and it is not given out again.
    Stored(&'a R),
    /// The client has given up: say nothing.
    Suppressed,
}

impl<R> Completion<'_, R> {
    /// The response is to be given out now.
    #[must_use]
    pub fn is_emitted(&self) -> bool {
        matches!(self, Completion::Emit(_))
    }
}

/// One request as its server knows it. `R` is what a response is for its owner.
#[derive(Debug, Clone)]
pub struct ServerRequest<R = ()> {
    end: Option<End<R>>,
    has_token: bool,
    is_stoppable: bool,
    last_progress: Option<f64>,
    /// A cancel came, honoured or not.
    is_given_up: bool,
    reason: Option<String>,
}

/// The terminal event of a request.
#[derive(Debug, Clone)]
enum End<R> {
    Completed(R),
    Cancelled,
}

impl<R> ServerRequest<R> {
    /// A request that was just accepted. `has_token`: it asked for progress.
    #[must_use]
    pub fn new(has_token: bool) -> ServerRequest<R> {
        ServerRequest {
            end: None,
            has_token,
            is_stoppable: true,
            last_progress: None,
            is_given_up: false,
            reason: None,
        }
    }

    /// The work cannot be stopped: a cancel from here on is not honoured.
    pub fn make_unstoppable(&mut self) {
        self.is_stoppable = false;
    }

    /// The handler reports progress; true: tell the client. Only rising values of a running
    /// request that asked for them and was not given up are told.
    pub fn progress(&mut self, value: f64) -> bool {
        let is_told = self.end.is_none()
            && !self.is_given_up
            && self.has_token
            && !value.is_nan()
            && self.last_progress.is_none_or(|last| value > last);
        if is_told {
            self.last_progress = Some(value);
        }
        is_told
    }

    /// The cancel signal came. Of several the first is kept.
    pub fn cancel(&mut self, reason: Option<&str>) -> CancelEffect {
        if self.end.is_some() || self.is_given_up {
            return CancelEffect::Ignored;
        }
        self.is_given_up = true;
        self.reason = reason.map(str::to_owned);
        if !self.is_stoppable {
            return CancelEffect::NotHonoured;
        }
        self.end = Some(End::Cancelled);
        CancelEffect::Cancelled
    }

    /// The handler hands over its response.
    pub fn complete(&mut self, response: R) -> Completion<'_, R> {
        let is_first = self.end.is_none();
        match &*self.end.get_or_insert(End::Completed(response)) {
            End::Completed(response) if !is_first => Completion::Stored(response),
            End::Completed(response) if !self.is_given_up => Completion::Emit(response),
            _ => Completion::Suppressed,
        }
    }

    /// Where it stands.
    #[must_use]
    pub fn state(&self) -> ServerState {
        match self.end {
            None => ServerState::InProgress,
            Some(End::Completed(_)) => ServerState::Completed,
            Some(End::Cancelled) => ServerState::Cancelled,
        }
    }

    /// The response that it was completed with.
    #[must_use]
    pub fn response(&self) -> Option<&R> {
        match &self.end {
            Some(End::Completed(response)) => Some(response),
            _ => None,
        }
    }

    /// Why the client gave up, in its own words.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// A cancel came that could not be honoured.
    #[must_use]
    pub fn is_cancel_unhonoured(&self) -> bool {
        self.is_given_up && !matches!(self.end, Some(End::Cancelled))
    }
}

/// Where a request stands for its client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClientState {
    /// No answer yet.
    Waiting,
    /// An answer was delivered.
    Answered,
    /// Given up; later answers and progress are counted and dropped.
    Abandoned,
}

/// What became of a progress value at the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Heard {
    /// It rose: delivered, and the idle clock starts again.
    Accepted,
    /// It did not rise: dropped, the clocks go on.
    Rejected,
    /// The request was over: dropped.
    Late,
}

/// One request as its client knows it.
#[derive(Debug, Clone)]
pub struct ClientRequest {
    state: ClientState,
    deadlines: Deadlines,
    last_progress: Option<f64>,
    reason: Option<String>,
    dropped: u64,
}

impl ClientRequest {
    /// A request that is being sent.
    #[must_use]
    pub fn new(deadlines: Deadlines) -> ClientRequest {
        ClientRequest {
            state: ClientState::Waiting,
            deadlines,
            last_progress: None,
            reason: None,
            dropped: 0,
        }
    }

    /// Progress of this request came at `now`.
    pub fn progress(&mut self, value: f64, now: Ms) -> Heard {
        if self.state != ClientState::Waiting {
            self.dropped += 1;
            return Heard::Late;
        }
        if value.is_nan() || self.last_progress.is_some_and(|last| value <= last) {
            return Heard::Rejected;
        }
        self.last_progress = Some(value);
        self.deadlines.restart_idle(now);
        Heard::Accepted
    }

    /// The answer came; true: deliver it.
    pub fn answer(&mut self) -> bool {
        let is_first = self.end(ClientState::Answered);
        if !is_first {
            self.dropped += 1;
        }
        is_first
    }

    /// The client gives up; true: send the cancel signal that is right for the transport.
    pub fn abandon(&mut self, reason: &str) -> bool {
        let is_first = self.end(ClientState::Abandoned);
        if is_first {
            self.reason = Some(reason.to_owned());
        }
        is_first
    }

    /// Looks at the clocks at `now` and gives up if one has fired: the signal is to be sent then.
    pub fn expire(&mut self, now: Ms) -> Option<Fired> {
        let fired = self.fired(now)?;
        self.abandon(fired.as_str()).then_some(fired)
    }

    /// The deadline that has fired at `now`; none once the request is over.
    #[must_use]
    pub fn fired(&self, now: Ms) -> Option<Fired> {
        if self.state == ClientState::Waiting { self.deadlines.fired(now) } else { None }
    }

    /// When to look next; `None` once the request is over.
    #[must_use]
    pub fn due_at(&self) -> Option<Ms> {
        (self.state == ClientState::Waiting).then(|| self.deadlines.next_at())
    }

    /// Where it stands.
    #[must_use]
    pub fn state(&self) -> ClientState {
        self.state
    }

    /// Why it was given up.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// Answers and progress that came when it was over, and were not delivered.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    fn end(&mut self, state: ClientState) -> bool {
        let is_first = self.state == ClientState::Waiting;
        if is_first {
            self.state = state;
        }
        is_first
    }
}

#[cfg(test)]
mod tests;

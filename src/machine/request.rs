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
    /// The response was given out.
    Completed,
    /// The client's cancel signal came first; nothing is ever said again.
    Cancelled,
}

/// One request as its server knows it.
#[derive(Debug, Clone)]
pub struct ServerRequest {
    state: ServerState,
    has_token: bool,
    last_progress: Option<f64>,
    reason: Option<String>,
}

impl ServerRequest {
    /// A request that was just accepted. `has_token`: it asked for progress.
    #[must_use]
    pub fn new(has_token: bool) -> ServerRequest {
        ServerRequest { state: ServerState::InProgress, has_token, last_progress: None, reason: None }
    }

    /// The handler reports progress; true: tell the client. Only rising values of a running
    /// request that asked for them are told.
    pub fn progress(&mut self, value: f64) -> bool {
        let is_told = self.state == ServerState::InProgress
            && self.has_token
            && self.last_progress.is_none_or(|last| value > last);
        if is_told {
            self.last_progress = Some(value);
        }
        is_told
    }

    /// The cancel signal came; true: it is what ends the request.
    pub fn cancel(&mut self, reason: Option<&str>) -> bool {
        let is_first = self.end(ServerState::Cancelled);
        if is_first {
            self.reason = reason.map(str::to_owned);
        }
        is_first
    }

    /// The response is about to be given out; true: do so.
    pub fn complete(&mut self) -> bool {
        self.end(ServerState::Completed)
    }

    /// Where it stands.
    #[must_use]
    pub fn state(&self) -> ServerState {
        self.state
    }

    /// Why the client gave up, in its own words.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    fn end(&mut self, state: ServerState) -> bool {
        let is_first = self.state == ServerState::InProgress;
        if is_first {
            self.state = state;
        }
        is_first
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
}

impl ClientRequest {
    /// A request that is being sent.
    #[must_use]
    pub fn new(deadlines: Deadlines) -> ClientRequest {
        ClientRequest { state: ClientState::Waiting, deadlines, last_progress: None }
    }

    /// Progress of this request came at `now`.
    pub fn progress(&mut self, value: f64, now: Ms) -> Heard {
        if self.state != ClientState::Waiting {
            return Heard::Late;
        }
        if self.last_progress.is_some_and(|last| value <= last) {
            return Heard::Rejected;
        }
        self.last_progress = Some(value);
        self.deadlines.restart_idle(now);
        Heard::Accepted
    }

    /// The answer came; true: deliver it.
    pub fn answer(&mut self) -> bool {
        self.end(ClientState::Answered)
    }

    /// The client gives up; true: send the cancel signal.
    pub fn abandon(&mut self) -> bool {
        self.end(ClientState::Abandoned)
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

    fn end(&mut self, state: ClientState) -> bool {
        let is_first = self.state == ClientState::Waiting;
        if is_first {
            self.state = state;
        }
        is_first
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn progress_is_told_only_while_running_rising_and_asked_for() {
        let mut request = ServerRequest::new(true);
        let told: Vec<bool> = [0.0, 1.0, 1.0, 0.5, 1.5].map(|value| request.progress(value)).into();
        assert_eq!(told, [true, true, false, false, true]);
        assert!(!ServerRequest::new(false).progress(1.0));
        assert!(request.complete());
        assert!(!request.progress(9.0));
    }

    #[test]
    fn the_reason_of_the_cancel_that_won_is_kept() {
        let mut request = ServerRequest::new(false);
        assert!(request.cancel(Some("deadline")));
        assert!(!request.cancel(Some("again")));
        assert!(!request.complete());
        assert_eq!((request.state(), request.reason()), (ServerState::Cancelled, Some("deadline")));
    }

    #[test]
    fn an_answer_after_giving_up_is_not_delivered() {
        let mut request = ClientRequest::new(Deadlines::new(Ms(0), Ms(10), Ms(10)).unwrap());
        assert!(request.abandon());
        assert!(!request.answer());
        assert_eq!(request.progress(1.0, Ms(1)), Heard::Late);
        assert_eq!((request.state(), request.due_at()), (ClientState::Abandoned, None));
    }

    proptest! {
        /// Whatever the order, exactly one terminal event wins, it is the first, and nothing is
        /// told after it.
        #[test]
        fn the_first_terminal_event_wins(events in prop::collection::vec(0u8..3, 0..20)) {
            let mut request = ServerRequest::new(true);
            let mut expected = ServerState::InProgress;
            for (k, event) in events.into_iter().enumerate() {
                let was_open = expected == ServerState::InProgress;
                let is_effective = match event {
                    0 => request.progress(f64::from(u32::try_from(k).unwrap())),
                    1 => request.cancel(None),
                    _ => request.complete(),
                };
                prop_assert_eq!(is_effective, was_open);
                if was_open {
                    expected = [ServerState::InProgress, ServerState::Cancelled, ServerState::Completed][usize::from(event)];
                }
                prop_assert_eq!(request.state(), expected);
            }
        }
    }
}

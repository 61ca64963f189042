//! How the other side is told that something is no longer wanted.
//!
//! The signal depends on transport and era, and the same sign means different things in different
//! eras: a closed stream cancels a modern HTTP request and nothing else.

use crate::spec::era::Era;
use crate::spec::transport::Transport;

/// Who gives up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// The client.
    Client,
    /// The server.
    Server,
}

/// What is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Target {
    /// A request of that side that has no rule of its own.
    Request,
    /// The handshake of a legacy session.
    Initialize,
    /// A subscription, which the client opened and either side may end.
    Listen,
    /// A durable task of the server, long after its request was answered.
    Task,
}

/// What is put on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Signal {
    /// `notifications/cancelled` that names the request.
    Notification,
    /// The same as the body of a POST of its own.
    PostedNotification,
    /// The stream on which the answer comes is closed, be it JSON or SSE; nothing is sent.
    CloseStream,
    /// The closing result of a subscription, then `notifications/cancelled` that names it: the
    /// specification asks for the one on one page and for the other on another
    /// (spec 2026-07-28 basic/patterns/subscriptions, basic/patterns/cancellation).
    ResultAndNotification,
    /// The closing result of a subscription, then the end of its stream. The end alone would be a
    /// loss.
    ResultAndClose,
    /// A `tasks/cancel` request. What it is answered with says only that it was heard.
    TasksCancel,
}

/// What the other side says to a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reply {
    /// Nothing, ever.
    Nothing,
    /// The status 202 without a body.
    Accepted,
    /// A result.
    Result,
}

/// The signal by which `side` gives up `target`; `None`: it must not, or there is no such thing in
/// this era.
///
/// Source: the cancellation pages of the eras; over HTTP+SSE of 2024-11-05 a notification is a POST
/// as well.
#[must_use]
pub fn signal(side: Side, transport: Transport, era: Era, target: Target) -> Option<Signal> {
    use Transport::{Http, Stdio};
    match (side, target, era.is_modern()) {
        (_, Target::Initialize, _) | (_, Target::Listen, false) | (Side::Server, Target::Request, true) => {
            None
        }
        (Side::Client, Target::Task, _) => (era >= Era::V2025_11_25).then_some(Signal::TasksCancel),
        // Tasks of the client, on behalf of the server: the era of core tasks only.
        (Side::Server, Target::Task, _) => (era == Era::V2025_11_25).then_some(Signal::TasksCancel),
        (Side::Client, Target::Request | Target::Listen, true) => Some(match transport {
            Stdio => Signal::Notification,
            Http => Signal::CloseStream,
        }),
        (Side::Client, Target::Request, false) => Some(match transport {
            Stdio => Signal::Notification,
            Http => Signal::PostedNotification,
        }),
        (Side::Server, Target::Request, false) => Some(Signal::Notification),
        (Side::Server, Target::Listen, true) => Some(match transport {
            Stdio => Signal::ResultAndNotification,
            Http => Signal::ResultAndClose,
        }),
    }
}

/// A request ends when its response stream closes before the answer: only modern HTTP. Elsewhere a
/// closed stream is a loss, and the request goes on.
#[must_use]
pub fn is_disconnect_a_cancel(transport: Transport, era: Era) -> bool {
    transport == Transport::Http && era.is_modern()
}

impl Signal {
    /// What the other side owes to it.
    #[must_use]
    pub fn reply(self) -> Reply {
        match self {
            Signal::PostedNotification => Reply::Accepted,
            Signal::TasksCancel => Reply::Result,
            _ => Reply::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signal_is_the_one_of_transport_and_era() {
        use Side::{Client, Server};
        use Signal::{CloseStream, Notification, PostedNotification, TasksCancel};
        use Signal::{ResultAndClose, ResultAndNotification};
        use Target::{Initialize, Listen, Request, Task};
        // Who, what; then stdio legacy, HTTP legacy, stdio modern, HTTP modern.
        let rows = [
            (
                Client,
                Request,
                [Some(Notification), Some(PostedNotification), Some(Notification), Some(CloseStream)],
            ),
            (Client, Initialize, [None; 4]),
            (Client, Listen, [None, None, Some(Notification), Some(CloseStream)]),
            (Server, Request, [Some(Notification), Some(Notification), None, None]),
            (Server, Initialize, [None; 4]),
            (Server, Listen, [None, None, Some(ResultAndNotification), Some(ResultAndClose)]),
        ];
        for era in Era::ALL {
            for transport in [Transport::Stdio, Transport::Http] {
                let column = usize::from(era.is_modern()) * 2 + usize::from(transport == Transport::Http);
                for (side, target, signals) in rows {
                    let found = signal(side, transport, era, target);
                    assert_eq!(found, signals[column], "{side:?} {target:?} {transport:?} {}", era.as_str());
                }
                let has_tasks = era >= Era::V2025_11_25;
                assert_eq!(signal(Client, transport, era, Task).is_some(), has_tasks);
                let both_have_tasks = era == Era::V2025_11_25;
                assert_eq!(signal(Server, transport, era, Task), both_have_tasks.then_some(TasksCancel));
            }
        }
    }

    #[test]
    fn only_a_post_and_a_request_are_answered() {
        let replies = [
            (Signal::Notification, Reply::Nothing),
            (Signal::PostedNotification, Reply::Accepted),
            (Signal::CloseStream, Reply::Nothing),
            (Signal::ResultAndNotification, Reply::Nothing),
            (Signal::ResultAndClose, Reply::Nothing),
            (Signal::TasksCancel, Reply::Result),
        ];
        for (signal, reply) in replies {
            assert_eq!(signal.reply(), reply, "{signal:?}");
        }
    }

    #[test]
    fn a_disconnect_cancels_on_modern_http_only() {
        for era in Era::ALL {
            assert!(!is_disconnect_a_cancel(Transport::Stdio, era));
            assert_eq!(is_disconnect_a_cancel(Transport::Http, era), era.is_modern());
        }
    }
}

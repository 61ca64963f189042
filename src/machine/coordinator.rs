//! The requests that a server tracks: which it takes, and whom a cancel hits.
//!
//! Ids and tokens are of the type `I`, which holds integers and strings and keeps them apart;
//! whatever else a message carries in their place is none, and its reader says `None`.

use std::collections::HashMap;
use std::hash::Hash;

use thiserror::Error;

use super::cancel::{Side, Signal, Target, is_disconnect_a_cancel, signal};
use super::deadlines::{BadLimits, Deadlines};
use super::request::{CancelEffect, Completion, ServerRequest, ServerState};
use crate::spec::era::Era;
use crate::spec::methods;
use crate::spec::transport::Transport;
use crate::time::Ms;

/// Why a request is not taken, or not ended. Nothing has changed then.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refusal {
    /// The id is missing, or neither an integer nor a string.
    #[error("the request has no id that is an integer or a string")]
    BadId,
    /// A progress token was given that is neither an integer nor a string.
    #[error("the progress token is neither an integer nor a string")]
    BadToken,
    /// A request with this id is tracked, answered or not.
    #[error("a request with this id is known; take a new id")]
    TrackedId,
    /// A request that runs has this token.
    #[error("the progress token belongs to a running request; take another")]
    TokenInUse,
    /// The time limits make no sense.
    #[error(transparent)]
    Limits(#[from] BadLimits),
    /// No request with this id is tracked.
    #[error("no request with this id is known")]
    Unknown,
    /// A server ends nothing but subscriptions.
    #[error("the request is no subscription; a server ends nothing else")]
    NotAListen,
    /// The request has had its end.
    #[error("the request is over")]
    Over,
}

/// The progress token of a request that has come in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token<I> {
    /// It has none.
    None,
    /// It has this one.
    Is(I),
    /// What stands there is neither an integer nor a string.
    Bad,
}

/// A request that has come in.
#[derive(Debug, Clone)]
pub struct Incoming<'a, I> {
    /// Its id; `None`: it has none that is an integer or a string.
    pub id: Option<I>,
    /// Its progress token.
    pub token: Token<I>,
    /// What it asks for.
    pub method: &'a str,
    /// How it came.
    pub transport: Transport,
    /// The era that it is of.
    pub era: Era,
    /// Its idle limit.
    pub idle: Ms,
    /// Its maximum.
    pub max: Ms,
}

/// A notification that may be a cancel.
#[derive(Debug, Clone, Copy)]
pub struct Notification<'a, I> {
    /// Its method.
    pub method: &'a str,
    /// `params.requestId`; `None`: there is none that is an integer or a string.
    pub request_id: Option<&'a I>,
    /// `params.reason`, where it is a string.
    pub reason: Option<&'a str>,
}

/// A request that is tracked.
#[derive(Debug, Clone)]
pub struct Tracked<I, R> {
    /// What it asks for.
    pub method: Box<str>,
    /// How it came.
    pub transport: Transport,
    /// The era that it is of.
    pub era: Era,
    /// Its progress token.
    pub token: Option<I>,
    /// Its time limits, with the last activity that its client can know of.
    pub deadlines: Deadlines,
    /// Its life.
    pub life: ServerRequest<R>,
}

/// The requests of one channel, as their server knows them. `R` is what a response is for it.
#[derive(Debug, Clone)]
pub struct Coordinator<I, R> {
    requests: HashMap<I, Tracked<I, R>>,
}

impl<I, R> Default for Coordinator<I, R> {
    fn default() -> Coordinator<I, R> {
        Coordinator { requests: HashMap::new() }
    }
}

impl<I: Eq + Hash, R> Coordinator<I, R> {
    /// Takes a request at `now`.
    ///
    /// # Errors
    /// When it cannot be taken; then nothing is tracked of it.
    pub fn start(&mut self, request: Incoming<'_, I>, now: Ms) -> Result<(), Refusal> {
        let id = request.id.ok_or(Refusal::BadId)?;
        let token = match request.token {
            Token::None => None,
            Token::Is(token) => Some(token),
            Token::Bad => return Err(Refusal::BadToken),
        };
        if self.requests.contains_key(&id) {
            return Err(Refusal::TrackedId);
        }
        let is_live = |tracked: &Tracked<I, R>| tracked.life.state() == ServerState::InProgress;
        if token.is_some() && self.requests.values().any(|other| is_live(other) && other.token == token) {
            return Err(Refusal::TokenInUse);
        }
        let tracked = Tracked {
            method: request.method.into(),
            transport: request.transport,
            era: request.era,
            deadlines: Deadlines::new(now, request.idle, request.max)?,
            life: ServerRequest::new(token.is_some()),
            token,
        };
        self.requests.insert(id, tracked);
        Ok(())
    }

    /// A handler reports progress at `now`; true: tell the client, under [`Tracked::token`].
    pub fn progress(&mut self, id: &I, value: f64, now: Ms) -> bool {
        let Some(tracked) = self.requests.get_mut(id) else { return false };
        let is_told = tracked.life.progress(value);
        if is_told {
            tracked.deadlines.restart_idle(now);
        }
        is_told
    }

    /// A notification came. Whatever is no cancel of a running request that may be cancelled so is
    /// ignored without a word: a notification is never answered.
    pub fn notified(&mut self, notification: &Notification<'_, I>) -> CancelEffect {
        let tracked = notification.request_id.and_then(|id| self.requests.get_mut(id));
        match tracked {
            Some(tracked)
                if notification.method == methods::CANCELLED
                    && !is_disconnect_a_cancel(tracked.transport, tracked.era) =>
            {
                tracked.life.cancel(notification.reason)
            }
            _ => CancelEffect::Ignored,
        }
    }

    /// The stream on which a request is answered was closed by the client.
    pub fn disconnected(&mut self, id: &I) -> CancelEffect {
        match self.requests.get_mut(id) {
            Some(tracked) if is_disconnect_a_cancel(tracked.transport, tracked.era) => {
                tracked.life.cancel(None)
            }
            _ => CancelEffect::Ignored,
        }
    }

    /// A handler hands over the response of a request.
    ///
    /// # Errors
    /// When no such request is tracked.
    pub fn complete(&mut self, id: &I, response: R) -> Result<Completion<'_, R>, Refusal> {
        let tracked = self.requests.get_mut(id).ok_or(Refusal::Unknown)?;
        Ok(tracked.life.complete(response))
    }

    /// The server ends a subscription, with its closing result; gives the signal that goes out.
    ///
    /// # Errors
    /// When it is none that runs: then a stored response stays as it is.
    pub fn end_listen(&mut self, id: &I, result: R) -> Result<Signal, Refusal> {
        let tracked = self.requests.get_mut(id).ok_or(Refusal::Unknown)?;
        if &*tracked.method != methods::LISTEN {
            return Err(Refusal::NotAListen);
        }
        let signal = signal(Side::Server, tracked.transport, tracked.era, Target::Listen);
        let signal = signal.ok_or(Refusal::NotAListen)?;
        if tracked.life.state() != ServerState::InProgress {
            return Err(Refusal::Over);
        }
        tracked.life.complete(result);
        Ok(signal)
    }

    /// What is known of a request.
    #[must_use]
    pub fn get(&self, id: &I) -> Option<&Tracked<I, R>> {
        self.requests.get(id)
    }

    /// For work that cannot be stopped: from here on a cancel silences the request without ending
    /// it.
    pub fn make_unstoppable(&mut self, id: &I) {
        if let Some(tracked) = self.requests.get_mut(id) {
            tracked.life.make_unstoppable();
        }
    }

    /// Forgets a request that is over, which frees its id; false: it runs, or is not known.
    pub fn forget(&mut self, id: &I) -> bool {
        let is_over = self.get(id).is_some_and(|tracked| tracked.life.state() != ServerState::InProgress);
        if is_over {
            self.requests.remove(id);
        }
        is_over
    }
}

#[cfg(test)]
mod tests;

//! The revisions with an `initialize` handshake, 2024-11-05 to 2025-11-25, for compatibility work.
//!
//! ```text
//!  http ─► exchange ─► sessions ─► session ─► core (the same handlers as the modern era)
//!  GET /sse ─► oldest ─┐                │
//!  stdio ──────────────┴─► pipe ────────┘   stream: what is said, kept for those who come back
//! ```
//!
//! `session` is what client and server agreed on, and knows no transport. `shape` gives results
//! the form of their revision. Nothing of a session is seen by modern requests, nor the other way
//! round.

mod batch;
pub(super) mod exchange;
mod negotiation;
pub(super) mod oldest;
pub(super) mod pipe;
mod said;
mod session;
mod sessions;
pub(super) mod shape;
mod stream;

pub(super) use self::oldest::Links;
pub(super) use self::sessions::Sessions;
use super::ServerEra;
use super::message::Request;
use crate::spec::era::Era;
use crate::spec::meta;

impl ServerEra {
    /// The revisions with a handshake are served.
    pub(super) fn has_legacy(self) -> bool {
        self != ServerEra::Modern
    }
}

/// A request by the rules of 2026-07-28: it says its revision itself (VER-11). Even `initialize`
/// is one then, and a method that there is no more.
fn is_modern(request: &Request) -> bool {
    request.at(&["_meta", meta::PROTOCOL_VERSION]).is_some()
}

/// The revision that this name stands for is modern.
fn is_modern_name(name: &str) -> bool {
    Era::from_name(name).is_some_and(Era::is_modern)
}

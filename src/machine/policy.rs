//! What is agreed outside the wire: how long clients wait, what tools do to the world, and the
//! limits from which on something is worth a word. None of it can be seen in traffic.
//!
//! A user writes it into a policy file (`docs/policy.md`), which another room reads; the defaults of
//! known clients are in [`presets`].

pub mod clock;
pub mod contract;
pub mod limits;
pub mod pattern;
pub mod presets;

use serde::Deserialize;

use clock::ClockPolicy;
use contract::Contract;
use limits::Limits;
use pattern::{Pattern, any};

use crate::spec::transport::Transport;

/// What a policy file says. Everything may be left out.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// How long clients wait. The first that is for a call counts.
    pub clocks: Vec<ClockPolicy>,
    /// What tools do. The first that is for a call counts.
    pub contracts: Vec<Contract>,
    /// Servers with which a client may fall back to `initialize`: commands, URLs or names.
    /// `None`: nothing is said about it, so nothing can be judged (REL-07).
    pub allow_legacy: Option<Vec<Pattern>>,
    /// Limits from which on something is told.
    pub limits: Limits,
}

/// What is known of a call, to find what a policy says about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subject<'a> {
    /// Name that the client gives itself (`clientInfo.name`).
    pub client: Option<&'a str>,
    /// The `User-Agent` header of its requests.
    pub user_agent: Option<&'a str>,
    /// The server: the name that it gives itself, or its command or URL.
    pub server: Option<&'a str>,
    /// How they are joined.
    pub transport: Transport,
    /// Method of the request.
    pub method: &'a str,
    /// Name of the tool of a `tools/call`.
    pub tool: Option<&'a str>,
}

impl Policy {
    /// How long the client of this call waits, as the user has declared it.
    #[must_use]
    pub fn clock(&self, subject: &Subject<'_>) -> Option<&ClockPolicy> {
        self.clocks.iter().find(|clock| clock.is_for(subject))
    }

    /// What the tool of this call does, as the user has declared it.
    #[must_use]
    pub fn contract(&self, subject: &Subject<'_>) -> Option<&Contract> {
        self.contracts.iter().find(|contract| contract.is_for(subject))
    }

    /// Whether a client may fall back to `initialize` with this server, of which several names may
    /// be known; `None`: the policy does not say.
    #[must_use]
    pub fn may_be_legacy(&self, names: &[&str]) -> Option<bool> {
        let allowed = self.allow_legacy.as_ref()?;
        Some(names.iter().any(|name| any(allowed, name)))
    }
}

#[cfg(test)]
mod tests;

//! Looking at a server from outside: which era it proves to be of, and how it keeps to the points
//! of its transport. Nothing is called that could change anything.
//!
//! `http` has the eight points of Streamable HTTP, `stdio` those of pipes.

mod http;
mod stdio;

use self::http::HttpPoint;
use super::era::{EraPolicy, EraReport, EraRule, Settled};
use super::{CallOptions, Client, Link, PeerError};
use crate::time::Ms;

/// How a server keeps to one point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PointState {
    /// As the rule has it.
    Ok,
    /// Against the rule.
    Violated,
    /// It could not be seen.
    NotObserved,
}

impl PointState {
    /// In words.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            PointState::Ok => "ok",
            PointState::Violated => "violated",
            PointState::NotObserved => "not observed",
        }
    }
}

/// One point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Point {
    /// A word for it.
    pub name: &'static str,
    /// The rule of `midwire rules` that it is judged by.
    pub rule: &'static str,
    /// What was sent.
    pub sent: String,
    /// What came.
    pub came: String,
    /// How that is.
    pub state: PointState,
}

/// What was found out about a server.
#[derive(Debug, Clone)]
pub struct ProbeReport {
    /// The evidence of its era.
    pub era: EraReport,
    /// The points of its transport, in order.
    pub points: Vec<Point>,
}

impl ProbeReport {
    /// No point is violated, and the era is known.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.era.settled.is_some() && self.points.iter().all(|point| point.state != PointState::Violated)
    }
}

/// Looks at the server behind a connection that nothing was asked on yet, and ends it.
/// `limit`: longest wait for each answer.
///
/// # Errors
/// When the server cannot be reached.
pub async fn probe(client: Client, policy: &EraPolicy, limit: Ms) -> Result<ProbeReport, PeerError> {
    let options = CallOptions { idle: limit, max: limit, ..CallOptions::default() };
    let era = client.settle(policy, &options).await?;
    // An era that was not asked for proves nothing.
    let is_proven = !matches!(policy.rule, EraRule::Modern | EraRule::Legacy);
    let is_modern = is_proven && era.settled.as_ref().is_some_and(|settled| settled.speech.era.is_modern());
    let offered = era.settled.as_ref().and_then(Settled::offered);
    let points = match &client.link {
        Link::Http(link) => {
            let mut points = Vec::new();
            let mut seen = http::Seen { is_modern, offered, has_session: None };
            for point in HttpPoint::ALL {
                points.push(point.look(link, &mut seen, limit).await);
            }
            client.close().await?;
            points
        }
        Link::Stdio(_) => stdio::look(client, is_modern, &options).await?,
    };
    Ok(ProbeReport { era, points })
}

#[cfg(test)]
mod tests;

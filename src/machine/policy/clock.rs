//! How long a client waits for an answer.

use serde::{Deserialize, Deserializer};

use super::Subject;
use super::pattern::{Pattern, any_or_all};
use crate::machine::deadlines::Fired;
use crate::spec::transport::Transport;
use crate::time::Ms;

/// The waiting of some clients for some calls. Where nothing is listed, it is for all.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClockPolicy {
    /// What people call it: `Claude Code`, `our nightly job`.
    pub name: String,
    /// Names of clients (`clientInfo.name`).
    #[serde(default)]
    pub clients: Vec<Pattern>,
    /// `User-Agent` headers of clients.
    #[serde(default)]
    pub user_agents: Vec<Pattern>,
    /// Names, commands or URLs of servers.
    #[serde(default)]
    pub servers: Vec<Pattern>,
    /// Methods.
    #[serde(default)]
    pub methods: Vec<Pattern>,
    /// Names of tools; then it is for `tools/call` only.
    #[serde(default)]
    pub tools: Vec<Pattern>,
    /// Transports.
    #[serde(default)]
    pub transports: Vec<Transport>,
    /// The idle limit: after so long without accepted progress the client gives up.
    #[serde(default, rename = "idle_ms", deserialize_with = "limit")]
    pub idle: Option<Ms>,
    /// The maximum: after so long the client gives up, whatever came.
    #[serde(default, rename = "max_ms", deserialize_with = "limit")]
    pub max: Option<Ms>,
    /// The limit of silence: after so long without a byte on the stream, comments included, the
    /// client drops the stream.
    #[serde(default, rename = "silence_ms", deserialize_with = "limit")]
    pub silence: Option<Ms>,
    /// Accepted progress restarts the idle clock. False: the idle limit counts from the start.
    #[serde(default = "yes")]
    pub resets_on_progress: bool,
    /// The maximum is looked at only when progress arrives, so that it never ends a silent call.
    #[serde(default)]
    pub checks_max_on_progress: bool,
    /// The setting by which a person changes it.
    #[serde(default)]
    pub setting: Option<String>,
}

impl ClockPolicy {
    /// It speaks of this call.
    #[must_use]
    pub fn is_for(&self, subject: &Subject<'_>) -> bool {
        any_or_all(&self.clients, subject.client)
            && any_or_all(&self.user_agents, subject.user_agent)
            && any_or_all(&self.servers, subject.server)
            && any_or_all(&self.methods, Some(subject.method))
            && any_or_all(&self.tools, subject.tool)
            && (self.transports.is_empty() || self.transports.contains(&subject.transport))
    }

    /// When this client would have given up a call, and by which clock: `started`, accepted
    /// progress at these moments, in order, and nothing else until `ended` (the answer, or the end
    /// of what is known). `None`: not before `ended`. Silence is not looked at: progress says
    /// nothing of bytes.
    pub fn would_fire(
        &self,
        started: Ms,
        progress: impl IntoIterator<Item = Ms>,
        ended: Ms,
    ) -> Option<(Ms, Fired)> {
        let max_at = after(started, self.max);
        let timer_at = if self.checks_max_on_progress { None } else { max_at };
        let mut idle_at = after(started, self.idle);
        for at in progress {
            if at >= ended {
                break;
            }
            if let Some(fired) = first(idle_at, timer_at, at) {
                return Some(fired);
            }
            if max_at.is_some_and(|max_at| max_at <= at) {
                return Some((at, Fired::Maximum));
            }
            if self.resets_on_progress {
                idle_at = after(at, self.idle);
            }
        }
        // An answer that came at the very limit came in time.
        first(idle_at, timer_at, Ms(ended.0.checked_sub(1)?))
    }
}

/// The clock that is due first at `now`, with its time; the maximum where both are due at once.
fn first(idle_at: Option<Ms>, max_at: Option<Ms>, now: Ms) -> Option<(Ms, Fired)> {
    let idle = idle_at.filter(|at| *at <= now).map(|at| (at, Fired::Idle));
    let max = max_at.filter(|at| *at <= now).map(|at| (at, Fired::Maximum));
    match (idle, max) {
        (Some(idle), Some(max)) => Some(if idle.0 < max.0 { idle } else { max }),
        (idle, max) => idle.or(max),
    }
}

fn after(start: Ms, limit: Option<Ms>) -> Option<Ms> {
    limit.map(|limit| Ms(start.0.saturating_add(limit.0)))
}

fn yes() -> bool {
    true
}

/// A limit of at least 1 ms.
pub(super) fn limit<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Ms>, D::Error> {
    match Ms::deserialize(from)? {
        Ms(0) => Err(serde::de::Error::custom("a limit is at least 1 ms; leave it out for no limit")),
        limit => Ok(Some(limit)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A policy as (idle, max, resets on progress, looks at the maximum only on progress).
    fn clock(idle: u64, max: u64, resets: bool, lazy: bool) -> ClockPolicy {
        let some = |ms: u64| (ms > 0).then_some(Ms(ms));
        ClockPolicy {
            name: "test".to_owned(),
            clients: Vec::new(),
            user_agents: Vec::new(),
            servers: Vec::new(),
            methods: Vec::new(),
            tools: Vec::new(),
            transports: Vec::new(),
            idle: some(idle),
            max: some(max),
            silence: None,
            resets_on_progress: resets,
            checks_max_on_progress: lazy,
            setting: None,
        }
    }

    #[test]
    fn what_a_policy_would_have_done_to_a_call() {
        use Fired::{Idle, Maximum};
        const T2: &[u64] = &[400, 800, 1200];
        const T3: &[u64] = &[400, 800, 1200, 1600, 1999];
        let (both, from_start) = ((500, 2000, true, false), (500, 0, false, false));
        let lazy = (0, 1200, true, true);
        let cases = [
            ("T1", both, &[100][..], 5000, Some((600, Idle))),
            ("T2", both, T2, 5000, Some((1700, Idle))),
            ("T3", both, T3, 5000, Some((2000, Maximum))),
            ("T4: only accepted progress is given", both, &[450], 5000, Some((950, Idle))),
            ("T5", both, &[], 5000, Some((500, Idle))),
            ("T7", both, &[], 499, None),
            ("answered at the very limit", both, &[], 500, None),
            ("both due at once", (500, 500, true, false), &[], 5000, Some((500, Maximum))),
            ("progress restarts nothing", from_start, T2, 5000, Some((500, Idle))),
            ("only a maximum", (0, 2000, true, false), T3, 5000, Some((2000, Maximum))),
            ("no limit at all", (0, 0, true, false), T2, 5000, None),
            ("looked at late", lazy, &[1000, 1250, 1500], 5000, Some((1250, Maximum))),
            ("never looked at", lazy, &[], 5000, None),
            ("progress after the answer", lazy, &[1250], 1100, None),
            ("answered at once", both, &[], 0, None),
        ];
        for (name, (idle, max, resets, is_lazy), progress, ended, expected) in cases {
            let heard = progress.iter().copied().map(Ms);
            let fired = clock(idle, max, resets, is_lazy).would_fire(Ms(0), heard, Ms(ended));
            assert_eq!(fired.map(|(at, why)| (at.0, why)), expected, "{name}");
        }
    }
}

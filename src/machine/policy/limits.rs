//! Limits from which on something is worth a word. The specification names none of these numbers;
//! the defaults are `// ours:`.

use serde::Deserialize;

use super::clock::limit;
use crate::time::Ms;

/// The limits, each with its default.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// A ping is answered within 5 s (VER-21).
    #[serde(rename = "ping_ms")]
    pub ping: Ms,
    /// A server has gone 5 s after its stdin ended (STD-09).
    #[serde(rename = "exit_ms")]
    pub exit: Ms,
    /// An open stream is never silent for 30 s (SSE-08).
    #[serde(rename = "keep_alive_ms")]
    pub keep_alive: Ms,
    /// A request is open for 300 s at most, where no policy says how long its client waits (TMO-01).
    #[serde(rename = "max_ms")]
    pub max: Ms,
    /// Progress of one token comes 20 times a second at most (PRG-11).
    pub progress_per_s: u32,
    /// Writing to the client waits 1 s at most (FLW-01).
    #[serde(rename = "write_blocked_ms")]
    pub write_blocked: Ms,
    /// Cleanup after a cancel takes 5 s at most (REL-12).
    #[serde(rename = "cleanup_ms")]
    pub cleanup: Ms,
    /// A limit that cuts a call before 5 s is a short one (REL-16).
    #[serde(rename = "short_ms")]
    pub short: Ms,
    /// Answers to one call ask for input 8 times at most (MRT-15).
    pub input_rounds: u32,
    /// The grace window W between two signals that crossed; `None`: the larger of 500 ms and three
    /// median round trips (docs/semantics.md, races).
    #[serde(rename = "grace_ms", deserialize_with = "limit")]
    pub grace: Option<Ms>,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            ping: Ms(5_000),
            exit: Ms(5_000),
            keep_alive: Ms(30_000),
            max: Ms(300_000),
            progress_per_s: 20,
            write_blocked: Ms(1_000),
            cleanup: Ms(5_000),
            short: Ms(5_000),
            input_rounds: 8,
            grace: None,
        }
    }
}

//! Time: the only room that reads a clock.
//!
//! Everything else receives time as an argument, so that tests and replays are exact.
//! A session counts from its own beginning on a monotonic clock; wall time is for people
//! and files and is never subtracted.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Deserialize;

/// A moment: nanoseconds since the session began, on a monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Mono(pub u64);

/// A span or a limit in whole milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Deserialize)]
pub struct Ms(pub u64);

impl Mono {
    /// Whole milliseconds since the session began, rounded down.
    #[must_use]
    pub fn to_ms(self) -> Ms {
        Ms(self.0 / 1_000_000)
    }

    /// Nanoseconds from `earlier` to this moment; zero when `earlier` is later.
    #[must_use]
    pub fn ns_since(self, earlier: Mono) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// This moment, `ms` later.
    #[must_use]
    pub fn plus(self, ms: Ms) -> Mono {
        Mono(self.0.saturating_add(ms.0.saturating_mul(1_000_000)))
    }
}

/// The clock of one session: monotonic, starting at zero.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    started: std::time::Instant,
    started_wall: DateTime<Utc>,
}

impl Clock {
    /// A clock that reads zero now.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this room reads the clocks")]
    pub fn start() -> Clock {
        Clock { started: std::time::Instant::now(), started_wall: Utc::now() }
    }

    /// The time since the session began.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this room reads the clocks")]
    pub fn now(&self) -> Mono {
        let since = std::time::Instant::now().saturating_duration_since(self.started);
        Mono(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }

    /// The wall time at which the session began; for people and files only.
    #[must_use]
    pub fn started_wall(&self) -> DateTime<Utc> {
        self.started_wall
    }
}

/// The clock of timers: milliseconds since it was started. It stands still and jumps together
/// with the runtime's timers when a test pauses them, which [`Clock`] does not.
#[derive(Debug, Clone, Copy)]
pub struct TimerClock {
    started: tokio::time::Instant,
}

impl TimerClock {
    /// A clock that reads zero now.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this room reads the clocks")]
    pub fn start() -> TimerClock {
        TimerClock { started: tokio::time::Instant::now() }
    }

    /// Whole milliseconds since it was started, rounded down.
    #[must_use]
    pub fn now(&self) -> Ms {
        Ms(u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    /// The moment of the runtime's timers at which it read zero.
    #[must_use]
    pub fn started(&self) -> tokio::time::Instant {
        self.started
    }

    /// The moment of the runtime's timers at which this clock will read `at`, if it can be told.
    #[must_use]
    pub fn instant(&self, at: Ms) -> Option<tokio::time::Instant> {
        self.started.checked_add(at.into())
    }
}

/// The wall time now; for people and files only, never subtracted.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this room reads the clocks")]
pub fn wall_now() -> DateTime<Utc> {
    Utc::now()
}

/// Nanoseconds of the machine's monotonic clock, which all processes of one boot share. It lets
/// the runs of one server command be put in order without trusting wall time.
#[must_use]
pub fn boot_ns() -> u64 {
    whole_ns(rustix::time::clock_gettime(rustix::time::ClockId::Monotonic))
}

/// Nanoseconds that the machine has spent asleep since it was booted: what the monotonic clock
/// leaves out. 0 where the system does not tell.
#[must_use]
pub fn slept_ns() -> u64 {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        let with_sleep = whole_ns(rustix::time::clock_gettime(rustix::time::ClockId::Boottime));
        with_sleep.saturating_sub(boot_ns())
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    0
}

fn whole_ns(time: rustix::time::Timespec) -> u64 {
    let whole = u64::try_from(time.tv_sec).unwrap_or(0).saturating_mul(1_000_000_000);
    whole.saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}

impl From<Ms> for Duration {
    fn from(ms: Ms) -> Duration {
        Duration::from_millis(ms.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_round_down_and_spans_never_go_below_zero() {
        assert_eq!(Mono(1_999_999).to_ms(), Ms(1));
        assert_eq!(Mono(5).ns_since(Mono(9)), 0);
        assert_eq!(Mono(5).plus(Ms(2)), Mono(2_000_005));
    }

    #[test]
    fn a_clock_moves_forward() {
        let clock = Clock::start();
        let first = clock.now();
        assert!(clock.now() >= first);
        assert!(boot_ns() > 0);
    }
}

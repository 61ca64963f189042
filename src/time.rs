//! Time: the only room that reads a clock.
//!
//! Everything else receives time as an argument, so that tests and replays are exact.
//! A session counts from its own beginning on a monotonic clock; wall time is for people
//! and files and is never subtracted.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Deserialize;

/// A moment: nanoseconds since the session began, on a monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Mono(pub u64);

/// A span in nanoseconds, for people: `0.4 ms`, `12 ms`, `60.0 s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(pub u64);

/// A span or a limit in whole milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Deserialize)]
pub struct Ms(pub u64);

impl Ms {
    /// The same in nanoseconds.
    #[must_use]
    pub const fn to_ns(self) -> u64 {
        self.0.saturating_mul(1_000_000)
    }

    /// Reads a whole number with its unit, such as `500ms`, `30s`, `2m` or `1h`.
    #[must_use]
    pub fn from_words(text: &str) -> Option<Ms> {
        let units = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000)];
        let ms = units.iter().find_map(|(unit, ms)| {
            let number = text.strip_suffix(unit)?;
            let is_plain = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
            number.parse::<u64>().ok().filter(|_| is_plain)?.checked_mul(*ms)
        });
        ms.map(Ms)
    }
}

impl fmt::Display for Span {
    /// Rounded down: tenths below 10 ms, whole milliseconds below 10 s, tenths of a second above.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ms, tenth) = (self.0 / 1_000_000, self.0 / 100_000 % 10);
        match ms {
            0..10 if tenth > 0 => write!(f, "{ms}.{tenth} ms"),
            0..10_000 => write!(f, "{ms} ms"),
            _ => write!(f, "{}.{} s", ms / 1000, ms % 1000 / 100),
        }
    }
}

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
        Mono(self.0.saturating_add(ms.to_ns()))
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
    fn spans_are_said_in_the_unit_that_fits() {
        let cases = [
            (0, "0 ms"),
            (420_000, "0.4 ms"),
            (3_000_000, "3 ms"),
            (3_290_000, "3.2 ms"),
            (12_900_000, "12 ms"),
            (9_999_000_000, "9999 ms"),
            (60_020_000_000, "60.0 s"),
        ];
        for (ns, words) in cases {
            assert_eq!(Span(ns).to_string(), words);
        }
    }

    #[test]
    fn a_clock_moves_forward() {
        let clock = Clock::start();
        let first = clock.now();
        assert!(clock.now() >= first);
        assert!(boot_ns() > 0);
    }
}

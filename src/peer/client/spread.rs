//! What keeps many clients from coming back at once: their waits differ, by their names or by chance.

use std::borrow::Cow;

use crate::machine::backoff;
use crate::time::Ms;

/// What the waits of a client are spread by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spread {
    /// By its name: the same client waits the same spans each time, so that what it did can be done
    /// again.
    Named(String),
    /// By chance, anew for each wait.
    Random,
}

impl Spread {
    /// What one wait is counted by.
    pub(super) fn name(&self) -> Cow<'_, str> {
        match self {
            Spread::Named(name) => Cow::Borrowed(name),
            Spread::Random => Cow::Owned(chance()),
        }
    }

    /// The wait before an attempt, which counts from 0.
    #[must_use]
    pub fn wait(&self, attempt: u32) -> Ms {
        backoff::delay(&self.name(), attempt)
    }
}

/// A name that nobody has.
fn chance() -> String {
    let mut bytes = [0; 16];
    // The system refuses only before it has gathered any chance at all; then the process tells clients
    // apart, and the wait is no shorter for it.
    let flags = rustix::rand::GetRandomFlags::NONBLOCK;
    let filled = rustix::rand::getrandom(&mut bytes[..], flags).unwrap_or(0);
    format!("{}-{filled}-{:032x}", std::process::id(), u128::from_be_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;

    #[test]
    fn a_name_waits_the_same_and_chance_does_not() {
        let named = Spread::Named("client-a".to_owned());
        assert_eq!([0, 1, 2].map(|attempt| named.wait(attempt)), [Ms(162), Ms(384), Ms(587)]);
        let waits: HashSet<Ms> = (0..100).map(|_| Spread::Random.wait(5)).collect();
        assert!(waits.len() > 50, "{waits:?}");
    }

    /// Ten thousand clients, by chance: how many wait for the same 10 ms at most, for each attempt.
    /// Waits are even over half of the ceiling; six deviations of chance above that, one run in many
    /// millions fails.
    #[test]
    fn a_herd_by_chance_is_spread_over_its_span() {
        for attempt in [0, 1, 2, 5] {
            let (floor, ceiling) = (backoff::floor(attempt).0, backoff::ceiling(attempt).0);
            let mut bins = HashMap::new();
            for _ in 0..10_000 {
                let wait = Spread::Random.wait(attempt).0;
                assert!((floor..=ceiling).contains(&wait));
                *bins.entry(wait / 10).or_insert(0u32) += 1;
            }
            let expected = 10_000 * 10 / u32::try_from(ceiling - floor + 1).unwrap();
            let fullest = bins.into_values().max().unwrap();
            assert!(
                fullest < expected + 6 * expected.isqrt() + 6,
                "attempt {attempt}: {fullest} of {expected}"
            );
        }
    }
}

//! How long a client waits before it tries again: longer each time, and not all at once.
//!
//! The spread comes from the client's name, so that a replay waits as the original did. A live
//! client may take real randomness; what counts is the spread.

use sha2::{Digest, Sha256};

use crate::time::Ms;

/// The ceiling of the first attempt, ms.
const FIRST_MS: u64 = 250;
/// The ceiling that none exceeds, ms.
const LAST_MS: u64 = 8_000;

/// The longest wait before attempt `attempt`, which counts from 0.
#[must_use]
pub fn ceiling(attempt: u32) -> Ms {
    let doubled = 1u64.checked_shl(attempt).and_then(|factor| FIRST_MS.checked_mul(factor));
    Ms(doubled.map_or(LAST_MS, |ms| ms.min(LAST_MS)))
}

/// The shortest wait before an attempt: half of the longest.
#[must_use]
pub fn floor(attempt: u32) -> Ms {
    Ms((ceiling(attempt).0 / 2).max(1))
}

/// The wait of one client before an attempt, both ends included.
#[must_use]
pub fn delay(client: &str, attempt: u32) -> Ms {
    let digest = Sha256::digest(format!("{client}:{attempt}"));
    let seed = digest.iter().take(4).fold(0u64, |seed, byte| seed << 8 | u64::from(*byte));
    let (floor, ceiling) = (floor(attempt).0, ceiling(attempt).0);
    Ms(floor + seed % (ceiling - floor + 1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_vectors_of_the_wait_hold() {
        let cases = [
            ("client-a", [162, 384, 587, 1370, 2055, 4606, 7918, 4766]),
            ("client-b", [215, 464, 833, 1030, 3093, 7001, 6327, 5331]),
            ("workshop-1", [230, 347, 585, 1560, 2930, 6567, 6844, 5176]),
        ];
        for (client, delays) in cases {
            for (attempt, expected) in (0u32..).zip(delays) {
                assert_eq!(delay(client, attempt), Ms(expected), "{client} {attempt}");
            }
        }
    }

    #[test]
    fn the_ceiling_doubles_and_then_stays() {
        let ceilings: Vec<u64> = (0..7).map(|attempt| ceiling(attempt).0).collect();
        assert_eq!(ceilings, [250, 500, 1000, 2000, 4000, 8000, 8000]);
        for attempt in [31, 56, 63, 64, 65, u32::MAX] {
            assert_eq!((ceiling(attempt), floor(attempt)), (Ms(8000), Ms(4000)), "{attempt}");
        }
    }

    /// How many of 10 000 clients wait for the same span of `width` ms, at most.
    fn fullest(attempt: u32, width: u64) -> u32 {
        let mut bins = std::collections::HashMap::new();
        for number in 0..10_000 {
            let at = delay(&format!("client-{number}"), attempt).0;
            *bins.entry(at / width).or_insert(0u32) += 1;
        }
        bins.into_values().max().unwrap()
    }

    #[test]
    fn a_herd_spreads_as_measured() {
        // Share of the fullest 10 ms, in hundredths of a percent of the herd.
        for (attempt, share) in [(0, 830), (1, 440), (2, 230), (5, 41)] {
            let fullest = fullest(attempt, 10);
            // The figures are rounded to two digits.
            let rounding = if share >= 100 { 5 } else { 1 };
            assert!(fullest.abs_diff(share) <= rounding, "attempt {attempt}: {fullest}, not {share}");
        }
        assert_eq!(fullest(0, 1), 107);
    }

    proptest! {
        #[test]
        fn a_wait_stays_within_its_bounds(client: String, attempt: u32) {
            let wait = delay(&client, attempt);
            prop_assert!(floor(attempt) <= wait && wait <= ceiling(attempt));
        }
    }
}

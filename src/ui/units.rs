//! Times and sizes as short text: one way for the whole screen.

use crate::time::Mono;

const MICRO: u64 = 1_000;
const MILLI: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;

/// A span in at most six cells: `85us`, `1.9ms`, `812ms`, `1.40s`, `59.1s`, `2m05s`, `1h04m`.
#[must_use]
pub(super) fn span(ns: u64) -> String {
    match ns {
        0..MILLI => format!("{}us", ns / MICRO),
        MILLI..10_000_000 => format!("{}.{}ms", ns / MILLI, ns % MILLI / 100_000),
        10_000_000..SECOND => format!("{}ms", ns / MILLI),
        SECOND..10_000_000_000 => format!("{}.{:02}s", ns / SECOND, ns % SECOND / 10_000_000),
        10_000_000_000..60_000_000_000 => format!("{}.{}s", ns / SECOND, ns % SECOND / 100_000_000),
        60_000_000_000..3_600_000_000_000 => format!("{}m{:02}s", ns / SECOND / 60, ns / SECOND % 60),
        _ => format!("{}h{:02}m", ns / SECOND / 3600, ns / SECOND / 60 % 60),
    }
}

/// A moment of the session in seconds with three decimals, minutes and hours where there are any:
/// `4.021`, `1:04.021`, `2:01:04.021`.
#[must_use]
pub(super) fn moment(at: Mono) -> String {
    let ms = at.to_ms().0;
    let (hours, minutes, seconds, rest) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60, ms % 1000);
    match (hours, minutes) {
        (0, 0) => format!("{seconds}.{rest:03}"),
        (0, _) => format!("{minutes}:{seconds:02}.{rest:03}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}.{rest:03}"),
    }
}

/// A moment counted from another: with its sign, as [`moment`] writes it.
#[must_use]
pub(super) fn moment_from(at: Mono, reference: Mono) -> String {
    if at >= reference {
        format!("+{}", moment(Mono(at.ns_since(reference))))
    } else {
        format!("-{}", moment(Mono(reference.ns_since(at))))
    }
}

/// A tick of a time axis with this distance between ticks, without needless decimals: `24s`,
/// `24.5s`, `1:05`, `350ms`.
#[must_use]
pub(super) fn tick(ns: u64, distance: u64) -> String {
    if ns == 0 {
        return "0".to_owned();
    }
    if ns < SECOND && distance < SECOND {
        return if distance >= MILLI { format!("{}ms", ns / MILLI) } else { format!("{}us", ns / MICRO) };
    }
    let decimals = match distance {
        SECOND.. => 0,
        100_000_000.. => 1,
        10_000_000.. => 2,
        MILLI.. => 3,
        100_000.. => 4,
        _ => 6,
    };
    let (minutes, seconds) = (ns / SECOND / 60, ns / SECOND % 60);
    let fraction: String = format!("{:09}", ns % SECOND).chars().take(decimals).collect();
    let dot = if decimals > 0 { "." } else { "" };
    if minutes > 0 {
        format!("{minutes}:{seconds:02}{dot}{fraction}")
    } else {
        format!("{seconds}{dot}{fraction}s")
    }
}

/// A size in at most eight cells: `212 B`, `18.2 KiB`, `3.1 MiB`.
#[must_use]
pub(super) fn size(bytes: u64) -> String {
    const NAMES: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut tenths = u128::from(bytes) * 10 / 1024;
    let mut name = 0;
    while tenths >= 10_240 && name + 1 < NAMES.len() {
        tenths /= 1024;
        name += 1;
    }
    format!("{}.{} {}", tenths / 10, tenths % 10, NAMES.get(name).copied().unwrap_or("TiB"))
}

/// A count in at most five cells: `999`, `12.3k`, `1.20M`.
#[must_use]
pub(super) fn count(n: u64) -> String {
    match n {
        0..10_000 => n.to_string(),
        10_000..1_000_000 => format!("{}.{}k", n / 1000, n % 1000 / 100),
        _ => format!("{}.{:02}M", n / 1_000_000, n % 1_000_000 / 10_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_short_and_right() {
        let cases = [
            (0, "0us"),
            (85_400, "85us"),
            (1_910_000, "1.9ms"),
            (812_000_000, "812ms"),
            (1_403_000_000, "1.40s"),
            (59_190_000_000, "59.1s"),
            (125_000_000_000, "2m05s"),
            (3_840_000_000_000, "1h04m"),
        ];
        for (ns, expected) in cases {
            assert_eq!(span(ns), expected);
        }
        for power in 0..=46 {
            assert!(span(1 << power).len() <= 6, "{}", span(1 << power));
        }
    }

    #[test]
    fn moments_and_ticks_say_no_more_than_needed() {
        assert_eq!(moment(Mono(4_021_000_000)), "4.021");
        assert_eq!(moment(Mono(64_021_999_999)), "1:04.021");
        assert_eq!(moment(Mono(7_264_021_000_000)), "2:01:04.021");
        assert_eq!(moment_from(Mono(SECOND), Mono(3 * SECOND)), "-2.000");
        assert_eq!(moment_from(Mono(3 * SECOND), Mono(SECOND)), "+2.000");
        assert_eq!(tick(24 * SECOND, 2 * SECOND), "24s");
        assert_eq!(tick(24 * SECOND + SECOND / 2, SECOND / 2), "24.5s");
        assert_eq!(tick(65 * SECOND, 5 * SECOND), "1:05");
        assert_eq!(tick(350 * MILLI, 50 * MILLI), "350ms");
        assert_eq!(tick(0, SECOND), "0");
    }

    #[test]
    fn sizes_and_counts_are_short() {
        assert_eq!(size(212), "212 B");
        assert_eq!(size(18_637), "18.2 KiB");
        assert_eq!(size(20 << 20), "20.0 MiB");
        assert_eq!(size(u64::MAX), "16777215.9 TiB");
        assert_eq!(count(9_999), "9999");
        assert_eq!(count(12_345), "12.3k");
        assert_eq!(count(1_204_000), "1.20M");
    }
}

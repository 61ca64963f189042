//! Protocol revisions and what follows from them.

/// A protocol revision that midwire knows, oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Era {
    /// 2024-11-05: `initialize`, HTTP+SSE.
    V2024_11_05,
    /// 2025-03-26: Streamable HTTP, sessions, batches.
    V2025_03_26,
    /// 2025-06-18: version header, no batches.
    V2025_06_18,
    /// 2025-11-25: polling streams, core tasks.
    V2025_11_25,
    /// 2026-07-28: no handshake, no session; per-request `_meta`.
    V2026_07_28,
}

impl Era {
    /// Every era, oldest first.
    pub const ALL: [Era; 5] =
        [Era::V2024_11_05, Era::V2025_03_26, Era::V2025_06_18, Era::V2025_11_25, Era::V2026_07_28];

    /// The revision's name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Era::V2024_11_05 => "2024-11-05",
            Era::V2025_03_26 => "2025-03-26",
            Era::V2025_06_18 => "2025-06-18",
            Era::V2025_11_25 => "2025-11-25",
            Era::V2026_07_28 => "2026-07-28",
        }
    }

    /// The era of a revision name, compared exactly. A later date than 2026-07-28 counts as
    /// modern; other names are not known.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Era> {
        let known = Era::ALL.into_iter().find(|era| era.as_str() == name);
        known.or_else(|| (is_date(name) && name > Era::V2026_07_28.as_str()).then_some(Era::V2026_07_28))
    }

    /// No `initialize` handshake: every request stands alone.
    #[must_use]
    pub fn is_modern(self) -> bool {
        self >= Era::V2026_07_28
    }
}

/// `YYYY-MM-DD` in ASCII digits, with a month and a day that exist in some year.
fn is_date(name: &str) -> bool {
    let number = |part: &str, len: usize| {
        let is_number = part.len() == len && part.bytes().all(|b| b.is_ascii_digit());
        if is_number { part.parse::<u16>().ok() } else { None }
    };
    let mut parts = name.splitn(3, '-');
    let mut next = |len| parts.next().and_then(|part| number(part, len));
    match (next(4), next(2), next(2)) {
        (Some(_), Some(month), Some(day)) => (1..=12).contains(&month) && (1..=31).contains(&day),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_name_is_compared_exactly() {
        for era in Era::ALL {
            assert_eq!(Era::from_name(era.as_str()), Some(era));
        }
        let cases = [
            ("2026-07-29", Some(Era::V2026_07_28)),
            ("2027-01-01", Some(Era::V2026_07_28)),
            ("9999-12-31", Some(Era::V2026_07_28)),
            ("2026-07-27", None),
            ("2025-04-01", None),
            ("1900-01-01", None),
            ("2026-7-28", None),
            ("2027-1-1", None),
            ("2027-13-01", None),
            ("2027-01-32", None),
            ("2027-01-01-x", None),
            ("2027-01-01 ", None),
            (" 2026-07-28", None),
            ("+027-01-01", None),
            ("２０２７-01-01", None),
            ("DRAFT-2026-v1", None),
            ("", None),
        ];
        for (name, era) in cases {
            assert_eq!(Era::from_name(name), era, "{name:?}");
        }
    }

    #[test]
    fn only_the_last_era_is_modern() {
        assert_eq!(Era::ALL.map(Era::is_modern), [false, false, false, false, true]);
        assert!(Era::ALL.is_sorted());
    }
}

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

    /// The era of a revision name. A date after 2026-07-28 counts as modern; other names are not
    /// known.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Era> {
        Era::ALL.into_iter().find(|era| era.as_str() == name)
    }

    /// No `initialize` handshake: every request stands alone.
    #[must_use]
    pub fn is_modern(self) -> bool {
        self >= Era::V2026_07_28
    }
}

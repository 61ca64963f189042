//! Log levels. Source: spec 2026-07-28 `schema#logginglevel`; the names are those of syslog.

/// How grave a log message is, in rising order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// For those who look for a fault.
    Debug,
    /// What is usual.
    Info,
    /// What is usual and worth a look.
    Notice,
    /// What may become an error.
    Warning,
    /// What failed.
    Error,
    /// A part has failed.
    Critical,
    /// Somebody has to act at once.
    Alert,
    /// Nothing works any more.
    Emergency,
}

impl Level {
    /// Every level, in rising order.
    pub const ALL: [Level; 8] = [
        Level::Debug,
        Level::Info,
        Level::Notice,
        Level::Warning,
        Level::Error,
        Level::Critical,
        Level::Alert,
        Level::Emergency,
    ];

    /// Its name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Level::Debug => "debug",
            Level::Info => "info",
            Level::Notice => "notice",
            Level::Warning => "warning",
            Level::Error => "error",
            Level::Critical => "critical",
            Level::Alert => "alert",
            Level::Emergency => "emergency",
        }
    }

    /// The level of a name on the wire.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Level> {
        Level::ALL.into_iter().find(|level| level.as_str() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_level_is_found_by_its_name_and_they_rise() {
        assert!(Level::ALL.is_sorted());
        for level in Level::ALL {
            assert_eq!(Level::from_name(level.as_str()), Some(level));
        }
        assert_eq!(Level::from_name("WARNING"), None);
    }
}

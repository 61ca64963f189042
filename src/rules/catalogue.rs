//! The words of the rules: `catalogue.tsv`, read once.

use std::sync::LazyLock;

use super::Severity;
use crate::event::Transport;
use crate::spec::era::Era;

/// One rule, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its id, such as `CAN-05`.
    pub id: &'static str,
    /// How bad it is to break it.
    pub severity: Severity,
    /// Where it applies.
    pub eras: Eras,
    /// `both`, `stdio` or `http`.
    pub transports: &'static str,
    /// The rule, in one sentence.
    pub rule: &'static str,
    /// What to do when it is broken.
    pub remedy: &'static str,
}

/// The eras that a rule applies to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Eras {
    /// Every era, and messages whose era is not known.
    All,
    /// These; a message whose era is not known is left in peace.
    Only(Vec<Era>),
}

static ENTRIES: LazyLock<Vec<Entry>> =
    LazyLock::new(|| include_str!("catalogue.tsv").lines().skip(1).filter_map(entry).collect());

/// Every rule that is checked, in the catalogue's order.
#[must_use]
pub fn entries() -> &'static [Entry] {
    &ENTRIES
}

/// A rule by its id.
#[must_use]
pub fn find(id: &str) -> Option<&'static Entry> {
    entries().iter().find(|entry| entry.id == id)
}

impl Entry {
    /// Whether the rule applies to this transport.
    #[must_use]
    pub fn is_for(&self, transport: Transport) -> bool {
        match self.transports {
            "stdio" => transport == Transport::Stdio,
            "http" => transport == Transport::Http,
            _ => true,
        }
    }
}

impl Eras {
    /// Whether the rule applies to a message of this era.
    #[must_use]
    pub fn has(&self, era: Option<Era>) -> bool {
        match self {
            Eras::All => true,
            Eras::Only(eras) => era.is_some_and(|era| eras.contains(&era)),
        }
    }

    fn read(text: &str) -> Option<Eras> {
        Some(match text {
            "all" => Eras::All,
            "legacy" => Eras::Only(Era::ALL.into_iter().filter(|era| !era.is_modern()).collect()),
            "modern" => Eras::Only(Era::ALL.into_iter().filter(|era| era.is_modern()).collect()),
            list => Eras::Only(list.split(',').map(Era::from_name).collect::<Option<_>>()?),
        })
    }
}

fn entry(line: &'static str) -> Option<Entry> {
    let mut cells = line.split('\t');
    let id = cells.next()?;
    let severity = Severity::from_name(cells.next()?)?;
    let eras = Eras::read(cells.next()?)?;
    Some(Entry { id, severity, eras, transports: cells.next()?, rule: cells.next()?, remedy: cells.next()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_catalogue_is_read_and_ids_are_unique() {
        let lines = include_str!("catalogue.tsv").lines().count();
        assert_eq!(entries().len(), lines - 1);
        for entry in entries() {
            assert_eq!(find(entry.id), Some(entry), "{} stands twice", entry.id);
            assert!(["both", "stdio", "http"].contains(&entry.transports), "{}", entry.id);
            assert!(entry.rule.ends_with('.') && entry.remedy.ends_with('.'), "{}", entry.id);
        }
    }

    #[test]
    fn an_unknown_era_meets_only_rules_of_all_eras() {
        assert!(Eras::All.has(None));
        let legacy = &find("RPC-07").unwrap().eras;
        assert!(!legacy.has(None) && legacy.has(Some(Era::V2025_11_25)));
        assert!(!legacy.has(Some(Era::V2026_07_28)));
    }
}

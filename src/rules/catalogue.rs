//! The words of the rules: `catalogue/GROUP.tsv`, read once.

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
    /// Who can break it: `client`, `server`, `client,server` or `proxy`.
    pub sender: &'static str,
    /// What must have been seen before it can be decided.
    pub needs: Vec<Need>,
    /// Where it is written: page and anchor of the 2026-07-28 specification, `DATE:page#anchor` of an
    /// earlier one, `schema#type`, `ext-tasks:…`, or `ours:section` for a rule of
    /// midwire's own, written in `docs/semantics.md`.
    pub clause: &'static str,
    /// The rule, in one sentence.
    pub rule: &'static str,
    /// What to do when it is broken.
    pub remedy: &'static str,
    /// Why it is decided more mildly than it reads, or cannot be decided; empty: there is nothing to
    /// add.
    pub note: &'static str,
}

/// What a rule needs to have seen before it can be decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Need {
    /// Everything since the channel began; without it the finding is a hint.
    Full,
    /// The list that defines the tool, prompt or resource.
    Definition,
    /// What the server says it can do: a discover or initialize result.
    Capabilities,
    /// A policy file.
    Policy,
    /// The contract of a tool, from a policy file.
    Contract,
    /// Telemetry of a peer that volunteers it.
    Telemetry,
    /// A recording on both sides of an intermediary.
    TwoTaps,
    /// It cannot be decided from traffic at all; its note says why.
    Never,
}

impl Need {
    const ALL: [(Need, &'static str, &'static str); 8] = [
        (Need::Full, "full", "a recording from the beginning of the channel"),
        (Need::Definition, "definition", "the list that defines what is used"),
        (Need::Capabilities, "capabilities", "a discover or initialize result"),
        (Need::Policy, "policy", "a policy file"),
        (Need::Contract, "contract", "a policy file with the contract of the tool"),
        (Need::Telemetry, "telemetry", "telemetry of the peer"),
        (Need::TwoTaps, "two-taps", "recordings on both sides of the intermediary"),
        (Need::Never, "never", "something that traffic does not show"),
    ];

    /// Its name in the catalogue.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        Need::ALL.iter().find(|(need, ..)| *need == self).map_or("", |(_, name, _)| name)
    }

    /// What is needed, in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        Need::ALL.iter().find(|(need, ..)| *need == self).map_or("", |(.., words)| words)
    }

    fn from_name(name: &str) -> Option<Need> {
        Need::ALL.iter().find(|(_, known, _)| *known == name).map(|(need, ..)| *need)
    }
}

/// The eras that a rule applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Eras {
    /// A bit for each era of [`Era::ALL`], and one more for messages whose era is not known.
    mask: u8,
}

/// The files of the catalogue, in its order.
const FILES: [&str; 30] = [
    include_str!("catalogue/RPC.tsv"),
    include_str!("catalogue/MET.tsv"),
    include_str!("catalogue/ICO.tsv"),
    include_str!("catalogue/VER.tsv"),
    include_str!("catalogue/STD.tsv"),
    include_str!("catalogue/HTTP.tsv"),
    include_str!("catalogue/SSE.tsv"),
    include_str!("catalogue/CAN.tsv"),
    include_str!("catalogue/TMO.tsv"),
    include_str!("catalogue/RTY.tsv"),
    include_str!("catalogue/PRG.tsv"),
    include_str!("catalogue/LOG.tsv"),
    include_str!("catalogue/SUB.tsv"),
    include_str!("catalogue/MRT.tsv"),
    include_str!("catalogue/ELI.tsv"),
    include_str!("catalogue/SAM.tsv"),
    include_str!("catalogue/ROO.tsv"),
    include_str!("catalogue/CCH.tsv"),
    include_str!("catalogue/PAG.tsv"),
    include_str!("catalogue/TOOL.tsv"),
    include_str!("catalogue/RES.tsv"),
    include_str!("catalogue/PMT.tsv"),
    include_str!("catalogue/CMP.tsv"),
    include_str!("catalogue/TSK.tsv"),
    include_str!("catalogue/TSL.tsv"),
    include_str!("catalogue/LEG.tsv"),
    include_str!("catalogue/AUT.tsv"),
    include_str!("catalogue/PRX.tsv"),
    include_str!("catalogue/FLW.tsv"),
    include_str!("catalogue/REL.tsv"),
];

static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    FILES
        .iter()
        .flat_map(|file| file.lines().skip(1))
        .filter_map(entry)
        .filter(|entry| entry.rule != "-")
        .collect()
});

/// Every rule, in the catalogue's order.
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
    /// Whether the rule is for messages of this era and transport.
    #[must_use]
    pub fn applies(&self, era: Option<Era>, transport: Transport) -> bool {
        self.is_for(transport) && self.eras.has(era)
    }

    /// Whether the rule is for this transport.
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
    const UNKNOWN: u8 = 1 << Era::ALL.len();

    /// Whether the rule applies to a message of this era. A message whose era is not known is met
    /// only by rules of all eras.
    #[must_use]
    pub fn has(self, era: Option<Era>) -> bool {
        self.mask & era.map_or(Eras::UNKNOWN, Eras::bit) != 0
    }

    /// It holds in every era.
    #[must_use]
    pub fn is_all(self) -> bool {
        self.mask & Eras::UNKNOWN != 0
    }

    /// The eras, oldest first.
    pub fn iter(self) -> impl Iterator<Item = Era> {
        Era::ALL.into_iter().filter(move |era| self.has(Some(*era)))
    }

    fn bit(era: Era) -> u8 {
        1 << Era::ALL.iter().position(|known| *known == era).unwrap_or(0)
    }

    fn read(text: &str) -> Option<Eras> {
        let of = |eras: &mut dyn Iterator<Item = Era>| eras.fold(0, |mask, era| mask | Eras::bit(era));
        let mask = match text {
            "all" => of(&mut Era::ALL.into_iter()) | Eras::UNKNOWN,
            "legacy" => of(&mut Era::ALL.into_iter().filter(|era| !era.is_modern())),
            "modern" => of(&mut Era::ALL.into_iter().filter(|era| era.is_modern())),
            list => of(&mut list.split(',').map(Era::from_name).collect::<Option<Vec<_>>>()?.into_iter()),
        };
        Some(Eras { mask })
    }
}

impl std::fmt::Display for Eras {
    /// `all`, `legacy`, `modern`, or the revisions.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let known = ["all", "legacy", "modern"].into_iter().find(|name| Eras::read(name) == Some(*self));
        match known {
            Some(name) => f.write_str(name),
            None => f.write_str(&self.iter().map(Era::as_str).collect::<Vec<_>>().join(", ")),
        }
    }
}

fn entry(line: &'static str) -> Option<Entry> {
    let mut cells = line.split('\t');
    let id = cells.next()?;
    let severity = Severity::from_name(cells.next()?)?;
    let eras = Eras::read(cells.next()?)?;
    let (transports, sender) = (cells.next()?, cells.next()?);
    let needs = match cells.next()? {
        "-" => Vec::new(),
        list => list.split(',').map(Need::from_name).collect::<Option<_>>()?,
    };
    let (clause, rule, remedy, note) = (cells.next()?, cells.next()?, cells.next()?, cells.next()?);
    let note = if note == "-" { "" } else { note };
    Some(Entry { id, severity, eras, transports, sender, needs, clause, rule, remedy, note })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_catalogue_is_read_and_ids_are_unique() {
        let lines = FILES.iter().flat_map(|file| file.lines().skip(1));
        for line in lines {
            let entry = entry(line).unwrap_or_else(|| panic!("not read: {line}"));
            assert_eq!(line.split('\t').count(), 10, "{line}");
            assert!(["both", "stdio", "http"].contains(&entry.transports), "{}", entry.id);
        }
        for entry in entries() {
            assert_eq!(find(entry.id), Some(entry), "{} stands twice", entry.id);
            assert!(entry.rule.ends_with('.') && entry.remedy.ends_with('.'), "{}", entry.id);
            assert!(entry.note.is_empty() || entry.note.ends_with('.'), "{}", entry.id);
            assert!(!entry.needs.contains(&Need::Never) || !entry.note.is_empty(), "{}", entry.id);
        }
    }

    #[test]
    fn an_unknown_era_meets_only_rules_of_all_eras() {
        let all = Eras::read("all").unwrap();
        assert!(all.has(None) && all.is_all() && all.to_string() == "all");
        let legacy = find("RPC-07").unwrap().eras;
        assert!(!legacy.has(None) && legacy.has(Some(Era::V2025_11_25)));
        assert!(!legacy.has(Some(Era::V2026_07_28)));
        assert_eq!(Eras::read("2025-03-26,2025-11-25").unwrap().to_string(), "2025-03-26, 2025-11-25");
        assert_eq!(Eras::read("2025"), None);
    }
}

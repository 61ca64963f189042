//! The detectors of reliability, D-01 to D-36: each is shown under rules, and can be seen on a real wire by a
//! fault of the reference peers.

use std::collections::BTreeSet;

use midwire::peer::faults::Fault;
use midwire::rules::catalogue;

/// Each detector and the rules under which it is shown.
fn detectors() -> Vec<(&'static str, Vec<&'static str>)> {
    let lines = include_str!("detectors.tsv").lines().skip(1);
    lines.filter_map(|line| line.split_once('\t')).map(|(d, rules)| (d, rules.split(' ').collect())).collect()
}

/// Rules of detectors that no fault is needed for: another one of their detector is provoked.
const WITHOUT_FAULT: [&str; 4] = ["PRX-07", "RPC-07", "RTY-01", "RTY-02"];

#[test]
fn every_detector_can_be_seen_by_a_fault() {
    let detectors = detectors();
    let numbers: Vec<String> = (1..=36).map(|number| format!("D-{number:02}")).collect();
    assert_eq!(detectors.iter().map(|(name, _)| *name).collect::<Vec<_>>(), numbers);
    let provoked: BTreeSet<&str> = Fault::ALL.iter().flat_map(|fault| fault.rules()).copied().collect();
    for (detector, rules) in &detectors {
        for rule in rules {
            assert!(catalogue::find(rule).is_some(), "{detector}: no rule {rule}");
        }
        assert!(rules.iter().any(|rule| provoked.contains(rule)), "no fault for {detector}: {rules:?}");
    }
    let all = detectors.iter().flat_map(|(_, rules)| rules).copied().collect::<BTreeSet<_>>();
    let without: Vec<&str> = all.difference(&provoked).copied().collect();
    assert_eq!(without, WITHOUT_FAULT);
}

//! The recordings that ship with the source: each opens without a fault and is written back byte
//! for byte, and the pages about the format name what is in them.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use midwire::trace::{Ending, Recording, encode_event};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn recordings(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = entries.filter(|path| path.to_str().unwrap().ends_with(".mw.jsonl")).collect();
    paths.sort();
    paths
}

/// Reads a recording whole, checks every place, and returns how it is written back.
fn rewritten(path: &Path) -> (Recording, String) {
    let mut recording = Recording::open(path).unwrap();
    let mut text = Vec::new();
    recording.header().encode(&mut text);
    while let Some((event, place)) = recording.next().unwrap() {
        assert_eq!(recording.read_at(place).unwrap(), event, "{} at {place:?}", path.display());
        encode_event(&event, &mut text);
    }
    (recording, String::from_utf8(text).unwrap())
}

#[test]
fn every_recording_round_trips_byte_for_byte() {
    let (shipped, golden) = (recordings("recordings"), recordings("tests/golden"));
    assert!(shipped.len() >= 4 && !golden.is_empty());
    for path in shipped.iter().chain(&golden) {
        let (recording, text) = rewritten(path);
        assert!(recording.faults().is_empty(), "{}: {:?}", path.display(), recording.faults());
        assert!(text == fs::read_to_string(path).unwrap(), "{} is written back differently", path.display());
    }
    for path in &shipped {
        let (recording, _) = rewritten(path);
        assert_eq!(recording.ending(), Ending::Clean { is_complete: Some(true) }, "{}", path.display());
    }
}

#[test]
fn every_recording_is_described() {
    let notes = fs::read_to_string(root().join("recordings/README.md")).unwrap();
    for path in recordings("recordings") {
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(notes.contains(&format!("| `{name}` |")), "recordings/README.md does not describe {name}");
    }
}

/// Every member and every event that is written stands in the schema and in the page about it.
#[test]
fn the_pages_about_the_format_are_complete() {
    let golden = fs::read_to_string(root().join("tests/golden/every-event.mw.jsonl")).unwrap();
    let schema = fs::read_to_string(root().join("docs/trace.schema.json")).unwrap();
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    let page = fs::read_to_string(root().join("docs/trace-format.md")).unwrap();
    let (mut members, mut kinds) = (BTreeSet::new(), BTreeSet::new());
    for line in golden.lines() {
        let line: serde_json::Map<String, serde_json::Value> = serde_json::from_str(line).unwrap();
        let part = if line.contains_key("midwire") { "header" } else { "event" };
        kinds.extend(line.get("event").map(|kind| kind.as_str().unwrap().to_owned()));
        members.extend(line.into_iter().map(|(name, _)| (part, name)));
    }
    for (part, name) in &members {
        assert!(
            schema["$defs"][part]["properties"][name].is_object(),
            "{part} member {name} is not in the schema"
        );
        assert!(page.contains(&format!("`{name}`")), "{part} member {name} is not on the page");
    }
    for kind in &kinds {
        assert!(page.contains(&format!("`{kind}`")), "event {kind} is not on the page");
    }
    let in_schema = |part: &str| schema["$defs"][part]["properties"].as_object().unwrap().len();
    assert_eq!(members.len(), in_schema("header") + in_schema("event"), "the golden file lacks a member");
}

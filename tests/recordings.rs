//! The recordings that ship with the source: each opens without a fault and is written back byte
//! for byte, and the pages about the format name what is in them.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use midwire::event::What;
use midwire::trace::library::Library;
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

#[test]
fn both_starts_of_a_typescript_client_are_one_entry_on_one_axis() {
    let folder = tempfile::tempdir().unwrap();
    let library = Library::at(folder.path().to_owned());
    fs::create_dir_all(library.recordings_folder()).unwrap();
    for name in ["stdio-clean", "stdio-typescript-session", "stdio-typescript-probe"] {
        let name = format!("{name}.mw.jsonl");
        fs::copy(root().join("recordings").join(&name), library.recordings_folder().join(&name)).unwrap();
    }
    let saved = library.saved();
    assert_eq!(saved.iter().map(|entry| entry.runs.len()).collect::<Vec<_>>(), [2, 1]);
    let mut recording = saved[0].open().unwrap();
    let events: Vec<_> = std::iter::from_fn(|| recording.next().unwrap()).map(|(event, _)| event).collect();
    assert!(events.iter().map(|event| event.n).eq(1..=15));
    assert!(events.windows(2).all(|pair| pair[0].at <= pair[1].at));
    let starts: Vec<_> = events.iter().filter(|event| matches!(event.what, What::Spawn { .. })).collect();
    assert_eq!(starts.iter().map(|start| start.n).collect::<Vec<_>>(), [1, 8]);
    // The second run's clock began 101.492804 ms after that of the first, and its server 4.522239 ms later.
    assert_eq!(starts[1].at.0, 106_015_043);
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

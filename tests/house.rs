//! What a visitor finds at the top level (M-002).
#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside the test functions")]

use std::fs;
use std::path::{Path, PathBuf};

use midwire::config::colour::Depth;
use midwire::config::theme::Theme;
use midwire::trace::Recording;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Files below a folder whose name ends so, in order.
fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_str().unwrap().ends_with(ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

#[test]
fn the_top_level_holds_what_the_readme_shows() {
    for name in ["Cargo.toml", "src", "themes", "recordings", "tests", "README.md"] {
        assert!(root().join(name).exists(), "{name} is missing");
    }
}

#[test]
fn every_theme_and_every_recording_loads() {
    let themes = files("themes", ".toml");
    assert!(!themes.is_empty());
    for path in themes {
        let theme = Theme::load(path.to_str().unwrap(), Depth::True);
        assert!(theme.is_ok(), "{}: {:?}", path.display(), theme.err());
    }
    let recordings = files("recordings", ".mw.jsonl");
    assert!(!recordings.is_empty());
    for path in recordings {
        let mut recording = Recording::open(&path).unwrap();
        let mut events = 0;
        while recording.next().unwrap().is_some() {
            events += 1;
        }
        assert!(events > 0, "{} is empty", path.display());
    }
}

//! What a visitor finds at the top level, and that the crates which the project promises are
//! really used (M-001, M-002).
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

/// Code that ships: no test files, nothing behind a file's test module, no comments.
fn shipped_code() -> String {
    let mut code = String::new();
    for path in files("src", ".rs") {
        if path.ends_with("tests.rs") {
            continue;
        }
        let text = fs::read_to_string(path).unwrap();
        let shipped = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        for line in shipped.lines().filter(|line| !line.trim_start().starts_with("//")) {
            code.push_str(line);
            code.push('\n');
        }
    }
    code
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

#[test]
fn the_promised_crates_are_used_by_code_that_ships() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let dependencies = manifest.split("[dependencies]").nth(1).unwrap().split("\n[").next().unwrap();
    let code = shipped_code();
    for name in ["ratatui", "crossterm", "tokio", "serde_json", "hyper", "chrono"] {
        let is_listed = dependencies.lines().any(|line| line.starts_with(&format!("{name} =")));
        assert!(is_listed, "{name} is no dependency");
        let path = format!("{}::", name.replace('-', "_"));
        assert!(code.contains(&path), "no code that ships uses {name}");
    }
}

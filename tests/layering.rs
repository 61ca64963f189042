//! The house keeps its layers: which room may import which, and the rules that go with a file.
//!
//! The table is the one in the crate's own documentation; changing a row here is a design change
//! and is said in the commit.
#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside the test functions")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Every room and the rooms that it may import. A room may always import itself.
const ROOMS: &[(&str, &[&str])] = &[
    ("time", &[]),
    ("wire", &[]),
    ("spec", &["wire"]),
    ("event", &["time", "wire", "spec"]),
    ("machine", &["time", "spec"]),
    ("filter", &["time", "spec", "event"]),
    ("command", &["time", "wire", "spec", "event", "machine", "filter"]),
    ("model", &["time", "wire", "spec", "event", "machine", "filter"]),
    ("rules", &["time", "wire", "spec", "event", "machine", "model"]),
    ("lesson", &["time", "spec", "event", "machine", "model", "rules", "filter"]),
    ("sim", &["time", "spec", "event", "machine", "model", "rules", "filter", "trace", "proxy", "peer"]),
    ("report", &["time", "spec", "event", "model", "rules", "filter"]),
    ("interop", &["time", "wire", "spec", "event", "model", "rules", "filter", "trace"]),
    ("trace", &["time", "wire", "spec", "event"]),
    ("proxy", &["time", "wire", "spec", "event", "machine", "filter", "command"]),
    ("peer", &["time", "wire", "spec", "event", "machine"]),
    ("config", &[]),
    (
        "ui",
        &[
            "config", "time", "wire", "spec", "event", "machine", "model", "rules", "filter", "command",
            "lesson", "report",
        ],
    ),
];

/// Rooms that may import every other, but for those named.
const TOP: &[(&str, &[&str])] = &[("app", &["cli"]), ("cli", &[]), ("main", &[]), ("lib", &[])];

/// Lines of a file above which it says in its head why it is one.
const LINE_LIMIT: usize = 500;
const LONG_FILE_REASON: &str = "//! Long because ";

struct Source {
    path: PathBuf,
    room: String,
    text: String,
}

/// Every source file, in order.
fn sources() -> Vec<Source> {
    let house = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    let mut folders = vec![house.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ext| ext == "rs") {
                let first = path.strip_prefix(&house).unwrap().iter().next().unwrap();
                let room = Path::new(first).file_stem().unwrap().to_str().unwrap().to_owned();
                found.push(Source { room, text: fs::read_to_string(&path).unwrap(), path });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// The code without comments and without what stands in strings and characters; lines stay lines.
fn code_only(text: &str) -> String {
    let mut code = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let skipped = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => end_after(rest, 2, "*/"),
            'r' => raw_string_len(rest),
            '"' => quoted_len(rest, '"'),
            '\'' if is_character(rest) => quoted_len(rest, '\''),
            _ => 0,
        };
        let (passed, after) = rest.split_at(skipped.max(first.len_utf8()));
        if skipped == 0 {
            code.push_str(passed);
        } else {
            code.push(' ');
            code.extend(passed.chars().filter(|c| *c == '\n'));
        }
        rest = after;
    }
    code
}

/// Length up to and with the first `end` behind the first `from` bytes.
fn end_after(text: &str, from: usize, end: &str) -> usize {
    let (_, rest) = text.split_at(from);
    rest.find(end).map_or(text.len(), |at| from + at + end.len())
}

/// Length of a raw string at the start of the text; 0: there is none.
fn raw_string_len(text: &str) -> usize {
    let fence: String = text.chars().skip(1).take_while(|c| *c == '#').collect();
    let start = format!("r{fence}\"");
    if text.starts_with(&start) { end_after(text, start.len(), &format!("\"{fence}")) } else { 0 }
}

/// Length of a quoted text with backslash escapes.
fn quoted_len(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// A character in quotes and not a lifetime.
fn is_character(text: &str) -> bool {
    let mut chars = text.chars().skip(1);
    chars.next() == Some('\\') || chars.next() == Some('\'')
}

/// The names that follow `crate::`, with their line from 1: `crate::a::B`, `crate::{a::B, c}`.
fn imports(code: &str) -> Vec<(usize, String)> {
    let mut parts = code.split("crate::");
    let mut line = 1 + parts.next().unwrap_or_default().matches('\n').count();
    let mut found = Vec::new();
    for rest in parts {
        match rest.trim_start().strip_prefix('{') {
            Some(group) => found.extend(group_names(group).map(|name| (line, name))),
            None => found.push((line, name(rest))),
        }
        line += rest.matches('\n').count();
    }
    found
}

/// The first names of a `use` group, given without its opening brace.
fn group_names(group: &str) -> impl Iterator<Item = String> {
    let (mut depth, mut items) = (1usize, vec![String::new()]);
    for c in group.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 1 => items.push(String::new()),
            c if depth == 1 => items.last_mut().unwrap().push(c),
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    items.into_iter().map(|item| name(&item)).filter(|name| !name.is_empty())
}

fn name(path: &str) -> String {
    path.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

fn is_room(name: &str) -> bool {
    ROOMS.iter().chain(TOP).any(|(room, _)| *room == name)
}

/// Why a room may not import another; `None`: it may.
fn objection(room: &str, other: &str) -> Option<String> {
    if !is_room(other) {
        return Some(format!("{other} is no room of the table"));
    }
    if let Some((_, barred)) = TOP.iter().find(|(name, _)| *name == room) {
        return barred.contains(&other).then(|| format!("{room} does not import {other}"));
    }
    match ROOMS.iter().find(|(name, _)| *name == room) {
        None => Some(format!("{room} is no room of the table")),
        Some((_, allowed)) if room != other && !allowed.contains(&other) => {
            Some(format!("{room} may import {allowed:?}, not {other}"))
        }
        Some(_) => None,
    }
}

/// What is against the table in one file, with its line from 1.
fn objections(room: &str, text: &str) -> Vec<(usize, String)> {
    let code = code_only(text);
    let by_table = imports(&code)
        .into_iter()
        .filter_map(|(line, other)| objection(room, &other).map(|objection| (line, objection)));
    let by_path = code
        .lines()
        .enumerate()
        .filter(|(_, text)| text.contains("super::super"))
        .map(|(idx, _)| (idx + 1, "super::super: name the path from the crate".to_owned()));
    by_table.chain(by_path).collect()
}

/// Fails with every complaint at once.
fn none(complaints: &[String], rule: &str) {
    let mut text = String::new();
    for complaint in complaints {
        writeln!(text, "  {complaint}").unwrap();
    }
    assert!(complaints.is_empty(), "{rule}\n{text}");
}

#[test]
fn rooms_import_only_what_their_row_lists() {
    let mut complaints = Vec::new();
    for source in sources() {
        for (line, why) in objections(&source.room, &source.text) {
            complaints.push(format!("{}:{line}: {why}", source.path.display()));
        }
    }
    none(&complaints, "imports against the table of rooms:");
}

#[test]
fn the_scan_sees_what_breaks_the_table() {
    let cases: [(&str, &str, &[usize]); 12] = [
        ("wire", "use crate::time::Ms;", &[1]),
        ("model", "use crate::time::Ms;\nfn f() { crate::ui::draw() }", &[2]),
        ("model", "use crate::{\n    time::Ms,\n    trace::{Reader, peer},\n};", &[1]),
        ("model", "use crate::{event::{self, Event}, time, wire};", &[]),
        ("wire", "use crate::wire::lines::Line;", &[]),
        ("wire", "// crate::ui\n/* crate::ui */ /// [`crate::ui`]", &[]),
        ("wire", "let a = \"crate::ui\"; let b = r#\"crate::\"ui\"#; let c = '\"'; crate::ui::x()", &[1]),
        ("wire", "let c = b'\\''; fn f<'a>(x: &'a str) {}\n crate::ui::x()", &[2]),
        ("wire", "use super::super::lines;", &[1]),
        ("app", "use crate::cli::Args;", &[1]),
        ("cli", "use crate::{app, ui};", &[]),
        ("utils", "use crate::wire;", &[1]),
    ];
    for (room, text, lines) in cases {
        let found: Vec<usize> = objections(room, text).into_iter().map(|(line, _)| line).collect();
        assert_eq!(found, lines, "{room}: {text}");
    }
}

#[test]
fn every_file_says_what_it_is_for_and_keeps_to_one_topic() {
    let mut complaints = Vec::new();
    for source in sources() {
        let path = source.path.display();
        let lines = source.text.lines().count();
        if !source.text.starts_with("//! ") {
            complaints.push(format!("{path}:1: does not begin with //!"));
        }
        let has_reason = source.text.lines().any(|line| line.starts_with(LONG_FILE_REASON));
        if lines > LINE_LIMIT && !has_reason {
            complaints.push(format!("{path}: {lines} lines; split it, or say `{LONG_FILE_REASON}…`"));
        }
        if source.path.file_name().is_some_and(|name| name == "mod.rs") {
            complaints.push(format!("{path}: foo.rs and foo/bar.rs, not foo/mod.rs"));
        }
        if source.room == "main" && lines >= 40 {
            complaints.push(format!("{path}: {lines} lines; main.rs stays under 40"));
        }
    }
    none(&complaints, "files against the house style:");
}

#[test]
fn every_room_of_the_library_has_a_row() {
    let lib = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs")).unwrap();
    let code = code_only(&lib);
    let declared: Vec<&str> =
        code.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';')).collect();
    assert!(declared.len() > 10, "{declared:?}");
    for room in declared {
        assert!(is_room(room), "{room} has no row");
    }
}

//! The commands that the README tells people to type are ones that work.
#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside the test functions")]

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const MIDWIRE: &str = env!("CARGO_BIN_EXE_midwire");

/// The words after `midwire` of every command in the README, in order.
fn commands() -> Vec<Vec<String>> {
    let text = include_str!("../README.md");
    let lines = text.lines().filter_map(|line| line.strip_prefix("    "));
    let of_line = |line: &str| {
        let words = line.split_once("midwire").filter(|(before, _)| before.is_empty());
        let words = words.or_else(|| line.strip_prefix("cargo run --release --").map(|rest| ("", rest)));
        words.map(|(_, rest)| rest.split_whitespace().map(str::to_owned).collect())
    };
    lines.filter_map(of_line).collect()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A word as a shell would hand it on: `*` becomes the files that it names.
fn expanded(word: &str) -> Vec<String> {
    let Some((folder, ending)) = word.split_once("/*") else { return vec![word.to_owned()] };
    let files = std::fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().file_name());
    let files = files.map(|name| format!("{folder}/{}", name.to_string_lossy()));
    files.filter(|name| name.ends_with(ending)).collect()
}

fn midwire(words: &[String], state: &Path) -> Command {
    let mut command = Command::new(MIDWIRE);
    // The commands of the README say `midwire` for servers too.
    let words = words.iter().map(|word| if word == "midwire" { MIDWIRE.to_owned() } else { word.clone() });
    command.args(words).current_dir(root()).env("MIDWIRE_STATE_DIR", state).stdin(Stdio::null());
    command
}

/// A command that goes on until it is dropped.
struct Started {
    child: Child,
    /// The first URL that it told on standard error.
    url: String,
}

impl Started {
    fn new(words: &[String], state: &Path) -> Started {
        let child = midwire(words, state).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut started = Started { child, url: String::new() };
        let mut said = BufReader::new(started.child.stderr.take().unwrap());
        let mut told = String::new();
        while started.url.is_empty() {
            let mut line = String::new();
            assert!(said.read_line(&mut line).unwrap() > 0, "{words:?} ended: {told}");
            told.push_str(&line);
            let is_address = line.contains("serving") || line.contains("give clients");
            let url = line.split_whitespace().find(|word| word.starts_with("http://127.0.0.1"));
            url.filter(|_| is_address).unwrap_or_default().clone_into(&mut started.url);
        }
        // Whatever it says later must not stop it.
        std::thread::spawn(move || said.read_to_end(&mut Vec::new()));
        started
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// The words with every address replaced: where it listens by a free port, where it calls by `url`.
fn moved(words: &[String], url: &str) -> Vec<String> {
    let moved = words.iter().map(|word| match word.as_str() {
        listen if listen.starts_with("127.0.0.1:") => "127.0.0.1:0".to_owned(),
        target if target.starts_with("http://127.0.0.1:") => url.to_owned(),
        other => other.to_owned(),
    });
    moved.collect()
}

#[test]
fn the_readme_has_commands_for_each_use() {
    let first: Vec<String> =
        commands().iter().map(|words| words.first().cloned().unwrap_or_default()).collect();
    for name in [
        "demo", "stdio", "http", "ls", "open", "check", "rules", "serve", "call", "probe", "selftest",
        "faults",
    ] {
        assert!(first.iter().any(|word| word == name), "no {name} in {first:?}");
    }
}

#[test]
fn commands_that_end_by_themselves_end_well() {
    let state = tempfile::tempdir().unwrap();
    let serve: Vec<String> = ["serve", "http", "--listen", "127.0.0.1:0"].map(str::to_owned).into();
    let server = Started::new(&serve, state.path());
    for words in commands() {
        let name = words.first().map_or("", String::as_str);
        if !matches!(name, "ls" | "check" | "rules" | "call" | "probe" | "selftest" | "faults" | "ctl") {
            continue;
        }
        let words: Vec<String> = moved(&words, &server.url).iter().flat_map(|word| expanded(word)).collect();
        let done = midwire(&words, state.path()).output().unwrap();
        // A call that the README cancels has no answer, which is exit code 1.
        let expected = i32::from(words.iter().any(|word| word == "--cancel-after"));
        assert_eq!(
            done.status.code(),
            Some(expected),
            "{words:?}: {}",
            String::from_utf8_lossy(&done.stderr)
        );
    }
}

#[test]
fn commands_that_go_on_start_and_say_where() {
    let state = tempfile::tempdir().unwrap();
    for words in commands() {
        let words = match words.first().map(String::as_str) {
            Some("serve") => moved(&words, ""),
            // The default port may be taken; without a terminal it records only.
            Some("http") => {
                let more = ["--listen", "127.0.0.1:0"].map(str::to_owned);
                moved(&words, "http://127.0.0.1:9/mcp").into_iter().chain(more).collect()
            }
            _ => continue,
        };
        let url = Started::new(&words, state.path()).url.clone();
        assert!(url.ends_with("/mcp"), "{words:?}: {url}");
    }
}

#[test]
fn files_that_the_readme_names_exist() {
    let words = include_str!("../README.md").split(|c: char| c.is_whitespace() || "`(),;".contains(c));
    let paths = words.filter(|word| {
        ["docs/", "src/", "tests/", "recordings/", "plans/"].iter().any(|p| word.starts_with(p))
    });
    let mut count = 0;
    for path in paths.filter(|path| !path.contains('*')) {
        let path: PathBuf = root().join(path.trim_end_matches('.'));
        assert!(path.exists(), "{}", path.display());
        count += 1;
    }
    assert!(count > 3, "{count}");
}

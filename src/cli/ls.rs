//! `midwire ls`: running taps and saved recordings.

use std::io::Write;

use chrono::{DateTime, Local, Utc};
use serde_json::{Value, json};

use super::CLEAN;
use super::args::LsArgs;
use crate::report::harmless;
use crate::trace::library::{Entry, Library, Run, State};

/// Most that is shown of a command and its label.
const SHOWN_CHARS: usize = 200;

/// Prints what there is to watch and to open, newest first.
pub(super) fn ls(args: &LsArgs) -> anyhow::Result<u8> {
    let library = Library::of_user()?;
    let (running, mut saved) = (library.running(), library.saved());
    saved.retain(|entry| !running.iter().any(|run| is_recorded_by(entry, run)));
    let mut out = std::io::stdout().lock();
    if args.json {
        let object = json!({
            "running": running,
            "saved": saved.iter().map(entry_json).collect::<Vec<_>>(),
        });
        writeln!(out, "{object}")?;
        return Ok(CLEAN);
    }
    if running.is_empty() && saved.is_empty() {
        writeln!(
            out,
            "nothing here yet; try `midwire demo`, or put `midwire stdio --` before a server's command"
        )?;
        return Ok(CLEAN);
    }
    for run in &running {
        writeln!(
            out,
            "running  {}  {:5}  pid {:<7}  {}",
            moment(run.started),
            run.transport,
            run.pid,
            run_words(run)
        )?;
    }
    for entry in &saved {
        let last = entry.last();
        let events = entry.events().map_or_else(|| "?".to_owned(), |events| events.to_string());
        let started = entry.started().map_or_else(|| " ".repeat(19), moment);
        let runs =
            if entry.runs.len() > 1 { format!("  ({} runs)", entry.runs.len()) } else { String::new() };
        writeln!(
            out,
            "{:7}  {started}  {:>8} events  {:>9}  {}{runs}",
            state_word(last.state),
            events,
            size(entry.size_bytes()),
            entry_words(entry),
        )?;
        for path in entry.paths() {
            writeln!(out, "         {}", harmless(&path.to_string_lossy()))?;
        }
    }
    Ok(CLEAN)
}

/// Whether the last run of a recording is still being written by this tap, which is listed itself.
fn is_recorded_by(entry: &Entry, run: &Run) -> bool {
    entry.last().header.session == run.session
}

fn entry_json(entry: &Entry) -> Value {
    let last = entry.last();
    json!({
        "state": state_word(last.state),
        "started": entry.started().map(|started| started.to_rfc3339()),
        "events": entry.events(),
        "bytes": entry.size_bytes(),
        "runs": entry.runs.len(),
        "label": last.header.label,
        "command": last.header.command,
        "upstream": last.header.upstream,
        "files": entry.paths(),
    })
}

fn state_word(state: State) -> &'static str {
    match state {
        State::Live => "live",
        State::Clean { is_complete: None | Some(true) } => "saved",
        State::Clean { is_complete: Some(false) } => "gaps",
        State::Cut => "cut",
        State::Unknown => "packed",
    }
}

fn run_words(run: &Run) -> String {
    let to = run.upstream.clone().unwrap_or_else(|| run.command.join(" "));
    let at = run.listen.as_ref().map(|listen| format!("{listen} → ")).unwrap_or_default();
    with_label(run.label.as_deref(), &format!("{at}{to}"))
}

fn entry_words(entry: &Entry) -> String {
    let header = &entry.last().header;
    let to = header.upstream.clone().unwrap_or_else(|| header.command.join(" "));
    with_label(header.label.as_deref(), &to)
}

fn with_label(label: Option<&str>, to: &str) -> String {
    // What a recording says of itself is foreign text, and may be as long as a command line.
    let text = label.map_or_else(|| to.to_owned(), |label| format!("[{label}] {to}"));
    let mut shown: String = harmless(&text).chars().take(SHOWN_CHARS).collect();
    if text.chars().nth(SHOWN_CHARS).is_some() {
        shown.push('…');
    }
    shown
}

/// Local wall time, to the second.
fn moment(at: DateTime<Utc>) -> String {
    at.with_timezone(&Local).format("%Y-%m-%d %H:%M:%S").to_string()
}

#[expect(clippy::cast_precision_loss, reason = "shown with one decimal")]
fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}

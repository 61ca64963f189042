//! The recording behind an open session: one that is whole, or one that still grows.

use std::path::{Path, PathBuf};

use chrono::{DateTime, Local, Utc};

use crate::event::{Event, Transport};
use crate::trace::library::{Run, SavedRun, State};
use crate::trace::{Ending, Faults, Follower, Header, Place, Recording, TraceError, Writer};
use crate::ui::msg::{Facts, Feed, Recording as Standing};

/// A recording, and what is known about it without its events.
#[derive(Debug)]
pub(super) struct Source {
    text: Text,
    facts: Facts,
    session: Option<String>,
    /// The machine's monotonic clock at the time 0 of the recording.
    boot_ns: Option<u64>,
    /// Nothing more is there now.
    is_read: bool,
}

#[derive(Debug)]
enum Text {
    Whole(Recording),
    Growing(Follower),
}

impl Source {
    /// Recordings as one. The last one is followed if its tap is at work.
    pub(super) fn open(paths: &[PathBuf]) -> Result<Source, TraceError> {
        let refs: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
        let is_live = match refs.last() {
            Some(last) => SavedRun::look(last)?.state == State::Live,
            None => false,
        };
        let text = if is_live {
            Text::Growing(Follower::open(&refs)?)
        } else if let [one] = refs.as_slice() {
            Text::Whole(Recording::open(one)?)
        } else {
            Text::Whole(Recording::open_all(&refs)?)
        };
        let names: Vec<String> = refs.iter().filter_map(|path| path.file_name()).map(lossy).collect();
        let mut source = Source::new(text, &names.join(" + "));
        // Where each goes to may differ, so several are called by their names.
        if names.len() > 1 {
            source.facts.what = format!("{} files: {}", names.len(), names.join(" + "));
        }
        Ok(source)
    }

    /// Standard input to its end.
    pub(super) fn standard_input() -> Result<Source, TraceError> {
        let recording = Recording::read_from(&mut std::io::stdin().lock(), "standard input")?;
        Ok(Source::new(Text::Whole(recording), "standard input"))
    }

    /// What a tap of another process records.
    pub(super) fn running(run: &Run) -> Result<Option<Source>, TraceError> {
        let Some(path) = &run.recording else { return Ok(None) };
        let mut source = Source::new(Text::Growing(Follower::open(&[path])?), &lossy(path.as_os_str()));
        source.facts.what = what_of_run(run);
        Ok(Some(source))
    }

    /// What the tap of this process records.
    pub(super) fn own_tap(path: &Path, welcome: String) -> Result<Source, TraceError> {
        let mut source = Source::new(Text::Growing(Follower::open(&[path])?), "");
        source.facts.is_own_tap = true;
        source.facts.welcome = Some(welcome);
        Ok(source)
    }

    fn new(text: Text, name: &str) -> Source {
        let (header, feed) = match &text {
            Text::Whole(recording) => (recording.header(), Feed::Whole),
            Text::Growing(follower) => (follower.recording().header(), Feed::Live),
        };
        let to = what_of_header(&header);
        let facts = Facts {
            what: if to.is_empty() { name.to_owned() } else { to },
            label: header.label.clone(),
            transport: header.transport,
            started: header.started.map(moment).unwrap_or_default(),
            is_own_tap: false,
            welcome: None,
            feed,
        };
        let session = Some(header.session.clone()).filter(|session| !session.is_empty());
        Source { text, facts, session, boot_ns: header.boot_ns, is_read: false }
    }

    /// The name of its session, while its tap is at work.
    pub(super) fn session(&self) -> Option<&str> {
        self.session.as_deref().filter(|_| self.is_growing())
    }

    /// What is known before the first event.
    pub(super) fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The time 0 of a session that still goes on, on the machine's monotonic clock.
    pub(super) fn live_since_ns(&self) -> Option<u64> {
        self.boot_ns.filter(|_| self.feed() == Feed::Live)
    }

    /// More may come without being asked for.
    pub(super) fn is_growing(&self) -> bool {
        matches!(&self.text, Text::Growing(follower) if follower.writer() == Writer::Alive)
    }

    /// The next event; `None`: nothing more now.
    pub(super) fn next(&mut self) -> Result<Option<(Event, Place)>, TraceError> {
        let found = match &mut self.text {
            Text::Whole(recording) => recording.next(),
            Text::Growing(follower) => follower.next(),
        };
        self.is_read = !matches!(found, Ok(Some(_)));
        found
    }

    /// An event that was read before.
    pub(super) fn read_at(&self, place: Place) -> Result<Event, TraceError> {
        self.recording().read_at(place)
    }

    fn recording(&self) -> &Recording {
        match &self.text {
            Text::Whole(recording) => recording,
            Text::Growing(follower) => follower.recording(),
        }
    }

    fn feed(&self) -> Feed {
        match (&self.text, self.recording().ending()) {
            (_, Ending::Clean { .. }) => Feed::Whole,
            (Text::Growing(follower), Ending::Cut) if follower.writer() != Writer::Gone => Feed::Live,
            // How it ends is known at its end.
            (Text::Whole(_), Ending::Cut) if !self.is_read => Feed::Whole,
            (_, Ending::Cut) => Feed::Cut,
        }
    }

    /// How the recording stands.
    pub(super) fn standing(&self) -> Standing {
        Standing {
            feed: self.feed(),
            bytes: self.recording().read_bytes(),
            trouble: trouble(self.recording().faults()),
            is_read: self.is_read,
        }
    }
}

/// What a reader could not take, in a few words. What it does not know is no trouble.
fn trouble(faults: &Faults) -> Option<String> {
    if let Some(why) = &faults.compression {
        return Some(format!("compressed file is damaged: {why}"));
    }
    if let Some(bad) = faults.bad_line_examples.first() {
        return Some(format!("{} bad lines, first {}: {}", faults.bad_lines, bad.line, bad.reason));
    }
    if faults.too_long_lines > 0 {
        return Some(format!("{} lines too long", faults.too_long_lines));
    }
    faults.was_truncated.then(|| "the file was cut while it was read".to_owned())
}

/// Where a recorded session goes to: the upstream or the command.
pub(super) fn what_of_header(header: &Header) -> String {
    header.upstream.clone().unwrap_or_else(|| header.command.join(" "))
}

/// Where a running tap is reached and where it goes to.
pub(super) fn what_of_run(run: &Run) -> String {
    let to = run.upstream.clone().unwrap_or_else(|| run.command.join(" "));
    match &run.listen {
        Some(listen) => format!("{listen} to {to}"),
        None => to,
    }
}

/// How the peers of a running tap are joined.
pub(super) fn transport_of_run(run: &Run) -> Option<Transport> {
    match run.transport.as_str() {
        "stdio" => Some(Transport::Stdio),
        "http" => Some(Transport::Http),
        _ => None,
    }
}

/// Local wall time, to the second.
pub(super) fn moment(at: DateTime<Utc>) -> String {
    at.with_timezone(&Local).format("%Y-%m-%d %H:%M:%S").to_string()
}

fn lossy(name: &std::ffi::OsStr) -> String {
    name.to_string_lossy().into_owned()
}

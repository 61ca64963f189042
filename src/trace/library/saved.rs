//! The recordings that are there, with what can be known of them cheaply: their first line, their
//! last line and their size.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use super::Library;
use crate::event::{Transport, What};
use crate::time::Mono;
use crate::trace::decode::{Defaults, decode_line};
use crate::trace::{Header, Recording, TraceError};

/// Bytes looked at to find the last line.
const TAIL_BYTES: u64 = 64 << 10;

/// Two runs of the same command within this time, the first ended before the second began its
/// work, are one start of the server by one client.
/// ours: a TypeScript client ends its probe run in well under a second.
const JOIN_NS: u64 = 10_000_000_000;

/// How much of the second run the end of the first may overlap.
const OVERLAP_NS: u64 = 2_000_000_000;

/// One line of the history: a session, or a session with the probe run before it.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The runs in order; never empty. The last one is what a person means.
    pub runs: Vec<SavedRun>,
}

/// One recording, in one file or in several parts.
#[derive(Debug, Clone, PartialEq)]
pub struct SavedRun {
    /// Its files in order; never empty.
    pub paths: Vec<PathBuf>,
    /// Its first line.
    pub header: Header,
    /// Bytes on the disk.
    pub size_bytes: u64,
    /// How many events it holds; `None` where the end is compressed or torn.
    pub events: Option<u64>,
    /// When its last event was read.
    pub last_at: Option<Mono>,
    /// How it ends.
    pub state: State,
}

/// How a saved recording ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Its writer is at work.
    Live,
    /// Ended in order; `is_complete`: and says that nothing is missing.
    Clean {
        /// What it says about gaps, if anything.
        is_complete: Option<bool>,
    },
    /// The writer was cut off.
    Cut,
    /// Compressed: to be known, it must be opened.
    Unknown,
}

impl Library {
    /// All recordings, newest first; those that cannot be read as one are left out. Runs that
    /// belong together are one entry.
    #[must_use]
    pub fn saved(&self) -> Vec<Entry> {
        let paths = self.files("recordings").into_iter().filter(|path| is_recording(path));
        grouped(paths.filter_map(|path| SavedRun::look(&path).ok()))
    }
}

/// The recordings in these files, newest first, as [`Library::saved`] has them.
///
/// # Errors
/// When one cannot be read, or is not a recording.
pub fn entries_of(paths: &[PathBuf]) -> Result<Vec<Entry>, TraceError> {
    let looks: Result<Vec<SavedRun>, TraceError> = paths.iter().map(|path| SavedRun::look(path)).collect();
    Ok(grouped(looks?))
}

/// Parts of one session become a run, and runs that belong together an entry.
fn grouped(parts: impl IntoIterator<Item = SavedRun>) -> Vec<Entry> {
    let mut sessions: BTreeMap<(String, Vec<PathBuf>), Vec<SavedRun>> = BTreeMap::new();
    for part in parts {
        let session = part.header.session.clone();
        // A file that names no session stands for itself.
        let other = if session.is_empty() { part.paths.clone() } else { Vec::new() };
        sessions.entry((session, other)).or_default().push(part);
    }
    let mut runs: Vec<SavedRun> = sessions.into_values().filter_map(SavedRun::of_parts).collect();
    runs.sort_by_key(|run| (run.header.started, run.header.boot_ns));
    let mut entries: Vec<Entry> = Vec::new();
    for run in runs {
        let before = entries.iter_mut().rev().find(|entry| entry.last().is_probe_before(&run));
        match before {
            Some(entry) => entry.runs.push(run),
            None => entries.push(Entry { runs: vec![run] }),
        }
    }
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.started()));
    entries
}

impl Entry {
    /// The files in order, for [`Recording::open_all`] and [`crate::trace::Follower::open`].
    #[must_use]
    pub fn paths(&self) -> Vec<&Path> {
        self.runs.iter().flat_map(|run| &run.paths).map(PathBuf::as_path).collect()
    }

    /// The run that a person means.
    ///
    /// # Panics
    /// Never: an entry has a run.
    #[must_use]
    pub fn last(&self) -> &SavedRun {
        self.runs.last().unwrap_or_else(|| unreachable!("an entry is made around a run"))
    }

    /// When the first run began.
    #[must_use]
    pub fn started(&self) -> Option<DateTime<Utc>> {
        self.runs.first().and_then(|run| run.header.started)
    }

    /// Bytes on the disk, all runs together.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.runs.iter().map(|run| run.size_bytes).sum()
    }

    /// Events of all runs, where each is known.
    #[must_use]
    pub fn events(&self) -> Option<u64> {
        self.runs.iter().map(|run| run.events).sum()
    }

    /// Opens all runs as one recording.
    ///
    /// # Errors
    /// As for [`Recording::open`].
    pub fn open(&self) -> Result<Recording, TraceError> {
        Recording::open_all(&self.paths())
    }
}

impl SavedRun {
    /// Looks at one file.
    ///
    /// # Errors
    /// When it cannot be read, or is not a recording.
    pub fn look(path: &Path) -> Result<SavedRun, TraceError> {
        let read = |source| TraceError::Read { path: path.to_owned(), source };
        let header = Recording::open(path)?.header();
        let file = File::open(path).map_err(read)?;
        let size_bytes = file.metadata().map_err(read)?.len();
        let is_live = matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
        let last = if is_compressed(path) { None } else { last_event(&file, size_bytes) };
        let state = match &last {
            _ if is_live => State::Live,
            Some((_, _, What::CaptureEnd { complete, .. })) => State::Clean { is_complete: *complete },
            None if is_compressed(path) => State::Unknown,
            _ => State::Cut,
        };
        let (events, last_at) = last.map(|(n, at, _)| (n, at)).unzip();
        let paths = vec![path.to_owned()];
        Ok(SavedRun { paths, header, size_bytes, events, last_at, state })
    }

    /// One recording from the looks at its parts, in any order.
    fn of_parts(mut parts: Vec<SavedRun>) -> Option<SavedRun> {
        parts.sort_by_key(|part| part.header.part);
        let last = parts.last()?.clone();
        let first = parts.first()?.header.clone();
        let size_bytes = parts.iter().map(|part| part.size_bytes).sum();
        let paths = parts.into_iter().flat_map(|part| part.paths).collect();
        Some(SavedRun { paths, header: first, size_bytes, ..last })
    }

    /// Whether `next` is the same client's next start of the same server, after this one ended.
    fn is_probe_before(&self, next: &SavedRun) -> bool {
        let (a, b) = (&self.header, &next.header);
        let is_same = a.transport == Some(Transport::Stdio)
            && a.transport == b.transport
            && !a.command.is_empty()
            && a.command == b.command
            && a.cwd == b.cwd
            && a.label == b.label
            && a.parent.is_some()
            && a.parent == b.parent;
        let (Some(a_ns), Some(b_ns), Some(last_at)) = (a.boot_ns, b.boot_ns, self.last_at) else {
            return false;
        };
        let is_ended =
            self.state != State::Live && a_ns.saturating_add(last_at.0) <= b_ns.saturating_add(OVERLAP_NS);
        is_same && is_ended && a_ns <= b_ns && b_ns - a_ns <= JOIN_NS
    }
}

fn is_recording(path: &Path) -> bool {
    let plain = if is_compressed(path) { path.with_extension("") } else { path.to_owned() };
    plain.extension().is_some_and(|ending| ending == "jsonl")
}

fn is_compressed(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "zst")
}

/// Number, time and kind of the last event whose line is whole.
fn last_event(file: &File, size_bytes: u64) -> Option<(u64, Mono, What)> {
    let from = size_bytes.saturating_sub(TAIL_BYTES);
    let mut tail = vec![0; usize::try_from(size_bytes - from).ok()?];
    file.read_exact_at(&mut tail, from).ok()?;
    let whole = tail.get(..=memchr::memrchr(b'\n', &tail)?)?;
    let mut lines = whole.rsplit(|&byte| byte == b'\n');
    let event = lines.find_map(|line| decode_line(line, Defaults::default(), &mut |_| {}).ok().flatten())?;
    Some((event.n, event.at, event.what))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const END: &str = "{\"n\":2,\"t_ms\":40,\"event\":\"capture_end\",\"events\":1,\"complete\":true}\n";

    /// A run file of the test library: name, `boot_ns` in ms, parent, and what is after the header.
    fn save(library: &Library, session: &str, boot_ms: u64, parent: u32, rest: &str) {
        let header = Header {
            session: session.to_owned(),
            started: DateTime::from_timestamp_millis(i64::try_from(boot_ms).unwrap()),
            transport: Some(Transport::Stdio),
            command: vec!["server".to_owned()],
            boot_ns: Some(boot_ms * 1_000_000),
            parent: Some(parent),
            cwd: Some("/w".to_owned()),
            ..Header::default()
        };
        let mut text = Vec::new();
        header.encode(&mut text);
        text.extend_from_slice(b"{\"n\":1,\"t_ms\":1.5,\"dir\":\"c2s\",\"raw\":\"x\\n\"}\n");
        text.extend_from_slice(rest.as_bytes());
        fs::create_dir_all(library.recordings_folder()).unwrap();
        fs::write(library.recordings_folder().join(format!("{session}.mw.jsonl")), text).unwrap();
    }

    fn sessions(library: &Library) -> Vec<Vec<String>> {
        let names = |entry: &Entry| entry.runs.iter().map(|run| run.header.session.clone()).collect();
        library.saved().iter().map(names).collect()
    }

    #[test]
    fn recordings_are_listed_newest_first_with_cheap_facts() {
        let folder = tempfile::tempdir().unwrap();
        let library = Library::at(folder.path().to_owned());
        assert!(library.saved().is_empty());
        save(&library, "clean", 1000, 1, END);
        save(&library, "cut", 100_000, 1, "{\"torn");
        save(&library, "live", 200_000, 1, "");
        fs::write(library.recordings_folder().join("x.jsonl"), "no recording").unwrap();
        let live = File::open(library.recordings_folder().join("live.mw.jsonl")).unwrap();
        live.lock().unwrap();
        let saved = library.saved();
        let facts: Vec<_> = saved
            .iter()
            .map(|entry| (entry.last().header.session.as_str(), entry.events(), entry.last().state))
            .collect();
        assert_eq!(
            facts,
            [
                ("live", Some(1), State::Live),
                ("cut", Some(1), State::Cut),
                ("clean", Some(2), State::Clean { is_complete: Some(true) })
            ]
        );
        assert_eq!(saved[2].last().last_at, Some(Mono(40_000_000)));
        assert_eq!(saved[1].size_bytes(), fs::metadata(saved[1].paths()[0]).unwrap().len());
    }

    #[test]
    fn a_probe_run_and_the_run_after_it_are_one_entry() {
        let folder = tempfile::tempdir().unwrap();
        let library = Library::at(folder.path().to_owned());
        save(&library, "probe", 1000, 7, END);
        save(&library, "real", 1800, 7, END);
        save(&library, "other client", 1900, 8, END);
        save(&library, "later", 30_000, 7, END);
        assert_eq!(sessions(&library), [vec!["later"], vec!["other client"], vec!["probe", "real"]]);
        let joined = &library.saved()[2];
        let mut recording = joined.open().unwrap();
        let read: Vec<_> = std::iter::from_fn(|| recording.next().unwrap()).collect();
        let axis: Vec<_> = read.iter().map(|(event, _)| (event.n, event.at.0)).collect();
        assert_eq!(axis, [(1, 1_500_000), (2, 40_000_000), (3, 801_500_000), (4, 840_000_000)]);
        assert!(read.iter().all(|(event, place)| recording.read_at(*place).unwrap() == *event));
    }

    #[test]
    fn two_servers_of_one_command_at_the_same_time_stay_apart() {
        let folder = tempfile::tempdir().unwrap();
        let library = Library::at(folder.path().to_owned());
        save(&library, "a", 1000, 7, &END.replace("40", "60000"));
        save(&library, "b", 1100, 7, END);
        assert_eq!(sessions(&library), [["b"], ["a"]]);
    }

    #[test]
    fn parts_of_a_session_are_one_run() {
        let folder = tempfile::tempdir().unwrap();
        let library = Library::at(folder.path().to_owned());
        save(&library, "s", 1000, 7, "");
        let first = library.recordings_folder().join("s.mw.jsonl");
        let text = fs::read_to_string(&first).unwrap().replacen("}\n", ",\"part\":2}\n", 1) + END;
        fs::write(library.recordings_folder().join("s.part2.mw.jsonl"), text).unwrap();
        let saved = library.saved();
        assert_eq!(saved.len(), 1);
        assert_eq!(saved[0].paths()[0], first);
        assert_eq!((saved[0].paths().len(), saved[0].events()), (2, Some(2)));
    }
}

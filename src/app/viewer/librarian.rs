//! The librarian: looks for running taps and saved recordings, and opens the one that is asked for.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, SystemTime};

use super::reader::Request;
use super::source::{Source, moment, transport_of_run, what_of_header, what_of_run};
use crate::trace::TraceError;
use crate::trace::library::{Entry as SavedEntry, Library, Run, State};
use crate::ui::msg::{Entry, Feed, Msg};

/// Time between two looks at the running taps, which costs a folder with a few small files.
const LOOK: Duration = Duration::from_secs(1);

/// Looks after which the saved recordings are read again though their folder did not change.
const LOOKS_FOR_SAVED: u32 = 30;

/// The librarian's thread; ends when nobody can ask any more. With `given`, only these recordings
/// are on the shelf.
pub(super) fn run(
    library: Option<&Library>,
    given: Vec<SavedEntry>,
    keys: &Receiver<usize>,
    screen: &tokio::sync::mpsc::Sender<Msg>,
    reader: &Sender<Request>,
) {
    let mut shelf = Shelf { saved: given, ..Shelf::default() };
    loop {
        if let Some(entries) = shelf.look(library)
            && screen.blocking_send(Msg::Library(entries)).is_err()
        {
            return;
        }
        match keys.recv_timeout(LOOK) {
            Ok(key) => {
                let told = match shelf.open(key) {
                    Ok(Some(source)) => reader.send(Request::Open(Box::new(source))).is_ok(),
                    Ok(None) => screen.blocking_send(Msg::Notice(NOT_RECORDED.to_owned())).is_ok(),
                    Err(error) => screen.blocking_send(Msg::Trouble(error.to_string())).is_ok(),
                };
                if !told {
                    return;
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

const NOT_RECORDED: &str = "this tap records nothing (--record off), so there is nothing to show";

/// Everything that was found, with keys that stay.
#[derive(Default)]
struct Shelf {
    running: Vec<Run>,
    saved: Vec<SavedEntry>,
    folder_changed: Option<SystemTime>,
    looks: u32,
    keys: HashMap<String, usize>,
    told: Option<Vec<Entry>>,
}

impl Shelf {
    /// Looks again. Returns the list if it is another one than before.
    fn look(&mut self, library: Option<&Library>) -> Option<Vec<Entry>> {
        if let Some(library) = library {
            let running = library.running();
            let changed = std::fs::metadata(library.recordings_folder()).and_then(|at| at.modified()).ok();
            let is_stale = running != self.running
                || changed != self.folder_changed
                || self.looks.is_multiple_of(LOOKS_FOR_SAVED);
            self.looks = self.looks.wrapping_add(1);
            (self.running, self.folder_changed) = (running, changed);
            if is_stale {
                self.saved = library.saved();
            }
        }
        let entries = self.entries();
        if self.told.as_ref() == Some(&entries) {
            return None;
        }
        self.told = Some(entries.clone());
        Some(entries)
    }

    fn entries(&mut self) -> Vec<Entry> {
        let mut entries: Vec<Entry> = Vec::new();
        for run in &self.running {
            entries.push(Entry {
                key: key_of(&mut self.keys, &run.session),
                feed: Feed::Live,
                started: moment(run.started),
                transport: transport_of_run(run),
                what: what_of_run(run),
                label: run.label.clone(),
                events: None,
                size_bytes: run.recording.as_deref().map_or(0, size),
                runs: 1,
            });
        }
        for saved in &self.saved {
            let last = saved.last();
            // Where a tap that is listed itself still writes it.
            if self.running.iter().any(|run| run.session == last.header.session) {
                continue;
            }
            entries.push(Entry {
                key: key_of(&mut self.keys, &name_of(saved)),
                feed: match last.state {
                    State::Live => Feed::Live,
                    State::Clean { .. } | State::Unknown => Feed::Whole,
                    State::Cut => Feed::Cut,
                },
                started: saved.started().map(moment).unwrap_or_default(),
                transport: last.header.transport,
                what: what_of_header(&last.header),
                label: last.header.label.clone(),
                events: saved.events(),
                size_bytes: saved.size_bytes(),
                runs: saved.runs.len(),
            });
        }
        entries
    }

    /// Opens an entry; `Ok(None)`: nothing of it is recorded.
    fn open(&self, key: usize) -> Result<Option<Source>, TraceError> {
        let is_it = |name: &str| self.keys.get(name) == Some(&key);
        if let Some(run) = self.running.iter().find(|run| is_it(&run.session)) {
            return Source::running(run);
        }
        match self.saved.iter().find(|saved| is_it(&name_of(saved))) {
            Some(saved) => {
                let paths: Vec<PathBuf> = saved.paths().into_iter().map(Path::to_owned).collect();
                Source::open(&paths).map(Some)
            }
            None => Ok(None),
        }
    }
}

/// The name of a saved entry: its session, or its file where it has none.
fn name_of(saved: &SavedEntry) -> String {
    let last = saved.last();
    match (last.header.session.as_str(), last.paths.first()) {
        ("", Some(path)) => path.to_string_lossy().into_owned(),
        (session, _) => session.to_owned(),
    }
}

fn key_of(keys: &mut HashMap<String, usize>, name: &str) -> usize {
    let next = keys.len();
    *keys.entry(name.to_owned()).or_insert(next)
}

fn size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |about| about.len())
}

//! Run files: how a live tap is found. A tap holds a lock on its file for as long as it lives, so
//! a file left behind by a killed one is recognised and removed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::Library;
use crate::trace::{TraceError, make_folder};

/// What a live tap says about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Name of the session, as in the header of its recording.
    pub session: String,
    /// The tap's process.
    pub pid: u32,
    /// `stdio` or `http`.
    pub transport: String,
    /// When the session began.
    pub started: DateTime<Utc>,
    /// A name given by the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// stdio: the server's command and its arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// HTTP: where the requests go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<String>,
    /// HTTP: where the tap listens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen: Option<String>,
    /// Its recording, the first part; `None`: nothing is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recording: Option<PathBuf>,
    /// Where it takes orders; `None`: nowhere, or it is older than orders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<PathBuf>,
}

/// The announcement of a live tap; it ends when this is dropped.
#[derive(Debug)]
pub struct RunFile {
    path: PathBuf,
    /// Holds the lock.
    _file: File,
}

impl Library {
    /// Announces a tap to all viewers of this user.
    ///
    /// # Errors
    /// When the run folder cannot be written; the tap can go on without being found.
    pub fn announce(&self, run: &Run) -> Result<RunFile, TraceError> {
        let folder = self.run_folder();
        make_folder(&folder).map_err(|source| TraceError::Folder { path: folder.clone(), source })?;
        let path = folder.join(format!("{}.json", super::plain(&run.session)));
        let announce = |source| TraceError::Announce { path: path.clone(), source };
        let file = write_locked(&path, run).map_err(announce)?;
        Ok(RunFile { path, _file: file })
    }

    /// The taps that are alive now, newest first. Files of taps that are gone are removed.
    #[must_use]
    pub fn running(&self) -> Vec<Run> {
        let is_run_file = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "json");
        let files = self.files("run").into_iter().filter(is_run_file);
        let mut runs: Vec<Run> = files.filter_map(|path| read_live(&path)).collect();
        runs.sort_by_key(|run| std::cmp::Reverse(run.started));
        runs
    }
}

impl Drop for RunFile {
    fn drop(&mut self) {
        // If it stays, the lock that ends now tells that it is stale.
        let _ = fs::remove_file(&self.path);
    }
}

/// Writes the file under another name first, so that under its own it is always locked and whole.
fn write_locked(path: &Path, run: &Run) -> io::Result<File> {
    let draft = path.with_extension("draft");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    file.try_lock()?;
    file.write_all(&serde_json::to_vec(run)?)?;
    fs::rename(&draft, path)?;
    Ok(file)
}

/// Reads the file of a live tap; removes that of one that is gone.
fn read_live(path: &Path) -> Option<Run> {
    let file = File::open(path).ok()?;
    if file.try_lock_shared().is_ok() {
        // Nobody else can have put a live file here under the same session name.
        let _ = fs::remove_file(path);
        return None;
    }
    serde_json::from_reader(io::BufReader::new(file)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(session: &str, started_ms: i64) -> Run {
        Run {
            session: session.to_owned(),
            pid: 1,
            transport: "stdio".to_owned(),
            started: DateTime::from_timestamp_millis(started_ms).unwrap(),
            label: None,
            command: vec!["server".to_owned()],
            upstream: None,
            listen: None,
            recording: Some("/r/a.mw.jsonl".into()),
            control: None,
        }
    }

    #[test]
    fn live_taps_are_listed_newest_first_and_gone_ones_are_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let library = Library::at(folder.path().join("new"));
        assert!(library.running().is_empty());
        let (old, new) = (run("1-a", 1), run("2-b", 2));
        let old_file = library.announce(&old).unwrap();
        let new_file = library.announce(&new).unwrap();
        assert_eq!(library.running(), [new.clone(), old]);
        drop(old_file);
        assert_eq!(library.running(), std::slice::from_ref(&new));
        // A killed tap leaves its file behind, without the lock.
        let left_behind = library.run_folder().join("3-c.json");
        fs::write(&left_behind, serde_json::to_vec(&run("3-c", 3)).unwrap()).unwrap();
        fs::write(library.run_folder().join("note.txt"), "not ours").unwrap();
        assert_eq!(library.running(), [new]);
        assert!(!left_behind.exists() && library.run_folder().join("note.txt").exists());
        drop(new_file);
        assert!(library.running().is_empty());
    }
}

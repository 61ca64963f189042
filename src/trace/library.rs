//! Where recordings and the run files of live taps are kept, and what is there.
//!
//! Everything is below one state folder: `recordings/` and `run/`. ours: run files are not in the
//! system's runtime folder, because a client starts its servers with a reduced environment, and a
//! tap that does not see the variable for that folder would hide from the viewer. For the same
//! reason a viewer also looks at the place that holds without any variable set.

mod run;
mod saved;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use etcetera::BaseStrategy as _;
use etcetera::base_strategy::Xdg;

use super::TraceError;
use crate::event::Transport;

pub use self::run::{Run, RunFile};
pub use self::saved::{Entry, SavedRun, State, entries_of};

/// Overrides the state folder.
pub const STATE_VARIABLE: &str = "MIDWIRE_STATE_DIR";

/// The folders of one user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Library {
    /// Where new files go.
    state: PathBuf,
    /// Where else to look.
    others: Vec<PathBuf>,
}

impl Library {
    /// The user's library: `$MIDWIRE_STATE_DIR`, else `midwire` in `$XDG_STATE_HOME`, else in
    /// `~/.local/state`.
    ///
    /// # Errors
    /// When no home folder is known.
    pub fn of_user() -> Result<Library, TraceError> {
        Library::from_variables(|name| std::env::var_os(name).filter(|value| !value.is_empty()))
    }

    fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Result<Library, TraceError> {
        if let Some(state) = variable(STATE_VARIABLE) {
            return Ok(Library::at(PathBuf::from(state)));
        }
        let xdg = Xdg::new().map_err(|_| TraceError::NoHome)?;
        let usual = xdg.home_dir().join(".local/state/midwire");
        let state = xdg.state_dir().map_or_else(|| usual.clone(), |state| state.join("midwire"));
        let others = if state == usual { Vec::new() } else { vec![usual] };
        Ok(Library { state, others })
    }

    /// The library in a given folder, which need not exist yet.
    #[must_use]
    pub fn at(state: PathBuf) -> Library {
        Library { state, others: Vec::new() }
    }

    /// The state folder.
    #[must_use]
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// The folder of run files and sockets of live taps.
    #[must_use]
    pub fn run_folder(&self) -> PathBuf {
        self.state.join("run")
    }

    /// The folder of recordings.
    #[must_use]
    pub fn recordings_folder(&self) -> PathBuf {
        self.state.join("recordings")
    }

    /// A file name for a new recording that sorts by time and says what is in it.
    #[must_use]
    pub fn new_recording(
        &self,
        started: DateTime<Utc>,
        transport: Transport,
        label: Option<&str>,
    ) -> PathBuf {
        let started = started.format("%Y-%m-%dT%H-%M-%S%.3fZ");
        let transport = transport.as_str();
        let label = label.map(plain).filter(|label| !label.is_empty());
        let label = label.map_or_else(String::new, |label| format!("-{label}"));
        let pid = std::process::id();
        self.recordings_folder().join(format!("{started}-{transport}{label}-{pid}.mw.jsonl"))
    }

    /// Files in one of the library's folders, wherever it is looked for.
    fn files(&self, folder: &str) -> Vec<PathBuf> {
        let states = std::iter::once(&self.state).chain(&self.others);
        let entries = states.filter_map(|state| fs::read_dir(state.join(folder)).ok()).flatten();
        entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect()
    }
}

/// A label as part of a file name: letters, digits and dashes, not long.
fn plain(label: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    label.chars().take(40).map(plain).collect::<String>().trim_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_recording_is_named_after_time_transport_and_label() {
        let library = Library::at("/state".into());
        let started = DateTime::from_timestamp_millis(1_796_083_200_123).unwrap();
        let pid = std::process::id();
        for (label, name) in [(None, ""), (Some("my/../server ü"), "-my----server"), (Some("/"), "")] {
            let path = library.new_recording(started, Transport::Stdio, label);
            let expected = format!("/state/recordings/2026-12-01T00-00-00.123Z-stdio{name}-{pid}.mw.jsonl");
            assert_eq!(path, Path::new(&expected));
        }
    }

    #[test]
    fn the_variable_wins_and_a_reduced_environment_is_looked_at_too() {
        let own = Library::from_variables(|name| (name == STATE_VARIABLE).then(|| "/mine".into())).unwrap();
        assert_eq!((own.run_folder(), own.others.len()), ("/mine/run".into(), 0));
        let usual = Library::from_variables(|_| None).unwrap();
        let all: Vec<_> = std::iter::once(&usual.state).chain(&usual.others).collect();
        assert!(all.iter().any(|state| state.ends_with(".local/state/midwire")));
    }
}

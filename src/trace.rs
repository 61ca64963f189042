//! The recording: its format, writing, reading, following a growing file, and the library of
//! recordings and running taps.
//!
//! A recording is JSON Lines in causal order (`docs/trace-format.md`). [`Recorder`] drains the
//! tape of a tap into a file; [`Recording`] reads one, and [`Follower`] one that still grows.
//! Nothing in this room knows what MCP says, and nothing in it may hold up the path: the recorder
//! has a thread of its own, and what it cannot keep is counted in a `gap`.

mod decode;
mod encode;
mod escape;
mod faults;
mod follower;
mod header;
mod inflate;
pub mod library;
mod recorder;
mod recording;
#[cfg(test)]
mod tests;
mod text;
mod words;

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

pub use encode::encode_event;
pub use faults::{BadLine, Faults};
pub use follower::{Follower, POLL, Writer};
pub use header::{FORMAT_VERSION, Header};
pub use recorder::{Limits, Recorder, RecorderHandle, RecorderStatus};
pub use recording::{Ending, Place, Recording};

/// Longest line of a recording that is read; a longer one is passed over and counted. ours: a
/// read of a pipe or a frame of a body is far smaller, so only foreign files can hit it.
pub const LINE_LIMIT_BYTES: usize = 256 << 20;

/// What went wrong with a recording as a whole.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// A recording cannot be opened.
    #[error("cannot open the recording {}: {source}; `midwire ls` lists what was recorded", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A recording was opened but cannot be read.
    #[error("cannot read the recording {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The first line is not JSON.
    #[error("{} is not a recording: {reason}; expected JSON lines, see docs/trace-format.md", path.display())]
    NotARecording {
        /// The file.
        path: PathBuf,
        /// What is wrong with its first line.
        reason: String,
    },
    /// The recording was written by a later version of the format.
    #[error("{} has format version {version}, and this midwire reads up to {FORMAT_VERSION}; use a newer one", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// The version it claims.
        version: u64,
    },
    /// The folder of a new recording cannot be made.
    #[error("cannot make the folder {}: {source}; pass --record with another place, or --record off", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A new recording cannot be written.
    #[error("cannot write the recording {}: {source}; pass --record with another place, or --record off", path.display())]
    Create {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The recorder's thread cannot be started.
    #[error("cannot start the recorder: {source}; fewer processes or a higher limit are needed")]
    Thread {
        /// Why.
        source: io::Error,
    },
    /// A live tap cannot be announced.
    #[error("cannot write the run file {}: {source}; the viewer will not list this tap", path.display())]
    Announce {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// There is no place for recordings.
    #[error("no home folder is known; set HOME, or MIDWIRE_STATE_DIR to a folder for recordings")]
    NoHome,
    /// No event stands at this place.
    #[error("no event at byte {offset} of {}: the file was changed since it was read", path.display())]
    NoEvent {
        /// The file.
        path: PathBuf,
        /// Where the event was expected.
        offset: u64,
    },
}

/// Creates a folder and its parents, for its owner only.
fn make_folder(folder: &Path) -> io::Result<()> {
    if folder.as_os_str().is_empty() || folder.is_dir() {
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

//! What a recorder tells about itself while it works.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// How a recording is going, so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecorderStatus {
    /// The file that is being written; `None`: nothing is kept. It changes when the recording
    /// goes on in another part.
    pub path: Option<PathBuf>,
    /// Events numbered.
    pub events: u64,
    /// Bytes in the files, all parts together.
    pub written_bytes: u64,
    /// Events that are missing, or lack their body.
    pub lost_events: u64,
    /// Bytes of bodies that are missing.
    pub lost_bytes: u64,
    /// Bytes that went through the spill file because writing fell behind.
    pub spilled_bytes: u64,
    /// Writing fails now; it is tried again.
    pub is_failing: bool,
    /// The disk is nearly full: bodies are not kept now.
    pub is_disk_low: bool,
    /// The last thing that went wrong, with its file.
    pub last_error: Option<String>,
    /// The recording ended in order.
    pub is_finished: bool,
}

/// The status, shared between the recorder's thread and whoever asks.
#[derive(Debug, Clone, Default)]
pub(super) struct Shared(Arc<Mutex<RecorderStatus>>);

impl Shared {
    pub(super) fn get(&self) -> RecorderStatus {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut RecorderStatus)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

//! How full the disk of a recording is.

use std::fs::File;

use super::Limits;

/// Watches the free space behind a file.
pub(super) struct Disk {
    keep_free_bytes: u64,
    is_low: bool,
}

impl Disk {
    pub(super) fn new(limits: &Limits) -> Disk {
        Disk { keep_free_bytes: limits.keep_free_bytes, is_low: false }
    }

    /// Looks again. Low means less than the limit, or than a twentieth of a small disk.
    pub(super) fn look(&mut self, file: &File) {
        let Ok(space) = rustix::fs::fstatvfs(file) else { return };
        let free = space.f_bavail.saturating_mul(space.f_frsize);
        let whole = space.f_blocks.saturating_mul(space.f_frsize);
        self.is_low = free < self.keep_free_bytes.min(whole / 20);
    }

    pub(super) fn is_low(&self) -> bool {
        self.is_low
    }
}

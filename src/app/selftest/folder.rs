//! A folder of its own among the temporary files, which is gone with all that is in it when it is
//! dropped.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use crate::time::boot_ns;

/// Names that are tried. ours: another process can have taken one in the same nanosecond only.
const TRIES: u32 = 16;

#[derive(Debug)]
pub(super) struct Folder(PathBuf);

impl Folder {
    /// Makes one that only this user can enter, never one that exists: somebody else may have made it.
    pub(super) fn new() -> io::Result<Folder> {
        let mut made = Err(io::ErrorKind::AlreadyExists.into());
        for nth in 0..TRIES {
            // Short: sockets stand below it, and their paths have a limit of about 100 bytes.
            let name = format!("midwire-{}-{:x}-{nth}", std::process::id(), boot_ns());
            let path = std::env::temp_dir().join(name);
            made = DirBuilder::new().mode(0o700).create(&path).map(|()| Folder(path));
            match &made {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                _ => break,
            }
        }
        made
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            tracing::warn!(%error, folder = %self.0.display(), "a temporary folder stays behind");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn it_is_private_and_goes_with_all_that_is_in_it() {
        let (one, other) = (Folder::new().unwrap(), Folder::new().unwrap());
        assert_ne!(one.path(), other.path());
        assert_eq!(fs::metadata(one.path()).unwrap().permissions().mode() & 0o777, 0o700);
        fs::create_dir(one.path().join("a")).unwrap();
        fs::write(one.path().join("a/b"), "c").unwrap();
        let was = one.path().to_owned();
        drop(one);
        assert!(!was.exists() && other.path().exists());
    }
}

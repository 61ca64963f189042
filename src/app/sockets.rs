//! Local sockets for this user alone: where a server tells a tap about its work, and where it takes
//! orders.

use std::convert::Infallible;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use thiserror::Error;

use crate::trace::library::Library;

/// Longest path of a socket that every Unix takes, with its final zero.
const PATH_LIMIT_BYTES: usize = 104;

/// What the draft of a socket adds to its path.
const DRAFT: &str = ".new";

/// What the mode of a folder lets others do.
const OTHERS: u32 = 0o077;

/// Where a socket is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SocketAt {
    /// In the run folder, under a name of its own.
    Default,
    /// At this path.
    Path(PathBuf),
}

impl FromStr for SocketAt {
    type Err = Infallible;

    /// Reads what stands after an option for a socket; nothing: the default.
    fn from_str(text: &str) -> Result<SocketAt, Infallible> {
        Ok(if text.is_empty() { SocketAt::Default } else { SocketAt::Path(PathBuf::from(text)) })
    }
}

/// Why a socket cannot be had.
#[derive(Debug, Error)]
pub enum SocketError {
    /// Its path is longer than the system takes.
    #[error("the path {} is too long for a socket; give one of at most {} bytes", path.display(), PATH_LIMIT_BYTES - 1 - DRAFT.len() - 2)]
    TooLong {
        /// The path.
        path: PathBuf,
    },
    /// Somebody listens there, or something else has the name.
    #[error("{} is in use; give another path", path.display())]
    InUse {
        /// The path.
        path: PathBuf,
    },
    /// The system refuses.
    #[error("cannot listen at {}: {source}; give a path in a folder of yours", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// A socket that only this user can open. Its name goes with it.
#[derive(Debug)]
pub struct OwnerSocket {
    path: PathBuf,
    listener: Option<UnixListener>,
    /// A folder that was made for it alone.
    folder: Option<PathBuf>,
}

impl OwnerSocket {
    /// Listens where it is wanted; `name`: its own name in the run folder.
    ///
    /// # Errors
    /// When that cannot be had.
    pub fn bind_at(at: &SocketAt, name: &str) -> Result<OwnerSocket, SocketError> {
        match at {
            SocketAt::Default => OwnerSocket::bind_named(name),
            SocketAt::Path(path) => OwnerSocket::bind(path),
        }
    }

    /// Listens at `path`. What a listener that is gone has left there is replaced.
    ///
    /// # Errors
    /// When the path is taken, too long, or cannot be written.
    pub fn bind(path: &Path) -> Result<OwnerSocket, SocketError> {
        let draft_len = path.as_os_str().len() + DRAFT.len() + 2;
        if draft_len >= PATH_LIMIT_BYTES {
            return Err(SocketError::TooLong { path: path.to_owned() });
        }
        if !is_free(path) {
            return Err(SocketError::InUse { path: path.to_owned() });
        }
        let listener =
            bind_closed(path).map_err(|source| SocketError::Io { path: path.to_owned(), source })?;
        // A child that a person starts somewhere else must find it.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        Ok(OwnerSocket { path, listener: Some(listener), folder: None })
    }

    /// Listens in the run folder of the user, under this name; where that folder's path is too long,
    /// in a folder of its own among the temporary files.
    ///
    /// # Errors
    /// When neither can be had.
    pub fn bind_named(name: &str) -> Result<OwnerSocket, SocketError> {
        let failed = |path: &Path, source| SocketError::Io { path: path.to_owned(), source };
        let usual = Library::of_user().map(|library| library.run_folder());
        let usual = usual.unwrap_or_else(|_| std::env::temp_dir());
        let folders = || DirBuilder::new().recursive(true).mode(0o700).create(&usual);
        match folders().map_err(|source| failed(&usual, source)).and_then(|()| {
            let is_private = fs::metadata(&usual).is_ok_and(|found| found.permissions().mode() & OTHERS == 0);
            if is_private { OwnerSocket::bind(&usual.join(name)) } else { OwnerSocket::bind_aside(name) }
        }) {
            Err(SocketError::TooLong { .. }) => OwnerSocket::bind_aside(name),
            other => other,
        }
    }

    /// Listens in a new folder among the temporary files, which nobody else can enter.
    fn bind_aside(name: &str) -> Result<OwnerSocket, SocketError> {
        let folder = std::env::temp_dir().join(format!("midwire-{name}"));
        // Never one that exists: somebody else may have made it.
        let made = DirBuilder::new().mode(0o700).create(&folder);
        made.map_err(|source| SocketError::Io { path: folder.clone(), source })?;
        let bound = OwnerSocket::bind(&folder.join("s"));
        match bound {
            Ok(mut socket) => {
                socket.folder = Some(folder);
                Ok(socket)
            }
            Err(error) => {
                let _ = fs::remove_dir(&folder);
                Err(error)
            }
        }
    }

    /// Where it is: an absolute path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The listening end; once.
    pub fn take_listener(&mut self) -> Option<UnixListener> {
        self.listener.take()
    }
}

impl Drop for OwnerSocket {
    fn drop(&mut self) {
        // What cannot be removed is replaced by the next one that wants the name.
        let _ = fs::remove_file(&self.path);
        if let Some(folder) = &self.folder {
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Whether nothing is there, or only what a listener that is gone has left.
fn is_free(path: &Path) -> bool {
    match fs::symlink_metadata(path) {
        Err(error) => error.kind() == io::ErrorKind::NotFound,
        Ok(found) if found.file_type().is_socket() => {
            UnixStream::connect(path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
        }
        Ok(_) => false,
    }
}

/// Binds inside a closed folder first, so that there is no moment at which others can connect.
fn bind_closed(path: &Path) -> io::Result<UnixListener> {
    let mut draft = path.as_os_str().to_owned();
    draft.push(DRAFT);
    let draft = PathBuf::from(draft);
    let _ = fs::remove_file(draft.join("s"));
    let _ = fs::remove_dir(&draft);
    DirBuilder::new().mode(0o700).create(&draft)?;
    let bound = UnixListener::bind(draft.join("s")).and_then(|listener| {
        fs::set_permissions(draft.join("s"), Permissions::from_mode(0o600))?;
        fs::rename(draft.join("s"), path)?;
        Ok(listener)
    });
    if bound.is_err() {
        let _ = fs::remove_file(draft.join("s"));
    }
    let _ = fs::remove_dir(&draft);
    bound
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_the_owners_alone_and_its_name_goes_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let socket = OwnerSocket::bind(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        UnixStream::connect(socket.path()).unwrap();
        assert!(matches!(OwnerSocket::bind(&path), Err(SocketError::InUse { .. })));
        drop(socket);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_a_dead_listener_left_is_replaced_and_nothing_else_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        drop(UnixListener::bind(&path).unwrap());
        drop(OwnerSocket::bind(&path).unwrap());
        fs::write(&path, "mine").unwrap();
        assert!(matches!(OwnerSocket::bind(&path), Err(SocketError::InUse { .. })));
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
        let long = folder.path().join("x".repeat(PATH_LIMIT_BYTES));
        assert!(matches!(OwnerSocket::bind(&long), Err(SocketError::TooLong { .. })));
        let nowhere = folder.path().join("no/s");
        assert!(matches!(OwnerSocket::bind(&nowhere), Err(SocketError::Io { .. })));
    }

    #[test]
    fn aside_it_has_a_folder_of_its_own() {
        let socket = OwnerSocket::bind_aside(&format!("test-{}", std::process::id())).unwrap();
        let folder = socket.path().parent().unwrap().to_owned();
        assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
        UnixStream::connect(socket.path()).unwrap();
        drop(socket);
        assert!(!folder.exists());
    }
}

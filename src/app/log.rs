//! The log: what midwire has to say of itself while its standard streams belong to others.
//!
//! One file in the state folder, `midwire.log`, opened at the first line, so that a start costs
//! nothing and a healthy session leaves nothing.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use tracing::Level;

use crate::trace::library::Library;

/// A log of this size is begun anew. ours: enough for thousands of lines, too little to care about.
const LIMIT_BYTES: u64 = 1 << 20;

/// Sends what is logged to the user's log file from now on. Without a state folder nothing is kept.
pub fn start() {
    let Ok(library) = Library::of_user() else { return };
    let path = library.state().join("midwire.log");
    let log = Mutex::new(Log { path, file: None });
    let subscriber = tracing_subscriber::fmt().with_max_level(Level::INFO).with_ansi(false).with_writer(log);
    // A second start, as in tests, keeps the first log.
    let _ = tracing::subscriber::set_global_default(subscriber.finish());
}

struct Log {
    path: PathBuf,
    file: Option<File>,
}

impl Write for Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut file = match self.file.take() {
            Some(file) => file,
            None => open(&self.path)?,
        };
        let written = file.write(line);
        self.file = Some(file);
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Appends to the log, or begins it anew when it has grown too long.
fn open(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let is_long = std::fs::metadata(path).is_ok_and(|facts| facts.len() > LIMIT_BYTES);
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
    if is_long {
        file.set_len(0)?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_private_begins_with_its_first_line_and_does_not_grow_for_ever() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state").join("midwire.log");
        let mut log = Log { path: path.clone(), file: None };
        assert!(!path.exists());
        log.write_all(b"one\n").unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);

        std::fs::write(&path, vec![b'x'; usize::try_from(LIMIT_BYTES).unwrap() + 1]).unwrap();
        Log { path: path.clone(), file: None }.write_all(b"two\n").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"two\n");
    }
}

//! The file behind a recorder: created privately, written in large pieces, compressed where its
//! name says so. A failed write loses nothing that was given to it: the rest is carried and tried
//! again.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::OFlags;
use zstd::stream::write::Encoder;

use crate::trace::{TraceError, make_folder};

/// Compression level. ours: the fastest; what is slow is the wire, not the disk.
const ZSTD_LEVEL: i32 = 1;

/// How often a lock that somebody is just asking for is tried again, a millisecond apart.
const LOCK_TRIES: u32 = 5;

/// An open recording file.
pub(super) struct Sink {
    path: PathBuf,
    file: File,
    compressor: Option<Encoder<'static, Vec<u8>>>,
    /// Bytes that a failed write left over; they come before anything else.
    carry: Vec<u8>,
    written_bytes: u64,
}

impl Sink {
    /// Creates the file for `path`, with its folders. A recording is never written over: if the
    /// name is taken, the next free one of `name-2`, `name-3` … is used.
    pub(super) fn create(path: &Path) -> Result<Sink, TraceError> {
        if let Some(folder) = path.parent() {
            make_folder(folder).map_err(|source| TraceError::Folder { path: folder.to_owned(), source })?;
        }
        let create = |source| TraceError::Create { path: path.to_owned(), source };
        let (path, file) = create_free(path).map_err(create)?;
        // The lock says that this recording has a living writer. A follower may be asking for it
        // at this very moment; where locks are not supported, readers cannot know, and nothing
        // else depends on it.
        for _ in 0..LOCK_TRIES {
            if !matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let is_compressed = path.extension().is_some_and(|ending| ending == "zst");
        let compressor =
            is_compressed.then(|| Encoder::new(Vec::new(), ZSTD_LEVEL)).transpose().map_err(create)?;
        Ok(Sink { path, file, compressor, carry: Vec::new(), written_bytes: 0 })
    }

    /// The file in which a long recording goes on.
    pub(super) fn next_part(&self, number: u32) -> Result<Sink, TraceError> {
        Sink::create(&part_path(&self.path, number))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Bytes in the file.
    pub(super) fn written_bytes(&self) -> u64 {
        self.written_bytes
    }

    /// A write failed, and its rest still waits.
    pub(super) fn is_failing(&self) -> bool {
        !self.carry.is_empty()
    }

    /// Writes whole lines so that a reader finds them. After an error they are carried: call
    /// [`Sink::retry`] until it succeeds, and give nothing else meanwhile.
    pub(super) fn write(&mut self, text: &[u8]) -> io::Result<()> {
        let Some(compressor) = &mut self.compressor else { return self.put(text) };
        compressor.write_all(text)?;
        compressor.flush()?;
        let packed = std::mem::take(compressor.get_mut());
        self.put(&packed)
    }

    /// Tries again to write what was left over.
    pub(super) fn retry(&mut self) -> io::Result<()> {
        let carry = std::mem::take(&mut self.carry);
        self.put(&carry)
    }

    /// Ends the file; nothing may be written after.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        if self.is_failing() {
            self.retry()?;
        }
        if let Some(compressor) = self.compressor.take() {
            let packed = compressor.finish()?;
            self.put(&packed)?;
        }
        Ok(())
    }

    fn put(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.file.write(bytes) {
                Ok(0) => return self.fail(bytes, io::Error::from(io::ErrorKind::WriteZero)),
                Ok(written) => {
                    self.written_bytes += written as u64;
                    bytes = bytes.get(written..).unwrap_or_default();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return self.fail(bytes, error),
            }
        }
        Ok(())
    }

    fn fail(&mut self, rest: &[u8], error: io::Error) -> io::Result<()> {
        self.carry = rest.to_vec();
        Err(error)
    }
}

fn create_free(path: &Path) -> io::Result<(PathBuf, File)> {
    let mut number = 1;
    loop {
        let candidate = if number == 1 { path.to_owned() } else { numbered(path, number) };
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&candidate) {
            Ok(file) => return Ok((candidate, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                // A device or a pipe is written to as it is; an empty file is nobody's recording.
                let metadata = fs::metadata(&candidate)?;
                if metadata.is_dir() {
                    return Err(io::Error::from(io::ErrorKind::IsADirectory));
                }
                if !metadata.is_file() {
                    // A pipe that nobody reads must not hold up the start, nor a slow one the end.
                    let at_once = OFlags::NONBLOCK.bits().cast_signed();
                    let file = OpenOptions::new().write(true).custom_flags(at_once).open(&candidate)?;
                    return Ok((candidate, file));
                }
                if metadata.len() == 0 {
                    let file = OpenOptions::new().write(true).open(&candidate)?;
                    if file.try_lock().is_ok() {
                        return Ok((candidate, file));
                    }
                }
                number += 1;
            }
            Err(error) => return Err(error),
        }
    }
}

/// `session.mw.jsonl` → `session-2.mw.jsonl`.
fn numbered(path: &Path, number: u32) -> PathBuf {
    let (stem, ending) = split_name(path);
    path.with_file_name(format!("{stem}-{number}{ending}"))
}

/// The file of part `number` (2 or more) of the recording of which `path` is the part before:
/// `session.mw.jsonl` → `session.part2.mw.jsonl` → `session.part3.mw.jsonl`.
pub(in crate::trace) fn part_path(path: &Path, number: u32) -> PathBuf {
    let (stem, ending) = split_name(path);
    let before = format!(".part{}", number.saturating_sub(1));
    let stem = stem.strip_suffix(&before).unwrap_or(&stem);
    path.with_file_name(format!("{stem}.part{number}{ending}"))
}

/// A file name without and with the ending of a recording.
fn split_name(path: &Path) -> (String, String) {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    for ending in [".mw.jsonl.zst", ".mw.jsonl", ".jsonl.zst", ".jsonl", ".zst"] {
        if let Some(stem) = name.strip_suffix(ending).filter(|stem| !stem.is_empty()) {
            return (stem.to_owned(), ending.to_owned());
        }
    }
    (name, String::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_numbered_before_their_ending() {
        for (name, second, part_2, part_3) in [
            ("a.mw.jsonl", "a-2.mw.jsonl", "a.part2.mw.jsonl", "a.part3.mw.jsonl"),
            ("a.b.jsonl.zst", "a.b-2.jsonl.zst", "a.b.part2.jsonl.zst", "a.b.part3.jsonl.zst"),
            (".jsonl", ".jsonl-2", ".jsonl.part2", ".jsonl.part3"),
            ("trace", "trace-2", "trace.part2", "trace.part3"),
        ] {
            let path = Path::new("/r").join(name);
            assert_eq!(numbered(&path, 2), Path::new("/r").join(second));
            let next = part_path(&path, 2);
            assert_eq!(next, Path::new("/r").join(part_2));
            assert_eq!(part_path(&next, 3), Path::new("/r").join(part_3));
        }
    }
}

//! The text of a recording: a file that may be compressed and may still grow, read line by line
//! and found again by position.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::inflate::{Inflate, Spool};
use super::{LINE_LIMIT_BYTES, TraceError};

/// Bytes read at one time.
const CHUNK_BYTES: usize = 256 << 10;

/// A buffer beyond this was made for a very long line.
const LONG_BYTES: usize = 4 << 20;

/// An open recording as text.
#[derive(Debug)]
pub(super) struct Text {
    path: PathBuf,
    /// The plain text: the recording itself, or the copy that `inflate` fills.
    file: File,
    inflate: Option<Inflate>,
    buf: Vec<u8>,
    /// The part of `buf` that was read and not yet given out.
    unread: Range<usize>,
    /// Bytes of `unread` known to hold no line end.
    scanned: usize,
    /// Position in the text of `unread.start`.
    offset: u64,
    /// In the middle of a line over the limit.
    is_skipping: bool,
    limit_bytes: usize,
}

/// What comes next in the text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A whole line with its end; its place in the buffer and its position in the text.
    Line { at: Range<usize>, offset: u64 },
    /// A line over the limit ended; it was passed over.
    TooLong,
    /// No whole line is there (yet): the place in the buffer of what is left.
    Rest { at: Range<usize>, offset: u64 },
}

impl Text {
    /// Opens a recording. What is not a regular file (a pipe) is read to its end first.
    pub(super) fn open(path: &Path) -> Result<Text, TraceError> {
        let open = |source| TraceError::Open { path: path.to_owned(), source };
        let mut file = File::open(path).map_err(open)?;
        let metadata = file.metadata().map_err(open)?;
        if metadata.is_dir() {
            return Err(open(io::Error::from(io::ErrorKind::IsADirectory)));
        }
        if metadata.is_file() {
            return Text::of_file(path, file);
        }
        Text::spool(path, &mut file)
    }

    /// Reads `input` to its end and opens that; `path` names it in messages.
    pub(super) fn spool(path: &Path, input: &mut impl io::Read) -> Result<Text, TraceError> {
        let read = |source| TraceError::Read { path: path.to_owned(), source };
        let mut spool = Spool::create().map_err(read)?;
        spool.fill_from(input).map_err(read)?;
        Text::of_file(path, spool.into_file())
    }

    fn of_file(path: &Path, file: File) -> Result<Text, TraceError> {
        let read = |source| TraceError::Read { path: path.to_owned(), source };
        let (file, inflate) = if Inflate::is_compressed(&file).map_err(read)? {
            let (copy, inflate) = Inflate::start(file).map_err(read)?;
            (copy, Some(inflate))
        } else {
            (file, None)
        };
        Ok(Text {
            path: path.to_owned(),
            file,
            inflate,
            buf: Vec::new(),
            unread: 0..0,
            scanned: 0,
            offset: 0,
            is_skipping: false,
            limit_bytes: LINE_LIMIT_BYTES,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The file itself, for its lock and size: compressed where the recording is.
    pub(super) fn recorded_file(&self) -> &File {
        self.inflate.as_ref().map_or(&self.file, Inflate::compressed)
    }

    /// Position in the text of what comes next.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Why the compressed form ended before its end, if it did.
    pub(super) fn compression_fault(&self) -> Option<String> {
        self.inflate.as_ref().and_then(Inflate::fault)
    }

    /// Bytes of the buffer, as told by a [`Step`].
    pub(super) fn bytes(&self, at: Range<usize>) -> &[u8] {
        self.buf.get(at).unwrap_or_default()
    }

    /// The next whole line, if it is there.
    pub(super) fn next_line(&mut self) -> Result<Step, TraceError> {
        loop {
            let from = self.unread.start + self.scanned;
            let fresh = self.buf.get(from..self.unread.end).unwrap_or_default();
            if let Some(len) = memchr::memchr(b'\n', fresh).map(|idx| self.scanned + idx + 1) {
                let at = self.unread.start..self.unread.start + len;
                let offset = self.offset;
                self.take(len);
                if std::mem::take(&mut self.is_skipping) || len > self.limit_bytes {
                    return Ok(Step::TooLong);
                }
                return Ok(Step::Line { at, offset });
            }
            self.scanned = self.unread.len();
            if self.is_skipping || self.scanned > self.limit_bytes {
                self.is_skipping = true;
                self.take(self.scanned);
            }
            if self.fill()? == 0 {
                let at = if self.is_skipping { 0..0 } else { self.unread.clone() };
                return Ok(Step::Rest { at, offset: self.offset });
            }
        }
    }

    /// Passes over what [`Step::Rest`] told.
    pub(super) fn take_rest(&mut self) {
        self.take(self.unread.len());
    }

    fn take(&mut self, len: usize) {
        self.unread.start += len;
        self.offset += len as u64;
        self.scanned = 0;
    }

    /// Reads more; 0: there is no more now.
    fn fill(&mut self) -> Result<usize, TraceError> {
        if self.unread.start > 0 {
            self.buf.copy_within(self.unread.clone(), 0);
            self.unread = 0..self.unread.len();
        }
        let space_from = self.unread.end;
        if self.buf.len() > LONG_BYTES && space_from < CHUNK_BYTES {
            // Room for a very long line is given back after it.
            self.buf = self.buf.get(..space_from).unwrap_or_default().to_vec();
        }
        if self.buf.len() < space_from + CHUNK_BYTES {
            self.buf.resize((space_from + CHUNK_BYTES).next_power_of_two(), 0);
        }
        let position = self.offset + self.unread.len() as u64;
        let read = |source| TraceError::Read { path: self.path.clone(), source };
        let space = self.buf.get_mut(space_from..).unwrap_or_default();
        let mut got = read_some_at(&self.file, space, position).map_err(read)?;
        if got == 0
            && let Some(inflate) = &mut self.inflate
        {
            inflate.pump().map_err(read)?;
            got = read_some_at(&self.file, space, position).map_err(read)?;
        }
        self.unread.end += got;
        Ok(got)
    }

    /// Whether the file is shorter than what was read of it.
    pub(super) fn is_truncated(&self) -> Result<bool, TraceError> {
        let read = |source| TraceError::Read { path: self.path.clone(), source };
        let read_bytes = self.inflate.as_ref().map_or(self.offset, Inflate::read_bytes);
        Ok(self.recorded_file().metadata().map_err(read)?.len() < read_bytes)
    }

    /// The bytes at a position; they must be there.
    pub(super) fn read_at(&self, offset: u64, len: usize) -> Result<Vec<u8>, TraceError> {
        let mut bytes = vec![0; len.min(LINE_LIMIT_BYTES)];
        let read = |source| TraceError::Read { path: self.path.clone(), source };
        self.file.read_exact_at(&mut bytes, offset).map_err(read)?;
        Ok(bytes)
    }

    /// Goes on at `offset`, forgetting what was read ahead.
    pub(super) fn seek(&mut self, offset: u64) {
        self.unread = 0..0;
        self.scanned = 0;
        self.offset = offset;
        self.is_skipping = false;
    }
}

fn read_some_at(file: &File, space: &mut [u8], position: u64) -> io::Result<usize> {
    loop {
        match file.read_at(space, position) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_over_the_limit_is_passed_over_and_the_next_is_read() {
        let long = "x".repeat(3 * CHUNK_BYTES);
        let input = format!("first\n{long}\n{}\nlast\n{long}", "y".repeat(20));
        let mut text = Text::spool(Path::new("test"), &mut input.as_bytes()).unwrap();
        text.limit_bytes = 10;
        let mut lines = Vec::new();
        loop {
            match text.next_line().unwrap() {
                Step::Line { at, offset } => {
                    let line = String::from_utf8(text.bytes(at).to_vec()).unwrap();
                    assert_eq!(text.read_at(offset, line.len()).unwrap(), line.as_bytes());
                    lines.push(line);
                }
                Step::TooLong => lines.push("too long".to_owned()),
                Step::Rest { at, .. } => {
                    assert_eq!(at, 0..0);
                    break;
                }
            }
        }
        assert_eq!(lines, ["first\n", "too long", "too long", "last\n"]);
        assert_eq!(text.offset(), input.len() as u64);
    }
}

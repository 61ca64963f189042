//! Compressed recordings: their plain text is written to an unnamed temporary file as far as it
//! is needed, so that a position in it can be read again.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::atomic::{AtomicU64, Ordering};

use zstd::stream::raw::{Decoder, Operation as _};

/// First bytes of a zstd frame.
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Most plain text taken from one compressed file. ours: far beyond any session, and small
/// enough that a hostile file cannot fill every disk.
const PLAIN_LIMIT_BYTES: u64 = 64 << 30;

/// Compressed bytes read at one time.
const CHUNK_BYTES: usize = 128 << 10;

/// A temporary file without a name, readable by its owner only; gone when it is closed.
#[derive(Debug)]
pub(super) struct Spool(File);

impl Spool {
    pub(super) fn create() -> io::Result<Spool> {
        Spool::create_in(&std::env::temp_dir())
    }

    pub(super) fn create_in(folder: &std::path::Path) -> io::Result<Spool> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = folder.join(format!(".midwire-spool-{}-{number}", std::process::id()));
            match OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path) {
                Ok(file) => {
                    fs::remove_file(&path)?;
                    return Ok(Spool(file));
                }
                // Left behind by a process that had this id and was killed between the two calls.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    pub(super) fn fill_from(&mut self, input: &mut impl Read) -> io::Result<u64> {
        io::copy(input, &mut self.0)
    }

    pub(super) fn into_file(self) -> File {
        self.0
    }
}

/// A compressed file, being turned into plain text.
pub(super) struct Inflate {
    compressed: File,
    /// Position of the next compressed byte.
    at: u64,
    decoder: Decoder<'static>,
    plain: File,
    plain_len: u64,
    /// Between two frames: the file may end here.
    is_between_frames: bool,
    damage: Option<String>,
}

impl std::fmt::Debug for Inflate {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.debug_struct("Inflate")
            .field("at", &self.at)
            .field("plain_len", &self.plain_len)
            .finish_non_exhaustive()
    }
}

impl Inflate {
    /// Whether a file is compressed, by its first bytes.
    pub(super) fn is_compressed(file: &File) -> io::Result<bool> {
        let mut first = [0; MAGIC.len()];
        match file.read_exact_at(&mut first, 0) {
            Ok(()) => Ok(first == MAGIC),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Begins; the first of the pair is the plain text, empty so far.
    pub(super) fn start(compressed: File) -> io::Result<(File, Inflate)> {
        let plain = Spool::create()?.into_file();
        let inflate = Inflate {
            compressed,
            at: 0,
            decoder: Decoder::new()?,
            plain: plain.try_clone()?,
            plain_len: 0,
            is_between_frames: true,
            damage: None,
        };
        Ok((plain, inflate))
    }

    pub(super) fn compressed(&self) -> &File {
        &self.compressed
    }

    /// Compressed bytes read so far.
    pub(super) fn read_bytes(&self) -> u64 {
        self.at
    }

    /// Why no more will come although the last frame is not finished.
    pub(super) fn fault(&self) -> Option<String> {
        let cut = (!self.is_between_frames).then(|| "the last frame is not finished".to_owned());
        self.damage.clone().or(cut)
    }

    /// Adds plain text until some was added or nothing is left to read.
    pub(super) fn pump(&mut self) -> io::Result<()> {
        let mut input = vec![0; CHUNK_BYTES];
        let mut output = vec![0; CHUNK_BYTES * 4];
        let before = self.plain_len;
        while self.plain_len == before && self.damage.is_none() {
            let got = self.compressed.read_at(&mut input, self.at)?;
            if got == 0 {
                break;
            }
            self.at += got as u64;
            self.inflate(input.get(..got).unwrap_or_default(), &mut output)?;
        }
        Ok(())
    }

    fn inflate(&mut self, mut input: &[u8], output: &mut [u8]) -> io::Result<()> {
        loop {
            let status = match self.decoder.run_on_buffers(input, output) {
                Ok(status) => status,
                Err(error) => {
                    self.damage = Some(format!("damaged: {error}"));
                    return Ok(());
                }
            };
            input = input.get(status.bytes_read..).unwrap_or_default();
            self.is_between_frames = status.remaining == 0;
            self.plain.write_all(output.get(..status.bytes_written).unwrap_or_default())?;
            self.plain_len += status.bytes_written as u64;
            if self.plain_len > PLAIN_LIMIT_BYTES {
                self.damage = Some(format!("more than {} GiB of plain text", PLAIN_LIMIT_BYTES >> 30));
                return Ok(());
            }
            if input.is_empty() && status.bytes_written < output.len() {
                return Ok(());
            }
        }
    }
}

//! Where the recorder gets its batches: from the tape, or, while writing falls behind, from a
//! spill file, so that the tape never fills and no body has to be given up.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::Duration;

use super::spill;
use super::status::Shared;
use crate::event::tape::{Batch, GATHER, TapeReader, Taped, Ticket};
use crate::event::{Dir, Transport, What};
use crate::time::Mono;
use crate::trace::inflate::Spool;

/// Most bytes in the spill file. ours: minutes of the fastest traffic; after that the tape gives
/// up bodies.
const SPILL_LIMIT_BYTES: u64 = 8 << 30;

/// Bytes of one piece of the spill file, which are in memory again when it is read.
const PIECE_BYTES: usize = 1 << 20;

/// The recorder's side of the tape.
pub(super) struct Intake {
    tape: TapeReader,
    /// Where the spill file is made.
    folder: PathBuf,
    file: Option<File>,
    end: u64,
    waiting: VecDeque<Waiting>,
    /// The file could not be written; not tried again until all that waits is through.
    is_broken: bool,
    status: Shared,
}

enum Waiting {
    Spilled { offset: u64, len: usize, is: Spilled },
    Kept(Batch),
}

/// What is known of a spilled piece without reading it.
struct Spilled {
    items: u64,
    taken_at: Mono,
    is_end: bool,
}

impl Intake {
    pub(super) fn new(tape: TapeReader, folder: PathBuf, status: Shared) -> Intake {
        Intake { tape, folder, file: None, end: 0, waiting: VecDeque::new(), is_broken: false, status }
    }

    /// The next batch in order; waits up to `limit` for it.
    pub(super) fn next(&mut self, limit: Duration) -> Batch {
        self.relieve();
        let batch = match self.waiting.pop_front() {
            None => return self.tape.wait_and_gather(limit, GATHER),
            Some(Waiting::Kept(batch)) => batch,
            Some(Waiting::Spilled { offset, len, is }) => {
                self.read_back(offset, len).unwrap_or_else(|| is.lost(len))
            }
        };
        if self.waiting.is_empty() {
            self.reset();
        }
        batch
    }

    /// Moves what is on the tape into the spill file if the tape is filling.
    pub(super) fn relieve(&mut self) {
        if self.is_broken || self.end > SPILL_LIMIT_BYTES || !self.tape.is_filling() {
            return;
        }
        let batch = self.tape.wait(Duration::ZERO);
        for piece in spill::pieces(batch, PIECE_BYTES) {
            let spilled = if self.is_broken { None } else { self.append(&piece) };
            self.waiting.push_back(spilled.unwrap_or(Waiting::Kept(piece)));
        }
    }

    fn append(&mut self, piece: &Batch) -> Option<Waiting> {
        let bytes = spill::encode(piece);
        if let Err(error) = self.append_bytes(&bytes) {
            self.is_broken = true;
            let text = format!("cannot spill beside the recording, in {}: {error}", self.folder.display());
            self.status.change(|status| status.last_error = Some(text));
            return None;
        }
        let is = Spilled { items: piece.items.len() as u64, taken_at: piece.taken_at, is_end: piece.is_end };
        let waiting = Waiting::Spilled { offset: self.end, len: bytes.len(), is };
        self.end += bytes.len() as u64;
        self.status.change(|status| status.spilled_bytes += bytes.len() as u64);
        Some(waiting)
    }

    fn append_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(Spool::create_in(&self.folder)?.into_file()),
        };
        file.write_all_at(bytes, self.end)
    }

    fn read_back(&mut self, offset: u64, len: usize) -> Option<Batch> {
        let mut bytes = vec![0; len];
        self.file.as_ref()?.read_exact_at(&mut bytes, offset).ok()?;
        spill::decode(bytes.into())
    }

    /// Everything is read back: the file may be written from its beginning again.
    fn reset(&mut self) {
        if let Some(file) = &self.file {
            // If the space cannot be given back now, it will be when the file is closed.
            let _ = file.set_len(0);
        }
        self.end = 0;
        self.is_broken = false;
    }
}

impl Spilled {
    /// What stands in for a piece that cannot be read back.
    fn lost(&self, len: usize) -> Batch {
        let why = "the spill file could not be read back".to_owned();
        let gap = What::Gap { lost: self.items, bytes: len as u64, why };
        let items = vec![Taped {
            ticket: Ticket(0),
            at: self.taken_at,
            dir: Dir::Tap,
            transport: Transport::Stdio,
            stream: None,
            conn: None,
            what: gap,
            lost_bytes: 0,
        }];
        Batch { items, handed_on: Vec::new(), taken_at: self.taken_at, is_end: self.is_end }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::event::tape::Tape;
    use crate::event::{Headers, RequestHead};
    use crate::time::Clock;

    const TAPE_BYTES: usize = 64 << 10;

    /// Fills the tape beyond its half several times, relieving it each time; returns what was
    /// pushed, with the tickets of what was handed on.
    fn fill(tape: &Tape, intake: &mut Intake) -> Vec<(Ticket, What)> {
        let mut pushed = Vec::new();
        for round in 0..5_u64 {
            for number in 0..50_u64 {
                let body = Bytes::from(vec![b'x'; 900]);
                let what = match number % 4 {
                    0 => What::Bytes { bytes: body, read: Some(round) },
                    1 => What::SseChunk(body),
                    2 => What::Body(body),
                    _ => What::Request(RequestHead {
                        method: "POST".to_owned(),
                        headers: Headers(vec![("a".to_owned(), "b".to_owned())]),
                        body: Some(body),
                        ..RequestHead::default()
                    }),
                };
                let ticket = tape.push_http(Dir::S2c, Some(number), None, what.clone());
                tape.handed_on(ticket);
                pushed.push((ticket, what));
            }
            intake.relieve();
        }
        pushed
    }

    fn intake(folder: PathBuf) -> (Tape, Intake, Shared) {
        let (tape, reader) = Tape::new(Clock::start(), TAPE_BYTES);
        let status = Shared::default();
        (tape, Intake::new(reader, folder, status.clone()), status)
    }

    /// Takes everything, checks that it is what was pushed, in order and with its stamps.
    fn check_all_comes_out(intake: &mut Intake, pushed: &[(Ticket, What)]) {
        let (mut items, mut stamps): (Vec<(Ticket, What)>, Vec<Ticket>) = (Vec::new(), Vec::new());
        loop {
            let batch = intake.next(Duration::ZERO);
            items.extend(batch.items.into_iter().map(|taped| (taped.ticket, taped.what)));
            stamps.extend(batch.handed_on.into_iter().map(|(ticket, _)| ticket));
            assert!(stamps.last() <= items.last().map(|(ticket, _)| ticket));
            if batch.is_end {
                break;
            }
        }
        assert!(items == pushed);
        assert!(stamps.iter().eq(pushed.iter().map(|(ticket, _)| ticket)));
    }

    #[test]
    fn what_the_tape_cannot_hold_goes_through_the_spill_file_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let (tape, mut intake, status) = intake(folder.path().to_owned());
        let pushed = fill(&tape, &mut intake);
        assert!(status.get().spilled_bytes > 200_000);
        intake.tape.closer().close();
        check_all_comes_out(&mut intake, &pushed);
        assert_eq!((intake.end, intake.file.as_ref().unwrap().metadata().unwrap().len()), (0, 0));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn without_a_place_to_spill_what_was_taken_is_kept_and_the_tape_is_left_alone() {
        let (tape, mut intake, status) = intake("/dev/null".into());
        let pushed = fill(&tape, &mut intake);
        assert!(
            status.get().last_error.unwrap().starts_with("cannot spill beside the recording, in /dev/null")
        );
        let lost = intake.waiting.len();
        assert_eq!(lost, 1, "one batch is in memory, and the rest stays on the tape");
        intake.tape.closer().close();
        let mut tickets = Vec::new();
        while let batch = intake.next(Duration::ZERO)
            && tickets.len() < pushed.len()
        {
            tickets.extend(batch.items.iter().map(|taped| taped.ticket));
        }
        assert!(tickets.iter().eq(pushed.iter().map(|(ticket, _)| ticket)));
    }

    #[test]
    fn a_spill_file_that_cannot_be_read_back_is_a_gap() {
        let folder = tempfile::tempdir().unwrap();
        let (tape, mut intake, _) = intake(folder.path().to_owned());
        fill(&tape, &mut intake);
        intake.file.as_ref().unwrap().set_len(0).unwrap();
        let batch = intake.next(Duration::ZERO);
        assert!(matches!(&batch.items[0].what, What::Gap { lost: 50, bytes, .. } if *bytes > 45_000));
    }
}

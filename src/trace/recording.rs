//! Reading a recording: event by event in order, and again by place.

use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::Path;

use super::decode::{Defaults, decode_line};
use super::recorder::part_path;
use super::text::{Step, Text};
use super::{FORMAT_VERSION, Faults, Header, TraceError};
use crate::event::{Event, What};
use crate::time::Mono;

/// Where an event stands in its recording. A place is good for the recording that gave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Position of its line in the plain text of its file.
    pub offset: u64,
    /// Length of its line, with the end.
    pub len: u32,
    /// How many events stand before it.
    pub order: u32,
}

/// How a recording ends, as far as it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The observer stopped in order; `is_complete`: it says that nothing is missing.
    Clean {
        /// What it says about gaps, if anything.
        is_complete: Option<bool>,
    },
    /// It just stops: the observer was killed, or is still at work.
    Cut,
}

/// A recording, or several read as one: the parts of a long one, or runs of the same server put
/// on one axis of time.
#[derive(Debug)]
pub struct Recording {
    parts: Vec<Part>,
    /// The part that is being read.
    current: usize,
    /// Events given out so far.
    order: u32,
    faults: Faults,
    ending: Ending,
}

/// One file of a recording.
#[derive(Debug)]
struct Part {
    text: Text,
    header: Header,
    has_header: bool,
    /// Events before its first.
    first_order: u32,
    /// Lines taken from it.
    lines: u64,
    /// Last number and time in the file itself.
    last_n: u64,
    last_at: Mono,
    /// What its numbers and times are moved by, to follow on the parts before.
    add_n: u64,
    add_ns: u64,
}

impl Recording {
    /// Opens one file, and the further parts in which the same recording goes on beside it.
    ///
    /// # Errors
    /// When it cannot be read, or its first line is not JSON.
    pub fn open(path: &Path) -> Result<Recording, TraceError> {
        Ok(Recording::of_parts(vec![Part::open(Text::open(path)?)?]))
    }

    /// Opens several files as one recording, in the order given, and the further parts of the last
    /// one. Parts of one session go on as
    /// they are; another session follows on the axis of the machine's clock where both know it,
    /// else after the last event, and its events are numbered on.
    ///
    /// # Errors
    /// As for [`Recording::open`], for the first file that fails.
    pub fn open_all(paths: &[&Path]) -> Result<Recording, TraceError> {
        let parts: Result<_, _> = paths.iter().map(|path| Part::open(Text::open(path)?)).collect();
        Ok(Recording::of_parts(parts?))
    }

    /// Reads `input` (standard input) to its end and opens that; `name` stands in messages.
    ///
    /// # Errors
    /// As for [`Recording::open`].
    pub fn read_from(input: &mut impl Read, name: &str) -> Result<Recording, TraceError> {
        Ok(Recording::of_parts(vec![Part::open(Text::spool(Path::new(name), input)?)?]))
    }

    fn of_parts(parts: Vec<Part>) -> Recording {
        Recording { parts, current: 0, order: 0, faults: Faults::default(), ending: Ending::Cut }
    }

    /// What the (first) file says about itself.
    #[must_use]
    pub fn header(&self) -> Header {
        self.parts.first().map(|part| part.header.clone()).unwrap_or_default()
    }

    /// What was wrong so far.
    #[must_use]
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// How it ends, as far as it was read.
    #[must_use]
    pub fn ending(&self) -> Ending {
        self.ending
    }

    /// The file, and the line in it from 1, of the event that was given out last.
    #[must_use]
    pub fn last_line(&self) -> Option<(&Path, u64)> {
        self.parts.get(self.current).map(|part| (part.text.path(), part.lines))
    }

    /// Bytes of plain text read so far, over all parts.
    #[must_use]
    pub fn read_bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.text.offset()).sum()
    }

    /// The next event and its place; `None` at the end.
    ///
    /// # Errors
    /// When the file cannot be read. What is wrong with a line is no error but a fault.
    #[expect(clippy::should_implement_trait, reason = "it can fail, and the places borrow nothing")]
    pub fn next(&mut self) -> Result<Option<(Event, Place)>, TraceError> {
        loop {
            if let Some(found) = self.next_whole()? {
                return Ok(Some(found));
            }
            if let Some(found) = self.take_rest()? {
                return Ok(Some(found));
            }
            if self.is_in_last_part() && !self.find_next_part()? {
                return Ok(None);
            }
            self.enter_next_part();
        }
    }

    /// The next event of the current part whose line is ended.
    pub(super) fn next_whole(&mut self) -> Result<Option<(Event, Place)>, TraceError> {
        while let Some(part) = self.parts.get_mut(self.current) {
            match part.text.next_line()? {
                Step::Line { at, offset } => {
                    if let Some(found) = part.decode(at, offset, self.order, &mut self.faults) {
                        return Ok(Some(self.give(found)));
                    }
                }
                Step::TooLong => {
                    part.lines += 1;
                    self.faults.too_long_lines += 1;
                }
                Step::Rest { .. } => return Ok(None),
            }
        }
        Ok(None)
    }

    /// The end of the current part is reached: an unfinished last line is an event if it is whole
    /// (written by hand, without a line end), else it is torn.
    pub(super) fn take_rest(&mut self) -> Result<Option<(Event, Place)>, TraceError> {
        let Some(part) = self.parts.get_mut(self.current) else { return Ok(None) };
        let Step::Rest { at, offset } = part.text.next_line()? else { return Ok(None) };
        if let Some(fault) = part.text.compression_fault() {
            self.faults.compression = Some(fault);
        }
        let len = at.len() as u64;
        let mut trial = Faults::default();
        let found = part.decode(at, offset, self.order, &mut trial);
        part.text.take_rest();
        if found.is_none() && trial.bad_lines > 0 {
            self.faults.torn_bytes += len;
        }
        Ok(found.map(|found| self.give(found)))
    }

    fn give(&mut self, (event, place): (Event, Place)) -> (Event, Place) {
        self.order = self.order.saturating_add(1);
        self.ending = match event.what {
            What::CaptureEnd { complete, .. } => Ending::Clean { is_complete: complete },
            _ => Ending::Cut,
        };
        (event, place)
    }

    pub(super) fn is_in_last_part(&self) -> bool {
        self.current + 1 >= self.parts.len()
    }

    /// The file of the last part, for its lock.
    pub(super) fn last_file(&self) -> Option<&File> {
        self.parts.last().map(|part| part.text.recorded_file())
    }

    /// Adds the part after the last one, if the recorder has turned to it. A file of that name that
    /// belongs to another session is left alone.
    pub(super) fn find_next_part(&mut self) -> Result<bool, TraceError> {
        let Some(last) = self.parts.last() else { return Ok(false) };
        let path = part_path(last.text.path(), last.header.part.unwrap_or(1).saturating_add(1));
        if !path.exists() {
            return Ok(false);
        }
        let part = Part::open(Text::open(&path)?)?;
        let is_of_session = last.header.session == part.header.session;
        if is_of_session {
            self.parts.push(part);
        }
        Ok(is_of_session)
    }

    /// If the file that is being read was cut short, begins it anew.
    pub(super) fn note_truncation(&mut self) -> Result<(), TraceError> {
        let Some(part) = self.parts.get_mut(self.current) else { return Ok(()) };
        if part.text.is_truncated()? {
            self.faults.was_truncated = true;
            part.text.seek(0);
            (part.last_n, part.last_at, part.lines) = (0, Mono(0), 0);
        }
        Ok(())
    }

    pub(super) fn enter_next_part(&mut self) {
        let Some(before) = self.parts.get(self.current) else { return };
        let (header, add_n, add_ns) = (&before.header, before.add_n, before.add_ns);
        let (n, at) =
            (before.last_n.saturating_add(before.add_n), before.last_at.0.saturating_add(before.add_ns));
        let boot_zero = header.boot_ns.map(|boot_ns| boot_ns.saturating_sub(add_ns));
        let session = header.session.clone();
        self.current += 1;
        let Some(part) = self.parts.get_mut(self.current) else { return };
        part.first_order = self.order;
        if !session.is_empty() && part.header.session == session {
            (part.add_n, part.add_ns) = (add_n, add_ns);
        } else {
            part.add_n = n;
            part.add_ns = match (boot_zero, part.header.boot_ns) {
                (Some(zero), Some(boot_ns)) if boot_ns >= zero => boot_ns - zero,
                _ => at,
            };
        }
    }

    /// The event at a place that this recording gave before.
    ///
    /// # Errors
    /// When the file cannot be read or no longer holds an event there.
    pub fn read_at(&self, place: Place) -> Result<Event, TraceError> {
        let entered = self.parts.get(..=self.current).unwrap_or_default();
        let idx = entered.partition_point(|part| part.first_order <= place.order).saturating_sub(1);
        let part = entered
            .get(idx)
            .ok_or_else(|| TraceError::NoEvent { path: "(nothing)".into(), offset: place.offset })?;
        part.read_at(place)
    }
}

impl Part {
    fn open(mut text: Text) -> Result<Part, TraceError> {
        let (mut header, mut has_header, mut lines) = (Header::default(), false, 0);
        let (at, is_whole) = match text.next_line()? {
            Step::Line { at, .. } => (at, true),
            Step::Rest { at, .. } => (at, false),
            Step::TooLong => (0..0, false),
        };
        let first = without_mark(text.bytes(at));
        let not_a_recording =
            |reason: String| TraceError::NotARecording { path: text.path().to_owned(), reason };
        if let Some((version, told)) = Header::decode(first).filter(|_| is_whole) {
            if version > u64::from(FORMAT_VERSION) {
                return Err(TraceError::Newer { path: text.path().to_owned(), version });
            }
            (header, has_header, lines) = (told, true, 1);
        } else {
            let begins_well = first.trim_ascii_start().first().is_none_or(|&byte| byte == b'{');
            if !begins_well {
                return Err(not_a_recording("its first line is not a JSON object".to_owned()));
            }
            if is_whole
                && let Err(error) = serde_json::from_slice::<serde::de::IgnoredAny>(first)
                && !first.trim_ascii().is_empty()
            {
                return Err(not_a_recording(format!("its first line is not JSON: {error}")));
            }
            text.seek(0);
        }
        Ok(Part {
            text,
            header,
            has_header,
            first_order: 0,
            lines,
            last_n: 0,
            last_at: Mono(0),
            add_n: 0,
            add_ns: 0,
        })
    }

    /// Makes an event of a line; `None` when it holds none (blank, a header, or bad).
    fn decode(
        &mut self,
        at: Range<usize>,
        offset: u64,
        order: u32,
        faults: &mut Faults,
    ) -> Option<(Event, Place)> {
        self.lines += 1;
        let whole = self.text.bytes(at);
        let line = if offset == 0 { without_mark(whole) } else { whole };
        if line.trim_ascii().is_empty() {
            return None;
        }
        let len = u32::try_from(whole.len()).unwrap_or(u32::MAX);
        let defaults =
            Defaults { n: self.last_n.saturating_add(1), at: self.last_at, transport: self.header.transport };
        let mut event = match decode_line(line, defaults, &mut |name| faults.unknown_member(name)) {
            Ok(Some(event)) => event,
            Ok(None) => {
                if let Some((_, header)) = Header::decode(line).filter(|_| !self.has_header) {
                    self.header = header;
                    self.has_header = true;
                }
                return None;
            }
            Err(error) => {
                faults.bad_line(self.lines, error.to_string());
                return None;
            }
        };
        if let What::Unknown { event } = &event.what {
            faults.unknown_event(event);
        }
        faults.numbers_out_of_order += u64::from(event.n <= self.last_n);
        faults.times_out_of_order += u64::from(event.at < self.last_at);
        (self.last_n, self.last_at) = (event.n, event.at);
        self.shift(&mut event);
        Some((event, Place { offset, len, order }))
    }

    fn read_at(&self, place: Place) -> Result<Event, TraceError> {
        let bytes = self.text.read_at(place.offset, place.len as usize)?;
        let n = u64::from(place.order.saturating_sub(self.first_order)).saturating_add(1);
        let defaults = Defaults { n, at: Mono(0), transport: self.header.transport };
        let line = if place.offset == 0 { without_mark(&bytes) } else { &bytes };
        let event = decode_line(line, defaults, &mut |_| {}).ok().flatten();
        let mut event = event
            .ok_or_else(|| TraceError::NoEvent { path: self.text.path().to_owned(), offset: place.offset })?;
        self.shift(&mut event);
        Ok(event)
    }

    fn shift(&self, event: &mut Event) {
        event.n = event.n.saturating_add(self.add_n);
        for at in std::iter::once(&mut event.at).chain(&mut event.out) {
            at.0 = at.0.saturating_add(self.add_ns);
        }
    }
}

/// A UTF-8 byte order mark before the first line is passed over.
fn without_mark(line: &[u8]) -> &[u8] {
    line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)
}

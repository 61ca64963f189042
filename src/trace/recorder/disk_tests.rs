//! What happens when the disk is full: on a small disk of its own, where one can be mounted.

use std::process::Command;

use bytes::Bytes;

use super::*;
use crate::event::tape::Tape;
use crate::event::{Event, Transport};
use crate::trace::{Ending, Recording};

const DISK_BYTES: usize = 1 << 20;

/// A disk of one megabyte.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// `None`, with a note, where this process may not mount.
    fn mount() -> Option<SmallDisk> {
        let folder = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={DISK_BYTES}"), "tmpfs"]).arg(folder.path());
        if !mount.output().is_ok_and(|done| done.status.success()) {
            println!("no right to mount a small disk here: a full disk is tested with /dev/full only");
            return None;
        }
        Some(SmallDisk(folder))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A file that takes up space until it is removed.
    fn fill(&self, bytes: usize) -> PathBuf {
        let path = self.path("filler");
        std::fs::write(&path, vec![0; bytes]).unwrap();
        path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        Command::new("umount").arg(self.0.path()).output().unwrap();
    }
}

fn push(tape: &Tape, numbers: std::ops::Range<u64>) {
    for number in numbers {
        let bytes = Bytes::from(format!("{number:0>1000}\n"));
        let ticket = tape.push_stdio(Dir::C2s, What::Bytes { bytes, read: Some(number) });
        tape.handed_on(ticket);
    }
}

/// Bytes that do not shrink when they are compressed.
fn noise(len: usize) -> Bytes {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    std::iter::repeat_with(next).take(len).collect()
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..500 {
        if is_so() {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("{what} did not come true in 5 s");
}

fn read(path: &Path) -> (Recording, Vec<Event>) {
    let mut recording = Recording::open(path).unwrap();
    let events = std::iter::from_fn(|| recording.next().unwrap()).map(|(event, _)| event).collect();
    (recording, events)
}

fn lost(events: &[Event]) -> (u64, u64) {
    let gaps = events.iter().filter_map(|event| match event.what {
        What::Gap { lost, bytes, .. } => Some((lost, bytes)),
        _ => None,
    });
    gaps.fold((0, 0), |sum, gap| (sum.0 + gap.0, sum.1 + gap.1))
}

fn recorder(path: &Path, limits: Limits) -> (Tape, RecorderHandle) {
    let (tape, reader) = Tape::new(Clock::start(), 16 << 20);
    let header = Header::of_this_process(Transport::Stdio, tape.clock());
    let handle = Recorder::start(header, Some(path), reader, limits).unwrap();
    (tape, handle)
}

#[test]
fn a_full_disk_is_a_gap_and_writing_goes_on_when_there_is_space_again() {
    for name in ["a.mw.jsonl", "a.mw.jsonl.zst"] {
        let Some(disk) = SmallDisk::mount() else { return };
        let filler = disk.fill(DISK_BYTES - 100_000);
        let path = disk.path(name);
        let (tape, handle) = recorder(&path, Limits { keep_free_bytes: 0, ..Limits::default() });
        push(&tape, 1..20);
        wait_until("the first events are written", || handle.status().events >= 19);
        let noise = noise(400_000);
        tape.push_stdio(Dir::S2c, What::Bytes { bytes: noise, read: Some(1) });
        wait_until("the disk is full", || handle.status().is_failing);
        push(&tape, 20..60);
        wait_until("what cannot be written is counted", || handle.status().lost_events >= 40);
        std::fs::remove_file(filler).unwrap();
        wait_until("it is tried again", || !handle.status().is_failing);
        push(&tape, 60..80);
        let status = handle.finish();
        let (recording, events) = read(&path);
        assert!(recording.faults().bad_lines == 0 && recording.faults().compression.is_none());
        assert_eq!(recording.ending(), Ending::Clean { is_complete: Some(false) });
        assert_eq!(lost(&events), (status.lost_events, status.lost_bytes));
        assert!(status.last_error.unwrap().contains("cannot write the recording"));
        let kept = events
            .iter()
            .filter(|event| event.dir == Dir::C2s && matches!(event.what, What::Bytes { .. }))
            .count();
        assert!(kept >= 39, "{kept} of the lines before and after the full disk");
        // A hole in the numbers is as wide as what was lost.
        let holes: u64 = events.windows(2).map(|pair| pair[1].n - pair[0].n - 1).sum();
        assert_eq!(holes, status.lost_events);
    }
}

#[test]
fn a_disk_that_is_nearly_full_is_left_alone_by_bodies() {
    let Some(disk) = SmallDisk::mount() else { return };
    let path = disk.path("a.mw.jsonl");
    let filler = disk.fill(DISK_BYTES - 45_000);
    let (tape, handle) = recorder(&path, Limits::default());
    push(&tape, 1..3);
    wait_until("the disk is seen to be low", || handle.status().is_disk_low);
    push(&tape, 3..2000);
    wait_until("bodies are given up", || handle.status().lost_events == 1997);
    std::fs::remove_file(filler).unwrap();
    tape.push_stdio(Dir::Tap, What::Mark("space".to_owned()));
    wait_until("space is seen again", || !handle.status().is_disk_low);
    push(&tape, 2000..2010);
    let status = handle.finish();
    assert!(!status.is_failing);
    assert_eq!(status.last_error, None);
    let (recording, events) = read(&path);
    assert!(recording.faults().is_empty());
    assert_eq!(lost(&events).0, 1997);
    let kept = events.iter().filter(|event| matches!(event.what, What::Bytes { .. })).count();
    assert_eq!(kept, 12);
}

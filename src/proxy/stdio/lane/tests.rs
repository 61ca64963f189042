//! Bytes pass a lane as they were read, and the tape knows them first.

use std::fs::File;
use std::io::{Read, Write};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use super::*;
use crate::event::tape::TapeReader;
use crate::time::Clock;

/// A running lane between two pipes.
struct Running {
    sender: File,
    receiver: Option<File>,
    lane: JoinHandle<LaneEnd>,
    tape: TapeReader,
}

fn running(dir: Dir) -> Running {
    let (from, sender) = rustix::pipe::pipe().unwrap();
    let (receiver, to) = rustix::pipe::pipe().unwrap();
    let (tape, reader) = Tape::new(Clock::start(), 1 << 30);
    let lane = Lane::new(dir, Arc::new(from), tape, Arc::default(), Direct(Some(to)));
    let lane = thread::spawn(move || lane.run());
    Running { sender: sender.into(), receiver: Some(receiver.into()), lane, tape: reader }
}

/// All that is on the tape of an ended lane, and how many items were handed on.
fn taped(reader: &mut TapeReader) -> (Vec<What>, usize) {
    let (mut items, mut handed_on) = (Vec::new(), 0);
    loop {
        let batch = reader.wait(Duration::from_secs(10));
        items.extend(batch.items.into_iter().map(|item| item.what));
        handed_on += batch.handed_on.len();
        if batch.is_end {
            return (items, handed_on);
        }
    }
}

fn bytes(what: &What) -> &[u8] {
    match what {
        What::Bytes { bytes, .. } => bytes,
        _ => b"",
    }
}

#[test]
fn every_chunk_goes_on_as_it_was_read_and_is_on_the_tape() {
    let mut running = running(Dir::C2s);
    let mut receiver = running.receiver.take().unwrap();
    let sizes = [1, 300, COPY_BYTES, COPY_BYTES + 1, 60_000, CHUNK_BYTES];
    let mut all = Vec::new();
    for (byte, size) in (b'a'..).zip(sizes) {
        let chunk = vec![byte; size];
        running.sender.write_all(&chunk).unwrap();
        let mut got = vec![0; size];
        receiver.read_exact(&mut got).unwrap();
        assert!(got == chunk, "{size} bytes differ");
        all.push(chunk);
    }
    drop(running.sender);
    assert!(matches!(running.lane.join().unwrap(), LaneEnd::Both));
    assert_eq!(receiver.read(&mut [0]).unwrap(), 0, "the end is passed on");
    let (items, handed_on) = taped(&mut running.tape);
    assert_eq!(handed_on, sizes.len());
    assert_eq!(items.last(), Some(&What::ClientClosed { how: Some(Close::Eof) }));
    let mut reads: Vec<Option<u64>> = Vec::new();
    let mut seen: Vec<u8> = Vec::new();
    for item in &items[..items.len() - 1] {
        let What::Bytes { bytes, read } = item else { panic!("{item:?} is no chunk") };
        seen.extend_from_slice(bytes);
        reads.push(*read);
    }
    assert!(seen == all.concat(), "the tape holds other bytes than passed");
    assert_eq!(reads, (1..=sizes.len() as u64).map(Some).collect::<Vec<_>>());
}

#[test]
fn a_client_that_stops_reading_stdout_is_felt_by_the_server() {
    let mut running = running(Dir::S2c);
    drop(running.receiver.take());
    running.sender.write_all(b"answer\n").unwrap();
    assert!(matches!(running.lane.join().unwrap(), LaneEnd::Receiver));
    let error = running.sender.write_all(b"more\n").unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    let (items, handed_on) = taped(&mut running.tape);
    assert_eq!(bytes(&items[0]), b"answer\n");
    assert_eq!(items[1], What::ClientClosed { how: Some(Close::Reset) });
    assert_eq!(handed_on, 0, "what was not taken is not called handed on");
}

#[test]
fn a_stderr_that_cannot_take_more_does_not_stop_the_server() {
    let (from, sender) = rustix::pipe::pipe().unwrap();
    let full = File::options().write(true).open("/dev/full").unwrap();
    let (tape, mut reader) = Tape::new(Clock::start(), 1 << 20);
    let lane = Lane::new(Dir::Stderr, Arc::new(from), tape, Arc::default(), Direct(Some(full.into())));
    let lane = thread::spawn(move || lane.run());
    let mut sender = File::from(sender);
    for line in ["one\n", "two\n"] {
        sender.write_all(line.as_bytes()).unwrap();
    }
    drop(sender);
    assert!(matches!(lane.join().unwrap(), LaneEnd::Sender));
    let (items, handed_on) = taped(&mut reader);
    assert_eq!(items.iter().flat_map(bytes).copied().collect::<Vec<_>>(), b"one\ntwo\n");
    assert_eq!(handed_on, 0);
}

#[test]
fn descriptors_set_to_non_blocking_by_their_other_owner_still_work() {
    let (from, sender) = rustix::pipe::pipe().unwrap();
    let (receiver, to) = rustix::pipe::pipe().unwrap();
    for fd in [&from, &to] {
        fcntl_setfl(fd, fcntl_getfl(fd).unwrap() | OFlags::NONBLOCK).unwrap();
    }
    let (tape, _reader) = Tape::new(Clock::start(), 1 << 30);
    let lane = Lane::new(Dir::S2c, Arc::new(from), tape, Arc::default(), Direct(Some(to)));
    let lane = thread::spawn(move || lane.run());
    let sent = vec![b'x'; 1 << 20];
    let sending = thread::spawn({
        let sent = sent.clone();
        move || File::from(sender).write_all(&sent).unwrap()
    });
    let mut got = vec![0; sent.len()];
    let mut receiver = File::from(receiver);
    receiver.read_exact(&mut got).unwrap();
    assert!(got == sent);
    sending.join().unwrap();
    assert!(matches!(lane.join().unwrap(), LaneEnd::Sender));
}

//! How the recorder behaves as a whole: tape in, file out.

use std::os::unix::fs::PermissionsExt as _;

use bytes::Bytes;

use super::*;
use crate::event::Transport;
use crate::event::tape::Tape;
use crate::event::{Event, Headers, RequestHead};
use crate::trace::{Ending, Recording};

const TAPE_BYTES: usize = 1 << 20;

struct Bench {
    _folder: tempfile::TempDir,
    path: PathBuf,
    tape: Tape,
    handle: RecorderHandle,
}

fn bench(name: &str, transport: Transport, tape_bytes: usize, limits: Limits) -> Bench {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("made").join(name);
    let (tape, reader) = Tape::new(Clock::start(), tape_bytes);
    let header = Header::of_this_process(transport, tape.clock());
    let handle = Recorder::start(header, Some(&path), reader, limits).unwrap();
    Bench { _folder: folder, path, tape, handle }
}

fn stdio(name: &str) -> Bench {
    bench(name, Transport::Stdio, TAPE_BYTES, Limits::default())
}

fn http() -> Bench {
    bench("a.mw.jsonl", Transport::Http, TAPE_BYTES, Limits::default())
}

fn chunk(text: impl Into<Bytes>, read: u64) -> What {
    What::Bytes { bytes: text.into(), read: Some(read) }
}

fn read(path: &Path) -> (Recording, Vec<Event>) {
    let mut recording = Recording::open(path).unwrap();
    let events = std::iter::from_fn(|| recording.next().unwrap()).map(|(event, _)| event).collect();
    (recording, events)
}

fn raw(event: &Event) -> String {
    match &event.what {
        What::Bytes { bytes, .. } => String::from_utf8(bytes.to_vec()).unwrap(),
        other => format!("{other:?}"),
    }
}

#[test]
fn reads_become_lines_with_numbers_stamps_and_an_end() {
    let Bench { path, tape, handle, _folder } = stdio("a.mw.jsonl");
    let first = tape.push_stdio(Dir::C2s, chunk("{1}\n{2}\n{3", 1));
    tape.push_stdio(Dir::S2c, chunk("answer\n", 1));
    tape.handed_on(first);
    tape.push_stdio(Dir::C2s, chunk("}\n", 2));
    let status = handle.finish();
    let (recording, events) = read(&path);
    let lines: Vec<_> = events.iter().map(raw).collect();
    let end = "CaptureEnd { events: Some(5), complete: Some(true) }";
    assert_eq!(lines, ["{1}\n", "{2}\n", "{3", "answer\n", "}\n", end]);
    assert!(events.iter().map(|event| event.n).eq(1..=6));
    assert!(events[..3].iter().all(|event| event.out.is_some_and(|out| out >= event.at)));
    assert_eq!(events[3].out, None);
    assert!(recording.faults().is_empty());
    assert_eq!(recording.ending(), Ending::Clean { is_complete: Some(true) });
    assert_eq!(recording.header().pid, Some(std::process::id()));
    assert_eq!((status.events, status.lost_events, status.is_finished), (6, 0, true));
    assert_eq!(status.written_bytes, std::fs::metadata(&path).unwrap().len());
}

#[test]
fn files_and_folders_are_private() {
    let Bench { path, handle, _folder, .. } = stdio("a.mw.jsonl");
    drop(handle);
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
}

fn request(length: Option<usize>) -> What {
    let headers = length.map(|length| ("Content-Length".to_owned(), length.to_string()));
    let headers = Headers(headers.into_iter().collect());
    What::Request(RequestHead { method: "POST".to_owned(), path: "/mcp".to_owned(), headers, body: None })
}

fn body(event: &Event) -> Option<&[u8]> {
    match &event.what {
        What::Request(head) => head.body.as_deref(),
        What::Body(bytes) => Some(bytes),
        _ => None,
    }
}

#[test]
fn a_request_takes_the_pieces_of_its_body_in() {
    let Bench { path, tape, handle, _folder } = http();
    let piece = |text: &'static str| What::Body(Bytes::from_static(text.as_bytes()));
    tape.push_http(Dir::C2s, Some(1), Some(1), request(Some(4)));
    tape.push_http(Dir::C2s, Some(2), Some(2), request(None));
    tape.push_http(Dir::C2s, Some(1), Some(1), piece("ab"));
    let last = tape.push_http(Dir::C2s, Some(1), Some(1), piece("cd"));
    tape.handed_on(last);
    let head = What::ResponseHead { status: 200, headers: Headers::default() };
    tape.push_http(Dir::S2c, Some(1), Some(1), head);
    tape.push_http(Dir::C2s, Some(1), Some(1), piece("late"));
    drop(handle);
    let (_, events) = read(&path);
    let streams: Vec<_> = events.iter().map(|event| (event.stream, body(event))).collect();
    assert_eq!(
        streams,
        [
            (Some(1), Some(&b"abcd"[..])),
            (Some(2), None),
            (Some(1), None),
            (Some(1), Some(b"late")),
            (None, None)
        ]
    );
    assert!(events[0].out.is_some());
}

#[test]
fn a_body_that_comes_a_moment_later_still_joins_its_request() {
    let Bench { path, tape, handle, _folder } = http();
    let ticket = tape.push_http(Dir::C2s, Some(1), Some(1), request(Some(2)));
    tape.handed_on(ticket);
    std::thread::sleep(Duration::from_millis(25));
    tape.push_http(Dir::C2s, Some(1), Some(1), What::Body(Bytes::from_static(b"ab")));
    drop(handle);
    let (_, events) = read(&path);
    assert_eq!((events.len(), body(&events[0])), (2, Some(&b"ab"[..])));
}

#[test]
fn what_is_older_than_100_ms_is_in_the_file() {
    let is_kept = || {
        let Bench { path, tape, handle, _folder } = stdio("a.mw.jsonl");
        for number in 1..=20 {
            tape.push_stdio(Dir::C2s, chunk(format!("{number}\n"), number));
            std::thread::sleep(Duration::from_millis(5));
        }
        let now = tape.clock().now();
        let (recording, events) = read(&path);
        assert_eq!(recording.ending(), Ending::Cut);
        drop(handle);
        assert_eq!(read(&path).1.len(), 21);
        now.ns_since(events.last().map_or(Mono(0), |event| event.at)) < 100_000_000
    };
    // A machine that gives the recorder no time within 40 ms proves nothing: try again.
    assert!((0..5).any(|_| is_kept()));
}

#[test]
fn a_full_tape_becomes_a_gap_and_the_recording_says_that_it_is_not_complete() {
    let Bench { path, tape, handle, _folder } = bench("a.mw.jsonl", Transport::Stdio, 600, Limits::default());
    tape.push_stdio(Dir::C2s, chunk(vec![b'x'; 1000], 1));
    tape.push_stdio(Dir::S2c, chunk("ok\n", 1));
    let status = handle.finish();
    let (recording, events) = read(&path);
    let gap = What::Gap { lost: 1, bytes: 1000, why: "the recorder fell behind the traffic".to_owned() };
    assert_eq!((events[0].n, events[0].dir, &events[0].what), (1, Dir::C2s, &gap));
    assert_eq!(raw(&events[1]), "ok\n");
    assert_eq!(recording.ending(), Ending::Clean { is_complete: Some(false) });
    assert_eq!((status.lost_events, status.lost_bytes), (1, 1000));
}

#[test]
fn a_recording_is_never_written_over() {
    let first = stdio("a.mw.jsonl");
    let (_tape, reader) = Tape::new(Clock::start(), TAPE_BYTES);
    let second = Recorder::start(Header::default(), Some(&first.path), reader, Limits::default()).unwrap();
    assert_eq!(second.status().path.unwrap().file_name().unwrap(), "a-2.mw.jsonl");
    drop(first.handle);
    assert_eq!(read(&first.path).1.len(), 1);
}

#[test]
fn an_unwritable_folder_is_said_at_the_start() {
    let (_tape, reader) = Tape::new(Clock::start(), TAPE_BYTES);
    let error = Recorder::start(
        Header::default(),
        Some(Path::new("/dev/null/a/b.mw.jsonl")),
        reader,
        Limits::default(),
    );
    let message = error.unwrap_err().to_string();
    assert!(message.starts_with("cannot make the folder /dev/null/a: "), "{message}");
}

#[test]
fn a_pipe_without_a_reader_does_not_hold_up_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let (_tape, reader) = Tape::new(Clock::start(), TAPE_BYTES);
    let error = Recorder::start(Header::default(), Some(&pipe), reader, Limits::default()).unwrap_err();
    assert!(error.to_string().contains("cannot write the recording"), "{error}");
}

#[test]
fn without_a_file_the_tape_is_let_go() {
    let (tape, reader) = Tape::new(Clock::start(), TAPE_BYTES);
    let handle = Recorder::start(Header::default(), None, reader, Limits::default()).unwrap();
    tape.push_stdio(Dir::C2s, chunk("x", 1));
    assert_eq!(handle.finish().path, None);
}

#[test]
fn a_long_recording_goes_on_in_parts_that_read_as_one() {
    let limits = Limits { part_bytes: 2000, ..Limits::default() };
    let Bench { path, tape, handle, _folder } = bench("a.mw.jsonl", Transport::Stdio, TAPE_BYTES, limits);
    for number in 1..=40 {
        tape.push_stdio(Dir::C2s, chunk(format!("{number:0>100}\n"), number));
        std::thread::sleep(Duration::from_millis(15));
    }
    let status = handle.finish();
    let mut paths = vec![path.clone()];
    while paths.last() != status.path.as_ref() {
        let next = sink::part_path(paths.last().unwrap(), u32::try_from(paths.len()).unwrap() + 1);
        assert!(next.exists(), "{}", next.display());
        paths.push(next);
    }
    assert!(paths.len() > 1);
    let all: Vec<_> = paths.iter().map(PathBuf::as_path).collect();
    for given in [&all[..], &all[..1]] {
        let mut recording = Recording::open_all(given).unwrap();
        let events: Vec<_> = std::iter::from_fn(|| recording.next().unwrap()).collect();
        assert!(events.iter().map(|(event, _)| event.n).eq(1..=41));
        assert!(recording.faults().is_empty(), "{:?}", recording.faults());
        for (event, place) in events {
            assert_eq!(recording.read_at(place).unwrap(), event);
        }
    }
}

#[test]
fn a_compressed_recording_opens_whole_and_cut_at_any_flush() {
    let Bench { path, tape, handle, _folder } = stdio("a.mw.jsonl.zst");
    for number in 1..=5 {
        tape.push_stdio(Dir::C2s, chunk(format!("{number:0>100}\n"), number));
        std::thread::sleep(Duration::from_millis(30));
    }
    std::thread::sleep(Duration::from_millis(100));
    let (cut, events) = read(&path);
    assert_eq!(events.len(), 5);
    assert_eq!(cut.faults().compression.as_deref(), Some("the last frame is not finished"));
    drop(handle);
    let (whole, events) = read(&path);
    assert_eq!(events.len(), 6);
    assert!(whole.faults().is_empty());
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(bytes[..4], [0x28, 0xb5, 0x2f, 0xfd]);
    assert!(bytes.len() < 900);
    for len in 4..bytes.len() {
        let mut recording = Recording::read_from(&mut &bytes[..len], "cut").unwrap();
        while recording.next().unwrap().is_some() {}
        assert!(recording.faults().compression.is_some());
    }
}

#[test]
fn a_write_error_is_reported_and_the_path_does_not_notice() {
    let (tape, reader) = Tape::new(Clock::start(), TAPE_BYTES);
    let handle =
        Recorder::start(Header::default(), Some(Path::new("/dev/full")), reader, Limits::default()).unwrap();
    for number in 1..=100 {
        tape.push_stdio(Dir::C2s, chunk("x\n", number));
    }
    let status = handle.finish();
    assert!(status.is_failing);
    assert_eq!(status.lost_events, 101);
    let error = status.last_error.unwrap();
    assert!(error.starts_with("cannot write the recording /dev/full: "), "{error}");
}

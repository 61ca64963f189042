//! The format as a whole: what is written is read, and what is odd is read too.

use std::io::Cursor;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;

use super::*;
use crate::event::{Close, Dir, Event, Headers, Queue, RequestHead, Transport, What};
use crate::time::Mono;

fn open(text: impl AsRef<[u8]>) -> Recording {
    Recording::read_from(&mut Cursor::new(text.as_ref()), "test").unwrap()
}

fn read_all(recording: &mut Recording) -> Vec<(Event, Place)> {
    std::iter::from_fn(|| recording.next().unwrap()).collect()
}

fn events(text: impl AsRef<[u8]>) -> Vec<Event> {
    read_all(&mut open(text)).into_iter().map(|(event, _)| event).collect()
}

fn line(event: &Event) -> String {
    let mut line = Vec::new();
    encode_event(event, &mut line);
    String::from_utf8(line).unwrap()
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z ]{0,8}", any::<String>()]
}

fn bytes() -> impl Strategy<Value = Bytes> {
    prop_oneof![vec(any::<u8>(), 0..40).prop_map(Bytes::from), text().prop_map(Bytes::from)]
}

/// Fields whose repetitions stand together, as the format keeps them.
fn headers() -> impl Strategy<Value = Headers> {
    proptest::collection::btree_map("[a-zA-Z-]{1,6}", vec(text(), 1..3), 0..4).prop_map(|fields| {
        let repeat = |(name, values): (String, Vec<String>)| {
            values.into_iter().map(move |value| (name.clone(), value)).collect::<Vec<_>>()
        };
        Headers(fields.into_iter().flat_map(repeat).collect())
    })
}

fn how() -> impl Strategy<Value = Option<Close>> {
    of(prop_oneof![Just(Close::Eof), Just(Close::HalfClose), Just(Close::Reset), Just(Close::Timeout)])
}

fn queue() -> impl Strategy<Value = What> {
    let numbers = (any::<u64>(), any::<u64>(), of(any::<u64>()), any::<[u64; 5]>());
    numbers.prop_map(|(events, bytes, capacity, [coalesced, evicted, discarded, refused, blocked_ms])| {
        What::Queue(Queue { events, bytes, capacity, coalesced, evicted, discarded, refused, blocked_ms })
    })
}

fn traffic() -> impl Strategy<Value = What> {
    prop_oneof![
        (bytes(), of(any::<u64>())).prop_map(|(bytes, read)| What::Bytes { bytes, read }),
        (text(), text(), headers(), of(bytes())).prop_map(|(method, path, headers, body)| What::Request(
            RequestHead { method, path, headers, body }
        )),
        (any::<u16>(), headers()).prop_map(|(status, headers)| What::ResponseHead { status, headers }),
        bytes().prop_map(What::SseChunk),
        bytes().prop_map(What::Body),
        how().prop_map(|how| What::ClientClosed { how }),
        (how(), of(any::<i32>()), of(any::<i32>())).prop_map(|(how, exit_code, signal)| What::ServerClosed {
            how,
            exit_code,
            signal
        }),
    ]
}

fn told() -> impl Strategy<Value = What> {
    prop_oneof![
        (any::<u32>(), vec(text(), 0..3)).prop_map(|(pid, command)| What::Spawn { pid, command }),
        (text(), text()).prop_map(|(signal, why)| What::Signal { signal, why }),
        queue(),
        (text(), text(), text(), of(text()), of(vec(any::<u8>(), 0..20))).prop_map(
            |(what, target, by, cause, sent)| What::Inject {
                what,
                target,
                by,
                cause,
                sent: sent.map(Bytes::from)
            }
        ),
        prop_oneof![text(), Just(r#"{"a":[1,{"b":null}]}"#.to_owned()), Just("{\n}".to_owned())]
            .prop_map(What::Telemetry),
        (any::<u64>(), any::<u64>(), text()).prop_map(|(lost, bytes, why)| What::Gap { lost, bytes, why }),
        text().prop_map(What::Mark),
        text().prop_map(|wall| What::Clock { wall }),
        (vec(text(), 0..3), any::<u64>()).prop_map(|(rules, hits)| What::Redact { rules, hits }),
        (of(any::<u64>()), of(any::<bool>()))
            .prop_map(|(events, complete)| What::CaptureEnd { events, complete }),
        Just(What::Unknown { event: "from the future".to_owned() }),
    ]
}

fn any_event() -> impl Strategy<Value = Event> {
    let dir = prop_oneof![Just(Dir::C2s), Just(Dir::S2c), Just(Dir::Stderr), Just(Dir::Tap)];
    let transport = prop_oneof![Just(Transport::Stdio), Just(Transport::Http)];
    let numbers = (any::<u64>(), any::<u64>(), of(any::<u64>()), of(any::<u64>()), of(any::<u64>()));
    (numbers, dir, transport, prop_oneof![traffic(), told()]).prop_map(
        |((n, at, out, stream, conn), dir, transport, what)| {
            let (at, out) = (Mono(at), out.map(Mono));
            Event { n, at, out, dir, transport, stream, conn, what }
        },
    )
}

proptest! {
    #[test]
    fn every_event_is_read_as_it_was_written(event in any_event()) {
        let written = line(&event);
        prop_assert_eq!(written.matches('\n').count(), 1);
        let mut recording = open(&written);
        let (read, place) = recording.next().unwrap().unwrap();
        prop_assert_eq!(&read, &event);
        prop_assert_eq!(recording.read_at(place).unwrap(), event);
        prop_assert_eq!(line(&read), written);
    }

    #[test]
    fn no_bytes_make_a_reader_fail(bytes in vec(any::<u8>(), 0..200)) {
        let mut text = b"{}\n".to_vec();
        text.extend(bytes);
        read_all(&mut open(text));
    }

    #[test]
    fn a_damaged_line_costs_no_other(event in any_event(), at in any::<prop::sample::Index>(), byte: u8) {
        let mut damaged = line(&event).into_bytes();
        let idx = at.index(damaged.len() - 1);
        damaged[idx] = byte;
        let mark = r#"{"dir":"tap","event":"mark","text":"after"}"#;
        let text = [b"{\"midwire\":1}\n", &damaged[..], mark.as_bytes(), b"\n"].concat();
        let read = events(text);
        prop_assert_eq!(&read.last().unwrap().what, &What::Mark("after".to_owned()));
    }
}

const SESSION: &str = r#"{"midwire":1,"session":"s","transport":"stdio","command":["python3","server.py"]}
{"n":1,"t_ms":0.5,"out_ms":0.75,"dir":"c2s","transport":"stdio","read":1,"raw":"{\"id\":1}\n"}
{"n":2,"t_ms":3.000001,"dir":"s2c","transport":"stdio","raw_b64":"/w=="}
{"n":3,"t_ms":4,"dir":"s2c","transport":"stdio","event":"server_closed","exit_code":-1}
{"n":4,"t_ms":5,"dir":"tap","transport":"stdio","event":"capture_end","events":3,"complete":true}
"#;

#[test]
fn a_recording_cut_at_any_byte_opens_and_keeps_every_whole_line() {
    for len in 0..=SESSION.len() {
        let (cut, rest) = SESSION.split_at(len);
        let mut recording = open(cut);
        let read = read_all(&mut recording).len();
        let ends = cut.matches('\n').count();
        // A last line that lacks nothing but its end counts as whole.
        let is_whole = rest.starts_with('\n');
        assert_eq!(read, (ends + usize::from(is_whole)).saturating_sub(1), "cut at {len}");
        let torn = if is_whole { 0 } else { len - cut.rfind('\n').map_or(0, |at| at + 1) };
        assert_eq!(recording.faults().torn_bytes, torn as u64, "cut at {len}");
        let is_clean = read == 4;
        let ending = if is_clean { Ending::Clean { is_complete: Some(true) } } else { Ending::Cut };
        assert_eq!(recording.ending(), ending, "cut at {len}");
    }
}

#[test]
fn what_a_person_writes_is_understood() {
    fn check(line: &str, what: &What) {
        let read = events(line);
        assert_eq!(&read[0].what, what, "{line}");
    }
    let bytes = |text: &'static str| What::Bytes { bytes: Bytes::from_static(text.as_bytes()), read: None };
    check(r#"{"dir":"c2s","raw":"a\nb\n"}"#, &bytes("a\nb\n"));
    check("\u{feff}{\"dir\":\"c2s\",\"raw\":\"x\"}\r\n", &bytes("x"));
    check("\n \n{\"dir\":\"s2c\",\"raw\":\"x\"}", &bytes("x"));
    check(r#"{"raw":"first","dir":"c2s","raw":"last"}"#, &bytes("last"));
    check(
        r#"{"event":"server_closed","signal":"SIGTERM","how":"who knows"}"#,
        &What::ServerClosed { how: None, exit_code: None, signal: Some(15) },
    );
    check(
        r#"{"event":"response_head","status":200,"headers":{"content-length":12,"Set-Cookie":["a",5]}}"#,
        &What::ResponseHead {
            status: 200,
            headers: Headers(
                [("content-length", "12"), ("Set-Cookie", "a"), ("Set-Cookie", "5")]
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .to_vec(),
            ),
        },
    );
    check(r#"{"event":"quantum","spin":1}"#, &What::Unknown { event: "quantum".to_owned() });
    check(r#"{"event":"telemetry","data":{"q": 1}}"#, &What::Telemetry(r#"{"q": 1}"#.to_owned()));
    check(r#"{"event":"sse_chunk"}"#, &What::SseChunk(Bytes::new()));
}

#[test]
fn members_that_are_left_out_follow_from_the_lines_before() {
    let read = events(
        r#"{"midwire":1,"transport":"http"}
{"t_ms":5,"dir":"c2s","event":"client_closed"}
{"n":9,"event":"server_closed"}
{"t_ms":7.5,"event":"mark","text":"x","transport":"stdio"}
"#,
    );
    let told: Vec<_> = read.iter().map(|event| (event.n, event.at.0, event.dir, event.transport)).collect();
    assert_eq!(
        told,
        [
            (1, 5_000_000, Dir::C2s, Transport::Http),
            (9, 5_000_000, Dir::S2c, Transport::Http),
            (10, 7_500_000, Dir::Tap, Transport::Stdio),
        ]
    );
    assert_eq!(events(r#"{"event":"request"}"#)[0].transport, Transport::Http);
}

#[test]
fn times_are_read_to_the_nanosecond() {
    for (written, ns) in [
        ("0", Some(0)),
        ("1234567890.123456", Some(1_234_567_890_123_456)),
        ("0.0000019", Some(1)),
        ("1.5e3", Some(1_500_000_000)),
        ("18446744073709.551615", Some(u64::MAX)),
        ("null", Some(0)),
        ("-1", None),
        ("1e300", None),
        ("99999999999999999999", None),
        ("\"5\"", None),
    ] {
        let read = events(format!("{{\"t_ms\":{written},\"dir\":\"c2s\",\"raw\":\"x\"}}\n"));
        assert_eq!(read.first().map(|event| event.at.0), ns, "{written}");
    }
}

#[test]
fn what_is_wrong_is_counted_and_reading_goes_on() {
    let mut recording = open(
        r#"{"midwire":1,"mood":"good"}
{"t_ms":5,"dir":"c2s","raw":"x","colour":"red"}
not json
{"t_ms":4,"dir":"c2s","raw":"x","colour":"red","size":[[{}]]}
{"t_ms":4,"raw":"no dir"}
{"t_ms":4,"dir":"up","raw":"x"}
{"t_ms":4,"dir":"c2s"}
{"t_ms":4,"dir":"c2s","raw_b64":"?"}
{"n":1,"dir":"tap","event":"quantum"}
{"dir":"c2s","raw":"\ud800"}
[1]
{"dir":"c2s","ra"#,
    );
    assert_eq!(read_all(&mut recording).len(), 3);
    let faults = recording.faults();
    let count = |counts: &std::collections::BTreeMap<String, u64>| {
        counts.iter().map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>()
    };
    assert_eq!(count(&faults.unknown_members), ["colour 2", "size 1"]);
    assert_eq!(count(&faults.unknown_events), ["quantum 1"]);
    assert_eq!((faults.times_out_of_order, faults.numbers_out_of_order), (1, 1));
    assert_eq!(faults.torn_bytes, 16);
    assert_eq!(faults.bad_lines, 7);
    let lines: Vec<_> = faults.bad_line_examples.iter().map(|bad| bad.line).collect();
    assert_eq!(lines, [3, 5, 6, 7, 8, 10, 11]);
    assert!(faults.bad_line_examples[1].reason.contains("`dir` is missing"));
}

#[test]
fn what_is_no_recording_is_refused_with_the_reason() {
    fn check(text: &str, message: &str) {
        let error = Recording::read_from(&mut Cursor::new(text), "x.txt").unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
    check("hello\n", "x.txt is not a recording: its first line is not a JSON object");
    check("hello", "not a recording");
    check("{\"a\":}\n", "its first line is not JSON");
    check("{\"midwire\":2}\n", "format version 2");
    let missing = Recording::open(Path::new("/nowhere/x.mw.jsonl")).unwrap_err().to_string();
    assert!(missing.starts_with("cannot open the recording /nowhere/x.mw.jsonl: "), "{missing}");
    assert!(Recording::open(Path::new("/")).is_err());
    assert!(events("").is_empty());
}

#[test]
fn deep_nesting_costs_no_stack() {
    let deep = "[".repeat(300_000) + &"]".repeat(300_000);
    for member in ["other", "headers", "data", "command", "raw", "t_ms"] {
        let text = format!("{{\"dir\":\"tap\",\"event\":\"x\",\"{member}\":{deep}}}\n");
        let mut recording = open("{\"midwire\":1}\n".to_owned() + &text + &text);
        read_all(&mut recording);
        let faults = recording.faults();
        assert_eq!(
            faults.bad_lines + faults.unknown_members.values().sum::<u64>(),
            if member == "data" { 0 } else { 2 }
        );
        read_all(&mut open(format!("{{\"midwire\":{deep}}}\n")));
    }
}

/// Recordings after public bug reports, kept beside the checkout by those who have them.
fn case_files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/cases");
    let Ok(entries) = std::fs::read_dir(&folder) else {
        println!("no cases at {}: nothing to check", folder.display());
        return Vec::new();
    };
    let is_recording = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "jsonl");
    entries.map(|entry| entry.unwrap().path()).filter(is_recording).collect()
}

#[test]
fn every_case_opens_without_a_fault_and_survives_rewriting() {
    for path in case_files() {
        let mut recording = Recording::open(&path).unwrap();
        let read = read_all(&mut recording);
        assert!(recording.faults().is_empty(), "{}: {:?}", path.display(), recording.faults());
        assert_eq!(recording.ending(), Ending::Clean { is_complete: None }, "{}", path.display());
        let rewritten: String = read.iter().map(|(event, _)| line(event)).collect();
        let again = events(rewritten);
        assert!(read.iter().map(|(event, _)| event).eq(&again), "{}", path.display());
        for (event, place) in read {
            // An event without a number or a time of its own takes them from its neighbours.
            assert_eq!(recording.read_at(place).unwrap().what, event.what);
        }
    }
}

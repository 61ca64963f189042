//! Lines on a real socket, and what of them comes to the tape.

use std::io::Write as _;
use std::time::Duration;

use super::*;
use crate::event::tape::{TapeReader, Taped};
use crate::time::Clock;

/// Longer than anything here may take.
const LIMIT: Duration = Duration::from_secs(10);

struct Setup {
    folder: tempfile::TempDir,
    telemetry: Telemetry,
    tape: TapeReader,
}

impl Setup {
    fn new(callers: Option<Callers>) -> Setup {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("s")).unwrap();
        let (tape, reader) = Tape::new(Clock::start(), 1 << 24);
        let telemetry = Telemetry::start(listener, tape, callers).unwrap();
        Setup { folder, telemetry, tape: reader }
    }

    fn teller(&self) -> UnixStream {
        UnixStream::connect(self.folder.path().join("s")).unwrap()
    }

    /// All that came, in order.
    fn end(mut self) -> Vec<Taped> {
        drop(self.telemetry);
        let mut items = Vec::new();
        loop {
            let batch = self.tape.wait(LIMIT);
            items.extend(batch.items);
            if batch.is_end {
                return items;
            }
        }
    }
}

fn text(item: &Taped) -> &str {
    let What::Telemetry(text) = &item.what else { panic!("{item:?}") };
    text
}

#[test]
fn whole_lines_of_any_teller_are_taped_in_order_and_garbage_is_kept_as_it_is() {
    let setup = Setup::new(None);
    let (mut first, mut second) = (setup.teller(), setup.teller());
    first.write_all(b"{\"stage\":\"done\",\"request\":1}\nnot json\n\n{\"sta").unwrap();
    first.write_all(b"ge\":\"effect\"}\n\xff\xfe\n").unwrap();
    first.write_all(&[b'x'; LINE_LIMIT_BYTES + 1]).unwrap();
    first.write_all(b"\nwithout an end").unwrap();
    drop(first);
    second.write_all(b"{\"stage\":\"checkpoint\",\"request\":\"2\"}\n").unwrap();
    let items = setup.end();
    assert!(items.iter().all(|item| item.dir == Dir::S2c && item.transport == Transport::Stdio));
    let of_first: Vec<_> = items.iter().map(text).filter(|text| !text.contains("checkpoint")).collect();
    let expected = [
        r#"{"stage":"done","request":1}"#,
        "not json",
        r#"{"stage":"effect"}"#,
        "\u{fffd}\u{fffd}",
        "without an end",
        r#"{"stage":"dropped","by":"tap","lines":1}"#,
    ];
    assert_eq!(of_first, expected);
    assert_eq!(items.len(), expected.len() + 1);
}

#[test]
fn a_flood_is_bounded_and_what_was_dropped_is_said() {
    let setup = Setup::new(None);
    let mut teller = setup.teller();
    let told = 10 * u64::from(LINES_PER_S);
    let lines = "told\n".repeat(usize::try_from(told).unwrap());
    // It never waits for the recorder: all of it is taken, whatever becomes of it.
    teller.write_all(lines.as_bytes()).unwrap();
    drop(teller);
    let items = setup.end();
    let (mut kept, mut lost) = (0, 0);
    for item in &items {
        match text(item).split_once("\"lines\":") {
            Some((_, lines)) => lost += lines.trim_end_matches('}').parse::<u64>().unwrap(),
            None => kept += 1,
        }
    }
    assert_eq!(kept + lost, told);
    assert!(lost > 0 && kept >= u64::from(LINES_PER_S), "{kept} kept, {lost} dropped");
}

#[test]
fn an_exchange_is_found_by_the_address_that_the_server_saw() {
    let callers = Callers::default();
    let local: SocketAddr = "127.0.0.1:40001".parse().unwrap();
    callers.note(local, 1, 1);
    let setup = Setup::new(Some(callers.clone()));
    callers.note(local, 7, 3);
    let mut teller = setup.teller();
    for peer in ["127.0.0.1:40001", "[::ffff:127.0.0.1]:40001", "127.0.0.1:40002", "nonsense", "127.0.0.1:x"]
    {
        writeln!(teller, r#"{{"stage":"done","request":1,"peer":"{peer}"}}"#).unwrap();
    }
    writeln!(teller, r#"{{"stage":"done","request":1}}"#).unwrap();
    drop(teller);
    let found: Vec<_> = setup.end().iter().map(|item| (item.stream, item.conn)).collect();
    let none = (None, None);
    let it = (Some(7), Some(3));
    assert_eq!(found, [it, it, none, none, none, none]);
}

#[test]
fn more_tellers_than_agreed_are_turned_away_and_the_others_go_on() {
    let setup = Setup::new(None);
    let mut tellers: Vec<_> = (0..TELLERS + 4).map(|_| setup.teller()).collect();
    let mut told = 0;
    for (n, teller) in tellers.iter_mut().enumerate() {
        // One that was turned away may find that out at once or later.
        told += usize::from(writeln!(teller, "{n}").is_ok());
    }
    drop(tellers);
    let items = setup.end();
    assert!(items.len() <= TELLERS.min(told) && !items.is_empty(), "{} of {told}", items.len());
}

#[test]
fn a_teller_that_never_pauses_does_not_hold_up_the_end() {
    let setup = Setup::new(None);
    let mut teller = setup.teller();
    let flood = thread::spawn(move || while teller.write_all(&[b'x'; 1 << 12]).is_ok() {});
    let (ended, waits) = std::sync::mpsc::channel();
    let watch = thread::spawn(move || ended.send(setup.end().len()).unwrap());
    waits.recv_timeout(LIMIT).unwrap();
    watch.join().unwrap();
    flood.join().unwrap();
}

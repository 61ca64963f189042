//! How long a server is waited for, and what follows.

use super::*;

const WAITS: Waits = Waits { term: Ms(1000), kill: Ms(500), drain: Ms(200), leftover: Ms(100) };

const OPEN: Seen = Seen { are_pipes_ended: false, are_pipes_delivered: false, delivered_bytes: 0 };
const ENDED: Seen = Seen { are_pipes_ended: true, are_pipes_delivered: true, delivered_bytes: 0 };
const DELIVERED: Seen = Seen { are_pipes_ended: false, are_pipes_delivered: true, delivered_bytes: 0 };

/// What happens to the machine.
#[derive(Clone, Copy)]
enum Told {
    StdinClosed,
    StdoutClosed,
    Exited,
    Hurry,
}
use Told::{Exited, Hurry, StdinClosed, StdoutClosed};

/// Runs the machine alone against the clock: it is told things at the given ms, sees `seen`
/// always, and the group dies of `dies_of` after the server has ended. Returns what it did and
/// when.
fn check(told: &[(u64, Told)], seen: Seen, dies_of: Option<Signal>, expected: &[(u64, &str)]) {
    let mut ending = Ending::new(WAITS);
    let (mut now, mut done) = (Mono(0), Vec::new());
    let mut is_group_alive = dies_of.is_some();
    let mut told = told.iter().peekable();
    'clock: loop {
        while let Some((_, what)) = told.next_if(|(at, _)| Mono(0).plus(Ms(*at)) <= now) {
            match what {
                StdinClosed => ending.stdin_closed(now),
                StdoutClosed => ending.stdout_closed(now),
                Exited => ending.exited(now),
                Hurry => ending.hurry(),
            }
        }
        while let Some(act) = ending.next(now, seen, || is_group_alive) {
            let text = match &act {
                Act::Send { signal, why } => {
                    is_group_alive &= Some(*signal) != dies_of;
                    format!("{} {why}", if *signal == Signal::TERM { "TERM" } else { "KILL" })
                }
                other => format!("{other:?}"),
            };
            done.push((now.to_ms().0, text));
            if act == Act::Finish {
                break 'clock;
            }
        }
        let due = ending.patience(now).map(|wait| Mono(now.0 + u64::try_from(wait.as_nanos()).unwrap()));
        let next = told.peek().map(|(at, _)| Mono(0).plus(Ms(*at)));
        now = match due.into_iter().chain(next).min() {
            Some(at) if at.to_ms() <= Ms(60_000) => at,
            _ => break,
        };
    }
    let done: Vec<_> = done.iter().map(|(at, text)| (*at, text.as_str())).collect();
    assert_eq!(done, expected);
}

#[test]
fn a_server_that_obeys_eof_ends_without_a_signal() {
    let expected = [(30, "ReportExit"), (30, "Finish")];
    check(&[(10, StdinClosed), (25, StdoutClosed), (30, Exited)], ENDED, None, &expected);
}

#[test]
fn a_server_that_ignores_eof_is_terminated_and_then_killed() {
    let expected = [(1010, "TERM stdin closed 1000 ms ago"), (1510, "KILL SIGTERM sent 500 ms ago")];
    check(&[(10, StdinClosed)], OPEN, None, &expected);
}

#[test]
fn a_server_whose_client_stays_is_never_signalled() {
    check(&[], OPEN, None, &[]);
    check(&[(5, Hurry)], OPEN, None, &[]);
}

#[test]
fn an_end_of_stdout_waits_a_moment_for_the_exit_status() {
    check(&[(100, StdoutClosed)], OPEN, None, &[(120, "ReportStdoutClosed")]);
    check(&[(100, StdoutClosed), (119, Exited)], ENDED, None, &[(119, "ReportExit"), (119, "Finish")]);
}

#[test]
fn a_pipe_held_by_another_process_is_drained_and_then_left() {
    let exited = [(100, Exited)];
    check(&exited, DELIVERED, None, &[(300, "ReportExit"), (300, "Finish")]);
}

#[test]
fn bytes_that_the_client_has_not_taken_are_waited_for() {
    check(&[(100, Exited)], OPEN, None, &[]);
    check(&[(100, Exited), (700, Hurry)], OPEN, None, &[(700, "ReportExit"), (700, "Finish")]);
}

#[test]
fn what_the_server_left_in_its_group_does_not_outlive_the_tap() {
    let term = (100, "TERM left over after the server's end");
    let report = (100, "ReportExit");
    check(&[(100, Exited)], ENDED, Some(Signal::TERM), &[report, term, (100, "Finish")]);
    let kill = (200, "KILL left over, SIGTERM sent 100 ms ago");
    check(&[(100, Exited)], ENDED, Some(Signal::KILL), &[report, term, kill, (200, "Finish")]);
}

#[test]
fn a_client_that_asked_for_the_end_and_reads_nothing_is_not_waited_for() {
    check(&[(0, Hurry), (100, Exited)], OPEN, None, &[(2100, "ReportExit"), (2100, "Finish")]);
    // One that did not ask may take its time.
    check(&[(100, Exited)], OPEN, None, &[]);
}

#[test]
fn a_client_that_asked_for_the_end_and_goes_on_reading_gets_it_all() {
    let mut ending = Ending::new(WAITS);
    ending.hurry();
    ending.exited(Mono(0));
    for step in 1..50 {
        let seen = Seen { delivered_bytes: step, ..OPEN };
        assert_eq!(ending.next(Mono(0).plus(Ms(step * 1900)), seen, || false), None);
    }
}

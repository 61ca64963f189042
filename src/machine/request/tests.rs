//! Every cell of the two views, and their properties.

use proptest::prelude::*;

use super::*;
use ServerState::{Cancelled, Completed, InProgress};

/// A request in one of the three states of its server; the first response was 1.
fn server(state: ServerState) -> ServerRequest<u8> {
    let mut request = ServerRequest::new(true);
    assert!(request.progress(1.0));
    match state {
        InProgress => {}
        Completed => assert!(request.complete(1).is_emitted()),
        Cancelled => assert_eq!(request.cancel(Some("first")), CancelEffect::Cancelled),
    }
    request
}

#[test]
fn the_server_view_holds_in_every_cell() {
    // State; then: is rising progress told; what a cancel does; what a second response meets.
    let cells = [
        (InProgress, true, CancelEffect::Cancelled, Completion::Emit(&2)),
        (Completed, false, CancelEffect::Ignored, Completion::Stored(&1)),
        (Cancelled, false, CancelEffect::Ignored, Completion::Suppressed),
    ];
    for (state, is_told, effect, completion) in cells {
        assert_eq!(server(state).progress(2.0), is_told, "{state:?}");
        assert_eq!(server(state).cancel(Some("second")), effect, "{state:?}");
        assert_eq!(server(state).complete(2), completion, "{state:?}");
        assert_eq!(server(state).state(), state);
    }
    let mut cancelled = server(Cancelled);
    cancelled.cancel(Some("second"));
    assert_eq!((cancelled.reason(), cancelled.response()), (Some("first"), None));
    let mut completed = server(Completed);
    completed.complete(2);
    assert_eq!((completed.reason(), completed.response()), (None, Some(&1)));
}

#[test]
fn progress_is_told_only_while_running_rising_and_asked_for() {
    let mut request = ServerRequest::<()>::new(true);
    let values = [0.0, 1.0, 1.0, 0.5, f64::NAN, 1.5, -1.0, f64::INFINITY, f64::INFINITY];
    let told = values.map(|value| request.progress(value));
    assert_eq!(told, [true, true, false, false, false, true, false, true, false]);
    assert!(!ServerRequest::<()>::new(false).progress(1.0));
}

fn unstoppable() -> ServerRequest<u8> {
    let mut request = ServerRequest::new(true);
    request.make_unstoppable();
    request
}

#[test]
fn work_that_cannot_be_stopped_runs_on_in_silence() {
    let mut request = unstoppable();
    assert_eq!(request.cancel(Some("enough")), CancelEffect::NotHonoured);
    assert_eq!(request.cancel(Some("again")), CancelEffect::Ignored);
    assert_eq!((request.state(), request.is_cancel_unhonoured()), (InProgress, true));
    assert!(!request.progress(1.0));
    assert_eq!(request.complete(7), Completion::Suppressed);
    assert_eq!((request.state(), request.response()), (Completed, Some(&7)));
    assert_eq!((request.reason(), request.is_cancel_unhonoured()), (Some("enough"), true));
    // A request that nobody gave up is told as any other.
    assert!(unstoppable().complete(7).is_emitted());
    assert!(!server(Cancelled).is_cancel_unhonoured() && !server(InProgress).is_cancel_unhonoured());
}

fn client() -> ClientRequest {
    ClientRequest::new(Deadlines::new(Ms(0), Ms(10), Ms(20)).unwrap())
}

#[test]
fn what_comes_after_giving_up_is_counted_and_dropped() {
    let mut request = client();
    assert!(request.abandon("enough"));
    assert!(!request.answer() && !request.answer() && !request.abandon("again"));
    assert_eq!(request.progress(1.0, Ms(1)), Heard::Late);
    assert_eq!((request.state(), request.due_at()), (ClientState::Abandoned, None));
    assert_eq!((request.reason(), request.dropped()), (Some("enough"), 3));
    assert_eq!(request.expire(Ms(99)), None);
}

#[test]
fn a_clock_that_fires_gives_up_with_its_name() {
    let cases = [
        (&[][..], 9, None),
        (&[], 10, Some("idle timeout")),
        (&[9, 18], 19, None),
        (&[9, 18], 20, Some("maximum timeout")),
    ];
    for (progress, now, reason) in cases {
        let mut request = client();
        for (value, at) in (1i32..).zip(progress) {
            assert_eq!(request.progress(value.into(), Ms(*at)), Heard::Accepted);
        }
        assert_eq!(request.expire(Ms(now)).map(Fired::as_str), reason, "{progress:?} {now}");
        assert_eq!(request.reason(), reason);
        assert_eq!(request.answer(), reason.is_none());
    }
}

proptest! {
    /// Whatever the order, exactly one terminal event wins, it is the first, and nothing is told
    /// after it.
    #[test]
    fn the_first_terminal_event_of_a_server_wins(
        events in prop::collection::vec(0u8..3, 0..20),
        is_stoppable: bool,
    ) {
        let mut request = if is_stoppable { ServerRequest::new(true) } else { unstoppable() };
        let (mut expected, mut is_given_up) = (InProgress, false);
        for (event, k) in events.into_iter().zip(0u8..) {
            let is_open = expected == InProgress;
            match event {
                0 => prop_assert_eq!(request.progress(k.into()), is_open && !is_given_up),
                1 => {
                    let is_effective = request.cancel(None) != CancelEffect::Ignored;
                    prop_assert_eq!(is_effective, is_open && !is_given_up);
                    if is_effective {
                        is_given_up = true;
                        if is_stoppable {
                            expected = Cancelled;
                        }
                    }
                }
                _ => {
                    let first = request.response().copied();
                    prop_assert_eq!(request.complete(k).is_emitted(), is_open && !is_given_up);
                    if is_open {
                        expected = Completed;
                    }
                    prop_assert!(first.is_none() || first == request.response().copied());
                }
            }
            prop_assert_eq!(request.state(), expected);
        }
    }

    /// The same for the client: one end, the first, and every later message is counted.
    #[test]
    fn the_first_terminal_event_of_a_client_wins(events in prop::collection::vec((0u8..4, 0u64..8), 0..20)) {
        let (mut request, mut expected, mut now, mut dropped) = (client(), ClientState::Waiting, 0, 0);
        for (event, wait) in events {
            now += wait;
            let is_open = expected == ClientState::Waiting;
            let end = match event {
                0 => {
                    let heard = request.progress(f64::from(u32::try_from(now).unwrap()), Ms(now));
                    prop_assert_eq!(heard == Heard::Late, !is_open);
                    dropped += u64::from(!is_open);
                    None
                }
                1 => {
                    dropped += u64::from(!is_open);
                    request.answer().then_some(ClientState::Answered)
                }
                2 => request.abandon("enough").then_some(ClientState::Abandoned),
                _ => request.expire(Ms(now)).map(|_| ClientState::Abandoned),
            };
            prop_assert!(end.is_none() || is_open);
            expected = end.unwrap_or(expected);
            prop_assert_eq!((request.state(), request.dropped()), (expected, dropped));
        }
    }
}

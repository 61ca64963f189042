//! Streams and pipes: pace, silence, queues, and who ended them.

use super::*;
use crate::event::What;
use crate::model::script::{MODERN, Script, call, result};

const MODERN_HEADERS: &[(&str, &str)] = &[("mcp-protocol-version", "2026-07-28")];
const SSE_HEADERS: &[(&str, &str)] = &[("content-type", "text/event-stream")];

fn progress(value: u64) -> String {
    let text = format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":"p","progress":{value}}}}}"#
    );
    format!("data: {text}\n\n")
}

/// A call with a token on stream 1, and the head of its event stream.
fn stream() -> Script {
    let mut script = Script::default();
    let meta = MODERN.replacen('{', r#"{"progressToken":"p","#, 1);
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"a",{meta}}}}}"#);
    script.post(0, 1, MODERN_HEADERS, &body).head(10, 1, 200, SSE_HEADERS);
    script
}

const fn ns(ms: u64) -> u64 {
    ms * 1_000_000
}

#[test]
fn a_stream_is_measured_from_its_head_to_its_end() {
    let mut script = stream();
    script.sse(100, 1, ":\n\n").sse(20_100, 1, ":\n\n").sse(60_100, 1, &progress(1));
    script.sse(61_000, 1, &format!("data: {}\n\n", result("1"))).server_closed(61_500, Some(1));
    let model = script.fold();
    let flow = &model.flows()[0];
    assert_eq!((flow.messages, flow.comments, flow.stream), (2, 2, Some(1)));
    assert_eq!(flow.comment_cadence_ns(), Some(ns(20_000)));
    assert_eq!(flow.longest_silence_ns, ns(40_000));
    assert_eq!((flow.opened, flow.answered), (Mono(ns(10)), Some(Mono(ns(61_000)))));
    assert_eq!(flow.ended(), Some((Dir::S2c, Mono(ns(61_500)))));
    assert_eq!(flow.silence_ns(Mono(ns(99_000))), ns(500));
    let bytes = script.events.iter().map(|event| match &event.what {
        What::SseChunk(bytes) => bytes.len() as u64,
        _ => 0,
    });
    assert_eq!(flow.bytes, bytes.sum::<u64>());
}

#[test]
fn who_goes_first_ends_a_stream_and_what_comes_then_is_counted() {
    let mut script = stream();
    script.client_closed(100, Some(1)).sse(200, 1, &progress(1)).server_closed(300, Some(1));
    let model = script.fold();
    let flow = &model.flows()[0];
    assert_eq!(flow.ended(), Some((Dir::C2s, Mono(ns(100)))));
    assert_eq!(flow.bytes_after_left(), progress(1).len() as u64);
    assert_eq!(flow.server_ended, Some(Mono(ns(300))));
    let seen: Vec<_> =
        model.seen().iter().filter(|seen| matches!(seen.what, Sight::StreamClosed { .. })).collect();
    assert!(seen.is_empty(), "the second end is no end");
}

/// Pieces as (ms, text); messages, progress and pause of the burst.
type BurstRow = (Vec<(u64, String)>, Option<(u32, u32, u64)>);

#[test]
fn several_messages_at_once_after_a_pause_are_a_burst() {
    let steps = |values: std::ops::Range<u64>| values.map(progress).collect::<String>();
    let cases: Vec<BurstRow> = vec![
        // One buffer, or the pieces of one.
        (vec![(16_010, steps(1..9))], Some((8, 8, 16_000))),
        (vec![(5_010, steps(1..3)), (5_030, steps(3..5)), (5_070, steps(5..6))], Some((4, 4, 5_000))),
        // Values that do not rise were not reported one after the other.
        (vec![(5_010, progress(1) + &progress(1) + &progress(2))], Some((3, 2, 5_000))),
        // The largest of two.
        (vec![(3_000, steps(1..3)), (6_000, steps(3..9)), (9_000, steps(9..11))], Some((6, 6, 3_000))),
        // Steady, or quick from the beginning.
        ((1..9).map(|nth| (nth * 3_000, progress(nth))).collect(), None),
        (vec![(20, steps(1..9))], None),
    ];
    for (pieces, expected) in cases {
        let mut script = stream();
        for (ms, text) in &pieces {
            script.sse(*ms, 1, text);
        }
        let burst = script.fold().flows()[0].burst();
        let found = burst.map(|burst| (burst.messages, burst.progress, burst.after_ns / ns(1)));
        assert_eq!(found, expected, "{pieces:?}");
    }
}

#[test]
fn a_gauge_says_whose_queue_and_how_high_it_stood() {
    let reading = |events, bytes| Queue { events, bytes, ..Queue::default() };
    let mut script = stream();
    for (ms, queue) in [(20, reading(1, 10)), (30, reading(2, 5)), (40, reading(2, 9)), (50, reading(0, 0))] {
        script.push(ms, Dir::S2c, Some(1), What::Queue(queue));
    }
    let model = script.fold();
    let gauge = model.flows()[0].gauge().unwrap();
    assert_eq!((gauge.whose, gauge.high_events, gauge.high_bytes, gauge.rising), (Whose::Tap, 2, 10, 0));
    assert_eq!(gauge.last, reading(0, 0));
    let told = r#"{"stage":"queue_depth","request":1,"events":7,"capacity":5}"#;
    script.push(60, Dir::S2c, Some(1), What::Telemetry(told.to_owned()));
    let model = script.fold();
    let gauge = model.flows()[0].gauge().unwrap();
    assert_eq!((gauge.whose, gauge.last.events, gauge.last.capacity), (Whose::Server, 7, Some(5)));
    // Both go on side by side, each with marks of its own.
    script.push(70, Dir::S2c, Some(1), What::Queue(reading(3, 1)));
    let model = script.fold();
    let flow = &model.flows()[0];
    let high = |whose| flow.gauge_of(whose).map(|gauge| (gauge.high_events, gauge.high_bytes));
    assert_eq!((high(Whose::Tap), high(Whose::Server)), (Some((3, 10)), Some((7, 0))));
    assert_eq!(flow.gauge().unwrap().whose, Whose::Tap);
}

#[test]
fn an_answer_that_is_no_event_stream_has_a_flow_once_it_waits() {
    let mut script = Script::default();
    script.post(0, 1, MODERN_HEADERS, &call("1", "a"));
    script.head(1, 1, 200, &[("content-type", "application/json")]).body(2, 1, &result("1"));
    assert!(script.fold().flows().is_empty());
    script.push(3, Dir::S2c, Some(1), What::Queue(Queue { blocked_ms: 5, ..Queue::default() }));
    assert_eq!(script.fold().flows()[0].gauge().unwrap().last.blocked_ms, 5);
}

#[test]
fn the_pipes_of_a_process_are_flows_and_slow_writes_are_kept() {
    let mut script = Script::default();
    script.line(0, Dir::C2s, &call("1", "a")).line(5, Dir::Stderr, "hello").line(700, Dir::S2c, &result("1"));
    script.events[2].out = Some(Mono(ns(900)));
    script.client_closed(800, None).server_closed(900, None);
    let model = script.fold();
    let scope = model.scopes().last().unwrap();
    let flow = |dir| model.flow(scope.pipe(dir).unwrap()).unwrap();
    assert_eq!((flow(Dir::C2s).messages, flow(Dir::S2c).messages, flow(Dir::Stderr).bytes), (1, 1, 6));
    assert_eq!(flow(Dir::S2c).slowest_write(), Some(SlowWrite { ns: ns(200), n: 3 }));
    assert_eq!(flow(Dir::C2s).ended(), Some((Dir::C2s, Mono(ns(800)))));
    assert_eq!(flow(Dir::S2c).ended(), Some((Dir::S2c, Mono(ns(900)))));
    assert_eq!(model.flow_of(&model.calls()[0]), scope.pipe(Dir::S2c));
}

#[test]
fn flows_stay_small() {
    assert!(size_of::<Flow>() <= 200, "{}", size_of::<Flow>());
}

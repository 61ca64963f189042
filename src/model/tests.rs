//! Events in, lifecycles out.

use bytes::Bytes;
use proptest::prelude::*;

use super::script::{MODERN, Script, any_script, call, cancel, result};
use super::*;
use crate::event::{Dir, Headers, RequestHead, What};
use crate::spec::era::Era;

const MODERN_HEADERS: &[(&str, &str)] = &[("mcp-protocol-version", "2026-07-28")];
const SSE_HEADERS: &[(&str, &str)] = &[("content-type", "text/event-stream")];

fn states(model: &Model) -> Vec<(String, CallState)> {
    model.calls().iter().map(|call| (call.id.to_string(), call.state)).collect()
}

#[test]
fn a_stdio_call_is_paired_by_id_and_type() {
    let mut script = Script::default();
    script.line(0, Dir::C2s, &call("1", "echo")).line(1, Dir::C2s, &call("\"1\"", "slow"));
    script.line(2, Dir::S2c, &result("\"1\""));
    let model = script.fold();
    assert_eq!(
        states(&model),
        [("1".to_owned(), CallState::Delivered), ("\"1\"".to_owned(), CallState::AnsweredOk)]
    );
    let second = &model.calls()[1];
    assert_eq!(second.target.map(|name| model.text(name)), Some("slow"));
    assert_eq!(second.era, Some(Era::V2026_07_28));
    assert_eq!(second.ended.unwrap().ns_since(second.started), 1_000_000);
    assert_eq!(model.overview().counts.open, 1);
}

#[test]
fn lines_are_put_together_and_found_again_wherever_they_were_cut() {
    let whole = format!("{}\n{}\r\n{}\n", call("1", "a"), call("2", "b"), call("3", "c"));
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    for size in [1, 7, 64, 150, whole.len()] {
        let mut script = Script::default();
        for (nth, piece) in whole.as_bytes().chunks(size).enumerate() {
            script.bytes(nth as u64, Dir::C2s, piece);
        }
        let model = script.fold();
        let found: Vec<Bytes> = model
            .rows()
            .iter()
            .map(|row| {
                let span = row.source.first as usize..=row.source.last as usize;
                bytes_of(row, &script.events[span])
            })
            .collect();
        assert_eq!(found, lines, "pieces of {size}");
    }
}

#[test]
fn events_of_a_stream_are_found_again_plain_and_compressed() {
    let text = format!(": hi\n\ndata: {}\n\n", result("1"));
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut gzip, text.as_bytes()).unwrap();
    let encoded = gzip.finish().unwrap();
    for (coding, bytes) in [("identity", text.as_bytes()), ("gzip", &encoded)] {
        let mut script = Script::default();
        script.post(0, 1, MODERN_HEADERS, &call("1", "a"));
        script.head(1, 1, 200, &[("content-type", "text/event-stream"), ("content-encoding", coding)]);
        for (nth, piece) in bytes.chunks(11).enumerate() {
            script.push(2 + nth as u64, Dir::S2c, Some(1), What::SseChunk(Bytes::copy_from_slice(piece)));
        }
        script.server_closed(99, Some(1));
        let model = script.fold();
        assert_eq!(states(&model), [("1".to_owned(), CallState::AnsweredOk)], "{coding}");
        let row = model.rows().iter().find(|row| row.kind == RowKind::Result).unwrap();
        let span = row.source.first as usize..=row.source.last as usize;
        assert_eq!(bytes_of(row, &script.events[span]), format!("data: {}\n\n", result("1")), "{coding}");
    }
}

#[test]
fn a_cancel_ends_a_call_and_what_comes_after_is_late_or_crossed() {
    for (after_ms, race) in [(100, Verdict::Crossed), (600, Verdict::LateResponse)] {
        let mut script = Script::default();
        script.line(0, Dir::C2s, &call("1", "slow")).line(50, Dir::C2s, &cancel("1"));
        script.line(50 + after_ms, Dir::S2c, &result("1"));
        let model = script.fold();
        let call = &model.calls()[0];
        assert_eq!((call.state, call.verdict()), (CallState::CancelledByClient, Some(race)), "{after_ms} ms");
        assert_eq!((call.client, call.server), (ClientView::Abandoned, ServerView::Completed));
        assert_eq!(call.cancel_reason.map(|name| model.text(name)), Some("user"));
    }
}

#[test]
fn a_witness_decides_without_the_window() {
    let mut script = Script::default();
    script.line(0, Dir::C2s, &call("1", "slow")).line(10, Dir::C2s, &cancel("1"));
    script.line(11, Dir::C2s, &call("2", "quick")).line(12, Dir::S2c, &result("2"));
    script.line(13, Dir::S2c, &result("1"));
    assert_eq!(script.fold().calls()[0].verdict(), Some(Verdict::LateResponse));
}

#[test]
fn an_answer_before_the_cancel_wins() {
    let mut script = Script::default();
    script.line(0, Dir::C2s, &call("1", "slow")).line(10, Dir::S2c, &result("1"));
    script.line(11, Dir::C2s, &cancel("1"));
    let model = script.fold();
    let call = &model.calls()[0];
    assert_eq!((call.state, call.verdict()), (CallState::AnsweredOk, Some(Verdict::CompleteWon)));
    assert_eq!(call.after.late_cancels, 1);
}

#[test]
fn leaving_an_exchange_is_a_cancel_in_the_modern_era_only() {
    let legacy: &[(&str, &str)] = &[("mcp-protocol-version", "2025-11-25"), ("mcp-session-id", "s")];
    for (headers, state) in
        [(MODERN_HEADERS, CallState::AbandonedByDisconnect), (legacy, CallState::Unresolved)]
    {
        let mut script = Script::default();
        script.post(0, 1, headers, r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}"#);
        script.head(1, 1, 200, SSE_HEADERS).sse(2, 1, "id: e1\ndata:\n\n");
        script.client_closed(3, Some(1)).end(9);
        assert_eq!(states(&script.fold()), [("1".to_owned(), state)]);
    }
}

#[test]
fn a_stream_taken_up_by_event_id_brings_the_answer() {
    let headers: &[(&str, &str)] = &[("mcp-protocol-version", "2025-11-25"), ("mcp-session-id", "s")];
    let mut script = Script::default();
    script.post(0, 1, headers, r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}"#);
    script.head(1, 1, 200, SSE_HEADERS).sse(2, 1, "id: e1\ndata:\n\n").server_closed(3, Some(1));
    script.get(4, 2, &[headers[0], headers[1], ("last-event-id", "e1")]).head(5, 2, 200, SSE_HEADERS);
    script
        .sse(6, 2, "id: e2\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n")
        .server_closed(7, Some(2));
    assert_eq!(states(&script.fold()), [("1".to_owned(), CallState::AnsweredOk)]);
}

#[test]
fn a_process_that_ends_loses_what_is_open() {
    let mut script = Script::default();
    script.line(0, Dir::C2s, &call("1", "slow")).line(1, Dir::C2s, &call("2", "slow"));
    script.line(2, Dir::S2c, &result("2")).server_closed(3, None);
    let model = script.fold();
    assert_eq!(states(&model), [("1".to_owned(), CallState::Lost), ("2".to_owned(), CallState::AnsweredOk)]);
    assert_eq!(model.calls()[0].server, ServerView::Gone);
    assert_eq!(model.overview().counts.lost, 1);
}

#[test]
fn a_process_that_is_started_again_knows_the_one_before() {
    let spawn = |pid| What::Spawn { pid, command: vec!["server".to_owned()] };
    let signal = || What::Signal { signal: "SIGTERM".to_owned(), why: "passed on".to_owned() };
    let mut script = Script::default();
    script.push(0, Dir::Tap, None, spawn(1)).line(1, Dir::C2s, &call("1", "a"));
    script.push(2, Dir::Tap, None, signal()).push(3, Dir::Tap, None, signal()).server_closed(4, None);
    script.push(5, Dir::Tap, None, spawn(2));
    let model = script.fold();
    let facts = |scope: &Scope| (scope.process.pid, scope.process.signals, scope.process.before);
    let found: Vec<_> = model.scopes().iter().skip(1).map(facts).collect();
    assert_eq!(found, [(Some(1), 2, None), (Some(2), 0, Some(ScopeIdx(1)))]);
}

#[test]
fn the_same_call_again_after_a_loss_is_a_retry() {
    let mut script = Script::default();
    script.line(0, Dir::C2s, &call("1", "slow")).line(1, Dir::C2s, &cancel("1"));
    script.line(2, Dir::C2s, &call("2", "slow")).line(3, Dir::C2s, &call("3", "slow"));
    let model = script.fold();
    let links: Vec<_> = model.calls().iter().map(|call| call.retry_of).collect();
    assert_eq!(links, [None, Some(CallIdx(0)), None]);
    for call in [0, 1] {
        assert_eq!(model.attempts(CallIdx(call)), [CallIdx(0), CallIdx(1)]);
    }
    assert_eq!(model.attempts(CallIdx(2)), [CallIdx(2)]);
}

#[test]
fn rounds_are_linked_by_their_state() {
    let mut script = Script::default();
    script.line(0, Dir::C2s, &call("1", "book"));
    script.line(
        1,
        Dir::S2c,
        r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","requestState":"x","inputRequests":{}}}"#,
    );
    let again = format!(
        r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"book","arguments":{{"a":1}},"inputResponses":{{}},"requestState":"x",{MODERN}}}}}"#
    );
    script.line(2, Dir::C2s, &again);
    let model = script.fold();
    assert_eq!(model.calls()[0].state, CallState::InputRequired);
    assert_eq!(model.calls()[1].round_of, Some(CallIdx(0)));
    assert_eq!(model.calls()[1].retry_of, None);
}

#[test]
fn a_message_over_several_lines_is_one_row() {
    let mut script = Script::default();
    script.line(0, Dir::C2s, &call("1", "a"));
    let text = "{\n  \"jsonrpc\": \"2.0\",\n  \"id\": 1,\n  \"result\": {\n    \"content\": []\n  }\n}\n";
    script.bytes(1, Dir::S2c, text.as_bytes());
    let model = script.fold();
    assert_eq!(states(&model), [("1".to_owned(), CallState::AnsweredOk)]);
    let row = model.rows().last().unwrap();
    assert_eq!(bytes_of(row, &script.events[1..]), text);
}

#[test]
fn ids_of_both_directions_are_apart() {
    let mut script = Script::default();
    script.line(0, Dir::C2s, &call("1", "a"));
    script.line(1, Dir::S2c, r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    script.line(2, Dir::C2s, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    let model = script.fold();
    let states: Vec<_> = model.calls().iter().map(|call| (call.sender, call.state)).collect();
    assert_eq!(states, [(Dir::C2s, CallState::Delivered), (Dir::S2c, CallState::AnsweredOk)]);
}

#[test]
fn a_refusing_status_answers_a_call() {
    let mut script = Script::default();
    script.post(0, 1, MODERN_HEADERS, &call("1", "a")).head(1, 1, 502, &[("content-type", "text/html")]);
    script.body(2, 1, "<html></html>").server_closed(3, Some(1));
    let model = script.fold();
    let call = &model.calls()[0];
    assert_eq!((call.state, call.status), (CallState::AnsweredError, Some(502)));
}

/// HTTP+SSE: a session on exchange 1 with an accepted request on exchange 2.
fn http_sse() -> Script {
    let mut script = Script::default();
    script.get(0, 1, &[]).head(1, 1, 200, SSE_HEADERS);
    script.sse(2, 1, "event: endpoint\ndata: http://127.0.0.1:9/mcp?s=1\n\n");
    let head = RequestHead {
        method: "POST".to_owned(),
        path: "/mcp?s=1".to_owned(),
        headers: Headers::default(),
        body: Some(Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#)),
    };
    script.push(3, Dir::C2s, Some(2), What::Request(head)).head(4, 2, 202, &[]).server_closed(5, Some(2));
    script
}

#[test]
fn bodies_of_other_protocols_are_no_messages() {
    use RowKind::{HttpBody, HttpHead, HttpRequest, ServerClosed};

    let mut script = Script::default();
    script.post(0, 1, &[], r#"{"redirect_uris":["http://127.0.0.1/cb"],"client_name":"x"}"#);
    script.head(1, 1, 201, &[("content-type", "application/json")]).body(2, 1, r#"{"client_id":"y"}"#);
    script.server_closed(3, Some(1));
    let kinds: Vec<_> = script.fold().rows().iter().map(|row| row.kind).collect();
    assert_eq!(kinds, [HttpRequest, HttpHead, HttpBody, ServerClosed]);
}

#[test]
fn http_sse_answers_on_its_stream() {
    let mut script = http_sse();
    assert_eq!(states(&script.fold()), [("1".to_owned(), CallState::Delivered)]);
    script.sse(6, 1, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n");
    assert_eq!(states(&script.fold()), [("1".to_owned(), CallState::AnsweredOk)]);
}

#[test]
fn an_open_call_of_http_sse_is_lost_when_the_server_ends_the_stream_and_abandoned_when_the_client_does() {
    let lost = http_sse().server_closed(6, Some(1)).fold();
    let abandoned = http_sse().client_closed(6, Some(1)).server_closed(7, Some(1)).fold();
    let ends = [&lost, &abandoned].map(|model| {
        let call = &model.calls()[0];
        (call.state, call.client, call.server)
    });
    let server_gone = (CallState::Lost, ClientView::Waiting, ServerView::Gone);
    let client_left = (CallState::AbandonedByDisconnect, ClientView::Abandoned, ServerView::Unknown);
    assert_eq!(ends, [server_gone, client_left]);
}

proptest! {
    #[test]
    fn any_order_of_events_gives_each_call_one_terminal_state(script in any_script()) {
        let mut model = Model::new();
        let mut ended: Vec<Option<CallState>> = Vec::new();
        for (idx, event) in script.events.iter().enumerate() {
            model.fold(event, u32::try_from(idx).unwrap());
            ended.resize(model.calls().len(), None);
            for (call, ended) in model.calls().iter().zip(&mut ended) {
                if let Some(state) = ended {
                    prop_assert_eq!(call.state, *state, "a terminal state changed");
                } else if call.state.is_terminal() {
                    *ended = Some(call.state);
                }
            }
        }
        prop_assert!(ended.iter().all(Option::is_some), "a call is open after the end");
        prop_assert_eq!(model.overview().counts.open, 0);
        prop_assert!(model.scopes().iter().all(|scope| scope.open_calls() == 0));
    }
}

#[test]
fn records_stay_small() {
    // A million rows stand in memory: a field more is a decision, not an accident.
    // A call holds its id and its first two marks itself, which cost 80 bytes elsewhere before.
    assert!(size_of::<Row>() <= 104 && size_of::<Call>() <= 360 && size_of::<Mark>() <= 16);
}

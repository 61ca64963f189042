//! Rounds on small recordings: which request goes on with which, and what is kept of them.

use super::*;
use crate::event::Dir::{C2s, S2c};
use crate::model::script::{MODERN, Script};

/// A call of a tool, with more members of its params.
fn call(id: u32, tool: &str, more: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{}},{more}{MODERN}}}}}"#
    )
}

fn asks(id: u32, more: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"input_required"{more},"inputRequests":{{"who":{{"method":"roots/list"}}}}}}}}"#
    )
}

const GIVEN: &str = r#""inputResponses":{"who":{"roots":[]}},"#;

/// For each call the one that it goes on with, and how far its chain has come.
fn chain(lines: &[(crate::event::Dir, String)]) -> Vec<(Option<u32>, u32)> {
    let mut script = Script::default();
    for (ms, (dir, line)) in (0..).zip(lines) {
        script.line(ms, *dir, line);
    }
    let model = script.fold();
    let nth = |idx: usize| model.round(CallIdx(u32::try_from(idx).unwrap())).map_or(0, |round| round.nth);
    let calls = model.calls().iter().enumerate();
    calls.map(|(idx, call)| (call.round_of.map(|before| before.0), nth(idx))).collect()
}

#[test]
fn a_request_goes_on_with_the_round_of_its_state_or_parameters() {
    let state = |text: &str| format!(r#","requestState":"{text}""#);
    let echo = |text: &str| format!(r#"{GIVEN}"requestState":"{text}","#);
    let cases = [
        // By its state, written with an escape or without.
        (
            vec![
                (C2s, call(1, "a", "")),
                (S2c, asks(1, &state("s/1"))),
                (C2s, call(2, "a", &echo("s\\/1"))),
                (S2c, asks(2, &state("s2"))),
                (C2s, call(3, "a", &echo("s2"))),
            ],
            vec![(None, 1), (Some(0), 2), (Some(1), 0)],
        ),
        // By its parameters, where there is no state.
        (
            vec![(C2s, call(1, "a", "")), (S2c, asks(1, "")), (C2s, call(2, "a", GIVEN))],
            vec![(None, 1), (Some(0), 0)],
        ),
        // Another state, another tool, no answers: none goes on.
        (
            vec![
                (C2s, call(1, "a", "")),
                (S2c, asks(1, &state("s"))),
                (C2s, call(2, "a", &echo("t"))),
                (C2s, call(3, "b", &echo("s"))),
                (C2s, call(4, "a", "")),
            ],
            vec![(None, 1), (None, 0), (None, 0), (None, 0)],
        ),
    ];
    for (lines, expected) in cases {
        assert_eq!(chain(&lines), expected, "{lines:#?}");
    }
}

#[test]
fn what_was_asked_and_given_is_kept_of_the_latest_rounds_only() {
    let mut script = Script::default();
    let rounds = u32::try_from(KEPT).unwrap() + 1;
    for id in 0..rounds {
        script.line(0, C2s, &call(2 * id, "a", "")).line(0, S2c, &asks(2 * id, ""));
        script.line(0, C2s, &call(2 * id + 1, "a", GIVEN));
    }
    let model = script.fold();
    let [first, .., last] = model.rounds() else { panic!("rounds") };
    assert!(first.asked().is_none() && first.given().is_none() && first.next.is_some());
    assert_eq!(last.asked().unwrap().raw(), r#"{"who":{"method":"roots/list"}}"#);
    assert_eq!(last.given().unwrap().raw(), r#"{"who":{"roots":[]}}"#);
}

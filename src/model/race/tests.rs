//! Orders of a cancel and an answer, on each transport and in each era, with the exact verdict.

use super::*;
use crate::event::What;
use crate::model::script::{MODERN, Script, cancel};
use crate::model::{Model, ServerView};

/// Where a race runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    StdioModern,
    StdioLegacy,
    HttpModern,
    HttpLegacy,
}
use Place::{HttpLegacy, HttpModern, StdioLegacy, StdioModern};

const PLACES: [Place; 4] = [StdioModern, StdioLegacy, HttpModern, HttpLegacy];
const LEGACY_HEADERS: &[(&str, &str)] = &[("mcp-protocol-version", "2025-11-25"), ("mcp-session-id", "s")];
const RESULT: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[]}}"#;

/// One step of a race: at which millisecond, and what.
#[derive(Debug, Clone, Copy)]
enum Step {
    Cancel(u64),
    Answer(u64),
    /// Another request and its answer.
    Other(u64, u64),
    Told(u64, &'static str),
    /// midwire does something.
    Inject(u64),
    /// The server ends the answer's stream; on stdio its process.
    ServerEnd(u64),
    End(u64),
}
use Step::{Answer, Cancel, End, Inject, Other, ServerEnd, Told as Tell};

impl Place {
    fn is_http(self) -> bool {
        matches!(self, HttpModern | HttpLegacy)
    }

    fn call(self, id: u32) -> String {
        let meta = if matches!(self, StdioModern | HttpModern) { MODERN } else { r#""_meta":{}"# };
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"a",{meta}}}}}"#)
    }

    fn headers(self) -> &'static [(&'static str, &'static str)] {
        if self == HttpModern { &[("mcp-protocol-version", "2026-07-28")] } else { LEGACY_HEADERS }
    }

    /// A call at 0 ms, and then these steps.
    fn play(self, steps: &[Step]) -> Script {
        let mut script = Script::default();
        if self == StdioLegacy {
            script.line(0, Dir::C2s, r#"{"jsonrpc":"2.0","id":"i","method":"initialize","params":{}}"#);
            script.line(
                0,
                Dir::S2c,
                r#"{"jsonrpc":"2.0","id":"i","result":{"protocolVersion":"2025-11-25"}}"#,
            );
        }
        if self.is_http() {
            script.post(0, 1, self.headers(), &self.call(1));
            script.head(1, 1, 200, &[("content-type", "text/event-stream")]);
        } else {
            script.line(0, Dir::C2s, &self.call(1));
        }
        let stream = self.is_http().then_some(1);
        for step in steps {
            match *step {
                Cancel(ms) if self == HttpModern => script.client_closed(ms, Some(1)),
                Cancel(ms) if self == HttpLegacy => script.post(ms, 9, LEGACY_HEADERS, &cancel("1")),
                Cancel(ms) => script.line(ms, Dir::C2s, &cancel("1")),
                Answer(ms) if self.is_http() => script.sse(ms, 1, &format!("data: {RESULT}\n\n")),
                Answer(ms) => script.line(ms, Dir::S2c, RESULT),
                Other(asked, answered) => {
                    script.line(asked, Dir::C2s, &self.call(2));
                    script.line(answered, Dir::S2c, &RESULT.replace(":1,", ":2,"))
                }
                Tell(ms, stage) => {
                    let text = format!(r#"{{"stage":"{stage}","request":1}}"#);
                    script.push(ms, Dir::S2c, stream, What::Telemetry(text))
                }
                Inject(ms) => {
                    let (what, target, by) = ("cancel".to_owned(), "1".to_owned(), "ctl".to_owned());
                    script.push(
                        ms,
                        Dir::Tap,
                        stream,
                        What::Inject { what, target, by, cause: None, sent: None },
                    )
                }
                ServerEnd(ms) => script.server_closed(ms, stream),
                End(ms) => script.end(ms),
            };
        }
        script
    }
}

fn race(model: &Model) -> Option<Race> {
    let call = model.calls().iter().position(|call| call.id.to_string() == "1").unwrap();
    model.race(CallIdx(u32::try_from(call).unwrap()))
}

fn check(place: Place, steps: &[Step], verdict: Option<(Verdict, Reason, Option<i64>)>, sentence: &str) {
    let race = race(&place.play(steps).fold());
    let margin_ms = |race: &Race| race.margin_ns.map(|ns| ns / 1_000_000);
    let found = race.as_ref().map(|race| (race.verdict, race.reason, margin_ms(race)));
    assert_eq!(found, verdict, "{place:?} {steps:?}");
    assert_eq!(race.map(|race| race.sentence()).unwrap_or_default(), sentence, "{place:?} {steps:?}");
}

#[test]
fn the_four_orders_have_one_verdict_on_each_transport_and_in_each_era() {
    for place in PLACES {
        let (came, after) = match place {
            HttpModern => ("the client left", "the client had left"),
            _ => ("the cancel came", "the cancel"),
        };
        check(
            place,
            &[Answer(88), Cancel(100)],
            Some((Verdict::CompleteWon, Reason::Order, Some(-12))),
            &format!("{came} 12 ms after the answer: the answer won; nobody is at fault"),
        );
        check(
            place,
            &[Cancel(100), Answer(112)],
            Some((Verdict::Crossed, Reason::Window, Some(12))),
            &format!(
                "the answer came 12 ms after {after}, within the window of 500 ms: the two crossed, and neither side can tell which was first; nobody is at fault"
            ),
        );
        check(
            place,
            &[Cancel(100), Answer(912)],
            Some((Verdict::LateResponse, Reason::Window, Some(812))),
            &format!(
                "the answer came 812 ms after {after}, more than the window of 500 ms explains: the server answered what it must have known to be cancelled; the server is at fault"
            ),
        );
        check(
            place,
            &[Cancel(100), ServerEnd(200)],
            Some((Verdict::CancelWon, Reason::StreamEnd, None)),
            &format!(
                "no answer came after {after}, and none can come any more: the cancel won; nobody is at fault"
            ),
        );
    }
}

#[test]
fn a_margin_at_the_window_is_a_crossing_and_beyond_it_is_late() {
    for place in PLACES {
        for (answer, verdict) in
            [(100, Verdict::Crossed), (600, Verdict::Crossed), (601, Verdict::LateResponse)]
        {
            let model = place.play(&[Cancel(100), Answer(answer)]).fold();
            assert_eq!(race(&model).unwrap().verdict, verdict, "{place:?} {answer}");
        }
    }
}

#[test]
fn a_window_that_the_user_sets_goes_before_the_measured_one() {
    let script = StdioModern.play(&[Cancel(100), Answer(250)]);
    for (grace, verdict) in
        [(None, Verdict::Crossed), (Some(Ms(100)), Verdict::LateResponse), (Some(Ms(150)), Verdict::Crossed)]
    {
        let mut model = Model::new();
        model.set_grace(grace);
        for (idx, event) in script.events.iter().enumerate() {
            model.fold(event, u32::try_from(idx).unwrap());
        }
        assert_eq!(race(&model).unwrap().verdict, verdict, "{grace:?}");
    }
}

#[test]
fn a_witness_decides_at_once_and_only_on_pipes() {
    for place in [StdioModern, StdioLegacy] {
        check(
            place,
            &[Cancel(100), Other(101, 102), Answer(103)],
            Some((Verdict::LateResponse, Reason::Witness, Some(3))),
            "the answer came 3 ms after the cancel, and behind the answer to a request that was written later: the server had read the cancel; the server is at fault",
        );
    }
}

#[test]
fn what_the_server_tells_decides_at_once() {
    for place in PLACES {
        let after = if place == HttpModern { "the client had left" } else { "the cancel" };
        check(
            place,
            &[Cancel(100), Tell(101, "cancel_seen"), Answer(103)],
            Some((Verdict::LateResponse, Reason::Telemetry, Some(3))),
            &format!(
                "the answer came 3 ms after {after}, which the server told that it had seen; the server is at fault"
            ),
        );
        check(
            place,
            &[Cancel(100), Tell(102, "done"), Tell(103, "cancel_seen"), Answer(999)],
            Some((Verdict::Crossed, Reason::Telemetry, Some(899))),
            &format!(
                "the answer came 899 ms after {after}, but the server was done before it saw that: the two crossed; nobody is at fault"
            ),
        );
        check(
            place,
            &[Cancel(100), Tell(101, "cancel_seen"), End(102)],
            Some((Verdict::CancelWon, Reason::Telemetry, None)),
            "the server told that it saw the cancel, and no answer came: the cancel won; nobody is at fault",
        );
    }
    let model = StdioModern.play(&[Cancel(100), Tell(101, "cancel_seen")]).fold();
    assert_eq!(model.calls()[0].server, ServerView::Cancelled);
}

#[test]
fn what_has_not_ended_is_not_decided() {
    for place in PLACES {
        let after = if place == HttpModern { "the client had left" } else { "the cancel" };
        check(place, &[], None, "");
        check(place, &[Answer(3), End(4)], None, "");
        check(
            place,
            &[Cancel(100), Tell(3_100, "checkpoint")],
            Some((Verdict::CancelWon, Reason::SoFar, None)),
            &format!(
                "no answer came in the 3000 ms seen after {after}: the cancel won, as far as can be seen; nobody is at fault"
            ),
        );
        check(
            place,
            &[Cancel(100), End(3_100)],
            Some((Verdict::CancelWon, Reason::RecordingEnd, None)),
            &format!(
                "no answer came in the 3000 ms seen after {after}: the cancel won, as far as can be seen; nobody is at fault"
            ),
        );
        check(
            place,
            &[Cancel(100), End(600_100)],
            Some((Verdict::CancelWon, Reason::Horizon, None)),
            &format!("no answer came in the 600.0 s after {after}: the cancel won; nobody is at fault"),
        );
        check(
            place,
            &[End(3_000)],
            Some((Verdict::Unresolved, Reason::RecordingEnd, None)),
            "neither an answer nor a cancel came in the 3000 ms until the end of the recording: what became of it is not known",
        );
        check(
            place,
            &[End(600_000)],
            Some((Verdict::Unresolved, Reason::Horizon, None)),
            "neither an answer nor a cancel came in 600.0 s: what became of it is not known",
        );
    }
}

#[test]
fn what_midwire_did_is_told_apart_and_blamed_on_nobody() {
    for place in PLACES {
        let model = place.play(&[Inject(50), Cancel(100), Answer(900)]).fold();
        let race = race(&model).unwrap();
        assert_eq!((race.as_str(), race.verdict), ("injected", Verdict::LateResponse), "{place:?}");
        assert!(race.sentence().ends_with("; midwire itself took part, so nobody is at fault"), "{place:?}");
    }
}

#[test]
fn who_leaves_with_the_answer_in_hand_does_not_cancel() {
    let mut script = HttpModern.play(&[Answer(88), Cancel(100)]);
    let answer = script.events.len() - 2;
    script.events[answer].out = Some(Mono(89_000_000));
    assert_eq!(race(&script.fold()), None);
}

#[test]
fn a_legacy_client_that_only_leaves_has_not_cancelled() {
    let mut script = HttpLegacy.play(&[]);
    script.client_closed(100, Some(1)).sse(2_000, 1, &format!("data: {RESULT}\n\n"));
    let model = script.fold();
    assert_eq!(race(&model), None);
    assert_eq!(model.calls()[0].after.late_answers, 1);
}

#[test]
fn the_rows_of_a_race_are_those_of_its_cancel_and_its_answer() {
    for place in PLACES {
        for steps in [[Cancel(100), Answer(112)], [Answer(88), Cancel(100)]] {
            let model = place.play(&steps).fold();
            let race = race(&model).unwrap();
            let (cancel, answer) = (race.cancel.unwrap(), race.answer.unwrap());
            assert_eq!(cancel < answer, matches!(steps[0], Cancel(_)), "{place:?}");
            assert!(race.reason.is_proof() == (race.verdict == Verdict::CompleteWon));
        }
    }
}

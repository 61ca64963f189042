//! Expectations of small recordings.

use super::*;
use crate::command::Recipe;
use crate::event::Close;
use crate::event::Dir::{C2s, S2c, Tap};
use crate::model::script::Script;
use crate::report::{Lines, Options};
use crate::rules::Judge;

/// What becomes of one expectation of a recording in which `rule 1 "f"` was applied.
fn judged(script: &Script, expectation: &str) -> Expected {
    let faults = "[[fault]]\nname = 'f'\ndo = 'drop'\n[[fault]]\nname = 'g'\ndo = 'drop'\n[[expect]]\n";
    let recipe = Recipe::parse(&format!("{faults}{expectation}")).unwrap();
    let (mut model, mut judge, mut watch) = (Model::new(), Judge::new(), Watch::default());
    for (idx, event) in script.events.iter().enumerate() {
        model.fold(event, u32::try_from(idx).unwrap());
        judge.look(&model);
        watch.look(event, &model);
    }
    let mut report = Report::new("x".to_owned(), &model, &judge, &Options::default(), Lines::default());
    watch.judge(&recipe.expectations, &model, &mut report);
    report.expected.remove(0)
}

fn inject(script: &mut Script, ms: u64, what: &str, target: &str, cause: &str) {
    let (what, target, by) = (what.to_owned(), target.to_owned(), "recipe".to_owned());
    let what = What::Inject { what, target, by, cause: Some(cause.to_owned()), sent: None };
    script.push(ms, Tap, None, what);
}

fn call(script: &mut Script, ms: u64, id: u32, cents: u32) {
    script.line(
        ms,
        C2s,
        &format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"charge","arguments":{{"cents":{cents}}}}}}}"#
        ),
    );
}

fn answer(script: &mut Script, ms: u64, id: u32) {
    script.line(ms, S2c, &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[]}}}}"#));
}

/// A call whose answer is dropped at 10 ms, and the attempts after it: time, id and cents.
fn dropped(attempts: &[(u64, u32, u32)]) -> Script {
    let mut script = Script::default();
    call(&mut script, 0, 1, 5);
    inject(&mut script, 10, "drop", "id 1", r#"rule 1 "f", seed 7, hit 1"#);
    for (ms, id, cents) in attempts {
        call(&mut script, *ms, *id, *cents);
        answer(&mut script, ms + 1, *id);
    }
    script
}

fn told(script: &mut Script, ms: u64, id: u32) {
    let text = format!(r#"{{"stage":"effect","request":{id}}}"#);
    script.push(ms, S2c, None, What::Telemetry(text));
}

/// An expectation, the attempts after the fault, and the events that show it, or why it does not hold.
type Case = (&'static str, &'static [(u64, u32, u32)], Result<&'static [u64], &'static str>);

#[test]
fn an_expectation_holds_only_when_the_recording_shows_it() {
    let retries = "that = 'retries-with-new-id'\nfault = 'f'";
    let soon = "that = 'retries-with-new-id'\nfault = 'f'\nwithin = '50ms'";
    let none = "that = 'no-retry'\nfault = 'f'";
    let answered = "that = 'answered'\nfault = 'f'";
    let cases: [Case; 14] = [
        (retries, &[(40, 2, 5)], Ok(&[2, 3])),
        (retries, &[], Err("the call was not made again (id 1)")),
        (retries, &[(40, 1, 5)], Err("with an id that was used before (id 1)")),
        (retries, &[(40, 2, 6)], Err("the call was not made again")),
        (soon, &[(59, 2, 5)], Ok(&[2, 3])),
        (soon, &[(61, 2, 5)], Err("the call was made again 51 ms after the fault")),
        (none, &[], Ok(&[2])),
        (none, &[(40, 2, 6)], Ok(&[2])),
        (none, &[(40, 2, 5)], Err("the call was made again (id 2)")),
        (answered, &[(40, 2, 5)], Ok(&[2, 3])),
        (answered, &[(40, 2, 6)], Err("the call got no answer (id 1)")),
        ("that = 'hits'\nfault = 'f'", &[], Ok(&[2])),
        ("that = 'hits'\nfault = 'f'\nleast = 2", &[], Err("it was done 1 times")),
        ("that = 'hits'\nfault = 'g'\nleast = 0\nmost = 0", &[], Ok(&[])),
    ];
    for (expectation, attempts, expected) in cases {
        let said = judged(&dropped(attempts), expectation);
        match expected {
            Ok(evidence) => {
                assert_eq!((said.is_held, said.evidence.as_slice()), (true, evidence), "{said:?}");
            }
            Err(why) => assert!(!said.is_held && said.why.as_ref().unwrap().contains(why), "{said:?}"),
        }
    }
    let never = judged(&dropped(&[]), "that = 'no-retry'\nfault = 'g'");
    assert_eq!(never.why.as_deref(), Some("the fault was never done"));
}

#[test]
fn a_side_that_is_cut_is_cut_for_the_call_that_is_named() {
    let mut script = Script::default();
    call(&mut script, 0, 1, 5);
    answer(&mut script, 9, 1);
    inject(&mut script, 10, "disconnect", "client", r#"rule 1 "f", seed 7, hit 1: id 1"#);
    let no_retry = "that = 'no-retry'\nfault = 'f'";
    assert_eq!(judged(&script, no_retry).evidence, [3]);
    call(&mut script, 20, 2, 5);
    assert!(!judged(&script, no_retry).is_held);
}

#[test]
fn one_retry_stands_for_one_call() {
    let mut script = dropped(&[]);
    call(&mut script, 20, 2, 5);
    inject(&mut script, 30, "drop", "id 2", r#"rule 1 "f", seed 7, hit 2"#);
    // More of the same application is no hit of its own.
    inject(&mut script, 31, "release", "id 2", r#"rule 1 "f", seed 7, hit 2: at the end"#);
    let said = judged(&script, "that = 'retries-with-new-id'\nfault = 'f'");
    assert_eq!(said.why.as_deref(), Some("the call was not made again (id 2)"));
    assert!(judged(&script, "that = 'hits'\nfault = 'f'\nleast = 2\nmost = 2").is_held);
    call(&mut script, 40, 3, 5);
    assert!(judged(&script, "that = 'retries-with-new-id'\nfault = 'f'").is_held);
}

#[test]
fn what_the_client_does_after_a_fault_is_seen() {
    let closes = "that = 'client-closes'\nfault = 'f'\nwithin = '1s'";
    let mut script = dropped(&[]);
    assert_eq!(judged(&script, closes).why.as_deref(), Some("the client did not close its side"));
    script.push(900, C2s, None, What::ClientClosed { how: Some(Close::Eof) });
    assert!(judged(&script, closes).is_held);
    let cancels = "that = 'client-cancels'\nfault = 'f'\nwithin = '1s'";
    let mut script = dropped(&[]);
    assert!(!judged(&script, cancels).is_held);
    script.line(500, C2s, r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
    let said = judged(&script, cancels);
    assert_eq!((said.is_held, said.evidence.as_slice()), (true, &[2, 3][..]), "{said:?}");
    assert!(!judged(&script, "that = 'client-cancels'\nfault = 'f'\nwithin = '400ms'").is_held);
    let won = "that = 'verdict'\nfault = 'f'\nis = 'complete_won'";
    let why = judged(&script, won).why.unwrap();
    assert!(why.starts_with("the race of id 1 ended as "), "{why}");
    assert!(judged(&dropped(&[]), won).why.unwrap().contains("no race"));
}

#[test]
fn effects_are_counted_by_what_the_server_tells() {
    let of_fault = "that = 'no-duplicate-effect'\nfault = 'f'";
    let of_all = "that = 'no-duplicate-effect'";
    let script = dropped(&[]);
    assert!(judged(&script, of_fault).is_held);
    assert!(judged(&script, of_all).why.unwrap().contains("no server tells"));
    let mut script = dropped(&[(40, 2, 5)]);
    assert!(judged(&script, of_fault).why.unwrap().contains("no server tells"));
    told(&mut script, 41, 1);
    assert!(judged(&script, of_fault).is_held && judged(&script, of_all).is_held);
    told(&mut script, 42, 2);
    for expectation in [of_fault, of_all] {
        let said = judged(&script, expectation);
        assert_eq!(said.why.as_deref(), Some("2 calls like id 1 took effect 2 times"), "{expectation}");
    }
}

#[test]
fn findings_are_expected_or_not() {
    let mut script = dropped(&[]);
    assert!(judged(&script, "that = 'no-finding'").is_held);
    assert!(!judged(&script, "that = 'finding'\nrule = 'RPC-08'").is_held);
    answer(&mut script, 50, 9);
    assert!(judged(&script, "that = 'finding'\nrule = 'RPC-08'").is_held);
    assert!(judged(&script, "that = 'no-finding'\nrule = 'CAN-05'").is_held);
    let said = judged(&script, "that = 'no-finding'");
    assert!(!said.is_held && said.why.unwrap().starts_with("RPC-08: "));
}

#[test]
fn a_cause_names_rule_fault_and_hit() {
    let cases = [
        (r#"rule 3 "lost answer", seed 7, hit 2"#, Some(((3, 2), "lost answer"))),
        (r#"rule 3 "x", seed 7, hit 12: after 4 events"#, Some(((3, 12), "x"))),
        ("rule 3, seed 7, hit 2", None),
        ("cancelled by midwire", None),
        ("", None),
    ];
    for (cause, expected) in cases {
        assert_eq!(named(cause), expected, "{cause}");
    }
}

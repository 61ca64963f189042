//! The two clocks (docs/semantics.md, clocks) on recordings, and calls that were cut.

use super::*;
use crate::model::script::{MODERN, Script, cancel, result};

/// The n-th call of a script, with a token, at 0 ms.
fn call(tool: &str, token: &str) -> String {
    let meta = MODERN.replace('{', &format!("{{{token}"));
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}",{meta}}}}}"#,
        meta = meta.replacen(&format!(r#"Capabilities":{{{token}"#), r#"Capabilities":{"#, 1),
    )
}

const TOKEN: &str = r#""progressToken":"p","#;

fn progress(value: u64) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":"p","progress":{value}}}}}"#
    )
}

fn policy(toml: &str) -> Policy {
    toml::from_str(toml).unwrap()
}

/// Progress as (ms, value), the answer at, what the two policies would have done.
type WhatIf = (&'static str, &'static [(u64, u64)], Option<u64>, Option<(u64, Fired)>, Option<u64>);

#[test]
fn any_policy_tells_when_it_would_have_fired_on_a_recording() {
    let clocks = policy(
        "[[clocks]]\nname = 'two clocks'\nidle_ms = 500\nmax_ms = 2000\n[[clocks]]\nname = 'fixed'\nidle_ms = 500\nresets_on_progress = false\n",
    )
    .clocks;
    let cases: &[WhatIf] = &[
        ("T1", &[(100, 1)], None, Some((600, Fired::Idle)), Some(500)),
        ("T2", &[(400, 1), (800, 2), (1200, 3)], None, Some((1700, Fired::Idle)), Some(500)),
        (
            "T3",
            &[(400, 1), (800, 2), (1200, 3), (1600, 4), (1999, 5)],
            None,
            Some((2000, Fired::Maximum)),
            Some(500),
        ),
        ("T4", &[(450, 1), (940, 1)], None, Some((950, Fired::Idle)), Some(500)),
        ("T5", &[], None, Some((500, Fired::Idle)), Some(500)),
        ("T7", &[], Some(499), None, None),
        ("answered in time", &[(400, 1)], Some(700), None, Some(500)),
    ];
    for (name, steps, answered, fired, fixed) in cases {
        let mut script = Script::default();
        script.line(0, Dir::C2s, &call("slow", TOKEN));
        for (ms, value) in *steps {
            script.line(*ms, Dir::S2c, &progress(*value));
        }
        if let Some(ms) = answered {
            script.line(*ms, Dir::S2c, &result("1"));
        }
        script.end(5_000);
        let model = script.fold();
        let would = |nth: usize| model.would_fire(CallIdx(0), &clocks[nth]);
        let ms = |at: Mono| at.to_ms().0;
        assert_eq!(would(0).map(|(at, why)| (ms(at), why)), *fired, "{name}");
        assert_eq!(would(1).map(|(at, _)| ms(at)), *fixed, "{name}, fixed");
    }
}

#[test]
fn only_accepted_progress_restarts_idle_and_any_byte_ends_silence() {
    let mut script = Script::default();
    script.post(0, 1, &[("mcp-protocol-version", "2026-07-28")], &call("slow", TOKEN));
    script.head(10, 1, 200, &[("content-type", "text/event-stream")]);
    script.sse(100, 1, &format!("data: {}\n\n", progress(2)));
    // T6: a comment, and a value that does not rise.
    script.sse(300, 1, ":\n\n").sse(400, 1, &format!("data: {}\n\n", progress(1)));
    script.sse(450, 1, ":\n\n");
    let model = script.fold();
    let clocks = model.clocks(CallIdx(0), Mono(500_000_000)).unwrap();
    let ms = |ns: u64| ns / 1_000_000;
    assert_eq!((ms(clocks.idle_ns), ms(clocks.absolute_ns), ms(clocks.silence_ns)), (400, 500, 50));
    assert!(clocks.is_running);
    script.client_closed(600, Some(1));
    let model = script.fold();
    let clocks = model.clocks(CallIdx(0), Mono(9_000_000_000)).unwrap();
    assert_eq!((ms(clocks.idle_ns), ms(clocks.absolute_ns), ms(clocks.silence_ns)), (500, 600, 150));
    assert!(!clocks.is_running);
}

#[test]
fn silence_on_a_pipe_is_that_of_all_that_the_server_writes() {
    let mut script = Script::default();
    script.line(0, Dir::C2s, &call("slow", "")).line(70, Dir::S2c, "noise").line(80, Dir::C2s, "more");
    let clocks = script.fold().clocks(CallIdx(0), Mono(100_000_000)).unwrap();
    assert_eq!((clocks.silence_ns, clocks.idle_ns), (30_000_000, 100_000_000));
}

/// A call of this client that was cancelled at `ms` with this reason, after progress at these
/// milliseconds.
fn cut(client: &str, token: &str, steps: &[u64], ms: u64, reason: &str) -> Script {
    let mut script = Script::default();
    let info = format!(r#""io.modelcontextprotocol/clientInfo":{{"name":"{client}","version":"1"}},{token}"#);
    script.line(0, Dir::C2s, &call("slow", &info));
    for (nth, at) in steps.iter().enumerate() {
        script.line(*at, Dir::S2c, &progress(nth as u64 + 1));
    }
    let cancel = match reason {
        "" => cancel("1").replace(r#","reason":"user""#, ""),
        reason => cancel("1").replace("user", reason),
    };
    script.line(ms, Dir::C2s, &cancel);
    script
}

/// Client, token, progress at, cut at, reason, sentence.
type CutRow = (&'static str, &'static str, &'static [u64], u64, &'static str, &'static str);

#[test]
fn a_cut_call_is_told_by_its_clock() {
    const NINE: &[u64] = &[9_000, 18_000, 27_000, 36_000, 45_000, 54_000];
    let own = "[[clocks]]\nname = 'ours'\nclients = ['robot']\nidle_ms = 40000\nmax_ms = 200000\n";
    let cases: &[CutRow] = &[
        (
            "any",
            "",
            &[],
            60_010,
            "",
            "cut at 60.0 s: the limit of the MCP TypeScript SDK by default, on which the client may be built; it never asked for progress",
        ),
        (
            "any",
            TOKEN,
            NINE,
            60_010,
            "",
            "cut at 60.0 s: the limit of the MCP TypeScript SDK by default, on which the client may be built; the last of 6 progress had come 6010 ms before",
        ),
        (
            "codex-mcp-client",
            TOKEN,
            &[],
            300_200,
            "",
            "cut at 300.2 s: the maximum of Codex by default; it asked for progress and got none",
        ),
        (
            "robot",
            TOKEN,
            &[30_000],
            70_100,
            "",
            "cut at 70.1 s, 40.1 s after its last progress: the idle limit of the policy \"ours\"; its only progress had come 40.1 s before",
        ),
        (
            "robot",
            TOKEN,
            &[],
            199_000,
            "",
            "cut at 199.0 s: the maximum of the policy \"ours\"; it asked for progress and got none",
        ),
        (
            "any",
            "",
            &[],
            10_030,
            "",
            "cut at 10.0 s: the age of a limit of 10.0 s; it never asked for progress",
        ),
        (
            "any",
            "",
            &[],
            1_001,
            "timeout",
            "cut at 1001 ms: the age of a limit of 1000 ms; it never asked for progress",
        ),
        (
            "any",
            "",
            &[],
            7_300,
            "Request timed out",
            "cut at 7300 ms: by the client's words its time was up; it never asked for progress",
        ),
        // Somebody lost patience, or changed their mind: no clock.
        ("any", "", &[], 7_300, "", ""),
        ("any", "", &[], 1_100, "", ""),
        ("any", "", &[], 10_030, "user", ""),
        ("robot", "", &[], 60_000, "user", ""),
    ];
    let policy = policy(own);
    for (client, token, steps, ms, reason, sentence) in cases {
        let model = cut(client, token, steps, *ms, reason).fold();
        let found = model.cut_by(CallIdx(0), &policy).map(|cut| cut.sentence()).unwrap_or_default();
        assert_eq!(found, *sentence, "{client} {ms} {reason}");
    }
}

#[test]
fn a_client_may_wait_for_bytes_rather_than_for_progress() {
    let mut script = Script::default();
    script.post(0, 1, &[("mcp-protocol-version", "2026-07-28")], &call("slow", ""));
    script.head(10, 1, 200, &[("content-type", "text/event-stream")]);
    script.sse(7_000, 1, ":\n\n").client_closed(37_010, Some(1));
    let model = script.fold();
    let cut = model.cut_by(CallIdx(0), &Policy::default()).map(|cut| cut.sentence());
    let expected = "cut at 37.0 s, 30.0 s after the last byte: the age of a limit of 30.0 s; it never asked for progress";
    assert_eq!(cut.as_deref(), Some(expected));
}

#[test]
fn who_ends_the_process_at_a_limit_cuts_what_is_open() {
    let mut script = Script::default();
    script.line(0, Dir::C2s, &call("slow", ""));
    script.client_closed(60_000, None).server_closed(60_300, None);
    let model = script.fold();
    let cut = model.cut_by(CallIdx(0), &Policy::default()).map(|cut| (cut.clock, cut.at.to_ms()));
    assert_eq!(cut, Some((Clock::Fixed, Ms(60_000))));
    // A server that ends by itself cuts nothing.
    let mut script = Script::default();
    script.line(0, Dir::C2s, &call("slow", "")).server_closed(60_000, None);
    assert_eq!(script.fold().cut_by(CallIdx(0), &Policy::default()), None);
}

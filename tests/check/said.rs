//! What is said besides the findings, and that nothing foreign steers a terminal.

use super::support::{CLEAN, HOSTILE, LATE, check};

#[test]
fn what_is_no_recording_gets_one_clear_line() {
    let cases = [
        (&["no/such/file"][..], "", "cannot open the recording no/such/file"),
        (&["no/such/file"], "", "`midwire ls` lists"),
        (&["README.md"], "", "README.md is not a recording"),
        (&["-"], "", "standard input holds no event"),
        (&["-"], "not json\n", "is not a recording"),
    ];
    for (args, input, said) in cases {
        let output = check(args, input);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
        assert!(stderr.contains(said) && stderr.lines().count() == 1, "{args:?}: {stderr}");
        assert!(stderr.matches("No such file").count() <= 1, "{stderr}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn one_that_cannot_be_read_does_not_hide_the_others() {
    let cases = [
        (
            "text",
            &["standard input\n\nwarning CAN-05", "stdio-clean.mw.jsonl: clean", "2 recordings: 0 err"][..],
        ),
        ("json", &["\"rule\": \"CAN-05\""]),
        ("junit", &["name=\"CAN-05 ", "name=\"nothing found\"", "no/such/file", "errors=\"1\""]),
        ("sarif", &["\"ruleId\": \"CAN-05\"", "\"executionSuccessful\": false", "no/such/file"]),
        ("markdown", &["| CAN-05 |", "Nothing found in", "no/such/file** could not be read"]),
    ];
    for (format, told) in cases {
        let output = check(&["--format", format, "no/such/file", "-", CLEAN], LATE);
        let stdout = String::from_utf8(output.stdout).unwrap();
        assert!(told.iter().all(|words| stdout.contains(words)), "{format}: {stdout}");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(stderr.matches("no/such/file").count(), 1, "{stderr}");
    }
}

#[test]
fn what_was_passed_over_is_said_once_and_does_not_stop_the_check() {
    let odd =
        format!("{LATE}{{\"t_ms\":9200,\"dir\":\"tap\",\"event\":\"weather\",\"sky\":1}}\n[1]\n{{\"t_ms\":9");
    let output = check(&["-"], &odd);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    for said in ["1 line passed over", "bytes of an unfinished last line", "weather"] {
        assert_eq!(stderr.matches(said).count(), 1, "{said}: {stderr}");
    }
}

#[test]
fn nothing_foreign_steers_the_terminal() {
    let odd = format!("{LATE}{}\n", r#"{"t_ms":9200,"dir":"tap","event":"\u001b]0;x\u0007\u202e"}"#);
    let cases: [(&[&str], &str); 7] = [
        (&["-"], &odd),
        (&["no/\u{1b}[31m\u{202e}file"], ""),
        (&["-"], HOSTILE),
        (&["--format", "json", "-"], HOSTILE),
        (&["--format", "junit", "-"], HOSTILE),
        (&["--format", "sarif", "no/\u{1b}[31m", "-"], HOSTILE),
        (&["--format", "markdown", "no/\u{1b}[31m", "-"], HOSTILE),
    ];
    for (args, input) in cases {
        let output = check(args, input);
        let shown = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(shown.contains('\u{fffd}') || shown.contains(r"\u001b"), "{args:?}: {shown}");
        let steers = |c: char| c != '\n' && (c.is_control() || c == '\u{202e}');
        assert!(!shown.contains(steers), "{args:?}: {shown:?}");
    }
}

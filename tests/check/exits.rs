//! The exit code.

use super::support::{CLEAN, HOSTILE, LATE, check};

#[test]
fn the_exit_code_says_whether_anything_fails() {
    let late: [(&[&str], i32); 18] = [
        (&[CLEAN], 0),
        (&["-"], 1),
        (&[CLEAN, "-"], 1),
        (&["--fail-on", "error", "-"], 0),
        (&["--fail-on", "hint", "-"], 1),
        (&["--fail-on", "never", "-"], 0),
        (&["--fail-on", "CAN-05", "-"], 1),
        (&["--fail-on", "error,can-05", "-"], 1),
        (&["--fail-on", "error", "--fail-on", "CAN-06", "-"], 0),
        (&["--ignore", "CAN-05", "-"], 0),
        (&["--ignore", "can-06,CAN-05", "-"], 0),
        (&["--rule", "CAN-06", "-"], 0),
        (&["--rule", "CAN-05", "--rule", "CAN-06", "-"], 1),
        (&["--max-duration", "10s", "--fail-on", "never", "-"], 0),
        (&["--max-duration", "50ms", "--fail-on", "never", "-"], 1),
        (&["--max-in-flight", "1", "--fail-on", "never", "-"], 0),
        (&["--max-in-flight", "0", "--fail-on", "never", "-"], 1),
        // A rule of modern stdio: judged by another revision, the same bytes break none this badly.
        (&["--era", "2025-11-25", "--rule", "CAN-05", "-"], 0),
    ];
    let unreadable: [(&[&str], i32); 4] =
        [(&["no/such/file"], 2), (&["no/such/file", "-"], 2), (&["-", "README.md"], 2), (&["-", "-"], 2)];
    for format in ["text", "json", "junit", "sarif", "markdown"] {
        for (args, code) in late.iter().chain(&unreadable) {
            let args = [&["--format", format], *args].concat();
            let output = check(&args, LATE);
            assert_eq!(output.status.code(), Some(*code), "{args:?}: {output:?}");
        }
    }
}

#[test]
fn wrong_usage_says_what_would_be_right() {
    let cases: [(&[&str], &[&str]); 10] = [
        (&[], &["<TRACE>"]),
        (&["--fail-on", "often", "-"], &["often", "error|warning|hint|never|RULE"]),
        (&["--fail-on", "never,error", "-"], &["--fail-on never stands alone"]),
        (&["--ignore", "CAN-5", "-"], &["CAN-5", "CAN-05"]),
        (&["--rule", "cancel", "-"], &["cancel", "`midwire rules`"]),
        (&["--era", "2025-01-01", "-"], &["2026-07-28"]),
        (&["--format", "xml", "-"], &["junit"]),
        (&["--max-duration", "30", "-"], &["30s"]),
        (&["--max-in-flight", "few", "-"], &["few"]),
        (&["--max-in-flight", "-1", "-"], &["-1"]),
    ];
    for (args, said) in cases {
        let output = check(args, HOSTILE);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
        assert!(said.iter().all(|words| stderr.contains(words)), "{args:?}: {stderr}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}

#[test]
fn a_policy_changes_what_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let cases = [
        ("[limits]\ngrace_ms = 8000\n", 1, ""),
        ("[limits]\ngrace_ms = 9000\n", 0, ""),
        ("[limits]\n\ngrace = 9000\n", 2, "policy.toml:3: unknown field `grace`"),
        ("[limits\n", 2, "policy.toml:1: "),
    ];
    for (text, code, said) in cases {
        let path = folder.path().join("policy.toml");
        std::fs::write(&path, text).unwrap();
        let output = check(&["--policy", path.to_str().unwrap(), "-"], LATE);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{text}: {stderr}");
        assert!(stderr.contains(said) && stderr.lines().count() <= 1, "{stderr}");
    }
    let output = check(&["--policy", "no/such/file", "-"], LATE);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("docs/policy.md"));
}

//! The forms of a report, each read by what reads it elsewhere.

use std::path::Path;

use serde_json::Value;

use super::support::{CLEAN, HOSTILE, HOSTILE_RULES, LATE, printed, without_beginning};

const SCHEMA: &str = include_str!("../../docs/check.schema.json");
const PAGE: &str = include_str!("../../docs/check.md");

fn json(args: &[&str], input: &str) -> Value {
    serde_json::from_str(&printed(args, input)).unwrap()
}

/// Every recording that ships, as arguments.
fn shipped() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings");
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let names = names.map(|name| format!("recordings/{}", name.to_str().unwrap()));
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".mw.jsonl")).collect();
    names.sort();
    names
}

#[test]
fn findings_name_their_rule_and_their_evidence() {
    let text = printed(&["--rule", "CAN-05", "-"], LATE);
    assert!(text.starts_with("warning CAN-05 [2026-07-28, server]"), "{text}");
    let findings = json(&["--format", "json", "--rule", "CAN-05", "-"], LATE);
    let finding = &findings[0];
    assert_eq!((&finding["rule"], &finding["subjects"]), (&"CAN-05".into(), &serde_json::json!([1])));
    assert_eq!((&finding["trace"], &finding["caused_by"]), (&"-".into(), &Value::Null));
    assert!(finding["evidence"].as_array().unwrap().contains(&3.into()), "the answer that came late");
    assert_eq!(printed(&["--format", "json", CLEAN], ""), "[]\n");
}

fn schema() -> jsonschema::Validator {
    jsonschema::draft202012::new(&serde_json::from_str(SCHEMA).unwrap()).unwrap()
}

#[test]
fn json_holds_to_its_schema_and_its_page() {
    let validator = schema();
    let all = shipped();
    let all: Vec<&str> = ["--format", "json", "--max-in-flight", "1", "--max-duration", "10ms"]
        .into_iter()
        .chain(all.iter().map(String::as_str))
        .chain(["-"])
        .collect();
    let mut rules = 0;
    for (args, input) in [(all.as_slice(), HOSTILE), (&["--format", "json", "-"], LATE)] {
        let findings = json(args, input);
        let errors: Vec<String> = validator.iter_errors(&findings).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}");
        let findings = findings.as_array().unwrap();
        rules += findings.iter().filter(|finding| finding["rule"] != "max-in-flight").count();
        for (at, finding) in findings.iter().enumerate() {
            let cause = finding["caused_by"].as_u64().map(|cause| &findings[usize::try_from(cause).unwrap()]);
            assert!(cause.is_none_or(|cause| cause["trace"] == finding["trace"]), "{at}");
            for member in finding.as_object().unwrap().keys() {
                assert!(PAGE.contains(&format!("\n| `{member}` |")), "docs/check.md lacks {member}");
                assert!(SCHEMA.contains(&format!("\"{member}\": {{")), "the schema lacks {member}");
            }
        }
    }
    assert!(rules > 5);
    let wrong = serde_json::json!([{ "rule": "CAN-05" }]);
    assert!(!validator.is_valid(&wrong) && !validator.is_valid(&serde_json::json!({})));
}

#[test]
fn what_could_not_be_decided_is_told_when_asked_for() {
    let late = without_beginning(LATE);
    let lacks_start = |both: &Value| {
        both["undecided"]
            .as_array()
            .unwrap()
            .iter()
            .any(|one| one["needs"].as_array().unwrap().contains(&"full".into()))
    };
    let both = json(&["--format", "json", "--undecided", "-"], &late);
    assert!(lacks_start(&both) && schema().is_valid(&both), "{both}");
    assert!(!lacks_start(&json(&["--format", "json", "--undecided", "-"], LATE)));
    assert_eq!(both["findings"], json(&["--format", "json", "-"], &late));
    let page = PAGE.split("With `--undecided`").nth(1).unwrap();
    for one in both["undecided"].as_array().unwrap() {
        assert_eq!(one["trace"], "-");
        assert!(one.as_object().unwrap().keys().all(|member| page.contains(&format!("\n| `{member}` |"))));
        // A rule that is not told is not undecided either.
        let rule = one["rule"].as_str().unwrap();
        let without = json(&["--format", "json", "--undecided", "--ignore", rule, "-"], &late);
        assert!(without["undecided"].as_array().unwrap().iter().all(|other| other["rule"] != rule));
    }
    let beginning = "a recording from the beginning of the channel";
    for format in ["text", "junit", "sarif", "markdown"] {
        let (with, without) = (
            printed(&["--format", format, "--undecided", "-"], &late),
            printed(&["--format", format, "-"], &late),
        );
        assert!(with.contains(beginning) && !without.contains(beginning), "{format}: {with}");
    }
    let told = printed(&["--undecided", "--rule", "RPC-03", "-"], LATE);
    assert!(told.ends_with("every rule that holds for it could be decided\n"), "{told}");
}

#[test]
fn subjects_keep_their_type() {
    let findings = json(&["--format", "json", "-"], HOSTILE);
    let of = |rule: &str| {
        let found = findings.as_array().unwrap().iter().find(|finding| finding["rule"] == rule);
        found.unwrap_or_else(|| panic!("{rule}: {findings}")).clone()
    };
    assert_eq!(of("RPC-08")["subjects"], serde_json::json!([7]));
    assert_eq!(of("REL-11")["subjects"], serde_json::json!(["\u{1b}]0;x\u{7}|<b>&\u{202e}@all`"]));
}

#[test]
fn junit_is_xml_with_a_case_for_each_rule() {
    let args = [
        "--format",
        "junit",
        "--undecided",
        HOSTILE_RULES,
        "--fail-on",
        "error,REL-11",
        "no/<file>",
        "-",
        CLEAN,
    ];
    let text = printed(&args, HOSTILE);
    let document = roxmltree::Document::parse(&text).unwrap();
    let root = document.root_element();
    let counts = |node: &roxmltree::Node<'_, '_>| {
        ["tests", "failures", "errors", "skipped"]
            .map(|name| node.attribute(name).unwrap().parse::<usize>().unwrap())
    };
    let suites: Vec<_> = root.children().filter(|node| node.has_tag_name("testsuite")).collect();
    assert_eq!(
        suites.iter().map(|suite| suite.attribute("name").unwrap()).collect::<Vec<_>>(),
        ["-", CLEAN, "no/<file>"]
    );
    let mut sums = [0; 4];
    for suite in &suites {
        let cases: Vec<_> = suite.children().filter(|node| node.has_tag_name("testcase")).collect();
        let with =
            |name| cases.iter().filter(|case| case.children().any(|node| node.has_tag_name(name))).count();
        assert_eq!(counts(suite), [cases.len(), with("failure"), with("error"), with("skipped")]);
        for case in &cases {
            assert!(["classname", "name", "file"].iter().all(|name| case.has_attribute(*name)));
        }
        for (sum, count) in sums.iter_mut().zip(counts(suite)) {
            *sum += count;
        }
    }
    assert_eq!(counts(&root), sums);
    // Two errors and the rule that was named fail; the hint informs.
    let case = |rule: &str| {
        let mut cases = suites[0].children().filter(|node| node.has_tag_name("testcase"));
        cases.find(|node| node.attribute("name").unwrap().starts_with(rule)).unwrap()
    };
    let has = |rule, name| case(rule).children().any(|node| node.has_tag_name(name));
    for rule in ["RPC-08", "STD-01", "REL-11"] {
        assert!(has(rule, "failure"), "{rule}: {text}");
    }
    assert!(has("STD-04", "system-out") && !has("STD-04", "failure"));
    let failure = case("REL-11").children().find(|node| node.has_tag_name("failure")).unwrap();
    assert!(failure.text().unwrap().contains("]]></failure>\u{fffd}\u{fffd}31m|"), "{text}");
}

/// What the published schema of SARIF 2.1.0 demands of the objects used here, and the members
/// that it knows of them: it allows no others.
const SARIF: &str = include_str!("sarif.required.json");

#[test]
fn sarif_has_what_its_schema_demands() {
    let schema: Value = serde_json::from_str(SARIF).unwrap();
    let validator = jsonschema::draft7::new(&schema).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let late = folder.path().join("late.mw.jsonl");
    std::fs::write(&late, without_beginning(LATE)).unwrap();
    let late = late.to_str().unwrap();
    let args = ["--format", "sarif", "--undecided", "--max-duration", "1s", "no/such file", "-", CLEAN, late];
    let log = json(&args, HOSTILE);
    let errors: Vec<String> = validator.iter_errors(&log).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    let run = &log["runs"][0];
    let results = run["results"].as_array().unwrap();
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    assert_eq!(rules.last().unwrap()["id"], "max-duration");
    let levels: Vec<_> = results.iter().map(|result| result["level"].as_str().unwrap()).collect();
    assert!(["error", "warning", "note"].iter().all(|level| levels.contains(level)), "{levels:?}");
    assert!(results.iter().any(|result| result["kind"] == "open" && result["level"] == "none"));
    for result in results {
        let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(rules[index]["id"], result["ruleId"]);
        assert!(!result["locations"].as_array().unwrap().is_empty());
    }
    let notifications = &run["invocations"][0]["toolExecutionNotifications"];
    let place = &notifications[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
    assert_eq!(place, "no/such%20file");
    assert!(!validator.is_valid(&serde_json::json!({ "version": "2.1.0", "runs": [{ "results": [] }] })));
}

#[test]
fn sarif_names_the_line_of_an_event_and_keeps_its_fingerprints() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("late.mw.jsonl");
    let header = r#"{"midwire":1,"session":"s","transport":"stdio"}"#;
    let result = |input: &str| {
        std::fs::write(&path, input).unwrap();
        json(&["--format", "sarif", "--rule", "CAN-05", path.to_str().unwrap()], "")["runs"][0]["results"][0]
            .clone()
    };
    let plain = result(LATE);
    let line = |result: &Value| result["locations"][0]["physicalLocation"]["region"]["startLine"].clone();
    assert_eq!(line(&plain), 3);
    assert_eq!(plain["relatedLocations"][0]["physicalLocation"]["region"]["startLine"], 1);
    assert_eq!(plain["relatedLocations"][0]["message"]["text"], "event 1");
    // Another run: a header, a blank line, other times and another id.
    let later = LATE
        .replace("9000", "9050")
        .replace(r#"\"id\":1"#, r#"\"id\":5"#)
        .replace(r#"requestId\":1"#, r#"requestId\":5"#);
    let again = result(&format!("{header}\n\n{later}"));
    assert_eq!(line(&again), 5);
    assert_ne!(again["message"], plain["message"]);
    assert_eq!(again["partialFingerprints"], plain["partialFingerprints"]);
    // Another tool is another fault.
    let other = result(&LATE.replace(r#"\"name\":\"a\""#, r#"\"name\":\"b\""#));
    assert_ne!(other["partialFingerprints"], plain["partialFingerprints"]);
}

#[test]
fn markdown_keeps_its_tables() {
    let text = printed(&["--format", "markdown", HOSTILE_RULES, "-", CLEAN], HOSTILE);
    assert!(text.starts_with("### midwire check: 2 errors, 1 warning, 1 hint in 2 recordings\n"), "{text}");
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
    assert_eq!(rows.len(), 6, "{text}");
    for row in rows {
        assert_eq!(row.matches('|').count(), 7, "{row}");
    }
    for foreign in ["@all", "http://", "[x](", "<b>", "</failure>", " #1"] {
        assert!(!text.contains(foreign), "{foreign}: {text}");
    }
}

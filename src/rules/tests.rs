//! Every rule on its examples: it fires where it should, and stays silent where nothing is wrong or
//! the era is another.

use std::fs;
use std::path::Path;

use super::example::{self, Example};
use super::*;

/// The examples as they lie in the source, so that a change needs no new build.
fn examples() -> Vec<Example> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/rules/examples");
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let read = |path: &std::path::PathBuf| example::read(&fs::read_to_string(path).unwrap());
    let (good, bad): (Vec<_>, Vec<_>) = paths.iter().flat_map(read).partition(Result::is_ok);
    let bad: Vec<_> = bad.into_iter().filter_map(Result::err).collect();
    assert!(bad.is_empty(), "{bad:#?}");
    good.into_iter().filter_map(Result::ok).collect()
}

fn judge(mut model: Model, example: &Example) -> Vec<Finding> {
    let mut judge = Judge::with_policy(example.policy.clone());
    for (idx, event) in example.events.iter().enumerate() {
        model.fold(event, u32::try_from(idx).unwrap());
        judge.look(&model);
    }
    model.cut();
    judge.look(&model);
    judge.findings().to_vec()
}

fn told(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(|f| format!("{} {}: {}", f.rule, f.severity.as_str(), f.sentence)).collect()
}

#[test]
fn a_rule_fires_on_its_example_and_leaves_the_clean_one_in_peace() {
    let mut wrong = Vec::new();
    for example in examples() {
        let findings = judge(Model::new(), &example);
        let fired = findings.iter().any(|finding| finding.rule == example.rule);
        if fired != example.fires {
            let what = if example.fires { "is silent" } else { "fires" };
            wrong.push(format!(
                "{} {what} on {:#?}\nfound: {:#?}",
                example.rule,
                example.lines,
                told(&findings)
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn a_clean_example_is_clean_for_every_rule() {
    let mut wrong = Vec::new();
    for example in examples().iter().filter(|example| !example.fires) {
        let mut findings = judge(Model::new(), example);
        findings.retain(|finding| finding.severity > Severity::Hint);
        if !findings.is_empty() {
            wrong.push(format!("{} clean {:#?}\nfound: {:#?}", example.rule, example.lines, told(&findings)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Neither word for word nor once more with less weight.
#[test]
fn one_thing_is_told_once() {
    let mut wrong = Vec::new();
    for example in examples() {
        let findings = judge(Model::new(), &example);
        let is_told_again = |(at, one): (usize, &Finding)| {
            let mut others = findings.iter().skip(at + 1).filter(|other| other.rule == one.rule);
            others.any(|other| {
                let is_same_word = other.sentence == one.sentence && other.evidence == one.evidence;
                let shares = other.evidence.iter().any(|event| one.evidence.contains(event));
                is_same_word || (other.severity < one.severity && shares)
            })
        };
        if findings.iter().enumerate().any(is_told_again) {
            wrong.push(format!("{} {:#?}\nfound: {:#?}", example.rule, example.lines, told(&findings)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn a_rule_is_silent_in_other_eras() {
    let mut wrong = Vec::new();
    for example in examples().iter().filter(|example| example.fires) {
        let Some(entry) = catalogue::find(&example.rule) else { continue };
        for era in Era::ALL.into_iter().filter(|era| !entry.eras.has(Some(*era))) {
            let findings = judge(Model::with_era(era), example);
            if findings.iter().any(|finding| finding.rule == example.rule) {
                wrong.push(format!("{} fires in {} on {:#?}", example.rule, era.as_str(), example.lines));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn every_rule_with_a_test_of_its_own_has_both_examples() {
    let examples = examples();
    let has = |rule: &str, fires: bool| {
        examples.iter().any(|example| example.rule == rule && example.fires == fires)
    };
    let lacking: Vec<_> =
        Book::default().ids().filter(|id| !(has(id, true) && has(id, false))).map(str::to_owned).collect();
    assert_eq!(lacking, [""; 0]);
    for example in &examples {
        assert!(catalogue::find(&example.rule).is_some(), "no rule {}", example.rule);
    }
}

#[test]
fn no_rule_is_entered_twice() {
    let book = Book::default();
    let mut ids: Vec<_> = book.ids().collect();
    ids.sort_unstable();
    let count = ids.len();
    ids.dedup();
    assert_eq!(ids.len(), count);
}

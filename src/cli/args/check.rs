//! Arguments of `midwire check`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::report::{Budget, FailOn, Options, Selection};
use crate::rules::{Severity, catalogue};
use crate::spec::era::Era;
use crate::time::Ms;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  midwire check session.mw.jsonl
  midwire check --format junit --fail-on error *.mw.jsonl > midwire.xml
  midwire check --ignore SUB-14 --max-duration 30s --max-in-flight 8 session.mw.jsonl
  midwire check --faults plans/dying-server.toml --format junit run.mw.jsonl > chaos.xml
  midwire check --era 2025-11-25 --policy policy.toml session.mw.jsonl
  zstdcat old.mw.jsonl.zst | midwire check -

Errors and warnings fail, hints inform; a budget that is exceeded always fails.
Exit code 0: nothing fails; 1: something does; 2: wrong usage, or a recording cannot be read
(the others are reported all the same).")]
pub(in crate::cli) struct CheckArgs {
    /// Recordings, plain or `.zst`; `-` is standard input
    #[arg(required = true, value_name = "TRACE")]
    pub(in crate::cli) traces: Vec<PathBuf>,
    /// How findings are printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(in crate::cli) format: Format,
    /// What makes exit code 1: a severity and all above it, `never`, or rules; may be repeated
    #[arg(long, value_name = "error|warning|hint|never|RULE", value_delimiter = ',', value_parser = failing)]
    fail_on: Vec<Failing>,
    /// Rules whose findings are not told; may be repeated
    #[arg(long, value_name = "RULE", value_delimiter = ',', value_parser = rule)]
    ignore: Vec<&'static str>,
    /// Tell findings of these rules only; may be repeated
    #[arg(long, value_name = "RULE", value_delimiter = ',', value_parser = rule)]
    rule: Vec<&'static str>,
    /// Judge every message by this revision, whatever it says itself
    #[arg(long, value_name = "ERA", value_parser = era)]
    pub(in crate::cli) era: Option<Era>,
    /// What is agreed outside the wire: clocks of clients, contracts of tools (docs/policy.md)
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) policy: Option<PathBuf>,
    /// A recipe that the tap was given: what it expects is judged too (docs/recipes.md)
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) faults: Option<PathBuf>,
    /// Longest time that a call may take, such as 500ms, 30s or 2m
    #[arg(long, value_name = "TIME", value_parser = span)]
    max_duration: Option<Ms>,
    /// Most calls of the client that may be open at once
    #[arg(long, value_name = "N")]
    max_in_flight: Option<usize>,
    /// Tell also which rules could not be decided, and what it would take
    #[arg(long)]
    undecided: bool,
}

/// How findings are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Format {
    /// A paragraph for each finding
    Text,
    /// One JSON array, described in docs/check.md
    Json,
    /// XML test report (junit), as GitLab and Jenkins read it
    Junit,
    /// SARIF 2.1.0, as code scanning reads it
    Sarif,
    /// Tables for a comment on a pull request
    Markdown,
}

/// One word of --fail-on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Failing {
    Never,
    Least(Severity),
    Rule(&'static str),
}

impl CheckArgs {
    /// What is told, and what of it fails.
    ///
    /// # Errors
    /// When words of --fail-on exclude each other.
    pub(in crate::cli) fn report_options(&self) -> anyhow::Result<Options> {
        let selection = Selection { only: self.rule.clone(), ignored: self.ignore.clone() };
        let budget = Budget { duration: self.max_duration, in_flight: self.max_in_flight };
        Ok(Options { selection, fail_on: fail_on(&self.fail_on)?, budget, undecided: self.undecided })
    }
}

fn fail_on(words: &[Failing]) -> anyhow::Result<FailOn> {
    if words.is_empty() {
        return Ok(FailOn::default());
    }
    if words.contains(&Failing::Never) && words.iter().any(|word| *word != Failing::Never) {
        anyhow::bail!("--fail-on never stands alone; leave out `never` or the other words");
    }
    let mut fail_on = FailOn { least: None, rules: Vec::new() };
    for word in words {
        match *word {
            Failing::Never => {}
            Failing::Least(severity) => {
                fail_on.least = Some(fail_on.least.map_or(severity, |least| least.min(severity)));
            }
            Failing::Rule(id) => fail_on.rules.push(id),
        }
    }
    Ok(fail_on)
}

fn failing(text: &str) -> Result<Failing, String> {
    if text == "never" {
        return Ok(Failing::Never);
    }
    match Severity::from_name(text) {
        Some(severity) => Ok(Failing::Least(severity)),
        None => rule(text).map(Failing::Rule).map_err(|error| format!("no severity, and {error}")),
    }
}

fn rule(text: &str) -> Result<&'static str, String> {
    catalogue::find(&text.to_ascii_uppercase()).map(|entry| entry.id).ok_or_else(|| no_rule(text))
}

/// Why an id is none, with those that begin like it.
pub(in crate::cli) fn no_rule(id: &str) -> String {
    let group = id.split('-').next().unwrap_or_default().to_ascii_uppercase() + "-";
    let ids = catalogue::entries().iter().map(|entry| entry.id);
    let kin: Vec<&str> = ids.filter(|id| id.starts_with(&group)).collect();
    if kin.is_empty() {
        "no rule has this id; `midwire rules` lists them".to_owned()
    } else {
        format!("no rule has this id; there are {}", kin.join(", "))
    }
}

fn era(text: &str) -> Result<Era, String> {
    Era::from_name(text)
        .ok_or_else(|| format!("not a revision; known are {}", Era::ALL.map(Era::as_str).join(", ")))
}

fn span(text: &str) -> Result<Ms, String> {
    Ms::from_words(text)
        .ok_or_else(|| "not a time; write a whole number with its unit, such as 500ms, 30s or 2m".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_unit() {
        let cases = [
            ("500ms", Some(500)),
            ("30s", Some(30_000)),
            ("2m", Some(120_000)),
            ("1h", Some(3_600_000)),
            ("0s", Some(0)),
            ("30", None),
            ("s", None),
            ("+3s", None),
            ("-3s", None),
            ("1.5s", None),
            ("99999999999999999999s", None),
            ("18446744073709551615h", None),
        ];
        for (text, ms) in cases {
            assert_eq!(span(text).ok(), ms.map(Ms), "{text}");
        }
    }

    #[test]
    fn what_fails_is_said_by_severity_or_rule() {
        let parse = |texts: &[&str]| {
            let words: Vec<Failing> = texts.iter().map(|text| failing(text).unwrap()).collect();
            fail_on(&words).ok()
        };
        let on = |least, rules: &[&'static str]| Some(FailOn { least, rules: rules.to_vec() });
        let cases: [(&[&str], Option<FailOn>); 7] = [
            (&[], on(Some(Severity::Warning), &[])),
            (&["error"], on(Some(Severity::Error), &[])),
            (&["error", "hint"], on(Some(Severity::Hint), &[])),
            (&["can-05"], on(None, &["CAN-05"])),
            (&["error", "CAN-05"], on(Some(Severity::Error), &["CAN-05"])),
            (&["never"], on(None, &[])),
            (&["never", "error"], None),
        ];
        for (texts, expected) in cases {
            assert_eq!(parse(texts), expected, "{texts:?}");
        }
    }

    #[test]
    fn an_unknown_rule_is_answered_with_its_kin() {
        assert!(rule("CAN-5").unwrap_err().contains("CAN-05"));
        assert!(rule("nonsense").unwrap_err().contains("`midwire rules`"));
        assert!(!rule("").unwrap_err().contains("there are"));
    }
}

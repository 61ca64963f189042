//! `midwire check`: findings for people and for CI.

use std::io::Write;

use super::args::check::{CheckArgs, Format};
use super::{CLEAN, FINDINGS, USAGE, say};
use crate::app::check::{Options, check as judge};
use crate::app::{policy, recipe};
use crate::report;
use crate::trace::Faults;

/// Prints what was found in each recording; every one of them is read before anything is printed.
pub(super) fn check(args: &CheckArgs) -> anyhow::Result<u8> {
    let policy = args.policy.as_deref().map(policy::load).transpose()?.unwrap_or_default();
    let recipe = args.faults.as_deref().map(recipe::load).transpose()?.unwrap_or_default();
    let expectations = recipe.expectations;
    let options = Options { era: args.era, policy, expectations, report: args.report_options()? };
    let checked = judge(&args.traces, &options, tell_faults);
    for unread in &checked.unread {
        say(&unread.reason);
    }
    let text = match args.format {
        Format::Text => report::text(&checked),
        Format::Json => report::json(&checked),
        Format::Junit => report::junit(&checked),
        Format::Sarif => report::sarif(&checked, options.report.budget),
        Format::Markdown => report::markdown(&checked),
    };
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(match (checked.unread.is_empty(), checked.fails()) {
        (false, _) => USAGE,
        (true, true) => FINDINGS,
        (true, false) => CLEAN,
    })
}

/// What the reader passed over, each kind in one line on standard error.
fn tell_faults(trace: &str, faults: &Faults) {
    let Faults {
        unknown_members,
        unknown_events,
        bad_lines,
        bad_line_examples,
        too_long_lines,
        times_out_of_order,
        numbers_out_of_order,
        torn_bytes,
        compression,
        was_truncated: _,
    } = faults;
    let tell = |text: String| say(&format!("{trace}: {text}"));
    if let Some(first) = bad_line_examples.first() {
        let lines = if *bad_lines == 1 { "line" } else { "lines" };
        tell(format!("{bad_lines} {lines} passed over, the first is line {}: {}", first.line, first.reason));
    }
    for (count, what) in [
        (*too_long_lines, "lines over the limit passed over"),
        (*times_out_of_order, "times are earlier than the one before"),
        (*numbers_out_of_order, "event numbers are not above the one before"),
        (*torn_bytes, "bytes of an unfinished last line passed over"),
    ] {
        if count > 0 {
            tell(format!("{count} {what}"));
        }
    }
    let unknown: Vec<&str> =
        unknown_members.keys().chain(unknown_events.keys()).map(String::as_str).collect();
    if !unknown.is_empty() {
        let names = unknown.join(", ");
        tell(format!("members or events that this version does not know: {names}"));
    }
    if let Some(trouble) = compression {
        tell(format!("compressed part is damaged, all before that was read: {trouble}"));
    }
}

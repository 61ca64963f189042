//! `midwire check`: findings for people and for CI.

use std::io::Write;

use anyhow::bail;

use super::args::{CheckArgs, Format};
use super::{CLEAN, FINDINGS, say};
use crate::app::check::Checked;
use crate::report::{self, Judged};
use crate::rules::Severity;
use crate::trace::Faults;

/// Prints what was found in each recording; every one of them is read before anything is printed.
pub(super) fn check(args: &CheckArgs) -> anyhow::Result<u8> {
    let mut all = Vec::new();
    for path in &args.traces {
        let checked = Checked::read(path)?;
        tell_faults(&checked);
        if checked.model.overview().counts.events == 0 {
            bail!("{} holds no event; pass a recording, such as one of `midwire ls`", path.display());
        }
        all.push(checked);
    }
    let judged: Vec<Judged<'_>> = all.iter().map(Checked::judged).collect();
    let mut out = std::io::stdout().lock();
    match args.format {
        Format::Json => out.write_all(report::json(&judged).as_bytes())?,
        Format::Text => {
            for one in &judged {
                out.write_all(report::text(one).as_bytes())?;
            }
        }
    }
    out.flush()?;
    let at_least = Severity::from(args.fail_on);
    let is_clean = judged.iter().all(|one| one.at_least(at_least) == 0);
    Ok(if is_clean { CLEAN } else { FINDINGS })
}

/// What the reader passed over, each kind in one line on standard error.
fn tell_faults(checked: &Checked) {
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
    } = &checked.faults;
    let tell = |text: String| say(&format!("{}: {text}", checked.name));
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

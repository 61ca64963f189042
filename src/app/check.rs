//! Whole recordings, folded and judged.

mod expect;

use std::io;
use std::path::{Path, PathBuf};

use anyhow::bail;

use expect::Watch;

use crate::command::recipe::Expectation;
use crate::machine::policy::Policy;
use crate::model::Model;
use crate::report::{self, Checked, Lines, Report, Unread};
use crate::rules::Judge;
use crate::spec::era::Era;
use crate::trace::{Ending, Faults, Recording};

/// How recordings are judged, and what of it is told.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The era that every message is taken to be of; `None`: as the messages say.
    pub era: Option<Era>,
    /// What is agreed outside the wire.
    pub policy: Policy,
    /// What a recipe expects.
    pub expectations: Vec<Expectation>,
    /// What is told.
    pub report: report::Options,
}

/// Reads every recording to its end and judges it; `-` is standard input. One that cannot be read
/// does not keep the others from being judged. `tell` is given what the reader of each passed over.
pub fn check(paths: &[PathBuf], options: &Options, mut tell: impl FnMut(&str, &Faults)) -> Checked {
    let mut checked = Checked { tells_undecided: options.report.undecided, ..Checked::default() };
    for path in paths {
        match read(path, options) {
            Ok((report, faults)) => {
                tell(&report.trace, &faults);
                checked.reports.push(report);
            }
            Err(error) => {
                let (trace, reason) = (path.display().to_string(), error.to_string());
                checked.unread.push(Unread { trace, reason });
            }
        }
    }
    checked
}

fn read(path: &Path, options: &Options) -> anyhow::Result<(Report, Faults)> {
    let name = path.display().to_string();
    let mut recording = if path == Path::new("-") {
        Recording::read_from(&mut io::stdin().lock(), "standard input")?
    } else {
        Recording::open(path)?
    };
    let mut model = options.era.map_or_else(Model::new, Model::with_era);
    model.set_grace(options.policy.limits.grace);
    let (mut judge, mut lines) = (Judge::with_policy(options.policy.clone()), Lines::default());
    let mut watch = Watch::default();
    let mut event_idx = 0;
    while let Some((event, _)) = recording.next()? {
        model.fold(&event, event_idx);
        judge.look(&model);
        if !options.expectations.is_empty() {
            watch.look(&event, &model);
        }
        event_idx += 1;
        if let Some((file, line)) = recording.last_line() {
            let file = if name == "-" { "-".into() } else { file.to_string_lossy() };
            lines.note(event.n, &file, line);
        }
    }
    if event_idx == 0 {
        let what = if name == "-" { "standard input" } else { &name };
        bail!("{what} holds no event; pass a recording, such as one of `midwire ls`");
    }
    if recording.ending() == Ending::Cut {
        model.cut();
        judge.look(&model);
    }
    let mut report = Report::new(name, &model, &judge, &options.report, lines);
    watch.judge(&options.expectations, &model, &mut report);
    Ok((report, recording.faults().clone()))
}

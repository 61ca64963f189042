//! A whole recording, folded and judged.

use std::io;
use std::path::Path;

use crate::model::Model;
use crate::report::Judged;
use crate::rules::{Finding, Judge};
use crate::trace::{Ending, Faults, Recording, TraceError};

/// A recording with everything that was found in it.
#[derive(Debug)]
pub struct Checked {
    /// As the user named it.
    pub name: String,
    /// The recording, folded.
    pub model: Model,
    /// What was found.
    pub findings: Vec<Finding>,
    /// What the reader had to pass over.
    pub faults: Faults,
}

impl Checked {
    /// Reads a recording to its end; `-` is standard input.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(path: &Path) -> Result<Checked, TraceError> {
        let name = path.display().to_string();
        let mut recording = if path == Path::new("-") {
            Recording::read_from(&mut io::stdin().lock(), "standard input")?
        } else {
            Recording::open(path)?
        };
        let (mut model, mut judge) = (Model::new(), Judge::new());
        let mut event_idx = 0;
        while let Some((event, _)) = recording.next()? {
            model.fold(&event, event_idx);
            judge.look(&model);
            event_idx += 1;
        }
        if recording.ending() == Ending::Cut {
            model.cut();
            judge.look(&model);
        }
        let (findings, faults) = (judge.findings().to_vec(), recording.faults().clone());
        Ok(Checked { name, model, findings, faults })
    }

    /// The view that reports are made from.
    #[must_use]
    pub fn judged(&self) -> Judged<'_> {
        Judged { name: &self.name, model: &self.model, findings: &self.findings }
    }
}

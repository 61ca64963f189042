//! Where events stand in the files of a recording.

/// Event numbers → file and line. Kept as stretches in which numbers and lines rise together, of
/// which an ordinary recording has one for each file.
#[derive(Debug, Clone, Default)]
pub struct Lines {
    files: Vec<String>,
    stretches: Vec<Stretch>,
    /// A number is not above the one before: nothing is found any more.
    falls: bool,
}

#[derive(Debug, Clone, Copy)]
struct Stretch {
    /// Number of the first event.
    n: u64,
    /// Events in it.
    len: u64,
    /// Line of the first event in its file, from 1.
    line: u64,
    /// Position in `files`.
    file: usize,
}

impl Lines {
    /// The next event, in the order of the recording, stands there.
    pub fn note(&mut self, n: u64, file: &str, line: u64) {
        if self.files.last().is_none_or(|last| last != file) {
            self.files.push(file.to_owned());
        }
        let at = self.files.len() - 1;
        if let Some(last) = self.stretches.last_mut() {
            let next = (last.n.saturating_add(last.len), last.line.saturating_add(last.len), last.file);
            if next == (n, line, at) {
                last.len += 1;
                return;
            }
            self.falls |= n < next.0;
        }
        self.stretches.push(Stretch { n, len: 1, line, file: at });
    }

    /// File and line, from 1, of an event; `None` where its number does not rise with the lines.
    #[must_use]
    pub fn find(&self, n: u64) -> Option<(&str, u64)> {
        let after = self.stretches.partition_point(|stretch| stretch.n <= n);
        let stretch = self.stretches.get(after.checked_sub(1)?).filter(|_| !self.falls)?;
        let further = n.checked_sub(stretch.n).filter(|further| *further < stretch.len)?;
        Some((self.files.get(stretch.file)?, stretch.line.saturating_add(further)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_found_where_it_stands() {
        let mut lines = Lines::default();
        for (n, file, line) in
            [(1, "a", 2), (2, "a", 3), (3, "a", 5), (4, "a.2", 2), (9, "a.2", 3), (10, "a.2", 4)]
        {
            lines.note(n, file, line);
        }
        assert_eq!(lines.stretches.len(), 4);
        let cases = [
            (0, None),
            (1, Some(("a", 2))),
            (2, Some(("a", 3))),
            (3, Some(("a", 5))),
            (4, Some(("a.2", 2))),
            (5, None),
            (10, Some(("a.2", 4))),
            (11, None),
        ];
        for (n, place) in cases {
            assert_eq!(lines.find(n), place, "{n}");
        }
    }

    #[test]
    fn numbers_that_fall_are_found_nowhere() {
        let mut lines = Lines::default();
        for (n, line) in [(5, 1), (4, 2), (u64::MAX, 3), (u64::MAX, 4)] {
            lines.note(n, "a", line);
        }
        assert_eq!([4, 5, u64::MAX].map(|n| lines.find(n)), [None; 3]);
    }
}

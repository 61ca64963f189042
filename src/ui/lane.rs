//! The waterfall: one lane of cells for each call, to scale, and the time axis above it.
//!
//! A lane is drawn from the marks that fall into its cells, found by bisection, so that a call
//! with a hundred thousand marks costs no more than one with ten.

use super::ink::{Glyphs, Ink};
use super::outcome::Outcome;
use super::units;
use crate::config::theme::Role;
use crate::model::{Call, CallState, Mark, MarkKind};
use crate::time::Mono;

/// The part of time on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    /// Time at the left edge, in nanoseconds since the session began.
    pub origin_ns: u64,
    /// Time of one column, in nanoseconds; never 0.
    pub step_ns: u64,
    /// How many columns there are.
    pub columns: u16,
}

/// The widest and the narrowest column: ten hours and one microsecond.
const STEPS: std::ops::RangeInclusive<u64> = 1_000..=36_000_000_000_000;

/// The smallest step of the series 1-2-5 that is at least `ns`.
#[must_use]
pub(super) fn step_at_least(ns: u64) -> u64 {
    let ns = ns.clamp(*STEPS.start(), *STEPS.end());
    let mut decade = *STEPS.start();
    loop {
        for factor in [1, 2, 5] {
            if decade.saturating_mul(factor) >= ns {
                return decade.saturating_mul(factor);
            }
        }
        decade = decade.saturating_mul(10);
    }
}

/// The next larger step of the series, or the next smaller one.
#[must_use]
pub(super) fn next_step(step: u64, is_larger: bool) -> u64 {
    if is_larger {
        return step_at_least(step.saturating_add(1));
    }
    // The step before is the smallest one whose successor reaches `step`.
    let mut candidate = *STEPS.start();
    while step_at_least(candidate.saturating_add(1)) < step {
        candidate = step_at_least(candidate.saturating_add(1));
    }
    candidate
}

impl Window {
    /// The window that shows `from..=to` with the smallest step of the series; its origin is a
    /// multiple of the step, so that it holds still while `to` grows.
    #[must_use]
    pub(super) fn fitting(from: Mono, to: Mono, columns: u16) -> Window {
        // One cell is kept free at the right for what has just begun.
        let cells = u64::from(columns.saturating_sub(2).max(1));
        let mut step = step_at_least(to.ns_since(from).div_ceil(cells));
        loop {
            let origin = from.0 / step * step;
            if to.0.saturating_sub(origin) / step < cells || step >= *STEPS.end() {
                return Window { origin_ns: origin, step_ns: step, columns };
            }
            step = next_step(step, true);
        }
    }

    /// The column of a moment; `None` when it lies left of the window. May lie right of it.
    fn column(&self, at: Mono) -> Option<u64> {
        at.0.checked_sub(self.origin_ns).map(|ns| ns / self.step_ns)
    }

    /// The moment at the left edge of a column.
    fn start_of(&self, column: u16) -> Mono {
        Mono(self.origin_ns.saturating_add(self.step_ns.saturating_mul(u64::from(column))))
    }
}

/// One cell: what to draw and how it looks.
pub(super) type Cell = (char, Role);

/// How many marks of one cell are looked at; with more, the first and the last half of it. A mark
/// between them is found again by zooming in; how the call ended is drawn in any case.
const MARKS_PER_CELL: usize = 256;

/// The lane of a call in a window; `now` is the end of what is known.
#[must_use]
pub(super) fn lane(call: &Call, window: Window, now: Mono, glyphs: &Glyphs) -> Vec<Cell> {
    let first_sign = call.marks.iter().find(|m| m.kind != MarkKind::Sent).map(|m| m.at);
    let last_mark = call.marks.last().map_or(call.started, |m| m.at);
    let end = call.ended.unwrap_or(now.max(last_mark));
    let mut from = 0;
    (0..window.columns)
        .map(|column| {
            let cell_start = window.start_of(column);
            let cell_end = window.start_of(column + 1);
            if column == 0 {
                from = call.marks.partition_point(|m| m.at < cell_start);
            }
            let rest = call.marks.get(from..).unwrap_or_default();
            let here = rest.partition_point(|m| m.at < cell_end);
            let marks = rest.get(..here).unwrap_or_default();
            from += here;
            if let Some(kind) = top_mark(marks) {
                return draw_mark(kind, glyphs);
            }
            if cell_end <= call.started || cell_start > end.max(last_mark) {
                return (' ', Role::Faint);
            }
            if cell_start > end {
                return (glyphs.lane.after, Role::Late);
            }
            if call.ended.is_none() && end < cell_end {
                return draw_open(call, glyphs);
            }
            match first_sign {
                Some(at) if at < cell_end => (glyphs.lane.busy, role_of_body(call)),
                _ => (glyphs.lane.silence, Role::Muted),
            }
        })
        .collect()
}

/// The mark that must be seen when several fall into one cell.
fn top_mark(marks: &[Mark]) -> Option<MarkKind> {
    if marks.len() <= MARKS_PER_CELL {
        return marks.iter().map(|m| m.kind).max();
    }
    let half = MARKS_PER_CELL / 2;
    let edges = marks.iter().take(half).chain(marks.iter().rev().take(half));
    edges.map(|m| m.kind).max()
}

fn draw_open(call: &Call, glyphs: &Glyphs) -> Cell {
    match call.state {
        CallState::Unresolved => (glyphs.lane.unknown, Role::Warn),
        _ => (glyphs.lane.open, Role::Open),
    }
}

/// The line of a call has the colour of its outcome, so that a column of lanes can be read alone.
fn role_of_body(call: &Call) -> Role {
    match call.state {
        CallState::Delivered | CallState::Progressing => Role::Progress,
        _ => Outcome::of(call).role,
    }
}

fn draw_mark(kind: MarkKind, glyphs: &Glyphs) -> Cell {
    match kind {
        MarkKind::Sent => (glyphs.lane.sent, Role::Client),
        MarkKind::Head => (glyphs.lane.head, Role::Progress),
        MarkKind::Notification => (glyphs.lane.notification, Role::Server),
        MarkKind::Rejected => (glyphs.lane.progress, Role::Warn),
        MarkKind::Progress => (glyphs.lane.progress, Role::Progress),
        MarkKind::Acknowledged => (glyphs.lane.acknowledged, Role::Ok),
        MarkKind::Result => (glyphs.lane.result, Role::Ok),
        MarkKind::InputRequired => (glyphs.outcome.input, Role::Input),
        MarkKind::Late => (glyphs.outcome.late, Role::Late),
        MarkKind::Cancel => (glyphs.outcome.cancel, Role::Cancelled),
        MarkKind::Disconnect => (glyphs.outcome.disconnect, Role::Cancelled),
        MarkKind::Lost => (glyphs.outcome.lost, Role::Error),
        MarkKind::Error => (glyphs.outcome.error, Role::Error),
        MarkKind::Injected => (glyphs.lane.injected, Role::Midwire),
    }
}

/// The time axis of a window: ticks with their times, at multiples of a 1-2-5 distance.
#[must_use]
pub(super) fn axis(window: Window, reference: Mono, ink: &Ink<'_>) -> String {
    const CELLS_PER_TICK: u64 = 10;
    let distance = step_at_least(window.step_ns.saturating_mul(CELLS_PER_TICK));
    let mut out = String::new();
    let mut at = window.origin_ns.div_ceil(distance).saturating_mul(distance);
    while let Some(column) = window.column(Mono(at)).filter(|column| *column < u64::from(window.columns)) {
        let column = usize::try_from(column).unwrap_or(usize::MAX);
        let label = if reference == Mono(0) {
            units::tick(at, distance)
        } else {
            units::moment_from(Mono(at), reference)
        };
        let used = out.chars().count();
        if used <= column {
            out.extend(std::iter::repeat_n(' ', column - used));
            out.push(ink.glyphs().wall);
            out.push_str(&label);
        }
        at = at.saturating_add(distance);
    }
    ink.charset.pad(&out, usize::from(window.columns))
}

/// What the glyphs of a lane mean, for the help page: what to draw, in which role, and its word.
#[must_use]
pub(super) fn legend(glyphs: &Glyphs) -> Vec<(Cell, &'static str)> {
    let line = [
        ((glyphs.lane.silence, Role::Muted), "nothing has come back yet"),
        ((glyphs.lane.busy, Role::Progress), "the server has shown life"),
        ((glyphs.lane.open, Role::Open), "still open"),
        ((glyphs.lane.unknown, Role::Warn), "the recording ended first"),
        ((glyphs.lane.after, Role::Late), "after the end, until something late"),
    ];
    let marks = [
        (MarkKind::Sent, "request"),
        (MarkKind::Head, "head of the HTTP answer"),
        (MarkKind::Progress, "progress"),
        (MarkKind::Notification, "another notification"),
        (MarkKind::Acknowledged, "subscription acknowledged"),
        (MarkKind::Result, "result"),
        (MarkKind::InputRequired, "asks for input"),
        (MarkKind::Error, "error"),
        (MarkKind::Cancel, "cancel"),
        (MarkKind::Disconnect, "client left"),
        (MarkKind::Lost, "stream or process ended"),
        (MarkKind::Late, "came after the client had given up"),
        (MarkKind::Injected, "midwire did something to it"),
    ];
    let marks = marks.into_iter().map(|(kind, word)| (draw_mark(kind, glyphs), word));
    marks.chain(line).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn steps_are_1_2_5_and_step_by_step() {
        assert_eq!(step_at_least(1), 1_000);
        assert_eq!(step_at_least(3_000), 5_000);
        assert_eq!(step_at_least(5_001), 10_000);
        assert_eq!(next_step(5_000, true), 10_000);
        assert_eq!(next_step(10_000, false), 5_000);
        assert_eq!(next_step(1_000, false), 1_000);
    }

    proptest! {
        #[test]
        fn a_fitting_window_holds_both_ends(from in 0u64..1 << 50, length in 0u64..1 << 45, columns in 3u16..300) {
            let window = Window::fitting(Mono(from), Mono(from + length), columns);
            prop_assert!(window.origin_ns <= from);
            prop_assert!(Mono(from + length) < window.start_of(window.columns));
            prop_assert_eq!(window.origin_ns % window.step_ns, 0);
        }
    }
}

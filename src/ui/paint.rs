//! Small pieces that every screen draws with: lines of a list, rules, walls, scroll bars.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::ink::Ink;
use crate::config::theme::Role;

/// The `y`th line of an area.
#[must_use]
pub(super) fn line_at(area: Rect, y: usize) -> Rect {
    let y = u16::try_from(y).unwrap_or(u16::MAX).min(area.height);
    Rect { y: area.y + y, height: u16::from(y < area.height), ..area }
}

/// A line of a list, with the pointer before it when it is selected. The selection is only marked
/// by its background where its list answers the keys.
pub(super) fn item(
    line: Line<'_>,
    area: Rect,
    is_selected: bool,
    has_focus: bool,
    ink: &Ink<'_>,
    frame: &mut Frame<'_>,
) {
    if area.is_empty() {
        return;
    }
    let pointer = if is_selected { ink.glyphs().pointer } else { ' ' };
    let gutter = Rect { width: area.width.min(1), ..area };
    frame.render_widget(Span::styled(pointer.to_string(), ink.style(Role::Key)), gutter);
    let rest = Rect { x: area.x + gutter.width, width: area.width - gutter.width, ..area };
    frame.render_widget(line, rest);
    if is_selected && has_focus {
        frame.buffer_mut().set_style(area, ink.style(Role::Selection));
    }
}

/// A line of text that may be selected.
pub(super) fn plain(line: Line<'_>, area: Rect, is_selected: bool, ink: &Ink<'_>, frame: &mut Frame<'_>) {
    if area.is_empty() {
        return;
    }
    frame.render_widget(line, area);
    if is_selected {
        frame.buffer_mut().set_style(area, ink.style(Role::Selection));
    }
}

/// Fills the rest of a line with a rule.
#[must_use]
pub(super) fn with_rule(mut spans: Vec<Span<'static>>, width: u16, ink: &Ink<'_>) -> Line<'static> {
    let used: usize = spans.iter().map(Span::width).sum();
    let rule = ink.glyphs().rule.to_string().repeat(usize::from(width).saturating_sub(used));
    spans.push(Span::styled(rule, ink.style(Role::Faint)));
    Line::from(spans)
}

/// A wall: a vertical line in a narrow area, a horizontal one in a flat area.
pub(super) fn wall(area: Rect, ink: &Ink<'_>, frame: &mut Frame<'_>) {
    let glyph = if area.width == 1 { ink.glyphs().wall } else { ink.glyphs().rule };
    let line = glyph.to_string().repeat(usize::from(area.width));
    for y in 0..usize::from(area.height) {
        frame.render_widget(Span::styled(line.clone(), ink.style(Role::Faint)), line_at(area, y));
    }
}

/// Which part of a list is on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scroll {
    /// The first line on the screen.
    pub top: usize,
    /// How many lines there are.
    pub len: usize,
}

/// A thumb at the right edge of an area, when not everything fits into it.
pub(super) fn scroll_bar(area: Rect, scroll: Scroll, ink: &Ink<'_>, frame: &mut Frame<'_>) {
    let height = usize::from(area.height);
    if scroll.len <= height || area.is_empty() {
        return;
    }
    let thumb = (height * height / scroll.len).max(1);
    let travel = height - thumb;
    let top = scroll.top * travel / (scroll.len - height).max(1);
    let x = area.right().saturating_sub(1);
    for y in top..(top + thumb).min(height) {
        let cell = Rect { x, width: 1, ..line_at(area, y) };
        frame.render_widget(Span::styled(ink.glyphs().thumb.to_string(), ink.style(Role::Faint)), cell);
    }
}

/// A line with one part at the left and one at the right; the left one gives way.
#[must_use]
pub(super) fn two_sided(
    left: Vec<Span<'static>>,
    right: Vec<Span<'static>>,
    width: u16,
    ink: &Ink<'_>,
) -> Line<'static> {
    let width = usize::from(width);
    let right_width: usize = right.iter().map(Span::width).sum();
    let room = width.saturating_sub(right_width + 1);
    let mut spans = Vec::new();
    let mut used = 0;
    for span in left {
        let left_over = room - used;
        if left_over == 0 {
            break;
        }
        let text = ink.charset.fit(&span.content, left_over);
        let fitted = Span::styled(text, span.style);
        used += fitted.width();
        spans.push(fitted);
    }
    spans.push(Span::raw(" ".repeat(width.saturating_sub(used + right_width))));
    spans.extend(right);
    Line::from(spans)
}

/// Marks a line as found by a search: its gutter is lit.
pub(super) fn found(area: Rect, ink: &Ink<'_>, frame: &mut Frame<'_>) {
    let gutter = Rect { width: area.width.min(1), ..area };
    frame.render_widget(Span::styled("*", ink.style(Role::Found)), gutter);
}

//! Where everything stands on the screen, from its size alone, so that `update` and `view` agree.

use ratatui::layout::Rect;

use super::detail::Room;

/// The smallest screen that is drawn in full.
pub(super) const MIN: (u16, u16) = (80, 24);

/// Below this not even one line about the size makes sense.
pub(super) const TINY: (u16, u16) = (40, 10);

/// From this height on, a pane below the list shows what is selected.
const PREVIEW_FROM: u16 = 30;

/// From this width on, the messages of a call stand beside the chosen one.
const BESIDE_FROM: u16 = 100;

/// Lines that the list keeps, with its column names.
const LIST_LINES: u16 = 4;

/// What decides the layout beside the size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a part of the screen of its own")]
pub(super) struct Wish {
    /// A line for the filter is needed.
    pub filter: bool,
    /// The view has a pane below its list, and the user wants it.
    pub preview: bool,
    /// The pane takes the whole screen.
    pub full: bool,
    /// The view tells about the selected line in the two lines below the list.
    pub answer: bool,
    /// Lines of the note to show.
    pub caption: u16,
    /// The line of keys is wanted.
    pub hints: bool,
    /// Share of the list in the space of list and pane, in percent.
    pub split: u16,
}

/// The areas of the screen; those not wanted are empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Areas {
    /// Top line.
    pub header: Rect,
    /// The views and the counts.
    pub tabs: Rect,
    /// The filter.
    pub filter: Rect,
    /// Column names of the list.
    pub columns: Rect,
    /// The lines of the list.
    pub list: Rect,
    /// The pane of what is opened or selected.
    pub detail: Rect,
    /// About the selected line.
    pub answer: Rect,
    /// The newest note.
    pub caption: Rect,
    /// The keys.
    pub hints: Rect,
    /// The status line.
    pub status: Rect,
}

/// Whether a screen of this height has room for a pane below the list.
#[must_use]
pub(super) fn has_room_for_preview(size: (u16, u16)) -> bool {
    size.1 >= PREVIEW_FROM
}

/// The areas for a screen of this size.
#[must_use]
pub(super) fn areas(size: (u16, u16), wish: Wish) -> Areas {
    let (width, height) = size;
    let mut areas = Areas::default();
    let (mut top, mut bottom) = (0, height);
    let mut from_top = |lines: u16| {
        let rect = Rect::new(0, top, width, lines);
        top += lines;
        rect
    };
    areas.header = from_top(1);
    areas.tabs = from_top(1);
    areas.filter = from_top(u16::from(wish.filter));
    let mut from_bottom = |lines: u16| {
        // The list and its column names come first.
        let lines = lines.min(bottom.saturating_sub(top + LIST_LINES));
        bottom -= lines;
        Rect::new(0, bottom, width, lines)
    };
    areas.status = from_bottom(1);
    areas.hints = from_bottom(u16::from(wish.hints));
    areas.caption = from_bottom(wish.caption);
    let has_pane = wish.full || wish.preview;
    areas.answer = from_bottom(if wish.answer && !has_pane { 3 } else { 0 });
    let middle = bottom.saturating_sub(top);
    if wish.full {
        areas.detail = Rect::new(0, top, width, middle);
        return areas;
    }
    let above = (middle * wish.split.clamp(20, 80) / 100).max(LIST_LINES);
    let below = if wish.preview { middle.saturating_sub(above) } else { 0 };
    areas.columns = Rect::new(0, top, width, 1);
    areas.list = Rect::new(0, top + 1, width, middle.saturating_sub(below + 1));
    areas.detail = Rect::new(0, bottom - below, width, below);
    areas
}

/// The areas inside the pane of an opened call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct DetailAreas {
    /// The line with what it is and the tabs.
    pub title: Rect,
    /// The one-line answer.
    pub answer: Rect,
    /// The messages.
    pub messages: Rect,
    /// Between messages and body.
    pub wall: Rect,
    /// The chosen message.
    pub body: Rect,
}

impl DetailAreas {
    /// The areas of a pane that shows `messages` messages.
    #[must_use]
    pub(super) fn of(area: Rect, messages: usize) -> DetailAreas {
        let mut areas =
            DetailAreas { title: Rect { height: area.height.min(1), ..area }, ..DetailAreas::default() };
        let rest = Rect { y: area.y + areas.title.height, height: area.height.saturating_sub(1), ..area };
        areas.answer = Rect { height: rest.height.min(1), ..rest };
        let rest = Rect { y: rest.y + areas.answer.height, height: rest.height.saturating_sub(1), ..rest };
        let messages = u16::try_from(messages).unwrap_or(u16::MAX);
        if area.width >= BESIDE_FROM {
            let left = (area.width * 42 / 100).min(80);
            areas.messages = Rect { width: left, ..rest };
            areas.wall = Rect { x: rest.x + left, width: 1, ..rest };
            areas.body = Rect { x: rest.x + left + 2, width: rest.width.saturating_sub(left + 2), ..rest };
        } else {
            let lines = messages.clamp(1, (rest.height / 3).max(1));
            areas.messages = Rect { height: lines.min(rest.height), ..rest };
            let after = lines.min(rest.height);
            areas.wall = Rect { y: rest.y + after, height: rest.height.saturating_sub(after).min(1), ..rest };
            let after = after + areas.wall.height;
            areas.body = Rect { y: rest.y + after, height: rest.height.saturating_sub(after), ..rest };
        }
        areas
    }

    /// The sizes that moving and wrapping depend on.
    #[must_use]
    pub(super) fn room(&self) -> Room {
        Room {
            messages: usize::from(self.messages.height),
            body: usize::from(self.body.height),
            width: usize::from(self.body.width).saturating_sub(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn areas_never_overlap_and_never_leave_the_screen(
            width in 1u16..300, height in 10u16..120, filter: bool, preview: bool, full: bool, answer: bool,
            caption in 0u16..=3, hints: bool, split in 0u16..120, messages in 0usize..1000,
        ) {
            let areas = areas((width, height), Wish { filter, preview, full, answer, caption, hints, split });
            let Areas { header, tabs, filter, columns, list, detail, answer, caption, hints, status } = areas;
            let inside = DetailAreas::of(detail, messages);
            let outer = vec![header, tabs, filter, columns, list, detail, answer, caption, hints, status];
            let inner = vec![inside.title, inside.answer, inside.messages, inside.wall, inside.body];
            let screen = Rect::new(0, 0, width, height);
            for (bounds, parts) in [(screen, outer), (detail, inner)] {
                for (i, part) in parts.iter().enumerate().filter(|(_, part)| !part.is_empty()) {
                    prop_assert_eq!(bounds.intersection(*part), *part);
                    for other in parts.iter().skip(i + 1).filter(|other| !other.is_empty()) {
                        prop_assert!(!part.intersects(*other), "{:?} {:?}", part, other);
                    }
                }
            }
        }
    }
}

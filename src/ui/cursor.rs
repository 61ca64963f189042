//! Where the selection stands in a list, and which part of the list is on the screen.

use crate::config::keys::Action;

/// Selection and scroll position of one list. Positions count the lines of the list as shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Cursor {
    /// The selected position, from 0.
    pub at: usize,
    /// The first position on the screen.
    pub top: usize,
}

impl Cursor {
    /// Moves by an action, `times` over, in a list of `len` lines of which `height` are shown.
    /// Returns false when the action is no motion in a list.
    pub(super) fn act(&mut self, action: Action, times: usize, len: usize, height: usize) -> bool {
        let page = height.saturating_sub(1).max(1);
        let half = (height / 2).max(1);
        let by = |lines: usize| lines.saturating_mul(times);
        match action {
            Action::Down => self.at = self.at.saturating_add(by(1)),
            Action::Up => self.at = self.at.saturating_sub(by(1)),
            Action::PageDown => self.at = self.at.saturating_add(by(page)),
            Action::PageUp => self.at = self.at.saturating_sub(by(page)),
            Action::HalfDown => self.at = self.at.saturating_add(by(half)),
            Action::HalfUp => self.at = self.at.saturating_sub(by(half)),
            Action::Top => self.at = times.saturating_sub(1),
            Action::End => self.at = usize::MAX,
            _ => return false,
        }
        self.settle(len, height);
        true
    }

    /// Moves to a position.
    pub(super) fn go(&mut self, at: usize, len: usize, height: usize) {
        self.at = at;
        self.settle(len, height);
    }

    /// Keeps the selection in the list and on the screen, with the end of the list at the bottom
    /// rather than empty lines.
    pub(super) fn settle(&mut self, len: usize, height: usize) {
        self.at = self.at.min(len.saturating_sub(1));
        let height = height.max(1);
        if self.at < self.top {
            self.top = self.at;
        }
        if self.at >= self.top.saturating_add(height) {
            self.top = self.at + 1 - height;
        }
        self.top = self.top.min(len.saturating_sub(height));
    }

    /// The positions on the screen.
    #[must_use]
    pub(super) fn visible(&self, len: usize, height: usize) -> std::ops::Range<usize> {
        self.top.min(len)..self.top.saturating_add(height).min(len)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn motions_are_those_of_every_pager() {
        let cases = [
            (Action::Down, 1, 1),
            (Action::Down, 5, 5),
            (Action::PageDown, 1, 9),
            (Action::HalfDown, 2, 10),
            (Action::End, 1, 99),
            (Action::Top, 1, 0),
            (Action::Top, 50, 49),
            (Action::Up, 1, 0),
        ];
        for (action, times, expected) in cases {
            let mut cursor = Cursor::default();
            assert!(cursor.act(action, times, 100, 10));
            assert_eq!(cursor.at, expected, "{action:?} {times}");
        }
        assert!(!Cursor::default().act(Action::Open, 1, 100, 10));
    }

    proptest! {
        #[test]
        fn the_selection_is_always_on_the_screen(
            moves in proptest::collection::vec((0usize..8, 1usize..30), 0..40),
            len in 0usize..200,
            height in 1usize..50,
        ) {
            let actions = [Action::Down, Action::Up, Action::PageDown, Action::PageUp, Action::HalfDown,
                Action::HalfUp, Action::Top, Action::End];
            let mut cursor = Cursor::default();
            for (which, times) in moves {
                cursor.act(actions[which], times, len, height);
                let visible = cursor.visible(len, height);
                prop_assert!(len == 0 || visible.contains(&cursor.at));
                prop_assert!(visible.len() == height.min(len));
            }
        }
    }
}

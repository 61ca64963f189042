//! Which items of a long list are shown, and in what order.
//!
//! Matches are kept as a sorted list of positions and extended as items come in; an item that
//! changed is looked at again. Nothing here costs a pass over all items, except the first
//! evaluation of a filter (done in slices) and a sort.

/// How many items are looked at before the screen gets its turn.
pub(super) const SLICE: usize = 50_000;

/// What a filter does to the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Mode {
    /// Only matches are shown.
    #[default]
    Only,
    /// Everything is shown and matches are marked.
    Mark,
}

/// Matches of a filter in a list, and the order of what is shown.
#[derive(Debug, Clone, Default)]
pub(super) struct Pick {
    /// A filter is in force.
    is_filtered: bool,
    mode: Mode,
    /// Items that match, in rising order.
    hits: Vec<u32>,
    /// How many items have been looked at.
    checked: usize,
    /// How many items there are.
    total: usize,
    /// The shown items in their order; `None`: their own.
    order: Option<Vec<u32>>,
}

impl Pick {
    /// Begins anew under another filter, or none.
    pub(super) fn restart(&mut self, is_filtered: bool, mode: Mode) {
        *self = Pick { is_filtered, mode, total: self.total, ..Pick::default() };
    }

    /// There are this many items now; looks at up to [`SLICE`] of those not yet seen. Returns
    /// whether more remain.
    pub(super) fn extend(&mut self, total: usize, is_hit: impl Fn(u32) -> bool) -> bool {
        self.total = total;
        if !self.is_filtered {
            self.checked = total;
            return false;
        }
        let end = total.min(self.checked.saturating_add(SLICE));
        let fresh =
            (self.checked..end).filter_map(|item| u32::try_from(item).ok()).filter(|item| is_hit(*item));
        self.hits.extend(fresh);
        self.checked = end;
        end < total
    }

    /// Looks again at an item that changed.
    pub(super) fn recheck(&mut self, item: u32, is_hit: impl Fn(u32) -> bool) {
        if !self.is_filtered || item as usize >= self.checked {
            return;
        }
        match (self.hits.binary_search(&item), is_hit(item)) {
            (Err(at), true) => self.hits.insert(at, item),
            (Ok(at), false) => {
                self.hits.remove(at);
            }
            _ => {}
        }
    }

    /// Puts what is shown into an order, or back into its own.
    pub(super) fn sort_by_key<K: Ord>(&mut self, is_reverse: bool, key: Option<impl Fn(u32) -> K>) {
        let Some(key) = key else {
            self.order = is_reverse.then(|| self.natural().rev().collect());
            return;
        };
        let mut order: Vec<u32> = self.natural().collect();
        order.sort_by_cached_key(|item| key(*item));
        if is_reverse {
            order.reverse();
        }
        self.order = Some(order);
    }

    fn natural(&self) -> Box<dyn DoubleEndedIterator<Item = u32> + '_> {
        if self.hides() {
            Box::new(self.hits.iter().copied())
        } else {
            Box::new(0..u32::try_from(self.total).unwrap_or(u32::MAX))
        }
    }

    fn hides(&self) -> bool {
        self.is_filtered && self.mode == Mode::Only
    }

    /// How many lines are shown.
    #[must_use]
    pub(super) fn len(&self) -> usize {
        match &self.order {
            Some(order) => order.len(),
            None if self.hides() => self.hits.len(),
            None => self.total,
        }
    }

    /// How many items match, and how many have been looked at.
    #[must_use]
    pub(super) fn score(&self) -> (usize, usize) {
        (if self.is_filtered { self.hits.len() } else { self.checked }, self.checked)
    }

    /// The item on a line.
    #[must_use]
    pub(super) fn item(&self, line: usize) -> Option<u32> {
        match &self.order {
            Some(order) => order.get(line).copied(),
            None if self.hides() => self.hits.get(line).copied(),
            None => u32::try_from(line).ok().filter(|_| line < self.total),
        }
    }

    /// The line of an item, or the line nearest to where it would stand.
    #[must_use]
    pub(super) fn line(&self, item: u32) -> usize {
        match &self.order {
            Some(order) => order.iter().position(|i| *i == item).unwrap_or(0),
            None if self.hides() => self.hits.binary_search(&item).unwrap_or_else(|at| at),
            None => item as usize,
        }
    }

    /// The item is marked by a filter in mark mode.
    #[must_use]
    pub(super) fn is_marked(&self, item: u32) -> bool {
        self.is_filtered && self.mode == Mode::Mark && self.hits.binary_search(&item).is_ok()
    }

    /// The line of the next item after `line` that `wanted` holds for, or of the one before it.
    /// Without a predicate: the next match.
    #[must_use]
    pub(super) fn seek(&self, line: usize, is_forward: bool, wanted: impl Fn(u32) -> bool) -> Option<usize> {
        let is_wanted = |line: &usize| self.item(*line).is_some_and(&wanted);
        if is_forward {
            (line + 1..self.len()).find(is_wanted)
        } else {
            (0..line.min(self.len())).rev().find(is_wanted)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(pick: &Pick) -> Vec<u32> {
        (0..pick.len()).filter_map(|line| pick.item(line)).collect()
    }

    #[test]
    fn matches_grow_with_the_list_and_change_with_the_items() {
        let mut pick = Pick::default();
        pick.restart(true, Mode::Only);
        assert!(!pick.extend(10, |item| item % 3 == 0));
        assert_eq!(shown(&pick), [0, 3, 6, 9]);
        pick.recheck(3, |_| false);
        pick.recheck(5, |_| true);
        pick.recheck(5, |_| true);
        assert_eq!(shown(&pick), [0, 5, 6, 9]);
        assert!(!pick.extend(13, |item| item % 3 == 0));
        assert_eq!(shown(&pick), [0, 5, 6, 9, 12]);
        assert_eq!(pick.line(6), 2);
        assert_eq!(pick.line(7), 3, "an item that is hidden stands where it would be");
        assert_eq!(pick.score(), (5, 13));
    }

    #[test]
    fn mark_mode_hides_nothing() {
        let mut pick = Pick::default();
        pick.restart(true, Mode::Mark);
        pick.extend(5, |item| item == 3);
        assert_eq!(shown(&pick), [0, 1, 2, 3, 4]);
        assert!(pick.is_marked(3) && !pick.is_marked(2));
        assert_eq!(pick.seek(0, true, |item| pick.is_marked(item)), Some(3));
        assert_eq!(pick.seek(3, true, |item| pick.is_marked(item)), None);
        assert_eq!(pick.seek(4, false, |item| pick.is_marked(item)), Some(3));
    }

    #[test]
    fn a_long_list_is_looked_at_in_slices() {
        let mut pick = Pick::default();
        pick.restart(true, Mode::Only);
        assert!(pick.extend(SLICE * 2, |_| true));
        assert_eq!(pick.score(), (SLICE, SLICE));
        assert!(!pick.extend(SLICE * 2, |_| true));
        assert_eq!(pick.len(), SLICE * 2);
    }

    #[test]
    fn order_can_be_changed_and_turned_round() {
        let mut pick = Pick::default();
        pick.extend(4, |_| true);
        pick.sort_by_key(false, Some(|item: u32| (item + 2) % 4));
        assert_eq!(shown(&pick), [2, 3, 0, 1]);
        assert_eq!(pick.line(0), 2);
        pick.sort_by_key(true, None::<fn(u32) -> u32>);
        assert_eq!(shown(&pick), [3, 2, 1, 0]);
        pick.sort_by_key(false, None::<fn(u32) -> u32>);
        assert_eq!(shown(&pick), [0, 1, 2, 3]);
    }

    proptest! {
        #[test]
        fn piecemeal_equals_at_once(items in proptest::collection::vec(any::<bool>(), 0..200), cuts in proptest::collection::vec(0usize..200, 0..5)) {
            let is_hit = |item: u32| items[item as usize];
            let (mut whole, mut pieces) = (Pick::default(), Pick::default());
            whole.restart(true, Mode::Only);
            pieces.restart(true, Mode::Only);
            whole.extend(items.len(), is_hit);
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(items.len())).collect();
            cuts.sort_unstable();
            for cut in cuts {
                pieces.extend(cut, is_hit);
            }
            pieces.extend(items.len(), is_hit);
            prop_assert_eq!(shown(&whole), shown(&pieces));
        }
    }
}

//! The walks of one list: pages joined by their cursors.

use std::collections::HashMap;

use crate::model::{CallIdx, Content, RowIdx};
use crate::time::Mono;
use crate::wire::json::Value;

/// Walks of one list that are under way at once; of more, those that began first are forgotten. ours:
/// a few clients behind one port.
const OPEN_WALKS: usize = 4;

/// Pages of one walk; a longer one is cut. ours.
const PAGES: usize = 1024;

/// Items of one walk; a longer one is cut. ours.
const ITEMS: usize = 20_000;

/// Text of one walk; a longer one is cut. ours: two pages of the largest size that is looked into.
const BYTES: usize = 8 << 20;

/// One page of a walk.
#[derive(Debug, Clone)]
pub struct Page {
    /// The call that it answered.
    pub call: CallIdx,
    /// Its row.
    pub row: RowIdx,
    /// When it was read.
    pub read: Mono,
    /// The cursor that it was asked for with; hashed.
    pub(super) asked: Option<u64>,
    /// The cursor of the page after it; hashed.
    pub(super) next: Option<u64>,
    pub(super) content: Content,
}

/// A page as it was read, with its items: hash of the name, and position in the text.
#[derive(Debug)]
pub(super) struct PageRead {
    pub page: Page,
    /// When it was asked for.
    pub started: Mono,
    pub items: Vec<(u64, u32)>,
}

/// A walk over the pages of a list, from its beginning.
#[derive(Debug)]
pub struct Walk {
    /// When its first page was asked for.
    pub started: Mono,
    pages: Vec<Page>,
    items: Vec<Item>,
    /// Position in `items` of the last one of a name, by its hash.
    index: HashMap<u64, u32>,
    /// Items of the last page whose name stood before them, by their position in its text.
    repeats: Vec<u32>,
    bytes: usize,
    turns_back: bool,
    is_cut: bool,
}

#[derive(Debug, Clone, Copy)]
struct Item {
    name: u64,
    page: u32,
    position: u32,
}

/// Every walk that is kept of one list.
#[derive(Debug, Default)]
pub(super) struct List {
    whole: Option<Walk>,
    /// In the order of their beginning.
    open: Vec<Walk>,
    touched: Mono,
}

impl Page {
    /// Its result.
    #[must_use]
    pub fn result(&self) -> Option<Value<'_>> {
        self.content.value().get("result")
    }
}

impl Walk {
    /// Its pages so far, in order.
    #[must_use]
    pub fn pages(&self) -> &[Page] {
        &self.pages
    }

    /// Its last page has been read.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.pages.last().is_some_and(|page| page.next.is_none())
    }

    /// A page pointed back to itself, or to one before it.
    #[must_use]
    pub fn turns_back(&self) -> bool {
        self.turns_back
    }

    /// It was too long to be kept whole.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Its items that have a name, in order, duplicates included: what stands for the name (equal for
    /// equal names), and the item.
    pub fn items(&self) -> impl Iterator<Item = (u64, Value<'_>)> {
        self.items.iter().filter_map(|item| {
            let page = self.pages.get(item.page as usize)?;
            Some((item.name, page.content.value_at(item.position)?))
        })
    }

    /// How many items with a name it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// It has no item with a name.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The items of its last page whose name stood before them in the walk.
    pub fn repeats(&self) -> impl Iterator<Item = Value<'_>> {
        let page = self.pages.last();
        self.repeats.iter().filter_map(move |position| page?.content.value_at(*position))
    }

    /// The last item of a name.
    pub(super) fn find(&self, hash: u64, key: &str, name: &str) -> Option<(Value<'_>, &Page)> {
        let item = self.items.get(*self.index.get(&hash)? as usize)?;
        let page = self.pages.get(item.page as usize)?;
        let value = page.content.value_at(item.position)?;
        value.get(key).is_some_and(|known| known.is_text(name)).then_some((value, page))
    }

    fn new(started: Mono) -> Walk {
        Walk {
            started,
            pages: Vec::new(),
            items: Vec::new(),
            index: HashMap::new(),
            repeats: Vec::new(),
            bytes: 0,
            turns_back: false,
            is_cut: false,
        }
    }

    fn push(&mut self, read: PageRead) {
        self.repeats.clear();
        let mut asked = self.pages.iter().map(|page| page.asked).chain([read.page.asked]);
        self.turns_back |= read.page.next.is_some() && asked.any(|asked| asked == read.page.next);
        let bytes = self.bytes + read.page.content.len();
        if self.pages.len() >= PAGES || self.items.len() + read.items.len() > ITEMS || bytes > BYTES {
            // Where it goes on is still followed, on the last page kept.
            self.is_cut = true;
            match self.pages.last_mut() {
                Some(last) => *last = Page { content: last.content.clone(), ..read.page },
                None => self.pages.push(read.page),
            }
            return;
        }
        self.bytes = bytes;
        let page = u32::try_from(self.pages.len()).unwrap_or(u32::MAX);
        for (name, position) in read.items {
            let at = u32::try_from(self.items.len()).unwrap_or(u32::MAX);
            self.items.push(Item { name, page, position });
            if self.index.insert(name, at).is_some() {
                self.repeats.push(position);
            }
        }
        self.pages.push(read.page);
    }
}

impl List {
    pub(super) fn whole(&self) -> Option<&Walk> {
        self.whole.as_ref()
    }

    /// Every walk, the one that began last first.
    pub(super) fn walks(&self) -> impl Iterator<Item = &Walk> {
        let whole = self.whole.as_ref();
        let (newer, older): (Vec<_>, Vec<_>) =
            self.open.iter().rev().partition(|walk| whole.is_none_or(|whole| walk.started > whole.started));
        newer.into_iter().chain(whole).chain(older)
    }

    /// When a page was last taken.
    pub(super) fn touched(&self) -> Mono {
        self.touched
    }

    #[cfg(test)]
    pub(super) fn touch(&mut self, at: Mono) {
        self.touched = at;
    }

    /// Text of its pages.
    pub(super) fn bytes(&self) -> usize {
        self.whole.iter().chain(&self.open).map(|walk| walk.bytes).sum()
    }

    /// Takes a page: it begins a walk, or continues the one whose cursor it was asked for with. One
    /// that continues none (its walk began before the recording) is left out.
    pub(super) fn take(&mut self, read: PageRead) {
        self.touched = read.page.read;
        let mut walk = match read.page.asked {
            None => Walk::new(read.started),
            Some(cursor) => {
                let waits = |walk: &Walk| walk.pages.last().is_some_and(|page| page.next == Some(cursor));
                let Some(at) = self.open.iter().rposition(waits) else { return };
                self.open.remove(at)
            }
        };
        walk.push(read);
        if walk.is_whole() {
            if self.whole.as_ref().is_none_or(|whole| whole.started <= walk.started) {
                self.whole = Some(walk);
            }
            return;
        }
        let at = self.open.partition_point(|open| open.started <= walk.started);
        self.open.insert(at, walk);
        if self.open.len() > OPEN_WALKS {
            self.open.remove(0);
        }
    }
}

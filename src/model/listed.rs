//! What the list methods told: tools, prompts, resources and templates, as each viewer was told
//! them, page by page.
//!
//! A list may differ by authorisation and by era, never by connection (spec 2026-07-28
//! server/tools#capabilities); so a [`Viewer`] is a process or session, an era and, where HTTP
//! requests belong to no session, the path and the `Authorization` they came with. Pages are joined
//! to walks by their cursors. The latest walk that came to its end is kept, and a few that are under
//! way; the text of their pages stays in memory within one budget.

mod walk;

use std::collections::HashMap;
use std::hash::BuildHasher;

use super::fold::At;
use super::{CallIdx, CallState, Content, Model, RowIdx, ScopeIdx};
use crate::event::Dir;
use crate::spec::era::Era;
use crate::spec::lists::ListKind;
use crate::time::Mono;
use crate::wire::json::Value;
use crate::wire::jsonrpc::Kind;
use walk::{List, PageRead};
pub use walk::{Page, Walk};

/// Text of pages that is kept in all. Beyond it the lists that were told longest ago are forgotten.
/// ours: thousands of tools with their schemas; a peer that lists more is not followed any further.
const KEPT_BYTES: usize = 48 << 20;

/// Lists that are kept in all. ours: as many sessions as somebody may still want to look into.
const LISTS: usize = 4096;

/// To whom something was told that may differ by receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Viewer {
    /// Process, session or upstream.
    pub scope: ScopeIdx,
    /// The era of the request.
    pub era: Option<Era>,
    /// HTTP outside a session: stands for the path and the `Authorization` of the request.
    who: u64,
}

/// Everything that lists told.
#[derive(Debug, Default)]
pub(super) struct Lists {
    by_viewer: HashMap<(Viewer, ListKind), List>,
    /// Text of all pages kept.
    bytes: usize,
    /// When a change was last told, in a scope.
    changes: HashMap<(ScopeIdx, ListKind), Mono>,
}

/// A list as one viewer was told it.
#[derive(Debug, Clone, Copy)]
pub struct Listed<'a> {
    list: &'a List,
    hasher: &'a hashbrown::DefaultHashBuilder,
    kind: ListKind,
    changed: Option<Mono>,
}

/// An item of a list, as it was told last.
#[derive(Debug, Clone, Copy)]
pub struct Definition<'a> {
    /// The item.
    pub value: Value<'a>,
    /// The row of the page that holds it.
    pub row: RowIdx,
    /// No change was told since its walk began.
    pub is_current: bool,
}

impl<'a> Listed<'a> {
    /// The latest walk that came to its end.
    #[must_use]
    pub fn whole(&self) -> Option<&'a Walk> {
        self.list.whole()
    }

    /// The latest walk that came to its end holds every item, and no change was told since it began.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.whole().is_some_and(|walk| !walk.is_cut() && self.is_fresh(walk))
    }

    /// When a change of the list was last told.
    #[must_use]
    pub fn changed(&self) -> Option<Mono> {
        self.changed
    }

    /// The walk whose last page answered this call.
    #[must_use]
    pub fn walk_of(&self, call: CallIdx) -> Option<&'a Walk> {
        self.list.walks().find(|walk| walk.pages().last().is_some_and(|page| page.call == call))
    }

    /// The item of this name or URI, from the latest walk that has it. Of several with one name in a
    /// walk, the last.
    #[must_use]
    pub fn definition(&self, name: &str) -> Option<Definition<'a>> {
        let hash = self.hasher.hash_one(name);
        self.list.walks().find_map(|walk| {
            let (value, page) = walk.find(hash, self.kind.key(), name)?;
            Some(Definition { value, row: page.row, is_current: self.is_fresh(walk) })
        })
    }

    fn is_fresh(&self, walk: &Walk) -> bool {
        self.changed.is_none_or(|changed| changed < walk.started)
    }
}

impl Model {
    /// To whom the answer of a call is told; only while its exchange is open, or in the event that
    /// ends it.
    #[must_use]
    pub fn viewer(&self, call: CallIdx) -> Option<Viewer> {
        let call = self.call(call)?;
        let who = match (call.scope, call.stream) {
            (ScopeIdx(0), Some(stream)) => {
                let exchange = self.exchange_of(stream)?;
                let path = exchange.head().map(|head| head.path.as_str());
                self.hasher.hash_one((path, exchange.headers().get("authorization")))
            }
            _ => 0,
        };
        Some(Viewer { scope: call.scope, era: call.era, who })
    }

    /// A list as the viewer was told it.
    #[must_use]
    pub fn listed(&self, viewer: Viewer, kind: ListKind) -> Option<Listed<'_>> {
        let list = self.lists.by_viewer.get(&(viewer, kind))?;
        let changed = self.lists.changes.get(&(viewer.scope, kind)).copied();
        Some(Listed { list, hasher: &self.hasher, kind, changed })
    }

    /// Every list that is known, with whom it was told to, in no order.
    pub fn lists(&self) -> impl Iterator<Item = (Viewer, ListKind, Listed<'_>)> {
        self.lists
            .by_viewer
            .keys()
            .filter_map(|(viewer, kind)| self.listed(*viewer, *kind).map(|listed| (*viewer, *kind, listed)))
    }

    /// The definition of what a call names (its tool, prompt or resource), as its viewer was told it;
    /// asked for like [`Model::viewer`].
    #[must_use]
    pub fn definition(&self, call: CallIdx) -> Option<Definition<'_>> {
        let named = self.call(call)?;
        let kind = match self.text(named.method) {
            "tools/call" => ListKind::Tools,
            "prompts/get" => ListKind::Prompts,
            "resources/read" => ListKind::Resources,
            _ => return None,
        };
        self.listed(self.viewer(call)?, kind)?.definition(self.text(named.target?))
    }

    /// Keeps what a message tells about lists.
    pub(super) fn note_lists(&mut self, at: At, kind: Kind, row: RowIdx, content: &Content) {
        if at.dir != Dir::S2c {
            return;
        }
        match kind {
            Kind::Notification => self.note_change(at, row),
            Kind::Result => {
                let _ = self.note_page(at, row, content);
            }
            _ => {}
        }
    }

    fn note_change(&mut self, at: At, row: RowIdx) {
        let Some(method) = self.row(row).and_then(|row| row.method) else { return };
        let method = self.names.text(method);
        for kind in ListKind::ALL.into_iter().filter(|kind| kind.change() == method) {
            self.lists.changes.insert((at.scope, kind), at.now);
        }
    }

    fn note_page(&mut self, at: At, row: RowIdx, content: &Content) -> Option<()> {
        let idx = self.row(row)?.call?;
        let call = self.call(idx)?;
        let kind = ListKind::of_method(self.text(call.method))?;
        // A second answer, or one after the client had given up, is nobody's page.
        if call.state != CallState::AnsweredOk
            || call.ended != Some(at.now)
            || call.after.duplicate_answers > 0
        {
            return None;
        }
        let started = call.started;
        let viewer = self.viewer(idx)?;
        let result = content.value().get("result")?;
        let items = result.get(kind.member())?;
        let request = self.request_of(idx);
        let asked = request.and_then(|request| request.at(&["params", "cursor"])?.text());
        let hash = |text: &str| self.hasher.hash_one(text);
        let read = PageRead {
            page: Page {
                call: idx,
                row,
                read: at.now,
                asked: asked.as_deref().map(hash),
                next: result.get("nextCursor").and_then(Value::text).as_deref().map(hash),
                content: content.clone(),
            },
            started,
            items: items
                .items()
                .filter_map(|item| Some((hash(&item.get(kind.key())?.text()?), item.position())))
                .collect(),
        };
        let Lists { by_viewer, bytes, .. } = &mut self.lists;
        let list = by_viewer.entry((viewer, kind)).or_default();
        let before = list.bytes();
        list.take(read);
        *bytes = (*bytes + list.bytes()).saturating_sub(before);
        self.lists.bound();
        Some(())
    }
}

impl Lists {
    /// Forgets the older half of the lists when there is too much of them.
    fn bound(&mut self) {
        if self.bytes <= KEPT_BYTES && self.by_viewer.len() <= LISTS {
            return;
        }
        let mut times: Vec<Mono> = self.by_viewer.values().map(List::touched).collect();
        times.sort_unstable();
        let Some(middle) = times.get(times.len() / 2).copied() else { return };
        self.by_viewer.retain(|_, list| list.touched() > middle);
        self.bytes = self.by_viewer.values().map(List::bytes).sum();
    }
}

#[cfg(test)]
mod tests;

//! Whether what changed was told to those who listen (SUB-17).

use std::collections::{HashMap, VecDeque};

use crate::model::{CallIdx, Subscription, Viewer};
use crate::rules::Blame;
use crate::rules::book::{Book, Look, On};
use crate::rules::case::Case;
use crate::rules::findings::Out;
use crate::spec::lists::ListKind;
use crate::time::Mono;

/// How long the announcement may lag behind the changed list. ours. In nanoseconds.
const LAG_NS: u64 = 5_000_000_000;

/// Lists that are remembered. ours.
const LISTS_LIMIT: usize = 1024;

/// Changes in doubt at once, and subscriptions that are asked for one. ours.
const DOUBTS_LIMIT: usize = 64;

pub(super) fn rules(book: &mut Book) {
    let lists = ["tools/list", "prompts/list", "resources/list"].map(On::ResultOf);
    let when: Vec<On> = lists.into_iter().chain([On::Clock]).collect();
    book.rule("SUB-17", &when, Changes::default());
}

/// A whole list as it was told last.
#[derive(Debug, Clone, Copy)]
struct Known {
    /// Equal for the same names, whatever their order.
    names: u64,
    call: CallIdx,
    asked: Mono,
}

/// A change that a listener should have been told.
#[derive(Debug)]
struct Doubt {
    kind: ListKind,
    listen: CallIdx,
    /// How often it had been told when the changed list was answered.
    told: u32,
    before: CallIdx,
    after: CallIdx,
    at: Mono,
}

/// The latest lists, and changes that may still be announced.
#[derive(Debug, Default)]
struct Changes {
    lists: HashMap<(Viewer, ListKind), Known>,
    /// Oldest first.
    doubts: VecDeque<Doubt>,
}

impl Look for Changes {
    fn look(&mut self, case: &Case<'_>, _out: &mut Out<'_>) {
        let (Some(kind), Some(idx)) = (ListKind::of_method(case.method()), case.seen.call) else { return };
        let Some(viewer) = case.model.viewer(idx) else { return };
        let walk = case.model.listed(viewer, kind).and_then(|listed| listed.walk_of(idx));
        let Some(walk) = walk.filter(|walk| walk.is_whole() && !walk.is_cut()) else { return };
        let names = walk.items().fold(0, |sum: u64, (name, _)| sum.wrapping_add(name));
        let key = (viewer, kind);
        if self.lists.len() >= LISTS_LIMIT && !self.lists.contains_key(&key) {
            return;
        }
        let known = Known { names, call: idx, asked: walk.started };
        let Some(before) = self.lists.insert(key, known).filter(|before| before.names != names) else {
            return;
        };
        let room = DOUBTS_LIMIT.saturating_sub(self.doubts.len());
        let listens = case.model.subscriptions().iter().rev().take(DOUBTS_LIMIT);
        let mine = listens.filter(|found| has_listened(case, found, kind, before.asked, viewer)).take(room);
        self.doubts.extend(mine.map(|found| Doubt {
            kind,
            listen: found.call,
            told: told(found, kind),
            before: before.call,
            after: idx,
            at: case.seen.at,
        }));
    }

    fn wait(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        while let Some(doubt) = self.doubts.pop_front_if(|doubt| case.seen.at.ns_since(doubt.at) > LAG_NS) {
            let Some(found) = case.model.subscription(doubt.listen) else { continue };
            let is_over = case.model.call(doubt.listen).is_none_or(|call| call.state.is_terminal());
            if is_over || told(found, doubt.kind) > doubt.told {
                continue;
            }
            let sentence = format!(
                "{} gave other names than {}, and {} was not told",
                case.name(doubt.after),
                case.name(doubt.before),
                case.name(doubt.listen)
            );
            let draft = out.about(case.model, doubt.listen).blame(Blame::Server);
            draft.and_call(case.model, doubt.before).and_call(case.model, doubt.after).say(out, sentence);
        }
    }
}

/// How often a subscription was told that a list had changed.
fn told(found: &Subscription, kind: ListKind) -> u32 {
    match kind {
        ListKind::Tools => found.delivered.tools,
        ListKind::Prompts => found.delivered.prompts,
        ListKind::Resources | ListKind::Templates => found.delivered.resources,
    }
}

/// Open since the earlier list was asked for, for its changes and by the same viewer, and brought
/// nothing since.
fn has_listened(case: &Case<'_>, found: &Subscription, kind: ListKind, since: Mono, viewer: Viewer) -> bool {
    let is_open = case.model.call(found.call).is_some_and(|call| !call.state.is_terminal());
    let is_granted = found.granted.as_ref().is_some_and(|granted| granted.kinds.allows(kind.change()));
    let was_open = found.acknowledged.is_some_and(|at| at <= since);
    let was_quiet = found.brought.is_none_or(|at| at < since);
    is_open && is_granted && was_open && was_quiet && case.model.viewer(found.call) == Some(viewer)
}

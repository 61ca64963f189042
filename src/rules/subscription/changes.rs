//! Whether what changed was told to those who listen (SUB-17).

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use crate::model::{CallIdx, Delivered, Exchange, Kinds, ScopeIdx, Subscription};
use crate::rules::Blame;
use crate::rules::book::{Book, Look, On};
use crate::rules::case::Case;
use crate::rules::findings::Out;
use crate::time::Mono;
use crate::wire::json::Value;

/// How long the announcement may lag behind the changed list. ours. In nanoseconds.
const LAG_NS: u64 = 5_000_000_000;

/// Callers whose lists are remembered, changes in doubt, and subscriptions asked for one. ours.
const LISTS_LIMIT: usize = 1024;
const DOUBTS_LIMIT: usize = 64;

pub(super) fn rules(book: &mut Book) {
    let lists = ["tools/list", "prompts/list", "resources/list"].map(On::ResultOf);
    let when: Vec<On> = lists.into_iter().chain([On::Clock]).collect();
    book.rule("SUB-17", &when, Changes::default());
}

/// The kinds of list that are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum List {
    Tools,
    Prompts,
    Resources,
}

impl List {
    fn of(method: &str) -> Option<List> {
        match method {
            "tools/list" => Some(List::Tools),
            "prompts/list" => Some(List::Prompts),
            "resources/list" => Some(List::Resources),
            _ => None,
        }
    }

    /// The member that holds it, and what names one item.
    fn members(self) -> (&'static str, &'static str) {
        match self {
            List::Tools => ("tools", "name"),
            List::Prompts => ("prompts", "name"),
            List::Resources => ("resources", "uri"),
        }
    }

    fn is_in(self, kinds: Kinds) -> bool {
        match self {
            List::Tools => kinds.tools,
            List::Prompts => kinds.prompts,
            List::Resources => kinds.resources,
        }
    }

    fn told(self, delivered: Delivered) -> u32 {
        match self {
            List::Tools => delivered.tools,
            List::Prompts => delivered.prompts,
            List::Resources => delivered.resources,
        }
    }
}

/// A whole list as it was answered last.
#[derive(Debug, Clone, Copy)]
struct Known {
    /// Equal for the same set of names.
    names: u64,
    call: CallIdx,
    asked: Mono,
}

/// A change that a listener should have been told.
#[derive(Debug)]
struct Doubt {
    list: List,
    listen: CallIdx,
    /// How often it had been told when the changed list was answered.
    told: u32,
    before: CallIdx,
    after: CallIdx,
    at: Mono,
}

/// The latest lists by caller, and changes that may still be announced.
#[derive(Debug, Default)]
struct Changes {
    lists: HashMap<(ScopeIdx, List, u64), Known>,
    /// Oldest first.
    doubts: VecDeque<Doubt>,
    hasher: BuildHasherDefault<DefaultHasher>,
}

impl Look for Changes {
    fn look(&mut self, case: &Case<'_>, _out: &mut Out<'_>) {
        let (Some(list), Some(idx), Some(call)) = (List::of(case.method()), case.seen.call, case.call())
        else {
            return;
        };
        let Some(names) = self.names(case, list) else { return };
        let caller = self.caller(case.exchange());
        let key = (case.seen.scope, list, caller);
        if self.lists.len() >= LISTS_LIMIT && !self.lists.contains_key(&key) {
            return;
        }
        let known = Known { names, call: idx, asked: call.started };
        let Some(before) = self.lists.insert(key, known).filter(|before| before.names != names) else {
            return;
        };
        let listens = case.model.subscriptions().iter().rev().take(DOUBTS_LIMIT);
        let mine = listens.filter(|found| self.has_listened(case, found, list, before.asked, caller));
        let doubts: Vec<Doubt> = mine
            .map(|found| Doubt {
                list,
                listen: found.call,
                told: list.told(found.delivered),
                before: before.call,
                after: idx,
                at: case.seen.at,
            })
            .collect();
        let room = DOUBTS_LIMIT.saturating_sub(self.doubts.len());
        self.doubts.extend(doubts.into_iter().take(room));
    }

    fn wait(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        while let Some(doubt) = self.doubts.pop_front_if(|doubt| case.seen.at.ns_since(doubt.at) > LAG_NS) {
            let Some(found) = case.model.subscription(doubt.listen) else { continue };
            let is_over = case.model.call(doubt.listen).is_none_or(|call| call.state.is_terminal());
            if is_over || doubt.list.told(found.delivered) > doubt.told {
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

impl Changes {
    /// The names of a list that came in one answer.
    fn names(&self, case: &Case<'_>, list: List) -> Option<u64> {
        let (result, asked) = (case.result()?, case.request()?);
        let is_part = asked.at(&["params", "cursor"]).is_some() || result.get("nextCursor").is_some();
        let (items, name) = list.members();
        let items = result.get(items).filter(|items| items.is_array() && !is_part)?;
        let names = items.items().map(|item| item.get(name).and_then(Value::text));
        // Whatever their order.
        Some(names.fold(0, |sum: u64, name| sum.wrapping_add(self.hasher.hash_one(name))))
    }

    /// Equal for requests that sign alike; lists may differ between those that do not.
    fn caller(&self, exchange: Option<&Exchange>) -> u64 {
        self.hasher.hash_one(exchange.and_then(|exchange| exchange.headers().get("authorization")))
    }

    /// Open since the earlier list was asked for, for this kind and by this caller, and not told since.
    fn has_listened(
        &self,
        case: &Case<'_>,
        found: &Subscription,
        list: List,
        since: Mono,
        caller: u64,
    ) -> bool {
        let Some(call) = case.model.call(found.call) else { return false };
        let is_granted = found.granted.as_ref().is_some_and(|granted| list.is_in(granted.kinds));
        let exchange = call.stream.and_then(|stream| case.model.exchange_of(stream));
        let is_open = !call.state.is_terminal() && call.scope == case.seen.scope;
        let was_told = found.brought.is_some_and(|at| at >= since);
        is_open
            && is_granted
            && found.acknowledged.is_some_and(|at| at <= since)
            && !was_told
            && self.caller(exchange) == caller
    }
}

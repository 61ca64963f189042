//! Tools in their list: each once, in a stable order, the same for everybody (TOOL-03..05).

use std::collections::HashMap;

use crate::model::{CallIdx, Viewer, Walk};
use crate::rules::book::{Book, Look, On};
use crate::rules::case::{Case, short};
use crate::rules::findings::Out;
use crate::rules::listing::listed;
use crate::spec::lists::ListKind;
use crate::time::{Mono, Span};
use crate::wire::json::Value;

/// Tools of a walk that is remembered; a longer one is not compared. ours.
const TOOLS: usize = 2_000;

/// Viewers whose last walk is remembered; of more, all are forgotten. ours.
const VIEWERS: usize = 256;

/// Repeated names that are told of one page. ours.
const REPEATS: usize = 8;

/// Two walks this close in time should tell the same. In nanoseconds.
const CLOSE_NS: u64 = 1_000_000_000;

pub(super) fn rules(book: &mut Book) {
    book.rule("TOOL-03", &[On::ResultOf("tools/list")], once);
    book.rule("TOOL-04", &[On::ResultOf("tools/list")], Before::new(stable));
    book.rule("TOOL-05", &[On::ResultOf("tools/list")], Before::new(same_for_all));
}

fn once(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(call) = case.seen.call else { return };
    let Some(listed) = listed(case, ListKind::Tools) else { return };
    let Some(walk) = listed.walk_of(call) else { return };
    // A walk that goes in circles meets everything again.
    if walk.turns_back() {
        return;
    }
    for name in walk.repeats().filter_map(|tool| tool.get("name")).filter_map(Value::text).take(REPEATS) {
        let (subject, name) = (case.subject(), short(&name));
        out.gather(case, (case.seen.scope, &name), |times| {
            let often = if times == 1 { "twice".to_owned() } else { format!("twice, told {times} times") };
            format!("{name} stands in the list of tools {often}: {subject}")
        });
    }
}

/// What a whole walk told.
struct Told {
    call: CallIdx,
    conn: Option<u64>,
    started: Mono,
    ended: Mono,
    /// What stands for each name, in order.
    names: Vec<u64>,
}

type Compare = fn(&Case<'_>, &mut Out<'_>, &Told, &Told);

/// Compares each whole walk with the one before it.
struct Before {
    last: HashMap<Viewer, Told>,
    compare: Compare,
}

impl Before {
    fn new(compare: Compare) -> Before {
        Before { last: HashMap::new(), compare }
    }
}

impl Look for Before {
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        let Some((viewer, now)) = told(case) else { return };
        if self.last.len() >= VIEWERS {
            self.last.clear();
        }
        let changed = case.model.listed(viewer, ListKind::Tools).and_then(|listed| listed.changed());
        if let Some(before) = self.last.get(&viewer)
            && changed.is_none_or(|changed| changed < before.started)
        {
            (self.compare)(case, out, before, &now);
        }
        self.last.insert(viewer, now);
    }
}

/// The walk that the case has brought to its end.
fn told(case: &Case<'_>) -> Option<(Viewer, Told)> {
    let idx = case.seen.call?;
    let viewer = case.model.viewer(idx)?;
    let listed = case.model.listed(viewer, ListKind::Tools)?;
    let is_kept = |walk: &&Walk| walk.is_whole() && !walk.is_cut() && walk.len() <= TOOLS;
    let walk = listed.walk_of(idx).filter(is_kept)?;
    let names = walk.items().map(|(name, _)| name).collect();
    let conn = case.call().and_then(|call| call.conn);
    Some((viewer, Told { call: idx, conn, started: walk.started, ended: case.seen.at, names }))
}

fn stable(case: &Case<'_>, out: &mut Out<'_>, before: &Told, now: &Told) {
    if before.names == now.names || sorted(&before.names) != sorted(&now.names) {
        return;
    }
    let differs = before.names.iter().zip(&now.names).take_while(|(before, now)| before == now).count() + 1;
    let subject = case.subject();
    out.draft(case).and_call(case.model, before.call).gather(out, case.seen.scope, |times| {
        let often = if times == 1 { String::new() } else { format!(", for the {times}th time") };
        format!("{subject} tells the same tools as the list before in another order, from place {differs} on{often}")
    });
}

fn same_for_all(case: &Case<'_>, out: &mut Out<'_>, before: &Told, now: &Told) {
    let apart = now.ended.ns_since(before.ended);
    let is_elsewhere = before.conn.is_some() && now.conn.is_some() && before.conn != now.conn;
    if !is_elsewhere || apart > CLOSE_NS || sorted(&before.names) == sorted(&now.names) {
        return;
    }
    let (subject, then) = (case.subject(), case.name(before.call));
    let (was, is) = (before.names.len(), now.names.len());
    out.draft(case).and_call(case.model, before.call).gather(out, case.seen.scope, |_| {
        format!(
            "{subject} tells other tools ({is}) than {then} did on another connection {} before ({was})",
            Span(apart)
        )
    });
}

fn sorted(names: &[u64]) -> Vec<u64> {
    let mut sorted = names.to_vec();
    sorted.sort_unstable();
    sorted
}

//! Pagination: cursors and walks (PAG-01..05).

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use crate::event::Transport;
use crate::model::{CallIdx, Model, Name, ScopeIdx, Sight};
use crate::rules::Severity;
use crate::rules::book::{Book, Look, On, SightKind};
use crate::rules::case::{Case, short};
use crate::rules::findings::Out;
use crate::rules::listing::{listed, say};
use crate::spec::codes::{
    HEADER_MISMATCH, INVALID_PARAMS, METHOD_NOT_FOUND, MISSING_REQUIRED_CLIENT_CAPABILITY,
    UNSUPPORTED_PROTOCOL_VERSION,
};
use crate::spec::lists::ListKind;
use crate::time::Mono;
use crate::wire::json::Value;
use crate::wire::jsonrpc::Kind;

/// Methods that are told in pages.
const PAGED: [&str; 5] =
    ["tools/list", "prompts/list", "resources/list", "resources/templates/list", "tasks/list"];

/// Cursors that are remembered; after more, the rule about them is silent. ours.
const CURSORS: usize = 100_000;

/// How long a client has to go on after an empty cursor. ours. In nanoseconds.
const PATIENCE_NS: u64 = 5_000_000_000;

/// Codes that refuse something else than the cursor.
const OTHER_CODES: [i64; 5] = [
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    HEADER_MISMATCH,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    UNSUPPORTED_PROTOCOL_VERSION,
];

pub(super) fn rules(book: &mut Book) {
    let results = PAGED.map(On::ResultOf);
    let requests = PAGED.map(On::RequestOf);
    let both = [results, requests].concat();
    book.rule("PAG-01", &both, Issued::default());
    book.rule("PAG-02", &results, string);
    let ends = [On::Sight(SightKind::Ended), On::Sight(SightKind::ProcessEnded)];
    book.rule("PAG-03", &[&both[..], &ends].concat(), Left::default());
    book.rule("PAG-04", &results, advances);
    book.rule("PAG-05", &PAGED.map(On::ErrorOf), refused);
}

/// The cursor that a request asks with; `null` stands for none.
fn asked(params: Option<Value<'_>>) -> Option<Value<'_>> {
    params?.get("cursor").filter(|cursor| !cursor.is_null())
}

fn next<'a>(case: &Case<'a>) -> Option<Value<'a>> {
    case.result()?.get("nextCursor")
}

/// Cursors that servers have given out, by method: a client may keep one from an earlier session.
#[derive(Default)]
struct Issued {
    known: HashSet<u64>,
    is_over: bool,
}

impl Look for Issued {
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        let key = |cursor: Value<'_>| {
            let hasher = BuildHasherDefault::<DefaultHasher>::default();
            cursor.text().map(|text| hasher.hash_one((case.method(), text)))
        };
        if case.message().is_some_and(|message| message.kind == Kind::Result) {
            let Some(key) = next(case).and_then(key) else { return };
            self.is_over |= self.known.len() >= CURSORS;
            if !self.is_over {
                self.known.insert(key);
            }
            return;
        }
        let Some(cursor) = asked(case.params()).filter(|_| !self.is_over) else { return };
        if key(cursor).is_some_and(|key| self.known.contains(&key)) {
            return;
        }
        let level = if case.is_full() { Severity::Warning } else { Severity::Hint };
        let subject = case.subject();
        let draft = out.draft(case).at_most(level);
        draft.say(
            out,
            format!("{subject} asks with the cursor {}, which no answer gave out", short(cursor.raw())),
        );
    }
}

fn string(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(cursor) = next(case).filter(|cursor| cursor.text().is_none()) else { return };
    say(case, out, Severity::Error, &[format!("nextCursor is {}, not a string", short(cursor.raw()))]);
}

/// Walks that stand before an empty cursor.
#[derive(Default)]
struct Left {
    waiting: HashMap<(ScopeIdx, Name), Waiting>,
}

#[derive(Clone, Copy)]
struct Waiting {
    call: CallIdx,
    /// The event of the page with the empty cursor.
    n: u64,
    since: Mono,
    pages: usize,
}

impl Look for Left {
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        if matches!(case.what(), Sight::Ended { .. } | Sight::ProcessEnded { .. }) {
            let scope = case.seen.scope;
            let mut due: Vec<_> =
                self.waiting.extract_if(|(of, _), _| *of == scope).map(|(_, left)| left).collect();
            due.retain(|left| case.seen.at.ns_since(left.since) >= PATIENCE_NS);
            due.sort_by_key(|left| left.n);
            for left in due {
                left.say(case.model, out);
            }
            return;
        }
        let (Some(message), Some(idx), Some(call)) = (case.message(), case.seen.call, case.call()) else {
            return;
        };
        let key = (case.seen.scope, call.method);
        if message.kind == Kind::Request {
            self.asked(case, out, key);
        } else if next(case).is_some_and(|cursor| cursor.is_text("")) {
            let pages = ListKind::of_method(case.method())
                .and_then(|kind| Some(listed(case, kind)?.walk_of(idx)?.pages().len()));
            // Only who has followed a cursor before is known to follow them.
            let (Some(pages), Some(row)) = (pages.filter(|pages| *pages > 1), case.row()) else { return };
            self.waiting.insert(key, Waiting { call: idx, n: row.n, since: case.seen.at, pages });
        }
    }
}

impl Left {
    fn asked(&mut self, case: &Case<'_>, out: &mut Out<'_>, key: (ScopeIdx, Name)) {
        let Some(left) = self.waiting.get(&key).copied() else { return };
        let cursor = asked(case.params());
        let is_same = case.transport() == Transport::Stdio || case.is_one_connection(left.call);
        if cursor.is_some_and(|cursor| cursor.is_text("")) {
            self.waiting.remove(&key);
        } else if cursor.is_none() && is_same {
            self.waiting.remove(&key);
            left.say(case.model, out);
        }
    }
}

impl Waiting {
    fn say(self, model: &Model, out: &mut Out<'_>) {
        let Some(call) = model.call(self.call) else { return };
        let method = model.text(call.method);
        let sentence = format!(
            "{method} was left after {} pages at nextCursor \"\" (id {}), which is a cursor like any other",
            self.pages, call.id
        );
        out.about(model, self.call).and_event(self.n).say(out, sentence);
    }
}

fn advances(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(cursor) = next(case).and_then(Value::text) else { return };
    let Some(idx) = case.seen.call else { return };
    let is_same = asked(case.request_params()).is_some_and(|asked| asked.is_text(&cursor));
    let turns_back = || {
        let listed = listed(case, ListKind::of_method(case.method())?)?;
        Some(listed.walk_of(idx)?.turns_back())
    };
    if !is_same && turns_back() != Some(true) {
        return;
    }
    let (subject, cursor) = (case.subject(), short(&cursor));
    let how = if is_same { "the cursor that it was asked with" } else { "a cursor of a page before" };
    out.gather(case, (case.seen.scope, case.method()), |times| {
        let often = if times == 1 { String::new() } else { format!(" ({times} pages by now)") };
        format!("{subject} goes on at {how}, \"{cursor}\", so that the list has no end{often}")
    });
}

fn refused(case: &Case<'_>, out: &mut Out<'_>) {
    let (Some(idx), Some(call)) = (case.seen.call, case.call()) else { return };
    let Some(code) = call.error_code.filter(|code| !OTHER_CODES.contains(code)) else { return };
    // A status of its own says that the request got no further than the door.
    let is_inside = call.status.is_none_or(|status| matches!(status, 200 | 400));
    let unknown = out.findings.about("PAG-01", idx).filter(|_| case.is_full() && is_inside);
    let Some(unknown) = unknown else { return };
    let subject = case.subject();
    let draft = out.draft(case).because(Some(unknown));
    draft.say(out, format!("{subject}, with a cursor that was never given out, was answered with {code}"));
}

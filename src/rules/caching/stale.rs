//! A told change makes stale what was read (CCH-08).

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use crate::event::Transport;
use crate::model::ScopeIdx;
use crate::rules::book::{Book, Look, On};
use crate::rules::case::Case;
use crate::rules::findings::Out;
use crate::spec::lists::ListKind;
use crate::time::{Mono, Span};
use crate::wire::jsonrpc::Kind;

/// How long a client has to fetch a list anew. In nanoseconds.
const PATIENCE_NS: u64 = 60_000_000_000;

/// Notifications that something which may be cached has changed.
pub(super) const CHANGES: [&str; 4] = [
    "notifications/tools/list_changed",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
    "notifications/resources/updated",
];

/// Requests that use an item of a list.
const USES: [(&str, ListKind); 3] = [
    ("tools/call", ListKind::Tools),
    ("prompts/get", ListKind::Prompts),
    ("resources/read", ListKind::Resources),
];

pub(super) fn rules(book: &mut Book) {
    let mut when: Vec<On> = CHANGES.into_iter().take(3).map(On::NotificationOf).collect();
    when.extend(ListKind::ALL.map(|kind| On::RequestOf(kind.method())));
    when.extend(USES.map(|(method, _)| On::RequestOf(method)));
    book.rule("CCH-08", &when, Stale::default());
}

/// Changes that were told and not yet followed by a fetch, by who was told.
#[derive(Default)]
struct Stale {
    told: HashMap<(Client, ListKind), Change>,
}

/// One client: that of a pipe, or of an authorisation.
type Client = (ScopeIdx, Option<u64>);

#[derive(Clone, Copy)]
struct Change {
    n: u64,
    at: Mono,
}

impl Look for Stale {
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        let (Some(client), Some(message)) = (client(case), case.message()) else { return };
        let method = case.method();
        if message.kind == Kind::Notification {
            self.changed(case, client, method);
        } else if let Some(kind) = ListKind::of_method(method) {
            self.told.remove(&(client, resources(kind)));
        } else if let Some((_, kind)) = USES.iter().find(|(known, _)| *known == method) {
            self.used(case, out, (client, *kind));
        }
    }
}

impl Stale {
    fn changed(&mut self, case: &Case<'_>, client: Client, method: &str) {
        let Some(kind) = ListKind::ALL.into_iter().find(|kind| kind.change() == method) else { return };
        // Who never fetched the list has nothing that could be stale.
        let was_listed =
            case.model.lists().any(|(viewer, of, _)| viewer.scope == case.seen.scope && of == kind);
        if let (true, Some(row)) = (was_listed, case.row()) {
            self.told.entry((client, kind)).or_insert(Change { n: row.n, at: case.seen.at });
        }
    }

    fn used(&mut self, case: &Case<'_>, out: &mut Out<'_>, key: (Client, ListKind)) {
        let Some(change) = self.told.get(&key).copied() else { return };
        let age = case.seen.at.ns_since(change.at);
        if age < PATIENCE_NS {
            return;
        }
        self.told.remove(&key);
        let (subject, method) = (case.subject(), key.1.method());
        let draft = out.draft(case).and_event(change.n);
        draft.say(
            out,
            format!(
                "{subject} comes {} after a change was told, and {method} was not asked for since",
                Span(age)
            ),
        );
    }
}

/// Resources and their templates change together.
fn resources(kind: ListKind) -> ListKind {
    if kind == ListKind::Templates { ListKind::Resources } else { kind }
}

/// The client of the case; `None`: it cannot be told from others.
fn client(case: &Case<'_>) -> Option<Client> {
    if case.transport() == Transport::Stdio {
        return Some((case.seen.scope, None));
    }
    let authorization = case.exchange()?.headers().get("authorization")?;
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    Some((case.seen.scope, Some(hasher.hash_one(authorization))))
}

//! What a legacy session has in the place of subscriptions: single resources watched (SUB-24).

use std::collections::HashMap;

use crate::model::{ScopeIdx, Sight};
use crate::rules::book::{Book, Look, On, SightKind};
use crate::rules::case::{Case, count, short};
use crate::rules::findings::Out;
use crate::time::Mono;
use crate::wire::json::Value;

const SUBSCRIBE: &str = "resources/subscribe";
const UNSUBSCRIBE: &str = "resources/unsubscribe";
const UPDATED: &str = "notifications/resources/updated";

/// Resources that are remembered of one session; more are not judged. ours.
const WATCHED_LIMIT: usize = 256;

pub(super) fn rules(book: &mut Book) {
    let when = [
        On::RequestOf(SUBSCRIBE),
        On::RequestOf(UNSUBSCRIBE),
        On::NotificationOf(UPDATED),
        On::Sight(SightKind::SessionEnded),
        On::Sight(SightKind::ProcessEnded),
    ];
    book.rule("SUB-24", &when, Watched::default());
}

/// What each session watches: since when not any more, by URI. A request that was refused counts as
/// well: servers are seen that refuse it and send updates all the same.
#[derive(Debug, Default)]
struct Watched {
    sessions: HashMap<ScopeIdx, HashMap<String, Option<Mono>>>,
}

impl Look for Watched {
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        if matches!(case.what(), Sight::SessionEnded { .. } | Sight::ProcessEnded { .. }) {
            self.sessions.remove(&case.seen.scope);
            return;
        }
        let Some(uri) = case.params().and_then(|params| params.get("uri")).and_then(Value::text) else {
            return;
        };
        let watched = self.sessions.entry(case.seen.scope).or_default();
        match case.method() {
            SUBSCRIBE if watched.len() < WATCHED_LIMIT => {
                watched.insert(uri.into_owned(), None);
            }
            UNSUBSCRIBE => {
                if let Some(until) = watched.get_mut(&*uri) {
                    *until = Some(case.seen.at);
                }
            }
            UPDATED => {
                let now = case.seen.at;
                let is_crossing = |until: Mono| now.ns_since(until) <= case.window_ns();
                let is_watched = |(watched, until): (&String, &Option<Mono>)| {
                    uri.starts_with(watched.as_str()) && until.is_none_or(is_crossing)
                };
                let is_known = watched.len() < WATCHED_LIMIT && case.is_full();
                let is_open = watched.get(&*uri).is_some_and(Option::is_none);
                if is_known && !is_open && !watched.iter().any(is_watched) {
                    let uri = short(&uri);
                    out.gather(case, case.seen.scope, |times| {
                        format!("{} of resources that nobody watches; last: {uri}", count(times, "update"))
                    });
                }
            }
            _ => {}
        }
    }
}

//! Requests without an answer, by id: one scope of ids, that of a process or of a legacy session.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::core::Live;
use super::message::Notification;
use crate::wire::jsonrpc::{self, Id};

#[derive(Debug, Default)]
struct Table {
    by_id: HashMap<Id, Arc<Live>>,
    tokens: HashSet<Id>,
}

/// The requests, shared by those who start, answer and cancel them.
#[derive(Debug, Clone, Default)]
pub(super) struct Calls(Arc<Mutex<Table>>);

impl Calls {
    /// A poisoned lock is still good: no step can stop midway.
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn insert(&self, live: &Arc<Live>) {
        let mut table = self.lock();
        table.tokens.extend(live.token.clone());
        table.by_id.insert(live.id.clone(), live.clone());
    }

    pub(super) fn take(&self, id: &Id) -> Option<Arc<Live>> {
        let mut table = self.lock();
        let live = table.by_id.remove(id)?;
        if let Some(token) = &live.token {
            table.tokens.remove(token);
        }
        Some(live)
    }

    pub(super) fn take_all(&self) -> Vec<Arc<Live>> {
        let mut table = self.lock();
        table.tokens.clear();
        table.by_id.drain().map(|(_, live)| live).collect()
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.lock().by_id.len()
    }

    /// What keeps this id or this token from being used (RPC-05, PRG-02).
    pub(super) fn objection(&self, id: &Id, token: Option<&Id>) -> Option<&'static str> {
        let table = self.lock();
        if table.by_id.contains_key(id) {
            return Some("this id belongs to a request without an answer yet");
        }
        token.is_some_and(|token| table.tokens.contains(token)).then_some("this progress token is in use")
    }

    /// Takes a `notifications/cancelled`; a malformed, late or unknown one is ignored.
    pub(super) fn cancel(&self, notification: &Notification) {
        let Some(params) = notification.params.as_deref() else { return };
        let Some(id) = jsonrpc::at(params, &["requestId"]).and_then(|raw| Id::from_raw(raw.get())) else {
            return;
        };
        if let Some(live) = self.take(&id) {
            let reason = jsonrpc::at(params, &["reason"]).and_then(jsonrpc::string);
            live.cancel(reason.as_deref());
        }
    }
}

//! Who listens for which changes, and what waits for each.
//!
//! A change goes into the bounded queue of every listener that asked for it, and waits for nobody.
//! What says the same as a message that waits takes its place; when nothing can give way any more
//! the listener has lost something, is told so, and its subscription ends.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use serde_json::{Map, Value, json};
use tokio::sync::Notify;

use super::core::object;
use super::message;
use crate::machine::buffer::{Buffer, Kind};
use crate::spec::methods;
use crate::wire::jsonrpc::Id;

/// Changes that may wait for one listener. ours: three lists, and as many resources and tasks as
/// anybody has watched at once.
const CAPACITY: usize = 64;

/// Something that listeners may want to know.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Change {
    /// The list of tools is another one.
    Tools,
    /// The list of prompts is another one.
    Prompts,
    /// The list of resources is another one.
    Resources,
    /// The resource of this URI is another one.
    Updated(String),
    /// A task has come to another state.
    Task {
        id: String,
        /// All that `tasks/get` would say.
        state: Map<String, Value>,
        /// It is over: nothing takes the place of this message.
        is_over: bool,
    },
}

impl Change {
    /// The notification; `subscription`: the listen request that it belongs to, in the modern era.
    pub(super) fn notification(&self, subscription: Option<&Id>) -> Bytes {
        let (method, params) = match self {
            Change::Tools => (methods::TOOLS_CHANGED, Map::new()),
            Change::Prompts => (methods::PROMPTS_CHANGED, Map::new()),
            Change::Resources => (methods::RESOURCES_CHANGED, Map::new()),
            Change::Updated(uri) => (methods::RESOURCE_UPDATED, object(json!({ "uri": uri }))),
            Change::Task { state, .. } => (methods::TASKS, state.clone()),
        };
        match subscription {
            Some(id) => message::tagged(method, params, id),
            None if params.is_empty() => message::bare(method),
            None => message::notification(method, &Value::Object(params)),
        }
    }

    fn kind(&self) -> Kind<Key> {
        match self {
            Change::Tools => Kind::Latest(Key::Tools),
            Change::Prompts => Kind::Latest(Key::Prompts),
            Change::Resources => Kind::Latest(Key::Resources),
            Change::Updated(uri) => Kind::Latest(Key::Uri(uri.clone())),
            Change::Task { id, is_over: false, .. } => Kind::Latest(Key::Task(id.clone())),
            Change::Task { id, is_over: true, .. } => Kind::Last(Key::Task(id.clone())),
        }
    }
}

/// What belongs together in a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Key {
    Tools,
    Prompts,
    Resources,
    Uri(String),
    Task(String),
}

/// What somebody wants to know. SUB-05: nothing else is told.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Filter {
    pub(super) tools: bool,
    pub(super) prompts: bool,
    pub(super) resources: bool,
    pub(super) uris: Vec<String>,
    pub(super) tasks: Vec<String>,
}

impl Filter {
    fn wants(&self, change: &Change) -> bool {
        match change {
            Change::Tools => self.tools,
            Change::Prompts => self.prompts,
            Change::Resources => self.resources,
            Change::Updated(uri) => self.uris.contains(uri),
            Change::Task { id, .. } => self.tasks.contains(id),
        }
    }
}

/// All listeners of a server.
#[derive(Debug, Default)]
pub(super) struct Hub {
    last: AtomicU64,
    listeners: Mutex<HashMap<u64, Arc<Waiting>>>,
}

impl Hub {
    /// Tells everybody who wants to know. Waits for nobody.
    pub(super) fn tell(&self, change: &Change) {
        for waiting in lock(&self.listeners).values().filter(|waiting| lock(&waiting.filter).wants(change)) {
            waiting.push(change);
        }
    }

    /// Listens from now on, until the listener is dropped.
    pub(super) fn listen(self: &Arc<Self>, filter: Filter) -> Listener {
        let id = self.last.fetch_add(1, Ordering::Relaxed);
        let waiting = Arc::new(Waiting::new(filter));
        lock(&self.listeners).insert(id, waiting.clone());
        Listener { hub: self.clone(), id, waiting }
    }

    /// How many listen.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        lock(&self.listeners).len()
    }
}

/// What waits for one listener.
#[derive(Debug)]
struct Waiting {
    filter: Mutex<Filter>,
    /// `None`: something had no room and was lost.
    queue: Mutex<Option<Buffer<Key, Change>>>,
    has_more: Notify,
}

impl Waiting {
    fn new(filter: Filter) -> Waiting {
        Waiting {
            filter: Mutex::new(filter),
            queue: Mutex::new(Buffer::new(CAPACITY).ok()),
            has_more: Notify::new(),
        }
    }

    fn push(&self, change: &Change) {
        let mut queue = lock(&self.queue);
        if queue.as_mut().is_some_and(|queue| queue.push(change.kind(), change.clone()).is_err()) {
            *queue = None;
        }
        self.has_more.notify_one();
    }
}

/// One who listens.
#[derive(Debug)]
pub(super) struct Listener {
    hub: Arc<Hub>,
    id: u64,
    waiting: Arc<Waiting>,
}

impl Listener {
    /// Changes what it wants to know from now on.
    pub(super) fn want<T>(&self, change: impl FnOnce(&mut Filter) -> T) -> T {
        change(&mut lock(&self.waiting.filter))
    }

    /// Waits for the next change; `None`: one was lost, for there was no room for it. Nothing is
    /// lost when the wait is given up.
    pub(super) async fn next(&self) -> Option<Change> {
        loop {
            if let Some(change) = lock(&self.waiting.queue).as_mut()?.pop().map(|(_, change)| change) {
                return Some(change);
            }
            self.waiting.has_more.notified().await;
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        lock(&self.hub.listeners).remove(&self.id);
    }
}

/// A poisoned lock is still good: no step can stop midway.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(state: &str, is_over: bool) -> Change {
        let state = object(json!({ "status": state }));
        Change::Task { id: "t".to_owned(), state, is_over }
    }

    #[tokio::test]
    async fn a_listener_hears_what_it_asked_for_and_the_same_only_once() {
        let hub = Arc::new(Hub::default());
        let uri = |name: &str| Change::Updated(format!("notes://{name}"));
        let filter = Filter {
            tools: true,
            uris: vec!["notes://a".to_owned(), "notes://b".to_owned()],
            tasks: vec!["t".to_owned()],
            ..Filter::default()
        };
        let listener = hub.listen(filter);
        for change in [
            Change::Tools,
            Change::Prompts,
            uri("a"),
            uri("c"),
            task("working", false),
            uri("b"),
            Change::Tools,
            uri("a"),
            task("completed", true),
            Change::Resources,
        ] {
            hub.tell(&change);
        }
        let mut heard = Vec::new();
        for _ in 0..4 {
            heard.push(listener.next().await.unwrap());
        }
        assert_eq!(heard, [Change::Tools, uri("a"), task("completed", true), uri("b")]);
        let nothing = tokio::time::timeout(crate::time::Ms(1).into(), listener.next()).await;
        assert!(nothing.is_err());
        drop(listener);
        assert_eq!(hub.len(), 0);
    }

    #[tokio::test]
    async fn a_listener_may_want_something_else() {
        let hub = Arc::new(Hub::default());
        let listener = hub.listen(Filter::default());
        let change = Change::Updated("notes://a".to_owned());
        hub.tell(&change);
        listener.want(|filter| filter.uris.push("notes://a".to_owned()));
        hub.tell(&change);
        assert_eq!(listener.next().await, Some(change.clone()));
        listener.want(|filter| filter.uris.clear());
        hub.tell(&change);
        assert!(tokio::time::timeout(crate::time::Ms(1).into(), listener.next()).await.is_err());
    }

    #[tokio::test]
    async fn a_listener_that_cannot_be_told_everything_is_told_so() {
        let hub = Arc::new(Hub::default());
        let uris: Vec<String> = (0..=CAPACITY).map(|k| format!("notes://{k}")).collect();
        let listener = hub.listen(Filter { uris: uris.clone(), ..Filter::default() });
        for uri in &uris[..CAPACITY] {
            hub.tell(&Change::Updated(uri.clone()));
        }
        assert!(listener.next().await.is_some(), "there is room for as many");
        hub.tell(&Change::Updated(uris[0].clone()));
        hub.tell(&Change::Updated(uris[CAPACITY].clone()));
        assert_eq!(listener.next().await, None);
        assert_eq!(listener.next().await, None, "for good");
    }
}

//! What clients may change: notes, and whether there is one tool, prompt and resource more.
//!
//! All of it belongs to the server, not to a connection or a session, and every change is told to
//! those who listen.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::hub::{Change, Hub};

/// Most notes that are kept. ours.
const MOST_NOTES: usize = 100;
/// Longest note, bytes. ours.
const LONGEST_NOTE: usize = 64 << 10;
/// Longest name of a note, bytes. ours.
const LONGEST_NAME: usize = 64;

/// A kind of thing of which there may be one more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extra {
    Tool,
    Prompt,
    Resource,
}

impl Extra {
    pub(super) const ALL: [(&str, Extra); 3] =
        [("tool", Extra::Tool), ("prompt", Extra::Prompt), ("resource", Extra::Resource)];

    fn change(self) -> Change {
        match self {
            Extra::Tool => Change::Tools,
            Extra::Prompt => Change::Prompts,
            Extra::Resource => Change::Resources,
        }
    }
}

/// What a server holds.
#[derive(Debug)]
pub(super) struct Store {
    hub: Arc<Hub>,
    notes: Mutex<BTreeMap<String, String>>,
    extras: [AtomicBool; 3],
}

impl Store {
    pub(super) fn new(hub: Arc<Hub>) -> Store {
        let notes = [("ideas", "A debugger that is never in the way"), ("today", "Read the specification")];
        let notes = notes.map(|(name, text)| (name.to_owned(), text.to_owned()));
        Store { hub, notes: Mutex::new(BTreeMap::from(notes)), extras: Default::default() }
    }

    /// Names of the notes, in order.
    pub(super) fn names(&self) -> Vec<String> {
        self.notes().keys().cloned().collect()
    }

    pub(super) fn note(&self, name: &str) -> Option<String> {
        self.notes().get(name).cloned()
    }

    /// Writes a note, a new one or another text.
    ///
    /// # Errors
    /// What is wrong with it, for people.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<(), String> {
        if !is_name(name) {
            return Err(format!("a name has 1 to {LONGEST_NAME} of a-z, 0-9 and -"));
        }
        if text.len() > LONGEST_NOTE {
            return Err(format!("a note has at most {LONGEST_NOTE} bytes"));
        }
        let is_new = {
            let mut notes = self.notes();
            if !notes.contains_key(name) && notes.len() == MOST_NOTES {
                return Err(format!("there are {MOST_NOTES} notes already"));
            }
            notes.insert(name.to_owned(), text.to_owned()).is_none()
        };
        if is_new {
            self.hub.tell(&Change::Resources);
        }
        self.hub.tell(&Change::Updated(uri(name)));
        Ok(())
    }

    /// Throws a note away; false: there was none.
    pub(super) fn remove(&self, name: &str) -> bool {
        let was_there = self.notes().remove(name).is_some();
        if was_there {
            self.hub.tell(&Change::Resources);
            self.hub.tell(&Change::Updated(uri(name)));
        }
        was_there
    }

    pub(super) fn has(&self, extra: Extra) -> bool {
        self.extras.get(extra as usize).is_some_and(|switch| switch.load(Ordering::Relaxed))
    }

    /// Adds the one more, or takes it away; false: it was so before.
    pub(super) fn set(&self, extra: Extra, is_there: bool) -> bool {
        let switch = self.extras.get(extra as usize);
        let is_other = switch.is_some_and(|switch| switch.swap(is_there, Ordering::Relaxed) != is_there);
        if is_other {
            self.hub.tell(&extra.change());
        }
        is_other
    }

    /// A poisoned lock is still good: no step can stop midway.
    fn notes(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The URI of a note.
pub(super) fn uri(name: &str) -> String {
    format!("notes://{name}")
}

/// The name of the note that a URI stands for, whether there is such a note or not.
pub(super) fn name(uri: &str) -> Option<&str> {
    uri.strip_prefix("notes://").filter(|name| is_name(name))
}

fn is_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(is_allowed)
}

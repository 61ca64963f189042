//! What was read and may be used again: for as long as the server says, and for those it says.

use std::collections::HashMap;

use super::lists::{Hints, List};
use crate::spec::lists::ListKind;
use crate::time::Ms;

/// Where something was read, and by whom.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    /// The server, by its URL or command.
    pub server: String,
    /// What was listed.
    pub kind: ListKind,
}

#[derive(Debug, Clone)]
struct Kept {
    list: List,
    /// Fresh before this moment.
    until: Ms,
}

/// Lists of several servers. What is private is found again only under the same authorisation.
#[derive(Debug, Default)]
pub struct Cache {
    /// By authorisation; `None`: good for everybody.
    kept: HashMap<(Key, Option<String>), Kept>,
}

impl Cache {
    /// Keeps a list that came at `now` to a client with this authorisation.
    pub fn keep(&mut self, key: Key, authorisation: &str, list: List, now: Ms) {
        let Hints { ttl, is_public } = list.hints;
        let owner = if is_public { None } else { Some(authorisation.to_owned()) };
        // A list that has become private must not be found as the public one that it was.
        self.forget(&key, authorisation);
        self.kept.insert((key, owner), Kept { list, until: Ms(now.0.saturating_add(ttl.0)) });
    }

    /// A list that is still fresh at `now`.
    #[must_use]
    pub fn find(&self, key: &Key, authorisation: &str, now: Ms) -> Option<&List> {
        let own = self.kept.get(&(key.clone(), Some(authorisation.to_owned())));
        let kept = own.or_else(|| self.kept.get(&(key.clone(), None)))?;
        (now < kept.until).then_some(&kept.list)
    }

    /// Something has changed: what was read of it is stale at once.
    pub fn forget(&mut self, key: &Key, authorisation: &str) {
        self.kept.remove(&(key.clone(), Some(authorisation.to_owned())));
        self.kept.remove(&(key.clone(), None));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(ttl: u64, is_public: bool) -> List {
        List { hints: Hints { ttl: Ms(ttl), is_public }, ..List::default() }
    }

    #[test]
    fn a_list_is_found_while_it_is_fresh_by_those_it_is_for() {
        let key = |server: &str, kind| Key { server: server.to_owned(), kind };
        let tools = || key("s", ListKind::Tools);
        // Kept with this life and scope by ann at 100; who asks for what when; found.
        let cases = [
            (50, false, tools(), "ann", 149, true),
            (50, false, tools(), "ann", 150, false),
            (50, false, tools(), "bob", 120, false),
            (50, true, tools(), "bob", 120, true),
            (0, true, tools(), "ann", 100, false),
            (50, true, key("other", ListKind::Tools), "ann", 120, false),
            (50, true, key("s", ListKind::Prompts), "ann", 120, false),
        ];
        for (ttl, is_public, asked, who, at, is_found) in cases {
            let mut cache = Cache::default();
            cache.keep(tools(), "ann", list(ttl, is_public), Ms(100));
            assert_eq!(cache.find(&asked, who, Ms(at)).is_some(), is_found, "{asked:?} {who} {at}");
            cache.forget(&tools(), "ann");
            assert!(cache.find(&asked, who, Ms(at)).is_none());
        }
        let mut cache = Cache::default();
        cache.keep(tools(), "ann", list(50, true), Ms(0));
        cache.keep(tools(), "ann", list(50, false), Ms(1));
        assert!(cache.find(&tools(), "bob", Ms(2)).is_none(), "it has become private");
    }
}

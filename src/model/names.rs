//! Texts kept once: methods, targets, short details.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::Name;

/// Bytes of short details kept in all; beyond it new ones are not kept, and a row has none.
/// ours: a flood of different stderr lines must not fill the memory.
const DETAIL_LIMIT_BYTES: usize = 16 << 20;

/// Characters of a detail that are kept.
const DETAIL_CHARS: usize = 120;

/// Every text once, in one block of memory.
#[derive(Debug, Default)]
pub(super) struct Names {
    text: String,
    ends: Vec<u32>,
    index: HashTable<Name>,
    hasher: DefaultHashBuilder,
    detail_bytes: usize,
}

impl Names {
    /// The text of a name; empty for a name of another model.
    pub(super) fn text(&self, name: Name) -> &str {
        text_of(&self.text, &self.ends, name)
    }

    /// The name of a text, if it was ever met.
    pub(super) fn find(&self, text: &str) -> Option<Name> {
        let hash = self.hasher.hash_one(text);
        self.index.find(hash, |name| self.text(*name) == text).copied()
    }

    /// The name of a text, kept from now on.
    pub(super) fn intern(&mut self, text: &str) -> Name {
        if let Some(known) = self.find(text) {
            return known;
        }
        let Ok(number) = u32::try_from(self.ends.len()) else { return Name(0) };
        let Ok(end) = u32::try_from(self.text.len() + text.len()) else { return Name(0) };
        let name = Name(number);
        self.text.push_str(text);
        self.ends.push(end);
        let Names { text: all, ends, index, hasher, .. } = self;
        let rehash = |name: &Name| hasher.hash_one(text_of(all, ends, *name));
        index.insert_unique(hasher.hash_one(text), name, rehash);
        name
    }

    /// The name of a short detail: its first characters; `None` once details fill their budget.
    pub(super) fn detail(&mut self, text: &str) -> Option<Name> {
        let short = match text.char_indices().nth(DETAIL_CHARS) {
            Some((end, _)) => text.get(..end).unwrap_or_default(),
            None => text,
        };
        if short.is_empty() {
            return None;
        }
        if let Some(known) = self.find(short) {
            return Some(known);
        }
        if self.detail_bytes + short.len() > DETAIL_LIMIT_BYTES {
            return None;
        }
        self.detail_bytes += short.len();
        Some(self.intern(short))
    }
}

fn text_of<'a>(text: &'a str, ends: &[u32], name: Name) -> &'a str {
    let at = name.0 as usize;
    let start = at.checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or(0);
    let end = ends.get(at).copied().unwrap_or(start);
    text.get(start as usize..end as usize).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_one_name_and_a_long_detail_is_cut_at_a_character() {
        let mut names = Names::default();
        let one = names.intern("tools/call");
        let two = names.intern("");
        assert_eq!(names.intern("tools/call"), one);
        assert_eq!((names.text(one), names.text(two)), ("tools/call", ""));
        let long = "ü".repeat(200);
        let cut = names.detail(&long).unwrap();
        assert_eq!(names.text(cut).chars().count(), DETAIL_CHARS);
        assert_eq!(names.detail(""), None);
        assert_eq!(names.text(Name(99)), "");
    }

    #[test]
    fn details_stop_at_their_budget() {
        let mut names = Names { detail_bytes: DETAIL_LIMIT_BYTES, ..Names::default() };
        assert_eq!(names.detail("new"), None);
        let known = names.intern("known");
        assert_eq!(names.detail("known"), Some(known));
    }
}

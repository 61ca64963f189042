//! What becomes of one message: all that was decided about it, put together.

use bytes::Bytes;

use super::item::{Begin, Item, Seen, Then, Why};
use super::state::State;
use crate::event::tape::Ticket;
use crate::time::Ms;

/// What becomes of a message.
#[derive(Debug)]
pub(super) struct Fate {
    /// Its text, without its ending.
    pub(super) body: Bytes,
    /// Its ending.
    pub(super) ending: Bytes,
    pub(super) tickets: Vec<Ticket>,
    pub(super) seen: Option<Box<Seen>>,
    /// It goes on.
    pub(super) passes: bool,
    /// The effect that changed it last.
    changed: Option<(&'static str, Why, String)>,
    /// Only so many of its bytes pass.
    pub(super) cut_after: Option<usize>,
    /// It is held, at most so long.
    pub(super) hold: Option<(Option<Ms>, Why)>,
    /// How often it passes beside the first time.
    pub(super) copies: Vec<Why>,
    pub(super) delay: Ms,
    pub(super) rules: Vec<u64>,
    pub(super) is_swapped: bool,
    pub(super) slice: Option<(usize, Ms)>,
    pub(super) begins: Vec<Begin>,
    pub(super) then: Vec<Then>,
}

impl Fate {
    /// It passes as it is.
    pub(super) fn new(line: &Bytes, tickets: Vec<Ticket>) -> Fate {
        let body = line.strip_suffix(b"\n").unwrap_or(line);
        let body = body.strip_suffix(b"\r").unwrap_or(body);
        let body = line.slice_ref(body);
        Fate {
            ending: line.slice(body.len()..),
            body,
            tickets,
            seen: None,
            passes: true,
            changed: None,
            cut_after: None,
            hold: None,
            copies: Vec::new(),
            delay: Ms(0),
            rules: Vec::new(),
            is_swapped: false,
            slice: None,
            begins: Vec::new(),
            then: Vec::new(),
        }
    }

    /// Bytes as it is written.
    pub(super) fn len(&self) -> usize {
        self.body.len() + self.ending.len()
    }

    /// Another text takes its place. Of several changes only the last is what is sent.
    pub(super) fn change(&mut self, state: &State, body: Bytes, what: &'static str, why: &Why, more: &str) {
        if let Some((what, why, more)) = self.changed.take() {
            state.tell(&why, what, &super::item::target_of(self.seen.as_deref()), &more);
        }
        self.body = body;
        self.changed = Some((what, why.clone(), more.to_owned()));
    }

    /// The message as it is to be written; the fate is left as one of a message that does not pass.
    pub(super) fn take_item(&mut self, target: &str) -> Item {
        self.passes = false;
        let mut bytes = Bytes::from([&self.body[..], &self.ending[..]].concat());
        let event = self.changed.take().map(|(what, why, more)| {
            self.tickets.clear();
            why.inject(what, target, &more, Some(bytes.clone()))
        });
        let mut ends_line = !self.ending.is_empty();
        if let Some(len) = self.cut_after.filter(|len| *len < bytes.len()) {
            bytes.truncate(len);
            ends_line = false;
            self.tickets.clear();
        }
        Item {
            ends_line,
            tickets: std::mem::take(&mut self.tickets),
            event,
            seen: self.seen.take(),
            rules: std::mem::take(&mut self.rules),
            delay: self.delay,
            is_swapped: self.is_swapped,
            slice: self.slice,
            begins: std::mem::take(&mut self.begins),
            then: std::mem::take(&mut self.then),
            ..Item::new(bytes, ends_line, target.to_owned())
        }
    }
}

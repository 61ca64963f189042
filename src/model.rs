//! What an observer can know: folds events into lifecycles, lanes, gauges and verdicts.
//!
//! The model only has evidence; it may answer "unknown". It never asks for the time, never
//! touches a file, and gives the same answer for the same events whether they come live, from a
//! recording or from a test. It keeps small fixed records; the text of messages stays in the
//! recording and is found again through [`Source`].

pub mod call;
pub mod row;

pub use call::{After, Call, CallIdx, CallState, ClientView, Mark, MarkKind, Progress, ServerView};
pub use row::{Row, RowIdx, RowKind, Source};

use crate::event::Event;

/// Text kept once, such as a method or a tool name; an index into the model's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(pub u32);

/// The fold: everything that is known after the events seen so far.
#[derive(Debug)]
pub struct Model {}

impl Model {
    /// A model that has seen nothing.
    #[must_use]
    pub fn new() -> Model {
        unimplemented!()
    }

    /// Takes the next event. O(1) amortised. `event_idx` is the event's position in the
    /// recording, from 0, which rows point back to.
    pub fn fold(&mut self, _event: &Event, _event_idx: u32) {
        unimplemented!()
    }

    /// One line for each message and each other thing that happened, in causal order.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        unimplemented!()
    }

    /// Every request seen, in the order of their first byte.
    #[must_use]
    pub fn calls(&self) -> &[Call] {
        unimplemented!()
    }

    /// The text of a name.
    #[must_use]
    pub fn text(&self, _name: Name) -> &str {
        unimplemented!()
    }
}

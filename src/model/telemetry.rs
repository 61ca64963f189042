//! What a server tells about its own work, where it volunteers to: nothing has to be guessed then.
//!
//! The words are in `docs/trace-format.md`. Anything else that is told is shown and not read.

use serde_json::value::RawValue;

use super::Model;
use super::call::{CallIdx, ServerView};
use super::flow::Whose;
use super::fold::At;
use super::row::{RowIdx, RowKind};
use super::seen::Sight;
pub use crate::event::telemetry::Stage;
use crate::event::{Dir, Event, Queue};
use crate::time::Mono;
use crate::wire::jsonrpc::{self, Id};

/// What a server told about one request: the rows that show the first of each kind, and counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Told {
    /// The handler began.
    pub started: Option<RowIdx>,
    /// The server read the cancel.
    pub cancel_seen: Option<RowIdx>,
    /// The handler began to release what it holds, and when.
    pub cleanup_started: Option<(RowIdx, Mono)>,
    /// It had released everything, and when.
    pub cleanup_ended: Option<(RowIdx, Mono)>,
    /// The handler ended by itself.
    pub done: Option<RowIdx>,
    /// Checkpoints passed after the cancel was seen.
    pub checkpoints_after: u32,
    /// Effects told.
    pub effects: u32,
    /// Effects told after the cancel was seen.
    pub effects_after: u32,
}

impl Told {
    /// Whether the server read the cancel before its handler was done; `None`: it told neither.
    pub(super) fn saw_cancel_first(&self) -> Option<bool> {
        match (self.cancel_seen, self.done) {
            (None, None) => None,
            (Some(seen), Some(done)) => Some(seen < done),
            (seen, None) => Some(seen.is_some()),
            (None, Some(_)) => Some(false),
        }
    }

    fn note(&mut self, stage: Stage, row: RowIdx, at: Mono) {
        let is_cancelled = self.cancel_seen.is_some();
        match stage {
            Stage::HandlerStart => self.started = self.started.or(Some(row)),
            Stage::CancelSeen => self.cancel_seen = self.cancel_seen.or(Some(row)),
            Stage::CleanupStart => self.cleanup_started = self.cleanup_started.or(Some((row, at))),
            Stage::CleanupEnd => self.cleanup_ended = self.cleanup_ended.or(Some((row, at))),
            Stage::Done => self.done = self.done.or(Some(row)),
            Stage::Checkpoint => self.checkpoints_after += u32::from(is_cancelled),
            Stage::Effect => {
                self.effects += 1;
                self.effects_after += u32::from(is_cancelled);
            }
            Stage::QueueDepth => {}
        }
    }
}

impl Model {
    /// Something was told.
    pub(super) fn telemetry(&mut self, event: &Event, at: At, text: &str) {
        let raw: Option<&RawValue> = serde_json::from_str(text).ok();
        let member = |name: &str| raw.and_then(|raw| jsonrpc::at(raw, &[name]));
        let stage = member("stage").and_then(jsonrpc::string).and_then(|name| Stage::from_name(&name));
        let id = member("request").and_then(|raw| Id::from_raw(raw.get()));
        let found = id.and_then(|id| {
            let on_stream = event.stream.map_or(&[][..], |stream| self.http.calls_of(stream));
            let is_it = |idx: &&CallIdx| self.call(**idx).is_some_and(|call| call.id == id);
            let on_stream = on_stream.iter().find(is_it).copied();
            on_stream.or_else(|| self.find_call(at.scope, Dir::C2s, &id))
        });
        let detail = self.names.detail(text);
        let row = self.push_row(at, RowKind::Telemetry, None, detail, found);
        let (Some(stage), Some(idx)) = (stage, found) else { return };
        if stage == Stage::QueueDepth {
            let number = |name: &str| member(name).and_then(|raw| raw.get().parse().ok());
            let count = |name: &str| number(name).unwrap_or(0);
            let reading = Queue {
                events: count("events"),
                capacity: number("capacity"),
                coalesced: count("coalesced"),
                evicted: count("evicted"),
                discarded: count("discarded"),
                refused: count("refused"),
                ..Queue::default()
            };
            let stream = self.call(idx).and_then(|call| call.stream);
            self.flow_queue(At { stream, dir: Dir::S2c, ..at }, Whose::Server, reading, row);
        }
        let Some(call) = self.call_mut(idx) else { return };
        call.told.get_or_insert_default().note(stage, row, at.now);
        match stage {
            Stage::HandlerStart | Stage::Checkpoint if call.server == ServerView::Unknown => {
                call.server = ServerView::Working;
            }
            Stage::CancelSeen => {
                if call.server != ServerView::Completed {
                    call.server = ServerView::Cancelled;
                }
                self.race_told(idx);
            }
            _ => {}
        }
        self.see(at, Some(row), found, Sight::Told(stage));
    }
}

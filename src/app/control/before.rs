//! Calls that were open before a tap was given its first order: a tap looks at nothing until then,
//! but its recording has them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::command::book::{Book, OpenCall};
use crate::command::message::{Message, Place};
use crate::command::{Applied, By, Command, Refused, TakesOrders};
use crate::event::{Dir, Transport, What};
use crate::trace::Recording;
use crate::wire::lines::{LINE_LIMIT_BYTES, LineDecoder};

/// After this everything that was on the tape is in the recording, which promises it after 100 ms.
const RECORDED: Duration = Duration::from_millis(120);

/// A tap that is told, before its first order, what its recording knows.
pub(super) struct Informed {
    pub(super) tap: Arc<dyn TakesOrders>,
    pub(super) recording: Option<PathBuf>,
}

impl TakesOrders for Informed {
    fn order(&self, command: &Command, by: By) -> Result<Applied, Refused> {
        if !self.tap.knows()
            && let Some(recording) = &self.recording
        {
            // It begins to look, so that no call falls between what it sees and what was recorded.
            self.tap.order(&Command::Status, by)?;
            thread::sleep(RECORDED);
            self.tap.seed(open_calls(recording));
        }
        self.tap.order(command, by)
    }

    fn transport(&self) -> Transport {
        self.tap.transport()
    }

    fn knows(&self) -> bool {
        self.tap.knows()
    }

    fn seed(&self, calls: Vec<OpenCall>) {
        self.tap.seed(calls);
    }
}

/// Calls on stdio that have no answer in a recording, oldest first; none where it cannot be read.
fn open_calls(path: &Path) -> Vec<OpenCall> {
    let mut book = Book::default();
    let Ok(mut recording) = Recording::open(path) else { return Vec::new() };
    let mut to_server = LineDecoder::new(LINE_LIMIT_BYTES);
    let mut to_client = LineDecoder::new(LINE_LIMIT_BYTES);
    while let Ok(Some((event, _))) = recording.next() {
        let lines = match (&event.what, event.dir) {
            (What::Bytes { bytes, .. }, Dir::C2s) => to_server.push_shared(bytes),
            (What::Bytes { bytes, .. }, Dir::S2c) => to_client.push_shared(bytes),
            (What::Spawn { .. }, _) => {
                book.end_all();
                continue;
            }
            _ => continue,
        };
        let (dir, transport) = (event.dir, event.transport);
        let place = Place { dir, transport, stream: None, conn: None, status: None, era: None };
        for message in lines.iter().filter_map(|line| Message::read(&line.body)) {
            book.note(place, &message);
            book.end(place, &message);
        }
    }
    book.open().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_without_an_answer_are_read_from_a_recording_that_is_being_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("session.mw.jsonl");
        let lines = [
            r#"{"dir":"c2s","raw":"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n"}"#,
            r#"{"dir":"tap","event":"spawn","pid":7,"command":["x"]}"#,
            r#"{"dir":"c2s","raw":"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"par"}"#,
            r#"{"dir":"c2s","raw":"ams\":{\"name\":\"slow\"}}\n"}"#,
            r#"{"dir":"c2s","raw":"{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"ping\"}\n"}"#,
            r#"{"dir":"s2c","raw":"{\"jsonrpc\":\"2.0\",\"id\":8,\"result\":{}}\n"}"#,
            r#"{"dir":"c2s","raw":"{\"json"#,
        ];
        std::fs::write(&path, lines.join("\n")).unwrap();
        let open = open_calls(&path);
        let found: Vec<_> = open.iter().map(|call| (call.id.to_string(), call.target.as_deref())).collect();
        assert_eq!(found, [("7".to_owned(), Some("slow"))]);
        assert!(open_calls(&folder.path().join("none")).is_empty());
    }
}

//! Reading a recording while it grows: the same events and places as when it is opened later.
//!
//! Nothing is subscribed: whoever follows asks again every [`POLL`] while there is nothing new,
//! which costs a read at the end of the file and two looks at its state.

use std::fs::TryLockError;
use std::path::Path;
use std::time::Duration;

use super::{Ending, Place, Recording, TraceError};
use crate::event::Event;

/// How long to wait before asking again when there was nothing new. ours: short against what a
/// person notices, long against what asking costs.
pub const POLL: Duration = Duration::from_millis(50);

/// What is known about the writer of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writer {
    /// It is at work, or cannot be known to have gone.
    Alive,
    /// It ended the recording in order.
    Finished,
    /// It is gone without having ended the recording: it was killed, or crashed.
    Gone,
}

/// A recording that may still grow.
#[derive(Debug)]
pub struct Follower {
    recording: Recording,
    writer: Writer,
}

impl Follower {
    /// Begins at the first event. All files but the last are read like [`Recording::open_all`];
    /// the last one is followed, and after it any further part that the recorder turns to.
    ///
    /// # Errors
    /// As for [`Recording::open`].
    pub fn open(paths: &[&Path]) -> Result<Follower, TraceError> {
        Ok(Follower { recording: Recording::open_all(paths)?, writer: Writer::Alive })
    }

    /// The recording as read so far, for its header, its faults and [`Recording::read_at`].
    #[must_use]
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// What is known about the writer, as of the last time that nothing new was there.
    #[must_use]
    pub fn writer(&self) -> Writer {
        self.writer
    }

    /// The next event and its place; `None`: nothing new yet, ask again after [`POLL`].
    ///
    /// # Errors
    /// When the file cannot be read. What is wrong with a line is no error but a fault.
    #[expect(clippy::should_implement_trait, reason = "it can fail, and the end is not final")]
    pub fn next(&mut self) -> Result<Option<(Event, Place)>, TraceError> {
        loop {
            if let Some(found) = self.recording.next_whole()? {
                return Ok(Some(found));
            }
            // What is seen of the writer and the next part was true before this second look, so
            // nothing that was written before it can be missed.
            let writer = self.look_at_writer();
            let has_next = self.recording.is_in_last_part() && self.recording.find_next_part()?;
            if let Some(found) = self.recording.next_whole()? {
                return Ok(Some(found));
            }
            self.writer = writer;
            if self.recording.is_in_last_part() && !has_next {
                self.recording.note_truncation()?;
                return Ok(None);
            }
            if let Some(found) = self.recording.take_rest()? {
                return Ok(Some(found));
            }
            self.recording.enter_next_part();
        }
    }

    fn look_at_writer(&self) -> Writer {
        if matches!(self.recording.ending(), Ending::Clean { .. }) {
            return Writer::Finished;
        }
        let Some(file) = self.recording.last_file() else { return Writer::Gone };
        match file.try_lock_shared() {
            Ok(()) => {
                // The lock was only a question; if it cannot be given back, closing does it.
                let _ = file.unlock();
                Writer::Gone
            }
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => Writer::Alive,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File, OpenOptions};
    use std::io::Write as _;

    use super::*;

    struct Scene {
        folder: tempfile::TempDir,
    }

    impl Scene {
        fn new() -> Scene {
            Scene { folder: tempfile::tempdir().unwrap() }
        }

        fn append(&self, name: &str, text: &str) -> File {
            let path = self.folder.path().join(name);
            let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
            file.write_all(text.as_bytes()).unwrap();
            file
        }

        fn follow(&self, name: &str) -> Follower {
            Follower::open(&[&self.folder.path().join(name)]).unwrap()
        }
    }

    fn news(follower: &mut Follower) -> Vec<u64> {
        std::iter::from_fn(|| follower.next().unwrap()).map(|(event, _)| event.n).collect()
    }

    fn line(n: u64) -> String {
        format!("{{\"n\":{n},\"dir\":\"tap\",\"event\":\"mark\",\"text\":\"x\"}}\n")
    }

    #[test]
    fn an_event_is_there_when_its_line_is_ended() {
        let scene = Scene::new();
        scene.append("a.mw.jsonl", "");
        let mut follower = scene.follow("a.mw.jsonl");
        assert!(news(&mut follower).is_empty());
        scene.append("a.mw.jsonl", "{\"midwire\":1,\"label\":\"late\"}\n");
        assert!(news(&mut follower).is_empty());
        assert_eq!(follower.recording().header().label.as_deref(), Some("late"));
        let text = line(1) + &line(2);
        for byte in text.chars() {
            let before = follower.recording().read_bytes();
            scene.append("a.mw.jsonl", &byte.to_string());
            assert_eq!(news(&mut follower).len(), usize::from(byte == '\n'));
            assert_eq!(follower.recording().read_bytes() > before, byte == '\n');
        }
        assert!(follower.recording().faults().is_empty());
    }

    #[test]
    fn the_writer_is_seen_at_work_gone_and_finished() {
        let scene = Scene::new();
        let writer = scene.append("a.mw.jsonl", &line(1));
        writer.lock().unwrap();
        let mut follower = scene.follow("a.mw.jsonl");
        assert_eq!((news(&mut follower), follower.writer()), (vec![1], Writer::Alive));
        drop(writer);
        assert_eq!((news(&mut follower), follower.writer()), (vec![], Writer::Gone));
        scene.append("a.mw.jsonl", "{\"n\":2,\"event\":\"capture_end\"}\n");
        assert_eq!((news(&mut follower), follower.writer()), (vec![2], Writer::Finished));
    }

    #[test]
    fn a_further_part_is_followed_after_the_last_event_of_the_part_before() {
        let scene = Scene::new();
        scene.append("a.mw.jsonl", &("{\"midwire\":1,\"session\":\"s\"}\n".to_owned() + &line(1)));
        let mut follower = scene.follow("a.mw.jsonl");
        assert_eq!(news(&mut follower), [1]);
        scene.append("a.mw.jsonl", &(line(2) + "{\"torn"));
        scene.append(
            "a.part2.mw.jsonl",
            &("{\"midwire\":1,\"session\":\"s\",\"part\":2}\n".to_owned() + &line(3)),
        );
        assert_eq!(news(&mut follower), [2, 3]);
        assert_eq!(follower.recording().faults().torn_bytes, 6);
        scene.append(
            "a.part3.mw.jsonl",
            &("{\"midwire\":1,\"session\":\"s\",\"part\":3}\n".to_owned() + &line(4)),
        );
        scene.append("a.part3.mw.jsonl", "{\"n\":5,\"event\":\"capture_end\"}\n");
        assert_eq!((news(&mut follower), follower.writer()), (vec![4, 5], Writer::Finished));
    }

    #[test]
    fn a_file_of_another_session_is_not_taken_for_a_part() {
        let scene = Scene::new();
        scene.append("a.mw.jsonl", &("{\"midwire\":1,\"session\":\"s\"}\n".to_owned() + &line(1)));
        scene.append(
            "a.part2.mw.jsonl",
            &("{\"midwire\":1,\"session\":\"t\",\"part\":2}\n".to_owned() + &line(2)),
        );
        let mut follower = scene.follow("a.mw.jsonl");
        assert_eq!(news(&mut follower), [1]);
    }

    #[test]
    fn a_file_that_is_cut_and_written_anew_is_read_anew() {
        let scene = Scene::new();
        scene.append("a.mw.jsonl", &(line(1) + &line(2)));
        let mut follower = scene.follow("a.mw.jsonl");
        assert_eq!(news(&mut follower), [1, 2]);
        fs::write(scene.folder.path().join("a.mw.jsonl"), line(1)).unwrap();
        news(&mut follower);
        assert_eq!(news(&mut follower), [1]);
        assert!(follower.recording().faults().was_truncated);
    }
}

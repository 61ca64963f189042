//! What a server tells a tap about its own work, where it was asked to: one JSON object a line, on
//! a local socket that the tap offers. None of it is on the wire.
//!
//! Telling never holds a handler up: a line waits in a bounded queue for a thread that writes, and
//! when the queue is full, or nobody listens, it is dropped and counted; the count is told as soon as
//! there is room. A tap that reads nothing for a second is given up, and sought anew.

use std::fmt::Write as _;
use std::io::{self, ErrorKind, Write as _};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use serde_json::{Value, json};

use crate::event::telemetry::{self, Stage};
use crate::machine::buffer::Counters;
use crate::time::Ms;
use crate::wire::jsonrpc::Id;

/// Lines that may wait: a burst of short calls, a few hundred KiB at most.
const CAPACITY: usize = 1024;

/// Lines that go out in one write.
const BATCH: usize = 64;

/// A tap that takes nothing for so long is given up. ours: a living one reads at once.
const STALL: Ms = Ms(1000);

/// The way to one tap. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Telemetry(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// Taken when the end was asked for.
    lines: Mutex<Option<SyncSender<String>>>,
    dropped: AtomicU64,
    /// Hangs up when the writing thread has ended.
    ended: Mutex<Receiver<()>>,
}

impl Telemetry {
    /// Tells whoever listens at `socket`, whenever somebody does; a tap may come later, go and come
    /// again.
    ///
    /// # Errors
    /// When no thread can be had.
    pub fn at(socket: &Path) -> io::Result<Telemetry> {
        Telemetry::start(Way { socket: Some(socket.to_owned()), stream: None })
    }

    /// Tells on a stream that is connected already.
    ///
    /// # Errors
    /// When no thread can be had.
    pub fn over(stream: UnixStream) -> io::Result<Telemetry> {
        stream.set_write_timeout(Some(STALL.into()))?;
        Telemetry::start(Way { socket: None, stream: Some(stream) })
    }

    fn start(mut way: Way) -> io::Result<Telemetry> {
        let (lines, waiting) = mpsc::sync_channel(CAPACITY);
        let (has_ended, ended) = mpsc::sync_channel(0);
        let shared = Arc::new(Shared {
            lines: Mutex::new(Some(lines)),
            dropped: AtomicU64::new(0),
            ended: Mutex::new(ended),
        });
        // Weakly: the last teller that goes ends the thread.
        let weak = Arc::downgrade(&shared);
        thread::Builder::new().name("telemetry".to_owned()).spawn(move || {
            let _has_ended: SyncSender<()> = has_ended;
            let mut dropped = 0;
            while let Some((batch, lines)) = next_batch(&waiting) {
                dropped += weak.upgrade().map_or(0, |shared| shared.dropped.swap(0, Ordering::Relaxed));
                match way.write(batch, dropped) {
                    Ok(()) => dropped = 0,
                    Err(error) => {
                        tracing::debug!(%error, "no tap takes telemetry");
                        dropped += lines;
                    }
                }
            }
        })?;
        Ok(Telemetry(shared))
    }

    /// Tells about a request; `peer`: who sent it, as the server sees the connection.
    #[must_use]
    pub fn about(&self, request: &Id, peer: Option<SocketAddr>) -> Teller {
        let peer = peer.map_or_else(String::new, |peer| format!(",\"peer\":\"{peer}\""));
        Teller(Some((self.clone(), format!("\"request\":{request}{peer}"))))
    }

    /// Ends after what has been told by now was written, or after `limit`; what is told later is
    /// dropped.
    pub fn close(&self, limit: Ms) {
        drop(lock(&self.0.lines).take());
        // Either way nothing more is to be done.
        let _ = lock(&self.0.ended).recv_timeout(limit.into());
    }

    fn tell(&self, line: String) {
        if let Some(lines) = lock(&self.0.lines).as_ref()
            && let Err(TrySendError::Full(_)) = lines.try_send(line)
        {
            self.0.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Where lines go.
struct Way {
    /// `None`: nowhere but on the stream that there is.
    socket: Option<PathBuf>,
    stream: Option<UnixStream>,
}

impl Way {
    fn write(&mut self, mut batch: String, dropped: u64) -> io::Result<()> {
        if dropped > 0 {
            batch.push_str(&telemetry::dropped("server", dropped));
            batch.push('\n');
        }
        let written = self.stream().and_then(|stream| stream.write_all(batch.as_bytes()));
        if written.is_err() {
            // A part of a line may have gone, so there is no going on.
            self.stream = None;
        }
        written
    }

    fn stream(&mut self) -> io::Result<&mut UnixStream> {
        let stream = match (self.stream.take(), &self.socket) {
            (Some(stream), _) => stream,
            (None, Some(socket)) => {
                let stream = UnixStream::connect(socket)?;
                stream.set_write_timeout(Some(STALL.into()))?;
                stream
            }
            (None, None) => return Err(ErrorKind::NotConnected.into()),
        };
        Ok(self.stream.insert(stream))
    }
}

/// Nothing can stop midway in these locks, so a poisoned one is still good.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for a line and takes those that are there with it, and says how many they are; `None`:
/// there will be none.
fn next_batch(waiting: &Receiver<String>) -> Option<(String, u64)> {
    let mut batch = waiting.recv().ok()?;
    batch.push('\n');
    let mut lines = 1;
    for line in waiting.try_iter().take(BATCH - 1) {
        batch.push_str(&line);
        batch.push('\n');
        lines += 1;
    }
    Some((batch, lines))
}

/// Tells about one request; does nothing where nobody asked to be told.
#[derive(Debug, Clone, Default)]
pub struct Teller(Option<(Telemetry, String)>);

impl Teller {
    /// The work on the request came to this stage now.
    pub fn tell(&self, stage: Stage) {
        self.say(stage, &[]);
    }

    /// Something was done that cannot be undone: under which key, and what its receipt is.
    pub fn effect(&self, key: Option<&str>, receipt: &str) {
        let key = key.map(|key| ("key", json!(key)));
        let more: Vec<_> = key.into_iter().chain([("receipt", json!(receipt))]).collect();
        self.say(Stage::Effect, &more);
    }

    /// So many messages wait to be written; `capacity`: how many may, where that is bounded;
    /// `counters`: what was given up so far.
    pub fn queue(&self, events: usize, capacity: Option<usize>, counters: Counters) {
        let capacity = capacity.map(|capacity| ("capacity", json!(capacity)));
        let Counters { coalesced, evicted, discarded, refused } = counters;
        let counters =
            [("coalesced", coalesced), ("evicted", evicted), ("discarded", discarded), ("refused", refused)];
        let counters = counters.into_iter().filter(|(_, count)| *count > 0);
        let counters = counters.map(|(name, count)| (name, json!(count)));
        let more: Vec<_> = [("events", json!(events))].into_iter().chain(capacity).chain(counters).collect();
        self.say(Stage::QueueDepth, &more);
    }

    fn say(&self, stage: Stage, more: &[(&str, Value)]) {
        let Some((telemetry, request)) = &self.0 else { return };
        let mut line = format!("{{\"stage\":\"{}\",{request}", stage.as_str());
        for (name, value) in more {
            // Writing to a string cannot fail.
            let _ = write!(line, ",\"{name}\":{value}");
        }
        line.push('}');
        telemetry.tell(line);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::os::unix::net::UnixListener;

    use super::*;

    const LIMIT: Ms = Ms(5000);

    fn lines(stream: UnixStream) -> Vec<String> {
        BufReader::new(stream).lines().map(Result::unwrap).collect()
    }

    #[test]
    fn each_stage_is_one_line_with_the_request_and_what_belongs_to_it() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let telemetry = Telemetry::over(ours).unwrap();
        let peer = "127.0.0.1:4000".parse().ok();
        let (by_pipe, by_http) =
            (telemetry.about(&Id::from(7), None), telemetry.about(&Id::Str("a\"b".into()), peer));
        by_pipe.tell(Stage::HandlerStart);
        by_http.effect(Some("k-1"), "charge-001");
        by_http.effect(None, "charge-002");
        by_pipe.queue(3, Some(64), Counters { coalesced: 7, refused: 1, ..Counters::default() });
        by_pipe.queue(99, None, Counters::default());
        Teller::default().tell(Stage::Done);
        telemetry.close(LIMIT);
        by_pipe.tell(Stage::Done);
        let http = r#""request":"a\"b","peer":"127.0.0.1:4000""#;
        let expected = [
            r#"{"stage":"handler_start","request":7}"#.to_owned(),
            format!(r#"{{"stage":"effect",{http},"key":"k-1","receipt":"charge-001"}}"#),
            format!(r#"{{"stage":"effect",{http},"receipt":"charge-002"}}"#),
            r#"{"stage":"queue_depth","request":7,"events":3,"capacity":64,"coalesced":7,"refused":1}"#
                .to_owned(),
            r#"{"stage":"queue_depth","request":7,"events":99}"#.to_owned(),
        ];
        drop((by_pipe, by_http, telemetry));
        assert_eq!(lines(theirs), expected);
    }

    #[test]
    fn a_tap_that_does_not_read_costs_lines_and_never_time() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let telemetry = Telemetry::over(ours).unwrap();
        let teller = telemetry.about(&Id::from(1), None);
        // Far more than socket and queue hold; that this returns at all is the point.
        let told: u64 = 100_000;
        for _ in 0..told {
            teller.tell(Stage::Checkpoint);
        }
        let reader = std::thread::spawn(move || lines(theirs));
        telemetry.close(LIMIT);
        teller.tell(Stage::Done);
        drop((teller, telemetry));
        let (mut came, mut dropped) = (0, 0);
        for line in reader.join().unwrap() {
            let line: Value = serde_json::from_str(&line).unwrap();
            match line["stage"].as_str() {
                Some("checkpoint") => came += 1,
                Some("dropped") => dropped += line["lines"].as_u64().unwrap(),
                other => panic!("{other:?}"),
            }
        }
        assert!(dropped > 0 && came > 0, "{came} came, {dropped} dropped");
        assert_eq!(came + dropped, told);
    }

    #[test]
    fn nobody_waits_for_a_tap_that_is_gone_and_the_next_one_is_told_how_much_it_missed() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("s");
        let telemetry = Telemetry::at(&socket).unwrap();
        let teller = telemetry.about(&Id::from(1), None);
        teller.tell(Stage::HandlerStart);
        // Until the thread has found nobody: then the line is lost.
        let mut came = Vec::new();
        let mut told = 1;
        for _ in 0..2 {
            let listener = UnixListener::bind(&socket).unwrap();
            listener.set_nonblocking(true).unwrap();
            let tap = loop {
                teller.tell(Stage::Checkpoint);
                told += 1;
                match listener.accept() {
                    Ok((tap, _)) => break tap,
                    Err(_) => thread::yield_now(),
                }
            };
            drop(listener);
            std::fs::remove_file(&socket).unwrap();
            tap.set_nonblocking(false).unwrap();
            let mut line = String::new();
            BufReader::new(&tap).read_line(&mut line).unwrap();
            came.push(line);
        }
        telemetry.close(LIMIT);
        assert!(lock(&telemetry.0.ended).try_recv().is_err(), "the writer has ended");
        assert!(told > 2 && came.iter().all(|line| line.contains("stage")), "{came:?}");
    }
}

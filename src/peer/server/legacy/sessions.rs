//! The sessions of one HTTP endpoint.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::said::Said;
use super::session::Session;
use super::stream::Stream;
use crate::peer::server::sealed;

/// Most sessions at a time; a new one ends the one that was quiet for longest, if possible one that
/// nobody reads. ours.
const SESSIONS_MOST: usize = 200;
/// Finished streams kept in each session for clients that come back. ours.
const FINISHED_MOST: usize = 32;
/// Bytes of them, looked at with the next call. ours.
const FINISHED_BYTES: usize = 2 << 20;
/// The number of the stream for what belongs to no request.
const STANDING: u64 = 0;

/// A session with its streams.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) session: Session,
    /// What belongs to no request of the client, for the GET stream.
    pub(super) standing: Arc<Stream<Said>>,
    streams: Mutex<Streams>,
    /// When it was used last, in counts of uses of all sessions.
    used: AtomicU64,
}

#[derive(Debug, Default)]
struct Streams {
    last: u64,
    by_number: BTreeMap<u64, Arc<Stream<Said>>>,
}

impl Held {
    pub(super) fn new(session: Session) -> Arc<Held> {
        let standing = Stream::new(STANDING);
        let streams = Mutex::default();
        Arc::new(Held { session, standing, streams, used: AtomicU64::new(0) })
    }

    /// A poisoned lock is still good: no step can stop midway.
    fn lock(&self) -> MutexGuard<'_, Streams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A stream for the answers to one POST.
    pub(super) fn open(&self) -> Arc<Stream<Said>> {
        let mut streams = self.lock();
        streams.last += 1;
        let stream = Stream::new(streams.last);
        let finished = streams.by_number.iter().filter(|(_, stream)| stream.is_over());
        let finished: Vec<(u64, usize)> = finished.map(|(number, stream)| (*number, stream.size())).collect();
        let mut bytes: usize = finished.iter().map(|(_, size)| size).sum();
        for (idx, (number, size)) in finished.iter().enumerate() {
            if finished.len() - idx <= FINISHED_MOST && bytes <= FINISHED_BYTES {
                break;
            }
            streams.by_number.remove(number);
            bytes -= size;
        }
        streams.by_number.insert(stream.number, stream.clone());
        stream
    }

    /// Its answer needed no stream: there is nothing to come back for.
    pub(super) fn forget(&self, stream: &Stream<Said>) {
        self.lock().by_number.remove(&stream.number);
    }

    /// The stream of this number, if it is still kept.
    pub(super) fn find(&self, number: u64) -> Option<Arc<Stream<Said>>> {
        if number == STANDING {
            return Some(self.standing.clone());
        }
        self.lock().by_number.get(&number).cloned()
    }

    /// What speaks for keeping it: a client that reads its stream, then how late it was used.
    fn claim(&self) -> (bool, u64) {
        (self.standing.is_attached(), self.used.load(Ordering::Relaxed))
    }

    /// Ends the session and all its streams.
    pub(super) fn end(&self, why: &str) {
        self.session.end(why);
        self.standing.end();
        for stream in self.lock().by_number.values() {
            stream.end();
        }
    }
}

/// The sessions by name.
#[derive(Debug, Default)]
pub(in crate::peer::server) struct Sessions {
    by_name: Mutex<HashMap<String, Arc<Held>>>,
    uses: AtomicU64,
}

impl Sessions {
    /// A name that nobody can guess, in visible ASCII
    /// (spec 2025-11-25 `basic/transports#session-management`).
    pub(super) fn name() -> String {
        sealed::handle("session")
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Held>>> {
        self.by_name.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a session under its name.
    pub(super) fn insert(&self, name: &str, held: Arc<Held>) {
        self.touch(&held);
        let mut sessions = self.lock();
        let mut quietest = None;
        if sessions.len() >= SESSIONS_MOST {
            let oldest = sessions.iter().min_by_key(|(_, held)| held.claim());
            let oldest = oldest.map(|(name, _)| name.clone());
            quietest = oldest.and_then(|name| sessions.remove(&name));
        }
        sessions.insert(name.to_owned(), held);
        drop(sessions);
        if let Some(held) = quietest {
            held.end("too many sessions");
        }
    }

    /// The session of this name.
    pub(super) fn find(&self, name: &str) -> Option<Arc<Held>> {
        let held = self.lock().get(name).cloned()?;
        self.touch(&held);
        Some(held)
    }

    /// Ends a session; false: there is none of this name.
    pub(super) fn end(&self, name: &str, why: &str) -> bool {
        let held = self.lock().remove(name);
        held.is_some_and(|held| {
            held.end(why);
            true
        })
    }

    fn touch(&self, held: &Held) {
        held.used.store(self.uses.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::server::calls::Calls;
    use crate::peer::server::core::Outgoing;
    use crate::peer::server::legacy::negotiation::Negotiated;

    fn held(name: &str) -> Arc<Held> {
        let hub = Arc::default();
        Held::new(Session::new(Some(name.to_owned()), Negotiated::assumed(None), Calls::default(), &hub))
    }

    #[test]
    fn a_name_is_visible_and_never_the_same() {
        let names: std::collections::HashSet<String> = (0..100).map(|_| Sessions::name()).collect();
        assert_eq!(names.len(), 100);
        assert!(
            names.iter().all(|name| name.len() >= 32 && name.bytes().all(|byte| byte.is_ascii_graphic()))
        );
    }

    #[test]
    fn the_session_that_was_quiet_for_longest_makes_room() {
        let sessions = Sessions::default();
        for k in 0..SESSIONS_MOST {
            sessions.insert(&k.to_string(), held("s"));
        }
        let kept = sessions.find("0").unwrap();
        let at = |name: &str| sessions.lock()[name].clone();
        let (read, second) = (at("1"), at("2"));
        let _reader = read.standing.read();
        sessions.insert("new", held("s"));
        assert_eq!(sessions.lock().len(), SESSIONS_MOST);
        let is_there = |name| sessions.find(name).is_some();
        assert!(is_there("0") && is_there("1") && !is_there("2") && is_there("new"));
        assert!(second.session.ended().is_cancelled() && !kept.session.ended().is_cancelled());
    }

    #[test]
    fn an_ended_session_is_unknown_and_ends_once() {
        let sessions = Sessions::default();
        let one = held("s");
        let stream = one.open();
        sessions.insert("s", one.clone());
        assert!(sessions.end("s", "test"));
        assert!(!sessions.end("s", "test") && sessions.find("s").is_none());
        assert!(stream.is_over() && one.standing.is_over());
    }

    #[test]
    fn finished_streams_are_kept_for_a_while_and_open_ones_until_they_end() {
        let one = held("s");
        let open = one.open();
        let finished: Vec<_> = (0..FINISHED_MOST + 2).map(|_| one.open()).collect();
        for stream in &finished {
            stream.end();
        }
        one.open();
        let is_kept = |stream: &Stream<Said>| one.find(stream.number).is_some();
        assert!(is_kept(&open) && !is_kept(&finished[0]) && !is_kept(&finished[1]) && is_kept(&finished[2]));
        assert!(one.find(STANDING).is_some() && one.find(10_000).is_none());
    }

    #[tokio::test]
    async fn finished_streams_are_kept_up_to_so_many_bytes() {
        let one = held("s");
        let mut streams = Vec::new();
        for _ in 0..3 {
            let stream = one.open();
            let body = bytes::Bytes::from(vec![b' '; FINISHED_BYTES / 2]);
            let outgoing = Outgoing::new(None, body, Some(200));
            let said = Said::new(outgoing, &one.session.calls, true);
            assert!(stream.say(said.kind(), said).await);
            streams.push(stream);
        }
        one.open();
        let kept: Vec<bool> = streams.iter().map(|stream| one.find(stream.number).is_some()).collect();
        assert_eq!(kept, [false, true, true]);
    }
}

//! The open calls of one connection: what arrives is handed to the call that it belongs to.
//!
//! Pipes have one desk for everything. On HTTP each call reads its own answer, and the desk is
//! for what an older era sends elsewhere: on the stream of a session.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::mpsc;

use super::Outcome;
use super::answers::Answers;
use super::faults::Wrongs;
use super::follow::Incoming;
use super::message::{self, Notice, Outgoing, Read, Speech};
use crate::wire::jsonrpc::Id;

/// Notices kept for whoever asks for them; further ones push the oldest out.
const NOTICES_KEPT: usize = 1000;

/// What both halves of a connection know.
#[derive(Debug)]
pub(super) struct Desk {
    table: Mutex<Table>,
    speech: Mutex<Speech>,
    answers: Mutex<Arc<Answers>>,
    /// What this client does wrong on purpose.
    pub(super) wrongs: Wrongs,
}

#[derive(Debug, Default)]
struct Table {
    by_id: HashMap<Id, mpsc::Sender<Incoming>>,
    by_token: HashMap<Id, mpsc::Sender<Incoming>>,
    notices: Vec<Notice>,
    strays: u64,
    is_closed: bool,
}

/// The place of one call; dropping it makes whatever still comes a stray.
#[derive(Debug)]
pub(super) struct Place {
    id: Id,
    token: Option<Id>,
    desk: Arc<Desk>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut table = self.desk.lock();
        table.by_id.remove(&self.id);
        if let Some(token) = &self.token {
            table.by_token.remove(token);
        }
    }
}

impl Desk {
    pub(super) fn new() -> Arc<Desk> {
        let (table, answers) = (Mutex::default(), Mutex::default());
        let wrongs = Wrongs::default();
        Arc::new(Desk { table, speech: Mutex::new(Speech::modern()), answers, wrongs })
    }

    /// A poisoned lock is still good: no step can stop midway.
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How requests are written here now.
    pub(super) fn speech(&self) -> Speech {
        self.speech.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set_speech(&self, speech: Speech) {
        *self.speech.lock().unwrap_or_else(PoisonError::into_inner) = speech;
    }

    /// What is said to requests of the server.
    pub(super) fn set_answers(&self, answers: Arc<Answers>) {
        *self.answers.lock().unwrap_or_else(PoisonError::into_inner) = answers;
    }

    /// Opens a place; `None`: the connection is over.
    pub(super) fn register(
        self: &Arc<Desk>,
        outgoing: &Outgoing,
        call: mpsc::Sender<Incoming>,
    ) -> Option<Place> {
        let mut table = self.lock();
        if table.is_closed {
            return None;
        }
        if let Some(token) = &outgoing.token {
            table.by_token.insert(token.clone(), call.clone());
        }
        table.by_id.insert(outgoing.id.clone(), call);
        Some(Place { id: outgoing.id.clone(), token: outgoing.token.clone(), desk: self.clone() })
    }

    /// Messages that belonged to no open call.
    pub(super) fn strays(&self) -> u64 {
        self.lock().strays
    }

    /// No further call is taken.
    pub(super) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// Takes the notices that belonged to no call, oldest first.
    pub(super) fn take_notices(&self) -> Vec<Notice> {
        std::mem::take(&mut self.lock().notices)
    }

    pub(super) fn keep_notice(&self, notice: Notice) {
        let mut table = self.lock();
        if table.notices.len() >= NOTICES_KEPT {
            table.notices.remove(0);
        }
        table.notices.push(notice);
    }

    /// Hands one message on. What is owed for it is given back, to be sent to the server.
    pub(super) async fn route(&self, read: Read) -> Option<Bytes> {
        let (call, incoming) = match read {
            Read::Answer { id: Some(id), outcome } => (self.lock().by_id.remove(&id), Incoming::End(outcome)),
            Read::Progress { token, progress } => {
                (self.lock().by_token.get(&token).cloned(), Incoming::Progress(progress))
            }
            Read::Notice(notice) => {
                let call = notice.about.as_ref().and_then(|id| self.lock().by_id.get(id).cloned());
                match call {
                    Some(call) => (Some(call), Incoming::Notice(notice)),
                    None if notice.about.is_some() => (None, Incoming::Notice(notice)),
                    None => {
                        self.keep_notice(notice);
                        return None;
                    }
                }
            }
            Read::Asked(asked) => {
                let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner).clone();
                return Some(message::reply(&asked, &answers));
            }
            Read::Answer { id: None, .. } | Read::Bad(_) => (None, Incoming::Fault(String::new())),
        };
        let is_taken = match call {
            Some(call) => call.send(incoming).await.is_ok(),
            None => false,
        };
        if !is_taken {
            self.lock().strays += 1;
        }
        None
    }

    /// Ends every open call; no further one is taken.
    pub(super) async fn close(&self, why: &str) {
        let open: Vec<_> = {
            let mut table = self.lock();
            table.is_closed = true;
            table.by_token.clear();
            table.by_id.drain().map(|(_, call)| call).collect()
        };
        for call in open {
            // A call that was given up meanwhile does not listen any more.
            let _ = call.send(Incoming::End(Outcome::Lost(why.to_owned()))).await;
        }
    }
}

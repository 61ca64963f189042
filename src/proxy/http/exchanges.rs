//! The exchanges of one connection that have no complete answer yet.
//!
//! HTTP/1.1 answers in the order of the requests, so the answer that is being read belongs to the
//! oldest one. Both directions of a connection run in one task; the lock is never contended.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use super::hands::Why;
use super::hands::plan::OnAnswer;
use super::policy::Wish;
use crate::wire::http1::Asked;

/// One request whose answer is not complete.
#[derive(Debug, Clone)]
pub(super) struct Exchange {
    /// Its number.
    pub(super) stream: u64,
    /// What decides how its answer is framed.
    pub(super) asked: Asked,
    /// What the tap may have to change in its answer.
    pub(super) wish: Wish,
    /// The origin under which the client knows the tap; empty where nothing may change.
    pub(super) own_origin: String,
    /// The head of the request as it passes.
    pub(super) head: Bytes,
    /// The body of the request, where it is known whole.
    pub(super) text: Option<Bytes>,
    /// What is to be done to its answer.
    pub(super) on_answer: Vec<(OnAnswer, Why)>,
    /// Its answer is an event stream that has begun.
    pub(super) is_streaming: bool,
}

/// The open exchanges of one connection, oldest first.
#[derive(Debug, Default)]
pub(super) struct Exchanges {
    open: Mutex<VecDeque<Exchange>>,
    is_tunnel: AtomicBool,
    /// Told whenever the last open exchange has ended.
    pub(super) settled: tokio::sync::Notify,
}

impl Exchanges {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Exchange>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn begin(&self, exchange: Exchange) {
        self.lock().push_back(exchange);
    }

    /// The one whose answer comes now.
    pub(super) fn oldest(&self) -> Option<Exchange> {
        self.lock().front().cloned()
    }

    /// The answer of the oldest is complete.
    pub(super) fn end_oldest(&self) {
        let mut open = self.lock();
        open.pop_front();
        if open.is_empty() {
            self.settled.notify_one();
        }
    }

    /// All that are open, oldest first.
    pub(super) fn all(&self) -> Vec<Exchange> {
        self.lock().iter().cloned().collect()
    }

    /// Whether one is open.
    pub(super) fn has(&self, stream: u64) -> bool {
        self.lock().iter().any(|e| e.stream == stream)
    }

    /// Those whose answer is an event stream that has begun.
    pub(super) fn streaming(&self) -> Vec<u64> {
        self.lock().iter().filter(|e| e.is_streaming).map(|e| e.stream).collect()
    }

    /// Something more is known of one that is open.
    pub(super) fn note(&self, stream: u64, what: impl FnOnce(&mut Exchange)) {
        if let Some(exchange) = self.lock().iter_mut().find(|e| e.stream == stream) {
            what(exchange);
        }
    }

    /// It gets no answer.
    pub(super) fn remove(&self, stream: u64) {
        let mut open = self.lock();
        open.retain(|e| e.stream != stream);
        if open.is_empty() {
            self.settled.notify_one();
        }
    }

    /// The server has turned the connection into a tunnel, or speaks no HTTP/1.x: nothing more on
    /// it is a request.
    pub(super) fn become_tunnel(&self) {
        self.is_tunnel.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_tunnel(&self) -> bool {
        self.is_tunnel.load(Ordering::Relaxed)
    }

    pub(super) fn is_settled(&self) -> bool {
        self.lock().is_empty()
    }

    /// Numbers of all that are open, oldest first.
    pub(super) fn streams(&self) -> Vec<u64> {
        self.lock().iter().map(|e| e.stream).collect()
    }
}

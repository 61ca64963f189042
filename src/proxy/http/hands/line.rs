//! What one connection is told by those who give orders, and the place where its two directions
//! look for it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::Notify;

use crate::command::Answer;
use crate::proxy::http::exchanges::Exchanges;
use crate::time::Mono;

/// What becomes of one side of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::proxy::http) enum Ending {
    /// It stays.
    Keep,
    /// It is closed in order.
    Close,
    /// It is reset.
    Reset,
}

/// A connection is cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::proxy::http) struct CutOrder {
    /// What the client sees.
    pub(in crate::proxy::http) client: Ending,
    /// What the server sees.
    pub(in crate::proxy::http) server: Ending,
    /// A message that the client still gets, as the end of the answer to this exchange.
    pub(in crate::proxy::http) last_words: Option<(u64, Bytes)>,
    /// A call was given up: what the server says all the same is recorded.
    pub(in crate::proxy::http) is_cancel: bool,
}

/// What becomes of something that is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::proxy::http) enum Fate {
    /// It passes, with another text where one is given.
    Pass(Option<Bytes>),
    /// It never passes.
    Drop,
    /// It is answered instead, by order of this one.
    Answer(Answer, &'static str),
    /// It is asked for again then.
    Until(Mono),
}

/// Something that a direction is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::proxy::http) enum Errand {
    /// With what it holds under this number.
    Fate(u64, Fate),
    /// To write a message on the event stream of this exchange.
    Send(u64, Bytes),
    /// To give up what it holds: the side that it goes to is gone.
    Forget,
    /// To end the sending to the server, as a client that has left.
    Close,
    /// To look again.
    Look,
}

/// Which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::proxy::http) enum Way {
    /// To the server.
    Up,
    /// To the client.
    Down,
}

/// One connection of a client.
#[derive(Debug)]
pub(in crate::proxy::http) struct Line {
    /// Its number.
    pub(in crate::proxy::http) conn: u64,
    /// Its open exchanges.
    pub(in crate::proxy::http) exchanges: Arc<Exchanges>,
    up: Mailbox,
    down: Mailbox,
    cut: Mutex<Option<CutOrder>>,
    cut_told: Notify,
}

#[derive(Debug, Default)]
struct Mailbox {
    errands: Mutex<Vec<Errand>>,
    told: Notify,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Line {
    pub(in crate::proxy::http) fn new(conn: u64, exchanges: Arc<Exchanges>) -> Line {
        Line {
            conn,
            exchanges,
            up: Mailbox::default(),
            down: Mailbox::default(),
            cut: Mutex::default(),
            cut_told: Notify::new(),
        }
    }

    fn way(&self, way: Way) -> &Mailbox {
        match way {
            Way::Up => &self.up,
            Way::Down => &self.down,
        }
    }

    /// Leaves an errand for one direction.
    pub(in crate::proxy::http) fn tell(&self, way: Way, errand: Errand) {
        lock(&self.way(way).errands).push(errand);
        self.way(way).told.notify_one();
    }

    /// Waits until an errand was left.
    pub(in crate::proxy::http) async fn told(&self, way: Way) {
        self.way(way).told.notified().await;
    }

    /// The errands that were left, oldest first.
    pub(in crate::proxy::http) fn errands(&self, way: Way) -> Vec<Errand> {
        std::mem::take(&mut *lock(&self.way(way).errands))
    }

    /// Cuts the connection; the first order counts.
    pub(in crate::proxy::http) fn cut(&self, order: CutOrder) {
        lock(&self.cut).get_or_insert(order);
        self.cut_told.notify_one();
    }

    /// Whether it is being cut.
    pub(in crate::proxy::http) fn is_cut(&self) -> bool {
        lock(&self.cut).is_some()
    }

    /// Waits until it is to be cut.
    pub(in crate::proxy::http) async fn until_cut(&self) -> CutOrder {
        loop {
            let order = lock(&self.cut).clone();
            match order {
                Some(order) => return order,
                None => self.cut_told.notified().await,
            }
        }
    }
}

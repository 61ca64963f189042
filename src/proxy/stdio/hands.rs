//! The hands of a stdio tap: what a person orders is done to the traffic here.
//!
//! Until the first order the lanes write what they read, and nothing here costs them more than one
//! look at a flag. With the first order each direction gets a writer of its own: from then on the
//! lanes cut what they read into lines, each line is judged ([`State::take_line`]) and stands in a
//! queue ([`way::Way`]), and only the writer writes. So whatever else is written, a cancel, a held
//! message that goes on, an answer in the server's place, stands between two lines and never in
//! one. A lane reads on when what it read has been written, so that a slow receiver still holds its
//! sender back.

mod cancel;
mod fate;
mod gate;
mod item;
mod judge;
mod orders;
mod state;
mod watch;
mod way;
mod writer;

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};

use rustix::io::Errno;

use super::Notice;
use crate::command::book::OpenCall;
use crate::command::{Applied, By, Command, Refused, TakesOrders};
use crate::event::tape::Tape;
use crate::event::{Dir, Transport};
use crate::machine::policy::Policy;
use crate::time::Ms;
pub(super) use gate::Through;
use state::State;

/// How long the end of a session waits for a message that is being written.
const LAST_WRITE: Ms = Ms(200);

/// Takes the orders for one stdio tap, and carries them out.
#[derive(Debug)]
pub struct Hands {
    me: Weak<Hands>,
    /// There has been an order: lines are looked at.
    is_active: AtomicBool,
    to_server: Mutex<Port>,
    to_client: Mutex<Port>,
    state: Mutex<State>,
    /// Something in the state has changed.
    changed: Condvar,
}

/// The end of a direction, while its lane writes by itself.
#[derive(Debug, Default)]
struct Port {
    receiver: Option<OwnedFd>,
    is_within_line: bool,
}

impl Hands {
    /// Of a tap that tells its effects on `tape`; `seed`: from which rules without a seed of their
    /// own draw. Nothing is armed. Orders are taken from now on, before the server runs too.
    #[must_use]
    pub fn new(tape: Tape, seed: u64) -> Arc<Hands> {
        Arc::new_cyclic(|me| Hands {
            me: me.clone(),
            is_active: AtomicBool::new(false),
            to_server: Mutex::default(),
            to_client: Mutex::default(),
            state: Mutex::new(State::new(tape, seed)),
            changed: Condvar::new(),
        })
    }

    /// What is declared about tools decides whether a call may be sent again; `server`: the command
    /// by which a policy names it.
    pub fn set_policy(&self, policy: Policy, server: String) {
        self.lock().policy = (policy, server);
    }

    /// The session begins: where both directions lead, and who acts on the server's process.
    pub(super) fn attach(&self, to_client: OwnedFd, to_server: OwnedFd, notices: Sender<Notice>) {
        for (dir, receiver) in [(Dir::S2c, to_client), (Dir::C2s, to_server)] {
            self.port(dir).receiver = Some(receiver);
        }
        let mut state = self.lock();
        state.notices = Some(notices);
        drop(state);
        if self.is_active() {
            // Without a thread for it nothing would be written; the lanes then see a closed way.
            let _ = self.start_writers();
        }
    }

    /// The server has been started again: this is its stdin.
    pub(super) fn reconnect(&self, to_server: OwnedFd) {
        let mut state = self.lock();
        state.engine.book_mut().end_all();
        let way = state.way_mut(Dir::C2s);
        way.replacement = Some(to_server);
        way.is_paused = false;
        way.error = None;
        way.is_cut = false;
        state.is_server_cut = false;
        state.way_mut(Dir::S2c).is_finishing = false;
        drop(state);
        self.changed.notify_all();
    }

    pub(super) fn is_active(&self) -> bool {
        self.is_active.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn port(&self, dir: Dir) -> MutexGuard<'_, Port> {
        let port = if dir == Dir::C2s { &self.to_server } else { &self.to_client };
        port.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes what was read as it is. `false`: it is not done, as there are orders.
    pub(super) fn write_direct(&self, dir: Dir, chunk: &[u8]) -> Result<bool, Errno> {
        let mut port = self.port(dir);
        if self.is_active() {
            return Ok(false);
        }
        let receiver = port.receiver.as_ref().ok_or(Errno::PIPE)?;
        super::lane::write_all(receiver.as_fd(), chunk)?;
        port.is_within_line = !chunk.ends_with(b"\n");
        Ok(true)
    }

    /// From now on lines are looked at, and a writer writes.
    fn activate(&self) -> Result<(), Refused> {
        if self.is_active.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let mut state = self.lock();
        if state.notices.is_none() {
            return Ok(());
        }
        state.unknown = Some(Vec::new());
        drop(state);
        let cannot = |error: crate::proxy::ProxyError| Refused::NotHere(error.to_string());
        self.start_writers().map_err(cannot)
    }

    fn start_writers(&self) -> Result<(), crate::proxy::ProxyError> {
        // The first order may come at the moment in which the session begins.
        if std::mem::replace(&mut self.lock().has_writers, true) {
            return Ok(());
        }
        for (name, dir) in [("write-to-server", Dir::C2s), ("write-to-client", Dir::S2c)] {
            let Some(hands) = self.me.upgrade() else { return Ok(()) };
            super::start(name, move || {
                // A lane that is writing by itself finishes first.
                let Port { receiver, is_within_line } = std::mem::take(&mut *hands.port(dir));
                hands.write_out(dir, receiver, !is_within_line);
            })?;
        }
        Ok(())
    }

    /// The receiver of this direction is told the end; what still waits for it is lost.
    pub(super) fn close(&self, dir: Dir) {
        let mut state = self.lock();
        state.way_mut(dir).is_over = true;
        state.lose_all(dir);
        drop(state);
        // A lane that is stuck in its own write holds the port, and ends with the process.
        let port = if dir == Dir::C2s { &self.to_server } else { &self.to_client };
        if let Ok(mut port) = port.try_lock() {
            port.receiver = None;
        }
        self.changed.notify_all();
    }

    /// The sender is over, although its pipe may not be: what stands still would do so for ever.
    pub(super) fn lift_stalls(&self, dir: Dir) {
        self.lock().way_mut(dir).is_finishing = true;
        self.changed.notify_all();
    }

    /// The sender of this direction has ended: what waits for a person passes.
    fn sender_ended(&self, dir: Dir) {
        self.lock().sender_ended(dir);
        self.changed.notify_all();
    }

    /// Nothing waits to be written in this direction.
    pub(super) fn is_drained(&self, dir: Dir) -> bool {
        !self.is_active() || self.lock().is_drained(dir)
    }

    /// The session is over: what is still in the hands is said to be lost.
    pub(super) fn end(&self) {
        self.close(Dir::C2s);
        self.close(Dir::S2c);
        let mut state = self.lock();
        state.notices = None;
        let limit = state.now().plus(LAST_WRITE);
        while state.now() < limit && [Dir::C2s, Dir::S2c].iter().any(|dir| state.way(*dir).is_writing()) {
            let left = limit.ns_since(state.now());
            state = self.wait(state, Some(left));
        }
    }
}

impl TakesOrders for Hands {
    fn order(&self, command: &Command, by: By) -> Result<Applied, Refused> {
        self.activate()?;
        let applied = self.lock().obey(command, by);
        self.changed.notify_all();
        applied
    }

    fn transport(&self) -> Transport {
        Transport::Stdio
    }

    fn knows(&self) -> bool {
        self.is_active() && self.lock().unknown.is_none()
    }

    fn seed(&self, calls: Vec<OpenCall>) {
        if self.activate().is_err() {
            return;
        }
        let mut state = self.lock();
        // What was answered since is open no longer.
        let Some(answered) = state.unknown.take() else { return };
        let is_open =
            |call: &OpenCall| !answered.iter().any(|(dir, id)| *dir == call.sender && *id == call.id);
        let calls = calls.into_iter().filter(is_open).collect();
        state.engine.book_mut().seed(calls);
    }
}

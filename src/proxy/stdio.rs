//! The tap on the pipes of a child process: our own standard streams are the client's side, the
//! child is the server.
//!
//! Three threads move bytes (client to server, server to client, the server's stderr), each with
//! blocking reads and writes and no framing: what one read returns is put on the tape and written
//! on as one chunk. Two more threads wait for the child's end and for signals. All of them tell
//! the calling thread, which alone decides how the session ends (`ending`).
//!
//! What a client can tell from a direct connection: the server runs in a process group of its own,
//! talks to pipes even where the client gave a socket or a terminal, and a server that a signal
//! ended is reported as exit status 128 + n.

mod ending;
mod lane;
mod signals;
mod streams;

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Weak};
use std::thread;

use rustix::process::Signal;

use super::ProxyError;
use super::child::{self, Group, Pipes};
use crate::event::tape::Tape;
use crate::event::{Close, Dir, What};
use crate::time::{Mono, Ms};
use ending::{Act, Ending, Seen};
use lane::{Direct, Lane, LaneEnd, Progress};
use signals::Signals;
use streams::ClientStreams;

/// How to run a stdio tap.
#[derive(Debug, Clone)]
pub struct Options {
    /// The server's program and its arguments.
    pub command: Vec<OsString>,
    /// How long the tap waits while a session ends.
    pub waits: Waits,
    /// The socket on which the server may tell about its own work; `None`: it is told of none, and
    /// its environment is the tap's.
    pub telemetry: Option<PathBuf>,
}

/// How long the tap waits while a session ends. Nothing here runs while client and server are
/// both connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waits {
    /// From the end of the server's stdin until it is sent `SIGTERM`.
    pub term: Ms,
    /// From `SIGTERM` until `SIGKILL`.
    pub kill: Ms,
    /// From the server's end until the tap stops reading a pipe that another process still holds.
    /// What was in the pipe when the server ended is always delivered first.
    pub drain: Ms,
    /// From `SIGTERM` until `SIGKILL` for processes that the server left in its group.
    pub leftover: Ms,
}

impl Default for Waits {
    /// ours: longer than the two seconds after which SDK clients send signals of their own, so
    /// that a client's decision comes first.
    fn default() -> Waits {
        Waits { term: Ms(10_000), kill: Ms(5_000), drain: Ms(200), leftover: Ms(500) }
    }
}

/// How the server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// Its exit status, when it exited.
    pub exit_code: Option<i32>,
    /// The signal that ended it, when one did.
    pub signal: Option<i32>,
}

impl Outcome {
    /// The exit status that the tap passes on: the server's own, or 128 + n for signal n.
    #[must_use]
    pub fn status(&self) -> i32 {
        self.exit_code.or(self.signal.map(|signal| 128 + signal)).unwrap_or(128)
    }

    /// How it ended; with `None` not known, which is never taken for success.
    fn of(status: Option<ExitStatus>) -> Outcome {
        Outcome {
            exit_code: status.and_then(|status| status.code()),
            signal: status.and_then(|status| status.signal()),
        }
    }
}

/// What a thread tells the deciding one.
enum Notice {
    /// A lane moves no more bytes.
    LaneEnded(Dir, LaneEnd),
    /// The server process has ended.
    /// `None`: how is not known.
    Exited(Option<ExitStatus>),
    /// The tap received a signal.
    Received(Signal),
}

/// Runs the server and moves bytes until the session is over.
///
/// Takes the process's standard streams for itself; afterwards they lead to `/dev/null` (stderr
/// stays). A thread that is still blocked on the client's stdin, or on a pipe that a process
/// outside the server's group holds, stays behind until the process exits.
///
/// # Errors
/// When the server cannot be started or the tap lacks a thread, a pipe or a handler. Nothing
/// that was started is left over.
pub fn run(options: &Options, tape: &Tape) -> Result<Outcome, ProxyError> {
    let (notices, inbox) = mpsc::channel();
    let signals = Signals::listen(notices.clone())?;
    let (group, pipes, child) = child::spawn(&options.command, options.telemetry.as_deref())?;
    let pid = child.id();
    let command = options.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    tape.push_stdio(Dir::Tap, What::Spawn { pid, command });
    let client = ClientStreams::take()?;
    wait_for_exit(child, notices.clone())?;
    let pipes = Drained::start(client, pipes, tape, &notices)?;
    let session =
        Session { tape, group, pipes, ending: Ending::new(options.waits), outcome: None, client_out: None };
    let outcome = session.run(&inbox);
    drop(signals);
    Ok(outcome)
}

/// Starts a named thread.
fn start(name: &'static str, body: impl FnOnce() + Send + 'static) -> Result<(), ProxyError> {
    let started = thread::Builder::new().name(name.to_owned()).spawn(body);
    started.map(drop).map_err(|source| ProxyError::CannotSetUp { what: "a thread", source })
}

fn wait_for_exit(mut child: Child, notices: Sender<Notice>) -> Result<(), ProxyError> {
    start("server-exit", move || {
        // An error means that somebody else has reaped it, as the system does for a parent that
        // ignores SIGCHLD: it has ended all the same.
        let _ = notices.send(Notice::Exited(child.wait().ok()));
    })
}

/// The two pipes that come from the server, seen by the deciding thread.
struct Drained {
    stdout: Watched,
    stderr: Watched,
}

/// One pipe from the server: how far it has been forwarded, and how far it must be.
struct Watched {
    pipe: Weak<OwnedFd>,
    progress: Arc<Progress>,
    is_ended: bool,
    /// Bytes that had come from the server when it ended.
    target_bytes: u64,
}

impl Drained {
    /// Starts the three forwarding threads.
    fn start(
        client: ClientStreams,
        server: Pipes,
        tape: &Tape,
        notices: &Sender<Notice>,
    ) -> Result<Drained, ProxyError> {
        Watched::start("client-to-server", Dir::C2s, client.stdin, server.stdin, tape, notices)?;
        Ok(Drained {
            stdout: Watched::start(
                "server-to-client",
                Dir::S2c,
                server.stdout,
                client.stdout,
                tape,
                notices,
            )?,
            stderr: Watched::start(
                "server-stderr",
                Dir::Stderr,
                server.stderr,
                client.stderr,
                tape,
                notices,
            )?,
        })
    }

    /// The server has ended: what is in the pipes now is still to be delivered.
    fn mark_exit(&mut self) {
        self.stdout.mark_exit();
        self.stderr.mark_exit();
    }

    fn delivered_bytes(&self) -> u64 {
        self.stdout.progress.forwarded_bytes() + self.stderr.progress.forwarded_bytes()
    }

    fn are_ended(&self) -> bool {
        self.stdout.is_ended && self.stderr.is_ended
    }

    fn are_delivered(&self) -> bool {
        self.stdout.is_delivered() && self.stderr.is_delivered()
    }
}

impl Watched {
    fn start(
        name: &'static str,
        dir: Dir,
        from: OwnedFd,
        to: OwnedFd,
        tape: &Tape,
        notices: &Sender<Notice>,
    ) -> Result<Watched, ProxyError> {
        let (from, progress) = (Arc::new(from), Arc::new(Progress::default()));
        let watched = Watched {
            pipe: Arc::downgrade(&from),
            progress: progress.clone(),
            is_ended: false,
            target_bytes: 0,
        };
        let lane = Lane::new(dir, from, to, tape.clone(), progress, Direct);
        let notices = notices.clone();
        start(name, move || {
            let end = lane.run();
            let _ = notices.send(Notice::LaneEnded(dir, end));
        })?;
        Ok(watched)
    }

    fn mark_exit(&mut self) {
        let waiting = self.pipe.upgrade().and_then(|pipe| rustix::io::ioctl_fionread(&*pipe).ok());
        self.target_bytes = self.progress.read_bytes().saturating_add(waiting.unwrap_or(0));
    }

    fn is_delivered(&self) -> bool {
        self.is_ended || self.progress.forwarded_bytes() >= self.target_bytes
    }
}

/// One running session, owned by the deciding thread.
struct Session<'a> {
    tape: &'a Tape,
    group: Group,
    pipes: Drained,
    ending: Ending,
    outcome: Option<Outcome>,
    /// The way to the client, held from the end of the server's stdout until that end has its
    /// place on the tape.
    client_out: Option<OwnedFd>,
}

impl Session<'_> {
    fn run(mut self, inbox: &Receiver<Notice>) -> Outcome {
        loop {
            let now = self.now();
            let seen = Seen {
                are_pipes_ended: self.pipes.are_ended(),
                are_pipes_delivered: self.pipes.are_delivered(),
                delivered_bytes: self.pipes.delivered_bytes(),
            };
            match self.ending.next(now, seen, || self.group.is_alive()) {
                Some(Act::Finish) => break,
                Some(act) => {
                    self.perform(act);
                    continue;
                }
                None => {}
            }
            let notice = match self.ending.patience(now) {
                Some(limit) => inbox.recv_timeout(limit),
                None => inbox.recv().map_err(RecvTimeoutError::from),
            };
            match notice {
                Ok(notice) => self.take(notice),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => unreachable!("the signal thread outlives the session"),
            }
        }
        self.group.stand_down();
        self.outcome.unwrap_or(Outcome { exit_code: None, signal: None })
    }

    fn now(&self) -> Mono {
        self.tape.clock().now()
    }

    fn take(&mut self, notice: Notice) {
        let now = self.now();
        match notice {
            Notice::LaneEnded(Dir::C2s, _) => self.ending.stdin_closed(now),
            Notice::LaneEnded(Dir::Stderr, _) => self.pipes.stderr.is_ended = true,
            Notice::LaneEnded(_, end) => {
                self.pipes.stdout.is_ended = true;
                if let LaneEnd::Sender(receiver) = end {
                    self.client_out = Some(receiver);
                    self.ending.stdout_closed(now);
                }
            }
            Notice::Exited(status) => {
                self.pipes.mark_exit();
                self.outcome = Some(Outcome::of(status));
                self.ending.exited(now);
            }
            Notice::Received(signal) => self.pass_on(signal),
        }
    }

    fn perform(&mut self, act: Act) {
        match act {
            Act::Send { signal, why } => self.send(signal, why),
            Act::ReportStdoutClosed => {
                self.push_server_closed(Some(Close::Eof), None);
                self.client_out = None;
            }
            Act::ReportExit => {
                self.push_server_closed(None, self.outcome);
                self.client_out = None;
            }
            Act::Finish => unreachable!("ends the loop before"),
        }
    }

    fn push_server_closed(&self, how: Option<Close>, outcome: Option<Outcome>) {
        let exit_code = outcome.and_then(|o| o.exit_code);
        let signal = outcome.and_then(|o| o.signal);
        self.tape.push_stdio(Dir::S2c, What::ServerClosed { how, exit_code, signal });
    }

    /// A signal that was meant for the server reaches its whole group.
    fn pass_on(&mut self, signal: Signal) {
        self.send(signal, "passed on".to_owned());
        if signal == Signal::TSTP {
            signals::stop_ourselves();
        } else if signals::asks_to_end(signal) {
            self.ending.hurry();
        }
    }

    /// The place on the tape is taken first: what the server does about it comes later.
    fn send(&self, signal: Signal, why: String) {
        self.tape.push_stdio(Dir::Tap, What::Signal { signal: signals::name(signal).to_owned(), why });
        self.group.signal(signal);
    }
}

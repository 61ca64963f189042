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
mod hands;
mod lane;
mod signals;
mod streams;

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use super::ProxyError;
use super::child::{self, Group};
use crate::command::Process;
use crate::event::tape::Tape;
use crate::event::{Close, Dir, What};
use crate::time::{Mono, Ms};
use ending::{Act, Ending, Seen};
pub use hands::Hands;
use hands::Through;
use lane::{Direct, Gate, Lane, LaneEnd, Progress};
use signals::Signals;
pub use streams::ClientStreams;

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
#[derive(Clone, Copy)]
enum Notice {
    /// A lane moves no more bytes; which server it belongs to comes first.
    LaneEnded(u64, Dir, LaneEnd),
    /// The server process has ended.
    /// `None`: how is not known.
    Exited(Option<ExitStatus>),
    /// The tap received a signal.
    Received(Signal),
    /// Something is to be done to the server's process, and who asked for it.
    Ordered(Process, &'static str),
}

/// Runs the server and moves bytes until the session is over; `hands` takes the orders for it.
///
/// Takes the process's standard streams for itself; afterwards they lead to `/dev/null` (stderr
/// stays). A thread that is still blocked on the client's stdin, or on a pipe that a process
/// outside the server's group holds, stays behind until the process exits.
///
/// # Errors
/// When the server cannot be started or the tap lacks a thread, a pipe or a handler. Nothing
/// that was started is left over.
pub fn run(options: &Options, tape: &Tape, hands: &Arc<Hands>) -> Result<Outcome, ProxyError> {
    run_with(options, tape, hands, ClientStreams::take)
}

/// The same with a client on other streams than the process's own.
///
/// # Errors
/// As of [`run`].
pub fn run_between(
    options: &Options,
    tape: &Tape,
    hands: &Arc<Hands>,
    client: ClientStreams,
) -> Result<Outcome, ProxyError> {
    run_with(options, tape, hands, || Ok(client))
}

fn run_with(
    options: &Options,
    tape: &Tape,
    hands: &Arc<Hands>,
    client: impl FnOnce() -> Result<ClientStreams, ProxyError>,
) -> Result<Outcome, ProxyError> {
    let (notices, inbox) = mpsc::channel();
    let signals = Signals::listen(notices.clone())?;
    let (group, pipes, child) = child::spawn(&options.command, options.telemetry.as_deref())?;
    push_spawn(tape, options, &child);
    let ClientStreams { stdin, stdout, stderr } = client()?;
    wait_for_exit(child, notices.clone())?;
    hands.attach(stdout, pipes.stdin, notices.clone());
    let lanes = Lanes { tape, hands, notices: &notices, generation: 0 };
    lanes.start("client-to-server", Dir::C2s, stdin, Through::new(hands.clone(), Dir::C2s))?;
    let client_stderr = stderr.try_clone().map_err(no_streams)?;
    let pipes = Drained::start(&lanes, pipes.stdout, pipes.stderr, stderr)?;
    let session = Session {
        options,
        tape,
        hands,
        group,
        pipes,
        ending: Ending::new(options.waits),
        outcome: None,
        client_stderr,
        notices: &notices,
        generation: 0,
        restart: Restart::Not,
    };
    let outcome = session.run(&inbox);
    hands.end();
    drop(signals);
    Ok(outcome)
}

fn no_streams(source: io::Error) -> ProxyError {
    ProxyError::CannotSetUp { what: "the standard streams", source }
}

fn push_spawn(tape: &Tape, options: &Options, child: &Child) {
    let command = options.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    tape.push_stdio(Dir::Tap, What::Spawn { pid: child.id(), command });
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

/// What lanes are started with.
struct Lanes<'a> {
    tape: &'a Tape,
    hands: &'a Arc<Hands>,
    notices: &'a Sender<Notice>,
    /// How often the server has been started again: what lanes of an earlier one tell is old.
    generation: u64,
}

impl Lanes<'_> {
    fn start<G: Gate + 'static>(
        &self,
        name: &'static str,
        dir: Dir,
        from: OwnedFd,
        gate: G,
    ) -> Result<Watched, ProxyError> {
        let (from, progress) = (Arc::new(from), Arc::new(Progress::default()));
        let watched = Watched {
            pipe: Arc::downgrade(&from),
            progress: progress.clone(),
            is_ended: false,
            target_bytes: 0,
        };
        let lane = Lane::new(dir, from, self.tape.clone(), progress, gate);
        let (notices, generation) = (self.notices.clone(), self.generation);
        start(name, move || {
            let end = lane.run();
            let _ = notices.send(Notice::LaneEnded(generation, dir, end));
        })?;
        Ok(watched)
    }
}

impl Drained {
    /// Starts the two threads that forward what comes from the server.
    fn start(
        lanes: &Lanes<'_>,
        stdout: OwnedFd,
        stderr: OwnedFd,
        client_stderr: OwnedFd,
    ) -> Result<Drained, ProxyError> {
        let through = Through::new(lanes.hands.clone(), Dir::S2c);
        Ok(Drained {
            stdout: lanes.start("server-to-client", Dir::S2c, stdout, through)?,
            stderr: lanes.start("server-stderr", Dir::Stderr, stderr, Direct(Some(client_stderr)))?,
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
    fn mark_exit(&mut self) {
        let waiting = self.pipe.upgrade().and_then(|pipe| rustix::io::ioctl_fionread(&*pipe).ok());
        self.target_bytes = self.progress.read_bytes().saturating_add(waiting.unwrap_or(0));
    }

    fn is_delivered(&self) -> bool {
        self.is_ended || self.progress.forwarded_bytes() >= self.target_bytes
    }
}

/// Whether the server is to be started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Restart {
    /// No.
    Not,
    /// Yes, once it has ended.
    Asked,
    /// It has ended, and its last output is awaited until then.
    Due(Mono),
}

/// One running session, owned by the deciding thread.
struct Session<'a> {
    options: &'a Options,
    tape: &'a Tape,
    hands: &'a Arc<Hands>,
    group: Group,
    pipes: Drained,
    ending: Ending,
    outcome: Option<Outcome>,
    /// For the lanes of a server that is started again.
    client_stderr: OwnedFd,
    notices: &'a Sender<Notice>,
    generation: u64,
    restart: Restart,
}

impl Session<'_> {
    fn run(mut self, inbox: &Receiver<Notice>) -> Outcome {
        loop {
            let now = self.now();
            if let Restart::Due(at) = self.restart
                && (at <= now || self.pipes.are_ended())
            {
                self.restart_server();
            }
            let seen = Seen {
                are_pipes_ended: self.pipes.are_ended(),
                are_pipes_delivered: self.pipes.are_delivered() && self.hands.is_drained(Dir::S2c),
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
            let restart = match self.restart {
                Restart::Due(at) => Some(Duration::from_nanos(at.ns_since(now))),
                Restart::Not | Restart::Asked => None,
            };
            let notice = match self.ending.patience(now).or(restart) {
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
            Notice::LaneEnded(_, Dir::C2s, _) => self.ending.stdin_closed(now),
            Notice::LaneEnded(generation, ..) if generation != self.generation => {}
            Notice::LaneEnded(_, Dir::Stderr, _) => self.pipes.stderr.is_ended = true,
            Notice::LaneEnded(_, _, end) => {
                self.pipes.stdout.is_ended = true;
                if end == LaneEnd::Sender && self.restart == Restart::Not {
                    self.ending.stdout_closed(now);
                }
            }
            Notice::Exited(status) => {
                self.pipes.mark_exit();
                self.outcome = Some(Outcome::of(status));
                if self.restart == Restart::Asked {
                    self.push_server_closed(None, self.outcome);
                    self.restart = Restart::Due(now.plus(self.options.waits.drain));
                } else {
                    self.hands.lift_stalls(Dir::S2c);
                    self.ending.exited(now);
                }
            }
            Notice::Ordered(process, by) => self.obey(process, by),
            Notice::Received(signal) => self.pass_on(signal),
        }
    }

    fn perform(&mut self, act: Act) {
        match act {
            Act::Send { signal, why } => self.send(signal, why),
            Act::ReportStdoutClosed => {
                self.push_server_closed(Some(Close::Eof), None);
                self.hands.close(Dir::S2c);
            }
            Act::ReportExit => {
                self.push_server_closed(None, self.outcome);
                self.hands.close(Dir::S2c);
            }
            Act::Finish => unreachable!("ends the loop before"),
        }
    }

    fn push_server_closed(&self, how: Option<Close>, outcome: Option<Outcome>) {
        let exit_code = outcome.and_then(|o| o.exit_code);
        let signal = outcome.and_then(|o| o.signal);
        self.tape.push_stdio(Dir::S2c, What::ServerClosed { how, exit_code, signal });
    }

    /// What somebody ordered to be done to the server's process.
    fn obey(&mut self, process: Process, by: &'static str) {
        let signal = match process {
            Process::Kill => Signal::KILL,
            Process::Stop => Signal::STOP,
            Process::Continue => Signal::CONT,
            Process::Restart if self.restart == Restart::Not && self.outcome.is_none() => {
                self.restart = Restart::Asked;
                Signal::KILL
            }
            // Closing its stdin is the writer's work.
            Process::Restart | Process::CloseStdin => return,
        };
        self.send(signal, format!("asked by {by}"));
    }

    /// The server is over; another one takes its place between the client's pipes.
    fn restart_server(&mut self) {
        self.restart = Restart::Not;
        if let Err(error) = self.start_again() {
            self.tape.push_stdio(Dir::Tap, What::Mark(format!("not started again: {error}")));
            self.ending.exited(self.now());
        }
    }

    fn start_again(&mut self) -> Result<(), ProxyError> {
        let (group, pipes, child) = child::spawn(&self.options.command, self.options.telemetry.as_deref())?;
        std::mem::replace(&mut self.group, group).stand_down();
        push_spawn(self.tape, self.options, &child);
        wait_for_exit(child, self.notices.clone())?;
        self.outcome = None;
        self.generation += 1;
        let generation = self.generation;
        let lanes = Lanes { tape: self.tape, hands: self.hands, notices: self.notices, generation };
        let client_stderr = self.client_stderr.try_clone().map_err(no_streams)?;
        self.hands.reconnect(pipes.stdin);
        self.pipes = Drained::start(&lanes, pipes.stdout, pipes.stderr, client_stderr)?;
        Ok(())
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

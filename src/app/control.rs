//! Orders to a running tap over its local socket (`docs/control.md`): one JSON object a line, and
//! one line in answer. On connecting, the tap says what it is.

mod before;
pub mod client;
pub mod desk;
pub mod find;

use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::Context as _;
use rustix::event::{PollFd, PollFlags, poll};
use serde_json::{Value, json};

use crate::command::verbs::VERBS;
use crate::command::{By, TakesOrders, json as orders};
use crate::event::Transport;
use crate::peer::control::VERSION;
use crate::wire::lines::LineDecoder;

/// Longest order. ours: an edited message stands in one.
const LINE_LIMIT_BYTES: usize = 4 << 20;

/// Who may give orders at once. ours: a viewer, a script, and some that hang.
const CONNECTIONS: usize = 8;

/// Bytes asked for in one read.
const READ_BYTES: usize = 64 << 10;

/// Who does not read an answer for so long is left. ours: others wait meanwhile.
const WRITE_LIMIT: Duration = Duration::from_secs(1);

/// What a tap says of itself to whoever connects.
#[derive(Debug, Clone, Default)]
pub struct Introduction {
    /// The name of its session.
    pub session: String,
    /// A name given by the user.
    pub label: Option<String>,
}

/// Takes orders for a tap until it is dropped.
#[derive(Debug)]
pub struct Control {
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl Control {
    /// Takes the orders that come to `listener` and hands them to the tap.
    ///
    /// # Errors
    /// When the process lacks a thread or a descriptor.
    pub fn start(
        listener: UnixListener,
        introduction: &Introduction,
        tap: Arc<dyn TakesOrders>,
    ) -> anyhow::Result<Control> {
        let what = "cannot take orders";
        listener.set_nonblocking(true).context(what)?;
        let (stop, stopped) = UnixStream::pair().context(what)?;
        let mut desk = Desk { greeting: greeting(introduction, tap.transport()), tap, givers: Vec::new() };
        let run = move || desk.run(&listener, &stopped);
        let thread = thread::Builder::new().name("control".to_owned()).spawn(run).context(what)?;
        Ok(Control { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic was reported by the thread.
            let _ = thread.join();
        }
    }
}

fn greeting(introduction: &Introduction, transport: Transport) -> Value {
    json!({
        "midwire": "control",
        "version": VERSION,
        "of": "tap",
        "transport": match transport {
            Transport::Stdio => "stdio",
            Transport::Http => "http",
        },
        "session": introduction.session,
        "label": introduction.label,
        "commands": VERBS.iter().map(|verb| verb.name).collect::<Vec<_>>(),
    })
}

/// Somebody who gives orders.
struct Giver {
    stream: UnixStream,
    lines: LineDecoder,
}

struct Desk {
    greeting: Value,
    tap: Arc<dyn TakesOrders>,
    givers: Vec<Giver>,
}

impl Desk {
    /// Until `stopped` hangs up.
    fn run(&mut self, listener: &UnixListener, stopped: &UnixStream) {
        loop {
            let mut fds = vec![
                PollFd::from_borrowed_fd(stopped.as_fd(), PollFlags::IN),
                PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN),
            ];
            fds.extend(
                self.givers.iter().map(|giver| PollFd::from_borrowed_fd(giver.stream.as_fd(), PollFlags::IN)),
            );
            match poll(&mut fds, None) {
                Ok(_) if fds.first().is_some_and(|fd| !fd.revents().is_empty()) => return,
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => return,
            }
            let is_ready: Vec<bool> = fds.iter().skip(2).map(|fd| !fd.revents().is_empty()).collect();
            drop(fds);
            self.serve(&is_ready);
            self.accept(listener);
        }
    }

    fn accept(&mut self, listener: &UnixListener) {
        while let Ok((stream, _)) = listener.accept() {
            // More than so many are turned away.
            if self.givers.len() < CONNECTIONS
                && stream.set_nonblocking(false).is_ok()
                && stream.set_write_timeout(Some(WRITE_LIMIT)).is_ok()
                && say(&stream, &self.greeting)
            {
                self.givers.push(Giver { stream, lines: LineDecoder::new(LINE_LIMIT_BYTES) });
            }
        }
    }

    /// One read of each from whom there is something to read; it does not wait then.
    fn serve(&mut self, is_ready: &[bool]) {
        let mut ready = is_ready.iter().copied();
        let mut buf = vec![0; READ_BYTES];
        let tap = &self.tap;
        self.givers.retain_mut(|giver| {
            if !ready.next().unwrap_or(false) {
                return true;
            }
            let len = match giver.stream.read(&mut buf) {
                Ok(0) => return false,
                Ok(len) => len,
                Err(error) => return error.kind() == ErrorKind::Interrupted,
            };
            let lines = giver.lines.push(buf.get(..len).unwrap_or_default());
            lines.iter().all(|line| {
                let answer = if line.is_over_limit {
                    refused("too_long", &format!("an order has at most {LINE_LIMIT_BYTES} bytes"))
                } else {
                    obey(tap.as_ref(), &line.body)
                };
                say(&giver.stream, &answer)
            })
        });
    }
}

/// Whether it could be said in time.
fn say(mut stream: &UnixStream, value: &Value) -> bool {
    stream.write_all(format!("{value}\n").as_bytes()).is_ok()
}

fn refused(why: &str, error: &str) -> Value {
    json!({ "ok": false, "why": why, "error": error })
}

/// Carries one order out; what is said in answer.
fn obey(tap: &dyn TakesOrders, line: &[u8]) -> Value {
    match orders::parse(line) {
        Ok((command, by)) => match tap.order(&command, by.unwrap_or(By::Ctl)) {
            Ok(applied) => orders::of_applied(&applied),
            Err(refused) => orders::of_refused(&refused),
        },
        Err(error) => refused("unreadable", &error.why),
    }
}

#[cfg(test)]
mod tests;

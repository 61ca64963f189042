//! The client on two pipes, with or without a server process of its own behind them.

use std::collections::HashMap;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{BufMut, Bytes, BytesMut};
use rustix::process::{Pid, Signal as Posix, kill_process};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::follow::{Exchange, IN_CAPACITY, Incoming};
use super::message::{self, Outgoing, Read};
use super::{Outcome, PeerError, Reason, ServerExit, follow};
use crate::time::Ms;
use crate::wire::jsonrpc::Id;
use crate::wire::lines::{LINE_LIMIT_BYTES, Line, LineDecoder};

/// Lines waiting for the server's input.
const OUT_CAPACITY: usize = 64;
/// Bytes asked for in one read: a whole pipe.
const READ_BYTES: usize = 64 << 10;
/// Bytes of a line that is no message that go to the log.
const LINE_HEAD_BYTES: usize = 200;
/// How long the server may take to end after its input was closed, and again after SIGTERM.
const EXIT_WAIT: Ms = Ms(2000);

/// The pipes to one server.
#[derive(Debug)]
pub(super) struct Link {
    shared: Arc<Shared>,
    to_writer: mpsc::Sender<Bytes>,
    child: Option<Child>,
    tracker: TaskTracker,
}

#[derive(Debug, Default)]
struct Shared {
    table: Mutex<Table>,
    /// Breaks both pipes at once.
    cut: CancellationToken,
}

/// Open calls, by id and by token.
#[derive(Debug, Default)]
struct Table {
    by_id: HashMap<Id, mpsc::Sender<Incoming>>,
    by_token: HashMap<Id, mpsc::Sender<Incoming>>,
    strays: u64,
    is_closed: bool,
}

impl Shared {
    /// A poisoned lock is still good: no step can stop midway.
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of one call in the table; dropping it makes whatever still comes a stray.
#[derive(Debug)]
pub(super) struct Signal {
    id: Id,
    token: Option<Id>,
    shared: Arc<Shared>,
    to_writer: mpsc::Sender<Bytes>,
}

impl Drop for Signal {
    fn drop(&mut self) {
        let mut table = self.shared.lock();
        table.by_id.remove(&self.id);
        if let Some(token) = &self.token {
            table.by_token.remove(token);
        }
    }
}

impl Signal {
    /// Tells the server; nothing answers that.
    pub(super) async fn cancel(self, reason: Reason) {
        let line = message::cancelled(&self.id, reason.as_str());
        // Where the writer is gone there is no server left to tell.
        let _ = self.to_writer.send(line).await;
    }

    pub(super) fn cut(self) {
        self.shared.cut.cancel();
    }
}

impl Link {
    pub(super) fn spawn(command: &[String]) -> Result<Link, PeerError> {
        let (program, args) = command.split_first().ok_or(PeerError::NoCommand)?;
        let spawn = |source| PeerError::Spawn { command: program.clone(), source };
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().map_err(spawn)?;
        let pipes = child.stdout.take().zip(child.stdin.take());
        let (reader, writer) = pipes.ok_or_else(|| spawn(std::io::ErrorKind::BrokenPipe.into()))?;
        Ok(Link::start(reader, writer, Some(child)))
    }

    pub(super) fn start<R, W>(reader: R, writer: W, child: Option<Child>) -> Link
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let shared = Arc::new(Shared::default());
        let (to_writer, lines) = mpsc::channel(OUT_CAPACITY);
        let tracker = TaskTracker::new();
        tracker.spawn(write_in(writer, lines, shared.cut.clone()));
        tracker.spawn(read_out(reader, shared.clone()));
        Link { shared, to_writer, child, tracker }
    }

    pub(super) async fn open(&self, outgoing: &Outgoing) -> Result<Exchange, PeerError> {
        let (sender, incoming) = mpsc::channel(IN_CAPACITY);
        {
            let mut table = self.shared.lock();
            if table.is_closed {
                return Err(PeerError::Gone);
            }
            table.by_id.insert(outgoing.id.clone(), sender.clone());
            if let Some(token) = &outgoing.token {
                table.by_token.insert(token.clone(), sender);
            }
        }
        let signal = Signal {
            id: outgoing.id.clone(),
            token: outgoing.token.clone(),
            shared: self.shared.clone(),
            to_writer: self.to_writer.clone(),
        };
        self.to_writer.send(outgoing.body.clone()).await.map_err(|_| PeerError::Gone)?;
        Ok(Exchange { incoming, signal: follow::Signal::Stdio(signal) })
    }

    pub(super) fn strays(&self) -> u64 {
        self.shared.lock().strays
    }

    /// Closes the server's input, then ends it with rising force.
    pub(super) async fn close(self) -> Result<Option<ServerExit>, PeerError> {
        let Link { shared, to_writer, child, tracker } = self;
        drop(to_writer);
        let exit = match child {
            None => None,
            Some(child) => Some(wait(child).await?),
        };
        shared.cut.cancel();
        tracker.close();
        tracker.wait().await;
        Ok(exit)
    }
}

async fn wait(mut child: Child) -> Result<ServerExit, PeerError> {
    let failed = |source| PeerError::Pipe { what: "wait for the server", source };
    if let Ok(status) = timeout(EXIT_WAIT.into(), child.wait()).await {
        return Ok(ServerExit { status: status.map_err(failed)?, was_forced: false });
    }
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
    if let Some(pid) = pid {
        // It may end by itself at this very moment; then there is nobody to signal.
        let _ = kill_process(pid, Posix::TERM);
    }
    if let Ok(status) = timeout(EXIT_WAIT.into(), child.wait()).await {
        return Ok(ServerExit { status: status.map_err(failed)?, was_forced: true });
    }
    child.kill().await.map_err(failed)?;
    let status = child.wait().await.map_err(failed)?;
    Ok(ServerExit { status, was_forced: true })
}

/// Writes lines until the link lets go, the pipe breaks, or it is cut.
async fn write_in<W: AsyncWrite + Unpin>(
    mut writer: W,
    mut lines: mpsc::Receiver<Bytes>,
    cut: CancellationToken,
) {
    let mut buf = BytesMut::new();
    let write = async {
        while let Some(line) = lines.recv().await {
            buf.clear();
            buf.extend_from_slice(&line);
            buf.put_u8(b'\n');
            if writer.write_all(&buf).await.is_err() || writer.flush().await.is_err() {
                return;
            }
        }
        // In-memory pipes end by this, real ones by being dropped.
        let _ = writer.shutdown().await;
    };
    tokio::select! {
        () = write => {}
        () = cut.cancelled() => {}
    }
}

/// Reads lines and hands each to its call, until the server's output ends or it is cut.
async fn read_out<R: AsyncRead + Unpin>(mut reader: R, shared: Arc<Shared>) {
    let mut lines = LineDecoder::new(LINE_LIMIT_BYTES);
    let mut buf = vec![0; READ_BYTES];
    let why = loop {
        let read = tokio::select! {
            read = reader.read(&mut buf) => read,
            () = shared.cut.cancelled() => break "the connection was dropped".to_owned(),
        };
        match read {
            Ok(0) => break "the server closed its output".to_owned(),
            Ok(len) => {
                for line in lines.push(buf.get(..len).unwrap_or_default()) {
                    route(&shared, &line).await;
                }
            }
            Err(error) => break format!("the server's output broke: {error}"),
        }
    };
    let open: Vec<_> = {
        let mut table = shared.lock();
        table.is_closed = true;
        table.by_token.clear();
        table.by_id.drain().map(|(_, call)| call).collect()
    };
    for call in open {
        // A call that was given up meanwhile does not listen any more.
        let _ = call.send(Incoming::End(Outcome::Lost(why.clone()))).await;
    }
}

async fn route(shared: &Shared, line: &Line) {
    let (call, incoming) = match message::read(&line.body) {
        Read::Answer { id: Some(id), outcome } => (shared.lock().by_id.remove(&id), Incoming::End(outcome)),
        Read::Progress { token, progress } => {
            (shared.lock().by_token.get(&token).cloned(), Incoming::Progress(progress))
        }
        Read::Other => return,
        Read::Answer { id: None, .. } | Read::Bad(_) => {
            let head = line.body.get(..LINE_HEAD_BYTES).unwrap_or(&line.body);
            tracing::warn!(line = %String::from_utf8_lossy(head), "the server sent what is no message");
            shared.lock().strays += 1;
            return;
        }
    };
    let is_taken = match call {
        Some(call) => call.send(incoming).await.is_ok(),
        None => false,
    };
    if !is_taken {
        shared.lock().strays += 1;
    }
}

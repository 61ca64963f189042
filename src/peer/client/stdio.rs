//! The client on two pipes, with or without a server process of its own behind them.

use std::process::Stdio;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use rustix::process::{Pid, Signal as Posix, kill_process};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::desk::{Desk, Place};
use super::follow::{Exchange, IN_CAPACITY};
use super::http::target;
use super::message::{self, Outgoing, Read};
use super::{PeerError, Reason, ServerExit, follow};
use crate::machine::cancel::{Side, Signal as CancelSignal, Target, signal};
use crate::spec::era::Era;
use crate::spec::transport::Transport;
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
    desk: Arc<Desk>,
    to_writer: mpsc::Sender<Bytes>,
    /// Breaks both pipes at once.
    cut: CancellationToken,
    child: Option<Child>,
    tracker: TaskTracker,
}

/// One call on the pipes.
#[derive(Debug)]
pub(super) struct Signal {
    id: Id,
    target: Target,
    era: Era,
    cut: CancellationToken,
    to_writer: mpsc::Sender<Bytes>,
    _place: Place,
}

impl Signal {
    /// Tells the server, where it may be told; nothing answers that.
    pub(super) async fn cancel(self, reason: Reason) {
        if signal(Side::Client, Transport::Stdio, self.era, self.target) == Some(CancelSignal::Notification) {
            let line = message::cancelled(&self.id, reason.as_str());
            // Where the writer is gone there is no server left to tell.
            let _ = self.to_writer.send(line).await;
        }
    }

    pub(super) fn cut(self) {
        self.cut.cancel();
    }
}

impl Link {
    pub(super) fn spawn(command: &[String], desk: Arc<Desk>) -> Result<Link, PeerError> {
        let (program, args) = command.split_first().ok_or(PeerError::NoCommand)?;
        let mut command = Command::new(program);
        command.args(args);
        Link::spawn_command(command, desk)
    }

    /// A command that is ready but for its pipes.
    pub(super) fn spawn_command(mut command: Command, desk: Arc<Desk>) -> Result<Link, PeerError> {
        let program = command.as_std().get_program().to_string_lossy().into_owned();
        let spawn = |source| PeerError::Spawn { command: program.clone(), source };
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().map_err(spawn)?;
        let pipes = child.stdout.take().zip(child.stdin.take());
        let (reader, writer) = pipes.ok_or_else(|| spawn(std::io::ErrorKind::BrokenPipe.into()))?;
        Ok(Link::start(reader, writer, Some(child), desk))
    }

    pub(super) fn start<R, W>(reader: R, writer: W, child: Option<Child>, desk: Arc<Desk>) -> Link
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let (to_writer, lines) = mpsc::channel(OUT_CAPACITY);
        let (cut, tracker) = (CancellationToken::new(), TaskTracker::new());
        tracker.spawn(write_in(writer, lines, cut.clone()));
        // The reader must not keep the writer going once the link has let go of it.
        let replies = to_writer.downgrade();
        tracker.spawn(read_out(reader, desk.clone(), replies, cut.clone()));
        Link { desk, to_writer, cut, child, tracker }
    }

    pub(super) async fn open(&self, outgoing: &Outgoing) -> Result<Exchange, PeerError> {
        let (sender, incoming) = mpsc::channel(IN_CAPACITY);
        let place = self.desk.register(outgoing, sender).ok_or(PeerError::Gone)?;
        let signal = Signal {
            id: outgoing.id.clone(),
            target: target(&outgoing.method),
            era: outgoing.speech.era,
            cut: self.cut.clone(),
            to_writer: self.to_writer.clone(),
            _place: place,
        };
        self.notify(outgoing.body.clone()).await?;
        Ok(Exchange { incoming, signal: follow::Signal::Stdio(signal) })
    }

    /// Writes one line to which nothing is owed.
    pub(super) async fn notify(&self, line: Bytes) -> Result<(), PeerError> {
        self.to_writer.send(line).await.map_err(|_| PeerError::Gone)
    }

    /// Closes the server's input, then ends it with rising force.
    pub(super) async fn close(self) -> Result<Option<ServerExit>, PeerError> {
        let Link { desk: _, to_writer, cut, child, tracker } = self;
        drop(to_writer);
        let exit = match child {
            None => None,
            Some(child) => Some(wait(child).await?),
        };
        cut.cancel();
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
async fn read_out<R: AsyncRead + Unpin>(
    mut reader: R,
    desk: Arc<Desk>,
    replies: mpsc::WeakSender<Bytes>,
    cut: CancellationToken,
) {
    let mut lines = LineDecoder::new(LINE_LIMIT_BYTES);
    let mut buf = vec![0; READ_BYTES];
    let why = loop {
        let read = tokio::select! {
            read = reader.read(&mut buf) => read,
            () = cut.cancelled() => break "the connection was dropped".to_owned(),
        };
        match read {
            Ok(0) => break "the server closed its output".to_owned(),
            Ok(len) => {
                for line in lines.push(buf.get(..len).unwrap_or_default()) {
                    hear(&line, &desk, &replies).await;
                }
            }
            Err(error) => break format!("the server's output broke: {error}"),
        }
    };
    desk.close(&why).await;
}

async fn hear(line: &Line, desk: &Desk, replies: &mpsc::WeakSender<Bytes>) {
    for read in message::read(&line.body, desk.speech().era) {
        if matches!(read, Read::Bad(_)) {
            let head = line.body.get(..LINE_HEAD_BYTES).unwrap_or(&line.body);
            tracing::warn!(line = %String::from_utf8_lossy(head), "the server sent what is no message");
        }
        if let Some(owed) = desk.route(read).await
            && let Some(to_writer) = replies.upgrade()
        {
            // Full only while the server does not read; whoever waits for it does so with a limit.
            let _ = to_writer.send(owed).await;
        }
    }
}

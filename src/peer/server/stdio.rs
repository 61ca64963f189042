//! The server on two pipes: one JSON message a line.

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufWriter};
use tokio_util::sync::CancellationToken;

use super::caller::Caller;
use super::calls::Calls;
use super::core::Outgoing;
use super::legacy::pipe::Pipe;
use super::message::{self, Incoming, Message, Refusal, Request};
use super::outlet::{Outflow, Outlet, outlet};
use super::{DRAIN, PeerError, SharedCore, WIND_DOWN};
use crate::peer::faults::Fault;
use crate::spec::transport::Transport;
use crate::spec::{codes, methods};
use crate::time::Ms;
use crate::wire::lines::{LINE_LIMIT_BYTES, Line, LineDecoder};

/// Between two words of a server that does not leave.
const LINGER: Ms = Ms(100);

/// Bytes asked for in one read: a whole pipe.
const READ_BYTES: usize = 64 << 10;

/// Serves until `reader` ends, `writer` breaks or `cancel` fires.
pub(super) async fn serve<R, W>(
    core: SharedCore,
    mut reader: R,
    writer: W,
    cancel: CancellationToken,
) -> Result<(), PeerError>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let table = Calls::default();
    let (to_writer, outgoing) = outlet(core.options.buffer);
    let refused = to_writer.refused();
    let is_broken = CancellationToken::new();
    core.handlers.spawn(write_out(writer, outgoing, table.clone(), is_broken.clone()));
    let legacy = Pipe::new(core.clone(), table.clone(), to_writer.clone());
    let session = Session { core, table, legacy, to_writer };

    let mut lines = LineDecoder::new(LINE_LIMIT_BYTES);
    let mut buf = vec![0; READ_BYTES];
    let mut is_input_over = false;
    let ended = loop {
        let read = tokio::select! {
            read = reader.read(&mut buf) => read,
            () = is_broken.cancelled() => break Ok(()),
            () = refused.cancelled() => {
                break Err(PeerError::Overrun { waiting: session.to_writer.level().waiting });
            }
            () = cancel.cancelled() => break Ok(()),
        };
        let chunk = match read {
            Ok(0) => {
                is_input_over = true;
                if session.core.options.faults.is_on(Fault::IgnoresEof) {
                    linger(&cancel).await;
                }
                break Ok(());
            }
            Ok(len) => buf.get(..len).unwrap_or_default(),
            Err(source) => break Err(PeerError::Pipe { what: "read from standard input", source }),
        };
        for line in lines.push(chunk) {
            session.line(&line).await;
        }
    };
    session.wind_down(is_input_over).await;
    ended
}

/// The fault of a server that does not leave: it only says that it is still there.
async fn linger(cancel: &CancellationToken) {
    let mut log = tokio::io::stderr();
    while !cancel.is_cancelled() {
        // Nobody may be left to read it.
        let _ = log.write_all(b"waiting for input\n").await;
        let _ = tokio::time::timeout(LINGER.into(), cancel.cancelled()).await;
    }
}

struct Session {
    core: SharedCore,
    table: Calls,
    /// The older revisions on these pipes.
    legacy: Pipe,
    to_writer: Outlet,
}

impl Session {
    async fn line(&self, line: &Line) {
        let handled = if line.is_over_limit {
            let text = format!("a line of {} bytes is longer than {LINE_LIMIT_BYTES}", line.wire_len);
            Err(Refusal::new(None, codes::PARSE_ERROR, text))
        } else {
            match message::read_any(&line.body) {
                Ok(incoming) => {
                    if incoming.has_request() {
                        // A client that asks faster than it reads is slowed here, not kept in
                        // memory. Cancels are not held up: they need no room.
                        let _ = self.to_writer.has_room().await;
                    }
                    self.take(incoming).await
                }
                Err(refusal) => Err(refusal),
            }
        };
        if let Err(refusal) = handled {
            // The writer is gone only when everything is ending.
            let _ = self.to_writer.send(Outgoing::from(&refusal)).await;
        }
    }

    async fn take(&self, incoming: Incoming) -> Result<(), Refusal> {
        if self.legacy.is_for(&incoming) {
            self.legacy.take(incoming, None).await;
            return Ok(());
        }
        match incoming {
            Incoming::One(Message::Request(request)) => self.request(request),
            // Only cancels mean anything here.
            Incoming::One(Message::Notification(notification)) => {
                if notification.method == methods::CANCELLED {
                    self.table.cancel(&notification);
                }
                if self.core.options.faults.is_on(Fault::AnswersNotifications) {
                    let text = format!("no method {}", notification.method);
                    return Err(Refusal::new(None, codes::METHOD_NOT_FOUND, text));
                }
                Ok(())
            }
            Incoming::One(Message::Response(_)) => Ok(()),
            Incoming::Many(_) => Err(message::no_batches()),
        }
    }

    fn request(&self, request: Request) -> Result<(), Refusal> {
        let caller = Caller::modern(&request, Transport::Stdio)?;
        request.check_version(&caller)?;
        if let Some(objection) = self.table.objection(&request.id, caller.token.as_ref()) {
            return Err(Refusal::new(Some(&request.id), codes::INVALID_REQUEST, objection));
        }
        let (live, handler) = self.core.start(request, caller, self.to_writer.clone())?;
        self.table.insert(&live);
        self.core.handlers.spawn(handler);
        Ok(())
    }

    /// Lets calls finish if only the input is over, then ends every handler and waits for the
    /// writer; all of it not for long.
    async fn wind_down(self, is_input_over: bool) {
        let Session { core, table, legacy, to_writer } = self;
        drop((legacy, to_writer));
        core.handlers.close();
        // Subscriptions say their last word now.
        core.ending.cancel();
        if is_input_over && tokio::time::timeout(DRAIN.into(), core.handlers.wait()).await.is_ok() {
            return;
        }
        for live in table.take_all() {
            live.cancel(Some("the server is ending"));
        }
        // What still runs after that is left behind: the process is about to end.
        let _ = tokio::time::timeout(WIND_DOWN.into(), core.handlers.wait()).await;
    }
}

/// Writes messages; flushes whenever none is waiting, and after each where no more may be under way.
async fn write_out<W: AsyncWrite + Unpin>(
    writer: W,
    mut outgoing: Outflow,
    table: Calls,
    is_broken: CancellationToken,
) {
    let mut writer = BufWriter::with_capacity(READ_BYTES, writer);
    let mut next = outgoing.recv().await;
    while let Some(message) = next {
        if message.may_leave() {
            if let (Some(live), Some(_)) = (&message.live, message.status) {
                table.take(&live.id);
            }
            if write_line(&mut writer, &message.body).await.is_err() {
                is_broken.cancel();
                return;
            }
        }
        let waiting = if outgoing.is_strict() { None } else { outgoing.try_recv() };
        next = if waiting.is_some() {
            waiting
        } else {
            if writer.flush().await.is_err() {
                is_broken.cancel();
                return;
            }
            outgoing.recv().await
        };
    }
}

async fn write_line<W: AsyncWrite + Unpin>(writer: &mut W, body: &[u8]) -> std::io::Result<()> {
    writer.write_all(body).await?;
    writer.write_all(b"\n").await
}

#[cfg(test)]
mod tests;

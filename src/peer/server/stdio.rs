//! The server on two pipes: one JSON message a line.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufWriter};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::caller::Caller;
use super::core::{Live, Outgoing};
use super::message::{self, Message, Notification, Refusal, Request};
use super::{DRAIN, OUT_CAPACITY, PeerError, SharedCore, WIND_DOWN};
use crate::spec::{codes, methods};
use crate::wire::jsonrpc::{self, Id};
use crate::wire::lines::{LINE_LIMIT_BYTES, Line, LineDecoder};

/// Bytes asked for in one read: a whole pipe.
const READ_BYTES: usize = 64 << 10;

/// Requests without a response so far, by id; one process has one scope of ids.
#[derive(Debug, Default)]
struct Table {
    by_id: HashMap<Id, Arc<Live>>,
    tokens: HashSet<Id>,
}

#[derive(Debug, Clone, Default)]
struct SharedTable(Arc<Mutex<Table>>);

impl SharedTable {
    /// A poisoned lock is still good: no step can stop midway.
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn insert(&self, live: &Arc<Live>) {
        let mut table = self.lock();
        table.tokens.extend(live.token.clone());
        table.by_id.insert(live.id.clone(), live.clone());
    }

    fn take(&self, id: &Id) -> Option<Arc<Live>> {
        let mut table = self.lock();
        let live = table.by_id.remove(id)?;
        if let Some(token) = &live.token {
            table.tokens.remove(token);
        }
        Some(live)
    }

    fn take_all(&self) -> Vec<Arc<Live>> {
        let mut table = self.lock();
        table.tokens.clear();
        table.by_id.drain().map(|(_, live)| live).collect()
    }

    /// What keeps this id or this token from being used (reliability.md section 2).
    fn objection(&self, id: &Id, token: Option<&Id>) -> Option<&'static str> {
        let table = self.lock();
        if table.by_id.contains_key(id) {
            return Some("this id belongs to a request without an answer yet");
        }
        token.is_some_and(|token| table.tokens.contains(token)).then_some("this progress token is in use")
    }
}

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
    let table = SharedTable::default();
    let (to_writer, outgoing) = mpsc::channel(OUT_CAPACITY);
    let is_broken = CancellationToken::new();
    core.handlers.spawn(write_out(writer, outgoing, table.clone(), is_broken.clone()));
    let session = Session { core, table, to_writer };

    let mut lines = LineDecoder::new(LINE_LIMIT_BYTES);
    let mut buf = vec![0; READ_BYTES];
    let mut is_input_over = false;
    let ended = loop {
        let read = tokio::select! {
            read = reader.read(&mut buf) => read,
            () = is_broken.cancelled() => break Ok(()),
            () = cancel.cancelled() => break Ok(()),
        };
        let chunk = match read {
            Ok(0) => {
                is_input_over = true;
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

struct Session {
    core: SharedCore,
    table: SharedTable,
    to_writer: mpsc::Sender<Outgoing>,
}

impl Session {
    async fn line(&self, line: &Line) {
        let handled = if line.is_over_limit {
            let text = format!("a line of {} bytes is longer than {LINE_LIMIT_BYTES}", line.wire_len);
            Err(Refusal::new(None, codes::PARSE_ERROR, text))
        } else {
            match message::read(&line.body) {
                Ok(Message::Request(request)) => {
                    // A client that asks faster than it reads is slowed here, not kept in memory.
                    // Cancels are not held up: they need no room.
                    drop(self.to_writer.reserve().await);
                    self.request(request)
                }
                Ok(Message::Notification(notification)) => {
                    self.notification(&notification);
                    Ok(())
                }
                Ok(Message::Response) => Ok(()),
                Err(refusal) => Err(refusal),
            }
        };
        if let Err(refusal) = handled {
            // The writer is gone only when everything is ending.
            let _ = self.to_writer.send(Outgoing::from(&refusal)).await;
        }
    }

    fn request(&self, request: Request) -> Result<(), Refusal> {
        let caller = Caller::modern(&request)?;
        request.check_version(&caller)?;
        if let Some(objection) = self.table.objection(&request.id, caller.token.as_ref()) {
            return Err(Refusal::new(Some(&request.id), codes::INVALID_REQUEST, objection));
        }
        let (live, handler) = self.core.start(request, caller, self.to_writer.clone())?;
        self.table.insert(&live);
        self.core.handlers.spawn(handler);
        Ok(())
    }

    /// Only cancels mean anything here; malformed, late and unknown ones are ignored.
    fn notification(&self, notification: &Notification) {
        if notification.method != methods::CANCELLED {
            return;
        }
        let Some(params) = notification.params.as_deref() else { return };
        let Some(id) = jsonrpc::at(params, &["requestId"]).and_then(|raw| Id::from_raw(raw.get())) else {
            return;
        };
        if let Some(live) = self.table.take(&id) {
            let reason = jsonrpc::at(params, &["reason"]).and_then(jsonrpc::string);
            live.cancel(reason.as_deref());
        }
    }

    /// Lets calls finish if only the input is over, then ends every handler and waits for the
    /// writer; all of it not for long.
    async fn wind_down(self, is_input_over: bool) {
        let Session { core, table, to_writer } = self;
        drop(to_writer);
        core.handlers.close();
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

/// Writes messages; flushes whenever none is waiting.
async fn write_out<W: AsyncWrite + Unpin>(
    writer: W,
    mut outgoing: mpsc::Receiver<Outgoing>,
    table: SharedTable,
    is_broken: CancellationToken,
) {
    let mut writer = BufWriter::with_capacity(READ_BYTES, writer);
    let mut batch = Vec::with_capacity(OUT_CAPACITY);
    while outgoing.recv_many(&mut batch, OUT_CAPACITY).await > 0 {
        for message in batch.drain(..) {
            if !message.may_leave() {
                continue;
            }
            if let (Some(live), Some(_)) = (&message.live, message.status) {
                table.take(&live.id);
            }
            if write_line(&mut writer, &message.body).await.is_err() {
                is_broken.cancel();
                return;
            }
        }
        if writer.flush().await.is_err() {
            is_broken.cancel();
            return;
        }
    }
}

async fn write_line<W: AsyncWrite + Unpin>(writer: &mut W, body: &[u8]) -> std::io::Result<()> {
    writer.write_all(body).await?;
    writer.write_all(b"\n").await
}

#[cfg(test)]
mod tests;

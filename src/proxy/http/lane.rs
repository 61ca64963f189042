//! One direction of a connection: read, look, write on, until either end is gone.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, Interest, WriteHalf};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;
use tokio_rustls::client::TlsStream;

use super::requests::Refused;
use crate::event::Close;

/// Room for one read at first: a message of ordinary size with its head.
const READ_MIN_BYTES: usize = 16 << 10;

/// Room for one read on a busy connection. It also bounds what the tap holds of a stream whose
/// reader is slow, beside the buffers of the system.
const READ_MAX_BYTES: usize = 128 << 10;

/// Why a direction ended.
#[derive(Debug)]
pub(super) enum LaneEnd {
    /// The sender ended its sending, which has been passed on.
    Eof,
    /// The sender reset the connection.
    SenderReset,
    /// The receiver is gone: nothing can be written to it any more.
    ReceiverGone,
    /// A request came that must not pass; all before it did.
    Refused(Refused),
}

/// What was made of some bytes.
#[derive(Debug, Default)]
pub(super) struct Sight {
    /// The bytes to write on in their place.
    pub(super) forward: Bytes,
    /// After these, nothing more may pass.
    pub(super) refused: Option<Refused>,
    /// The receiver is told that nothing more comes, although the sender has not ended.
    pub(super) ends: bool,
}

/// Looks at the bytes of one direction, between reading and writing on.
pub(super) trait Watch {
    /// Bytes were read.
    fn see(&mut self, chunk: Bytes) -> Sight;
    /// All that was to be written on is with the receiver.
    fn passed(&mut self);
    /// The receiver takes no more for now; `waiting_bytes` are held for it.
    fn is_blocked(&mut self, waiting_bytes: usize);
    /// The sender ended. Returns bytes that had been held back and must now pass.
    fn ended(&mut self, how: Close) -> Bytes;
    /// Whether more may be read now.
    fn takes_more(&self) -> bool;
    /// Waits until something that was held back may pass, or something else is to be done.
    fn woken(&self) -> impl Future<Output = ()> + Send;
    /// What may pass now of what was held back.
    fn advance(&mut self) -> Sight;
    /// What was to be done when that had passed can be done now.
    fn done(&mut self);
    /// Nothing is held back any more.
    fn is_drained(&self) -> bool;
    /// The end of the sender is kept from the receiver.
    fn keeps_end(&self) -> bool;
}

/// A receiver that can tell that it is gone while nothing is being written to it.
pub(super) trait Receiver: AsyncWrite + Unpin {
    /// Waits until it is known that nothing written will arrive any more.
    fn gone(&self) -> impl Future<Output = ()> + Send;
}

impl Receiver for OwnedWriteHalf {
    async fn gone(&self) {
        // An error of readiness itself means that the runtime ends, which the read notices.
        if self.as_ref().ready(Interest::ERROR).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Receiver for WriteHalf<TlsStream<TcpStream>> {
    /// The other direction reads from the same connection and will notice.
    async fn gone(&self) {
        std::future::pending::<()>().await;
    }
}

/// Moves bytes from `from` to `to`, beginning with `first`, which were read already.
pub(super) async fn run<R, W, T>(from: &mut R, to: &mut W, watch: &mut T, first: Bytes) -> LaneEnd
where
    R: AsyncRead + Unpin,
    W: Receiver,
    T: Watch,
{
    let mut buffer = ReadBuffer::default();
    let mut chunk = first;
    loop {
        let sight = if chunk.is_empty() { watch.advance() } else { watch.see(chunk) };
        if let Some(end) = pass(to, sight, watch).await {
            return end;
        }
        // All are cancel-safe: a read that is dropped has taken nothing.
        chunk = tokio::select! {
            biased;
            read = buffer.read(from), if watch.takes_more() => match read {
                Ok(chunk) if !chunk.is_empty() => chunk,
                ended => return finish(&ended, to, watch).await,
            },
            () = to.gone() => return LaneEnd::ReceiverGone,
            () = watch.woken() => Bytes::new(),
        };
    }
}

/// Writes on what may pass. Returns how the direction ends with it, if it does.
async fn pass<W: Receiver, T: Watch>(to: &mut W, sight: Sight, watch: &mut T) -> Option<LaneEnd> {
    if write_on(to, sight.forward, watch).await.is_err() {
        return Some(LaneEnd::ReceiverGone);
    }
    watch.done();
    if sight.ends {
        // One that is gone already needs no telling.
        let _ = to.shutdown().await;
    }
    sight.refused.map(LaneEnd::Refused)
}

/// Passes the end of the sender on.
async fn finish<W: Receiver, T: Watch>(ended: &io::Result<Bytes>, to: &mut W, watch: &mut T) -> LaneEnd {
    match ended {
        // A TLS peer may close without saying so in TLS.
        Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => {
            watch.ended(Close::Reset);
            LaneEnd::SenderReset
        }
        _ => {
            let held = watch.ended(Close::Eof);
            if write_on(to, held, watch).await.is_err() {
                return LaneEnd::ReceiverGone;
            }
            loop {
                let sight = watch.advance();
                if let Some(end) = pass(to, sight, watch).await {
                    return end;
                }
                if watch.is_drained() {
                    break;
                }
                tokio::select! {
                    biased;
                    () = to.gone() => return LaneEnd::ReceiverGone,
                    () = watch.woken() => {}
                }
            }
            if !watch.keeps_end() && to.shutdown().await.is_err() {
                return LaneEnd::ReceiverGone;
            }
            LaneEnd::Eof
        }
    }
}

async fn write_on<W: Receiver, T: Watch>(to: &mut W, mut bytes: Bytes, watch: &mut T) -> io::Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    while !bytes.is_empty() {
        let written = poll_fn(|cx| {
            let written = Pin::new(&mut *to).poll_write(cx, &bytes);
            if written.is_pending() {
                watch.is_blocked(bytes.len());
            }
            written
        });
        match written.await? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            written => bytes.advance(written),
        }
    }
    poll_fn(|cx| {
        let flushed = Pin::new(&mut *to).poll_flush(cx);
        if flushed.is_pending() {
            watch.is_blocked(0);
        }
        flushed
    })
    .await?;
    watch.passed();
    Ok(())
}

/// Memory for reads: grows on a busy connection, is shared with the recording, never copied.
#[derive(Debug)]
pub(super) struct ReadBuffer {
    free: BytesMut,
    room_bytes: usize,
}

impl Default for ReadBuffer {
    fn default() -> ReadBuffer {
        ReadBuffer { free: BytesMut::new(), room_bytes: READ_MIN_BYTES }
    }
}

impl ReadBuffer {
    /// The bytes of one read; empty at the end. Cancel-safe.
    pub(super) async fn read<R: AsyncRead + Unpin>(&mut self, from: &mut R) -> io::Result<Bytes> {
        if self.free.capacity() < self.room_bytes / 4 {
            self.free.reserve(self.room_bytes);
        }
        let read = from.read_buf(&mut self.free).await?;
        if self.free.capacity() == read {
            self.room_bytes = (self.room_bytes * 2).min(READ_MAX_BYTES);
        }
        Ok(self.free.split().freeze())
    }
}

//! One connection to the server, driven by a task of its own until it is dropped.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, Response, Uri};
use hyper_util::rt::TokioIo;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::tls::{Tls, host};
use crate::peer::PeerError;

const HTTP_PORT: u16 = 80;
const HTTPS_PORT: u16 = 443;

/// Dropping it closes the connection at once, whatever is under way.
#[derive(Debug)]
pub(super) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    reset: CancellationToken,
    _close: DropGuard,
}

impl Connection {
    /// `tls`: for a URL of https.
    pub(super) async fn open(
        uri: &Uri,
        url: &str,
        tls: Option<&Tls>,
        tracker: &TaskTracker,
    ) -> Result<Connection, PeerError> {
        let failed = |source| PeerError::Connect { url: url.to_owned(), source };
        let port = uri.port_u16().unwrap_or(if tls.is_some() { HTTPS_PORT } else { HTTP_PORT });
        let stream = TcpStream::connect((host(uri), port)).await.map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        let socket = stream.as_fd().try_clone_to_owned().map_err(failed)?;
        match tls {
            None => Connection::start(stream, socket, tracker).await.map_err(failed),
            Some(tls) => {
                let stream = tls.greet(stream).await.map_err(failed)?;
                Connection::start(stream, socket, tracker).await.map_err(failed)
            }
        }
    }

    async fn start<S>(stream: S, socket: OwnedFd, tracker: &TaskTracker) -> io::Result<Connection>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let handshake = http1::Builder::new().title_case_headers(true).handshake(TokioIo::new(stream)).await;
        let (sender, connection) = handshake.map_err(io::Error::other)?;
        let (close, reset) = (CancellationToken::new(), CancellationToken::new());
        tracker.spawn(drive(connection, socket, close.clone(), reset.clone()));
        Ok(Connection { sender, reset, _close: close.drop_guard() })
    }

    /// It still stands and can take a request.
    pub(super) async fn is_ready(&mut self) -> bool {
        self.sender.ready().await.is_ok()
    }

    pub(super) async fn send(&mut self, request: Request<Full<Bytes>>) -> hyper::Result<Response<Incoming>> {
        self.sender.send_request(request).await
    }

    /// Closes with a reset: the other side learns that nobody will read any more.
    pub(super) fn reset(self) {
        self.reset.cancel();
    }
}

/// Runs the connection until it ends or is let go. Both handles of the socket go together, so
/// that the close is seen at once.
async fn drive<S: AsyncRead + AsyncWrite + Unpin>(
    connection: http1::Connection<TokioIo<S>, Full<Bytes>>,
    socket: OwnedFd,
    close: CancellationToken,
    reset: CancellationToken,
) {
    tokio::select! {
        biased;
        // Looked at first, for hyper itself would end the connection in order.
        () = reset.cancelled() => {}
        () = close.cancelled() => {}
        ended = connection => if let Err(error) = ended {
            tracing::debug!(%error, "connection ended");
        },
    }
    if reset.is_cancelled() {
        // Where the option is refused, the close is an orderly one.
        let _ = SockRef::from(&socket).set_linger(Some(Duration::ZERO));
    }
}

//! The connections to the server that one client's connection uses: one of HTTP/2 for all of its
//! streams, or as many of HTTP/1.1 as it has exchanges at a time.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1, http2};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::task::TaskTracker;

use super::body::RequestBody;
use super::{CONNECTION_WINDOW_BYTES, SEND_BUFFER_BYTES, STREAM_WINDOW_BYTES};
use crate::proxy::http::Shared;
use crate::proxy::http::dial::{self, Speech};

/// Runs the library's tasks as tasks of the tap.
#[derive(Debug, Clone)]
pub(super) struct Spawner(pub(super) TaskTracker);

impl<F> hyper::rt::Executor<F> for Spawner
where
    F: Future<Output: Send> + Send + 'static,
{
    fn execute(&self, task: F) {
        self.0.spawn(task);
    }
}

/// One connection to the server.
#[derive(Debug)]
pub(super) enum Link {
    /// For one exchange at a time.
    Http1(http1::SendRequest<RequestBody>),
    /// For any number.
    Http2(http2::SendRequest<RequestBody>),
}

impl Link {
    pub(super) fn speech(&self) -> Speech {
        match self {
            Link::Http1(_) => Speech::Http1,
            Link::Http2(_) => Speech::Http2,
        }
    }

    fn is_closed(&self) -> bool {
        match self {
            Link::Http1(sender) => sender.is_closed(),
            Link::Http2(sender) => sender.is_closed(),
        }
    }

    /// Sends a request. Gives it back when it has surely not been sent.
    async fn send(
        &mut self,
        request: Request<RequestBody>,
    ) -> Result<Response<Incoming>, TrySendError<Request<RequestBody>>> {
        match self {
            Link::Http1(sender) => {
                // An error shows again, with the request, when it is sent.
                let _ = sender.ready().await;
                sender.try_send_request(request).await
            }
            Link::Http2(sender) => sender.try_send_request(request).await,
        }
    }
}

/// The connections of one client's connection.
#[derive(Debug)]
pub(super) struct Links {
    shared: Arc<Shared>,
    /// What the client speaks.
    wanted: Speech,
    idle: Mutex<Vec<Link>>,
}

impl Links {
    pub(super) fn new(shared: Arc<Shared>, wanted: Speech) -> Links {
        Links { shared, wanted, idle: Mutex::default() }
    }

    /// A connection that is free for a request.
    pub(super) async fn get(&self) -> io::Result<Link> {
        while let Some(link) = self.take_idle() {
            if !link.is_closed() {
                return Ok(link);
            }
        }
        let link = self.open().await?;
        if let Link::Http2(sender) = &link {
            self.give_back(Link::Http2(sender.clone()));
        }
        Ok(link)
    }

    fn take_idle(&self) -> Option<Link> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        match idle.last() {
            Some(Link::Http2(sender)) if !sender.is_closed() => Some(Link::Http2(sender.clone())),
            _ => idle.pop(),
        }
    }

    /// The exchange on it is complete.
    pub(super) fn give_back(&self, link: Link) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        // One of HTTP/2 is here already, for everybody.
        let is_here = matches!(link, Link::Http2(_)) && idle.iter().any(|l| matches!(l, Link::Http2(_)));
        if !is_here {
            idle.push(link);
        }
    }

    /// Sends a request. One that met a connection which the server had closed meanwhile, and so
    /// was surely not sent, is sent on a new one.
    pub(super) async fn send(
        &self,
        mut link: Link,
        mut request: Request<RequestBody>,
    ) -> Result<(Response<Incoming>, Link), hyper::Error> {
        loop {
            match link.send(request).await {
                Ok(response) => return Ok((response, link)),
                Err(mut error) => {
                    let speech = link.speech();
                    let Some(unsent) = error.take_message() else { return Err(error.into_error()) };
                    match self.get().await {
                        Ok(other) if other.speech() == speech => (link, request) = (other, unsent),
                        _ => return Err(error.into_error()),
                    }
                }
            }
        }
    }

    async fn open(&self) -> io::Result<Link> {
        match self.shared.dialer.connect(self.wanted).await? {
            (dial::Link::Plain(socket), speech) => self.shake_hands(socket, speech).await,
            (dial::Link::Tls(socket), speech) => self.shake_hands(*socket, speech).await,
        }
    }

    async fn shake_hands(
        &self,
        socket: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        speech: Speech,
    ) -> io::Result<Link> {
        let io = TokioIo::new(socket);
        let tracker = &self.shared.tracker;
        // How a connection ends is told by the exchanges on it.
        Ok(match speech {
            Speech::Http1 => {
                let (sender, connection) =
                    http1::Builder::new().handshake(io).await.map_err(io::Error::other)?;
                tracker.spawn(self.until_stop(connection));
                Link::Http1(sender)
            }
            Speech::Http2 => {
                let (sender, connection) = http2::Builder::new(Spawner(tracker.clone()))
                    .initial_stream_window_size(STREAM_WINDOW_BYTES)
                    .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
                    .max_send_buf_size(SEND_BUFFER_BYTES)
                    .handshake(io)
                    .await
                    .map_err(io::Error::other)?;
                tracker.spawn(self.until_stop(connection));
                Link::Http2(sender)
            }
        })
    }

    /// Runs a connection until it ends or the tap stops.
    fn until_stop<E>(
        &self,
        connection: impl Future<Output = Result<(), E>> + Send + 'static,
    ) -> impl Future<Output = ()> + Send + 'static {
        let stop = self.shared.stop.clone();
        async move {
            tokio::select! {
                () = stop.cancelled() => {}
                _ = connection => {}
            }
        }
    }
}

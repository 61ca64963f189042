//! The tap on Streamable HTTP and on the older HTTP+SSE: a reverse proxy that changes nothing.
//!
//! An HTTP/1.1 client is joined to the server by `relay`: the bytes of each read are looked at,
//! put on the tape, and written on as they are, so order and case of header fields, chunk sizes,
//! interim answers, pipelining, half-closes and resets pass by construction. One downstream
//! connection has one upstream connection, opened at its first byte and closed as the client
//! closes it, so the server sees the connections that it would see directly. Where one side
//! speaks HTTP/2, `translate` joins them stream by stream with an HTTP library.
//!
//! What the tap changes or refuses is decided in `policy`, in one place for both ways, and each
//! change is an `inject` event. What a person orders is in `hands`: until the first order nothing
//! is looked at for it. There is no limit of time anywhere: a healthy server may be
//! silent for minutes before the first byte.

mod answer;
mod answers;
mod dial;
mod exchanges;
mod forward;
mod gauge;
mod guard;
mod hands;
mod heads;
mod lane;
mod origin;
mod peer_state;
mod policy;
mod relay;
mod requests;
mod translate;
mod upstream;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::dial::Dialer;
pub use self::hands::Hands;
use self::policy::Policy;
pub use self::upstream::Upstream;
use crate::event::tape::Tape;
use crate::proxy::ProxyError;
use crate::proxy::telemetry::Callers;

/// How long the listener rests after the system could not give it another connection (it is out
/// of descriptors, for example), so that it does not spin.
const ACCEPT_REST: Duration = Duration::from_millis(50);

/// What an HTTP tap is asked to do.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// The server.
    pub upstream: Upstream,
    /// Where to listen for clients; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// Whether an address that other machines can reach is allowed.
    pub is_open_to_network: bool,
    /// Host names, beside the loopback ones and the address itself, under which clients may
    /// address the tap where it must judge that itself.
    pub allowed_hosts: Vec<String>,
    /// Whether OAuth protected-resource metadata is made to name the tap instead of the server.
    pub rewrites_origin: bool,
    /// Whether the server is spoken to in HTTP/2 from the first byte, without asking it.
    pub is_upstream_http2: bool,
    /// A PEM file with certificate authorities to trust beside those of the system.
    pub extra_ca: Option<PathBuf>,
}

/// A tap that listens already and does not serve yet.
#[derive(Debug)]
pub struct HttpTap {
    listener: TcpListener,
    address: SocketAddr,
    shared: Arc<Shared>,
}

/// What all connections of one tap share.
#[derive(Debug)]
struct Shared {
    tape: Tape,
    hands: Arc<Hands>,
    dialer: Dialer,
    policy: Policy,
    /// Which exchange is on which connection to the server, for those who tell about it.
    callers: Callers,
    /// Exchanges so far, over all connections.
    streams: AtomicU64,
    /// Ends every connection.
    stop: CancellationToken,
    tracker: TaskTracker,
}

impl Shared {
    /// The number of a new exchange, from 1.
    fn next_stream(&self) -> u64 {
        self.streams.fetch_add(1, Ordering::Relaxed) + 1
    }
}

impl HttpTap {
    /// Begins to listen; clients that come now wait until [`HttpTap::serve`]. Connections are run
    /// as tasks of `tracker` and end on `stop`; `hands` carries out what a person orders.
    ///
    /// # Errors
    ///
    /// The address is taken or not allowed, or the certificates cannot be read.
    pub async fn bind(
        options: HttpOptions,
        tape: Tape,
        hands: Arc<Hands>,
        tracker: TaskTracker,
        stop: CancellationToken,
    ) -> Result<HttpTap, ProxyError> {
        if !options.listen.ip().is_loopback() && !options.is_open_to_network {
            return Err(ProxyError::OpenToNetwork { address: options.listen });
        }
        let failed = |source| ProxyError::CannotListen { address: options.listen, source };
        let listener = TcpListener::bind(options.listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        if options.upstream.is_loopback() && options.upstream.port() == address.port() {
            let why = "the tap itself listens there, and every connection would lead to another one";
            return Err(ProxyError::BadUpstream { url: options.upstream.origin(), why });
        }
        let policy = Policy::new(&options, address);
        let dialer = Dialer::new(&options)?;
        let streams = AtomicU64::new(0);
        let shared = Arc::new(Shared {
            tape,
            hands,
            dialer,
            policy,
            callers: Callers::default(),
            streams,
            stop,
            tracker,
        });
        shared.hands.attach(&shared);
        Ok(HttpTap { listener, address, shared })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL to give to clients in place of the server's: same path and query, other origin.
    #[must_use]
    pub fn client_url(&self) -> String {
        format!("http://{}{}", self.address, self.shared.dialer.upstream().path())
    }

    /// Which exchange is on which connection to the server.
    #[must_use]
    pub fn callers(&self) -> Callers {
        self.shared.callers.clone()
    }

    /// Whether the server can be reached now, for a word of warning at the start; it may well
    /// come later.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub async fn probe(&self) -> std::io::Result<()> {
        self.shared.dialer.probe().await
    }

    /// Serves until the token that was given to `bind` is cancelled; the connections may outlive
    /// this call by the time they need to end.
    pub async fn serve(self) {
        self.shared.policy.announce(&self.shared.tape);
        let mut conn = 0;
        loop {
            let accepted = tokio::select! {
                () = self.shared.stop.cancelled() => return,
                accepted = self.listener.accept() => accepted,
            };
            match accepted {
                Ok((down, _)) => {
                    conn += 1;
                    self.shared.tracker.spawn(connection(self.shared.clone(), down, conn));
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot take another connection");
                    tokio::time::sleep(ACCEPT_REST).await;
                }
            }
        }
    }
}

async fn connection(shared: Arc<Shared>, down: TcpStream, conn: u64) {
    let stop = shared.stop.clone();
    tokio::select! {
        () = stop.cancelled() => {}
        () = relay::run(shared, down, conn) => {}
    }
}

/// The pieces as one, copied only when there are several; leaves none behind.
fn joined(pieces: &mut Vec<Bytes>) -> Option<Bytes> {
    match pieces.len() {
        0 | 1 => pieces.pop(),
        _ => {
            let mut whole = BytesMut::with_capacity(pieces.iter().map(Bytes::len).sum());
            for piece in pieces.drain(..) {
                whole.extend_from_slice(&piece);
            }
            Some(whole.freeze())
        }
    }
}

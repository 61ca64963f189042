//! The reference server, revision 2026-07-28, on stdio and on Streamable HTTP.
//!
//! `core` knows requests, handlers and their ends, and no transport; `stdio` and `http` carry
//! messages to and from it; `caller` is who asks, `methods` finds the handler, `tools` is what can
//! be called.

mod caller;
mod calls;
mod catalogue;
mod completion;
mod conformance;
mod core;
mod discover;
mod http;
mod hub;
mod legacy;
mod listen;
mod message;
mod methods;
mod outlet;
mod prompts;
mod questions;
mod resources;
mod sealed;
mod shop;
mod stdio;
mod store;
mod tasks;
mod tools;
#[cfg(test)]
mod wire;
mod work;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use self::core::Core;
use super::PeerError;
use super::faults::Faults;
use super::telemetry::Telemetry;
use crate::time::Ms;

/// How the HTTP side answers requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AnswerMode {
    /// One JSON body; the first progress, or a long silence, makes it an event stream.
    #[default]
    Auto,
    /// Always an event stream, its head sent at once.
    Sse,
    /// Always one JSON body; progress is not told. A disconnect is a cancel as ever.
    Json,
    /// One JSON body, and a disconnect does not reach the handler: what some SDKs do when told to
    /// answer in JSON only.
    JsonDeaf,
    /// An event stream or a body as with `Auto`, and a disconnect does not reach the handler: what
    /// some SDKs do in their stateless mode of the older revisions.
    LegacyStateless,
}

impl AnswerMode {
    /// A client that goes away does not cancel its request.
    pub(crate) fn is_deaf(self) -> bool {
        matches!(self, AnswerMode::JsonDeaf | AnswerMode::LegacyStateless)
    }
}

/// Which revisions the server speaks, and how it takes those that it does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ServerEra {
    /// 2026-07-28 only.
    #[default]
    Modern,
    /// The revisions with an `initialize` handshake only.
    Legacy,
    /// Both, told apart message by message.
    Dual,
    /// As `Legacy`, but operations before the handshake are answered.
    LenientLegacy,
    /// As `Legacy`, but a modern request is met with silence.
    SilentLegacy,
}

/// Where the ledger of effects is kept.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum LedgerPlace {
    /// With this server only, and gone with it.
    #[default]
    Memory,
    /// In this file, which several servers may share.
    File(PathBuf),
}

/// What can be set on the reference server.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Which revisions are spoken.
    pub era: ServerEra,
    /// How HTTP requests are answered.
    pub mode: AnswerMode,
    /// Silence on an event stream after which a comment is sent. ours: 15 s.
    pub keep_alive: Ms,
    /// Most progress notifications a second for each request, `flood` excepted; `None`: no limit. A
    /// first and a last one are always told (PRG-11). ours: 10.
    pub max_progress_per_s: Option<u32>,
    /// Messages that may wait for one reader, of an event stream or of a pipe, at least 2; an answer
    /// beyond that is refused and ends the channel. `None`: 64, and an answer waits for room.
    pub buffer: Option<usize>,
    /// Items on one page of a list; `None`: all on one page.
    pub page_size: Option<usize>,
    /// Addresses may be listened on that others on the network can reach. An `Origin` that is
    /// checked is no authentication.
    pub is_open_to_network: bool,
    /// Origins that browsers may call from, compared exactly. A request without `Origin` is none
    /// of a browser and passes.
    pub allowed_origins: Vec<String>,
    /// Where the ledger of effects is kept.
    pub ledger: LedgerPlace,
    /// Wrong things that the server is to do on purpose.
    pub faults: Arc<Faults>,
    /// What servers share that are to go on with each other's rounds; `None`: this one alone.
    pub state_key: Option<Vec<u8>>,
    /// Who is told about the work on requests.
    pub telemetry: Option<Telemetry>,
    /// Also offers what the conformance suite of MCP looks for.
    pub conformance: bool,
    /// Requests that may run at once; more are refused, so that nobody fills the memory with them.
    /// ours: 16,384, far more than a process has files by default.
    pub most_running: usize,
    /// How long cleanup after a cancel may take before it is cut off. ours: 5 s.
    pub cleanup_limit: Ms,
}

impl Default for ServerOptions {
    fn default() -> ServerOptions {
        ServerOptions {
            era: ServerEra::Modern,
            mode: AnswerMode::Auto,
            keep_alive: Ms(15_000),
            max_progress_per_s: Some(10),
            buffer: None,
            page_size: None,
            is_open_to_network: false,
            allowed_origins: Vec::new(),
            ledger: LedgerPlace::Memory,
            faults: Arc::default(),
            state_key: None,
            telemetry: None,
            conformance: false,
            most_running: 16_384,
            cleanup_limit: Ms(5000),
        }
    }
}

/// Serves on this process's standard input and output until the input ends or `cancel` fires.
/// After that it takes at most 400 ms. Standard output carries messages and nothing else. A read
/// of standard input may still be waiting then: end the runtime with `shutdown_background`.
///
/// # Errors
/// When a pipe breaks in another way than by its end.
pub async fn serve_stdio(options: ServerOptions, cancel: CancellationToken) -> Result<(), PeerError> {
    serve_pipes(options, tokio::io::stdin(), tokio::io::stdout(), cancel).await
}

/// Serves on a pair of pipes until `reader` ends, `writer` breaks or `cancel` fires.
///
/// # Errors
/// When `reader` breaks in another way than by its end.
pub async fn serve_pipes<R, W>(
    options: ServerOptions,
    reader: R,
    writer: W,
    cancel: CancellationToken,
) -> Result<(), PeerError>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin + Send + 'static,
{
    stdio::serve(Core::new(options), reader, writer, cancel).await
}

/// Listens on `addr` (port 0: any free one), endpoint `/mcp`, HTTP/1.1 and h2 with prior
/// knowledge. Returns the address in fact bound and the future that serves until `cancel` fires.
///
/// # Errors
/// When the address cannot be listened on, or others could reach it and nobody said that they may.
pub async fn serve_http(
    addr: SocketAddr,
    options: ServerOptions,
    cancel: CancellationToken,
) -> Result<(SocketAddr, impl Future<Output = ()> + Send + 'static), PeerError> {
    if !addr.ip().is_loopback() && !options.is_open_to_network {
        return Err(PeerError::OpenToNetwork { addr });
    }
    let listen = |source| PeerError::Listen { addr, source };
    let listener = TcpListener::bind(addr).await.map_err(listen)?;
    let bound = listener.local_addr().map_err(listen)?;
    Ok((bound, http::serve(Core::new(options), listener, cancel)))
}

/// The path of the HTTP endpoint.
pub const ENDPOINT: &str = "/mcp";

/// After the input ended, how long calls may still finish, so that what a shell pipes in is
/// answered. ours: the specification says no more than that the server should end promptly.
const DRAIN: Ms = Ms(150);

/// After that, or when the end was asked for, how long handlers and writers may take to stop. Both
/// together stay inside the 500 ms that the transport contract gives.
const WIND_DOWN: Ms = Ms(250);

type SharedCore = Arc<Core>;

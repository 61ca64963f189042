//! The man in the middle: stdio and HTTP. Forwards first, looks second, never re-serialises.
//!
//! A tap puts every thing that it reads on the [`tape`](crate::event::tape) before it writes it
//! on. It knows no files and no screen; nothing that happens to a recording or a viewer reaches
//! the path.

pub mod child;
mod hold;
pub mod http;
pub mod stdio;
pub mod telemetry;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why a tap could not start, or could not go on.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// The server's command could not be started.
    #[error("cannot start `{command}`: {source}; check the command after `--`")]
    CannotStart {
        /// The program as it was given.
        command: String,
        /// What the system said.
        source: io::Error,
    },
    /// One of the pipes, threads or handlers of the tap itself could not be had.
    #[error("cannot set up {what}: {source}; the system may be out of processes or descriptors")]
    CannotSetUp {
        /// Which one, such as `the standard streams`.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The address for the clients could not be listened on.
    #[error("cannot listen on {address}: {source}; pass --listen with a free port")]
    CannotListen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The address for the clients can be reached from other machines, which nobody allowed.
    #[error(
        "will not listen on {address}, which other machines can reach; pass --listen-anywhere if you want that"
    )]
    OpenToNetwork {
        /// The address.
        address: SocketAddr,
    },
    /// The upstream URL cannot be used.
    #[error(
        "cannot use the upstream `{url}`: {why}; pass --upstream with a URL such as http://127.0.0.1:8000/mcp"
    )]
    BadUpstream {
        /// As it was given.
        url: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The file with an extra certificate authority cannot be used.
    #[error("cannot use the certificates in {}: {why}; pass --ca with a PEM file", path.display())]
    BadCa {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The TLS library could not be set up.
    #[error("cannot set up TLS: {source}; use an http:// upstream")]
    Tls {
        /// What it said.
        source: rustls::Error,
    },
}

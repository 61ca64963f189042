//! Reference server and client: correct by the letter.
//!
//! They are real peers on real pipes and sockets, used by the demo, by the tests and by anybody
//! who wants a known-good other side. They know nothing of taps, recordings or screens.

pub mod client;
pub mod control;
pub mod faults;
mod ledger;
pub mod server;
pub mod telemetry;
pub mod tour;

use std::io;
use std::net::SocketAddr;

use thiserror::Error;

use self::client::auth::AuthError;
use crate::machine::deadlines::BadLimits;

/// Why a peer cannot start, or cannot go on.
#[derive(Debug, Error)]
pub enum PeerError {
    /// The address cannot be listened on.
    #[error("cannot listen on {addr}: {source}; pass --listen with a free port")]
    Listen {
        /// The address asked for.
        addr: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// Others on the network could reach the address, and nobody said that they may.
    #[error("{addr} can be reached from the network; pass --listen-anywhere if that is meant")]
    OpenToNetwork {
        /// The address asked for.
        addr: SocketAddr,
    },
    /// Nothing answers at the address of the server.
    #[error("cannot connect to {url}: {source}; is the server running?")]
    Connect {
        /// The URL asked for.
        url: String,
        /// What the system said.
        source: io::Error,
    },
    /// The URL is none that the client can use.
    #[error("cannot use the URL {url}: {why}; give one like http://127.0.0.1:8080/mcp")]
    BadUrl {
        /// The URL asked for.
        url: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The command of a server is empty.
    #[error("no server command given; put it after --")]
    NoCommand,
    /// The command of a server cannot be started.
    #[error("cannot start {command}: {source}; check the path and that it is executable")]
    Spawn {
        /// The program.
        command: String,
        /// What the system said.
        source: io::Error,
    },
    /// A pipe to or from the other side broke.
    #[error("cannot {what}: {source}")]
    Pipe {
        /// What was being done.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The time limits of a call make no sense.
    #[error(transparent)]
    Limits(#[from] BadLimits),
    /// A server whose era is not known is not called.
    #[error("the era of {name} is not known, so it is not called; `midwire probe` shows why")]
    Unavailable {
        /// What it is called here.
        name: String,
    },
    /// The era of the server does not have it.
    #[error("the server is of an era that does not have {what}")]
    NotOfThisEra {
        /// The method.
        what: &'static str,
    },
    /// No server has a tool of this name.
    #[error("no server has the tool {name}; `midwire call list` shows what there is")]
    NoSuchTool {
        /// The name in the catalogue.
        name: String,
    },
    /// The server wants authorization that is not to be had.
    #[error(transparent)]
    Auth(#[from] AuthError),
    /// More answers wait than may, and none of them can be given up.
    #[error(
        "{waiting} messages wait to be read and another answer is there; the client reads too slowly, or --buffer is too small"
    )]
    Overrun {
        /// How many wait.
        waiting: usize,
    },
    /// The other side is gone, so nothing can be asked of it any more.
    #[error("the server is gone; start a new one")]
    Gone,
}

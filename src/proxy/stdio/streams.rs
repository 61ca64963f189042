//! The tap's own standard streams: the client's side of the path.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use crate::proxy::ProxyError;

/// The client's three streams, owned alone, so that closing one is felt by the client.
#[derive(Debug)]
pub struct ClientStreams {
    /// What the client writes.
    pub stdin: OwnedFd,
    /// What it reads.
    pub stdout: OwnedFd,
    /// Where the server's log goes.
    pub stderr: OwnedFd,
}

impl ClientStreams {
    /// Takes descriptors 0, 1 and 2. Afterwards 0 and 1 lead to `/dev/null`: nothing else in the
    /// process can put a byte between the client's messages. 2 stays, for a last word to a person.
    pub(super) fn take() -> Result<ClientStreams, ProxyError> {
        take().map_err(|source| ProxyError::CannotSetUp { what: "the standard streams", source })
    }
}

fn take() -> io::Result<ClientStreams> {
    let own = |stream: &dyn AsFd| stream.as_fd().try_clone_to_owned();
    let streams =
        ClientStreams { stdin: own(&io::stdin())?, stdout: own(&io::stdout())?, stderr: own(&io::stderr())? };
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nothing)?;
    rustix::stdio::dup2_stdout(&nothing)?;
    Ok(streams)
}

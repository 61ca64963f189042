//! What steers the reference server beside the wire: faults, the control socket, telemetry.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::bail;
use tokio_util::sync::CancellationToken;

use crate::app::sockets::{OwnerSocket, SocketAt};
use crate::cli::args::steering::ServerSteering;
use crate::cli::say;
use crate::event::telemetry::SOCKET_VARIABLE;
use crate::peer::control;
use crate::peer::faults::{Faults, Side};
use crate::peer::telemetry::Telemetry;
use crate::time::Ms;

/// How long the end may wait for a tap that has not read everything. The whole of an end takes at
/// most 500 ms, most of which serving may need.
const LAST_WORDS: Ms = Ms(50);

/// What was asked for, set up.
pub(super) struct Steering {
    pub(super) faults: Arc<Faults>,
    pub(super) telemetry: Option<Telemetry>,
    control: Option<OwnerSocket>,
}

impl Steering {
    pub(super) fn set_up(args: &ServerSteering) -> anyhow::Result<Steering> {
        if let Some(fault) = args.fault.iter().find(|fault| fault.side() == Side::Client) {
            bail!("{fault} is a fault of the client; give it to `midwire call`");
        }
        let named = || std::env::var_os(SOCKET_VARIABLE).map(PathBuf::from);
        let (is_asked, socket) = match &args.telemetry {
            None => (false, None),
            Some(SocketAt::Path(socket)) => (true, Some(socket.clone())),
            Some(SocketAt::Default) => (true, named()),
        };
        if is_asked && socket.is_none() {
            // A client may start the same command with and without a tap.
            say(&format!("nobody to tell about the work: {SOCKET_VARIABLE} is not set"));
        }
        let telemetry = socket.map(|socket| Telemetry::at(&socket)).transpose()?;
        let name = format!("serve-{}.control", std::process::id());
        let control = args.control.as_ref().map(|at| OwnerSocket::bind_at(at, &name)).transpose()?;
        let faults = Arc::new(Faults::with(args.fault.iter().copied()));
        Ok(Steering { faults, telemetry, control })
    }

    /// Takes orders until `cancel` fires; comes back only with what has broken.
    pub(super) async fn obey(&mut self, cancel: CancellationToken) -> anyhow::Error {
        if let Some(socket) = &mut self.control {
            say(&format!("taking orders at {}", socket.path().display()));
            if let Some(listener) = socket.take_listener() {
                let serving = control::serve(listener, Side::Server, self.faults.clone(), cancel);
                if let Err(error) = serving.await {
                    return anyhow::Error::new(error).context("the control socket broke");
                }
            }
        }
        std::future::pending().await
    }

    /// Lets what was told reach the tap.
    pub(super) fn end(&self) {
        if let Some(telemetry) = &self.telemetry {
            telemetry.close(LAST_WORDS);
        }
    }
}

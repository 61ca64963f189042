//! The guard: a second, tiny process that ends the server's group when the tap vanishes without
//! a word, as by `SIGKILL`.
//!
//! It waits for the end of a pipe whose writing end only the tap has. When that comes, the tap is
//! gone and the group is killed: the server and whatever it started, which a parent-death signal
//! would not reach. At an orderly end the tap ends the guard first. The guard shares no stream,
//! no process group and no name with the tap, so what kills the tap does not kill the guard.
//!
//! It is a line of shell, because starting this program a second time would cost the first
//! answer more than a millisecond.

use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};

use rustix::process::Pid;

use crate::proxy::ProxyError;

/// The system's shell; POSIX says that there is one.
const SHELL: &str = "/bin/sh";

/// The name under which it runs.
const NAME: &str = "tap-guard";

/// Signals that a client sends to all it finds below itself must not end the guard first. Nothing
/// is ever written to the pipe, so `read` returns when the tap is gone. `$1` is the group.
const SCRIPT: &str = r#"trap '' TERM INT HUP QUIT; read -r _; kill -s KILL -- "-$1""#;

/// A running guard, held by the tap.
pub(super) struct Guard {
    process: Child,
    _pipe: ChildStdin,
}

impl Guard {
    /// Starts to guard a group.
    pub(super) fn start(group: Pid) -> Result<Guard, ProxyError> {
        let set_up = |source| ProxyError::CannotSetUp { what: "the guard process", source };
        let mut process = Command::new(SHELL)
            .arg0(NAME)
            .args(["-c", SCRIPT, NAME])
            .arg(group.as_raw_nonzero().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(set_up)?;
        let pipe = process.stdin.take().ok_or_else(|| set_up(std::io::ErrorKind::BrokenPipe.into()))?;
        Ok(Guard { process, _pipe: pipe })
    }

    /// The group is over: ends the guard, which touches nothing.
    pub(super) fn stand_down(mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

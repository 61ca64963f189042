//! The guard: a second, tiny process that ends the server's group when the tap vanishes without
//! a word, as by `SIGKILL`.
//!
//! It waits for the end of a pipe whose writing end only the tap has. When that comes, the tap is
//! gone and the group is killed: the server and whatever it started, which a parent-death signal
//! would not reach. At an orderly end the tap ends the guard first. The guard shares no stream,
//! no process group and no name with the tap, so what kills the tap does not kill the guard.
//!
//! It leads the group that it guards, and the server is started into it: there is no moment at
//! which a server runs that nobody would end.
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

/// Signals that reach the whole group are meant for the server, and a client may send them to all
/// it finds below itself: none of them ends or stops the guard. (`SIGSTOP` stops it with the
/// server; the system lets an orphaned group go on, which it is once the tap is gone.) Nothing is
/// ever written to the pipe, so `read` returns when the tap is gone.
const SCRIPT: &str =
    "trap '' TERM INT HUP QUIT USR1 USR2 ALRM PIPE TSTP TTIN TTOU; read -r _; kill -s KILL 0";

/// A running guard, held by the tap.
pub(super) struct Guard {
    process: Child,
    _pipe: ChildStdin,
}

impl Guard {
    /// Starts a guard, with a group of its own.
    pub(super) fn start() -> Result<Guard, ProxyError> {
        let set_up = |source| ProxyError::CannotSetUp { what: "the guard process", source };
        let mut process = Command::new(SHELL)
            .arg0(NAME)
            .args(["-c", SCRIPT, NAME])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(set_up)?;
        let pipe = process.stdin.take().ok_or_else(|| set_up(std::io::ErrorKind::BrokenPipe.into()))?;
        Ok(Guard { process, _pipe: pipe })
    }

    /// The guard's own process, whose number is that of the group.
    pub(super) fn id(&self) -> Pid {
        Pid::from_child(&self.process)
    }

    /// The rest of the group is over: ends the guard, which touches nothing.
    pub(super) fn stand_down(mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

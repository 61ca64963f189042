//! The guard: a second, tiny process that ends the server's group when the tap vanishes without
//! a word, as by `SIGKILL`.
//!
//! It holds the reading end of a pipe whose writing end only the tap has, and over which the tap
//! names the group to watch. When the pipe ends, the tap is gone and the group is killed: the
//! server and whatever it started, which a parent-death signal would not reach. At an orderly end
//! the tap ends the guard first. The guard shares no stream, no process group and no name with
//! the tap, so what kills the tap does not kill the guard.

use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustix::process::{Pid, Signal, kill_process_group};

use crate::proxy::ProxyError;

/// The first argument that makes the program a guard; not for people.
const ARGUMENT: &str = "__guard";

/// The name under which it runs, so that ending everything called like the tap spares it.
const NAME: &str = "tap-guard";

/// A running guard, held by the tap.
pub(super) struct Guard {
    process: Child,
    pipe: ChildStdin,
}

impl Guard {
    /// Starts `program` as a guard that watches nothing yet.
    pub(super) fn start(program: &Path) -> Result<Guard, ProxyError> {
        let set_up = |source| ProxyError::CannotSetUp { what: "the guard process", source };
        let mut process = Command::new(program)
            .arg0(NAME)
            .arg(ARGUMENT)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(set_up)?;
        let pipe = process.stdin.take().ok_or_else(|| set_up(io::ErrorKind::BrokenPipe.into()))?;
        Ok(Guard { process, pipe })
    }

    /// Names the group to end should the tap vanish. A guard that has itself been killed cannot
    /// take it; the session goes on without.
    pub(super) fn watch(&mut self, group: Pid) {
        // One write, so that the guard never reads half of a number.
        let _ = self.pipe.write_all(format!("{}\n", group.as_raw_nonzero()).as_bytes());
    }

    /// The group is over: ends the guard, which touches nothing.
    pub(super) fn stand_down(mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Whether the arguments of this process ask it to be a guard. To be looked at before anything
/// else is done with them.
#[must_use]
pub fn is_asked_for(mut arguments: impl Iterator<Item = std::ffi::OsString>) -> bool {
    arguments.nth(1).is_some_and(|argument| argument == ARGUMENT)
}

/// Is the guard, until the tap ends.
pub fn run() {
    let _ = rustix::thread::set_name(c"tap-guard");
    // Signals that a client sends to all it finds below itself must not end the guard first.
    for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT] {
        let _ = signal_hook::flag::register(signal.as_raw(), Arc::new(AtomicBool::new(false)));
    }
    let mut words = Vec::new();
    let _ = io::stdin().read_to_end(&mut words);
    if let Some(group) = orphaned(&words) {
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// The group that the tap left behind, by what it said before it went. 1 and less are refused:
/// they would name more than a group of ours.
fn orphaned(words: &[u8]) -> Option<Pid> {
    let line = std::str::from_utf8(words).ok()?.strip_suffix('\n')?;
    line.parse().ok().filter(|id| *id > 1).and_then(Pid::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_number_above_one_names_a_group_to_end() {
        let cases: [(&[u8], Option<i32>); 7] = [
            (b"4711\n", Some(4711)),
            (b"", None),
            (b"4711", None),
            (b"0\n", None),
            (b"1\n", None),
            (b"-1\n", None),
            (b"\xff\n", None),
        ];
        for (words, group) in cases {
            assert_eq!(orphaned(words).map(|pid| pid.as_raw_nonzero().get()), group, "{words:?}");
        }
    }
}

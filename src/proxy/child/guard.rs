//! The guard: a second, tiny process that ends the server's group when the tap vanishes without
//! a word, as by `SIGKILL`.
//!
//! It holds the reading end of a pipe whose writing end only the tap has. The tap tells it the
//! group to watch and, at an orderly end, that all is done. When the pipe ends before that, the
//! tap is gone and the group is killed: the server and whatever it started, which a parent-death
//! signal would not reach. The guard shares no stream, no process group and no name with the tap,
//! so what kills the tap does not kill the guard.

use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustix::process::{Pid, Signal, kill_process_group};

use crate::proxy::ProxyError;

/// The first argument that makes the program a guard; not for people.
const ARGUMENT: &str = "__guard";

/// The name under which it runs, so that ending everything called like the tap spares it.
const NAME: &str = "tap-guard";

/// What the tap says at an orderly end.
const DONE: &str = "done";

/// A running guard, held by the tap.
pub(super) struct Guard {
    pipe: ChildStdin,
}

impl Guard {
    /// Starts `program` as a guard that watches nothing yet.
    pub(super) fn start(program: &Path) -> Result<Guard, ProxyError> {
        let set_up = |source| ProxyError::CannotSetUp { what: "the guard process", source };
        let mut child = Command::new(program)
            .arg0(NAME)
            .arg(ARGUMENT)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(set_up)?;
        let pipe = child.stdin.take().ok_or_else(|| set_up(io::ErrorKind::BrokenPipe.into()))?;
        Ok(Guard { pipe })
    }

    /// Names the group to end should the tap vanish. A guard that has itself been killed cannot
    /// take it; the session goes on without.
    pub(super) fn watch(&mut self, group: Pid) {
        self.say(&group.as_raw_nonzero().to_string());
    }

    /// The group is over: the guard ends and touches nothing.
    pub(super) fn stand_down(mut self) {
        self.say(DONE);
    }

    /// One line in one write, so that the guard never reads half of it.
    fn say(&mut self, word: &str) {
        let _ = self.pipe.write_all(format!("{word}\n").as_bytes());
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

/// The group that the tap left behind, by all that it said before it went.
fn orphaned(words: &[u8]) -> Option<Pid> {
    let mut lines = std::str::from_utf8(words).ok()?.lines();
    // 1 and less would name more than a group of ours.
    let group = lines.next()?.parse().ok().filter(|id| *id > 1).and_then(Pid::from_raw)?;
    (lines.next() != Some(DONE)).then_some(group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_tap_that_went_without_a_word_leaves_a_group_behind() {
        let cases: [(&[u8], Option<i32>); 7] = [
            (b"", None),
            (b"4711\n", Some(4711)),
            (b"4711\ndone\n", None),
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

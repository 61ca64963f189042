//! The server process: started in a group of its own, signalled as a group, and never left over.

mod guard;

use std::ffi::OsString;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};

use super::ProxyError;
use crate::event::telemetry::SOCKET_VARIABLE;
use guard::Guard;

/// The tap's ends of the server's pipes.
pub(super) struct Pipes {
    pub(super) stdin: OwnedFd,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
}

/// The server's process group, which its guard leads. Dropped before [`Group::stand_down`], it
/// kills what is in it.
pub(super) struct Group {
    id: Pid,
    guard: Option<Guard>,
}

/// Starts `command` with pipes on its three streams, environment and folder as they are, in the
/// group of a guard that ends it when this process vanishes. Where there is a socket for
/// `telemetry`, and only then, one variable more tells of it.
pub(super) fn spawn(
    command: &[OsString],
    telemetry: Option<&Path>,
) -> Result<(Group, Pipes, Child), ProxyError> {
    let program = command.first().cloned().unwrap_or_default();
    let cannot_start =
        |source| ProxyError::CannotStart { command: program.to_string_lossy().into_owned(), source };
    let guard = Guard::start()?;
    let group = Group { id: guard.id(), guard: Some(guard) };
    let mut child = Command::new(&program)
        .args(command.get(1..).unwrap_or_default())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .envs(telemetry.map(|socket| (SOCKET_VARIABLE, socket)))
        .process_group(group.id.as_raw_nonzero().get())
        .spawn()
        .map_err(cannot_start)?;
    match (child.stdin.take(), child.stdout.take(), child.stderr.take()) {
        (Some(stdin), Some(stdout), Some(stderr)) => {
            let pipes = Pipes { stdin: stdin.into(), stdout: stdout.into(), stderr: stderr.into() };
            Ok((group, pipes, child))
        }
        _ => unreachable!("all three streams were asked for as pipes"),
    }
}

impl Group {
    /// Sends a signal to every process of the group; nobody there is no error.
    pub(super) fn signal(&self, signal: Signal) {
        let _ = kill_process_group(self.id, signal);
    }

    /// Whether any process but the guard is left in the group. One that has ended and that nobody
    /// collects, as in a container without an init, does not count.
    pub(super) fn is_alive(&self) -> bool {
        let group = self.id.as_raw_nonzero().to_string();
        let Ok(processes) = fs::read_dir("/proc") else { return true };
        let others = processes.flatten().filter(|entry| entry.file_name() != *group);
        let mut stats = others.filter_map(|entry| fs::read(entry.path().join("stat")).ok());
        stats.any(|stat| is_running_in(&stat, group.as_bytes()))
    }

    /// Says that the group has been dealt with and needs no guard any more.
    pub(super) fn stand_down(mut self) {
        if let Some(guard) = self.guard.take() {
            guard.stand_down();
        }
    }
}

/// Whether a `/proc/PID/stat` line tells of a process of this group that has not ended.
fn is_running_in(stat: &[u8], group: &[u8]) -> bool {
    // `pid (name) state ppid pgrp …`; the name may hold anything.
    let Some(name_end) = stat.iter().rposition(|byte| *byte == b')') else { return false };
    let mut fields = stat.split_at(name_end).1.split(|byte| *byte == b' ').skip(1);
    let state = fields.next().unwrap_or_default();
    fields.nth(1) == Some(group) && !matches!(state, b"Z" | b"X")
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(guard) = self.guard.take() {
            self.signal(Signal::KILL);
            guard.stand_down();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_counts_while_it_runs_in_the_group_whatever_its_name() {
        let cases: [(&[u8], bool); 5] = [
            (b"7 (sh) S 1 42 42 0 -1", true),
            (b"7 (a) Z 9 (b) R 1 42 42 0 -1", true),
            (b"7 (sh) Z 1 42 42 0 -1", false),
            (b"7 (sh) S 42 7 42 0 -1", false),
            (b"7 (sh", false),
        ];
        for (stat, is_running) in cases {
            assert_eq!(is_running_in(stat, b"42"), is_running, "{}", String::from_utf8_lossy(stat));
        }
    }
}

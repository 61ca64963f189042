//! Signals that the tap receives in the server's place.

use std::fs;
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;

use rustix::process::{Signal, getpid, kill_process};
use signal_hook::iterator::Handle;

use super::Notice;
use crate::proxy::ProxyError;

/// Signals that are passed on, with their names. Others keep their default, or cannot be caught.
const PASSED_ON: [(Signal, &str); 8] = [
    (Signal::TERM, "SIGTERM"),
    (Signal::INT, "SIGINT"),
    (Signal::HUP, "SIGHUP"),
    (Signal::QUIT, "SIGQUIT"),
    (Signal::USR1, "SIGUSR1"),
    (Signal::USR2, "SIGUSR2"),
    (Signal::TSTP, "SIGTSTP"),
    (Signal::CONT, "SIGCONT"),
];

/// A thread that turns received signals into notices, until dropped.
pub(super) struct Signals {
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

impl Signals {
    /// Starts listening. A signal that was ignored when the tap started (as under `nohup`) stays
    /// ignored, so that the server inherits that.
    pub(super) fn listen(notices: Sender<Notice>) -> Result<Signals, ProxyError> {
        let set_up = |source| ProxyError::CannotSetUp { what: "signal handlers", source };
        let ignored = ignored_signals();
        let wanted = PASSED_ON.iter().filter(|(signal, _)| !is_in(*signal, ignored));
        let mut signals =
            signal_hook::iterator::Signals::new(wanted.map(|(s, _)| s.as_raw())).map_err(set_up)?;
        let handle = signals.handle();
        let body = move || {
            for signal in signals.forever().filter_map(Signal::from_named_raw) {
                if notices.send(Notice::Received(signal)).is_err() {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("signals".to_owned()).spawn(body).map_err(set_up)?;
        Ok(Signals { handle, thread: Some(thread) })
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.handle.close();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The name of a signal that the tap sends or passes on.
pub(super) fn name(signal: Signal) -> &'static str {
    if signal == Signal::STOP {
        return "SIGSTOP";
    }
    let known = PASSED_ON.iter().find(|(passed_on, _)| *passed_on == signal);
    known.map_or("SIGKILL", |(_, name)| name)
}

/// Whether this signal asks a process to end.
pub(super) fn asks_to_end(signal: Signal) -> bool {
    [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT].contains(&signal)
}

/// Stops the tap, as `SIGTSTP` would have without a handler.
pub(super) fn stop_ourselves() {
    let _ = kill_process(getpid(), Signal::STOP);
}

/// The mask of signals that this process ignores; 0 where the system does not tell.
fn ignored_signals() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

fn is_in(signal: Signal, mask: u64) -> bool {
    let bit = u32::try_from(signal.as_raw() - 1).ok().and_then(|bit| 1u64.checked_shl(bit));
    bit.is_some_and(|bit| mask & bit != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_counts_signals_from_one() {
        assert!(is_in(Signal::HUP, 0b1));
        assert!(is_in(Signal::TERM, 1 << 14));
        assert!(!is_in(Signal::INT, 1 << 14));
    }

    #[test]
    fn every_signal_that_is_sent_has_its_name() {
        assert_eq!(name(Signal::TERM), "SIGTERM");
        assert_eq!(name(Signal::KILL), "SIGKILL");
        assert_eq!(name(Signal::STOP), "SIGSTOP");
    }
}

//! The fixed words of the format, in both directions.

use crate::event::{Close, Dir, Transport};

pub(super) fn dir(dir: Dir) -> &'static str {
    match dir {
        Dir::C2s => "c2s",
        Dir::S2c => "s2c",
        Dir::Stderr => "stderr",
        Dir::Tap => "tap",
    }
}

pub(super) fn dir_of(word: &str) -> Option<Dir> {
    Some(match word {
        "c2s" => Dir::C2s,
        "s2c" => Dir::S2c,
        "stderr" => Dir::Stderr,
        "tap" => Dir::Tap,
        _ => return None,
    })
}

pub(super) fn transport_of(word: &str) -> Option<Transport> {
    Some(match word {
        "stdio" => Transport::Stdio,
        "http" => Transport::Http,
        _ => return None,
    })
}

pub(super) fn close(close: Close) -> &'static str {
    match close {
        Close::Eof => "eof",
        Close::HalfClose => "half_close",
        Close::Reset => "reset",
        Close::Timeout => "timeout",
    }
}

pub(super) fn close_of(word: &str) -> Option<Close> {
    Some(match word {
        "eof" => Close::Eof,
        "half_close" => Close::HalfClose,
        "reset" => Close::Reset,
        "timeout" => Close::Timeout,
        _ => return None,
    })
}

/// Number of a signal that a person wrote by name; the numbers that all Unix systems share.
pub(super) fn signal_of(word: &str) -> Option<i32> {
    Some(match word.strip_prefix("SIG").unwrap_or(word) {
        "HUP" => 1,
        "INT" => 2,
        "QUIT" => 3,
        "ILL" => 4,
        "TRAP" => 5,
        "ABRT" => 6,
        "FPE" => 8,
        "KILL" => 9,
        "SEGV" => 11,
        "PIPE" => 13,
        "ALRM" => 14,
        "TERM" => 15,
        other => return other.parse().ok(),
    })
}

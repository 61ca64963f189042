//! The stdio tap as a client and a server see it: the real binary between real pipes.
//!
//! The servers are programs that every Unix has (`cat`, `tee`, `sed`, `sh`), the recording is read
//! with a JSON parser of its own.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::disallowed_methods, reason = "tests")]

#[path = "stdio/bytes.rs"]
mod bytes;
#[path = "stdio/ends.rs"]
mod ends;
#[path = "stdio/recording.rs"]
mod recording;
#[path = "stdio/signals.rs"]
mod signals;
#[path = "stdio/support.rs"]
mod support;

//! What people do to the traffic of a stdio tap, on real pipes with the reference server: the effect
//! is in the trace and on the wire, and nothing else has changed.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "helpers of tests stand outside the test functions"
)]

#[path = "hands_stdio/calls.rs"]
mod calls;
#[path = "hands_stdio/held.rs"]
mod held;
#[path = "hands_stdio/load.rs"]
mod load;
#[path = "hands_stdio/messages.rs"]
mod messages;
#[path = "hands_stdio/pipes.rs"]
mod pipes;
#[path = "hands_stdio/rig.rs"]
mod rig;

//! What the reference peers do wrong on purpose, seen by a tap: every fault brings its rules, and
//! without it nothing is found. Also what the server tells about its work.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "helpers of tests stand outside the test functions"
)]

#[path = "faults/detectors.rs"]
mod detectors;
#[path = "faults/every.rs"]
mod every;
#[path = "faults/page.rs"]
mod page;
#[path = "faults/replicas.rs"]
mod replicas;
#[path = "faults/rig.rs"]
mod rig;
#[path = "faults/scenes.rs"]
mod scenes;
#[path = "faults/steered.rs"]
mod steered;
#[path = "faults/told.rs"]
mod told;

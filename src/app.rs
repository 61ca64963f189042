//! Wires the rooms together: threads, tasks, channels, shutdown. Knows every room but `cli`.

pub mod demo;
pub mod session;
pub mod taps;

//! Wires the rooms together: threads, tasks, channels, shutdown. Knows every room but `cli`.

pub mod check;
pub mod control;
pub mod demo;
pub mod log;
pub mod policy;
pub mod recipe;
pub mod selftest;
pub mod session;
pub mod sockets;
pub mod taps;
pub mod viewer;

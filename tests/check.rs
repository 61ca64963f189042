//! `midwire check` as a person, a script and a CI service meet it.
#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside the test functions")]

#[path = "check/exits.rs"]
mod exits;
#[path = "check/formats.rs"]
mod formats;
#[path = "check/rules.rs"]
mod rules;
#[path = "check/said.rs"]
mod said;
#[path = "check/support.rs"]
mod support;

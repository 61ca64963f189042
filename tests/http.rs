//! The HTTP tap between raw clients and raw servers: what passes, how ends pass, what is recorded.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "helpers of tests are not covered by clippy's exemption for tests"
)]

#[path = "http/bytes.rs"]
mod bytes;
#[path = "http/ends.rs"]
mod ends;
#[path = "http/fixture.rs"]
mod fixture;
#[path = "http/hands.rs"]
mod hands;
#[path = "http/own_answers.rs"]
mod own_answers;
#[path = "http/rewrites.rs"]
mod rewrites;
#[path = "http/streams.rs"]
mod streams;
#[path = "http/versions.rs"]
mod versions;

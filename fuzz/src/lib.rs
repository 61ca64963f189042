//! What must hold for any bytes at all. Each function takes one input and panics where something
//! does not hold; the fuzzer and the ordinary tests call the same functions.

pub mod decoders;
pub mod recordings;
pub mod traffic;

pub use decoders::{http1, jsonrpc, lines, sse};
pub use recordings::{trace, traffic, verdicts};

/// A target by its name.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const ALL: [Target; 7] = [
    ("lines", lines),
    ("sse", sse),
    ("jsonrpc", jsonrpc),
    ("http1", http1),
    ("trace", trace),
    ("verdicts", verdicts),
    ("traffic", traffic),
];

//! Bytes ⇄ lines, SSE events and JSON-RPC members.
//!
//! Incremental decoders that own no IO. They return what they could read *and* what was wrong
//! with it, never panic, never stop at a bad byte, and say when a stated limit was hit. Nothing
//! here knows MCP methods or eras (`spec` does) or re-serialises a message.

pub mod http1;
pub mod json;
pub mod jsonrpc;
pub mod lines;
pub mod sse;

//! What MCP says: eras, methods, headers, error codes, rule ids. Constants and small look-ups;
//! no state, no IO.

pub mod annotations;
pub mod codes;
pub mod era;
pub mod headers;
pub mod lists;
pub mod logging;
pub mod meta;
pub mod methods;
pub mod transport;

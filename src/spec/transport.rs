//! The transports that MCP defines.

use serde::Deserialize;

/// How the two peers are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// Pipes of a child process.
    Stdio,
    /// Streamable HTTP, or the older HTTP+SSE.
    Http,
}

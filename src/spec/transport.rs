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

impl Transport {
    /// Its name, as recordings and options use it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Transport::Stdio => "stdio",
            Transport::Http => "http",
        }
    }
}

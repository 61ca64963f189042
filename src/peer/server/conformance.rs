//! What the conformance suite of MCP looks for on a server (`tests/conformance/run`): tools,
//! prompts and resources under the names that its scenarios call. Offered only when asked for.

mod asking;
mod handshake;
mod plain;
mod prompts;
mod resources;
mod tasks;

pub(super) use self::prompts::PROMPTS;
pub(super) use self::resources::FAMILY;
use super::tools::Tool;

/// The groups of tools.
pub(super) const GROUPS: [&[Tool]; 4] = [plain::TOOLS, asking::TOOLS, handshake::TOOLS, tasks::TOOLS];

//! Keys of `_meta`. Source: spec 2026-07-28 `basic/index#meta`.

/// Request: the revision it is written in; a string, required.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// Request: what the client can do; an object, required.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// Request: name and version of the client, for display only.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// Result: name and version of the server, for display only.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// Messages of a subscription: the id of its listen request.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// Request: the level from which log messages are wanted; without it none may come.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// Request: the token under which progress is wanted.
pub const PROGRESS_TOKEN: &str = "progressToken";
/// 2025-11-25: the task that a message belongs to.
pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

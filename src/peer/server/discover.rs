//! `server/discover`: what this server is and can do.

use serde_json::{Map, Value, json};

use super::catalogue::cached;
use super::message::VERSION;
use crate::machine::task::EXTENSION;

/// What a model should know about the server.
pub(super) const INSTRUCTIONS: &str =
    "Reference server of midwire. Every tool shows one thing that can happen to a call.";

/// The answer to `server/discover` (VER-06, VER-07).
pub(super) fn discover() -> Map<String, Value> {
    let mut capabilities = capabilities();
    // Of the tasks that 2025-11-25 has in its core there are none.
    capabilities["extensions"] = json!({ EXTENSION: {} });
    cached(json!({
        "supportedVersions": [VERSION.as_str()],
        "capabilities": capabilities,
        "instructions": INSTRUCTIONS,
    }))
}

/// What the server offers.
pub(super) fn capabilities() -> Value {
    json!({
        "tools": { "listChanged": true },
        "resources": { "listChanged": true, "subscribe": true },
        "prompts": { "listChanged": true },
        "completions": {},
        "logging": {},
    })
}

//! `initialize`: the client names a revision, the server answers with one that both may speak.

use serde_json::{Map, Value, json};

use super::shape;
use crate::peer::server::message::{self, Refusal, Request};
use crate::peer::server::{core, discover};
use crate::spec::era::Era;

/// The revisions with a handshake, oldest first.
pub(super) const ERAS: [Era; 4] = [Era::V2024_11_05, Era::V2025_03_26, Era::V2025_06_18, Era::V2025_11_25];

/// The newest of them: the answer to a revision that is none of them.
pub(super) const NEWEST: Era = Era::V2025_11_25;

/// The revision of a client that does not say which (spec 2025-06-18
/// `basic/transports#protocol-version-header`).
pub(super) const ASSUMED: Era = Era::V2025_03_26;

/// What client and server agreed on.
#[derive(Debug, Clone)]
pub(super) struct Negotiated {
    pub(super) era: Era,
    pub(super) capabilities: Map<String, Value>,
    pub(super) client_info: Option<Value>,
}

impl Negotiated {
    /// Reads an `initialize` request (spec 2025-11-25 `basic/lifecycle#version-negotiation`).
    pub(super) fn read(request: &Request) -> Result<Negotiated, Refusal> {
        let refuse = |text: &str| shape::refusal("", Refusal::params(&request.id, text));
        let asked =
            request.string_at(&["protocolVersion"]).ok_or_else(|| refuse("protocolVersion is missing"))?;
        let capabilities =
            request.object_at(&["capabilities"]).ok_or_else(|| refuse("capabilities are missing"))?;
        let client_info = request.value_at(&["clientInfo"]).filter(|info| {
            ["name", "version"].into_iter().all(|name| info.get(name).is_some_and(Value::is_string))
        });
        if client_info.is_none() {
            return Err(refuse("clientInfo lacks a name or a version"));
        }
        Ok(Negotiated { era: answer(&asked), capabilities, client_info })
    }

    /// What is taken as agreed on with a client that sends requests without a handshake.
    pub(super) fn assumed(era: Option<Era>) -> Negotiated {
        Negotiated { era: era.unwrap_or(ASSUMED), capabilities: Map::new(), client_info: None }
    }

    /// The answer to `initialize`.
    pub(super) fn result(&self) -> Map<String, Value> {
        core::object(json!({
            "protocolVersion": self.era.as_str(),
            "capabilities": shape::capabilities(self.era, core::object(discover::capabilities())),
            "serverInfo": message::server_info(),
            "instructions": discover::INSTRUCTIONS,
        }))
    }
}

/// The revision to answer with: the one asked for, or the newest there is.
fn answer(asked: &str) -> Era {
    legacy(asked).unwrap_or(NEWEST)
}

/// The legacy revision of this name.
pub(super) fn legacy(name: &str) -> Option<Era> {
    ERAS.into_iter().find(|era| era.as_str() == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::server::message::Message;

    fn initialize(params: &Value) -> Result<Negotiated, Refusal> {
        let text = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }).to_string();
        let Ok(Message::Request(request)) = message::read(text.as_bytes()) else { panic!("a request") };
        Negotiated::read(&request)
    }

    #[test]
    fn the_answer_names_the_revision_asked_for_or_the_newest() {
        for (asked, answered) in [
            ("2024-11-05", "2024-11-05"),
            ("2025-03-26", "2025-03-26"),
            ("2025-06-18", "2025-06-18"),
            ("2025-11-25", "2025-11-25"),
            ("2026-07-28", "2025-11-25"),
            ("2099-01-01", "2025-11-25"),
            ("1.0", "2025-11-25"),
            ("", "2025-11-25"),
        ] {
            let params = json!({ "protocolVersion": asked, "capabilities": { "roots": {} }, "clientInfo": { "name": "c", "version": "1" } });
            let agreed = initialize(&params).unwrap();
            let result = agreed.result();
            assert_eq!(result["protocolVersion"], answered, "{asked}");
            assert!(agreed.capabilities.contains_key("roots"));
            assert!(result["capabilities"]["tools"].is_object() && result["serverInfo"]["name"].is_string());
        }
    }

    #[test]
    fn a_client_that_does_not_say_who_it_is_is_refused() {
        let whole = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } });
        assert!(initialize(&whole).is_ok());
        for (pointer, value) in [
            ("/protocolVersion", json!(7)),
            ("/capabilities", json!([])),
            ("/clientInfo", json!({})),
            ("/clientInfo/name", json!(1)),
            ("/clientInfo/version", json!(null)),
        ] {
            let mut params = whole.clone();
            *params.pointer_mut(pointer).unwrap() = value;
            let refusal = initialize(&params).unwrap_err();
            assert_eq!((refusal.code, refusal.status), (-32602, 200), "{pointer}");
        }
        assert!(initialize(&json!({})).is_err());
    }
}

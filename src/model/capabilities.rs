//! What the peers of a process or session say they can do: the latest word of each counts.

use super::{CallIdx, Content, Model, Name, ScopeIdx};
use crate::event::Dir;
use crate::spec::era::Era;
use crate::wire::json::Value;
use crate::wire::jsonrpc::Kind;

/// What was said in one process or session. On HTTP the modern requests of one upstream share one
/// (a server must not answer `server/discover` differently by connection).
#[derive(Debug, Clone, Default)]
pub struct Capabilities {
    /// The latest `initialize` request.
    asked: Option<Content>,
    /// The latest result of `initialize`.
    initialized: Option<Content>,
    /// The latest result of `server/discover`.
    discovered: Option<Content>,
}

impl Capabilities {
    /// `params` of the latest `initialize`: `protocolVersion`, `capabilities`, `clientInfo`.
    #[must_use]
    pub fn initialize(&self) -> Option<Value<'_>> {
        self.asked.as_ref()?.value().get("params")
    }

    /// The latest result of `initialize`: `protocolVersion`, `capabilities`, `serverInfo`,
    /// `instructions`.
    #[must_use]
    pub fn initialized(&self) -> Option<Value<'_>> {
        self.initialized.as_ref()?.value().get("result")
    }

    /// The latest result of `server/discover`: `supportedVersions`, `capabilities`, `instructions`.
    #[must_use]
    pub fn discovered(&self) -> Option<Value<'_>> {
        self.discovered.as_ref()?.value().get("result")
    }

    /// What the client can do, as its `initialize` says. A modern request says it for itself in its
    /// `_meta`.
    #[must_use]
    pub fn client(&self) -> Option<Value<'_>> {
        self.initialize()?.get("capabilities")
    }

    /// What the server can do in an era; `None`: it has not said so, which does not mean that it can
    /// do nothing.
    #[must_use]
    pub fn server(&self, era: Era) -> Option<Value<'_>> {
        let said = if era.is_modern() { self.discovered() } else { self.initialized() };
        said?.get("capabilities")
    }
}

impl Model {
    /// What was said about capabilities in a process or session.
    #[must_use]
    pub fn capabilities(&self, scope: ScopeIdx) -> Option<&Capabilities> {
        self.scope(scope).map(|scope| &scope.capabilities)
    }

    /// Keeps what a message says about capabilities.
    pub(super) fn note_capabilities(&mut self, kind: Kind, call: Option<CallIdx>, content: &Content) {
        let Some(call) = call.and_then(|idx| self.call(idx)).filter(|call| call.sender == Dir::C2s) else {
            return;
        };
        let (method, scope) = (call.method, call.scope);
        let Some(scope) = self.scope_mut(scope) else { return };
        let place = match (kind, method) {
            (Kind::Request, Name::INITIALIZE) => &mut scope.capabilities.asked,
            (Kind::Result, Name::INITIALIZE) => &mut scope.capabilities.initialized,
            (Kind::Result, Name::DISCOVER) => &mut scope.capabilities.discovered,
            _ => return,
        };
        *place = Some(content.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Dir::{C2s, S2c};
    use crate::model::script::Script;

    #[test]
    fn the_latest_word_counts_and_each_era_has_its_own() {
        let mut script = Script::default();
        script
            .line(0, C2s, r#"{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#)
            .line(1, S2c, r#"{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}}"#)
            .line(2, C2s, r#"{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}}}}"#)
            .line(3, S2c, r#"{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-11-25","capabilities":{"logging":{}}}}"#)
            .line(4, C2s, r#"{"jsonrpc":"2.0","id":3,"method":"initialize","params":{"capabilities":{}}}"#)
            .line(5, S2c, r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32600,"message":"no"}}"#);
        let model = script.fold();
        let said = model.capabilities(ScopeIdx(1)).unwrap();
        let raw = |value: Option<Value<'_>>| value.map(|value| value.raw().to_owned());
        assert_eq!(raw(said.server(Era::V2026_07_28)).as_deref(), Some(r#"{"tools":{}}"#));
        assert_eq!(raw(said.server(Era::V2025_11_25)).as_deref(), Some(r#"{"logging":{}}"#));
        assert_eq!(raw(said.client()).as_deref(), Some("{}"));
        assert_eq!(said.discovered().unwrap().get("supportedVersions").unwrap().len(), 1);
        let nothing = model.capabilities(ScopeIdx(0)).unwrap();
        assert!(nothing.client().is_none() && nothing.server(Era::V2025_11_25).is_none());
    }
}

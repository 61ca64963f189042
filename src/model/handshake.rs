//! How a session begins, and which eras its server has shown to speak.

use super::fold::At;
use super::message::Said;
use super::{CallIdx, Model, Name};
use crate::event::Dir;
use crate::spec::codes;
use crate::spec::era::Era;
use crate::time::Mono;
use crate::wire::jsonrpc::Kind;

/// The handshake of a legacy process or session, as far as it has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Handshake {
    /// The latest `initialize`.
    pub asked: Option<CallIdx>,
    /// When its result had been handed to the client; when it was read, where that is not known.
    pub answered: Option<Mono>,
    /// When `notifications/initialized` was read after it.
    pub initialized: Option<Mono>,
}

/// What the answers of a server prove. Neither: nothing is known; both: it serves either era, or it
/// contradicts itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Speaks {
    /// It gave a modern answer: a `resultType`, a discovery, or an error that only the modern era has.
    pub modern: bool,
    /// It answered `initialize`, or refused `server/discover` as one does who does not know it.
    pub legacy: bool,
}

impl Model {
    /// Keeps what a message says about the beginning of its session and about the eras of its server.
    pub(super) fn note_handshake(
        &mut self,
        at: At,
        kind: Kind,
        method: Option<Name>,
        call: Option<CallIdx>,
        said: &Said<'_>,
    ) {
        if kind == Kind::Notification {
            if method == Some(Name::INITIALIZED)
                && at.dir == Dir::C2s
                && let Some(scope) = self.scope_mut(at.scope)
            {
                scope.handshake.initialized.get_or_insert(at.now);
            }
            return;
        }
        let Some((idx, call)) = call.and_then(|idx| Some((idx, self.call(idx)?))) else { return };
        if call.sender != Dir::C2s {
            return;
        }
        let (method, is_modern) = (call.method, call.era.is_some_and(Era::is_modern));
        let scope = call.scope;
        let Some(scope) = self.scope_mut(scope) else { return };
        match kind {
            Kind::Request if method == Name::INITIALIZE => {
                scope.handshake = Handshake { asked: Some(idx), ..Handshake::default() };
            }
            Kind::Result if method == Name::INITIALIZE => {
                scope.speaks.legacy = true;
                if scope.handshake.asked == Some(idx) {
                    scope.handshake.answered.get_or_insert(at.out.unwrap_or(at.now));
                }
            }
            Kind::Result => {
                scope.speaks.modern |= method == Name::DISCOVER || (is_modern && said.result_type.is_some());
            }
            Kind::Error if said.code.is_some_and(is_modern_code) => scope.speaks.modern = true,
            Kind::Error => scope.speaks.legacy |= method == Name::DISCOVER,
            _ => {}
        }
    }

    /// An HTTP status without a message has refused a call. For a discovery that is how a legacy server
    /// sounds (docs/semantics.md, eras); a status of 500 and more is an outage and proves nothing.
    pub(super) fn note_refused(&mut self, idx: CallIdx, status: Option<u16>) {
        let Some(call) = self.call(idx).filter(|call| call.method == Name::DISCOVER) else { return };
        let scope = call.scope;
        if matches!(status, Some(400 | 404 | 405))
            && let Some(scope) = self.scope_mut(scope)
        {
            scope.speaks.legacy = true;
        }
    }
}

/// An error code that no legacy era has.
fn is_modern_code(code: i64) -> bool {
    codes::Code::find(code).is_some_and(|known| known.since.is_modern())
}

#[cfg(test)]
mod tests {
    use crate::event::Dir::{C2s, S2c};
    use crate::model::script::Script;
    use crate::model::{ScopeIdx, Speaks};
    use crate::time::Mono;

    const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;

    #[test]
    fn what_a_server_speaks_is_proved_by_its_answers_only() {
        let modern = Speaks { modern: true, legacy: false };
        let legacy = Speaks { modern: false, legacy: true };
        // Method asked, answer, what is proved.
        let cases = [
            ("server/discover", r#""result":{"supportedVersions":[]}"#, modern),
            ("server/discover", r#""error":{"code":-32601,"message":"no"}"#, legacy),
            ("server/discover", r#""error":{"code":-32022,"message":"no"}"#, modern),
            ("tools/list", r#""result":{"tools":[]}"#, Speaks::default()),
            ("tools/list", r#""result":{"tools":[],"resultType":"complete"}"#, modern),
            ("tools/list", r#""error":{"code":-32602,"message":"no"}"#, Speaks::default()),
            ("initialize", r#""result":{"protocolVersion":"2025-11-25"}"#, legacy),
            ("initialize", r#""error":{"code":-32601,"message":"no"}"#, Speaks::default()),
        ];
        for (method, answer, want) in cases {
            let mut script = Script::default();
            let request = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{META}}}}}"#);
            script.line(0, C2s, &request);
            script.line(1, S2c, &format!(r#"{{"jsonrpc":"2.0","id":1,{answer}}}"#));
            let model = script.fold();
            assert_eq!(model.scope(ScopeIdx(1)).unwrap().speaks, want, "{method} {answer}");
        }
    }

    #[test]
    fn a_handshake_has_three_steps_and_a_new_initialize_begins_again() {
        let mut script = Script::default();
        let initialize = |id: u64| {
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"initialize","params":{{"protocolVersion":"2025-11-25"}}}}"#
            )
        };
        script.line(0, C2s, &initialize(1));
        script.line(5, S2c, r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25"}}"#);
        script.line(7, C2s, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        let done = script.fold().scope(ScopeIdx(1)).unwrap().handshake;
        assert_eq!((done.answered, done.initialized), (Some(Mono(5_000_000)), Some(Mono(7_000_000))));
        script.line(9, C2s, &initialize(2));
        let again = script.fold().scope(ScopeIdx(1)).unwrap().handshake;
        assert_eq!((again.answered, again.initialized), (None, None));
        assert_ne!(again.asked, done.asked);
    }
}

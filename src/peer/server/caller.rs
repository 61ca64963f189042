//! Who asks: what comes with a request beside what it is about.

use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::message::{Refusal, Request, VERSION};
use super::questions::Questions;
use crate::spec::era::Era;
use crate::spec::logging::Level;
use crate::spec::transport::Transport;
use crate::spec::{codes, meta, methods};
use crate::wire::jsonrpc::{self, Id};

/// The client of one request. A modern one is read from the request alone, a legacy one from its
/// session too.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    /// The revision by whose rules the request is served.
    pub(super) era: Era,
    /// That revision as the client names it.
    pub(super) version: String,
    /// What the client declares that it can do.
    pub(super) capabilities: Map<String, Value>,
    /// Name and version of the client; unverified.
    pub(super) client_info: Option<Value>,
    /// The level from which log messages are wanted; `None`: none are.
    pub(super) log_level: Option<Level>,
    /// The token under which progress is wanted.
    pub(super) token: Option<Id>,
    /// On whose behalf, as the transport knows it: the value of `Authorization`, or the legacy
    /// session; `None`: nobody in particular.
    pub(super) principal: Option<String>,
    /// How the client is joined to the server.
    pub(super) transport: Transport,
    /// The client's end of the connection; `None` on pipes.
    pub(super) peer: Option<SocketAddr>,
    /// How the client is asked something while its request runs; `None`: only by an answer that
    /// asks (the modern era).
    pub(super) questions: Option<Arc<Questions>>,
    /// It comes back for the rest when it is let go in the middle of an answer.
    pub(super) comes_back: bool,
}

impl Caller {
    /// The caller of a modern request, from its `_meta` (MET-01, MET-02, MET-11).
    pub(super) fn modern(request: &Request, transport: Transport) -> Result<Caller, Refusal> {
        let refuse = |text: &str| Refusal::new(Some(&request.id), codes::INVALID_PARAMS, text);
        let Some(version) = request.string_at(&["_meta", meta::PROTOCOL_VERSION]) else {
            if request.method == methods::INITIALIZE {
                // A client of an older revision: say which there is (VER-10).
                return Err(request.unsupported(&request.string_at(&["protocolVersion"]).unwrap_or_default()));
            }
            return Err(refuse("_meta lacks io.modelcontextprotocol/protocolVersion (string)"));
        };
        let version = version.into_owned();
        let capabilities = request.object_at(&["_meta", meta::CLIENT_CAPABILITIES]);
        let capabilities = capabilities
            .ok_or_else(|| refuse("_meta lacks io.modelcontextprotocol/clientCapabilities (object)"))?;
        let token = request.progress_token()?;
        let log_level = match request.at(&["_meta", meta::LOG_LEVEL]) {
            None => None,
            Some(raw) => Some(
                jsonrpc::string(raw)
                    .and_then(|name| Level::from_name(&name))
                    .ok_or_else(|| refuse("the log level is none of the eight"))?,
            ),
        };
        Ok(Caller {
            era: VERSION,
            version,
            capabilities,
            client_info: request.value_at(&["_meta", meta::CLIENT_INFO]),
            log_level,
            token,
            principal: None,
            transport,
            peer: None,
            questions: None,
            comes_back: false,
        })
    }

    /// The client declares the capability at this path of names.
    pub(super) fn can(&self, path: &[&str]) -> bool {
        let Some((first, rest)) = path.split_first() else { return true };
        let first = self.capabilities.get(*first);
        let found = rest.iter().try_fold(first, |value, name| value.map(|value| value.get(*name)));
        found.flatten().is_some_and(Value::is_object)
    }

    /// Forms may be asked for: `elicitation` alone means forms, and only forms (protocol: client capabilities).
    pub(super) fn can_fill_forms(&self) -> bool {
        self.can(&["elicitation", "form"])
            || (self.can(&["elicitation"]) && !self.can(&["elicitation", "url"]))
    }
}

/// The refusal of a request that needs what its client does not declare (MET-13); `paths`: all
/// that is missing.
pub(super) fn missing_capabilities(id: &Id, paths: &[Vec<&str>]) -> Refusal {
    let mut required = json!({});
    for path in paths {
        let mut place = &mut required;
        for name in path {
            place = &mut place[*name];
            if place.is_null() {
                *place = json!({});
            }
        }
    }
    let names: Vec<String> = paths.iter().map(|path| path.join(".")).collect();
    let text = format!("this needs the client capability {}", names.join(", "));
    Refusal::new(Some(id), codes::MISSING_REQUIRED_CLIENT_CAPABILITY, text)
        .with_data(json!({ "requiredCapabilities": required }))
}

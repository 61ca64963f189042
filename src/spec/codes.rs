//! Error codes: their names, who may use them, and the HTTP status that goes with them.
//!
//! Source: spec 2026-07-28 `basic/index#error-codes` and the error types of its schema.

use super::era::Era;

/// Invalid JSON.
pub const PARSE_ERROR: i64 = -32700;
/// JSON, but no request object.
pub const INVALID_REQUEST: i64 = -32600;
/// The method does not exist, or stands behind a capability that the server does not advertise.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// Wrong parameters: missing `_meta`, unknown tool, prompt, resource, cursor or task.
pub const INVALID_PARAMS: i64 = -32602;
/// A fault inside the receiver.
pub const INTERNAL_ERROR: i64 = -32603;
/// Mirrored HTTP headers are missing or contradict the body.
pub const HEADER_MISMATCH: i64 = -32020;
/// The request needs a client capability that it does not declare;
/// `data.requiredCapabilities` says which.
pub const MISSING_REQUIRED_CLIENT_CAPABILITY: i64 = -32021;
/// The protocol version is not spoken here; `data.supported` and `data.requested`.
pub const UNSUPPORTED_PROTOCOL_VERSION: i64 = -32022;
/// Legacy eras: no such resource. Retired in 2026-07-28 (RPC-16).
pub const RESOURCE_NOT_FOUND: i64 = -32002;
/// 2025-11-25 only: the user must visit a URL first. Retired in 2026-07-28 (RPC-16).
pub const URL_ELICITATION_REQUIRED: i64 = -32042;

/// What the specification makes of a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CodeClass {
    /// Defined by JSON-RPC 2.0.
    JsonRpc,
    /// Defined by MCP for this era.
    Mcp,
    /// Defined by MCP for other eras than this (RPC-16).
    OtherEra,
    /// -32000..=-32019, bounds included: no meaning may be read into it, not to be used newly
    /// (RPC-15).
    LegacyRange,
    /// -32020..=-32099: reserved for MCP, which does not define it (RPC-14).
    ReservedForMcp,
    /// -32768..=-32000 otherwise: reserved by JSON-RPC (RPC-17).
    ReservedForJsonRpc,
    /// Outside all of these: the application's own.
    Application,
}

/// One defined code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code {
    /// The number in `error.code`.
    pub code: i64,
    /// Its name in the specification.
    pub name: &'static str,
    /// The first era that defines it.
    pub since: Era,
    /// The last era that defines it; `None`: still defined.
    pub until: Option<Era>,
    /// The HTTP status that a modern server answers it with; `None`: not fixed. For
    /// `INVALID_PARAMS` it holds for missing `_meta` only.
    pub status: Option<u16>,
}

/// Every defined code.
pub const ALL: [Code; 10] = [
    always(PARSE_ERROR, "parse error", None),
    always(INVALID_REQUEST, "invalid request", None),
    always(METHOD_NOT_FOUND, "method not found", Some(404)),
    always(INVALID_PARAMS, "invalid params", Some(400)),
    always(INTERNAL_ERROR, "internal error", None),
    modern(HEADER_MISMATCH, "HeaderMismatch"),
    modern(MISSING_REQUIRED_CLIENT_CAPABILITY, "MissingRequiredClientCapability"),
    modern(UNSUPPORTED_PROTOCOL_VERSION, "UnsupportedProtocolVersion"),
    Code {
        code: RESOURCE_NOT_FOUND,
        name: "resource not found",
        since: Era::V2024_11_05,
        until: Some(Era::V2025_11_25),
        status: None,
    },
    Code {
        code: URL_ELICITATION_REQUIRED,
        name: "URL elicitation required",
        since: Era::V2025_11_25,
        until: Some(Era::V2025_11_25),
        status: None,
    },
];

const fn always(code: i64, name: &'static str, status: Option<u16>) -> Code {
    Code { code, name, since: Era::V2024_11_05, until: None, status }
}

const fn modern(code: i64, name: &'static str) -> Code {
    Code { code, name, since: Era::V2026_07_28, until: None, status: Some(400) }
}

impl Code {
    /// The definition of a code, in whatever era.
    #[must_use]
    pub fn find(code: i64) -> Option<&'static Code> {
        ALL.iter().find(|known| known.code == code)
    }

    /// This era defines it.
    #[must_use]
    pub fn is_of(&self, era: Era) -> bool {
        self.since <= era && self.until.is_none_or(|until| era <= until)
    }
}

/// The name of a code for people; `None` where no era defines it.
#[must_use]
pub fn name(code: i64) -> Option<&'static str> {
    Code::find(code).map(|known| known.name)
}

/// What an era makes of a code.
#[must_use]
pub fn class(code: i64, era: Era) -> CodeClass {
    match Code::find(code) {
        Some(known) if !known.is_of(era) => CodeClass::OtherEra,
        Some(_) if code == PARSE_ERROR || (INTERNAL_ERROR..=INVALID_REQUEST).contains(&code) => {
            CodeClass::JsonRpc
        }
        Some(_) => CodeClass::Mcp,
        None if (-32019..=-32000).contains(&code) => CodeClass::LegacyRange,
        None if (-32099..=-32020).contains(&code) => CodeClass::ReservedForMcp,
        None if (-32768..=-32000).contains(&code) => CodeClass::ReservedForJsonRpc,
        None => CodeClass::Application,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_belongs_to_the_class_that_the_era_gives_it() {
        use CodeClass::*;
        let (old, modern) = (Era::V2025_11_25, Era::V2026_07_28);
        let cases = [
            (-32700, modern, JsonRpc),
            (-32600, old, JsonRpc),
            (-32603, modern, JsonRpc),
            (-32020, modern, Mcp),
            (-32021, modern, Mcp),
            (-32022, modern, Mcp),
            (-32020, old, OtherEra),
            (-32002, old, Mcp),
            (-32002, modern, OtherEra),
            (-32042, old, Mcp),
            (-32042, Era::V2025_06_18, OtherEra),
            (-32042, modern, OtherEra),
            (-32000, modern, LegacyRange),
            (-32001, old, LegacyRange),
            (-32019, modern, LegacyRange),
            (-32023, modern, ReservedForMcp),
            (-32099, modern, ReservedForMcp),
            (-32100, modern, ReservedForJsonRpc),
            (-32800, modern, Application),
            (-32768, modern, ReservedForJsonRpc),
            (-32769, modern, Application),
            (0, modern, Application),
            (7, old, Application),
            (i64::MIN, old, Application),
        ];
        for (code, era, want) in cases {
            assert_eq!(class(code, era), want, "{code} in {}", era.as_str());
        }
    }

    #[test]
    fn every_code_is_listed_once_and_has_its_name() {
        for (idx, code) in ALL.iter().enumerate() {
            assert_eq!(ALL.iter().position(|c| c.code == code.code), Some(idx));
            assert_eq!(name(code.code), Some(code.name));
            assert!(ALL.iter().all(|c| c.code == code.code || c.name != code.name));
        }
        assert_eq!(name(-32000), None);
        assert_eq!(Code::find(UNSUPPORTED_PROTOCOL_VERSION).and_then(|c| c.status), Some(400));
        assert_eq!(Code::find(METHOD_NOT_FOUND).and_then(|c| c.status), Some(404));
    }
}

//! What every message has, and examples leave out.

use super::Options;
use crate::event::{Dir, Transport};
use crate::spec::era::Era;
use crate::spec::{headers, meta};

/// Where the object of `_meta` begins.
const META: &str = "\"_meta\":{";

/// The session of a legacy era on HTTP.
const SESSION: &str = "session-1";

/// What the peers of an example are like.
pub(super) struct Dress {
    pub transport: Transport,
    pub era: Era,
    /// Only `jsonrpc` is added.
    pub is_bare: bool,
    /// What the client can do, as JSON.
    pub client: String,
    /// What the server says it can do, as JSON.
    pub server: Option<String>,
    /// Methods of the client's requests by id, as JSON.
    methods: Vec<(String, String)>,
}

impl Dress {
    pub(super) fn new(transport: Transport) -> Dress {
        Dress {
            transport,
            era: Era::V2026_07_28,
            is_bare: false,
            client: "{}".to_owned(),
            server: None,
            methods: Vec::new(),
        }
    }

    /// Lines before the first one: the handshake of a legacy era; in the modern era a discovery, where
    /// it matters what the server says it can do.
    pub(super) fn handshake(&mut self) -> Vec<String> {
        if self.is_bare {
            return Vec::new();
        }
        let era = self.era.as_str();
        let steps = if self.era.is_modern() {
            let Some(server) = self.server.clone() else { return Vec::new() };
            vec![
                (true, r#"{"id":"discover","method":"server/discover"}"#.to_owned()),
                (
                    false,
                    format!(
                        r#"{{"id":"discover","result":{{"supportedVersions":["{era}"],"capabilities":{server}}}}}"#
                    ),
                ),
            ]
        } else {
            let all = r#"{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"prompts":{"listChanged":true},"logging":{},"completions":{}}"#;
            let server = self.server.clone().unwrap_or_else(|| all.to_owned());
            let client = &self.client;
            vec![
                (
                    true,
                    format!(
                        r#"{{"id":"init","method":"initialize","params":{{"protocolVersion":"{era}","capabilities":{client},"clientInfo":{{"name":"client","version":"1"}}}}}}"#
                    ),
                ),
                (
                    false,
                    format!(
                        r#"{{"id":"init","result":{{"protocolVersion":"{era}","capabilities":{server},"serverInfo":{{"name":"server","version":"1"}}}}}}"#
                    ),
                ),
                (true, r#"{"method":"notifications/initialized"}"#.to_owned()),
            ]
        };
        if self.transport == Transport::Stdio {
            let line =
                |(is_client, text): (bool, String)| format!("0 {} {text}", if is_client { ">" } else { "<" });
            return steps.into_iter().map(line).collect();
        }
        let mut lines = Vec::new();
        for (is_client, text) in steps {
            if text.contains("\"initialize\"") {
                lines.push(format!("0 1001> [-mcp-session-id;-mcp-protocol-version] {text}"));
            } else if is_client && text.contains("initialized") {
                lines.push(format!("0 1002> {text}"));
                lines.push("0 1002< 202".to_owned());
            } else if is_client {
                lines.push(format!("0 1001> {text}"));
            } else if self.has_session() {
                lines.push(format!("0 1001< [mcp-session-id: {SESSION}] 200 json {text}"));
            } else {
                lines.push(format!("0 1001< 200 json {text}"));
            }
        }
        lines
    }

    fn has_session(&self) -> bool {
        self.era >= Era::V2025_03_26 && !self.era.is_modern()
    }

    /// A message with what it lacks.
    pub(super) fn message(&mut self, text: &str, dir: Dir, options: &Options) -> Option<String> {
        if !text.starts_with('{') {
            return Some(text.to_owned());
        }
        let mut text = text.to_owned();
        if !text.contains("\"jsonrpc\"") {
            insert(&mut text, 0, r#""jsonrpc":"2.0""#)?;
        }
        if self.is_bare || !self.era.is_modern() {
            return Some(text);
        }
        let method = member(&text, "method");
        let id = member(&text, "id");
        match (dir, method, id) {
            (Dir::C2s, Some(method), Some(id)) => {
                if method != "initialize" && !options.drops("meta") {
                    self.add_meta(&mut text)?;
                }
                self.methods.push((id, method));
            }
            (Dir::S2c, None, Some(id)) => self.add_to_result(&mut text, &id, options)?,
            _ => {}
        }
        Some(text)
    }

    fn add_meta(&self, text: &mut String) -> Option<()> {
        if find_member(text, "params").is_none() {
            let end = text.rfind('}')?;
            text.insert_str(end, r#","params":{}"#);
        }
        let params = find_member(text, "params")?;
        if !text.get(params..)?.contains(META) {
            insert(text, params, r#""_meta":{}"#)?;
        }
        let meta = params + text.get(params..)?.find(META)? + META.len() - 1;
        if !text.contains(meta::CLIENT_CAPABILITIES) {
            insert(text, meta, &format!(r#""{}":{}"#, meta::CLIENT_CAPABILITIES, self.client))?;
        }
        if !text.contains(meta::PROTOCOL_VERSION) {
            insert(text, meta, &format!(r#""{}":"{}""#, meta::PROTOCOL_VERSION, self.era.as_str()))?;
        }
        Some(())
    }

    fn add_to_result(&self, text: &mut String, id: &str, options: &Options) -> Option<()> {
        let Some(result) = find_member(text, "result") else { return Some(()) };
        let method =
            self.methods.iter().rev().find(|(known, _)| known == id).map(|(_, method)| method.as_str());
        let is_cached = matches!(
            method,
            Some(
                "server/discover"
                    | "tools/list"
                    | "prompts/list"
                    | "resources/list"
                    | "resources/templates/list"
                    | "resources/read"
            )
        ) && !text.contains("input_required");
        if is_cached && !options.drops("cache") {
            if !text.contains("\"cacheScope\"") {
                insert(text, result, r#""cacheScope":"private""#)?;
            }
            if !text.contains("\"ttlMs\"") {
                insert(text, result, r#""ttlMs":60000"#)?;
            }
        }
        if !text.contains("\"resultType\"") && !options.drops("type") {
            insert(text, result, r#""resultType":"complete""#)?;
        }
        Some(())
    }

    /// Header fields of a request with this body.
    pub(super) fn headers(&self, method: &str, body: &[u8]) -> Vec<(String, String)> {
        let mut fields = Vec::new();
        let mut add = |name: &str, value: &str| fields.push((name.to_owned(), value.to_owned()));
        if self.is_bare {
            return fields;
        }
        if body.is_empty() {
            add("accept", "text/event-stream");
        } else {
            add("accept", "application/json, text/event-stream");
            add("content-type", "application/json");
        }
        let text = String::from_utf8_lossy(body);
        if self.has_session() {
            add("mcp-session-id", SESSION);
        }
        if self.era >= Era::V2025_06_18 {
            add("mcp-protocol-version", self.era.as_str());
        }
        if self.era.is_modern()
            && method == "POST"
            && let Some(method) = member(&text, "method")
        {
            add("mcp-method", &method);
            let params = member(&text, "params").unwrap_or_default();
            let name = headers::name_member(&method).and_then(|name| member(&params, name));
            if let Some(name) = name {
                add("mcp-name", &headers::encode(&name));
            }
        }
        fields
    }

    /// Header fields of an answer.
    pub(super) fn answer_headers(&self, content_type: Option<&str>) -> Vec<(String, String)> {
        let mut fields = Vec::new();
        if let Some(kind) = content_type {
            fields.push(("content-type".to_owned(), kind.to_owned()));
            if kind == "text/event-stream" && !self.is_bare {
                fields.push(("cache-control".to_owned(), "no-cache".to_owned()));
                fields.push(("x-accel-buffering".to_owned(), "no".to_owned()));
            }
        }
        fields
    }
}

/// Puts a member first into the object that begins at `at`.
fn insert(text: &mut String, at: usize, member: &str) -> Option<()> {
    let is_empty = text.get(at + 1..)?.trim_start().starts_with('}');
    text.insert_str(at + 1, &if is_empty { member.to_owned() } else { format!("{member},") });
    Some(())
}

/// A member of the outermost object: a string as its text, anything else as JSON.
fn member(text: &str, name: &str) -> Option<String> {
    let document = crate::wire::json::Document::new(bytes::Bytes::copy_from_slice(text.as_bytes()))?;
    let value = document.root().get(name)?;
    Some(value.text().map_or_else(
        || value.raw().to_owned(),
        |text| if name == "id" { value.raw().to_owned() } else { text.into_owned() },
    ))
}

/// Where the object begins that is a member of the outermost object.
fn find_member(text: &str, name: &str) -> Option<usize> {
    let document = crate::wire::json::Document::new(bytes::Bytes::copy_from_slice(text.as_bytes()))?;
    let value = document.root().get(name).filter(|value| value.is_object())?;
    Some(value.span().start)
}

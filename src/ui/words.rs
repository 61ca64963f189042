//! Words for what the model knows, the same on every screen.

use super::ink::{Glyphs, Ink};
use crate::config::theme::Role;
use crate::event::{Dir, Transport};
use crate::model::{Model, Row, RowKind};

/// What a row is, in a word or two.
#[must_use]
pub(super) fn kind(kind: RowKind) -> &'static str {
    match kind {
        RowKind::Request => "request",
        RowKind::Notification => "notification",
        RowKind::Progress => "progress",
        RowKind::Cancelled => "cancel",
        RowKind::Result => "result",
        RowKind::Error => "error",
        RowKind::Invalid => "invalid",
        RowKind::SseComment => "comment",
        RowKind::SseOther => "sse event",
        RowKind::HttpRequest => "http request",
        RowKind::HttpHead => "http head",
        RowKind::HttpBody => "body",
        RowKind::Stderr => "stderr",
        RowKind::ClientClosed => "client left",
        RowKind::ServerClosed => "server end",
        RowKind::Process => "process",
        RowKind::Queue => "queue",
        RowKind::Inject => "midwire did",
        RowKind::Telemetry => "telemetry",
        RowKind::Gap => "GAP",
        RowKind::Mark => "note",
        RowKind::Note => "capture",
    }
}

/// How a row looks.
#[must_use]
pub(super) fn kind_role(row: &Row) -> Role {
    match row.kind {
        _ if row.is_ours => Role::Midwire,
        RowKind::Request | RowKind::HttpRequest => Role::Client,
        RowKind::Result => Role::Ok,
        RowKind::Error | RowKind::Invalid | RowKind::Gap => Role::Error,
        RowKind::Progress => Role::Progress,
        RowKind::Cancelled | RowKind::ClientClosed => Role::Cancelled,
        RowKind::ServerClosed | RowKind::Stderr => Role::Warn,
        RowKind::Notification | RowKind::HttpBody => Role::Text,
        RowKind::Inject | RowKind::Telemetry | RowKind::Mark => Role::Midwire,
        RowKind::SseComment
        | RowKind::SseOther
        | RowKind::HttpHead
        | RowKind::Process
        | RowKind::Queue
        | RowKind::Note => Role::Muted,
    }
}

/// Which way a row went: a glyph and a role.
#[must_use]
pub(super) fn direction(dir: Dir, glyphs: &Glyphs) -> (char, Role) {
    match dir {
        Dir::C2s => (glyphs.c2s, Role::Client),
        Dir::S2c => (glyphs.s2c, Role::Server),
        Dir::Stderr => ('e', Role::Warn),
        Dir::Tap => (glyphs.dot, Role::Midwire),
    }
}

/// How the peers are joined.
#[must_use]
pub(super) fn transport(transport: Option<Transport>) -> &'static str {
    match transport {
        Some(Transport::Stdio) => "stdio",
        Some(Transport::Http) => "http",
        None => "",
    }
}

/// What a row is about: method and detail.
#[must_use]
pub(super) fn subject(model: &Model, row: &Row, ink: &Ink<'_>) -> String {
    // What a row is stands before this, so a method that says the same again is left out.
    let is_said = row.kind == RowKind::Progress && row.detail.is_some();
    let method = row.method.filter(|_| !is_said).map(|name| model.text(name));
    let detail = row.detail.map(|name| model.text(name));
    let text = match (method, detail) {
        (Some(method), Some(detail)) => format!("{method} {detail}"),
        (Some(text), None) | (None, Some(text)) => text.to_owned(),
        (None, None) => String::new(),
    };
    ink.charset.clean(&text).into_owned()
}

/// A method short enough for a narrow list: `tools/call` is `call` where a target tells the rest.
#[must_use]
pub(super) fn short_method(method: &str) -> &str {
    match method {
        "tools/call" => "call",
        "resources/read" => "read",
        "prompts/get" => "prompt",
        "subscriptions/listen" => "listen",
        other => other,
    }
}

//! The events of one row, read for a person: bytes, message text, heads, facts.

use bytes::Bytes;

use crate::event::{Close, Event, Headers, What};
use crate::model::{Row, bytes_of};
use crate::ui::units;
use crate::wire::sse::{EVENT_LIMIT_BYTES, SseDecoder};

/// What a row holds.
#[derive(Debug, Clone, Default)]
pub(super) struct Content {
    /// Its exact bytes; where the body was encoded, decoded.
    pub(super) bytes: Bytes,
    /// The message in them: the line, the body, or the data of the SSE event.
    pub(super) text: String,
    /// The head of an HTTP request or answer.
    pub(super) head: Option<Head>,
    /// What the events say beside their bytes: name and value.
    pub(super) facts: Vec<(&'static str, String)>,
}

/// The head of an HTTP message.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Head {
    /// `POST /mcp`, or `200`.
    pub(super) line: String,
    /// The fields.
    pub(super) headers: Headers,
}

impl Content {
    /// Reads the events of a row.
    pub(super) fn read(row: &Row, events: &[Event]) -> Content {
        let bytes = bytes_of(row, events);
        let is_sse = events.iter().any(|event| matches!(event.what, What::SseChunk(_)));
        let message = if is_sse { sse_data(&bytes) } else { bytes.clone() };
        let text = String::from_utf8_lossy(&message).into_owned();
        let own = events.iter().filter(|event| event.dir == row.dir && event.stream == row.stream);
        let mut content = Content { bytes, text, ..Content::default() };
        for event in own {
            match &event.what {
                What::Request(head) => {
                    let line = format!("{} {}", head.method, head.path);
                    content.head = Some(Head { line, headers: head.headers.clone() });
                }
                What::ResponseHead { status, headers } => {
                    content.head = Some(Head { line: status.to_string(), headers: headers.clone() });
                }
                what => content.facts.extend(facts(what)),
            }
        }
        content
    }
}

/// The data of the SSE event in a block; for a block without data, nothing.
fn sse_data(block: &Bytes) -> Bytes {
    let mut decoder = SseDecoder::new(EVENT_LIMIT_BYTES);
    let mut events = decoder.push(block);
    events.extend(decoder.finish());
    events.into_iter().find_map(|event| event.data).unwrap_or_default()
}

/// What an event without bytes says.
fn facts(what: &What) -> Vec<(&'static str, String)> {
    match what {
        What::ClientClosed { how } => vec![("client closed", close(*how).to_owned())],
        What::ServerClosed { how, exit_code, signal } => {
            let mut facts = vec![("server closed", close(*how).to_owned())];
            facts.extend(exit_code.map(|code| ("exit status", code.to_string())));
            facts.extend(signal.map(|signal| ("ended by signal", signal.to_string())));
            facts
        }
        What::Spawn { pid, command } => vec![("pid", pid.to_string()), ("command", command.join(" "))],
        What::Signal { signal, why } => vec![("signal", signal.clone()), ("why", why.clone())],
        What::Queue(queue) => vec![
            ("events waiting", queue.events.to_string()),
            ("bytes waiting", units::size(queue.bytes)),
            ("capacity", queue.capacity.map_or("no limit".to_owned(), |n| n.to_string())),
            ("coalesced", queue.coalesced.to_string()),
            ("evicted", queue.evicted.to_string()),
            ("discarded", queue.discarded.to_string()),
            ("refused", queue.refused.to_string()),
            ("held back", format!("{} ms", queue.blocked_ms)),
        ],
        What::Inject { what, target, by, cause, .. } => {
            let mut facts = vec![("done", what.clone()), ("to", target.clone()), ("asked by", by.clone())];
            facts.extend(cause.clone().map(|cause| ("why", cause)));
            facts
        }
        What::Gap { lost, bytes, why } => {
            vec![("events lost", lost.to_string()), ("bytes lost", units::size(*bytes)), ("why", why.clone())]
        }
        What::Mark(text) => vec![("note", text.clone())],
        What::Clock { wall } => vec![("wall time", wall.clone())],
        What::Redact { rules, hits } => {
            vec![("secrets masked", hits.to_string()), ("rules", rules.join(", "))]
        }
        What::CaptureEnd { events, complete } => vec![
            ("events", events.map_or("not said".to_owned(), |n| n.to_string())),
            ("complete", complete.map_or("not said", |is| if is { "yes" } else { "no" }).to_owned()),
        ],
        What::Unknown { event } => vec![("unknown event", event.clone())],
        _ => Vec::new(),
    }
}

fn close(how: Option<Close>) -> &'static str {
    match how {
        None => "in a manner not known",
        Some(Close::Eof) => "in order",
        Some(Close::HalfClose) => "its sending side only",
        Some(Close::Reset) => "by reset",
        Some(Close::Timeout) => "by a time limit",
    }
}

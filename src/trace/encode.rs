//! Event → one line. The bytes are written directly, member by member in a fixed order, so the
//! same event always gives the same line.

use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::value::RawValue;

use super::escape::{push_ms, push_number, push_string};
use super::words;
use crate::event::{Event, Headers, Queue, RequestHead, What};
use crate::time::Mono;

/// Appends the line of an event, with its line end.
pub fn encode_event(event: &Event, out: &mut Vec<u8>) {
    let mut line = Line { out };
    line.out.extend_from_slice(b"{\"n\":");
    push_number(line.out, event.n);
    line.ms("t_ms", event.at);
    if let Some(at) = event.out {
        line.ms("out_ms", at);
    }
    line.word("dir", words::dir(event.dir));
    line.word("transport", event.transport.as_str());
    line.optional("stream", event.stream);
    line.optional("conn", event.conn);
    line.what(&event.what);
    line.out.extend_from_slice(b"}\n");
}

/// A line under construction.
struct Line<'a> {
    out: &'a mut Vec<u8>,
}

impl Line<'_> {
    fn what(&mut self, what: &What) {
        match what {
            What::Bytes { bytes, read } => {
                self.optional("read", *read);
                self.bytes("raw", bytes);
            }
            What::Request(head) => self.request(head),
            What::ResponseHead { status, headers } => {
                self.event("response_head");
                self.number("status", u64::from(*status));
                self.headers(headers);
            }
            What::SseChunk(bytes) => {
                self.event("sse_chunk");
                self.bytes("raw", bytes);
            }
            What::Body(bytes) => {
                self.event("body");
                self.bytes("raw", bytes);
            }
            What::ClientClosed { how } => {
                self.event("client_closed");
                self.how(*how);
            }
            What::ServerClosed { how, exit_code, signal } => {
                self.event("server_closed");
                self.how(*how);
                self.signed("exit_code", *exit_code);
                self.signed("signal", *signal);
            }
            told => self.told(told),
        }
    }

    /// What the tap itself has to say.
    fn told(&mut self, what: &What) {
        match what {
            What::Spawn { pid, command } => {
                self.event("spawn");
                self.number("pid", u64::from(*pid));
                self.texts("command", command);
            }
            What::Signal { signal, why } => {
                self.event("signal");
                self.text("signal", signal);
                self.text("why", why);
            }
            What::Queue(queue) => self.queue(queue),
            What::Inject { what, target, by, cause, sent } => {
                self.event("inject");
                self.text("what", what);
                self.text("target", target);
                self.text("by", by);
                if let Some(cause) = cause {
                    self.text("cause", cause);
                }
                if let Some(sent) = sent {
                    self.bytes("raw", sent);
                }
            }
            What::Telemetry(json) => self.telemetry(json),
            What::Gap { lost, bytes, why } => {
                self.event("gap");
                self.number("lost", *lost);
                self.number("bytes", *bytes);
                self.text("why", why);
            }
            What::Mark(text) => {
                self.event("mark");
                self.text("text", text);
            }
            What::Clock { wall } => {
                self.event("clock");
                self.text("wall", wall);
            }
            What::Redact { rules, hits } => {
                self.event("redact");
                self.texts("rules", rules);
                self.number("hits", *hits);
            }
            What::CaptureEnd { events, complete } => {
                self.event("capture_end");
                self.optional("events", *events);
                if let Some(complete) = complete {
                    self.name("complete");
                    self.out.extend_from_slice(if *complete { b"true" } else { b"false" });
                }
            }
            What::Unknown { event } => self.text("event", event),
            What::Bytes { .. }
            | What::Request(_)
            | What::ResponseHead { .. }
            | What::SseChunk(_)
            | What::Body(_)
            | What::ClientClosed { .. }
            | What::ServerClosed { .. } => unreachable!("written by `what`"),
        }
    }

    fn request(&mut self, head: &RequestHead) {
        self.event("request");
        self.text("method", &head.method);
        self.text("path", &head.path);
        self.headers(&head.headers);
        if let Some(body) = &head.body {
            self.bytes("body", body);
        }
    }

    fn queue(&mut self, queue: &Queue) {
        self.event("queue");
        self.number("events", queue.events);
        self.number("bytes", queue.bytes);
        self.optional("capacity", queue.capacity);
        self.number("coalesced", queue.coalesced);
        self.number("evicted", queue.evicted);
        self.number("discarded", queue.discarded);
        self.number("refused", queue.refused);
        self.number("blocked_ms", queue.blocked_ms);
    }

    /// A JSON object on one line is written as it is, anything else as a string.
    fn telemetry(&mut self, json: &str) {
        self.event("telemetry");
        let is_plain = json.starts_with('{')
            && json.ends_with('}')
            && !json.contains(['\n', '\r'])
            && serde_json::from_str::<&RawValue>(json).is_ok();
        if is_plain {
            self.name("data");
            self.out.extend_from_slice(json.as_bytes());
        } else {
            self.text("data", json);
        }
    }

    /// Names in the order of their first appearance; a repeated one holds an array.
    fn headers(&mut self, headers: &Headers) {
        self.name("headers");
        self.out.push(b'{');
        let fields = headers.0.as_slice();
        let mut is_first = true;
        for (idx, (name, value)) in fields.iter().enumerate() {
            let (before, after) = (&fields[..idx], &fields[idx + 1..]);
            if before.iter().any(|(earlier, _)| earlier == name) {
                continue;
            }
            if !is_first {
                self.out.push(b',');
            }
            is_first = false;
            push_string(self.out, name);
            self.out.push(b':');
            if after.iter().any(|(later, _)| later == name) {
                let all = fields[idx..].iter().filter(|(other, _)| other == name);
                self.array(all.map(|(_, value)| value.as_str()));
            } else {
                push_string(self.out, value);
            }
        }
        self.out.push(b'}');
    }

    /// `name` holds text, `name_b64` base64 where the bytes are not UTF-8.
    fn bytes(&mut self, name: &str, bytes: &[u8]) {
        if let Ok(text) = std::str::from_utf8(bytes) {
            self.text(name, text);
            return;
        }
        self.out.extend_from_slice(b",\"");
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"_b64\":\"");
        let space = self.grow(bytes.len().div_ceil(3) * 4);
        if let Some(space) = self.out.get_mut(space) {
            // The space is what the encoding takes, so it cannot fail.
            let _ = STANDARD.encode_slice(bytes, space);
        }
        self.out.push(b'"');
    }

    fn grow(&mut self, by: usize) -> Range<usize> {
        let from = self.out.len();
        self.out.resize(from + by, 0);
        from..from + by
    }

    fn event(&mut self, event: &str) {
        self.word("event", event);
    }

    fn how(&mut self, how: Option<crate::event::Close>) {
        if let Some(how) = how {
            self.word("how", words::close(how));
        }
    }

    fn name(&mut self, name: &str) {
        self.out.extend_from_slice(b",\"");
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
    }

    /// A text that needs no escaping.
    fn word(&mut self, name: &str, word: &str) {
        self.name(name);
        self.out.push(b'"');
        self.out.extend_from_slice(word.as_bytes());
        self.out.push(b'"');
    }

    fn text(&mut self, name: &str, text: &str) {
        self.name(name);
        push_string(self.out, text);
    }

    fn texts(&mut self, name: &str, texts: &[String]) {
        self.name(name);
        self.array(texts.iter().map(String::as_str));
    }

    fn array<'t>(&mut self, texts: impl Iterator<Item = &'t str>) {
        self.out.push(b'[');
        for (idx, text) in texts.enumerate() {
            if idx > 0 {
                self.out.push(b',');
            }
            push_string(self.out, text);
        }
        self.out.push(b']');
    }

    fn number(&mut self, name: &str, number: u64) {
        self.name(name);
        push_number(self.out, number);
    }

    fn optional(&mut self, name: &str, number: Option<u64>) {
        if let Some(number) = number {
            self.number(name, number);
        }
    }

    fn signed(&mut self, name: &str, number: Option<i32>) {
        if let Some(number) = number {
            self.name(name);
            if number < 0 {
                self.out.push(b'-');
            }
            push_number(self.out, u64::from(number.unsigned_abs()));
        }
    }

    fn ms(&mut self, name: &str, at: Mono) {
        self.name(name);
        push_ms(self.out, at.0);
    }
}

//! Recordings written by hand, for tests.

use bytes::Bytes;
use proptest::prelude::*;

use super::Model;
use crate::event::{Close, Dir, Event, Headers, RequestHead, Transport, What};
use crate::time::Mono;

/// `_meta` of a request in the modern era.
pub(crate) const MODERN: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

/// A recording being written by hand.
#[derive(Debug, Default)]
pub(crate) struct Script {
    pub(crate) events: Vec<Event>,
}

impl Script {
    pub(crate) fn push(&mut self, ms: u64, dir: Dir, stream: Option<u64>, what: What) -> &mut Script {
        let transport = if stream.is_some() { Transport::Http } else { Transport::Stdio };
        let n = self.events.len() as u64 + 1;
        self.events.push(Event {
            n,
            at: Mono(ms * 1_000_000),
            out: None,
            dir,
            transport,
            stream,
            conn: None,
            what,
        });
        self
    }

    pub(crate) fn line(&mut self, ms: u64, dir: Dir, text: &str) -> &mut Script {
        let bytes = Bytes::from(format!("{text}\n"));
        self.push(ms, dir, None, What::Bytes { bytes, read: None })
    }

    pub(crate) fn bytes(&mut self, ms: u64, dir: Dir, bytes: &[u8]) -> &mut Script {
        self.push(ms, dir, None, What::Bytes { bytes: Bytes::copy_from_slice(bytes), read: None })
    }

    pub(crate) fn post(&mut self, ms: u64, stream: u64, headers: &[(&str, &str)], body: &str) -> &mut Script {
        let head = RequestHead {
            method: "POST".to_owned(),
            path: "/mcp".to_owned(),
            headers: headers_of(headers),
            body: Some(Bytes::copy_from_slice(body.as_bytes())),
        };
        self.push(ms, Dir::C2s, Some(stream), What::Request(head))
    }

    pub(crate) fn get(&mut self, ms: u64, stream: u64, headers: &[(&str, &str)]) -> &mut Script {
        let head = RequestHead {
            method: "GET".to_owned(),
            path: "/mcp".to_owned(),
            headers: headers_of(headers),
            body: None,
        };
        self.push(ms, Dir::C2s, Some(stream), What::Request(head))
    }

    pub(crate) fn head(
        &mut self,
        ms: u64,
        stream: u64,
        status: u16,
        headers: &[(&str, &str)],
    ) -> &mut Script {
        let what = What::ResponseHead { status, headers: headers_of(headers) };
        self.push(ms, Dir::S2c, Some(stream), what)
    }

    pub(crate) fn sse(&mut self, ms: u64, stream: u64, text: &str) -> &mut Script {
        self.push(ms, Dir::S2c, Some(stream), What::SseChunk(Bytes::copy_from_slice(text.as_bytes())))
    }

    pub(crate) fn body(&mut self, ms: u64, stream: u64, text: &str) -> &mut Script {
        self.push(ms, Dir::S2c, Some(stream), What::Body(Bytes::copy_from_slice(text.as_bytes())))
    }

    pub(crate) fn server_closed(&mut self, ms: u64, stream: Option<u64>) -> &mut Script {
        let what = What::ServerClosed { how: Some(Close::Eof), exit_code: None, signal: None };
        self.push(ms, Dir::S2c, stream, what)
    }

    pub(crate) fn client_closed(&mut self, ms: u64, stream: Option<u64>) -> &mut Script {
        self.push(ms, Dir::C2s, stream, What::ClientClosed { how: Some(Close::Eof) })
    }

    pub(crate) fn end(&mut self, ms: u64) -> &mut Script {
        self.push(ms, Dir::Tap, None, What::CaptureEnd { events: None, complete: None })
    }

    pub(crate) fn fold(&self) -> Model {
        fold(&self.events)
    }
}

pub(crate) fn headers_of(headers: &[(&str, &str)]) -> Headers {
    Headers(headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
}

pub(crate) fn fold(events: &[Event]) -> Model {
    let mut model = Model::new();
    for (idx, event) in events.iter().enumerate() {
        model.fold(event, u32::try_from(idx).unwrap());
    }
    model
}

pub(crate) fn call(id: &str, tool: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{"a":1}},{MODERN}}}}}"#
    )
}

pub(crate) fn result(id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","content":[]}}}}"#)
}

pub(crate) fn cancel(id: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":"user"}}}}"#
    )
}

/// Events of every kind, in any order and with any bytes.
fn any_event() -> impl Strategy<Value = (u64, Dir, Option<u64>, What)> {
    let id = prop_oneof![Just("1"), Just("2"), Just("\"1\""), Just("null"), Just("1.5")];
    let message = id.prop_flat_map(|id| {
        let token = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"a","_meta":{{"progressToken":{id}}}}}}}"#
        );
        let progress = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{id},"progress":1}}}}"#
        );
        let input = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"input_required"}}}}"#);
        let error = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":1,"message":""}}}}"#);
        let hello = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"initialize","params":{{}}}}"#);
        let listen = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"subscriptions/listen","params":{{"notifications":{{}},{MODERN}}}}}"#
        );
        let batch = format!("[{},{}]", call(id, "a"), result(id));
        prop::sample::select(vec![
            call(id, "a"),
            token,
            result(id),
            cancel(id),
            progress,
            input,
            error,
            hello,
            listen,
            batch,
            "{".to_owned(),
            "\"jsonrpc\": \"2.0\",".to_owned(),
            "}".to_owned(),
        ])
    });
    let bytes = prop_oneof![
        4 => message.prop_map(String::into_bytes),
        1 => prop::collection::vec(any::<u8>(), 0..40),
    ];
    let dir = prop::sample::select(vec![Dir::C2s, Dir::S2c, Dir::Stderr, Dir::Tap]);
    let stream = prop::option::of(1u64..4);
    let headers = prop::sample::subsequence(
        vec![
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-session-id", "s"),
            ("content-type", "text/event-stream"),
            ("content-encoding", "gzip"),
            ("content-encoding", "deflate"),
            ("content-length", "20"),
            ("last-event-id", "e1"),
        ],
        0..=7,
    );
    (0u8..14, any::<bool>(), dir, stream, bytes, headers, 0u64..2000).prop_map(
        |(kind, flag, dir, stream, bytes, headers, ms)| {
            let headers = headers_of(&headers);
            let mut line = bytes.clone();
            if flag {
                line.push(b'\n');
            }
            let sse = [b"id: e1\ndata: ".as_slice(), &bytes, if flag { b"\n\n" } else { b"\n" }].concat();
            let status = if flag { 200 } else { 404 };
            let what = match kind {
                0..=3 => What::Bytes { bytes: Bytes::from(line), read: None },
                4 | 5 => What::Request(RequestHead {
                    method: if flag { "POST" } else { "GET" }.to_owned(),
                    path: "/mcp".to_owned(),
                    headers,
                    body: (ms % 3 > 0).then(|| Bytes::from(bytes)),
                }),
                6 => What::ResponseHead { status, headers },
                7 => What::SseChunk(Bytes::from(sse)),
                8 => What::Body(Bytes::from(bytes)),
                9 => What::ClientClosed { how: None },
                10 => What::ServerClosed { how: None, exit_code: None, signal: None },
                11 if flag => What::Spawn { pid: 1, command: vec!["x".to_owned()] },
                13 => What::Telemetry(format!(
                    r#"{{"stage":"{}","request":1}}"#,
                    if flag { "cancel_seen" } else { "done" }
                )),
                11 => What::Gap { lost: 1, bytes: 1, why: String::new() },
                _ => What::Inject {
                    what: "cancel".to_owned(),
                    target: "1".to_owned(),
                    by: "ctl".to_owned(),
                    cause: None,
                    sent: None,
                },
            };
            (ms, dir, stream, what)
        },
    )
}

/// A recording of such events, and its end.
pub(crate) fn any_script() -> impl Strategy<Value = Script> {
    prop::collection::vec(any_event(), 0..60).prop_map(|events| {
        let mut script = Script::default();
        for (ms, dir, stream, what) in events {
            script.push(ms, dir, stream, what);
        }
        script.end(3000);
        script
    })
}

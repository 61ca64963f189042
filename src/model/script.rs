//! Recordings written by hand, for tests.

use bytes::Bytes;

use super::Model;
use crate::event::{Close, Dir, Event, Headers, RequestHead, Transport, What};
use crate::time::Mono;

/// A recording being written by hand.
#[derive(Default)]
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

//! Where the switches act that concern answers over HTTP: on the way out, after everything else.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, StreamBody};
use hyper::Response as HttpResponse;
use hyper::body::Frame;
use hyper::header::{CONTENT_TYPE, HeaderValue};

use super::answer::Answer;
use crate::peer::faults::{Fault, Faults};
use crate::spec::headers;

/// What stands before each event: an id, and a time for coming back that this era does not have.
const IDS: &[u8] = b"retry: 3000\nid: event-";

/// The answer to a request, in each wrong way that was asked for.
pub(super) fn spoil(faults: &Arc<Faults>, mut answer: HttpResponse<Answer>) -> HttpResponse<Answer> {
    if faults.all_on().next().is_none() {
        return answer;
    }
    let fields = answer.headers_mut();
    if faults.is_on(Fault::NoBufferingHeader) {
        fields.remove("x-accel-buffering");
    }
    if faults.is_on(Fault::MintsSession) {
        fields.insert(headers::SESSION_ID, HeaderValue::from_static("session-1"));
    }
    let is_stream = fields.get(CONTENT_TYPE).is_some_and(|value| value == headers::EVENT_STREAM);
    if !is_stream {
        return answer;
    }
    let spoiled = Spoiled { faults: faults.clone(), events: 0, is_over: false };
    answer.map(|body| {
        let frames = futures_util::stream::unfold((body, spoiled), |(mut body, mut spoiled)| async move {
            let data = spoiled.next(&mut body).await?;
            Some((Ok(Frame::data(data)), (body, spoiled)))
        });
        StreamBody::new(frames).boxed_unsync()
    })
}

/// An event stream on its way out.
struct Spoiled {
    faults: Arc<Faults>,
    events: u64,
    is_over: bool,
}

impl Spoiled {
    async fn next(&mut self, body: &mut Answer) -> Option<Bytes> {
        let gathers = self.faults.is_on(Fault::Bursts);
        let mut gathered = Vec::new();
        while !self.is_over {
            let Some(data) = frame(body).await else {
                self.is_over = true;
                break;
            };
            let data = if is_response(&data) { self.last(&data) } else { Some(data) };
            match data.map(|data| self.with_id(data)) {
                Some(data) if gathers => gathered.extend(data),
                Some(data) => return Some(data),
                None => {}
            }
        }
        (!gathered.is_empty()).then(|| gathered.into())
    }

    /// The last event of a stream, or what is left of it.
    fn last(&self, event: &Bytes) -> Option<Bytes> {
        if self.faults.is_on(Fault::FinalLost) {
            return None;
        }
        // Without the blank line that ends it.
        let torn = usize::from(self.faults.is_on(Fault::TornEvent));
        Some(event.slice(..event.len().saturating_sub(torn)))
    }

    fn with_id(&mut self, event: Bytes) -> Bytes {
        if !self.faults.is_on(Fault::EventIds) || !event.starts_with(b"data:") {
            return event;
        }
        self.events += 1;
        [IDS, self.events.to_string().as_bytes(), b"\n", &event].concat().into()
    }
}

/// An event that is no comment and no notification: messages of this server begin so.
fn is_response(event: &Bytes) -> bool {
    event.starts_with(b"data:") && !event.starts_with(b"data: {\"jsonrpc\":\"2.0\",\"method\"")
}

/// The next bytes of a body; `None`: it has ended.
async fn frame(body: &mut Answer) -> Option<Bytes> {
    loop {
        let Ok(frame) = body.frame().await?;
        if let Ok(data) = frame.into_data() {
            return Some(data);
        }
    }
}

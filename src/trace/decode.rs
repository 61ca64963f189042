//! One line → event. Tolerant: unknown members and events are named, not refused; a line that
//! makes no event is refused with the reason, and the next one is read.

mod quick;
mod values;

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::de::{Deserializer as _, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use self::values::{BytesSeed, HeadersSeed, ScalarSeed, TextSeed, ms};
use super::words;
use crate::event::{Dir, Event, Queue, RequestHead, Transport, What};
use crate::time::Mono;

/// What stands in for members that a line leaves out.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Defaults {
    pub(super) n: u64,
    pub(super) at: Mono,
    pub(super) transport: Option<Transport>,
}

/// Reads one line; `None` for a header line. `unknown` is called with the name of each member that
/// this version does not know.
pub(super) fn decode_line(
    line: &[u8],
    defaults: Defaults,
    unknown: &mut dyn FnMut(&str),
) -> Result<Option<Event>, serde_json::Error> {
    if let Some(event) = quick::decode(line) {
        return Ok(Some(event));
    }
    decode_any(line, defaults, unknown)
}

/// The long way: any JSON, any order of members.
fn decode_any(
    line: &[u8],
    defaults: Defaults,
    unknown: &mut dyn FnMut(&str),
) -> Result<Option<Event>, serde_json::Error> {
    let mut json = serde_json::Deserializer::from_slice(line);
    let mut members = Members::default();
    json.deserialize_map(Line(&mut members))?;
    json.end()?;
    if members.is_header {
        return Ok(None);
    }
    for name in &members.unknown {
        unknown(name);
    }
    members.into_event(defaults).map(Some).map_err(serde_json::Error::custom)
}

/// Why a line with good JSON makes no event.
type Reason = &'static str;

/// The members of one line, all optional.
#[derive(Default)]
struct Members<'a> {
    is_header: bool,
    n: Option<u64>,
    t_ms: Option<Mono>,
    out_ms: Option<Mono>,
    dir: Option<Dir>,
    transport: Option<Transport>,
    stream: Option<u64>,
    conn: Option<u64>,
    read: Option<u64>,
    event: Option<Cow<'a, str>>,
    raw: Option<Bytes>,
    body: Option<Bytes>,
    status: Option<u16>,
    head: RequestHead,
    queue: Queue,
    texts: Texts,
    list: Vec<String>,
    pid: Option<u32>,
    exit_code: Option<i32>,
    lost: u64,
    hits: u64,
    event_count: Option<u64>,
    complete: Option<bool>,
    unknown: Vec<String>,
}

/// Short texts of the rarer events.
#[derive(Default)]
struct Texts {
    how: Option<String>,
    signal: Option<String>,
    why: Option<String>,
    what: Option<String>,
    target: Option<String>,
    by: Option<String>,
    cause: Option<String>,
    data: Option<String>,
    text: Option<String>,
    wall: Option<String>,
}

impl Members<'_> {
    fn into_event(mut self, defaults: Defaults) -> Result<Event, Reason> {
        let kind = self.event.take();
        let is_http = matches!(kind.as_deref(), Some("request" | "response_head" | "sse_chunk" | "body"));
        let transport = self.transport.or(defaults.transport);
        let transport = transport.unwrap_or(if is_http { Transport::Http } else { Transport::Stdio });
        let dir = match (self.dir, kind.as_deref()) {
            (Some(dir), _) => dir,
            (None, None) => return Err("member `dir` is missing; say c2s, s2c or stderr"),
            (None, Some("request" | "client_closed")) => Dir::C2s,
            (None, Some("response_head" | "sse_chunk" | "body" | "server_closed")) => Dir::S2c,
            (None, Some(_)) => Dir::Tap,
        };
        Ok(Event {
            n: self.n.unwrap_or(defaults.n),
            at: self.t_ms.unwrap_or(defaults.at),
            out: self.out_ms,
            dir,
            transport,
            stream: self.stream,
            conn: self.conn,
            what: self.what(kind.as_deref())?,
        })
    }

    fn what(self, kind: Option<&str>) -> Result<What, Reason> {
        let texts = self.texts;
        Ok(match kind {
            None => {
                let bytes = self.raw.ok_or("neither `event` nor `raw` nor `raw_b64`")?;
                What::Bytes { bytes, read: self.read }
            }
            Some("request") => What::Request(RequestHead { body: self.body, ..self.head }),
            Some("response_head") => What::ResponseHead {
                status: self.status.ok_or("a response_head needs `status`")?,
                headers: self.head.headers,
            },
            Some("sse_chunk") => What::SseChunk(self.raw.unwrap_or_default()),
            Some("body") => What::Body(self.raw.unwrap_or_default()),
            Some("client_closed") => What::ClientClosed { how: texts.how() },
            Some("server_closed") => What::ServerClosed {
                how: texts.how(),
                exit_code: self.exit_code,
                signal: texts.signal.as_deref().and_then(words::signal_of),
            },
            Some("spawn") => What::Spawn { pid: self.pid.unwrap_or_default(), command: self.list },
            Some("signal") => {
                What::Signal { signal: texts.signal.unwrap_or_default(), why: texts.why.unwrap_or_default() }
            }
            Some("queue") => {
                What::Queue(Queue { events: self.event_count.unwrap_or_default(), ..self.queue })
            }
            Some("inject") => What::Inject {
                what: texts.what.unwrap_or_default(),
                target: texts.target.unwrap_or_default(),
                by: texts.by.unwrap_or_default(),
                cause: texts.cause,
                sent: self.raw,
            },
            Some("telemetry") => What::Telemetry(texts.data.unwrap_or_default()),
            Some("gap") => {
                What::Gap { lost: self.lost, bytes: self.queue.bytes, why: texts.why.unwrap_or_default() }
            }
            Some("mark") => What::Mark(texts.text.unwrap_or_default()),
            Some("clock") => What::Clock { wall: texts.wall.unwrap_or_default() },
            Some("redact") => What::Redact { rules: self.list, hits: self.hits },
            Some("capture_end") => What::CaptureEnd { events: self.event_count, complete: self.complete },
            Some(event) => What::Unknown { event: event.to_owned() },
        })
    }
}

impl Texts {
    fn how(&self) -> Option<crate::event::Close> {
        self.how.as_deref().and_then(words::close_of)
    }
}

/// Takes the members of a line one by one; of a repeated one, the last counts.
struct Line<'m, 'a>(&'m mut Members<'a>);

impl<'de> Visitor<'de> for Line<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let m = self.0;
        while let Some(name) = map.next_key_seed(TextSeed)? {
            match name.as_ref() {
                "n" => m.n = map.next_value()?,
                "t_ms" => m.t_ms = ms(map.next_value()?)?,
                "out_ms" => m.out_ms = ms(map.next_value()?)?,
                "dir" => m.dir = Some(word(&map.next_value_seed(TextSeed)?, words::dir_of, "dir")?),
                "transport" => {
                    let text = map.next_value_seed(TextSeed)?;
                    m.transport = Some(word(&text, words::transport_of, "transport")?);
                }
                "stream" => m.stream = map.next_value()?,
                "conn" => m.conn = map.next_value()?,
                "read" => m.read = map.next_value()?,
                "event" => m.event = Some(map.next_value_seed(TextSeed)?),
                "raw" => m.raw = map.next_value_seed(BytesSeed)?,
                "raw_b64" => m.raw = Some(unbase64(&map.next_value_seed(TextSeed)?)?),
                "body" => m.body = map.next_value_seed(BytesSeed)?,
                "body_b64" => m.body = Some(unbase64(&map.next_value_seed(TextSeed)?)?),
                "midwire" => {
                    map.next_value::<IgnoredAny>()?;
                    m.is_header = true;
                }
                name => {
                    if !m.rare(name, &mut map)? {
                        m.unknown.push(name.to_owned());
                        map.next_value::<IgnoredAny>()?;
                    }
                }
            }
        }
        Ok(())
    }
}

impl Members<'_> {
    /// Takes a member of the rarer events; `false`: not known, its value is still to be read.
    fn rare<'de, A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match name {
            "method" => self.head.method = map.next_value()?,
            "path" => self.head.path = map.next_value()?,
            "headers" => self.head.headers = map.next_value_seed(HeadersSeed)?,
            "status" => self.status = map.next_value()?,
            "exit_code" => self.exit_code = map.next_value()?,
            "signal" => self.texts.signal = Some(map.next_value_seed(ScalarSeed)?),
            "pid" => self.pid = map.next_value()?,
            "command" | "rules" => self.list = map.next_value()?,
            "how" => self.texts.how = map.next_value()?,
            "why" => self.texts.why = map.next_value()?,
            "what" => self.texts.what = map.next_value()?,
            "target" => self.texts.target = map.next_value()?,
            "by" => self.texts.by = map.next_value()?,
            "cause" => self.texts.cause = map.next_value()?,
            "text" => self.texts.text = map.next_value()?,
            "wall" => self.texts.wall = map.next_value()?,
            "data" => self.texts.data = Some(telemetry(map.next_value()?)?),
            "events" => self.event_count = map.next_value()?,
            "complete" => self.complete = map.next_value()?,
            "lost" => self.lost = map.next_value()?,
            "hits" => self.hits = map.next_value()?,
            "bytes" => self.queue.bytes = map.next_value()?,
            "capacity" => self.queue.capacity = map.next_value()?,
            "coalesced" => self.queue.coalesced = map.next_value()?,
            "evicted" => self.queue.evicted = map.next_value()?,
            "discarded" => self.queue.discarded = map.next_value()?,
            "refused" => self.queue.refused = map.next_value()?,
            "blocked_ms" => self.queue.blocked_ms = map.next_value()?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn word<T, E: Error>(text: &str, read: fn(&str) -> Option<T>, name: &str) -> Result<T, E> {
    read(text).ok_or_else(|| E::custom(format_args!("member `{name}` has the unknown value {text:?}")))
}

fn unbase64<E: Error>(text: &str) -> Result<Bytes, E> {
    STANDARD.decode(text).map(Bytes::from).map_err(|e| E::custom(format_args!("bad base64: {e}")))
}

/// The text of a JSON object, or what a string holds.
fn telemetry<E: Error>(data: &RawValue) -> Result<String, E> {
    let text = data.get();
    if text.starts_with('"') {
        return serde_json::from_str(text).map_err(E::custom);
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Lines of the usual form, and such that are nearly so.
    fn line() -> impl Strategy<Value = String> {
        let number =
            prop_oneof!["[0-9]{1,3}", Just("18446744073709551616".to_owned()), Just("1.5".to_owned())];
        let ms = prop_oneof![
            "[0-9]{1,2}",
            "[0-9]{1,14}[.][0-9]{1,7}",
            Just("1e3".to_owned()),
            Just("-1".to_owned())
        ];
        let out = prop_oneof![
            Just(String::new()),
            "[0-9]{1,2}[.][0-9]{1,6}".prop_map(|ms| format!(",\"out_ms\":{ms}"))
        ];
        let dir = prop_oneof![Just("c2s"), Just("stderr"), Just("up"), Just("")];
        let middle = prop_oneof![
            Just(""),
            Just(",\"read\":7"),
            Just(",\"stream\":1,\"conn\":2,\"event\":\"sse_chunk\""),
            Just(",\"conn\":2,\"stream\":1,\"event\":\"body\""),
            Just(",\"stream\":null,\"event\":\"mark\",\"text\":\"x\""),
            Just(",\"read\":7,\"event\":\"body\""),
        ];
        let raw = r#"([a-z]|\\\\[nrtbf"/\\x]|\\\\u00[0-9a-f]{2}|"|é|\t){0,12}"#;
        let end = prop_oneof![Just("}"), Just("}\r\n"), Just("} "), Just(",\"raw\":\"y\"}"), Just("")];
        (number, ms, out, dir, middle, raw, end).prop_map(|(n, ms, out, dir, middle, raw, end)| {
            format!(
                "{{\"n\":{n},\"t_ms\":{ms}{out},\"dir\":\"{dir}\",\"transport\":\"stdio\"{middle},\"raw\":\"{raw}\"{end}"
            )
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

        #[test]
        fn the_short_way_agrees_with_the_long_way(line in line()) {
            if let Some(quick) = quick::decode(line.as_bytes()) {
                let long = decode_any(line.as_bytes(), Defaults::default(), &mut |_| {}).unwrap();
                prop_assert_eq!(Some(quick), long);
            }
        }
    }

    #[test]
    fn the_short_way_is_taken_for_what_the_recorder_writes() {
        for line in [
            r#"{"n":1,"t_ms":0.5,"out_ms":1,"dir":"c2s","transport":"stdio","read":1,"raw":"{\"a\":\"\\n\"}\n"}"#,
            r#"{"n":1,"t_ms":20,"dir":"stderr","transport":"stdio","raw":""}"#,
            r#"{"n":1,"t_ms":20.000001,"dir":"s2c","transport":"http","stream":1,"conn":2,"event":"sse_chunk","raw":"é"}"#,
        ] {
            assert!(quick::decode(line.as_bytes()).is_some(), "{line}");
        }
        let invalid =
            [&br#"{"n":1,"t_ms":20,"dir":"c2s","transport":"stdio","raw":""#[..], b"\xff\"}"].concat();
        assert!(quick::decode(&invalid).is_none());
    }
}

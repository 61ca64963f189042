//! Small traces written tersely: what a rule fires on and what it leaves in peace.
//!
//! One begins with `= RULE fires|clean TRANSPORT [ERA] [bare] [client=JSON] [server=JSON]`; the era is
//! 2026-07-28 when none is given. Each line after it is one event:
//!
//! ```text
//! MS > {…}            stdio: a message of the client      MS < {…}          of the server
//! MS > raw TEXT       stdio: bytes as they are, \n \r \t \\ \xHH; no line end is added
//! MS ! TEXT           a line of stderr        MS ! fill N         N bytes of it
//! MS > eof            stdin ends          MS < exit [CODE]   the process ends
//! MS < spawn          a process starts    MS < signal NAME   a signal is sent to it
//! MS N> {…}           HTTP: exchange N: a POST with this body
//! MS N> GET /mcp      HTTP: a request without a body
//! MS N< 200 sse       HTTP: the head of an event stream
//! MS N< 200 json {…}  HTTP: a whole answer (also `text TEXT`, or nothing after the status)
//! MS N< {…}           HTTP: an event of the stream; `raw TEXT` are its bytes as they are
//! MS N< :TEXT         HTTP: a comment
//! MS N< end           HTTP: the server ends the answer (`reset`: by a reset)
//! MS N> gone          HTTP: the client leaves (`reset`: by a reset)
//! MS tap queue stream=N events=5 capacity=3 blocked_ms=1200 …
//! MS tap inject WHAT TARGET      MS tap telemetry {…}      MS tap gap LOST      MS end
//! ```
//!
//! Lines that begin with `|`, before all others, are the policy file that it is judged under.
//!
//! What every message has is left out and added here: `jsonrpc`; in the modern era `_meta` of requests
//! (with the client's capabilities of the first line), `resultType`, and the caching hints of lists;
//! in a legacy one the handshake before the first line; on HTTP the header fields that go with all of
//! that, in a legacy era with a session. `bare` leaves it all out but `jsonrpc`. In square brackets
//! after the direction, separated by `;`, single things are changed: `[out 1200]` is when it had been
//! handed on, in milliseconds, `[accept: text/html]` sets a field, `[-accept]` drops one, `[conn 2]` names the connection, `[-meta]`, `[-type]`, `[-cache]` leave
//! out what would be added, and on an event `[id: 7; event: x; retry: 100]` are its fields.

mod dress;

use std::sync::LazyLock;
use std::time::Duration;

use bytes::Bytes;

use crate::event::{Close, Dir, Event, Headers, Queue, RequestHead, Transport, What};
use crate::machine::policy::Policy;
use crate::spec::era::Era;
use crate::time::Mono;
use dress::Dress;

/// A small trace about one rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Example {
    /// Id of the rule.
    pub rule: String,
    /// The rule fires on it; otherwise it stays silent.
    pub fires: bool,
    /// How the peers are joined.
    pub transport: Transport,
    /// The revision they speak.
    pub era: Era,
    /// What is agreed outside the wire.
    pub policy: Policy,
    /// Its lines as written.
    pub lines: Vec<String>,
    /// The trace.
    pub events: Vec<Event>,
}

/// The files of the examples.
const FILES: [&str; 30] = [
    include_str!("examples/RPC.txt"),
    include_str!("examples/MET.txt"),
    include_str!("examples/ICO.txt"),
    include_str!("examples/VER.txt"),
    include_str!("examples/STD.txt"),
    include_str!("examples/HTTP.txt"),
    include_str!("examples/SSE.txt"),
    include_str!("examples/CAN.txt"),
    include_str!("examples/TMO.txt"),
    include_str!("examples/RTY.txt"),
    include_str!("examples/PRG.txt"),
    include_str!("examples/LOG.txt"),
    include_str!("examples/SUB.txt"),
    include_str!("examples/MRT.txt"),
    include_str!("examples/ELI.txt"),
    include_str!("examples/SAM.txt"),
    include_str!("examples/ROO.txt"),
    include_str!("examples/CCH.txt"),
    include_str!("examples/PAG.txt"),
    include_str!("examples/TOOL.txt"),
    include_str!("examples/RES.txt"),
    include_str!("examples/PMT.txt"),
    include_str!("examples/CMP.txt"),
    include_str!("examples/TSK.txt"),
    include_str!("examples/TSL.txt"),
    include_str!("examples/LEG.txt"),
    include_str!("examples/AUT.txt"),
    include_str!("examples/PRX.txt"),
    include_str!("examples/FLW.txt"),
    include_str!("examples/REL.txt"),
];

static EXAMPLES: LazyLock<Vec<Example>> =
    LazyLock::new(|| FILES.iter().flat_map(|file| read(file).into_iter().flatten()).collect());

/// Every example that ships with the program, by rule.
#[must_use]
pub fn all() -> &'static [Example] {
    &EXAMPLES
}

/// Reads a file of examples; each that cannot be read is told with its line.
pub fn read(text: &str) -> Vec<Result<Example, String>> {
    let mut examples: Vec<Vec<&str>> = Vec::new();
    for line in text.lines().map(str::trim_end).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match examples.last_mut() {
            _ if line.starts_with("= ") => examples.push(vec![line]),
            Some(lines) => lines.push(line),
            None => return vec![Err(format!("no example begins before: {line}"))],
        }
    }
    examples.into_iter().map(|lines| example(&lines)).collect()
}

fn example(lines: &[&str]) -> Result<Example, String> {
    let (title, lines) = lines.split_first().ok_or("an example without lines")?;
    let fail = |why: &str| format!("{why}: {title}");
    let mut words = title.split_whitespace().skip(1);
    let rule = words.next().ok_or_else(|| fail("no rule"))?.to_owned();
    let fires = match words.next() {
        Some("fires") => true,
        Some("clean") => false,
        _ => return Err(fail("neither fires nor clean")),
    };
    let transport = match words.next() {
        Some("stdio") => Transport::Stdio,
        Some("http") => Transport::Http,
        _ => return Err(fail("neither stdio nor http")),
    };
    let mut dress = Dress::new(transport);
    for word in words {
        match word.split_once('=') {
            Some(("client", json)) => json.clone_into(&mut dress.client),
            Some(("server", json)) => dress.server = Some(json.to_owned()),
            None if word == "bare" => dress.is_bare = true,
            None => dress.era = Era::from_name(word).ok_or_else(|| fail("an era that is none"))?,
            Some(_) => return Err(fail("a word that means nothing")),
        }
    }
    let era = dress.era;
    let policy: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix('|')).collect();
    let policy = toml::from_str(&policy.join("\n")).map_err(|error| fail(&error.to_string()))?;
    let mut trace = Trace { events: Vec::new(), transport, dress };
    trace.handshake()?;
    for line in lines.iter().filter(|line| !line.starts_with('|')) {
        trace.line(line).ok_or_else(|| format!("not understood: {line} (in {title})"))?;
    }
    let is_ended = trace.events.last().is_some_and(|event| matches!(event.what, What::CaptureEnd { .. }));
    if let Some(last) = trace.events.last().filter(|_| !is_ended) {
        let at = last.at;
        trace.push(at, Dir::Tap, None, What::CaptureEnd { events: None, complete: None });
    }
    let lines = lines.iter().map(|line| (*line).to_owned()).collect();
    Ok(Example { rule, fires, transport, era, policy, lines, events: trace.events })
}

/// A moment, from milliseconds.
fn moment(ms: &str) -> Option<Mono> {
    let since = Duration::try_from_secs_f64(ms.parse::<f64>().ok()? / 1e3).ok()?;
    Some(Mono(u64::try_from(since.as_nanos()).ok()?))
}

/// A trace being written.
struct Trace {
    events: Vec<Event>,
    transport: Transport,
    dress: Dress,
}

/// The part of a line in square brackets.
#[derive(Debug, Default)]
pub(super) struct Options {
    /// Fields set, and fields dropped.
    pub set: Vec<(String, String)>,
    pub dropped: Vec<String>,
    pub conn: Option<u64>,
    pub out: Option<Mono>,
}

impl Options {
    fn read(text: &str) -> Option<Options> {
        let mut options = Options::default();
        for part in text.split(';').map(str::trim) {
            if let Some(name) = part.strip_prefix('-') {
                options.dropped.push(name.to_ascii_lowercase());
            } else if let Some(number) = part.strip_prefix("conn ") {
                options.conn = Some(number.parse().ok()?);
            } else if let Some(ms) = part.strip_prefix("out ") {
                options.out = Some(moment(ms)?);
            } else {
                let (name, value) = part.split_once(':')?;
                options
                    .set
                    .push((name.trim().to_owned(), value.strip_prefix(' ').unwrap_or(value).to_owned()));
            }
        }
        Some(options)
    }

    /// It says to leave this out.
    pub(super) fn drops(&self, name: &str) -> bool {
        self.dropped.iter().any(|dropped| dropped == name)
    }

    /// A field that it sets.
    fn get(&self, name: &str) -> Option<&str> {
        self.set.iter().find(|(set, _)| set.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// Header fields with the changes.
    fn headers(&self, mut fields: Vec<(String, String)>) -> Headers {
        fields.retain(|(name, _)| !self.drops(name) && self.get(name).is_none());
        fields.extend(self.set.iter().cloned());
        Headers(fields)
    }
}

impl Trace {
    fn push(&mut self, at: Mono, dir: Dir, stream: Option<(u64, Option<u64>)>, what: What) {
        let n = self.events.len() as u64 + 1;
        let (stream, conn) =
            stream.map_or((None, None), |(stream, conn)| (Some(stream), Some(conn.unwrap_or(1))));
        self.events.push(Event { n, at, out: None, dir, transport: self.transport, stream, conn, what });
    }

    /// The handshake of a legacy session, or the discovery that says what the server can do.
    fn handshake(&mut self) -> Result<(), String> {
        for line in self.dress.handshake() {
            self.line(&line).ok_or_else(|| format!("not understood: {line}"))?;
        }
        Ok(())
    }

    fn line(&mut self, line: &str) -> Option<()> {
        let (ms, rest) = line.trim_start().split_once(' ')?;
        let at = moment(ms)?;
        let (way, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        let (options, rest) = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((inside, rest)) => (Options::read(inside)?, rest.trim_start()),
            None => (Options::default(), rest),
        };
        match way {
            "end" => self.push(at, Dir::Tap, None, What::CaptureEnd { events: None, complete: None }),
            "tap" => self.tap(at, rest)?,
            "!" => {
                let text = match rest.strip_prefix("fill ") {
                    Some(bytes) => "x".repeat(bytes.parse::<u16>().ok()?.into()),
                    None => format!("{rest}\n"),
                };
                self.push(at, Dir::Stderr, None, What::Bytes { bytes: Bytes::from(text), read: None });
            }
            ">" | "<" => self.pipe(at, if way == ">" { Dir::C2s } else { Dir::S2c }, &options, rest)?,
            _ => {
                let stream = way.get(..way.len() - 1)?.parse().ok()?;
                match way.get(way.len() - 1..)? {
                    ">" => self.http_request(at, stream, &options, rest)?,
                    "<" => self.http_answer(at, stream, &options, rest)?,
                    _ => return None,
                }
            }
        }
        if let Some(last) = self.events.last_mut().filter(|_| options.out.is_some()) {
            last.out = options.out;
        }
        Some(())
    }

    fn pipe(&mut self, at: Mono, dir: Dir, options: &Options, text: &str) -> Option<()> {
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        let what = match word {
            "raw" => What::Bytes { bytes: unescape(rest)?, read: None },
            "eof" if dir == Dir::C2s => What::ClientClosed { how: None },
            "eof" => What::ServerClosed { how: None, exit_code: None, signal: None },
            "exit" => What::ServerClosed { how: None, exit_code: rest.parse().ok(), signal: None },
            "spawn" => What::Spawn { pid: 100, command: vec!["server".to_owned()] },
            "signal" => What::Signal { signal: rest.to_owned(), why: "passed on".to_owned() },
            _ => {
                let message = self.dress.message(text, dir, options)?;
                What::Bytes { bytes: Bytes::from(format!("{message}\n")), read: None }
            }
        };
        let dir = if matches!(what, What::Spawn { .. } | What::Signal { .. }) { Dir::Tap } else { dir };
        self.push(at, dir, None, what);
        Some(())
    }

    fn http_request(&mut self, at: Mono, stream: u64, options: &Options, text: &str) -> Option<()> {
        let place = Some((stream, options.conn));
        let what = match text {
            "gone" => What::ClientClosed { how: Some(Close::Eof) },
            "reset" => What::ClientClosed { how: Some(Close::Reset) },
            _ => {
                let (first, rest) = text.split_once(' ').unwrap_or((text, ""));
                let is_named = first.bytes().all(|byte| byte.is_ascii_uppercase()) && !first.is_empty();
                let (method, path, body) = match rest.split_once(' ') {
                    _ if !is_named => ("POST", "/mcp", text),
                    Some((path, body)) => (first, path, body),
                    None => (first, rest, ""),
                };
                let body = match body.strip_prefix("raw ") {
                    Some(raw) => unescape(raw)?,
                    None if body.is_empty() => Bytes::new(),
                    None => Bytes::from(self.dress.message(body, Dir::C2s, options)?),
                };
                let headers = options.headers(self.dress.headers(method, &body));
                let body = (!body.is_empty()).then_some(body);
                What::Request(RequestHead { method: method.to_owned(), path: path.to_owned(), headers, body })
            }
        };
        self.push(at, Dir::C2s, place, what);
        Some(())
    }

    fn http_answer(&mut self, at: Mono, stream: u64, options: &Options, text: &str) -> Option<()> {
        let place = Some((stream, options.conn));
        let closed = |how| What::ServerClosed { how: Some(how), exit_code: None, signal: None };
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        if let Ok(status) = word.parse::<u16>() {
            let (kind, body) = rest.split_once(' ').unwrap_or((rest, ""));
            let content_type = match kind {
                "sse" => Some("text/event-stream"),
                "json" => Some("application/json"),
                "text" => Some("text/plain"),
                "html" => Some("text/html"),
                "" => None,
                _ => return None,
            };
            let headers = options.headers(self.dress.answer_headers(content_type));
            self.push(at, Dir::S2c, place, What::ResponseHead { status, headers });
            if kind == "sse" {
                return Some(());
            }
            let body = match kind {
                "json" if body.starts_with("raw ") => unescape(body.get(4..)?)?,
                "json" => Bytes::from(self.dress.message(body, Dir::S2c, options)?),
                _ => unescape(body)?,
            };
            if !body.is_empty() {
                self.push(at, Dir::S2c, place, What::Body(body));
            }
            self.push(at, Dir::S2c, place, closed(Close::Eof));
            return Some(());
        }
        let what = match word {
            "end" => closed(Close::Eof),
            "reset" => closed(Close::Reset),
            "raw" => What::SseChunk(unescape(rest)?),
            _ if text.starts_with(':') => What::SseChunk(Bytes::from(format!("{text}\n\n"))),
            _ => {
                let mut block = String::new();
                for (name, value) in &options.set {
                    block.extend([name, ": ", value, "\n"]);
                }
                if !text.is_empty() {
                    block.extend(["data: ", &self.dress.message(text, Dir::S2c, options)?, "\n"]);
                }
                block.push('\n');
                What::SseChunk(Bytes::from(block))
            }
        };
        self.push(at, Dir::S2c, place, what);
        Some(())
    }

    fn tap(&mut self, at: Mono, text: &str) -> Option<()> {
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        let mut stream = None;
        let what = match word {
            "inject" => {
                let (what, target) = rest.split_once(' ').unwrap_or((rest, ""));
                stream = target.strip_prefix("stream ").and_then(|number| number.parse().ok());
                What::Inject {
                    what: what.to_owned(),
                    target: target.to_owned(),
                    by: "viewer".to_owned(),
                    cause: None,
                    sent: None,
                }
            }
            "telemetry" => What::Telemetry(rest.to_owned()),
            "gap" => What::Gap { lost: rest.parse().ok()?, bytes: 0, why: "example".to_owned() },
            "queue" => {
                let mut queue = Queue::default();
                for pair in rest.split_whitespace() {
                    let (name, number) = pair.split_once('=')?;
                    let number: u64 = number.parse().ok()?;
                    match name {
                        "stream" => stream = Some(number),
                        "events" => queue.events = number,
                        "bytes" => queue.bytes = number,
                        "capacity" => queue.capacity = Some(number),
                        "coalesced" => queue.coalesced = number,
                        "evicted" => queue.evicted = number,
                        "discarded" => queue.discarded = number,
                        "refused" => queue.refused = number,
                        "blocked_ms" => queue.blocked_ms = number,
                        _ => return None,
                    }
                }
                What::Queue(queue)
            }
            _ => return None,
        };
        self.push(at, Dir::Tap, stream.map(|stream| (stream, None)), what);
        Some(())
    }
}

/// Bytes with `\n`, `\r`, `\t`, `\\` and `\xHH` written out.
fn unescape(text: &str) -> Option<Bytes> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        bytes.push(match rest.next()? {
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'x' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            other => other,
        });
    }
    Some(Bytes::from(bytes))
}

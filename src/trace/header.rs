//! The first line of a recording: what was recorded, when, and by which process.

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Map, Value};

use super::escape::{push_number, push_string};
use super::words;
use crate::event::Transport;
use crate::time::{self, Clock};

/// The version of the format that is written, and the newest that is read.
pub const FORMAT_VERSION: u32 = 1;

/// What a recording says about itself. A recording without a first line of this kind has the
/// default: nothing known.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Header {
    /// Name of the session; parts of one recording share it.
    pub session: String,
    /// Wall time at which the session began.
    pub started: Option<DateTime<Utc>>,
    /// How the peers are joined; `None`: each event says it.
    pub transport: Option<Transport>,
    /// stdio: the server's command and its arguments.
    pub command: Vec<String>,
    /// HTTP: where the requests go.
    pub upstream: Option<String>,
    /// A name given by the user.
    pub label: Option<String>,
    /// Times come from a simulation, not from a clock.
    pub is_virtual: bool,
    /// ours: the machine's monotonic clock at `t_ms` 0, in nanoseconds; all recordings of one boot
    /// share it, so runs can be put on one axis.
    pub boot_ns: Option<u64>,
    /// ours: the recording process.
    pub pid: Option<u32>,
    /// ours: its parent, which is the client where a client starts its servers.
    pub parent: Option<u32>,
    /// ours: its working folder.
    pub cwd: Option<String>,
    /// ours: the version of midwire that wrote it.
    pub version: Option<String>,
    /// ours: number of this file among the parts of a long recording; `None` for the first.
    pub part: Option<u32>,
}

impl Header {
    /// The header of a session that this process records, with `clock` as its clock.
    #[must_use]
    pub fn of_this_process(transport: Transport, clock: Clock) -> Header {
        let boot_ns = time::boot_ns().saturating_sub(clock.now().0);
        let pid = std::process::id();
        Header {
            session: format!("{boot_ns:x}-{pid:x}"),
            started: Some(clock.started_wall()),
            transport: Some(transport),
            boot_ns: Some(boot_ns),
            pid: Some(pid),
            parent: Some(std::os::unix::process::parent_id()),
            cwd: std::env::current_dir().ok().map(|cwd| cwd.to_string_lossy().into_owned()),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            ..Header::default()
        }
    }

    /// Appends the header as a line, with its line end.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"midwire\":");
        push_number(out, u64::from(FORMAT_VERSION));
        let started = self.started.map(|at| at.to_rfc3339_opts(SecondsFormat::Nanos, true));
        push_text(out, "session", Some(self.session.as_str()).filter(|session| !session.is_empty()));
        push_text(out, "started", started.as_deref());
        push_text(out, "transport", self.transport.map(Transport::as_str));
        if !self.command.is_empty() {
            push_name(out, "command");
            for (idx, argument) in self.command.iter().enumerate() {
                out.push(if idx == 0 { b'[' } else { b',' });
                push_string(out, argument);
            }
            out.push(b']');
        }
        push_text(out, "upstream", self.upstream.as_deref());
        push_text(out, "label", self.label.as_deref());
        push_text(out, "clock", Some(if self.is_virtual { "virtual" } else { "real" }));
        push_count(out, "boot_ns", self.boot_ns);
        push_count(out, "pid", self.pid.map(u64::from));
        push_count(out, "parent", self.parent.map(u64::from));
        push_text(out, "cwd", self.cwd.as_deref());
        push_text(out, "version", self.version.as_deref());
        push_count(out, "part", self.part.map(u64::from));
        out.extend_from_slice(b"}\n");
    }

    /// Reads a header line; members that are missing or of the wrong kind count as not known.
    /// `None` if the line is not a header. The number is the version of the format it claims.
    pub(super) fn decode(line: &[u8]) -> Option<(u64, Header)> {
        let told: Map<String, Value> = serde_json::from_slice(line).ok()?;
        let format = told.get("midwire")?.as_u64().unwrap_or_default();
        let number = |name| told.get(name).and_then(Value::as_u64);
        let small = |name| number(name).and_then(|number| u32::try_from(number).ok());
        let text = |name| told.get(name).and_then(Value::as_str).map(str::to_owned);
        let started = text("started").and_then(|text| DateTime::parse_from_rfc3339(&text).ok());
        let header = Header {
            session: text("session").unwrap_or_default(),
            started: started.map(|at| at.with_timezone(&Utc)),
            transport: text("transport").and_then(|word| words::transport_of(&word)),
            command: told.get("command").map(arguments).unwrap_or_default(),
            upstream: text("upstream"),
            label: text("label"),
            is_virtual: text("clock").as_deref() == Some("virtual"),
            boot_ns: number("boot_ns"),
            pid: small("pid"),
            parent: small("parent"),
            cwd: text("cwd"),
            version: text("version"),
            part: small("part"),
        };
        Some((format, header))
    }
}

fn push_name(out: &mut Vec<u8>, name: &str) {
    out.push(b',');
    push_string(out, name);
    out.push(b':');
}

fn push_text(out: &mut Vec<u8>, name: &str, text: Option<&str>) {
    if let Some(text) = text {
        push_name(out, name);
        push_string(out, text);
    }
}

fn push_count(out: &mut Vec<u8>, name: &str, count: Option<u64>) {
    if let Some(count) = count {
        push_name(out, name);
        push_number(out, count);
    }
}

fn arguments(command: &Value) -> Vec<String> {
    match command {
        Value::String(whole) => vec![whole.clone()],
        Value::Array(parts) => parts.iter().filter_map(|part| part.as_str().map(str::to_owned)).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_back_as_written() {
        let mut header = Header::of_this_process(Transport::Stdio, Clock::start());
        header.command = vec!["python3".to_owned(), "server \"x\".py".to_owned()];
        header.label = Some("a\u{1b}[31m".to_owned());
        for header in [header, Header::default()] {
            let mut line = Vec::new();
            header.encode(&mut line);
            assert_eq!(Header::decode(&line), Some((1, header)));
        }
    }

    #[test]
    fn a_header_may_be_short_or_odd() {
        for (line, session) in [
            (r#"{"midwire":1}"#, Some("")),
            (r#"{"midwire":1,"session":"s","new":[1,2]}"#, Some("s")),
            (r#"{"midwire":1,"session":5,"pid":-1,"command":7,"started":"yesterday"}"#, Some("")),
            (r#"{"session":"s"}"#, None),
            (r#"{"t_ms":1,"dir":"c2s","raw":"\"midwire\""}"#, None),
            ("[]", None),
        ] {
            assert_eq!(
                Header::decode(line.as_bytes()).map(|(_, told)| told.session),
                session.map(str::to_owned)
            );
        }
    }
}

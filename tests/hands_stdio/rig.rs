//! A tap with hands in this process, between a client made of two pipes and a real server.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use midwire::command::{Applied, By, Refused, TakesOrders, words};
use midwire::event::tape::{Tape, Taped};
use midwire::event::{Dir, What};
use midwire::proxy::stdio::{self, ClientStreams, Hands, Options, Outcome, Waits};
use midwire::time::{Clock, Mono, Ms};
use rustix::pipe::PipeFlags;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Longer than anything here may take; passing it is a failure.
const LIMIT: Duration = Duration::from_secs(20);

/// The eras with their handshake, one before and one after it was given up.
pub(crate) const ERAS: [&str; 2] = ["2025-06-18", "2026-07-28"];

/// A pipe that no server inherits.
fn pipe() -> (OwnedFd, OwnedFd) {
    rustix::pipe::pipe_with(PipeFlags::CLOEXEC).unwrap()
}

type Shared<T> = Arc<Mutex<T>>;

/// A running tap.
pub(crate) struct Rig {
    pub(crate) hands: Arc<Hands>,
    era: &'static str,
    client: Option<File>,
    got: Shared<Vec<String>>,
    is_client_ended: Shared<bool>,
    taped: Shared<Vec<Taped>>,
    out: Shared<BTreeMap<u64, Mono>>,
    session: Option<JoinHandle<Outcome>>,
    folder: TempDir,
    sent: Vec<String>,
    has_handshake: bool,
}

/// What a tap did, once it is over.
pub(crate) struct Over {
    pub(crate) outcome: Outcome,
    /// Lines that the client got, after the handshake.
    pub(crate) client: Vec<String>,
    /// Lines that the server got, after the handshake.
    pub(crate) server: Vec<String>,
    /// What was done, and to what.
    pub(crate) injects: Vec<(String, String)>,
    pub(crate) taped: Vec<Taped>,
    pub(crate) out: BTreeMap<u64, Mono>,
}

impl Rig {
    /// With the reference server; its handshake, where the era has one, is over.
    pub(crate) fn start(era: &'static str) -> Rig {
        let era_option = if era < "2026" { "--era dual" } else { "" };
        let server = format!("tee got | exec {} serve stdio {era_option}", env!("CARGO_BIN_EXE_midwire"));
        let mut rig = Rig::start_with(era, &server);
        if era < "2026" {
            rig.has_handshake = true;
            let who = json!({ "name": "rig", "version": "1" });
            let params = json!({ "protocolVersion": era, "capabilities": {}, "clientInfo": who });
            rig.write(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }));
            rig.wait_until("the handshake is over", |rig| rig.client_lines().len() == 1);
            rig.write(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        }
        rig
    }

    /// With a server that is a line of shell, in a folder of its own.
    pub(crate) fn start_with(era: &'static str, server: &str) -> Rig {
        let folder = TempDir::new().unwrap();
        let (stdin, client) = pipe();
        let (from_tap, stdout) = pipe();
        let stderr = File::options().write(true).open("/dev/null").unwrap().into();
        let (tape, mut reader) = Tape::new(Clock::start(), 1 << 30);
        let hands = Hands::new(tape.clone(), 1);
        let taped: Shared<Vec<Taped>> = Shared::default();
        let out: Shared<BTreeMap<u64, Mono>> = Shared::default();
        thread::spawn({
            let (taped, out) = (taped.clone(), out.clone());
            move || loop {
                let batch = reader.wait(LIMIT);
                taped.lock().unwrap().extend(batch.items);
                out.lock().unwrap().extend(batch.handed_on.into_iter().map(|(ticket, at)| (ticket.0, at)));
                if batch.is_end {
                    return;
                }
            }
        });
        let (got, is_client_ended): (Shared<Vec<String>>, Shared<bool>) = Default::default();
        thread::spawn({
            let (got, is_client_ended) = (got.clone(), is_client_ended.clone());
            move || {
                let mut lines = BufReader::new(File::from(from_tap));
                let mut line = Vec::new();
                while lines.read_until(b'\n', &mut line).unwrap() > 0 {
                    got.lock().unwrap().push(String::from_utf8_lossy(&line).into_owned());
                    line.clear();
                }
                *is_client_ended.lock().unwrap() = true;
            }
        });
        let folder_path = folder.path().to_str().unwrap().to_owned();
        let command = ["sh", "-c", &format!("cd {folder_path}; {server}")].map(Into::into).to_vec();
        let waits = Waits { term: Ms(2000), kill: Ms(1000), ..Waits::default() };
        let options = Options { command, waits, telemetry: None };
        let session = thread::spawn({
            let hands = hands.clone();
            move || {
                let client = ClientStreams { stdin, stdout, stderr };
                stdio::run_between(&options, &tape, &hands, client).unwrap()
            }
        });
        Rig {
            hands,
            era,
            client: Some(client.into()),
            got,
            is_client_ended,
            taped,
            out,
            session: Some(session),
            folder,
            sent: Vec::new(),
            has_handshake: false,
        }
    }

    /// Gives an order in words, which must be carried out.
    pub(crate) fn order(&self, order: &str) -> Applied {
        self.try_order(order).unwrap_or_else(|refused| panic!("{order}: {refused}"))
    }

    pub(crate) fn try_order(&self, order: &str) -> Result<Applied, Refused> {
        self.hands.order(&words::parse(order).unwrap(), By::Ctl)
    }

    /// Writes a message as the client.
    pub(crate) fn write(&mut self, message: &Value) {
        self.write_line(&format!("{message}\n"));
    }

    pub(crate) fn write_line(&mut self, line: &str) {
        self.sent.push(line.to_owned());
        self.client.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
    }

    /// A call of a tool, with a progress token `tID`.
    pub(crate) fn call(&mut self, id: u32, tool: &str, arguments: &Value) {
        let mut meta = json!({ "progressToken": format!("t{id}") });
        if self.era >= "2026" {
            meta["io.modelcontextprotocol/protocolVersion"] = self.era.into();
            meta["io.modelcontextprotocol/clientInfo"] = json!({ "name": "rig", "version": "1" });
            meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
        }
        let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }));
    }

    pub(crate) fn echo(&mut self, id: u32, text: &str) {
        self.call(id, "echo", &json!({ "text": text }));
    }

    pub(crate) fn cancel(&mut self, id: u32) {
        let params = json!({ "requestId": id });
        self.write(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }));
    }

    pub(crate) fn client_lines(&self) -> Vec<String> {
        self.got.lock().unwrap().clone()
    }

    pub(crate) fn is_client_ended(&self) -> bool {
        *self.is_client_ended.lock().unwrap()
    }

    pub(crate) fn server_lines(&self) -> Vec<String> {
        let text = fs::read(self.folder.path().join("got")).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        text.split_inclusive('\n').map(str::to_owned).collect()
    }

    pub(crate) fn injects(&self) -> Vec<(String, String)> {
        injects(&self.taped.lock().unwrap())
    }

    /// How often something was done.
    pub(crate) fn count(&self, what: &str) -> usize {
        self.injects().iter().filter(|(name, _)| name == what).count()
    }

    pub(crate) fn wait_until(&self, what: &str, is_so: impl Fn(&Rig) -> bool) {
        let started = Instant::now();
        while !is_so(self) {
            assert!(
                started.elapsed() < LIMIT,
                "not within {LIMIT:?}: {what}; injects {:?}, client {:?}, server {:?}",
                self.injects(),
                last(&self.client_lines()),
                last(&self.server_lines())
            );
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Waits until the client got as many lines after the handshake.
    pub(crate) fn wait_for_client(&self, lines: usize) {
        let lines = lines + self.handshake_answers();
        self.wait_until("the client has its answers", |rig| rig.client_lines().len() >= lines);
    }

    fn handshake_answers(&self) -> usize {
        usize::from(self.has_handshake)
    }

    /// The client closes its side, and the tap ends.
    pub(crate) fn end(mut self) -> Over {
        drop(self.client.take());
        self.over()
    }

    /// The tap ends by itself.
    pub(crate) fn over(mut self) -> Over {
        self.wait_until("the session is over", |rig| rig.session.as_ref().unwrap().is_finished());
        let outcome = self.session.take().unwrap().join().unwrap();
        self.wait_until("the client sees the end", Rig::is_client_ended);
        let answers = self.handshake_answers();
        let client = self.client_lines().split_off(answers);
        let mut server = self.server_lines();
        server.retain(|line| !line.contains("initialize"));
        let injects = self.injects();
        let (taped, out) = (self.taped.lock().unwrap().clone(), self.out.lock().unwrap().clone());
        // What was read is on the tape with its own bytes, whatever was done to it. A thread may
        // still stand in its last read when the session is over.
        let recorded = bytes(&taped, Dir::C2s);
        assert!(self.sent.concat().starts_with(&recorded), "{recorded}");
        Over { outcome, client, server, injects, taped, out }
    }
}

pub(crate) fn injects(taped: &[Taped]) -> Vec<(String, String)> {
    let told = taped.iter().filter_map(|item| match &item.what {
        What::Inject { what, target, .. } => Some((what.clone(), target.clone())),
        _ => None,
    });
    told.collect()
}

/// All that was read in a direction.
pub(crate) fn bytes(taped: &[Taped], dir: Dir) -> String {
    let read = taped.iter().filter(|item| item.dir == dir).filter_map(|item| match &item.what {
        What::Bytes { bytes, .. } => Some(bytes.to_vec()),
        _ => None,
    });
    String::from_utf8_lossy(&read.collect::<Vec<_>>().concat()).into_owned()
}

/// A line in a few words: `call 7 a`, `cancel 7`, `ok 7 a`, `error 7 -32000`, `progress "t7"`.
pub(crate) fn short(line: &str) -> String {
    let Ok(message) = serde_json::from_str::<Value>(line) else { return "no message".to_owned() };
    let text = |value: &Value| match value.as_str() {
        Some(text) if text.len() > 40 => format!(" {} bytes", text.len()),
        Some(text) => format!(" {text}"),
        None => String::new(),
    };
    let id = &message["id"];
    match message["method"].as_str() {
        Some("notifications/progress") => format!("progress {}", message["params"]["progressToken"]),
        Some("notifications/cancelled") => format!("cancel {}", message["params"]["requestId"]),
        Some("tools/call") => format!("call {id}{}", text(&message["params"]["arguments"]["text"])),
        Some(method) => format!("{method} {id}"),
        None if message["error"].is_object() => format!("error {id} {}", message["error"]["code"]),
        None => format!("ok {id}{}", text(&message["result"]["content"][0]["text"])),
    }
}

pub(crate) fn shorts(lines: &[String]) -> Vec<String> {
    lines.iter().map(|line| short(line)).collect()
}

fn last(lines: &[String]) -> Vec<String> {
    shorts(&lines[lines.len().saturating_sub(8)..])
}

pub(crate) fn sorted(lines: &[String]) -> Vec<String> {
    let mut lines = shorts(lines);
    lines.sort();
    lines
}

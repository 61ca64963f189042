//! A tap under test, and the means to look at it.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::rc::Rc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use tempfile::TempDir;

/// Longer than anything here may take; passing it is a failure.
const LIMIT: Duration = Duration::from_secs(30);

/// A running tap with its own folder.
pub(crate) struct Tap {
    pub(crate) child: Child,
    pub(crate) folder: Rc<TempDir>,
    pub(crate) record: PathBuf,
}

/// How a tap ended, and what came out of it.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) recording: Vec<Value>,
    pub(crate) folder: Rc<TempDir>,
}

/// The command line of a tap around `server`, with its recording in `record`.
pub(crate) fn command(options: &[&str], record: &Path, server: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_midwire"));
    command.arg("stdio").arg("--record").arg(record).args(options).arg("--").args(server);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

impl Tap {
    pub(crate) fn start(options: &[&str], server: &[&str]) -> Tap {
        let folder = TempDir::new().unwrap();
        let record = folder.path().join("session.mw.jsonl");
        Tap::start_in(folder, options, record, server)
    }

    pub(crate) fn start_recording(record: &Path, server: &[&str]) -> Tap {
        Tap::start_in(TempDir::new().unwrap(), &[], record.to_owned(), server)
    }

    fn start_in(folder: TempDir, options: &[&str], record: PathBuf, server: &[&str]) -> Tap {
        let mut command = command(options, &record, server);
        let child = command.current_dir(&folder).env("MIDWIRE_STATE_DIR", folder.path()).spawn().unwrap();
        Tap { child, folder: Rc::new(folder), record }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.child.stdin.as_mut().unwrap().write_all(bytes).unwrap();
    }

    pub(crate) fn read_exact(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.child.stdout.as_mut().unwrap().read_exact(&mut bytes).unwrap();
        bytes
    }

    /// Writes `input` in pieces of the given sizes, taken round and round, while its output is
    /// read; then closes its stdin and waits for the end.
    pub(crate) fn talk(mut self, input: Vec<u8>, piece_sizes: Vec<usize>) -> Ended {
        let mut stdin = self.child.stdin.take().unwrap();
        let writing = thread::spawn(move || {
            let (mut rest, mut sizes) = (&input[..], piece_sizes.iter().cycle());
            while !rest.is_empty() {
                let (piece, after) = rest.split_at((*sizes.next().unwrap()).min(rest.len()));
                // A server that leaves early is a case of its own.
                if stdin.write_all(piece).is_err() {
                    return;
                }
                rest = after;
            }
        });
        let ended = self.end();
        writing.join().unwrap();
        ended
    }

    /// Closes what is still open of its stdin, reads all that it says, waits for its end.
    pub(crate) fn end(mut self) -> Ended {
        drop(self.child.stdin.take());
        let stdout = read_aside(self.child.stdout.take());
        let stderr = read_aside(self.child.stderr.take());
        let status = self.wait();
        let (stdout, stderr) = (stdout.join().unwrap(), stderr.join().unwrap());
        Ended { status, stdout, stderr, recording: read_recording(&self.record), folder: self.folder.clone() }
    }

    /// Waits for its end without closing anything.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let mut status = None;
        wait_until("the tap has ended", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }

    pub(crate) fn signal(&self, name: &str) {
        signal(self.child.id(), name);
    }

    /// Waits until the server has written a number into `file` in the tap's folder.
    pub(crate) fn number_in(&self, file: &str) -> u32 {
        let path = self.folder.path().join(file);
        let mut number = None;
        wait_until("the server has told its number", || {
            let text = fs::read_to_string(&path).unwrap_or_default();
            number = text.strip_suffix('\n').and_then(|text| text.parse().ok());
            number.is_some()
        });
        number.unwrap()
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read_aside(stream: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            stream.read_to_end(&mut bytes).unwrap();
        }
        bytes
    })
}

/// Sends a signal to a process, by its name without `SIG`.
pub(crate) fn signal(pid: u32, name: &str) {
    let status = Command::new("kill").args([format!("-{name}"), pid.to_string()]).status().unwrap();
    assert!(status.success());
}

/// Whether a process runs; one that has ended and waits to be collected does not.
pub(crate) fn is_running(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// Looks again and again until `is_so`, within the limit.
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < LIMIT, "not within {LIMIT:?}: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// All whole lines of a recording; empty when there is none, or no file that ends.
pub(crate) fn read_recording(path: &Path) -> Vec<Value> {
    if !path.is_file() {
        return Vec::new();
    }
    let text = fs::read_to_string(path).unwrap_or_default();
    let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    whole.map(|line| serde_json::from_str(line).unwrap()).filter(|v: &Value| v["midwire"].is_null()).collect()
}

/// The bytes that a recorded event holds, if it holds any.
pub(crate) fn recorded_bytes(event: &Value) -> Option<Vec<u8>> {
    match (event["raw"].as_str(), event["raw_b64"].as_str()) {
        (Some(text), _) => Some(text.as_bytes().to_vec()),
        (None, Some(text)) => Some(STANDARD.decode(text).unwrap()),
        (None, None) => None,
    }
}

/// All recorded bytes of one direction, in order.
pub(crate) fn recorded(recording: &[Value], dir: &str) -> Vec<u8> {
    recording.iter().filter(|event| event["dir"] == dir).filter_map(recorded_bytes).flatten().collect()
}

/// All events of one name.
pub(crate) fn events<'a>(recording: &'a [Value], name: &str) -> Vec<&'a Value> {
    recording.iter().filter(|event| event["event"] == name).collect()
}

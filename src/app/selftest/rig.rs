//! Client, tap and server: the client in this process, the others as processes of this very
//! program, in a folder of their own.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context as _, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};
use tokio::time::timeout;

use super::folder::Folder;
use super::trace::Trace;
use crate::event::telemetry::SOCKET_VARIABLE;
use crate::peer::PeerError;
use crate::peer::client::Client;
use crate::peer::faults::{Fault, Faults, Side};
use crate::peer::server::ENDPOINT;
use crate::spec::transport::Transport;
use crate::time::Ms;
use crate::trace::library::STATE_VARIABLE;

/// How long a process may take to say that it listens, or to end. ours: for a machine that has
/// other things to do.
const PATIENCE: Ms = Ms(10_000);

/// Time between two looks at a recording.
const LOOK: Ms = Ms(50);

/// What all rigs of a self-test share.
#[derive(Debug)]
pub(super) struct Stage {
    /// This program.
    program: PathBuf,
    folder: Folder,
    faults: Vec<Fault>,
    faults_of_client: Arc<Faults>,
    /// Where recordings are kept, if they are.
    keep: Option<PathBuf>,
    made: AtomicU32,
}

impl Stage {
    /// # Errors
    /// When this program cannot be found, or no folder can be made.
    pub(super) fn set_up(faults: Vec<Fault>, keep: Option<PathBuf>) -> anyhow::Result<Stage> {
        let program = std::env::current_exe().context("cannot find this program, to start it again")?;
        let folder = Folder::new().with_context(|| {
            let among = std::env::temp_dir();
            format!("cannot make a folder in {}; set TMPDIR to one that can be written", among.display())
        })?;
        if let Some(keep) = &keep {
            std::fs::create_dir_all(keep).with_context(|| format!("cannot make {}", keep.display()))?;
        }
        let of_client = faults.iter().copied().filter(|fault| fault.side() == Side::Client);
        let faults_of_client = Arc::new(Faults::with(of_client));
        Ok(Stage { program, folder, faults, faults_of_client, keep, made: AtomicU32::new(0) })
    }

    /// What the clients do wrong.
    pub(super) fn faults_of_client(&self) -> Arc<Faults> {
        self.faults_of_client.clone()
    }

    /// A path for a file that several rigs share.
    pub(super) fn shared(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{name}-{}", self.made.fetch_add(1, Ordering::Relaxed)))
    }

    /// Client, tap and server; `statement`: for whose sake. `serve`: further options of the server.
    ///
    /// # Errors
    /// When one of them cannot be started.
    pub(super) async fn rig(&self, statement: u8, on: Transport, serve: &[&str]) -> anyhow::Result<Rig> {
        let place = self.place(statement, on)?;
        match on {
            Transport::Stdio => {
                let client = self.tap_on_pipes(&place, serve)?;
                Ok(Rig { client, http: None, place })
            }
            Transport::Http => {
                let server = self.serve_http(&place, "127.0.0.1:0", serve).await?;
                let (url, tap) = self.tap_on_http(&place, &server).await?;
                let client = self.client(&url)?;
                let serve = serve.iter().map(|word| (*word).to_owned()).collect();
                let http = Http { url, tap, server, serve };
                Ok(Rig { client, http: Some(http), place })
            }
        }
    }

    /// A folder of its own for what belongs together.
    pub(super) fn place(&self, statement: u8, on: Transport) -> anyhow::Result<Place> {
        let nth = self.made.fetch_add(1, Ordering::Relaxed);
        let name = format!("{statement}-{}-{nth}", on.as_str());
        let folder = self.folder.path().join(&name);
        std::fs::create_dir(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let kept = self.keep.as_ref().map(|keep| keep.join(format!("{name}.mw.jsonl")));
        Ok(Place { folder, kept })
    }

    /// A client of a URL, with its faults.
    pub(super) fn client(&self, url: &str) -> anyhow::Result<Client> {
        Ok(Client::http(url)?.with_faults(self.faults_of_client.clone()))
    }

    /// A tap on pipes with its server, and the client before it.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(super) fn tap_on_pipes(&self, place: &Place, serve: &[&str]) -> Result<Client, PeerError> {
        let mut command = self.command(place);
        command.arg("stdio").arg(with("--telemetry", &place.told()));
        command.arg("--record").arg(place.recording()).arg("--").arg(&self.program);
        command.args(["serve", "stdio", "--telemetry"]).args(self.of_server(place, serve));
        command.stderr(Stdio::null());
        Ok(Client::start(command)?.with_faults(self.faults_of_client.clone()))
    }

    async fn serve_http(&self, place: &Place, listen: &str, serve: &[&str]) -> anyhow::Result<Server> {
        let mut command = self.command(place);
        command.args(["serve", "http", "--listen", listen]).arg(with("--telemetry", &place.told()));
        command.args(self.of_server(place, serve));
        let (child, said, word) = start(command, "serving http://").await?;
        let address = word.strip_suffix(ENDPOINT).unwrap_or(&word);
        let address = address.parse().with_context(|| format!("{word} is no address"))?;
        Ok(Server { child, _said: said, address })
    }

    async fn tap_on_http(&self, place: &Place, server: &Server) -> anyhow::Result<(String, Child)> {
        let mut command = self.command(place);
        command.args(["http", "--headless", "--listen", "127.0.0.1:0", "--upstream"]);
        command.arg(format!("http://{}{ENDPOINT}", server.address));
        command.arg(with("--telemetry", &place.told())).arg("--record").arg(place.recording());
        let (child, _said, url) = start(command, "give clients ").await?;
        Ok((url, child))
    }

    /// This program, in the folder of its rig and nowhere else.
    fn command(&self, place: &Place) -> Command {
        let mut command = Command::new(&self.program);
        command.env(STATE_VARIABLE, &place.folder).env_remove(SOCKET_VARIABLE).kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    /// Options of a server: its ledger, its faults, and what else is wanted. The last one counts.
    fn of_server(&self, place: &Place, serve: &[&str]) -> Vec<OsString> {
        let mut options = Vec::new();
        if !serve.contains(&"--ledger") {
            options.extend(["--ledger".into(), place.folder.join("ledger").into_os_string()]);
        }
        for fault in self.faults.iter().filter(|fault| fault.side() == Side::Server) {
            options.extend(["--fault".into(), OsString::from(fault.as_str())]);
        }
        options.extend(serve.iter().map(OsString::from));
        options
    }
}

/// `--NAME=PATH`.
fn with(name: &str, path: &Path) -> OsString {
    let mut option = OsString::from(name);
    option.push("=");
    option.push(path);
    option
}

/// Starts a process and waits for the line that begins so, after the name of the program; what is left
/// to be read of its standard error, and the next word.
async fn start(
    mut command: Command,
    beginning: &str,
) -> anyhow::Result<(Child, Lines<BufReader<ChildStderr>>, String)> {
    let mut child = command.stderr(Stdio::piped()).spawn().context("cannot start this program again")?;
    let stderr = child.stderr.take().context("a process without standard error")?;
    let mut said = BufReader::new(stderr).lines();
    let listening = async {
        let mut last = String::new();
        while let Some(line) = said.next_line().await? {
            let rest = line.strip_prefix("midwire: ").and_then(|line| line.strip_prefix(beginning));
            if let Some(word) = rest.and_then(|rest| rest.split(' ').next()) {
                return Ok(word.to_owned());
            }
            last = line;
        }
        bail!("a process ended before it listened: {last}")
    };
    let word = timeout(PATIENCE.into(), listening).await.context("a process does not listen in time")??;
    Ok((child, said, word))
}

/// Where a rig has its files.
#[derive(Debug, Clone)]
pub(super) struct Place {
    folder: PathBuf,
    kept: Option<PathBuf>,
}

impl Place {
    pub(super) fn recording(&self) -> PathBuf {
        self.folder.join("session.mw.jsonl")
    }

    fn told(&self) -> PathBuf {
        self.folder.join("told")
    }

    /// Reads the recording, whose tap has ended.
    ///
    /// # Errors
    /// As [`Trace::read`], or when it cannot be kept.
    pub(super) async fn read(&self) -> anyhow::Result<Trace> {
        if let Some(kept) = &self.kept {
            std::fs::copy(self.recording(), kept)
                .with_context(|| format!("cannot keep a recording as {}", kept.display()))?;
        }
        let path = self.recording();
        tokio::task::spawn_blocking(move || Trace::read(&path)).await?
    }
}

/// A server over HTTP.
#[derive(Debug)]
struct Server {
    child: Child,
    /// Held open: what it says later must not end it.
    _said: Lines<BufReader<ChildStderr>>,
    address: SocketAddr,
}

#[derive(Debug)]
struct Http {
    url: String,
    tap: Child,
    server: Server,
    serve: Vec<String>,
}

/// Client, tap and server that run. Dropped before their end, they are killed.
#[derive(Debug)]
pub(super) struct Rig {
    pub(super) client: Client,
    http: Option<Http>,
    place: Place,
}

impl Rig {
    /// Where clients go, over HTTP.
    ///
    /// # Errors
    /// On pipes there is no such place.
    pub(super) fn url(&self) -> anyhow::Result<&str> {
        Ok(&self.http.as_ref().context("there is no URL on pipes")?.url)
    }

    /// Kills the server, and starts another one at the same address.
    ///
    /// # Errors
    /// On pipes, and when it cannot be started.
    pub(super) async fn replace_server(&mut self, stage: &Stage) -> anyhow::Result<()> {
        let http = self.http.as_mut().context("there is no server of ours on pipes")?;
        http.server.child.kill().await?;
        let serve: Vec<&str> = http.serve.iter().map(String::as_str).collect();
        http.server = stage.serve_http(&self.place, &http.server.address.to_string(), &serve).await?;
        Ok(())
    }

    /// Waits until the recording holds this word, or so long.
    pub(super) async fn until_told(&self, word: &str, limit: Ms) {
        let path = self.place.recording();
        let word = word.to_owned();
        let look = async move {
            let (mut from, mut tail) = (0, Vec::new());
            loop {
                let (path, begun, needle) = (path.clone(), std::mem::take(&mut tail), word.clone());
                let looked =
                    tokio::task::spawn_blocking(move || grown(&path, from, begun, needle.as_bytes()));
                match looked.await {
                    Ok(Some((read, rest))) => (from, tail) = (from + read, rest),
                    _ => return,
                }
                tokio::time::sleep(LOOK.into()).await;
            }
        };
        // What has not come by then is missing in the recording, which is judged.
        let _ = tokio::time::timeout(limit.into(), look).await;
    }

    /// Ends all three in order, and reads what was recorded.
    ///
    /// # Errors
    /// When one of them does not end, or the recording cannot be read.
    pub(super) async fn end(self) -> anyhow::Result<Trace> {
        let Rig { client, http, place } = self;
        close(client).await?;
        if let Some(Http { mut tap, mut server, .. }) = http {
            // The server first: its last words are for the tap.
            end(&mut server.child).await?;
            end(&mut tap).await?;
        }
        place.read().await
    }
}

/// Ends a client, and the tap that it has started.
///
/// # Errors
/// When that had to be forced.
pub(super) async fn close(client: Client) -> anyhow::Result<()> {
    let exit = client.close().await?;
    ensure!(exit.is_none_or(|exit| !exit.was_forced), "a tap did not end with its client");
    Ok(())
}

/// Asks a process to end, and waits for that.
///
/// # Errors
/// When it does not end in time; then it is killed.
async fn end(child: &mut Child) -> anyhow::Result<()> {
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
    if let Some(pid) = pid {
        // It may end by itself at this very moment.
        let _ = kill_process(pid, Signal::TERM);
    }
    if timeout(PATIENCE.into(), child.wait()).await.is_err() {
        child.kill().await?;
        bail!("a process did not end in time");
    }
    Ok(())
}

/// What a file has grown by since `from`: how much, and its end, in which a word may begin. `None`: the
/// word is there, or the file cannot be read.
fn grown(path: &Path, from: u64, mut tail: Vec<u8>, word: &[u8]) -> Option<(u64, Vec<u8>)> {
    let mut file = File::open(path).ok()?;
    file.seek(SeekFrom::Start(from)).ok()?;
    let read = file.read_to_end(&mut tail).ok()?;
    if memchr::memmem::find(&tail, word).is_some() {
        return None;
    }
    let rest = tail.split_off(tail.len().saturating_sub(word.len()));
    Some((read as u64, rest))
}

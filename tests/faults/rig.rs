//! Client, tap and server together, and what the rules say about what passed.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use midwire::event::{Event, What};
use midwire::machine::policy::Policy;
use midwire::model::Model;
use midwire::peer::client::auth::{Auth, AuthSettings, Secret};
use midwire::peer::client::era::EraPolicy;
use midwire::peer::client::peer::{Dial, Peer, Setup};
use midwire::peer::client::{CallOptions, Client};
use midwire::peer::faults::{Fault, Faults, Side};
use midwire::peer::server::{AnswerMode, LedgerPlace, ServerEra, ServerOptions, serve_http};
use midwire::peer::telemetry::Telemetry;
use midwire::rules::{Finding, Judge, Severity};
use midwire::spec::transport::Transport;
use midwire::time::{Mono, Ms};
use midwire::trace::{Ending, Recording};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub(crate) const MIDWIRE: &str = env!("CARGO_BIN_EXE_midwire");

/// How long the server's cleanup after a cancel may take.
pub(crate) const CLEANUP_LIMIT: Ms = Ms(1000);

/// Which way the messages go, and how the server is set up.
#[derive(Debug, Clone, Copy)]
pub(crate) enum On {
    /// On pipes; options of `midwire serve stdio`.
    Stdio(&'static [&'static str]),
    /// On pipes, with a server that tells nothing of its work.
    Untold,
    /// Over HTTP.
    Http(AnswerMode),
    /// Over HTTP as event streams, with a comment every 100 ms.
    Lively,
    /// Over HTTP, with a server of the older revisions.
    Old,
}

impl On {
    pub(crate) fn transport(self) -> Transport {
        match self {
            On::Stdio(_) | On::Untold => Transport::Stdio,
            On::Http(_) | On::Lively | On::Old => Transport::Http,
        }
    }
}

/// A client whose messages pass a tap that also hears what the server tells.
pub(crate) struct Rig {
    pub(crate) client: Client,
    folder: TempDir,
    http: Option<HttpTap>,
    faults_of_client: Arc<Faults>,
}

/// A tap in a process of its own, before a server in this one.
struct HttpTap {
    url: String,
    process: Child,
    server: CancellationToken,
    serving: JoinHandle<()>,
    address: SocketAddr,
    options: ServerOptions,
}

impl Drop for HttpTap {
    fn drop(&mut self) {
        // Nothing is left over of a test that failed.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Rig {
    /// All three, with these faults.
    pub(crate) async fn start(on: On, faults: &[Fault]) -> Rig {
        let of = |side| faults.iter().copied().filter(move |fault| fault.side() == side);
        let faults_of_server = Arc::new(Faults::with(of(Side::Server)));
        let options = |mode| ServerOptions { mode, faults: faults_of_server, ..ServerOptions::default() };
        let rig = match on {
            On::Stdio(options) => {
                let names = of(Side::Server).flat_map(|fault| ["--fault", fault.as_str()]);
                Rig::stdio(&["--telemetry"].iter().chain(options).copied().chain(names).collect::<Vec<_>>())
            }
            On::Untold => Rig::stdio(&[]),
            On::Http(mode) => Rig::http(options(mode)).await,
            On::Old => Rig::http(ServerOptions { era: ServerEra::Legacy, ..options(AnswerMode::Auto) }).await,
            On::Lively => Rig::http(ServerOptions { keep_alive: Ms(100), ..options(AnswerMode::Sse) }).await,
        };
        let faults_of_client = Arc::new(Faults::with(of(Side::Client)));
        Rig { client: rig.client.with_faults(faults_of_client.clone()), faults_of_client, ..rig }
    }

    /// `midwire serve stdio` with these options, behind `midwire stdio`.
    pub(crate) fn stdio(serve_options: &[&str]) -> Rig {
        let folder = TempDir::new().unwrap();
        let state = format!("MIDWIRE_STATE_DIR={}", folder.path().display());
        let record = record_in(&folder).display().to_string();
        let tap = ["env", &state, MIDWIRE, "stdio", "--telemetry", "--record", &record, "--"];
        let server = [MIDWIRE, "serve", "stdio"];
        let command: Vec<String> =
            tap.iter().chain(&server).chain(serve_options).map(|word| (*word).to_owned()).collect();
        let client = Client::spawn(&command).unwrap();
        Rig { client, folder, http: None, faults_of_client: Arc::default() }
    }

    /// The reference server with these options in this process, behind `midwire http`.
    pub(crate) async fn http(options: ServerOptions) -> Rig {
        let folder = TempDir::new().unwrap();
        let socket = folder.path().join("told");
        let ledger = LedgerPlace::File(folder.path().join("ledger"));
        let telemetry = Some(Telemetry::at(&socket).unwrap());
        let options = ServerOptions { telemetry, ledger, cleanup_limit: CLEANUP_LIMIT, ..options };
        let server = CancellationToken::new();
        let any = "127.0.0.1:0".parse().unwrap();
        let (address, serving) = serve_http(any, options.clone(), server.clone()).await.unwrap();
        let serving = tokio::spawn(serving);
        let mut process = Command::new(MIDWIRE)
            .args(["http", "--headless", "--listen", "127.0.0.1:0", "--upstream"])
            .arg(format!("http://{address}/mcp"))
            .arg(format!("--telemetry={}", socket.display()))
            .arg("--record")
            .arg(record_in(&folder))
            .env("MIDWIRE_STATE_DIR", folder.path())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(process.stderr.take().unwrap()).lines();
        let url = said.find_map(|line| {
            line.unwrap().strip_prefix("midwire: give clients ")?.split(' ').next().map(str::to_owned)
        });
        let url = url.unwrap();
        let client = Client::http(&url).unwrap();
        let http = HttpTap { url, process, server, serving, address, options };
        Rig { client, folder, http: Some(http), faults_of_client: Arc::default() }
    }

    /// The client as one that keeps up what it has begun; over HTTP, and on connections of its own.
    pub(crate) async fn peer(&self, options: &CallOptions) -> Peer {
        let (url, faults) = (self.http.as_ref().unwrap().url.clone(), self.faults_of_client.clone());
        let dial: Dial = Arc::new(move || Ok(Client::http(&url)?.with_faults(faults.clone())));
        let setup = Setup { era: patient(), ..Setup::default() };
        Peer::connect("server", dial, setup, Arc::default(), options).await.unwrap()
    }

    /// Has the client say who it is in all its requests over HTTP.
    pub(crate) fn sign_in(&mut self) {
        let url = &self.http.as_ref().unwrap().url;
        let settings = AuthSettings { bearer: Some(Secret::new("ann")), ..AuthSettings::default() };
        let auth = Arc::new(Auth::new(url, settings).unwrap());
        let client = Client::http(url).unwrap().with_auth(auth);
        self.client = client.with_faults(self.faults_of_client.clone());
    }

    /// The process of a tap over HTTP.
    pub(crate) fn tap(&self) -> Option<Pid> {
        self.http.as_ref().map(|http| Pid::from_child(&http.process))
    }

    /// Ends the server and starts another one in its place, with the same options.
    pub(crate) async fn restart_server(&mut self) {
        let http = self.http.as_mut().unwrap();
        http.server.cancel();
        (&mut http.serving).await.unwrap();
        http.server = CancellationToken::new();
        let (_, serving) = serve_http(http.address, http.options.clone(), http.server.clone()).await.unwrap();
        http.serving = tokio::spawn(serving);
    }

    /// Ends all three and reads what was recorded.
    pub(crate) async fn end(self, policy: &Policy, stretch: u64) -> Judged {
        self.client.close().await.unwrap();
        if let Some(mut http) = self.http {
            end_tap(Some(Pid::from_child(&http.process)));
            tokio::task::spawn_blocking(move || {
                http.process.wait().unwrap();
                http.server.cancel();
            })
            .await
            .unwrap();
        }
        Judged::read(&record_in(&self.folder), policy, stretch)
    }
}

/// How an era is found out on a machine that has other things to do.
pub(crate) fn patient() -> EraPolicy {
    EraPolicy { probe_limit: Ms(20_000), initialize_limit: Ms(20_000), ..EraPolicy::default() }
}

/// Asks a tap to end; one that has been asked already may be gone.
pub(crate) fn end_tap(tap: Option<Pid>) {
    let _ = tap.map(|tap| kill_process(tap, Signal::TERM));
}

fn record_in(folder: &TempDir) -> PathBuf {
    folder.path().join("session.mw.jsonl")
}

/// A recording, understood and judged.
pub(crate) struct Judged {
    pub(crate) ending: Ending,
    pub(crate) events: Vec<Event>,
    pub(crate) model: Model,
    pub(crate) findings: Vec<Finding>,
}

impl Judged {
    /// `stretch`: how many times as long everything is taken to have lasted, for rules that speak of
    /// longer times than a test has.
    pub(crate) fn read(path: &Path, policy: &Policy, stretch: u64) -> Judged {
        let mut recording = Recording::open(path).unwrap();
        let (mut model, mut judge) = (Model::new(), Judge::with_policy(policy.clone()));
        model.set_grace(policy.limits.grace);
        let mut events = Vec::new();
        while let Some((mut event, _)) = recording.next().unwrap() {
            event.at.0 *= stretch;
            event.out = event.out.map(|out| Mono(out.0 * stretch));
            model.fold(&event, u32::try_from(events.len()).unwrap());
            judge.look(&model);
            events.push(event);
        }
        Judged { ending: recording.ending(), events, model, findings: judge.findings().to_vec() }
    }

    /// Nothing is missing, as the recording says itself.
    pub(crate) fn is_whole(&self) -> bool {
        self.ending == Ending::Clean { is_complete: Some(true) }
    }

    /// The rules that fired, with what they said.
    pub(crate) fn said(&self) -> Vec<String> {
        let said = |finding: &Finding| {
            format!("{} {}: {}", finding.severity.as_str(), finding.rule, finding.sentence)
        };
        self.findings.iter().map(said).collect()
    }

    /// Those that are more than hints.
    pub(crate) fn grave(&self) -> Vec<String> {
        let is_grave = |finding: &&Finding| finding.severity > Severity::Hint;
        let said = |finding: &Finding| format!("{}: {}", finding.rule, finding.sentence);
        self.findings.iter().filter(is_grave).map(said).collect()
    }

    /// What the server told, in order: the exchange, and the object.
    pub(crate) fn told(&self) -> Vec<(Option<u64>, serde_json::Value)> {
        let told = |event: &Event| match &event.what {
            What::Telemetry(text) => Some((event.stream, serde_json::from_str(text).unwrap())),
            _ => None,
        };
        self.events.iter().filter_map(told).collect()
    }
}

//! Running a tap with its recording.

use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context as _;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::control::desk::{self, Desk};
use super::session::{About, Session};
use super::sockets::{OwnerSocket, SocketAt};
use crate::command::Recipe;
use crate::event::Transport;
use crate::event::tape::Tape;
use crate::machine::policy::Policy;
use crate::proxy::http::{Hands, HttpOptions, HttpTap};
use crate::proxy::stdio;
use crate::proxy::telemetry::{Callers, Telemetry};

/// How long open connections may take to end after the tap was told to stop.
const WIND_DOWN: Duration = Duration::from_secs(1);

/// Runs a stdio tap until the server is gone; returns the exit status to pass on. `announce` is
/// told, before the server starts, what a person must know (nothing in health).
///
/// # Errors
/// When the server cannot be started, or a fault cannot be armed.
pub fn run_stdio(options: &stdio::Options, about: About, announce: impl Fn(&str)) -> anyhow::Result<i32> {
    let telemetry_at = about.telemetry.clone();
    let orders = Orders::of(&about);
    let server = about.command.join(" ");
    let mut session = Session::start(Transport::Stdio, about);
    if let Some(trouble) = session.trouble() {
        announce(&format!("not recording: {trouble}"));
    }
    let hands = stdio::Hands::new(session.tape().clone(), orders.seed);
    hands.set_policy(orders.policy, server);
    if let Err(error) = desk::arm(&orders.recipe, hands.as_ref()) {
        session.discard();
        return Err(error);
    }
    let desk = Desk::open(orders.at.as_ref(), &mut session, hands.clone()).unwrap_or_else(|error| {
        announce(&format!("no orders are taken: {error:#}"));
        None
    });
    session.announce(None);
    let telling = Telling::start(telemetry_at.as_ref(), &session, None).unwrap_or_else(|error| {
        announce(&format!("the server can tell nothing about its work: {error:#}"));
        None
    });
    let mut options = options.clone();
    options.telemetry = telling.as_ref().map(|telling| telling.socket.path().to_owned());
    let ran = stdio::run(&options, session.tape(), &hands);
    drop(desk);
    // What was told by now belongs to the recording.
    drop(telling);
    match ran {
        Ok(outcome) => {
            session.finish();
            Ok(outcome.status())
        }
        Err(error) => {
            session.discard();
            Err(error.into())
        }
    }
}

/// What a user says about orders.
struct Orders {
    at: Option<SocketAt>,
    recipe: Recipe,
    seed: u64,
    policy: Policy,
}

impl Orders {
    fn of(about: &About) -> Orders {
        let (at, recipe) = (about.control.clone(), about.recipe.clone());
        let seed = about.seed.or(recipe.seed).unwrap_or(0);
        Orders { at, recipe, seed, policy: about.policy.clone() }
    }
}

/// The socket on which servers tell about their work, and its reader, which ends first.
#[derive(Debug)]
struct Telling {
    _reader: Telemetry,
    socket: OwnerSocket,
}

impl Telling {
    /// `None`: nobody asked for it.
    fn start(
        at: Option<&SocketAt>,
        session: &Session,
        callers: Option<Callers>,
    ) -> anyhow::Result<Option<Telling>> {
        let Some(at) = at else { return Ok(None) };
        let mut socket = OwnerSocket::bind_at(at, &format!("{}.telemetry", session.name()))?;
        let listener = socket.take_listener().context("the socket for telemetry is taken")?;
        let reader = Telemetry::start(listener, session.tape().clone(), callers)?;
        Ok(Some(Telling { _reader: reader, socket }))
    }
}

/// An HTTP tap that runs on a thread of its own.
#[derive(Debug)]
pub struct RunningHttp {
    /// The URL to give to clients.
    pub client_url: String,
    /// Why the server could not be reached at the start; it may come later.
    pub upstream_trouble: Option<String>,
    /// Why nothing is recorded although it should be.
    pub recording_trouble: Option<String>,
    /// The file that is being written.
    pub recording: Option<PathBuf>,
    /// The socket on which the server may tell about its work.
    pub telemetry: Option<PathBuf>,
    /// Why it may not, although it should.
    pub telemetry_trouble: Option<String>,
    /// Where it takes orders.
    pub control: Option<PathBuf>,
    /// Why it takes none, although it should.
    pub control_trouble: Option<String>,
    /// Where notes of the user's go.
    pub tape: Tape,
    desk: Option<Desk>,
    telling: Option<Telling>,
    stop: CancellationToken,
    thread: JoinHandle<()>,
    session: Session,
}

/// The signals that end a tap without a screen: from when this is made, none of them ends the
/// process by itself, and so tears the recording.
#[derive(Debug)]
pub struct EndSignals {
    runtime: tokio::runtime::Runtime,
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl EndSignals {
    /// Listens for `SIGINT`, `SIGTERM` and `SIGHUP`.
    ///
    /// # Errors
    /// When signals cannot be listened for.
    pub fn listen() -> anyhow::Result<EndSignals> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let within = runtime.enter();
        let (interrupt, terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let hangup = signal(SignalKind::hangup())?;
        drop(within);
        Ok(EndSignals { runtime, interrupt, terminate, hangup })
    }

    /// Waits until one of them has come.
    pub fn wait(mut self) {
        self.runtime.block_on(async {
            tokio::select! {
                _ = self.interrupt.recv() => {}
                _ = self.terminate.recv() => {}
                _ = self.hangup.recv() => {}
            }
        });
    }
}

/// What the tap's thread says when it listens.
struct Listening {
    client_url: String,
    upstream_trouble: Option<String>,
    callers: Callers,
}

/// Starts an HTTP tap; it listens when this returns.
///
/// # Errors
/// When it cannot listen, or its options cannot be met.
pub fn start_http(options: HttpOptions, about: About) -> anyhow::Result<RunningHttp> {
    let telemetry_at = about.telemetry.clone();
    let orders = Orders::of(&about);
    let mut session = Session::start(Transport::Http, about);
    let hands = Hands::new(session.tape().clone(), orders.seed);
    if let Err(error) = desk::arm(&orders.recipe, hands.as_ref()) {
        session.discard();
        return Err(error);
    }
    let stop = CancellationToken::new();
    let (tell, told) = mpsc::channel();
    let run = {
        let (tape, hands, stop) = (session.tape().clone(), hands.clone(), stop.clone());
        move || run_http(options, tape, hands, stop, &tell)
    };
    let thread = std::thread::Builder::new().name("http tap".to_owned()).spawn(run);
    let thread = thread.context("cannot start the tap's thread")?;
    let listening = match told.recv() {
        Ok(Ok(listening)) => listening,
        Ok(Err(error)) => {
            session.discard();
            return Err(error);
        }
        Err(gone) => return Err(gone).context("the tap ended before it listened"),
    };
    let desk = Desk::open(orders.at.as_ref(), &mut session, hands);
    let (desk, control_trouble) = match desk {
        Ok(desk) => (desk, None),
        Err(error) => (None, Some(format!("{error:#}"))),
    };
    session.announce(Some(listening.client_url.clone()));
    let telling = Telling::start(telemetry_at.as_ref(), &session, Some(listening.callers));
    let (telling, telemetry_trouble) = match telling {
        Ok(telling) => (telling, None),
        Err(error) => (None, Some(format!("{error:#}"))),
    };
    Ok(RunningHttp {
        telemetry: telling.as_ref().map(|telling| telling.socket.path().to_owned()),
        telemetry_trouble,
        control: desk.as_ref().map(|desk| desk.path().to_owned()),
        control_trouble,
        desk,
        telling,
        client_url: listening.client_url,
        upstream_trouble: listening.upstream_trouble,
        recording_trouble: session.trouble().map(ToString::to_string),
        recording: session.recording(),
        tape: session.tape().clone(),
        stop,
        thread,
        session,
    })
}

/// The whole life of the tap's thread.
fn run_http(
    options: HttpOptions,
    tape: Tape,
    hands: Arc<Hands>,
    stop: CancellationToken,
    tell: &mpsc::Sender<anyhow::Result<Listening>>,
) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            // The receiver waits for exactly this message.
            let _ = tell.send(Err(error).context("cannot start the tap"));
            return;
        }
    };
    runtime.block_on(async {
        let tracker = TaskTracker::new();
        match HttpTap::bind(options, tape, hands, tracker.clone(), stop).await {
            Ok(tap) => {
                let client_url = tap.client_url();
                let upstream_trouble = tap.probe().await.err().map(|error| error.to_string());
                let callers = tap.callers();
                let _ = tell.send(Ok(Listening { client_url, upstream_trouble, callers }));
                tap.serve().await;
            }
            Err(error) => {
                let _ = tell.send(Err(error.into()));
            }
        }
        tracker.close();
        if tokio::time::timeout(WIND_DOWN, tracker.wait()).await.is_err() {
            tracing::warn!(open = tracker.len(), "connections did not end in time");
        }
    });
}

impl RunningHttp {
    /// Stops accepting, ends what is open, finishes the recording.
    pub fn stop(self) {
        drop(self.desk);
        self.stop.cancel();
        // A panic of the tap was reported by its thread; the recording is ended all the same.
        let _ = self.thread.join();
        // What was told by now belongs to the recording.
        drop(self.telling);
        drop(self.tape);
        self.session.finish();
    }
}

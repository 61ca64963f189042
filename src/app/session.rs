//! One recorded session: the tape of a tap, its recorder, and its entry among the running taps.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::sockets::SocketAt;
use crate::command::Recipe;
use crate::event::Transport;
use crate::event::tape::Tape;
use crate::machine::policy::Policy;
use crate::time::Clock;
use crate::trace::library::{Library, Run, RunFile};
use crate::trace::{Header, Limits, Recorder, RecorderHandle, RecorderStatus, TraceError};

/// What may wait on the tape for the recorder before copies of bodies are given up. ours: the
/// recorder spills to disk long before, so only a disk that hangs makes it this long. Measured: at
/// 300 MB/s each way, 64 MiB are through in the 100 ms for which a busy disk can stop.
const TAPE_LIMIT_BYTES: usize = 256 << 20;

/// Where the recording of a tap goes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Record {
    /// A file of its own in the state folder.
    #[default]
    Default,
    /// This file; a name that ends in `.zst` is compressed.
    File(PathBuf),
    /// Nowhere.
    Off,
}

impl Record {
    /// Reads what stands after `--record`.
    #[must_use]
    pub fn from_option(text: Option<&str>) -> Record {
        match text {
            None => Record::Default,
            Some("off") => Record::Off,
            Some(file) => Record::File(PathBuf::from(file)),
        }
    }
}

/// What a user says about a tap, whatever its transport.
#[derive(Debug, Clone, Default)]
pub struct About {
    /// Where the recording goes.
    pub record: Record,
    /// A name for lists.
    pub label: Option<String>,
    /// Where servers may tell about their work; `None`: nowhere.
    pub telemetry: Option<SocketAt>,
    /// Where orders are taken; `None`: nowhere.
    pub control: Option<SocketAt>,
    /// What the tap does by itself.
    pub recipe: Recipe,
    /// From which faults without a seed of their own draw; `None`: as the recipe says.
    pub seed: Option<u64>,
    /// What is agreed outside the wire: whether a call may be sent again.
    pub policy: Policy,
    /// stdio: the server's command.
    pub command: Vec<String>,
    /// HTTP: where requests go.
    pub upstream: Option<String>,
}

/// A session that is being recorded, or at least watched.
#[derive(Debug)]
pub struct Session {
    tape: Tape,
    recorder: Option<RecorderHandle>,
    trouble: Option<TraceError>,
    run: Run,
    announced: Option<RunFile>,
}

impl Session {
    /// Begins a session now. A recording that cannot be written does not stop it: the path comes
    /// first, and [`Session::trouble`] says what is wrong.
    #[must_use]
    pub fn start(transport: Transport, about: About) -> Session {
        outlive_file_limits();
        let clock = Clock::start();
        let (tape, reader) = Tape::new(clock, TAPE_LIMIT_BYTES);
        let header = Header {
            command: about.command,
            upstream: about.upstream,
            label: about.label,
            ..Header::of_this_process(transport, clock)
        };
        let mut run = Run {
            session: header.session.clone(),
            pid: std::process::id(),
            transport: transport.as_str().to_owned(),
            started: clock.started_wall(),
            label: header.label.clone(),
            command: header.command.clone(),
            upstream: header.upstream.clone(),
            listen: None,
            recording: None,
            control: None,
        };
        let started = match about.record {
            Record::Default => Library::of_user().map(|library| {
                Some(library.new_recording(clock.started_wall(), transport, header.label.as_deref()))
            }),
            Record::File(path) => Ok(Some(path)),
            Record::Off => Ok(None),
        }
        .and_then(|path| Recorder::start(header, path.as_deref(), reader, Limits::default()));
        let (recorder, trouble) = match started {
            Ok(recorder) => (Some(recorder), None),
            Err(trouble) => (None, Some(trouble)),
        };
        run.recording = recorder.as_ref().and_then(|recorder| recorder.status().path);
        Session { tape, recorder, trouble, run, announced: None }
    }

    /// Says where orders are taken, before the session is announced.
    pub fn takes_orders_at(&mut self, control: PathBuf) {
        self.run.control = Some(control);
    }

    /// Lets viewers find this session among the running taps; `listen`: where its clients go. A
    /// tap that cannot be announced works all the same.
    pub fn announce(&mut self, listen: Option<String>) {
        self.run.listen = listen;
        match Library::of_user().and_then(|library| library.announce(&self.run)) {
            Ok(file) => self.announced = Some(file),
            Err(error) => tracing::warn!(%error, "viewers will not find this tap"),
        }
    }

    /// Its name, as in the header of its recording.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.run.session
    }

    /// A name given by the user.
    #[must_use]
    pub fn label(&self) -> Option<&str> {
        self.run.label.as_deref()
    }

    /// Where the tap puts what happens.
    #[must_use]
    pub fn tape(&self) -> &Tape {
        &self.tape
    }

    /// Why nothing is recorded although it should be.
    #[must_use]
    pub fn trouble(&self) -> Option<&TraceError> {
        self.trouble.as_ref()
    }

    /// The file that is being written.
    #[must_use]
    pub fn recording(&self) -> Option<PathBuf> {
        self.recorder.as_ref().and_then(|recorder| recorder.status().path)
    }

    /// Ends the recording in order.
    pub fn finish(self) -> Option<RecorderStatus> {
        self.recorder.map(RecorderHandle::finish)
    }

    /// Ends a session that never came to be, and leaves no recording of it.
    pub fn discard(self) {
        let recording = self.recording();
        self.finish();
        if let Some(path) = recording
            && let Err(error) = std::fs::remove_file(&path)
        {
            tracing::warn!(%error, path = %path.display(), "an empty recording stays behind");
        }
    }
}

/// Where the size of files is limited (`setrlimit(2)`), a recording that comes to the limit has a
/// failing disk; it does not end the tap.
fn outlive_file_limits() {
    // A handler, because the server would inherit `SIG_IGN`. This signal can always be caught.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::new(AtomicBool::new(false)));
}

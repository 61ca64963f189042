//! The life of one call, from the request on its way to its end; the same on both transports.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Sleep, sleep, sleep_until};

use super::auth::Challenge;
use super::message::{Notice, Progress};
use super::{CallOptions, Outcome, PeerError, Reason, Report, http, stdio};
use crate::machine::deadlines::{Deadlines, Fired};
use crate::machine::request::{ClientRequest, Heard as Told};
use crate::machine::task::EXTENSION;
use crate::time::{Ms, TimerClock};
use crate::wire::jsonrpc::Id;

/// Messages of one call waiting for its caller; a slow caller slows the wire.
pub(super) const IN_CAPACITY: usize = 64;

/// Faults kept of one call.
const FAULTS_KEPT: usize = 100;

/// What a call hears before its answer.
#[derive(Debug, Clone, Copy)]
pub enum Heard<'a> {
    /// The request goes out under this id; under a further one where authorization was wanted first.
    Sent(&'a Id),
    /// Accepted progress.
    Progress(&'a Progress),
    /// Another notification that belongs to the call.
    Notice(&'a Notice),
}

/// What a transport tells about one call.
#[derive(Debug)]
pub(super) enum Incoming {
    /// The head of an HTTP answer came.
    Status(u16),
    /// The head asks for authorization.
    Challenge(Challenge),
    /// Progress under the call's own token.
    Progress(Progress),
    /// Another notification that belongs to the call.
    Notice(Notice),
    /// A comment of an event stream, told only to a client that takes it for a sign of the call.
    Comment,
    /// Something was wrong; the call goes on.
    Fault(String),
    /// The end.
    End(Outcome),
    /// The request could not be sent at all.
    Unsent(PeerError),
}

/// One call on its transport. Dropped before [`Signal::finish`]: given up without a word.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) incoming: mpsc::Receiver<Incoming>,
    pub(super) signal: Signal,
}

/// How the other side learns that the call is over here.
#[derive(Debug)]
pub(super) enum Signal {
    Stdio(stdio::Signal),
    Http(http::Signal),
}

impl Signal {
    /// Answered: nothing to say.
    fn finish(self) {
        if let Signal::Http(signal) = self {
            signal.finish();
        }
    }

    /// The cancel signal that is right for the transport.
    async fn cancel(self, reason: Reason) {
        match self {
            Signal::Stdio(signal) => signal.cancel(reason).await,
            Signal::Http(signal) => signal.cancel(reason).await,
        }
    }

    /// The connection breaks without a word.
    fn cut(self) {
        match self {
            Signal::Stdio(signal) => signal.cut(),
            Signal::Http(signal) => signal.reset(),
        }
    }
}

/// Follows a call to its end.
pub(super) async fn follow(
    id: Id,
    exchange: Exchange,
    record: ClientRequest,
    clock: TimerClock,
    options: &CallOptions,
    on_heard: impl FnMut(Heard<'_>) + Send,
) -> Result<Report, PeerError> {
    let started = clock.now();
    let Exchange { incoming, signal } = exchange;
    let report = Report {
        id,
        outcome: Outcome::Lost("nothing came".to_owned()),
        status: None,
        progress: 0,
        rejected: 0,
        elapsed: Ms(0),
        faults: Vec::new(),
        challenge: None,
    };
    let mut call = Call { record, clock, report, on_heard };
    let end = call.run(incoming, options).await;
    call.report.elapsed = Ms(clock.now().0.saturating_sub(started.0));
    match end {
        End::Of(outcome) => {
            call.report.outcome = outcome;
            signal.finish();
        }
        End::GivenUp(Reason::Dropped) => {
            call.report.outcome = Outcome::GivenUp(Reason::Dropped);
            signal.cut();
        }
        End::GivenUp(reason) => {
            call.report.outcome = Outcome::GivenUp(reason);
            signal.cancel(reason).await;
        }
        End::Unsent(error) => return Err(error),
    }
    Ok(call.report)
}

enum End {
    Of(Outcome),
    GivenUp(Reason),
    Unsent(PeerError),
}

struct Call<F> {
    record: ClientRequest,
    clock: TimerClock,
    report: Report,
    on_heard: F,
}

impl<F: FnMut(Heard<'_>) + Send> Call<F> {
    /// Waits for whatever comes first. Giving up is looked at before what has arrived: a deadline
    /// that is reached counts as fired, and a flood must not keep a cancel waiting.
    async fn run(&mut self, mut incoming: mpsc::Receiver<Incoming>, options: &CallOptions) -> End {
        let due = sleep_until(self.due());
        let (cancel, cut) = (after(options.cancel_after), after(options.drop_after));
        tokio::pin!(due, cancel, cut);
        loop {
            let arrived = tokio::select! {
                biased;
                () = options.cancel.cancelled() => return self.give_up(Reason::Cancelled),
                () = &mut cut, if options.drop_after.is_some() => return self.give_up(Reason::Dropped),
                () = &mut cancel, if options.cancel_after.is_some() => return self.give_up(Reason::Cancelled),
                () = &mut due => {
                    match self.record.fired(self.clock.now()) {
                        Some(Fired::Idle) => return self.give_up(Reason::Idle),
                        Some(Fired::Maximum) => return self.give_up(Reason::Maximum),
                        None => {
                            due.as_mut().reset(self.due());
                            continue;
                        }
                    }
                }
                arrived = incoming.recv() => arrived,
            };
            match arrived {
                Some(Incoming::Progress(progress)) => {
                    self.progress(&progress);
                    due.as_mut().reset(self.due());
                }
                Some(Incoming::Comment) => {
                    self.restart(options);
                    due.as_mut().reset(self.due());
                }
                Some(Incoming::Notice(notice)) => (self.on_heard)(Heard::Notice(&notice)),
                Some(Incoming::Status(status)) => self.report.status = Some(status),
                Some(Incoming::Challenge(challenge)) => self.report.challenge = Some(challenge),
                Some(Incoming::Fault(fault)) => {
                    if self.report.faults.len() < FAULTS_KEPT {
                        self.report.faults.push(fault);
                    }
                }
                Some(Incoming::Unsent(error)) => return End::Unsent(error),
                Some(Incoming::End(outcome)) => {
                    self.record.answer();
                    return End::Of(agreed(outcome, options));
                }
                None => return End::Of(Outcome::Lost("the connection ended".to_owned())),
            }
        }
    }

    fn progress(&mut self, progress: &Progress) {
        match self.record.progress(progress.value, self.clock.now()) {
            Told::Accepted => {
                self.report.progress += 1;
                (self.on_heard)(Heard::Progress(progress));
            }
            Told::Rejected => self.report.rejected += 1,
            Told::Late => {}
        }
    }

    /// The fault `comments_count`: both clocks begin anew.
    fn restart(&mut self, options: &CallOptions) {
        if let Ok(deadlines) = Deadlines::new(self.clock.now(), options.idle, options.max) {
            self.record = ClientRequest::new(deadlines);
        }
    }

    fn give_up(&mut self, reason: Reason) -> End {
        self.record.abandon(reason.as_str());
        End::GivenUp(reason)
    }

    /// When the next deadline fires; far away once the call is over or where it cannot be told.
    fn due(&self) -> tokio::time::Instant {
        let at = self.record.due_at().unwrap_or(FAR);
        self.clock.instant(at).or_else(|| self.clock.instant(FAR)).unwrap_or_else(|| self.clock.started())
    }
}

/// A day: longer than any call is watched without looking again, ms.
const FAR: Ms = Ms(86_400_000);

/// A task is an answer only for a client that has said that it knows tasks.
fn agreed(outcome: Outcome, options: &CallOptions) -> Outcome {
    match outcome {
        Outcome::Task(_) if options.capabilities["extensions"].get(EXTENSION).is_none() => {
            Outcome::Invalid("resultType \"task\" was not agreed on".to_owned())
        }
        other => other,
    }
}

fn after(limit: Option<Ms>) -> Sleep {
    sleep(limit.map_or(Duration::ZERO, Duration::from))
}

//! The loop: waits for anything, takes all that is there, draws when something changed.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use crossterm::event::{Event as Input, EventStream};
use futures_util::StreamExt;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::Receiver;
use tokio::time::{MissedTickBehavior, Sleep, interval, sleep};

use super::msg::{Command, Msg};
use super::state::State;
use super::term::{Term, TermError};
use super::update::update;
use super::view::view;
use crate::config::theme::Theme;

/// The shortest time between two frames: 30 a second are enough for the eye.
const FRAME: Duration = Duration::from_millis(33);

/// After this long a digit stands alone and is no count any more. ours: long enough for two keys
/// in a row, short enough not to be felt.
const KEY_PAUSE: Duration = Duration::from_millis(300);

/// Messages taken before a frame may be drawn.
const TAKEN_AT_ONCE: usize = 256;

/// Where the viewer gets its messages from, beside the terminal.
#[derive(Debug)]
pub struct Feeds {
    /// Batches of events; not read while the screen is held still.
    pub events: Receiver<Msg>,
    /// Everything else.
    pub other: Receiver<Msg>,
}

/// How the viewer was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// By its user.
    Quit,
    /// By its user, to start the demo.
    StartDemo,
    /// By a signal, whose number this is.
    Signal(i32),
    /// The terminal is gone.
    TerminalGone,
}

/// Runs the viewer on a terminal until it is left. `execute` does the commands that are not about
/// the terminal.
///
/// # Errors
/// When the terminal fails.
pub async fn run(
    term: &mut Term,
    state: &mut State,
    theme: &Theme,
    feeds: Feeds,
    execute: impl FnMut(Command),
) -> Result<Left, TermError> {
    match serve(term, state, theme, feeds, execute).await {
        Err(_) if Term::is_gone() => Ok(Left::TerminalGone),
        left => left,
    }
}

async fn serve(
    term: &mut Term,
    state: &mut State,
    theme: &Theme,
    mut feeds: Feeds,
    execute: impl FnMut(Command),
) -> Result<Left, TermError> {
    let watch =
        |kind| signal(kind).map_err(|source| TermError::Failed { what: "watch the signals of", source });
    let mut interrupt = watch(SignalKind::interrupt())?;
    let mut terminate = watch(SignalKind::terminate())?;
    let mut hangup = watch(SignalKind::hangup())?;
    let mut resumed = watch(SignalKind::from_raw(rustix::process::Signal::CONT.as_raw()))?;
    let mut keys = EventStream::new();
    let mut frames = interval(FRAME);
    frames.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut pause: Option<Pin<Box<Sleep>>> = None;
    let (width, height) = term.size()?;
    let mut desk = Desk { term, state, theme, execute, queue: VecDeque::new(), is_dirty: true };
    desk.queue.push_back(Msg::Resize(width, height));
    loop {
        if let Some(left) = desk.work_off()? {
            return Ok(left);
        }
        pause = match (desk.state.is_waiting_for_keys(), pause) {
            (true, None) => Some(Box::pin(sleep(KEY_PAUSE))),
            (true, running) => running,
            (false, _) => None,
        };
        let wants_events = desk.state.wants_events();
        let has_work = !desk.queue.is_empty();
        // Every arm is cancel-safe: receivers, streams, ticks and pinned sleeps keep what they have.
        // In this order, so that a flood of events cannot hold up a signal, a frame or a key.
        tokio::select! {
            biased;
            _ = interrupt.recv() => return Ok(Left::Signal(2)),
            _ = terminate.recv() => return Ok(Left::Signal(15)),
            _ = hangup.recv() => return Ok(Left::Signal(1)),
            _ = resumed.recv() => desk.resume()?,
            _ = frames.tick(), if desk.is_dirty => desk.draw()?,
            input = next_input(&mut keys) => match input {
                Some(Ok(input)) => desk.take_input(input),
                Some(Err(_)) | None => return Ok(Left::TerminalGone),
            },
            Some(msg) = feeds.other.recv() => desk.take(msg),
            Some(msg) = feeds.events.recv(), if wants_events => desk.take(msg),
            () = wait(&mut pause) => desk.take(Msg::KeyPause),
            () = std::future::ready(()), if has_work => {}
        }
        // Not the keys: their stream remembers who asked first, and must only be asked above.
        while desk.queue.len() < TAKEN_AT_ONCE {
            if let Ok(msg) = feeds.other.try_recv() {
                desk.take(msg);
            } else if let Some(msg) = wants_events.then(|| feeds.events.try_recv().ok()).flatten() {
                desk.take(msg);
            } else {
                break;
            }
        }
    }
}

/// The next input; `None`: the terminal is gone. Its stream must not be asked then, for it would
/// read at the end for ever and never come back.
async fn next_input(keys: &mut EventStream) -> Option<std::io::Result<Input>> {
    poll_fn(|ctx| if Term::is_gone() { Poll::Ready(None) } else { keys.poll_next_unpin(ctx) }).await
}

async fn wait(pause: &mut Option<Pin<Box<Sleep>>>) {
    match pause {
        Some(sleep) => sleep.await,
        None => std::future::pending().await,
    }
}

/// What the loop works on.
struct Desk<'a, F> {
    term: &'a mut Term,
    state: &'a mut State,
    theme: &'a Theme,
    execute: F,
    queue: VecDeque<Msg>,
    is_dirty: bool,
}

impl<F: FnMut(Command)> Desk<'_, F> {
    fn take(&mut self, msg: Msg) {
        self.queue.push_back(msg);
    }

    fn take_input(&mut self, input: Input) {
        match input {
            Input::Key(event) => self.take(Msg::Key(event)),
            Input::Mouse(event) => self.take(Msg::Mouse(event)),
            Input::Paste(text) => self.take(Msg::Paste(text)),
            Input::Resize(width, height) => self.take(Msg::Resize(width, height)),
            Input::FocusGained | Input::FocusLost => {}
        }
    }

    /// Works off what was taken. Long work that goes on by itself gets one step, so that a frame
    /// can be drawn between its steps.
    fn work_off(&mut self) -> Result<Option<Left>, TermError> {
        for _ in 0..self.queue.len() {
            let Some(msg) = self.queue.pop_front() else { break };
            self.is_dirty |= !matches!(msg, Msg::Clock(_)) || self.state.changes_with_time();
            for command in update(self.state, msg) {
                if let Some(left) = self.execute(command)? {
                    return Ok(Some(left));
                }
            }
        }
        Ok(None)
    }

    fn execute(&mut self, command: Command) -> Result<Option<Left>, TermError> {
        match command {
            Command::Quit => return Ok(Some(Left::Quit)),
            Command::StartDemo => return Ok(Some(Left::StartDemo)),
            Command::Suspend => self.term.suspend()?,
            Command::Redraw => self.term.clear()?,
            Command::Mouse(is_on) => self.term.set_mouse(is_on)?,
            Command::Continue => self.queue.push_back(Msg::Continue),
            Command::Copy { text, what } => {
                if self.term.copy(&text)? {
                    let size = super::units::size(text.len() as u64);
                    let said = format!("{what} ({size}) offered to the terminal's clipboard by OSC 52");
                    self.queue.push_back(Msg::Notice(said));
                } else {
                    (self.execute)(Command::Copy { text, what });
                }
            }
            other => (self.execute)(other),
        }
        Ok(None)
    }

    fn draw(&mut self) -> Result<(), TermError> {
        self.is_dirty = false;
        let (state, theme) = (&*self.state, self.theme);
        self.term.draw(|frame| view(state, theme, frame))
    }

    /// The process was stopped by somebody else and goes on: the terminal may be in any state.
    fn resume(&mut self) -> Result<(), TermError> {
        self.term.resume()?;
        let (width, height) = self.term.size()?;
        self.queue.push_back(Msg::Resize(width, height));
        Ok(())
    }
}

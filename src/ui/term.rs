//! The terminal: the only place that touches it. It is given back as it was in every ending:
//! normal, error, panic, signal, suspension.

use std::io::{IsTerminal, Stdout, Write};
use std::mem::ManuallyDrop;
use std::sync::Once;

use crossterm::clipboard::CopyToClipboard;
use crossterm::cursor::Show;
use crossterm::event::{
    DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture,
};
use crossterm::execute;
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Size;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Longest text given to the terminal for its clipboard; several terminals cut off or refuse more.
pub const CLIPBOARD_LIMIT_BYTES: usize = 74_000;

/// Why the terminal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TermError {
    /// Standard output is no terminal.
    #[error(
        "the viewer needs a terminal, and standard output is none; run it without a pipe, or use \
         `midwire check` for text"
    )]
    NotATerminal,
    /// The terminal failed.
    #[error("cannot {what} the terminal: {source}; try another one, or `midwire check` for text")]
    Failed {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
}

fn failed(what: &'static str) -> impl Fn(std::io::Error) -> TermError {
    move |source| TermError::Failed { what, source }
}

/// The terminal while the viewer has it.
#[derive(Debug)]
pub struct Term {
    /// Never dropped: it would print to standard error that the cursor of a terminal that is gone
    /// cannot be shown, and panic when that is gone too. [`give_back`] shows the cursor.
    inner: ManuallyDrop<ratatui::Terminal<CrosstermBackend<Stdout>>>,
    is_mouse_on: bool,
}

impl Term {
    /// Checks that there is a terminal to take.
    ///
    /// # Errors
    /// When standard output is none.
    pub fn require() -> Result<(), TermError> {
        if std::io::stdout().is_terminal() { Ok(()) } else { Err(TermError::NotATerminal) }
    }

    /// The other end of the terminal is closed: its window, or the connection to it.
    #[must_use]
    pub fn is_gone() -> bool {
        let out = std::io::stdout();
        let mut fds = [PollFd::new(&out, PollFlags::empty())];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        // Being hung up is told without being asked for.
        poll(&mut fds, Some(&now)).is_ok()
            && fds.iter().any(|fd| fd.revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL))
    }

    /// Takes the terminal over. Dropping the value gives it back.
    ///
    /// # Errors
    /// When standard output is no terminal, or it cannot be set up.
    pub fn enter(is_mouse_on: bool) -> Result<Term, TermError> {
        Term::require()?;
        restore_on_panic();
        take_over(is_mouse_on).inspect_err(|_| give_back())?;
        let inner = ratatui::Terminal::new(CrosstermBackend::new(std::io::stdout()))
            .inspect_err(|_| give_back())
            .map_err(failed("set up"))?;
        Ok(Term { inner: ManuallyDrop::new(inner), is_mouse_on })
    }

    /// Columns and lines.
    ///
    /// # Errors
    /// When the terminal does not say.
    pub fn size(&self) -> Result<(u16, u16), TermError> {
        let Size { width, height } = self.inner.size().map_err(failed("measure"))?;
        Ok((width, height))
    }

    /// Draws a frame; only what changed is sent.
    ///
    /// # Errors
    /// When the terminal does not take it.
    pub fn draw(&mut self, draw: impl FnOnce(&mut ratatui::Frame<'_>)) -> Result<(), TermError> {
        self.inner.draw(draw).map(|_| ()).map_err(failed("draw on"))
    }

    /// Forgets what is on the screen, so that the next frame is sent whole.
    ///
    /// # Errors
    /// When the terminal does not take it.
    pub fn clear(&mut self) -> Result<(), TermError> {
        self.inner.clear().map_err(failed("clear"))
    }

    /// Turns reports of the mouse on or off.
    ///
    /// # Errors
    /// When the terminal does not take it.
    pub fn set_mouse(&mut self, is_on: bool) -> Result<(), TermError> {
        self.is_mouse_on = is_on;
        set_mouse(is_on).map_err(failed("switch the mouse of"))
    }

    /// Offers text to the terminal's clipboard (OSC 52). Returns false for text that is too long
    /// for it. Whether the terminal takes it cannot be known.
    ///
    /// # Errors
    /// When the terminal does not take it.
    pub fn copy(&mut self, text: &str) -> Result<bool, TermError> {
        if text.len() > CLIPBOARD_LIMIT_BYTES {
            return Ok(false);
        }
        execute!(std::io::stdout(), CopyToClipboard::to_clipboard_from(text)).map_err(failed("copy by"))?;
        Ok(true)
    }

    /// Gives the terminal back, stops until continued, and takes it over again.
    ///
    /// # Errors
    /// When it cannot be taken over again.
    pub fn suspend(&mut self) -> Result<(), TermError> {
        give_back();
        // The whole group, as ctrl-z at the prompt does: what started us stops with us.
        rustix::process::kill_current_process_group(rustix::process::Signal::TSTP)
            .map_err(|error| failed("suspend")(error.into()))?;
        self.resume()
    }

    /// Takes the terminal over again after somebody else had it.
    ///
    /// # Errors
    /// When it cannot be taken over again.
    pub fn resume(&mut self) -> Result<(), TermError> {
        take_over(self.is_mouse_on)?;
        self.clear()
    }
}

impl Drop for Term {
    fn drop(&mut self) {
        give_back();
    }
}

fn take_over(is_mouse_on: bool) -> Result<(), TermError> {
    enable_raw_mode().map_err(failed("take over"))?;
    execute!(std::io::stdout(), EnterAlternateScreen, EnableBracketedPaste).map_err(failed("take over"))?;
    set_mouse(is_mouse_on).map_err(failed("take over"))
}

fn set_mouse(is_on: bool) -> std::io::Result<()> {
    if is_on {
        execute!(std::io::stdout(), EnableMouseCapture)
    } else {
        execute!(std::io::stdout(), DisableMouseCapture)
    }
}

/// Puts everything back; what fails here cannot be helped, the terminal may be gone.
fn give_back() {
    let mut out = std::io::stdout();
    let _ = execute!(out, DisableMouseCapture, DisableBracketedPaste, LeaveAlternateScreen, Show);
    let _ = out.flush();
    let _ = disable_raw_mode();
}

/// A panic gives the terminal back before it is told, so that its message can be read.
fn restore_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let told = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            give_back();
            told(info);
        }));
    });
}

//! What reaches the viewer (`Msg`) and what it asks for (`Command`).

use crossterm::event::{KeyEvent, MouseEvent};

use crate::command::Status;
use crate::event::{Event, Transport};
use crate::model::RowIdx;
use crate::time::Mono;

/// Something the viewer has to know.
#[derive(Debug, Clone)]
pub enum Msg {
    /// A key was pressed.
    Key(KeyEvent),
    /// No key has come for a moment, so a digit pressed before stands alone.
    KeyPause,
    /// The mouse did something.
    Mouse(MouseEvent),
    /// Text was pasted.
    Paste(String),
    /// The screen has this many columns and lines.
    Resize(u16, u16),
    /// Time of the session at this moment; comes a few times a second while it is live.
    Clock(Mono),
    /// The running taps and saved recordings, newest first.
    Library(Vec<Entry>),
    /// A session was opened; its events follow, from the first.
    Opened(Facts),
    /// The next events of the session, in causal order.
    Events(Vec<Event>),
    /// What is known about the session's recording.
    Recording(Recording),
    /// Answer to [`Command::Fetch`]: the events asked for, or why they cannot be had.
    Fetched {
        /// The row they belong to.
        row: RowIdx,
        /// The events, in order.
        events: Result<Vec<Event>, String>,
    },
    /// What the tap of the session does to the traffic; `None`: it takes no orders.
    Hands(Option<Status>),
    /// Something to tell in the status line.
    Notice(String),
    /// Something went wrong; told in the status line until the next key.
    Trouble(String),
    /// Goes on with work that takes longer than a frame.
    Continue,
}

/// Something the viewer asks of whoever runs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Ends the viewer.
    Quit,
    /// Ends the viewer and starts the demo.
    StartDemo,
    /// Leaves to the shell until it is continued.
    Suspend,
    /// Draws everything again.
    Redraw,
    /// Turns reports of the mouse on or off.
    Mouse(bool),
    /// Puts text on the clipboard.
    Copy {
        /// The text.
        text: String,
        /// What it is, to say so.
        what: String,
    },
    /// Gives an order to the tap of the session, in words (`command::words`); answered by
    /// [`Msg::Notice`] or [`Msg::Trouble`].
    Order(String),
    /// Opens an entry of the library.
    Open(usize),
    /// Brings the events that hold the bytes of a row; answered by [`Msg::Fetched`].
    Fetch {
        /// The row.
        row: RowIdx,
        /// Position of the first event, from 0.
        first: u32,
        /// Position of the last event, inclusive.
        last: u32,
    },
    /// Sends [`Msg::Continue`] when everything that waits has been taken.
    Continue,
}

/// One running tap or saved recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What [`Command::Open`] names it by.
    pub key: usize,
    /// How it stands.
    pub feed: Feed,
    /// When it was started, as people write it.
    pub started: String,
    /// How the peers are joined, where it is known.
    pub transport: Option<Transport>,
    /// The command or the upstream.
    pub what: String,
    /// The label given to it.
    pub label: Option<String>,
    /// How many events it holds, where it is known.
    pub events: Option<u64>,
    /// Size of its file or files.
    pub size_bytes: u64,
    /// How many runs of one server command it joins.
    pub runs: usize,
}

/// How a session stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feed {
    /// Its tap is running.
    Live,
    /// Recorded from beginning to end.
    Whole,
    /// The recording breaks off: the tap was killed, or the file is damaged.
    Cut,
}

impl Feed {
    /// In one word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Feed::Live => "LIVE",
            Feed::Whole => "REPLAY",
            Feed::Cut => "CUT",
        }
    }
}

/// What is known about an opened session before its first event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The command, the upstream, or the name of the file.
    pub what: String,
    /// The label given to it.
    pub label: Option<String>,
    /// How the peers are joined, where it is known.
    pub transport: Option<Transport>,
    /// When it was started, as people write it.
    pub started: String,
    /// Its tap lives in this process: quitting ends the session.
    pub is_own_tap: bool,
    /// What to tell as long as nothing has passed.
    pub welcome: Option<String>,
    /// How it stands.
    pub feed: Feed,
}

/// What is known about a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    /// How the session stands.
    pub feed: Feed,
    /// Bytes in the file.
    pub bytes: u64,
    /// What could not be read of it, in a few words.
    pub trouble: Option<String>,
    /// All that is there now has been read.
    pub is_read: bool,
}

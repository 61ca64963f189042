//! Everything the viewer remembers.

use super::cursor::Cursor;
use super::detail::{Detail, Part, Subject};
use super::layout::{self, Areas, Wish};
use super::msg::Entry;
use super::pick::Pick;
use super::prompt::Prompt;
use super::session::Session;
use super::text::Charset;
use crate::command::Status;
use crate::config::chord::Chord;
use crate::config::keys::{Action, KeyMap};
use crate::model::{CallIdx, RowIdx};
use crate::rules::Finding;

/// One of the screens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum View {
    /// Running taps and saved recordings. The moment for it: "what is there to look at?"
    #[default]
    Home,
    /// The calls with their lanes. The moment for it: "what is going on, and what takes so long?"
    Calls,
    /// Every row. The moment for it: "what happened, exactly in this order?"
    Stream,
    /// What is wrong. The moment for it: "who is right?"
    Findings,
    /// What the tap does to the traffic. The moment for it: "what do I hold, and what did I arm?"
    Hands,
}

impl View {
    /// Every view, in the order of the tabs.
    pub(super) const ALL: [View; 5] = [View::Home, View::Calls, View::Stream, View::Findings, View::Hands];

    /// Its name.
    #[must_use]
    pub(super) fn name(self) -> &'static str {
        match self {
            View::Home => "Home",
            View::Calls => "Calls",
            View::Stream => "Stream",
            View::Findings => "Findings",
            View::Hands => "Faults",
        }
    }

    /// The action that leads to it.
    #[must_use]
    pub(super) fn action(self) -> Action {
        match self {
            View::Home => Action::Home,
            View::Calls => Action::Calls,
            View::Stream => Action::Stream,
            View::Findings => Action::Findings,
            View::Hands => Action::Hands,
        }
    }
}

/// Something that lies over the screen and takes all keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Overlay {
    /// The help page.
    Help(Cursor),
    /// Asks whether to end the session that lives in this process.
    ConfirmQuit,
    /// Asks what to copy.
    CopyMenu,
    /// Waits for the letter to remember this line under.
    MarkLetter,
    /// Waits for the letter to jump to.
    JumpLetter,
}

/// What was pressed and has not yet become an action.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Pending {
    /// A number typed before an action.
    pub count: Option<usize>,
    /// What the single digit of that number means when nothing follows it.
    pub alone: Option<Action>,
    /// The beginning of a sequence of keys.
    pub keys: Vec<Chord>,
}

/// Zoom and place of the lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Zoom {
    /// Time of one column in nanoseconds; `None`: whatever fits what is on the screen.
    pub step_ns: Option<u64>,
    /// Time at the left edge, when it is not fitted.
    pub origin_ns: u64,
}

/// The place in one list.
#[derive(Debug, Clone, Default)]
pub(super) struct ListPlace {
    /// Selection and scroll position.
    pub cursor: Cursor,
    /// Remembered items by letter.
    pub letters: Vec<(char, u32)>,
    /// The item that was selected before the last jump.
    pub before_jump: Option<u32>,
}

/// Lines of a note that are shown at most; the tour of the demo uses as many.
const CAPTION_LINES: usize = 3;

/// Something to tell in the status line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Notice {
    /// The text.
    pub text: String,
    /// Something went wrong.
    pub is_trouble: bool,
}

/// Everything the viewer remembers.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct State {
    pub(super) keys: KeyMap,
    pub(super) charset: Charset,
    pub(super) size: (u16, u16),
    pub(super) view: View,
    pub(super) library: Option<Vec<Entry>>,
    pub(super) home: Cursor,
    pub(super) session: Option<Box<Session>>,
    pub(super) calls: ListPlace,
    pub(super) stream: ListPlace,
    pub(super) findings: Cursor,
    pub(super) hands: Cursor,
    /// What the tap of the session does to the traffic; `None`: it takes no orders.
    pub(super) status: Option<Status>,
    pub(super) zoom: Zoom,
    pub(super) detail: Detail,
    /// The part of the pane that answers the keys; `None`: the list does.
    pub(super) opened: Option<Part>,
    pub(super) is_full: bool,
    pub(super) wants_preview: bool,
    pub(super) split: u16,
    pub(super) overlay: Option<Overlay>,
    pub(super) prompt: Option<Prompt>,
    pub(super) pending: Pending,
    pub(super) notice: Option<Notice>,
    pub(super) is_following: bool,
    pub(super) is_paused: bool,
    pub(super) is_mouse_on: bool,
    pub(super) has_hints: bool,
    /// The last key was an interrupt: one more quits.
    pub(super) is_interrupted: bool,
}

impl State {
    /// A viewer that has seen nothing yet.
    #[must_use]
    pub fn new(keys: KeyMap, charset: Charset, is_mouse_on: bool) -> State {
        State {
            keys,
            charset,
            size: layout::MIN,
            view: View::Home,
            library: None,
            home: Cursor::default(),
            session: None,
            calls: ListPlace::default(),
            stream: ListPlace::default(),
            findings: Cursor::default(),
            hands: Cursor::default(),
            status: None,
            zoom: Zoom::default(),
            detail: Detail::default(),
            opened: None,
            is_full: false,
            wants_preview: true,
            split: 50,
            overlay: None,
            prompt: None,
            pending: Pending::default(),
            notice: None,
            is_following: true,
            is_paused: false,
            is_mouse_on,
            has_hints: true,
            is_interrupted: false,
        }
    }

    /// The viewer takes events at the moment; while the screen is held still it does not, and they
    /// wait in the recording.
    #[must_use]
    pub fn wants_events(&self) -> bool {
        !self.is_paused
    }

    /// A digit waits to see whether it stands alone.
    #[must_use]
    pub fn is_waiting_for_keys(&self) -> bool {
        self.pending.alone.is_some()
    }

    /// Something on the screen changes with time alone.
    #[must_use]
    pub fn changes_with_time(&self) -> bool {
        self.view != View::Home
            && self.session.as_ref().is_some_and(|session| {
                session.feed() == super::msg::Feed::Live && session.model.overview().counts.open > 0
            })
    }

    /// The screen is too small to be drawn.
    #[must_use]
    pub(super) fn is_too_small(&self) -> bool {
        self.size.0 < layout::MIN.0 || self.size.1 < layout::MIN.1
    }

    /// The areas of the screen as it is now.
    #[must_use]
    pub(super) fn areas(&self) -> Areas {
        let has_lists = matches!(self.view, View::Calls | View::Stream);
        let has_pane = has_lists && self.session.is_some();
        let has_room = layout::has_room_for_preview(self.size);
        let is_open = has_pane && self.opened.is_some();
        let full = is_open && (self.is_full || !has_room);
        let is_prompting = matches!(&self.prompt, Some(prompt) if prompt.is_filter());
        let has_filter = self.session.as_ref().is_some_and(|session| session.filter.is_some());
        let wish = Wish {
            filter: has_lists && (is_prompting || has_filter),
            preview: has_pane && has_room && (self.wants_preview || is_open) && !full,
            full,
            answer: matches!(self.view, View::Findings | View::Hands)
                || (has_lists && self.session.is_some()),
            caption: if self.view == View::Home { 0 } else { self.caption_lines() },
            hints: self.has_hints || self.prompt.is_some(),
            split: self.split,
        };
        layout::areas(self.size, wish)
    }

    /// The newest note of the session.
    #[must_use]
    pub(super) fn caption(&self) -> Option<&str> {
        self.session.as_ref()?.caption.as_deref()
    }

    /// Lines of the newest note that are shown.
    fn caption_lines(&self) -> u16 {
        let lines = self.caption().map_or(0, |text| text.lines().count());
        u16::try_from(lines.min(CAPTION_LINES)).unwrap_or(0)
    }

    /// The list of the view, with its place.
    pub(super) fn list(&self) -> Option<(&Pick, &ListPlace)> {
        let session = self.session.as_ref()?;
        match self.view {
            View::Calls => Some((&session.calls, &self.calls)),
            View::Stream => Some((&session.rows, &self.stream)),
            View::Home | View::Findings | View::Hands => None,
        }
    }

    /// The place in the list of the view, for moving.
    pub(super) fn place_mut(&mut self) -> Option<&mut ListPlace> {
        match self.view {
            View::Calls => Some(&mut self.calls),
            View::Stream => Some(&mut self.stream),
            View::Home | View::Findings | View::Hands => None,
        }
    }

    /// The selected item of the list of the view.
    pub(super) fn item(&self) -> Option<u32> {
        let (pick, place) = self.list()?;
        pick.item(place.cursor.at)
    }

    /// What the selected line of the view would open.
    pub(super) fn subject(&self) -> Option<Subject> {
        match self.view {
            View::Calls => self.item().map(|item| Subject::Call(CallIdx(item))),
            View::Stream => self.item().map(|item| Subject::Row(RowIdx(item))),
            View::Home | View::Findings | View::Hands => None,
        }
    }

    /// The selected finding.
    pub(super) fn finding(&self) -> Option<&Finding> {
        self.session.as_ref()?.findings().get(self.findings.at)
    }

    /// The selected entry of the library.
    pub(super) fn entry(&self) -> Option<&Entry> {
        self.library.as_ref()?.get(self.home.at)
    }

    /// Lines of the list on the screen.
    pub(super) fn list_height(&self) -> usize {
        usize::from(self.areas().list.height)
    }
}

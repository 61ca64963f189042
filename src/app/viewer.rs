//! The viewer: a terminal, a state, and three threads that feed it.
//!
//! The *reader* has the open recording and answers with events; the *librarian* looks for running
//! taps and saved recordings; the *hands* give orders to the tap of the open session. None is in the
//! path of any traffic, and all end with the viewer.

mod hands;
mod librarian;
mod reader;
mod source;

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc;

use anyhow::Context as _;

use crate::config::colour::{self, Depth};
use crate::config::settings::Settings;
use crate::config::theme::Theme;
use crate::trace::library::{self, Entry, Library};
use crate::ui::msg::{Command, Msg};
use crate::ui::run::{Feeds, Left, run as run_screen};
use crate::ui::term::Term;
use crate::ui::{Charset, State};

use source::Source;

/// Batches of events that may wait for the screen. ours: with `reader::BATCH_BYTES` each, a few
/// MiB; a screen that is held still makes the reader wait, never the tap.
const EVENT_BATCHES: usize = 8;

/// Other messages that may wait for the screen. ours: there are a few of them each second.
const OTHER_MESSAGES: usize = 64;

/// How the screen looks, as far as the command line says so.
#[derive(Debug, Clone, Default)]
pub struct Looks {
    /// A built-in theme or a theme file.
    pub theme: Option<String>,
    /// Draw with ASCII only.
    pub ascii: bool,
}

/// What to show first.
#[derive(Debug)]
pub enum Target {
    /// What there is to watch and to open.
    Home,
    /// These recordings: opened where they belong together, else listed for choice. One that is
    /// still being written is followed.
    Open(Vec<PathBuf>),
    /// Standard input, read to its end.
    StandardInput,
    /// The recording of a tap in this process: leaving ends its session, so that is asked first.
    OwnTap {
        /// The recording.
        recording: PathBuf,
        /// What to tell as long as nothing has passed.
        welcome: String,
    },
}

/// Shows a viewer until it is left.
///
/// # Errors
/// When there is no terminal, or settings, theme or recording cannot be read.
pub fn run(target: Target, looks: &Looks) -> anyhow::Result<Left> {
    let env = |name: &str| std::env::var(name).ok();
    let settings = match Settings::default_path() {
        Some(path) => Settings::load(&path)?,
        None => Settings::default(),
    };
    let depth = settings.colour.unwrap_or_else(|| Depth::detect(env, true));
    let theme = looks.theme.clone().or(settings.theme);
    let theme = Theme::load(theme.as_deref().unwrap_or_else(|| Theme::auto_name(env)), depth)?;
    let is_ascii = looks.ascii || settings.ascii.unwrap_or_else(|| colour::wants_ascii(env));
    let mut state = State::new(settings.keys, Charset { is_ascii }, settings.mouse);
    // What cannot be read is told before the screen is taken.
    Term::require()?;
    let (source, given) = open_first(target)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (events_tx, events) = tokio::sync::mpsc::channel(EVENT_BATCHES);
    let (other_tx, other) = tokio::sync::mpsc::channel(OTHER_MESSAGES);
    let (requests, requested) = mpsc::channel();
    let (keys, keyed) = mpsc::channel();
    let (orders, ordered) = mpsc::channel();
    let outlet = reader::Outlet { events: events_tx, other: other_tx.clone(), hands: orders.clone() };
    let hands = {
        let other = other_tx.clone();
        std::thread::Builder::new()
            .name("hands".to_owned())
            .spawn(move || hands::run(&ordered, &other))
            .context("cannot start the hands")?
    };
    let reader = std::thread::Builder::new()
        .name("reader".to_owned())
        .spawn(move || reader::run(source, &requested, &outlet))
        .context("cannot start the reader")?;
    let librarian = {
        let library = if given.is_empty() { Library::of_user().ok() } else { None };
        let (other, requests) = (other_tx.clone(), requests.clone());
        std::thread::Builder::new()
            .name("librarian".to_owned())
            .spawn(move || librarian::run(library.as_ref(), given, &keyed, &other, &requests))
            .context("cannot start the librarian")?
    };
    let execute = |command| execute(command, &requests, &keys, &orders, &other_tx);
    let left = runtime.block_on(async {
        let mut term = Term::enter(settings.mouse)?;
        run_screen(&mut term, &mut state, &theme, Feeds { events, other }, execute).await
    });
    // Each thread ends when nobody can ask it any more; one that panicked has said so.
    drop((requests, keys, orders));
    let _ = librarian.join();
    let _ = reader.join();
    let _ = hands.join();
    Ok(left?)
}

/// The recording to begin with, or else those to choose from.
fn open_first(target: Target) -> anyhow::Result<(Option<Source>, Vec<Entry>)> {
    let source = match target {
        Target::Home => return Ok((None, Vec::new())),
        Target::Open(paths) => {
            let entries = library::entries_of(&paths)?;
            if entries.len() > 1 {
                return Ok((None, entries));
            }
            Source::open(&paths)?
        }
        Target::StandardInput => Source::standard_input()?,
        Target::OwnTap { recording, welcome } => Source::own_tap(&recording, welcome)?,
    };
    Ok((Some(source), Vec::new()))
}

/// Does what the screen asks. A thread that is gone takes nothing; the screen is about to end then.
fn execute(
    command: Command,
    requests: &mpsc::Sender<reader::Request>,
    keys: &mpsc::Sender<usize>,
    orders: &mpsc::Sender<hands::Request>,
    other: &tokio::sync::mpsc::Sender<Msg>,
) {
    match command {
        Command::Fetch { row, first, last } => {
            let _ = requests.send(reader::Request::Fetch { row, first, last });
        }
        Command::Order(line) => {
            let _ = orders.send(hands::Request::Order(line));
        }
        Command::Open(key) => {
            let _ = keys.send(key);
        }
        Command::Copy { text, what } => {
            let told = match keep_copy(&text) {
                Ok(path) => Msg::Notice(format!("{what} is too long to offer: it is in {}", path.display())),
                Err(error) => Msg::Trouble(format!("{what} cannot be copied: {error:#}")),
            };
            // A full queue loses the message, not the copy.
            let _ = other.try_send(told);
        }
        // These are done by the screen's own loop.
        Command::Quit
        | Command::StartDemo
        | Command::Suspend
        | Command::Redraw
        | Command::Mouse(_)
        | Command::Continue => {}
    }
}

/// Writes what the clipboard does not take into a file for its owner only.
fn keep_copy(text: &str) -> anyhow::Result<PathBuf> {
    let path = Library::of_user()?.state().join("copied.txt");
    let write = |path: &Path| {
        std::fs::create_dir_all(path.parent().unwrap_or(path))?;
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
        file.write_all(text.as_bytes())
    };
    write(&path).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

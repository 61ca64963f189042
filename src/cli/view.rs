//! `midwire`, `midwire open`, `midwire demo`: the commands that have a screen.

use std::io::{IsTerminal as _, Write as _};

use super::args::{DemoArgs, OpenArgs, Screen};
use super::{CLEAN, say};
use crate::app::demo;
use crate::app::session::Record;
use crate::app::viewer::{self, Looks, Target};
use crate::peer::tour::TourOptions;
use crate::ui::run::Left;

/// What is to be watched and opened.
pub(super) fn home(screen: &Screen) -> anyhow::Result<u8> {
    show(Target::Home, screen)
}

/// Recordings.
pub(super) fn open(args: &OpenArgs, screen: &Screen) -> anyhow::Result<u8> {
    let is_input = args.traces.iter().any(|trace| trace.as_os_str() == "-");
    let target = match args.traces.len() {
        1 if is_input => Target::StandardInput,
        _ if is_input => anyhow::bail!("`-` is the whole of standard input; give it alone"),
        _ => Target::Open(args.traces.clone()),
    };
    show(target, screen)
}

/// Shows a target until it is left. The demo can be asked for from there.
fn show(target: Target, screen: &Screen) -> anyhow::Result<u8> {
    match viewer::run(target, &looks(screen))? {
        Left::StartDemo => demo(&DemoArgs::default(), screen),
        left => Ok(code(left)),
    }
}

/// The tour, with or without a screen.
pub(super) fn demo(args: &DemoArgs, screen: &Screen) -> anyhow::Result<u8> {
    let record = Record::from_option(args.record.as_deref());
    if args.headless || !std::io::stdout().is_terminal() {
        let options = TourOptions { speed: args.speed, rounds: Some(1) };
        let tell = |text: &str| {
            // Whoever stopped reading does not stop the tour.
            let _ = writeln!(std::io::stdout(), "{text}\n");
        };
        let demo = demo::start(options, record, tell)?;
        if let Some(path) = demo.recording() {
            say(&format!("recording to {}", path.display()));
        }
        demo.wait()?;
        return Ok(CLEAN);
    }
    anyhow::ensure!(record != Record::Off, "the screen shows the recording; --record off needs --headless");
    let demo = demo::start(TourOptions { speed: args.speed, rounds: None }, record, |_| {})?;
    let Some(recording) = demo.recording().map(std::path::Path::to_owned) else {
        demo.stop()?;
        anyhow::bail!("the screen shows the recording, and none can be written; see --record");
    };
    let welcome = "The tour begins in a moment.".to_owned();
    let left = viewer::run(Target::OwnTap { recording: recording.clone(), welcome }, &looks(screen));
    let stopped = demo.stop();
    let left = left?;
    stopped?;
    say(&format!("the tour is kept: midwire open {}", recording.display()));
    Ok(code(left))
}

/// The exit code for how a screen was left.
pub(super) fn code(left: Left) -> u8 {
    match left {
        Left::Quit | Left::StartDemo | Left::TerminalGone => CLEAN,
        Left::Signal(number) => u8::try_from(number).map_or(u8::MAX, |number| 128_u8.saturating_add(number)),
    }
}

/// What the command line says about the screen.
pub(super) fn looks(screen: &Screen) -> Looks {
    Looks { theme: screen.theme.clone(), ascii: screen.ascii }
}

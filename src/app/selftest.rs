//! The self-test: twelve statements about reliability, each played by the reference peers through a
//! tap and judged by the recording alone.
//!
//! Taps and servers are processes of this very program, so a passed line says at once that the peers
//! are right, that the tap has recorded what passed, and that the model has understood it. Everything
//! is on loopback and in one temporary folder, and gone afterwards.

mod cancels;
mod clocks;
mod effects;
mod folder;
mod lasting;
mod rig;
mod trace;

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream;

use self::rig::Stage;
use crate::peer::faults::Fault;
use crate::spec::transport::Transport;
use crate::time::{Ms, TimerClock};

/// What a scene has shown: that the statement holds, or what speaks against it; in a few words.
type Shown = Result<String, String>;

/// The statement holds so far, or not, and why.
fn holds(is_so: bool, against: impl FnOnce() -> String) -> Result<(), String> {
    if is_so { Ok(()) } else { Err(against()) }
}

/// Scenes that are played at once, each with two processes or more. ours: they mostly wait.
const AT_ONCE: usize = 6;

/// Longest time for one scene.
const LIMIT: Ms = Ms(30_000);

type Play = for<'a> fn(&'a Arc<Stage>, Transport) -> BoxFuture<'a, anyhow::Result<Shown>>;

/// One of the twelve.
struct Statement {
    number: u8,
    says: &'static str,
    on: &'static [Transport],
    play: Play,
}

const STDIO: &[Transport] = &[Transport::Stdio];
const HTTP: &[Transport] = &[Transport::Http];
const BOTH: &[Transport] = &[Transport::Stdio, Transport::Http];

const STATEMENTS: [Statement; 12] = [
    Statement {
        number: 1,
        says: "on stdio nothing answers a cancel",
        on: STDIO,
        play: |stage, on| Box::pin(cancels::is_unanswered(stage, on)),
    },
    Statement {
        number: 2,
        says: "over HTTP a cancel closes the stream and posts nothing",
        on: HTTP,
        play: |stage, on| Box::pin(cancels::closes(stage, on)),
    },
    Statement {
        number: 3,
        says: "a cancel that comes first suppresses the answer",
        on: BOTH,
        play: |stage, on| Box::pin(cancels::suppresses(stage, on)),
    },
    Statement {
        number: 4,
        says: "an answer that comes first is kept",
        on: BOTH,
        play: |stage, on| Box::pin(cancels::keeps(stage, on)),
    },
    Statement {
        number: 5,
        says: "progress moves the idle clock and not the maximum",
        on: BOTH,
        play: |stage, on| Box::pin(clocks::moves_idle_only(stage, on)),
    },
    Statement {
        number: 6,
        says: "a new id without a key executes again",
        on: BOTH,
        play: |stage, on| Box::pin(effects::runs_again(stage, on)),
    },
    Statement {
        number: 7,
        says: "one key raced for on two connections executes once",
        on: BOTH,
        play: |stage, on| Box::pin(effects::races_once(stage, on)),
    },
    Statement {
        number: 8,
        says: "a reopened ledger keeps the receipt and returns a copy",
        on: BOTH,
        play: |stage, on| Box::pin(effects::survives(stage, on)),
    },
    Statement {
        number: 9,
        says: "a copy that is changed harms nobody",
        on: BOTH,
        play: |stage, on| Box::pin(effects::is_copied(stage, on)),
    },
    Statement {
        number: 10,
        says: "a buffer stays within its bounds and keeps the answer",
        on: BOTH,
        play: |stage, on| Box::pin(clocks::stays_bounded(stage, on)),
    },
    Statement {
        number: 11,
        says: "a reconnect is new, without Last-Event-ID, and reads again",
        on: BOTH,
        play: |stage, on| Box::pin(lasting::reconnects(stage, on)),
    },
    Statement {
        number: 12,
        says: "an acknowledged cancel leaves a task in its course",
        on: BOTH,
        play: |stage, on| Box::pin(lasting::is_acknowledged(stage, on)),
    },
];

/// What is tested, and how.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Numbers of statements, from 1 to 12; none: all.
    pub only: Vec<u8>,
    /// What the reference peers do wrong on purpose, to see lines fail.
    pub faults: Vec<Fault>,
    /// A folder in which the recordings are kept.
    pub keep: Option<PathBuf>,
}

/// A statement on one transport.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Where.
    pub on: Transport,
    /// It held.
    pub passed: bool,
    /// What was seen, or what speaks against it, in a few words.
    pub evidence: String,
    /// How long it took.
    pub took: Ms,
}

/// A statement and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// From 1 to 12.
    pub number: u8,
    /// The statement.
    pub says: &'static str,
    /// On each transport that it is about.
    pub runs: Vec<Run>,
}

impl Line {
    /// It held wherever it was looked at.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.runs.iter().all(|run| run.passed)
    }

    /// The time of its runs together.
    #[must_use]
    pub fn took(&self) -> Ms {
        Ms(self.runs.iter().map(|run| run.took.0).sum())
    }
}

/// Plays the statements; `tell` is given each line as soon as it and those before it are there.
///
/// # Errors
/// When nothing can be played at all: there is no folder, or this program is not found.
pub async fn run(options: Options, mut tell: impl FnMut(&Line)) -> anyhow::Result<Vec<Line>> {
    let Options { only, faults, keep } = options;
    let stage = Arc::new(Stage::set_up(faults, keep)?);
    let wanted: Vec<&Statement> =
        STATEMENTS.iter().filter(|statement| only.is_empty() || only.contains(&statement.number)).collect();
    let runs = wanted.iter().flat_map(|statement| statement.on.iter().map(|on| (*statement, *on)));
    // They come out in order.
    let mut runs = stream::iter(runs.map(|(statement, on)| one(&stage, statement, on))).buffered(AT_ONCE);
    let mut lines = Vec::new();
    for statement in &wanted {
        let runs: Vec<Run> = runs.by_ref().take(statement.on.len()).collect().await;
        let line = Line { number: statement.number, says: statement.says, runs };
        tell(&line);
        lines.push(line);
    }
    Ok(lines)
}

async fn one(stage: &Arc<Stage>, statement: &Statement, on: Transport) -> Run {
    let clock = TimerClock::start();
    let shown = match tokio::time::timeout(LIMIT.into(), (statement.play)(stage, on)).await {
        Ok(Ok(shown)) => shown,
        Ok(Err(error)) => Err(format!("could not be played: {error:#}")),
        Err(_) => Err(format!("did not end within {} ms", LIMIT.0)),
    };
    let (passed, evidence) = match shown {
        Ok(evidence) => (true, evidence),
        Err(against) => (false, against),
    };
    Run { on, passed, evidence, took: clock.now() }
}

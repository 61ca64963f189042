//! A guided tour of trouble: real calls by the reference client, told as they happen.
//!
//! Where the calls go is the caller's choice; the tour knows only a client. What it says is meant
//! to be shown while the traffic passes: at most three lines of 78 columns.

mod chapters;

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::PeerError;
use super::client::{Client, Report};

use self::chapters::{CHAPTERS, Connect};

/// How the tour goes.
#[derive(Debug, Clone, Copy)]
pub struct TourOptions {
    /// 1: once round takes about 90 s; 2: twice as fast. Pauses and tools alike.
    pub speed: f64,
    /// How often round; `None`: until it is cancelled.
    pub rounds: Option<u32>,
}

impl Default for TourOptions {
    fn default() -> TourOptions {
        TourOptions { speed: 1.0, rounds: Some(1) }
    }
}

/// Time to read what was said before something happens, ms at speed 1.
const READ_MS: f64 = 4500.0;
/// Time to look at what happened, ms at speed 1.
const LOOK_MS: f64 = 3000.0;
/// Pause before the next round, ms at speed 1.
const ROUND_MS: f64 = 20_000.0;

const WELCOME: &str = "\
Welcome. A reference client calls a reference server; midwire sits in between.
All of it is real traffic on this machine. Move with the arrows or j and k,
open a line with Enter, go back with Esc, leave with q. ? shows every key.";

const OVER: &str = "\
That was the tour. What you saw was recorded and stays here to be explored.
Now put midwire in front of a server of your own: midwire http --upstream URL,
or midwire stdio -- COMMAND where your client starts its server. q leaves.";

const AGAIN: &str = "\
That was the tour; it begins again in a while. Explore as long as you like:
the screen stays where you are, and F follows what comes in. For a server of
your own: midwire http --upstream URL, or midwire stdio -- COMMAND. q leaves.";

/// Runs the tour: `connect` makes a client for each chapter, `say` is told each text. Returns how
/// every call went, in order; those of a tour that was cancelled up to then.
///
/// # Errors
/// When a client cannot be made or cannot send.
pub async fn run<C, S>(
    connect: C,
    options: TourOptions,
    cancel: &CancellationToken,
    say: S,
) -> Result<Vec<Report>, PeerError>
where
    C: Fn() -> Result<Client, PeerError> + Send + Sync,
    S: FnMut(&str) + Send,
{
    let speed = if options.speed > 0.0 { options.speed } else { 1.0 };
    let mut tour = Tour { connect: &connect, next_id: 1, speed, say, reports: Vec::new() };
    let walked = tokio::select! {
        walked = tour.walk(options.rounds) => walked,
        () = cancel.cancelled() => Ok(()),
    };
    walked.map(|()| tour.reports)
}

struct Tour<'a, S> {
    connect: &'a Connect<'a>,
    /// The tour is one client to whoever looks on, so its ids go on from chapter to chapter.
    next_id: i64,
    speed: f64,
    say: S,
    reports: Vec<Report>,
}

impl<S: FnMut(&str) + Send> Tour<'_, S> {
    async fn walk(&mut self, rounds: Option<u32>) -> Result<(), PeerError> {
        self.tell(WELCOME).await;
        let mut round = 0;
        loop {
            for chapter in CHAPTERS {
                self.tell(chapter.text).await;
                let scene = chapter.scene.play(self.connect, self.next_id, self.speed, &mut self.reports);
                self.next_id = scene.await?;
                self.pause(LOOK_MS).await;
            }
            round += 1;
            if rounds.is_some_and(|rounds| round >= rounds) {
                (self.say)(OVER);
                return Ok(());
            }
            self.tell(AGAIN).await;
            // A recording keeps everything; the tour need not.
            self.reports.clear();
            self.pause(ROUND_MS).await;
        }
    }

    /// Says something and leaves time to read it.
    async fn tell(&mut self, text: &str) {
        (self.say)(text);
        self.pause(READ_MS).await;
    }

    async fn pause(&self, ms: f64) {
        tokio::time::sleep(Duration::from_secs_f64(ms / 1000.0 / self.speed)).await;
    }
}

#[cfg(test)]
mod tests;

//! What the values of progress say (PRG-03, PRG-05, PRG-11, PRG-13).

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use crate::model::Sight;
use crate::rules::book::{Book, Look, On, SightKind};
use crate::rules::case::{Case, count};
use crate::rules::findings::Out;
use crate::rules::open::OfOpen;
use crate::time::{Mono, Ms};

/// The rate is looked at second by second. ours: two full seconds above it are no burst.
const SECOND: Ms = Ms(1_000);

/// So many steps that say nothing new are a run. ours.
const RUN: u32 = 100;

/// A step of less than this part of the total moves no bar on a screen. ours.
const TINY: f64 = 0.001;

pub(super) fn rules(book: &mut Book) {
    let accepted = On::Sight(SightKind::Progress);
    let stuck = On::Sight(SightKind::ProgressStuck);
    book.rule("PRG-03", &[stuck], not_rising);
    book.rule("PRG-05", &[accepted], over_total);
    book.rule("PRG-11", &[accepted, stuck], Flood::default());
    book.rule("PRG-13", &[accepted], Nothing::default());
}

fn not_rising(case: &Case<'_>, out: &mut Out<'_>) {
    let Sight::ProgressStuck { last, now } = case.what() else { return };
    let subject = case.subject();
    out.gather(case, case.seen.call, |times| {
        format!("progress of {subject} did not rise {}; last: {now} after {last}", count(times, "time"))
    });
}

fn over_total(case: &Case<'_>, out: &mut Out<'_>) {
    // Cheap first: a total that was told once stays in the call.
    let Some(known) = case.call().map(|call| call.progress) else { return };
    if !(known.last > known.total && known.total.is_some()) {
        return;
    }
    let number = |name| case.params()?.get(name)?.number();
    let (Some(progress), Some(total)) = (number("progress"), number("total")) else { return };
    if progress > total {
        let subject = case.subject();
        out.gather(case, case.seen.call, |times| {
            format!(
                "progress of {subject} went past its total {}; last: {progress} of {total}",
                count(times, "time")
            )
        });
    }
}

/// How often progress comes, second by second.
#[derive(Debug, Default)]
struct Flood {
    rates: OfOpen<Rate>,
}

#[derive(Debug, Clone, Copy)]
struct Rate {
    /// When the second began.
    since: Mono,
    /// Notifications in it.
    times: u32,
    /// The second before it was above the limit.
    was_fast: bool,
}

impl Look for Flood {
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        let Some(idx) = case.seen.call else { return };
        let (now, limit) = (case.seen.at, case.policy.limits.progress_per_s);
        let rate = self.rates.entry(case.model, idx, Rate { since: now, times: 0, was_fast: false });
        let since_ns = now.ns_since(rate.since);
        if since_ns >= SECOND.to_ns() {
            let is_next = since_ns < 2 * SECOND.to_ns();
            *rate = Rate { since: now, times: 0, was_fast: is_next && rate.times > limit };
        }
        rate.times += 1;
        // Once a second, however many there are.
        if rate.was_fast && rate.times == limit.saturating_add(1) {
            let subject = case.subject();
            out.gather(case, idx, |times| {
                let seconds = count(times.saturating_add(1), "second");
                format!("{subject} sent more than {limit} progress a second, for {seconds}")
            });
        }
    }
}

/// Steps that say nothing new.
#[derive(Debug, Default)]
struct Nothing {
    runs: OfOpen<Run>,
}

#[derive(Debug, Clone, Copy)]
struct Run {
    last: f64,
    message: u64,
    steps: u32,
}

impl Look for Nothing {
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        let (Some(idx), Some(call)) = (case.seen.call, case.call()) else { return };
        let (Some(now), Some(total)) = (call.progress.last, call.progress.total) else { return };
        let run = self.runs.entry(case.model, idx, Run { last: f64::MIN, message: 0, steps: 0 });
        let is_tiny = now - run.last < total * TINY;
        run.last = now;
        if !is_tiny {
            run.steps = 0;
            return;
        }
        let message = case.params().and_then(|params| params.get("message"));
        let message =
            message.map_or(0, |text| BuildHasherDefault::<DefaultHasher>::default().hash_one(text.raw()));
        run.steps = if message == run.message { run.steps.saturating_add(1) } else { 0 };
        run.message = message;
        if run.steps == RUN {
            let sentence = format!(
                "{RUN} progress of {} in a row told nothing new: steps of less than a thousandth, up to {now} of {total}",
                case.subject()
            );
            out.gather(case, idx, |_| sentence.clone());
        }
    }
}

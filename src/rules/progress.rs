//! Progress: the right token, rising values, its own stream (PRG-01..13).

use crate::model::Sight;
use crate::rules::book::{Book, On, SightKind};
use crate::rules::case::{Case, count};
use crate::rules::findings::Out;

pub(super) fn rules(book: &mut Book) {
    book.rule("PRG-03", &[On::Sight(SightKind::ProgressStuck)], not_rising);
    book.rule("PRG-05", &[On::NotificationOf("notifications/progress")], over_total);
}

fn not_rising(case: &Case<'_>, out: &mut Out<'_>) {
    let Sight::ProgressStuck { last, now } = case.what() else { return };
    let subject = case.subject();
    out.gather(case, case.seen.call, |times| {
        format!("progress of {subject} did not rise {}; last: {now} after {last}", count(times, "time"))
    });
}

fn over_total(case: &Case<'_>, out: &mut Out<'_>) {
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

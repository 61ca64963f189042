//! Log messages: only what was asked for, where it was asked for (LOG-01..09).

use std::collections::HashMap;

use crate::event::{Dir, Transport};
use crate::model::{LogsAsked, Name, ScopeIdx, Sight};
use crate::rules::book::{Book, Look, On, SightKind};
use crate::rules::case::{Case, count, short};
use crate::rules::findings::Out;
use crate::spec::logging::Level;
use crate::spec::meta::{LOG_LEVEL, SUBSCRIPTION_ID};
use crate::spec::methods::{DISCOVER, MESSAGE, SET_LEVEL};
use crate::time::Mono;
use crate::wire::json::Value;

pub(super) fn rules(book: &mut Book) {
    let log = On::NotificationOf(MESSAGE);
    let on_pipe = [On::Request, On::Sight(SightKind::Answered), On::Sight(SightKind::AnswerAfterCancel), log];
    book.rule("LOG-01", &[log], not_asked_for);
    book.rule("LOG-02", &on_pipe, Asking { open: HashMap::new(), look: nobody_asks });
    book.rule("LOG-03", &on_pipe, Asking { open: HashMap::new(), look: below });
    book.rule("LOG-04", &[log], on_listen);
    book.rule("LOG-05", &[log], malformed);
    book.rule("LOG-06", &[log], not_declared);
    book.rule("LOG-07", &[On::Result], unknown_level_accepted);
    book.rule("LOG-08", &[log, On::Request, On::ResultOf(DISCOVER)], deprecated);
    book.rule("LOG-09", &[log, On::RequestOf(SET_LEVEL), On::ResultOf(SET_LEVEL)], SetLevel::default());
}

fn is_by_server(case: &Case<'_>) -> bool {
    case.row().is_some_and(|row| row.dir == Dir::S2c)
}

fn level(case: &Case<'_>) -> Option<Level> {
    Level::from_name(&case.params()?.get("level")?.text()?)
}

fn is_on_listen(case: &Case<'_>) -> bool {
    case.call().is_some_and(|call| call.method == Name::LISTEN) || case.meta(SUBSCRIPTION_ID).is_some()
}

fn not_asked_for(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(call) = case.call().filter(|call| call.logs.is_none()) else { return };
    if is_by_server(case) && call.sender == Dir::C2s && !is_on_listen(case) {
        let subject = case.subject();
        out.gather(case, case.seen.call, |times| {
            format!("{} for {subject}, which asked for none", count(times, "log message"))
        });
    }
}

/// How many unanswered requests of one process ask for the logs of each level; in the last place, of a
/// level that does not exist. A cancelled request is unanswered.
type Open = [u32; Level::ALL.len() + 1];

/// On a pipe a log names no request: what is open decides.
struct Asking {
    open: HashMap<ScopeIdx, Open>,
    look: fn(&Open, &Case<'_>, &mut Out<'_>),
}

fn place(asked: LogsAsked) -> usize {
    match asked {
        LogsAsked::From(level) => level as usize,
        LogsAsked::Unknown => Level::ALL.len(),
    }
}

impl Look for Asking {
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        let asked = || case.call().filter(|call| call.sender == Dir::C2s)?.logs;
        let is_log = case.method() == MESSAGE;
        let is_end = match case.what() {
            Sight::Message if is_log => {
                let none = Open::default();
                let open = self.open.get(&case.seen.scope).unwrap_or(&none);
                if is_by_server(case) && !is_on_listen(case) {
                    (self.look)(open, case, out);
                }
                return;
            }
            Sight::Message => false,
            // A second answer after the cancel ends nothing.
            Sight::AnswerAfterCancel(_) if case.call().is_some_and(|call| call.after.late_answers > 1) => {
                return;
            }
            _ => true,
        };
        let Some(asked) = asked().filter(|_| case.transport() == Transport::Stdio) else { return };
        let open = self.open.entry(case.seen.scope).or_default();
        if let Some(times) = open.get_mut(place(asked)) {
            *times = if is_end { times.saturating_sub(1) } else { times.saturating_add(1) };
        }
    }
}

fn nobody_asks(open: &Open, case: &Case<'_>, out: &mut Out<'_>) {
    // Without the beginning there may be open requests that nobody saw.
    if open.iter().all(|times| *times == 0) && case.is_full() {
        out.gather(case, case.seen.scope, |times| {
            format!("{} while no open request asked for any", count(times, "log message"))
        });
    }
}

fn below(open: &Open, case: &Case<'_>, out: &mut Out<'_>) {
    let lowest = match case.transport() {
        Transport::Http => match case.call().and_then(|call| call.logs) {
            Some(LogsAsked::From(level)) => Some(level),
            _ => None,
        },
        Transport::Stdio if open.last().is_some_and(|times| *times > 0) || !case.is_full() => None,
        Transport::Stdio => {
            Level::ALL.into_iter().zip(open).find(|(_, times)| **times > 0).map(|(level, _)| level)
        }
    };
    let (Some(lowest), Some(level)) = (lowest, level(case)) else { return };
    if level < lowest {
        let (level, lowest) = (level.as_str(), lowest.as_str());
        let subject = (case.seen.call, case.seen.scope);
        out.gather(case, subject, |times| {
            format!(
                "{} below what was asked for; last: {level}, asked from {lowest} on",
                count(times, "log message")
            )
        });
    }
}

fn on_listen(case: &Case<'_>, out: &mut Out<'_>) {
    if is_by_server(case) && is_on_listen(case) {
        let subject = case.subject();
        out.gather(case, (case.seen.call, case.seen.scope), |times| {
            format!("{} on {subject}, which carries none", count(times, "log message"))
        });
    }
}

fn malformed(case: &Case<'_>, out: &mut Out<'_>) {
    if case.body().is_none() || !is_by_server(case) {
        return;
    }
    let member = |name| case.params().and_then(|params| params.get(name));
    let what = match (member("level"), member("data")) {
        (None, _) => "without a level".to_owned(),
        (Some(level), _) if level.text().is_none_or(|name| Level::from_name(&name).is_none()) => {
            format!("of the level {}, which does not exist", short(level.raw()))
        }
        (_, None) => "without data".to_owned(),
        _ => return,
    };
    out.gather(case, case.seen.scope, |times| format!("{} {what}", count(times, "log message")));
}

fn not_declared(case: &Case<'_>, out: &mut Out<'_>) {
    let declared = case.server_capabilities().map(|can| can.get("logging").is_some());
    if is_by_server(case) && declared == Some(false) {
        out.gather(case, case.seen.scope, |times| {
            format!("{} by a server that has not declared logging", count(times, "log message"))
        });
    }
}

fn unknown_level_accepted(case: &Case<'_>, out: &mut Out<'_>) {
    if case.call().is_none_or(|call| call.logs != Some(LogsAsked::Unknown)) {
        return;
    }
    let level = case.request_params().and_then(|params| params.at(&["_meta", LOG_LEVEL]));
    let level = short(level.map_or("unknown", Value::raw));
    out.say(case, format!("{} asked for logs of the level {level} and got a result", case.subject()));
}

fn deprecated(case: &Case<'_>, out: &mut Out<'_>) {
    let what = match case.method() {
        MESSAGE => "log messages are sent",
        DISCOVER if case.result().and_then(|result| result.at(&["capabilities", "logging"])).is_some() => {
            "the server declares logging"
        }
        _ if !is_by_server(case) && case.call().is_some_and(|call| call.logs.is_some()) => {
            "requests ask for logs"
        }
        _ => return,
    };
    let sentence = format!("{what}, a feature that is deprecated");
    out.gather(case, (case.seen.scope, what), |_| sentence.clone());
}

/// The level that a session was set to.
#[derive(Debug, Default)]
struct SetLevel {
    levels: HashMap<ScopeIdx, (Level, Mono)>,
}

impl Look for SetLevel {
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        // Clients without a session share what is set.
        if case.transport() == Transport::Http && case.seen.scope == ScopeIdx(0) {
            return;
        }
        let set = self.levels.get_mut(&case.seen.scope);
        if case.method() == MESSAGE {
            let (Some((set, since)), Some(level)) = (set, level(case)) else { return };
            if level < *set && case.seen.at.ns_since(*since) > case.window_ns() && is_by_server(case) {
                let (level, set) = (level.as_str(), set.as_str());
                out.gather(case, case.seen.scope, |times| {
                    format!(
                        "{} below the level that was set; last: {level}, set to {set}",
                        count(times, "log message")
                    )
                });
            }
        } else if is_by_server(case) {
            let asked = case.request_params().and_then(|params| params.get("level")?.text());
            if let Some(level) = asked.and_then(|name| Level::from_name(&name)) {
                self.levels.insert(case.seen.scope, (level, case.seen.at));
            }
        } else if let (Some((set, _)), Some(level)) = (set, level(case)) {
            // The server may set it before it says so.
            *set = level.min(*set);
        }
    }
}

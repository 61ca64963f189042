//! What a recipe expects, judged by the recording of a session in which its faults were made.
//!
//! An expectation holds only when the recording shows it, and for each time that its fault was done.

use std::collections::BTreeMap;

use crate::command::recipe::{Expectation, That};
use crate::event::{Dir, Event, Transport, What};
use crate::model::{Call, CallIdx, MarkKind, Model};
use crate::report::{Expected, Report};
use crate::time::{Mono, Ms};

/// One time that a fault was done.
#[derive(Debug)]
struct Hit {
    /// Name of the fault.
    fault: String,
    /// Number of the rule, and how often it had been applied by then.
    which: (u64, u64),
    /// The first event of it.
    n: u64,
    at: Mono,
    transport: Transport,
    stream: Option<u64>,
    conn: Option<u64>,
    /// The calls that it met, as they were made.
    calls: Vec<CallIdx>,
}

/// The client has closed its side.
#[derive(Debug)]
struct Left {
    n: u64,
    at: Mono,
    stream: Option<u64>,
    conn: Option<u64>,
}

/// What is noted while a recording is read.
#[derive(Debug, Default)]
pub(super) struct Watch {
    hits: Vec<Hit>,
    left: Vec<Left>,
    /// What each call wants: the same for the same method, target and arguments.
    wishes: Vec<Option<u64>>,
}

/// Judges one call that a fault met: the events that show it.
type OfCall<'a> = dyn Fn(&Hit, CallIdx) -> Result<Vec<u64>, Not> + 'a;

/// It does not hold: why, and the events that show it.
struct Not {
    why: String,
    evidence: Vec<u64>,
}

impl Watch {
    /// Looks at the event that the model has folded last.
    pub(super) fn look(&mut self, event: &Event, model: &Model) {
        for at in self.wishes.len()..model.calls().len() {
            let idx = u32::try_from(at).ok().map(CallIdx);
            self.wishes.push(idx.and_then(|idx| model.fingerprint(idx)));
        }
        match &event.what {
            What::Inject { target, cause: Some(cause), .. } => self.hit(event, target, cause, model),
            What::ClientClosed { .. } => {
                let (stream, conn) = (event.stream, event.conn);
                self.left.push(Left { n: event.n, at: event.at, stream, conn });
            }
            _ => {}
        }
    }

    fn hit(&mut self, event: &Event, target: &str, cause: &str, model: &Model) {
        let Some((which, fault)) = named(cause) else { return };
        // Where a side is cut, the words behind the hit name the call.
        let target = cause.split(": ").skip(1).find(|words| words.starts_with("id ")).unwrap_or(target);
        let calls = touched(event, target, model);
        let known = self.hits.iter_mut().find(|hit| hit.which == which && hit.fault == fault);
        if let Some(hit) = known {
            for idx in calls.into_iter().filter(|_| target.starts_with("id ")) {
                if !hit.calls.contains(&idx) {
                    hit.calls.push(idx);
                }
            }
            return;
        }
        self.hits.push(Hit {
            fault: fault.to_owned(),
            which,
            n: event.n,
            at: event.at,
            transport: event.transport,
            stream: event.stream,
            conn: event.conn,
            calls,
        });
    }

    /// Adds to the report whether each holds.
    pub(super) fn judge(&self, expectations: &[Expectation], model: &Model, report: &mut Report) {
        for expectation in expectations {
            let judged = self.one(expectation, model, report);
            let (is_held, why, evidence) = match judged {
                Ok(evidence) => (true, None, evidence),
                Err(not) => (false, Some(not.why), not.evidence),
            };
            report.expect(Expected { words: expectation.to_string(), is_held, why, evidence });
        }
    }

    /// The events that show it.
    fn one(&self, expectation: &Expectation, model: &Model, report: &Report) -> Result<Vec<u64>, Not> {
        let fault = expectation.fault.as_deref();
        let hits = || self.hits.iter().filter(|hit| fault.is_none_or(|fault| hit.fault == fault));
        let each = |judge: &dyn Fn(&Hit) -> Result<Vec<u64>, Not>| {
            if hits().next().is_none() {
                return Err(Not { why: "the fault was never done".to_owned(), evidence: Vec::new() });
            }
            let judged: Result<Vec<_>, _> = hits().map(judge).collect();
            judged.map(|evidence| evidence.concat())
        };
        let each_call = |judge: &OfCall<'_>| {
            each(&|hit| {
                if hit.calls.is_empty() {
                    return Err(hit.not("it met no call"));
                }
                let judged: Result<Vec<_>, _> = hit.calls.iter().map(|idx| judge(hit, *idx)).collect();
                judged.map(|evidence| evidence.concat())
            })
        };
        match &expectation.that {
            That::Hits { least, most } => {
                let evidence: Vec<u64> = hits().map(|hit| hit.n).collect();
                let count = evidence.len() as u64;
                if count < *least || most.is_some_and(|most| count > most) {
                    return Err(Not { why: format!("it was done {count} times"), evidence });
                }
                Ok(evidence)
            }
            That::RetriesWithNewId { within } => {
                let retries = self.retries(hits(), model);
                each_call(&|hit, idx| retried(hit, idx, &retries, *within, model))
            }
            That::NoRetry => {
                let retries = self.retries(hits(), model);
                each_call(&|hit, idx| match retries.get(&(hit.n, idx)) {
                    Some(retry) => Err(hit.not_of(model, *retry, "the call was made again")),
                    None => Ok(vec![hit.n]),
                })
            }
            That::NoDuplicateEffect if fault.is_none() => self.done_once(None, model),
            That::NoDuplicateEffect => each_call(&|_, idx| self.done_once(Some(idx), model)),
            That::ClientCloses { within } => each(&|hit| self.closed(hit, *within, model)),
            That::ClientCancels { within } => each_call(&|hit, idx| cancelled(hit, idx, *within, model)),
            That::Answered { within } => {
                let retries = self.retries(self.hits.iter(), model);
                each_call(&|hit, idx| answered(hit, idx, &retries, *within, model))
            }
            That::Verdict(verdict) => each_call(&|hit, idx| {
                let ended = model.race(idx).map(|race| race.verdict.as_str());
                let id = model.call(idx).map(|call| call.id.to_string()).unwrap_or_default();
                match ended {
                    Some(ended) if ended == *verdict => Ok(vec![hit.n]),
                    Some(ended) => Err(hit.not(&format!("the race of id {id} ended as {ended}"))),
                    None => Err(hit.not(&format!("id {id} had no race: nobody cancelled it"))),
                }
            }),
            That::NoFinding { rule } => {
                let found = report.items.iter().find(|item| match rule {
                    Some(rule) => item.rule == rule,
                    None => item.fails && !item.is_expectation(),
                });
                match found {
                    Some(item) => Err(Not {
                        why: format!("{}: {}", item.rule, item.message),
                        evidence: item.evidence.clone(),
                    }),
                    None => Ok(Vec::new()),
                }
            }
            That::Finding { rule } => {
                let found = report.items.iter().find(|item| item.rule == rule);
                let not = || Not { why: "there is none".to_owned(), evidence: Vec::new() };
                found.map(|item| item.evidence.clone()).ok_or_else(not)
            }
        }
    }

    /// For each call that a fault met, the call by which the client made it again: the first later one
    /// that wants the same and stands for no other.
    fn retries<'a>(
        &self,
        hits: impl Iterator<Item = &'a Hit>,
        model: &Model,
    ) -> BTreeMap<(u64, CallIdx), CallIdx> {
        let mut found: BTreeMap<(u64, CallIdx), CallIdx> = BTreeMap::new();
        for hit in hits {
            for idx in &hit.calls {
                let is_retry = |(other, call): &(CallIdx, &Call)| {
                    *other > *idx
                        && call.started >= hit.at
                        && self.is_same_wish(*idx, *other, model)
                        && !model.row(call.row).is_some_and(|row| row.is_ours)
                        && !found.values().any(|taken| taken == other)
                };
                if let Some((retry, _)) = numbered(model).find(is_retry) {
                    found.insert((hit.n, *idx), retry);
                }
            }
        }
        found
    }

    fn is_same_wish(&self, one: CallIdx, other: CallIdx, model: &Model) -> bool {
        let (Some(a), Some(b)) = (model.call(one), model.call(other)) else { return false };
        let wish = |idx: CallIdx| self.wishes.get(idx.0 as usize).copied().flatten();
        let is_same = match (wish(one), wish(other)) {
            (Some(a), Some(b)) => a == b,
            // Too long to be looked into.
            _ => false,
        };
        is_same && a.sender == b.sender && a.method == b.method && a.target == b.target
    }

    fn closed(&self, hit: &Hit, within: Option<Ms>, model: &Model) -> Result<Vec<u64>, Not> {
        let calls = || hit.calls.iter().filter_map(|idx| model.call(*idx));
        let streams: Vec<u64> =
            hit.stream.into_iter().chain(calls().filter_map(|call| call.stream)).collect();
        let conns: Vec<u64> = hit.conn.into_iter().chain(calls().filter_map(|call| call.conn)).collect();
        let is_it = |left: &&Left| {
            let is_here = match (hit.transport, left.stream, left.conn) {
                (Transport::Stdio, ..) => true,
                (Transport::Http, Some(stream), _) => streams.contains(&stream),
                (Transport::Http, None, Some(conn)) => conns.contains(&conn),
                (Transport::Http, None, None) => false,
            };
            is_here && left.at >= hit.at
        };
        let left =
            self.left.iter().find(is_it).ok_or_else(|| hit.not("the client did not close its side"))?;
        hit.in_time(left.at, within, "the client closed its side")?;
        Ok(vec![hit.n, left.n])
    }

    /// Of each call, or of the wish of this one: whatever its attempts, the effect came once.
    fn done_once(&self, only: Option<CallIdx>, model: &Model) -> Result<Vec<u64>, Not> {
        let tells = model.calls().iter().any(|call| call.told.is_some());
        let firsts = numbered(model).filter(|(idx, call)| {
            call.sender == Dir::C2s
                && only.is_none_or(|one| one == *idx || self.is_same_wish(one, *idx, model))
        });
        for (first, call) in firsts {
            let all: Vec<CallIdx> = numbered(model)
                .map(|(idx, _)| idx)
                .filter(|idx| *idx == first || self.is_same_wish(first, *idx, model))
                .collect();
            let effects: u32 =
                all.iter().filter_map(|idx| model.call(*idx)?.told.as_ref()).map(|told| told.effects).sum();
            let evidence = || all.iter().map(|idx| number(model, *idx)).collect();
            if effects > 1 && all.len() > 1 {
                let why = format!("{} calls like id {} took effect {effects} times", all.len(), call.id);
                return Err(Not { why, evidence: evidence() });
            }
            if only.is_some() && all.len() > 1 && !tells {
                let why = format!(
                    "id {} was made {} times, and no server tells of its effects (docs/telemetry.md)",
                    call.id,
                    all.len()
                );
                return Err(Not { why, evidence: evidence() });
            }
        }
        let has_tools = model.calls().iter().any(|call| model.text(call.method) == "tools/call");
        if only.is_none() && !tells && has_tools {
            let why = "no server tells of its effects (docs/telemetry.md)".to_owned();
            return Err(Not { why, evidence: Vec::new() });
        }
        Ok(only.map(|idx| number(model, idx)).into_iter().collect())
    }
}

impl Hit {
    fn not(&self, why: &str) -> Not {
        Not { why: why.to_owned(), evidence: vec![self.n] }
    }

    fn not_of(&self, model: &Model, idx: CallIdx, why: &str) -> Not {
        let id = model.call(idx).map(|call| format!(" (id {})", call.id)).unwrap_or_default();
        let mut evidence = vec![self.n, number(model, idx)];
        evidence.sort_unstable();
        Not { why: format!("{why}{id}"), evidence }
    }

    fn in_time(&self, at: Mono, within: Option<Ms>, what: &str) -> Result<(), Not> {
        let ns = at.ns_since(self.at);
        match within {
            Some(limit) if ns > limit.to_ns() => {
                Err(self.not(&format!("{what} {} ms after the fault", ns / 1_000_000)))
            }
            _ => Ok(()),
        }
    }
}

fn numbered(model: &Model) -> impl Iterator<Item = (CallIdx, &Call)> {
    (0..).map(CallIdx).zip(model.calls())
}

/// Number of the event that holds the request of a call.
fn number(model: &Model, idx: CallIdx) -> u64 {
    model.call(idx).and_then(|call| model.row(call.row)).map_or(0, |row| row.n)
}

fn retried(
    hit: &Hit,
    idx: CallIdx,
    retries: &BTreeMap<(u64, CallIdx), CallIdx>,
    within: Option<Ms>,
    model: &Model,
) -> Result<Vec<u64>, Not> {
    let retry = retries.get(&(hit.n, idx)).and_then(|retry| Some((*retry, model.call(*retry)?)));
    let Some((retry, call)) = retry else {
        return Err(hit.not_of(model, idx, "the call was not made again"));
    };
    let has_been = |(other, before): (CallIdx, &Call)| {
        other < retry && before.sender == call.sender && before.scope == call.scope && before.id == call.id
    };
    if numbered(model).any(has_been) {
        return Err(hit.not_of(model, retry, "the call was made again with an id that was used before"));
    }
    hit.in_time(call.started, within, "the call was made again")?;
    Ok(vec![hit.n, number(model, retry)])
}

fn answered(
    hit: &Hit,
    idx: CallIdx,
    retries: &BTreeMap<(u64, CallIdx), CallIdx>,
    within: Option<Ms>,
    model: &Model,
) -> Result<Vec<u64>, Not> {
    let mut next = Some(idx);
    while let Some(one) = next {
        let Some(call) = model.call(one) else { break };
        if call.state.is_answered() {
            let ended = call.ended.unwrap_or(call.started);
            hit.in_time(ended, within, "the answer came")?;
            return Ok(vec![hit.n, number(model, one)]);
        }
        // A retry may be met by the fault itself, and be made again then.
        next = retries.iter().find(|((_, of), _)| *of == one).map(|(_, retry)| *retry);
    }
    Err(hit.not_of(model, idx, "the call got no answer"))
}

fn cancelled(hit: &Hit, idx: CallIdx, within: Option<Ms>, model: &Model) -> Result<Vec<u64>, Not> {
    let marks = model.call(idx).map(|call| call.marks.as_slice()).unwrap_or_default();
    let mark = marks.iter().find(|mark| {
        let is_own = !model.row(mark.row).is_some_and(|row| row.is_ours);
        matches!(mark.kind, MarkKind::Cancel | MarkKind::Disconnect) && mark.at >= hit.at && is_own
    });
    let mark = mark.ok_or_else(|| hit.not_of(model, idx, "the client did not give the call up"))?;
    hit.in_time(mark.at, within, "the client gave the call up")?;
    Ok(vec![hit.n, model.row(mark.row).map_or(0, |row| row.n)])
}

/// `rule 3 "name", seed 7, hit 2`, with more words behind it: which rule and hit, and the name.
fn named(cause: &str) -> Option<((u64, u64), &str)> {
    let (rule, rest) = cause.strip_prefix("rule ")?.split_once(' ')?;
    let (name, rest) = rest.strip_prefix('"')?.split_once('"')?;
    let (_, hit) = rest.split_once(", hit ")?;
    let digits = hit.find(|c: char| !c.is_ascii_digit()).unwrap_or(hit.len());
    Some(((rule.parse().ok()?, hit.get(..digits)?.parse().ok()?), name))
}

/// The calls that it was done to: the one that is named, those of the exchange, or all that are open.
fn touched(event: &Event, target: &str, model: &Model) -> Vec<CallIdx> {
    let newest = |picks: &dyn Fn(&Call) -> bool| {
        let at = model.calls().iter().rposition(picks).and_then(|at| u32::try_from(at).ok());
        at.map(CallIdx)
    };
    if let Some(id) = target.strip_prefix("id ") {
        let is_it = |call: &Call| call.id.to_string() == id;
        let is_here = |call: &Call| is_it(call) && (event.stream.is_none() || call.stream == event.stream);
        return newest(&is_here).or_else(|| newest(&is_it)).into_iter().collect();
    }
    let picks = |call: &Call| match event.stream {
        Some(stream) => call.stream == Some(stream),
        None => !call.state.is_terminal(),
    };
    numbered(model).filter(|(_, call)| picks(call)).map(|(idx, _)| idx).collect()
}

#[cfg(test)]
mod tests;

//! What a client does when its subscription has ended, gracefully or not: a plan of ordered steps.
//!
//! Nothing is replayed. Change notifications are cues to read again, and `Last-Event-ID` is not
//! sent: the modern era resumes nothing (spec 2026-07-28 basic/transports/streamable-http).

use std::collections::BTreeSet;

use super::backoff;
use super::retry::Class;
use crate::time::Ms;

/// What a subscription is about.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// Changes of the list of tools.
    pub tools: bool,
    /// Changes of the list of prompts.
    pub prompts: bool,
    /// Changes of the list of resources.
    pub resources: bool,
    /// Changes of these resources.
    pub uris: BTreeSet<String>,
    /// Changes of these tasks.
    pub tasks: BTreeSet<String>,
}

/// Something to be read afresh.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Read {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The list of resources.
    Resources,
    /// The resource with this URI.
    Resource(String),
    /// The prompt with this name.
    Prompt(String),
    /// The task with this id.
    Task(String),
}

/// A request that was under way when the stream was lost. `I` names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InFlight<I> {
    /// It has no answer yet.
    Open(I, Class),
    /// It was answered with a task, which goes on.
    Task(I),
}

/// What becomes of a request that was under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Settle {
    /// Again, under a new id.
    Retry,
    /// Again, under a new id, with the same key and the same arguments.
    RetryWithKey,
    /// Find out first whether it took effect.
    Reconcile,
    /// Ask how the task stands.
    Poll,
}

/// One step; each waits for the one before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step<I> {
    /// Wait so long.
    Wait(Ms),
    /// Start the server again: its process is gone.
    Restart,
    /// Ask again for versions and capabilities.
    Discover,
    /// Read the lists again: a new process may offer others.
    Relist,
    /// Open a subscription with the whole filter that is wanted, under a new id, without
    /// `Last-Event-ID`.
    Listen(Filter),
    /// Wait for the acknowledgement, and compare what it grants with the filter.
    AwaitAcknowledgement(Filter),
    /// Read what may have changed meanwhile, each thing once.
    Refetch(Vec<Read>),
    /// Join what was read with what is known, by stable ids.
    Merge,
    /// Settle a request that was under way.
    Settle(I, Settle),
}

/// What has happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss<'a, I> {
    /// Name of the client, which spreads the wait.
    pub client: &'a str,
    /// Attempts to reconnect before this one.
    pub attempt: u32,
    /// The process of the server is gone as well.
    pub is_process_gone: bool,
    /// The filter that is wanted, which may be wider than what was granted.
    pub wanted: Filter,
    /// What the client keeps a copy of, in any order.
    pub affected: Vec<Read>,
    /// Requests that were under way, oldest first.
    pub in_flight: Vec<InFlight<I>>,
}

/// The steps after a loss, in order.
#[must_use]
pub fn plan<I>(loss: Loss<'_, I>) -> Vec<Step<I>> {
    let mut steps = vec![Step::Wait(backoff::delay(loss.client, loss.attempt))];
    if loss.is_process_gone {
        steps.extend([Step::Restart, Step::Discover, Step::Relist]);
    }
    let affected: BTreeSet<Read> = loss.affected.into_iter().collect();
    steps.extend([
        Step::Listen(loss.wanted.clone()),
        Step::AwaitAcknowledgement(loss.wanted),
        Step::Refetch(affected.into_iter().collect()),
        Step::Merge,
    ]);
    steps.extend(loss.in_flight.into_iter().map(|request| match request {
        InFlight::Open(id, class) => Step::Settle(id, settle(class)),
        InFlight::Task(id) => Step::Settle(id, Settle::Poll),
    }));
    steps
}

fn settle(class: Class) -> Settle {
    match class {
        Class::Safe => Settle::Retry,
        Class::Conditional => Settle::RetryWithKey,
        Class::Unsafe => Settle::Reconcile,
    }
}

impl Filter {
    /// What is wanted and not in `granted`; empty: everything is granted.
    #[must_use]
    pub fn without(&self, granted: &Filter) -> Filter {
        Filter {
            tools: self.tools && !granted.tools,
            prompts: self.prompts && !granted.prompts,
            resources: self.resources && !granted.resources,
            uris: self.uris.difference(&granted.uris).cloned().collect(),
            tasks: self.tasks.difference(&granted.tasks).cloned().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(items: &[&str]) -> BTreeSet<String> {
        items.iter().map(|item| (*item).to_owned()).collect()
    }

    fn loss(is_process_gone: bool) -> Loss<'static, u32> {
        let resource = |uri: &str| Read::Resource(uri.to_owned());
        Loss {
            client: "client-a",
            attempt: 1,
            is_process_gone,
            wanted: Filter { tools: true, uris: texts(&["b", "a"]), ..Filter::default() },
            affected: vec![resource("b"), resource("a"), Read::Tools, resource("a"), Read::Tools],
            in_flight: vec![
                InFlight::Open(3, Class::Unsafe),
                InFlight::Open(4, Class::Safe),
                InFlight::Open(5, Class::Conditional),
                InFlight::Task(6),
            ],
        }
    }

    #[test]
    fn the_plan_waits_listens_reads_afresh_and_then_settles_what_was_open() {
        let wanted = loss(false).wanted;
        let read = |uri: &str| Read::Resource(uri.to_owned());
        let tail = vec![
            Step::Listen(wanted.clone()),
            Step::AwaitAcknowledgement(wanted),
            Step::Refetch(vec![Read::Tools, read("a"), read("b")]),
            Step::Merge,
            Step::Settle(3, Settle::Reconcile),
            Step::Settle(4, Settle::Retry),
            Step::Settle(5, Settle::RetryWithKey),
            Step::Settle(6, Settle::Poll),
        ];
        let head = vec![Step::Wait(Ms(384))];
        assert_eq!(plan(loss(false)), [head.clone(), tail.clone()].concat());
        let restart = vec![Step::Restart, Step::Discover, Step::Relist];
        assert_eq!(plan(loss(true)), [head, restart, tail].concat());
    }

    #[test]
    fn what_was_not_granted_is_found() {
        let wanted = Filter { tools: true, prompts: true, uris: texts(&["a", "b"]), ..Filter::default() };
        let granted = Filter { tools: true, resources: true, uris: texts(&["b", "c"]), ..Filter::default() };
        let missing = Filter { prompts: true, uris: texts(&["a"]), ..Filter::default() };
        assert_eq!(wanted.without(&granted), missing);
        assert_eq!(wanted.without(&wanted), Filter::default());
    }
}

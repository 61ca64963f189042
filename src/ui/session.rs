//! The session that is open: the model, what is wrong, and which of it is shown.

use super::filtering::Filter;
use super::msg::{Facts, Feed, Recording};
use super::outcome::{self, Outcome};
use super::pick::{Mode, Pick};
use crate::event::{Event, What};
use crate::model::{CallIdx, Capture, Model, RowIdx, Sight};
use crate::rules::{Finding, Judge};
use crate::time::Mono;

/// By what the calls are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Column {
    /// When they began.
    #[default]
    Time,
    /// How long they took; open ones count until now.
    Duration,
    /// Method and target.
    Method,
    /// What became of them.
    Outcome,
}

impl Column {
    /// In one word.
    #[must_use]
    pub(super) fn word(self) -> &'static str {
        match self {
            Column::Time => "time",
            Column::Duration => "duration",
            Column::Method => "method",
            Column::Outcome => "state",
        }
    }

    /// The next one round.
    #[must_use]
    pub(super) fn next(self) -> Column {
        match self {
            Column::Time => Column::Duration,
            Column::Duration => Column::Method,
            Column::Method => Column::Outcome,
            Column::Outcome => Column::Time,
        }
    }
}

/// Lists up to this length are put in order again with every batch of events; longer ones a few
/// times a second.
const SORT_AT_ONCE: usize = 20_000;

/// An open session.
#[derive(Debug)]
pub(super) struct Session {
    /// What was known when it was opened.
    pub facts: Facts,
    /// What the events say.
    pub model: Model,
    /// The recording; `None`: nothing is known yet.
    pub recording: Option<Recording>,
    /// The calls that are shown.
    pub calls: Pick,
    /// The rows that are shown.
    pub rows: Pick,
    /// The filter in force, and what it does.
    pub filter: Option<Filter>,
    /// What the filter does.
    pub mode: Mode,
    /// The order of the calls.
    pub sort: (Column, bool),
    /// The newest note, whole.
    pub caption: Option<String>,
    /// Times are counted from here.
    pub reference: Mono,
    judge: Judge,
    clock: Mono,
    events: u32,
    is_order_stale: bool,
}

impl Session {
    /// A session without events yet.
    #[must_use]
    pub(super) fn new(facts: Facts) -> Session {
        Session {
            facts,
            model: Model::new(),
            recording: None,
            calls: Pick::default(),
            rows: Pick::default(),
            filter: None,
            mode: Mode::default(),
            sort: (Column::default(), false),
            caption: None,
            reference: Mono(0),
            judge: Judge::new(),
            clock: Mono(0),
            events: 0,
            is_order_stale: false,
        }
    }

    /// Takes the next events. Returns whether a filter still has items to look at.
    pub(super) fn fold(&mut self, events: &[Event]) -> bool {
        let mut changed = Vec::new();
        for event in events {
            self.model.fold(event, self.events);
            self.events = self.events.saturating_add(1);
            self.judge.look(&self.model);
            for seen in self.model.seen() {
                changed.extend(seen.call);
                if let Sight::ProcessEnded { calls }
                | Sight::SessionEnded { calls }
                | Sight::Ended { calls } = &seen.what
                {
                    changed.extend(calls);
                }
            }
            if let What::Mark(text) = &event.what {
                self.caption = Some(text.clone());
            }
        }
        self.recheck(&changed);
        let has_more = self.extend();
        if self.is_sorted() {
            self.is_order_stale = true;
            if self.calls.len() <= SORT_AT_ONCE {
                self.resort();
            }
        }
        has_more
    }

    /// The recording stands like this. Where it breaks off, what is open stays unresolved.
    pub(super) fn stand(&mut self, recording: Recording) {
        let is_cut = recording.is_read && recording.feed == Feed::Cut;
        self.recording = Some(recording);
        if is_cut && self.model.overview().capture == Capture::Live {
            let calls = (0..).map(CallIdx).zip(self.model.calls());
            let open: Vec<CallIdx> =
                calls.filter(|(_, call)| !call.state.is_terminal()).map(|(idx, _)| idx).collect();
            self.model.cut();
            self.judge.look(&self.model);
            self.recheck(&open);
        }
    }

    /// Looks at items that a filter has not seen yet. Returns whether more remain.
    pub(super) fn extend(&mut self) -> bool {
        let Session { model, filter, calls, rows, .. } = self;
        let filter = filter.as_ref();
        let more_calls = calls.extend(model.calls().len(), |item| {
            filter.is_none_or(|filter| filter.is_call(model, CallIdx(item)))
        });
        let more_rows = rows.extend(model.rows().len(), |item| {
            filter.is_none_or(|filter| filter.is_row(model, RowIdx(item)))
        });
        more_calls || more_rows
    }

    fn recheck(&mut self, changed: &[CallIdx]) {
        let Session { model, filter: Some(filter), calls, rows, .. } = self else { return };
        for idx in changed {
            calls.recheck(idx.0, |_| filter.is_call(model, *idx));
            if model.call(*idx).is_some_and(|call| call.state.is_terminal()) {
                for row in model.rows_of(*idx) {
                    rows.recheck(row.0, |_| filter.is_row(model, row));
                }
            }
        }
    }

    /// Puts another filter in force, or none. Returns whether items remain to be looked at.
    pub(super) fn set_filter(&mut self, filter: Option<Filter>, mode: Mode) -> bool {
        self.calls.restart(filter.is_some(), mode);
        self.rows.restart(filter.is_some(), mode);
        self.filter = filter;
        self.mode = mode;
        self.is_order_stale = self.is_sorted();
        let has_more = self.extend();
        self.resort();
        has_more
    }

    /// Orders the calls otherwise.
    pub(super) fn set_sort(&mut self, column: Column, is_reverse: bool) {
        self.sort = (column, is_reverse);
        self.is_order_stale = true;
        self.resort();
    }

    /// Puts the calls in order again, if they may have left it.
    pub(super) fn resort(&mut self) {
        if !std::mem::take(&mut self.is_order_stale) {
            return;
        }
        let (column, is_reverse) = self.sort;
        let now = self.now();
        let Session { model, calls, .. } = self;
        let call = |item: u32| model.call(CallIdx(item));
        match column {
            Column::Time => calls.sort_by_key(is_reverse, None::<fn(u32) -> u32>),
            Column::Duration => calls.sort_by_key(
                is_reverse,
                Some(|item| call(item).map(|call| std::cmp::Reverse(outcome::duration_ns(call, now)))),
            ),
            Column::Method => calls.sort_by_key(
                is_reverse,
                Some(|item| {
                    let text = |name| model.text(name).to_owned();
                    call(item).map(|call| (text(call.method), call.target.map(text)))
                }),
            ),
            Column::Outcome => {
                calls.sort_by_key(is_reverse, Some(|item| call(item).map(|call| Outcome::of(call).word)));
            }
        }
    }

    fn is_sorted(&self) -> bool {
        self.sort != (Column::Time, false)
    }

    /// The session's time is this.
    pub(super) fn set_clock(&mut self, clock: Mono) {
        self.clock = clock;
    }

    /// The end of what is known: the clock while it is live, the last event otherwise.
    #[must_use]
    pub(super) fn now(&self) -> Mono {
        let last = self.model.overview().last;
        if self.feed() == Feed::Live { last.max(self.clock) } else { last }
    }

    /// How it stands. The end of the capture is believed before the library, which looks less
    /// often.
    #[must_use]
    pub(super) fn feed(&self) -> Feed {
        let told = self.recording.as_ref().map_or(self.facts.feed, |recording| recording.feed);
        match (self.model.overview().capture, told) {
            (Capture::Ended { .. }, _) => Feed::Whole,
            (_, told) => told,
        }
    }

    /// What is wrong, oldest first.
    #[must_use]
    pub(super) fn findings(&self) -> &[Finding] {
        self.judge.findings()
    }
}

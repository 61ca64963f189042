//! What midwire itself did: the calls that it touched, and the messages that it sent.

use std::collections::HashSet;

use bytes::Bytes;

use super::call::{CallIdx, CallState, ClientView, MarkKind};
use super::fold::At;
use super::race::{Lateness, Reason};
use super::reading::Reading;
use super::row::{RowIdx, RowKind};
use super::{Model, Signal, Verdict};
use crate::event::{Dir, Event, Transport};
use crate::time::Mono;
use crate::wire::jsonrpc::Id;

/// What midwire changes without touching a call.
const HARMLESS: &str = "rewrite";

/// What was sent is a message of its own; with anything else it is another form of one that was
/// read.
const NEW_MESSAGES: [&str; 4] = ["cancel", "retry", "send", "answer"];

/// What goes on until it is ended, for calls that begin meanwhile as well.
const LASTING: [&str; 4] = ["throttle", "buffer", "stop", "stall"];

/// What ends it.
const ENDS: [&str; 4] = ["disarm", "continue", "restart", "kill"];

/// The state of what midwire did.
#[derive(Debug, Default)]
pub(super) struct Injections {
    /// Calls whose answer is held.
    held: HashSet<CallIdx>,
    /// Something goes on that every call may feel.
    is_lasting: bool,
}

impl Model {
    /// Takes in an `inject` event. Returns its row.
    pub(super) fn inject(
        &mut self,
        event: &Event,
        at: At,
        (what, target): (&str, &str),
        sent: Option<&Bytes>,
    ) -> RowIdx {
        let touched = if what == HARMLESS { Vec::new() } else { self.touched(event, at, target) };
        let detail = self.names.detail(&format!("{what} {target}"));
        let row = self.push_row(at, RowKind::Inject, None, detail, touched.first().copied());
        self.injections.is_lasting |= LASTING.contains(&what);
        self.injections.is_lasting &= !ENDS.contains(&what);
        for idx in &touched {
            if let Some(call) = self.call_mut(*idx) {
                call.is_injected = true;
            }
            if matches!(event.dir, Dir::Tap) || sent.is_none() {
                self.mark(*idx, MarkKind::Injected, at.now, row);
            }
        }
        match (what, sent) {
            (_, Some(sent)) if NEW_MESSAGES.contains(&what) => self.sent(at, sent),
            ("cancel", None) if event.transport == Transport::Http => {
                for idx in touched {
                    self.injected_leave(idx, at.now, row);
                }
            }
            ("hold" | "race", _) => {
                let is_answered = |idx: &CallIdx| self.state_of(*idx).is_some_and(CallState::is_answered);
                let held: Vec<CallIdx> = touched.into_iter().filter(is_answered).collect();
                self.injections.held.extend(held);
            }
            ("release", _) => {
                for idx in touched {
                    self.released(idx, at.now);
                }
            }
            _ => {}
        }
        row
    }

    /// A call that begins now feels something that midwire does.
    pub(super) fn is_felt_by_all(&self) -> bool {
        self.injections.is_lasting
    }

    /// The calls that it was done to: the one that is named, those of the exchange, or all that are
    /// open.
    fn touched(&self, event: &Event, at: At, target: &str) -> Vec<CallIdx> {
        if let Some(id) = target.strip_prefix("id ").and_then(Id::from_raw) {
            let on_stream = self.find_on_stream(at, |call| call.id == id);
            let of = |sender| self.find_call(at.scope, sender, &id);
            let newest = || of(Dir::C2s).max(of(Dir::S2c));
            if let Some(idx) = on_stream.or_else(newest) {
                return vec![idx];
            }
        }
        match (event.transport, event.stream) {
            (Transport::Http, Some(stream)) => self.http.calls_of(stream).to_vec(),
            (Transport::Stdio, _) => self.stdio.scope.map_or_else(Vec::new, |scope| self.open_calls(scope)),
            (Transport::Http, None) => {
                let is_open = |idx: &CallIdx| self.state_of(*idx).is_some_and(|state| !state.is_terminal());
                let all = (0..u32::try_from(self.scopes.len()).unwrap_or(u32::MAX)).map(super::ScopeIdx);
                all.flat_map(|scope| self.open_calls(scope)).filter(is_open).collect()
            }
        }
    }

    /// Messages that midwire has sent, in the place of one side.
    fn sent(&mut self, at: At, sent: &Bytes) {
        let text = sent.slice(..sent.trim_ascii_end().len());
        let source = super::Source { len: text.len() as u64, ..at.source };
        let at = At { is_ours: true, source, ..at };
        let begin = self.rows.len();
        match Reading::of(&text) {
            Reading::Message(part) => {
                self.message(at, part);
            }
            Reading::Batch(parts) => {
                self.batch(at, parts);
            }
            _ => {}
        }
        let calls: Vec<CallIdx> = self.rows.iter().skip(begin).filter_map(|row| row.call).collect();
        for idx in calls {
            if let Some(call) = self.call_mut(idx) {
                call.is_injected = true;
            }
        }
    }

    /// midwire left an exchange in the place of its client.
    fn injected_leave(&mut self, idx: CallIdx, at: Mono, row: RowIdx) {
        let Some(call) = self.call_mut(idx) else { return };
        if call.state.is_answered() {
            self.cancel_lost(idx, Signal::Disconnect, at, row);
        } else if !call.state.is_terminal() {
            call.client = ClientView::Abandoned;
            self.cancel_leads(idx, Signal::Disconnect, at, row);
            self.finish(idx, CallState::CancelledByClient, at);
        }
    }

    /// A held answer passes now: against a cancel that passed meanwhile, this is its moment.
    fn released(&mut self, idx: CallIdx, at: Mono) {
        if !self.injections.held.remove(&idx) {
            return;
        }
        let Some(call) = self.call(idx) else { return };
        let Some(race) = call.race.as_deref().filter(|race| race.verdict == Verdict::CompleteWon) else {
            return;
        };
        let (Some(cancelled_at), Some(answer)) = (race.cancelled_at, race.answer) else { return };
        let (margin_ns, window_ns) = (at.ns_since(cancelled_at), self.window_ns(call.scope));
        let is_late = margin_ns > window_ns;
        self.answer_races(idx, Lateness { margin_ns, window_ns, is_late, reason: Reason::Window }, answer);
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use crate::event::{Dir, What};
    use crate::model::script::Script;
    use crate::model::{CallIdx, Model, Verdict};

    fn inject(what: &str, target: &str, sent: Option<&str>) -> What {
        let text = |text: &str| Bytes::copy_from_slice(text.as_bytes());
        What::Inject {
            what: what.to_owned(),
            target: target.to_owned(),
            by: "ctl".to_owned(),
            cause: None,
            sent: sent.map(text),
        }
    }

    const CALL: &str = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"slow","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
    const ANSWER: &str = r#"{"jsonrpc":"2.0","id":7,"result":{"resultType":"complete","content":[]}}"#;
    const CANCEL: &str =
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":7}}\n";

    fn fold(steps: &[(u64, Dir, What)]) -> Model {
        let mut script = Script::default();
        for (ms, dir, what) in steps {
            script.push(*ms, *dir, None, what.clone());
        }
        script.fold()
    }

    fn line(text: &str) -> What {
        What::Bytes { bytes: Bytes::from(format!("{text}\n")), read: None }
    }

    /// What the two orders of a forged race are called, and by how much.
    #[test]
    fn a_held_answer_races_when_it_is_released() {
        let cancel = (30, Dir::C2s, inject("cancel", "id 7", Some(CANCEL)));
        let hold = (20, Dir::Tap, inject("hold", "id 7", None));
        let cases = [
            (
                vec![hold.clone(), cancel.clone(), (35, Dir::Tap, inject("release", "id 7", None))],
                Verdict::Crossed,
                5,
            ),
            (
                vec![hold.clone(), cancel.clone(), (900, Dir::Tap, inject("release", "id 7", None))],
                Verdict::LateResponse,
                870,
            ),
            (
                vec![hold, (25, Dir::Tap, inject("release", "id 7", None)), cancel.clone()],
                Verdict::CompleteWon,
                -10,
            ),
            (vec![cancel], Verdict::CompleteWon, -10),
        ];
        for (steps, verdict, margin_ms) in cases {
            let mut all = vec![(0, Dir::C2s, line(CALL)), (20, Dir::S2c, line(ANSWER))];
            all.extend(steps);
            let model = fold(&all);
            let race = model.race(CallIdx(0)).unwrap();
            assert_eq!((race.verdict, race.margin_ns), (verdict, Some(margin_ms * 1_000_000)));
            assert!(race.is_injected);
        }
    }

    #[test]
    fn a_retry_by_midwire_is_a_call_of_its_own() {
        let retry = CALL.replace("\"id\":7", "\"id\":\"midwire-7-1\"") + "\n";
        let answer = ANSWER.replace("\"id\":7", "\"id\":\"midwire-7-1\"");
        let model = fold(&[
            (0, Dir::C2s, line(CALL)),
            (10, Dir::C2s, inject("retry", "id 7", Some(&retry))),
            (20, Dir::S2c, line(&answer)),
        ]);
        assert_eq!(model.calls().len(), 2);
        let ours = &model.calls()[1];
        assert!(ours.is_injected && ours.state.is_answered());
        assert!(model.rows().iter().filter(|row| row.is_ours).count() == 1);
    }

    /// What is changed on its way is not sent twice.
    #[test]
    fn an_edit_is_no_second_message() {
        let model = fold(&[
            (0, Dir::C2s, line(CALL)),
            (1, Dir::C2s, inject("edit", "id 7", Some(CALL))),
            (2, Dir::C2s, inject("duplicate", "id 7", Some(CALL))),
        ]);
        assert_eq!(model.calls().len(), 1);
        assert!(model.calls()[0].is_injected);
    }

    #[test]
    fn what_lasts_is_felt_by_calls_that_come_later() {
        let next = CALL.replace("\"id\":7", "\"id\":8");
        let last = CALL.replace("\"id\":7", "\"id\":9");
        let model = fold(&[
            (0, Dir::Tap, inject("throttle", "direction s2c", None)),
            (1, Dir::C2s, line(&next)),
            (2, Dir::Tap, inject("disarm", "rule 1", None)),
            (3, Dir::C2s, line(&last)),
        ]);
        assert_eq!(model.calls().iter().map(|call| call.is_injected).collect::<Vec<_>>(), [true, false]);
    }
}

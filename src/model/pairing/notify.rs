//! Notifications: progress, cancels, and those of subscriptions.

use super::{opposite, other_type};
use crate::event::{Dir, Transport};
use crate::model::call::{CallIdx, CallState, ClientView, MarkKind, ServerView};
use crate::model::content::Content;
use crate::model::fold::At;
use crate::model::message::Said;
use crate::model::row::{RowIdx, RowKind};
use crate::model::seen::Sight;
use crate::model::{Model, Name, Signal};
use crate::spec::era::Era;
use crate::spec::methods;
use crate::wire::jsonrpc::Id;

impl Model {
    pub(super) fn notification(&mut self, at: At, said: &Said<'_>, content: Option<&Content>) -> RowIdx {
        let name = said.method.as_deref().unwrap_or_default();
        let method = self.names.intern(name);
        match name {
            "notifications/progress" => self.progress(at, said, method),
            "notifications/cancelled" => self.cancel(at, said, method),
            _ => self.other_notification(at, said, method, content),
        }
    }

    fn progress(&mut self, at: At, said: &Said<'_>, method: Name) -> RowIdx {
        let sender = opposite(at.dir);
        let by_token = |token: &Id| {
            self.find_on_stream(at, |call| call.sender == sender && call.token.as_ref() == Some(token))
                .or_else(|| self.find_token(at.scope, sender, token))
        };
        let found = said.token.as_ref().and_then(by_token);
        let meant = found.or_else(|| by_token(&other_type(said.token.as_ref()?)?));
        let era = meant.and_then(|idx| self.call(idx)).map_or_else(|| self.channel_era(at), |call| call.era);
        let detail = said.progress.and_then(|now| self.names.detail(&progress_text(now, said.total)));
        let row = self.push_row(at, RowKind::Progress, Some(method), detail, meant);
        self.set_row_era(row, era);
        let Some(idx) = found else {
            let sight = match (meant, said.token.clone()) {
                (Some(_), Some(token)) => Sight::ProgressOtherType { token },
                (_, token) => Sight::ProgressUnknown { token },
            };
            self.see(at, Some(row), meant, sight);
            return row;
        };
        let Some(call) = self.call(idx) else { return row };
        if at.stream.is_some() && at.stream != call.stream && at.dir == Dir::S2c {
            let stream_of = self.find_on_stream(at, |_| true);
            self.see(at, Some(row), found, Sight::ProgressElsewhere { stream_of });
            if era.is_some_and(Era::is_modern) {
                self.mark(idx, MarkKind::Rejected, at.now, row);
                return row;
            }
        }
        match self.state_of(idx) {
            Some(state) if !state.is_terminal() => self.progress_open(at, said, idx, row),
            Some(state)
                if state.is_unanswered() && self.call(idx).is_some_and(|call| call.race.is_some()) =>
            {
                let lateness = self.lateness(at, idx);
                self.progress_late(at, idx, row);
                self.see(at, Some(row), found, Sight::ProgressAfterCancel(lateness));
            }
            Some(CallState::AnsweredOk | CallState::AnsweredError | CallState::InputRequired) => {
                let is_same_channel = self.is_channel_of_answer(at, idx);
                self.progress_late(at, idx, row);
                if is_same_channel && !at.is_replay {
                    self.see(at, Some(row), found, Sight::ProgressAfterAnswer);
                }
            }
            _ => self.progress_late(at, idx, row),
        }
        row
    }

    fn progress_late(&mut self, at: At, idx: CallIdx, row: RowIdx) {
        if let Some(call) = self.call_mut(idx) {
            call.after.late_progress += 1;
        }
        self.mark(idx, MarkKind::Late, at.now, row);
    }

    fn progress_open(&mut self, at: At, said: &Said<'_>, idx: CallIdx, row: RowIdx) {
        let Some(call) = self.call_mut(idx) else { return };
        let progress = &mut call.progress;
        let last = progress.last;
        let Some(now) = said.progress.filter(|now| last.is_none_or(|last| *now > last)) else {
            progress.rejected += u32::from(said.progress.is_some());
            self.mark(idx, MarkKind::Rejected, at.now, row);
            if let (Some(last), Some(now)) = (last, said.progress.filter(|_| !at.is_replay)) {
                self.see(at, Some(row), Some(idx), Sight::ProgressStuck { last, now });
            }
            return;
        };
        progress.count += 1;
        progress.last = Some(now);
        progress.total = said.total.or(progress.total);
        progress.first_at.get_or_insert(at.now);
        progress.last_at = Some(at.now);
        call.state = CallState::Progressing;
        call.server = ServerView::Working;
        self.mark(idx, MarkKind::Progress, at.now, row);
        self.see(at, Some(row), Some(idx), Sight::Progress);
    }

    fn cancel(&mut self, at: At, said: &Said<'_>, method: Name) -> RowIdx {
        let named = said.request_id.as_ref();
        let found = named.and_then(|id| self.find_call(at.scope, at.dir, id));
        // A modern server's cancel names the client's listen; several clients may use one id.
        let by_server = match (found, at.dir, named) {
            (None, Dir::S2c, Some(id)) => self
                .find_on_stream(at, |call| call.sender == Dir::C2s && call.id == *id)
                .or_else(|| self.find_call(at.scope, Dir::C2s, id)),
            _ => None,
        };
        let meant = found.or(by_server);
        let era = at.era.or_else(|| said.era()).or_else(|| match meant.and_then(|idx| self.call(idx)) {
            Some(call) if call.era.is_some() || at.transport == Transport::Http => call.era,
            _ => self.channel_era(at),
        });
        let detail = said.reason.as_deref().and_then(|text| self.names.detail(text));
        let row = self.push_row(at, RowKind::Cancelled, Some(method), detail, meant);
        self.set_row_era(row, era);
        if by_server.is_some() {
            self.cancel_by_server(at, by_server, row);
            return row;
        }
        let Some(idx) = found else {
            self.stray_cancel(at, named, row);
            return row;
        };
        let is_open = self.state_of(idx).is_some_and(|state| !state.is_terminal());
        self.mark(idx, MarkKind::Cancel, at.now, row);
        // In the modern era the signal on HTTP is the closed stream; a posted cancel says what the
        // client wants and binds nobody.
        let is_signal = at.transport == Transport::Stdio || !era.is_some_and(Era::is_modern);
        if !is_open {
            if let Some(call) = self.call_mut(idx) {
                call.after.late_cancels += 1;
                if is_signal && call.state.is_answered() {
                    self.cancel_lost(idx, Signal::Notification, at.first, row);
                }
            }
            self.see(at, Some(row), found, Sight::CancelAfterEnd);
            return row;
        }
        if let Some(call) = self.call_mut(idx) {
            call.client = ClientView::Abandoned;
            call.cancel_reason = detail;
        }
        if is_signal {
            self.cancel_leads(idx, Signal::Notification, at.out.unwrap_or(at.now), row);
            self.finish(idx, CallState::CancelledByClient, at.now);
        }
        self.see(at, Some(row), found, Sight::Cancel);
        row
    }

    /// A server takes back its listen, or (a fault) another of the client's requests.
    fn cancel_by_server(&mut self, at: At, found: Option<CallIdx>, row: RowIdx) {
        let Some(idx) = found else { return };
        self.mark(idx, MarkKind::Cancel, at.now, row);
        if let Some(call) = self.call_mut(idx)
            && call.method == Name::LISTEN
            && !call.state.is_terminal()
        {
            call.client = ClientView::Answered;
            call.server = ServerView::Cancelled;
            self.finish(idx, CallState::AnsweredOk, at.now);
        }
        self.see(at, Some(row), found, Sight::CancelByServer);
    }

    fn stray_cancel(&mut self, at: At, named: Option<&Id>, row: RowIdx) {
        let Some(id) = named else {
            self.see(at, Some(row), None, Sight::CancelUnknown { id: None, is_of_other_side: false });
            return;
        };
        let meant = other_type(id)
            .and_then(|other| self.find_call(at.scope, at.dir, &other))
            .filter(|idx| self.state_of(*idx).is_some_and(|state| !state.is_terminal()));
        if meant.is_some() {
            self.see(at, Some(row), meant, Sight::CancelOtherType { id: id.clone() });
            return;
        }
        let is_of_other_side = self.find_call(at.scope, opposite(at.dir), id).is_some();
        self.see(at, Some(row), None, Sight::CancelUnknown { id: Some(id.clone()), is_of_other_side });
    }

    fn other_notification(
        &mut self,
        at: At,
        said: &Said<'_>,
        method: Name,
        content: Option<&Content>,
    ) -> RowIdx {
        let listen = self.listen_of(at, said.subscription.as_ref());
        let by_tag = || self.listen_of_id(at.scope, said.subscription.as_ref()?);
        let on_stream = || match at.dir {
            Dir::S2c => self.find_on_stream(at, |_| true),
            _ => None,
        };
        let found = listen.or_else(by_tag).or_else(on_stream);
        let named = at.era.or_else(|| said.era());
        let era = match (named, found.and_then(|idx| self.call(idx)?.era)) {
            (Some(era), _) | (None, Some(era)) => Some(era),
            (None, None) if said.subscription.is_some() => Some(Era::V2026_07_28),
            (None, None) => self.channel_era(at),
        };
        let detail = said.target.as_deref().and_then(|text| self.names.detail(text));
        let row = self.push_row(at, RowKind::Notification, Some(method), detail, found);
        self.set_row_era(row, era);
        if let Some(idx) = found {
            let is_acknowledgement = said.method.as_deref() == Some(methods::ACKNOWLEDGED);
            let kind = if is_acknowledgement { MarkKind::Acknowledged } else { MarkKind::Notification };
            self.mark(idx, kind, at.now, row);
        }
        self.see(at, Some(row), found, Sight::Notification);
        self.subscription_message(at, row, said, listen, content);
        row
    }
}

fn progress_text(now: f64, total: Option<f64>) -> String {
    match total {
        Some(total) => format!("{now} of {total}"),
        None => now.to_string(),
    }
}

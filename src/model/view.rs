//! Rows and calls as a filter sees them.

use std::borrow::Cow;

use super::call::CallState;
use super::{Call, Model, Name, Row, RowKind, Verdict};
use crate::event::Dir;
use crate::filter::{Field, Fields, Is, Value, contains_ignoring_case};

/// A row, in its model.
#[derive(Debug, Clone, Copy)]
pub struct RowView<'a> {
    /// The model that it belongs to.
    pub model: &'a Model,
    /// The row.
    pub row: &'a Row,
}

/// A call, in its model.
#[derive(Debug, Clone, Copy)]
pub struct CallView<'a> {
    /// The model that it belongs to.
    pub model: &'a Model,
    /// The call.
    pub call: &'a Call,
}

impl RowView<'_> {
    fn call(&self) -> Option<CallView<'_>> {
        let call = self.model.call(self.row.call?)?;
        Some(CallView { model: self.model, call })
    }
}

impl Fields for RowView<'_> {
    fn field(&self, field: Field) -> Option<Value<'_>> {
        let row = self.row;
        match field {
            Field::Number => number(row.n),
            Field::Method => name(self.model, row.method),
            Field::Dir => word(dir(row.dir)),
            Field::Kind => word(kind(row.kind)),
            Field::Era => row.era.and_then(|era| word(era.as_str())),
            Field::Transport => word(row.transport.as_str()),
            Field::Stream => row.stream.and_then(number),
            Field::Size => number(row.source.len),
            Field::Id | Field::Target | Field::Tool | Field::State | Field::Conn | Field::Status => {
                // The call's own values outlive this view, so they are copied.
                self.call()?.field(field).map(owned)
            }
            Field::Code | Field::Duration => self.call()?.field(field).map(owned),
        }
    }

    fn is(&self, word: Is) -> bool {
        match word {
            Is::Invalid => self.row.kind == RowKind::Invalid,
            Is::Injected if self.row.is_ours || self.row.kind == RowKind::Inject => true,
            other => self.call().is_some_and(|call| call.is(other)),
        }
    }

    fn has_text(&self, lower: &str) -> bool {
        let own = [self.row.method, self.row.detail];
        own.into_iter().flatten().any(|name| contains_ignoring_case(self.model.text(name), lower))
            || self.call().is_some_and(|call| call.has_text(lower))
    }
}

impl Fields for CallView<'_> {
    fn field(&self, field: Field) -> Option<Value<'_>> {
        let call = self.call;
        match field {
            Field::Number => self.model.row(call.row).and_then(|row| number(row.n)),
            Field::Method => name(self.model, Some(call.method)),
            Field::Id => Some(Value::Text(Cow::Owned(id_text(call)))),
            Field::Target => name(self.model, call.target),
            Field::Tool if call.method == Name::TOOLS_CALL => name(self.model, call.target),
            Field::State => word(call.state.as_str()),
            Field::Dir => word(dir(call.sender)),
            Field::Era => call.era.and_then(|era| word(era.as_str())),
            Field::Transport => word(call.transport.as_str()),
            Field::Stream => call.stream.and_then(number),
            Field::Conn => call.conn.and_then(number),
            Field::Status => call.status.map(|status| Value::Number(status.into())),
            Field::Code => call.error_code.map(|code| Value::Number(code.into())),
            Field::Duration => {
                let until = call.ended.unwrap_or(self.model.overview().last);
                number(until.ns_since(call.started))
            }
            Field::Size => self.model.row(call.row).and_then(|row| number(row.source.len)),
            Field::Kind | Field::Tool => None,
        }
    }

    fn is(&self, word: Is) -> bool {
        let call = self.call;
        match word {
            Is::Open => !call.state.is_terminal(),
            Is::Late => {
                let after = call.after;
                call.verdict() == Some(Verdict::LateResponse)
                    || after.late_progress > 0
                    || after.duplicate_answers > 0
            }
            Is::Error => call.state == CallState::AnsweredError || call.is_tool_error,
            Is::Cancelled => {
                matches!(call.state, CallState::CancelledByClient | CallState::AbandonedByDisconnect)
            }
            Is::Lost => call.state == CallState::Lost,
            Is::Retry => call.retry_of.is_some(),
            Is::Injected => call.is_injected,
            Is::Invalid => false,
        }
    }

    fn has_text(&self, lower: &str) -> bool {
        let names = [Some(self.call.method), self.call.target, self.call.cancel_reason];
        names.into_iter().flatten().any(|name| contains_ignoring_case(self.model.text(name), lower))
            || contains_ignoring_case(&id_text(self.call), lower)
    }
}

/// The id as a person types it: a string without its quotes.
fn id_text(call: &Call) -> String {
    match &call.id {
        crate::wire::jsonrpc::Id::Int(text) | crate::wire::jsonrpc::Id::Str(text) => text.to_string(),
    }
}

fn owned(value: Value<'_>) -> Value<'static> {
    match value {
        Value::Text(text) => Value::Text(Cow::Owned(text.into_owned())),
        Value::Number(number) => Value::Number(number),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "every arm of a field look-up gives an option")]
fn number(number: u64) -> Option<Value<'static>> {
    Some(Value::Number(number.into()))
}

#[expect(clippy::unnecessary_wraps, reason = "every arm of a field look-up gives an option")]
fn word(text: &'static str) -> Option<Value<'static>> {
    Some(Value::Text(Cow::Borrowed(text)))
}

fn name(model: &Model, name: Option<Name>) -> Option<Value<'_>> {
    name.map(|name| Value::Text(Cow::Borrowed(model.text(name))))
}

fn dir(dir: Dir) -> &'static str {
    match dir {
        Dir::C2s => "c2s",
        Dir::S2c => "s2c",
        Dir::Stderr => "stderr",
        Dir::Tap => "tap",
    }
}

fn kind(kind: RowKind) -> &'static str {
    match kind {
        RowKind::Request => "request",
        RowKind::Notification => "notification",
        RowKind::Progress => "progress",
        RowKind::Cancelled => "cancel",
        RowKind::Result => "result",
        RowKind::Error => "error",
        RowKind::Invalid => "invalid",
        RowKind::SseComment => "comment",
        RowKind::SseOther => "sse",
        RowKind::HttpRequest => "http",
        RowKind::HttpHead => "head",
        RowKind::HttpBody => "body",
        RowKind::Stderr => "stderr",
        RowKind::ClientClosed => "client_closed",
        RowKind::ServerClosed => "server_closed",
        RowKind::Process => "process",
        RowKind::Queue => "queue",
        RowKind::Inject => "inject",
        RowKind::Telemetry => "telemetry",
        RowKind::Gap => "gap",
        RowKind::Mark => "mark",
        RowKind::Note => "note",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Dir::{C2s, S2c};
    use crate::filter::Filter;
    use crate::filter::field::{KINDS, STATES};
    use crate::model::script::Script;

    fn recording() -> Model {
        let mut script = Script::default();
        script.line(0, C2s, r#"{"jsonrpc":"2.0","id":"a1","method":"tools/call","params":{"name":"Echo"}}"#);
        script.line(1, C2s, r#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#);
        script.line(
            900,
            S2c,
            r#"{"jsonrpc":"2.0","id":"a1","error":{"code":-32602,"message":"no such tool"}}"#,
        );
        script.line(901, S2c, "noise");
        script.fold()
    }

    #[test]
    fn filters_pick_calls_and_rows() {
        let model = recording();
        let cases: &[(&str, &[usize], &[usize])] = &[
            ("", &[0, 1], &[0, 1, 2, 3]),
            ("tool:echo", &[0], &[0, 2]),
            ("id:a1", &[0], &[0, 2]),
            ("is:error", &[0], &[0, 2]),
            ("is:open", &[1], &[1]),
            ("dur>800ms", &[0, 1], &[0, 1, 2]),
            ("code:-32602 kind:error", &[], &[2]),
            ("no such", &[], &[2]),
            ("dir:s2c -kind:error", &[], &[3]),
            ("is:invalid", &[], &[3]),
            ("n<3", &[0, 1], &[0, 1]),
        ];
        for (text, calls, rows) in cases {
            let filter = Filter::parse(text).unwrap();
            let picks_call =
                |nth: &usize| filter.matches(&CallView { model: &model, call: &model.calls()[*nth] });
            let picks_row =
                |nth: &usize| filter.matches(&RowView { model: &model, row: &model.rows()[*nth] });
            assert_eq!((0..model.calls().len()).filter(picks_call).collect::<Vec<_>>(), *calls, "{text}");
            assert_eq!((0..model.rows().len()).filter(picks_row).collect::<Vec<_>>(), *rows, "{text}");
        }
    }

    #[test]
    fn the_words_of_states_and_kinds_are_those_that_a_filter_knows() {
        use CallState as S;
        let states = [
            S::Delivered,
            S::Progressing,
            S::AnsweredOk,
            S::AnsweredError,
            S::InputRequired,
            S::CancelledByClient,
            S::AbandonedByDisconnect,
            S::Lost,
            S::Unresolved,
        ];
        assert_eq!(states.map(S::as_str), STATES);
        for row in recording().rows() {
            assert!(KINDS.contains(&kind(row.kind)));
        }
    }
}

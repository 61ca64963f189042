//! Giving a call up, as its sender would.

use super::item::{Item, Why, back, place};
use super::state::State;
use crate::command::book::OpenCall;
use crate::command::message::Message;
use crate::command::{Cancel, ClientGets, text};
use crate::event::{Dir, Transport};
use crate::machine::cancel::{Side, Signal, Target, signal};
use crate::spec::era::Era;
use crate::spec::methods;
use bytes::Bytes;

/// Calls given up whose late answers go to nobody. ours: far more than are open at a time.
const SWALLOWED_LIMIT: usize = 1024;

/// Sends the signal of the call's era; the waiting side gets what it is to get. `Err`: why that
/// cannot be, and nothing has been done.
pub(super) fn give_up(state: &mut State, call: &OpenCall, cancel: &Cancel, why: &Why) -> Result<(), String> {
    let side = if call.sender == Dir::C2s { Side::Client } else { Side::Server };
    let target = match call.method.as_str() {
        methods::INITIALIZE => Target::Initialize,
        methods::LISTEN => Target::Listen,
        _ => Target::Request,
    };
    // Where no era was named, all agree about the signal on stdio.
    let era = call.era.or(state.engine.book().era()).unwrap_or(Era::V2025_06_18);
    if signal(side, Transport::Stdio, era, target) != Some(Signal::Notification) {
        let side = if side == Side::Client { "a client" } else { "a server" };
        return Err(format!("{side} must not cancel `{}` in {}", call.method, era.as_str()));
    }
    let about = format!("id {}", call.id);
    let text = text::cancelled(&call.id, cancel.reason.as_deref());
    let item = Item::own(text.as_bytes(), "cancel", &about, why, "");
    if let Some(message) = Message::read(&Bytes::from(text)) {
        state.engine.book_mut().note(place(call.sender), &message);
    }
    state.pass(call.sender, item);
    if cancel.client_gets == ClientGets::Error {
        let error = text::error(&call.id, text::OWN_CODE, "cancelled by midwire");
        let back = back(call.sender);
        state.pass(back, Item::own(error.as_bytes(), "answer", &about, why, "in place of the answer"));
        if let Some(message) = Message::read(&Bytes::from(error)) {
            state.engine.book_mut().end(place(back), &message);
        }
        if state.swallowed.len() == SWALLOWED_LIMIT {
            state.swallowed.pop_front();
        }
        state.swallowed.push_back((call.clone(), why.clone()));
    }
    Ok(())
}

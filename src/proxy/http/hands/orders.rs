//! Carrying out orders.

use bytes::Bytes;

use super::line::{CutOrder, Ending, Errand, Fate, Line, Way};
use super::outbox::{Entry, Ready};
use super::{Hands, Spot, State, Then, Why, place};
use crate::command::book::OpenCall;
use crate::command::message::{Message, Passing};
use crate::command::{
    Applied, By, Cancel, ClientGets, Command, Cut, Effect, OpenRequest, RaceOrder, Refused, Retry, Rule,
    Side, Status, Which, retry, text,
};
use crate::event::{Dir, Transport};
use crate::filter::Filter;
use crate::machine::cancel::{self, Signal, Target};
use crate::machine::policy::Subject;
use crate::spec::era::Era;
use crate::spec::methods;
use crate::time::Mono;

impl Hands {
    pub(super) fn carry_out(&self, command: &Command, by: By) -> Result<Applied, Refused> {
        let mut state = self.state();
        let state = &mut *state;
        self.activate(state);
        let why = Why::order(by);
        match command {
            Command::Arm(rule) => arm(state, rule, by),
            Command::Disarm(which) => self.disarm(state, *which, &why),
            Command::Cancel { on, cancel } => self.cancel_all(state, on, cancel, &why),
            Command::Disconnect { on, cut } => self.disconnect(state, on, *cut, &why),
            Command::Process(_) => Err(no_process()),
            Command::Retry { on, retry } => self.retry(state, on, retry, &why),
            Command::Send { to, text, stream } => self.send(state, *to, text, *stream, &why),
            Command::Release { which, in_reverse, after } => {
                self.release_some(state, (*which, *in_reverse), after.as_ref(), &why)
            }
            Command::Edit { held, text } => {
                let text = text::own_message(text).map_err(|error| Refused::Invalid(error.0))?;
                self.settle(state, Which::One(*held), "edit", &Fate::Pass(Some(text)), &why)
            }
            Command::Drop(which) => self.settle(state, *which, "drop", &Fate::Drop, &why),
            Command::AnswerHeld { held, answer } => {
                let is_request = state.holds.find(*held).is_some_and(|held| held.item.way == Way::Up);
                if state.holds.find(*held).is_some() && !is_request {
                    let what = "what is held is no request; edit it instead";
                    return Err(Refused::NotHere(what.to_owned()));
                }
                let fate = Fate::Answer(answer.clone(), by.as_str());
                self.settle(state, Which::One(*held), "", &fate, &why)
            }
            Command::Extend { held, by } => {
                let found = state.holds.find(*held).ok_or_else(|| not_held(Which::One(*held)))?;
                found.due = found.due.plus(*by);
                found.item.line.tell(found.item.way, Errand::Fate(*held, Fate::Until(found.due)));
                Ok(to([format!("held {held}")]))
            }
            Command::Flow(_) => Err(Refused::NotHere("the tap on HTTP keeps no queue of its own".to_owned())),
            Command::Status => Ok(Applied { status: Some(self.status(state)), ..Applied::default() }),
        }
    }

    fn status(&self, state: &State) -> Status {
        let open = state.engine.book().open().iter().map(|call| OpenRequest {
            id: call.id.to_string(),
            says: says(call),
            stream: call.stream,
        });
        Status {
            rules: state.engine.armed().cloned().collect(),
            held: state.holds.status(self.now()),
            open: open.collect(),
        }
    }

    fn disarm(&self, state: &mut State, which: Which, why: &Why) -> Result<Applied, Refused> {
        let gone = state.engine.disarm(which);
        // A rule that has done all that it was armed for is gone already; what it holds is not.
        let held = state.holds.take_if(|held| match which {
            Which::One(number) => held.rule == number,
            Which::All => true,
        });
        if gone.is_empty() && held.is_empty() && which != Which::All {
            return Err(Refused::NotFound("no rule of this number is armed".to_owned()));
        }
        for rule in &gone {
            let spot = Spot { stream: None, conn: None, target: format!("rule {rule}") };
            self.tell(Dir::Tap, "disarm", &spot, why, None);
        }
        self.release(held, &|_| why.with("its rule was disarmed"));
        state.look_all();
        Ok(to(gone.iter().map(|rule| format!("rule {rule}"))))
    }

    fn cancel_all(
        &self,
        state: &mut State,
        on: &Filter,
        cancel: &Cancel,
        why: &Why,
    ) -> Result<Applied, Refused> {
        let calls = open_calls(state, on);
        let mut done = Vec::new();
        let mut refused = Refused::NotFound("no open call is picked".to_owned());
        for call in calls {
            match self.cancel(state, &call, cancel, why) {
                Ok(what) => done.push(what),
                Err(error) => refused = error,
            }
        }
        if done.is_empty() { Err(refused) } else { Ok(to(done)) }
    }

    /// Gives up one call, as its client would in its era.
    pub(super) fn cancel(
        &self,
        state: &mut State,
        call: &OpenCall,
        cancel: &Cancel,
        why: &Why,
    ) -> Result<String, Refused> {
        if call.sender != Dir::C2s {
            let what = "only requests of the client are given up on HTTP";
            return Err(Refused::NotHere(what.to_owned()));
        }
        let era = era_of(state, call);
        let target = match call.method.as_str() {
            methods::INITIALIZE => Target::Initialize,
            methods::LISTEN => Target::Listen,
            _ => Target::Request,
        };
        let signal = cancel::signal(cancel::Side::Client, Transport::Http, era, target).ok_or_else(|| {
            Refused::NotHere(format!("`{}` must not be cancelled in {}", call.method, era.as_str()))
        })?;
        let line = state.line_of(call);
        let stream = call.stream.unwrap_or_default();
        let spot = Spot::of(stream, call.conn, Some(&call.id));
        let notice = Bytes::from(text::cancelled(&call.id, cancel.reason.as_deref()));
        let error = Bytes::from(text::error(&call.id, text::OWN_CODE, "cancelled by midwire"));
        if signal == Signal::CloseStream {
            let line = line.ok_or_else(|| Refused::NotFound("its exchange is over".to_owned()))?;
            self.tell(Dir::Tap, "cancel", &spot, &why.with("the exchange at the server is closed"), None);
            self.end_for_client(&line, cancel.client_gets, &spot, (stream, error), why);
        } else {
            self.tell(Dir::C2s, "cancel", &spot, why, Some(notice.clone()));
            let (hands, gets, why) = (self.tap_hands(), cancel.client_gets, why.clone());
            let posted = self.post(state, &notice, call.stream, None)?;
            posted.after(move |status| {
                if let Some(hands) = &hands {
                    if !status.is_some_and(|status| (200..300).contains(&status)) {
                        let answered = status.map_or("nothing".to_owned(), |status| status.to_string());
                        let why = why.with(&format!("the server answered {answered} to the cancel"));
                        hands.tell(Dir::Tap, "cancel", &spot, &why, None);
                    }
                    if let Some(line) = line.filter(|line| line.exchanges.has(stream)) {
                        hands.end_for_client(&line, gets, &spot, (stream, error), &why);
                    }
                }
            });
        }
        if let Some(message) = Message::read(&notice) {
            let place = place(Dir::C2s, stream, call.conn.unwrap_or_default(), None, None);
            state.engine.book_mut().note(place, &message);
        }
        Ok(format!("id {}", call.id))
    }

    /// The entries that put a final answer and a cancel of its call in an order.
    pub(in crate::proxy::http) fn race(
        &self,
        (line, now): (&Line, Mono),
        call: &OpenCall,
        order: RaceOrder,
        (spot, why): (&Spot, &Why),
        entry: Entry,
    ) -> Vec<Entry> {
        let is_modern = era_of(&self.state(), call).is_modern();
        let cancel = |why: Why| Then::Race(Box::new(call.clone()), spot.clone(), why);
        match order {
            RaceOrder::CancelFirst { margin } => {
                let why = why.with(&format!("the answer waits for the cancel and {} ms", margin.0));
                self.tell(Dir::Tap, "race", spot, &why, None);
                self.then(line, cancel(why.clone()));
                let first = vec![Then::Tell("release", spot.clone(), why)];
                vec![Entry { ready: Ready::At(now.plus(margin)), first, ..entry }]
            }
            RaceOrder::AnswerFirst { margin } => {
                let why = why.with(&format!("the cancel waits for the answer and {} ms", margin.0));
                self.tell(Dir::Tap, "race", spot, &why, None);
                let at = Ready::At(now.plus(margin));
                if is_modern {
                    // A client that has got its answer cancels nothing by leaving, so the answer
                    // has passed the server's side and not the client's when the cancel passes.
                    vec![Entry { ready: at, first: vec![cancel(why)], ..entry }]
                } else {
                    // The end of the answer is told behind the cancel, which belongs to it.
                    let mut entry = entry;
                    let then = entry.then.extract_if(.., |then| matches!(then, Then::End(_))).collect();
                    let empty = Entry::raw(entry.stream, Bytes::new());
                    let first = vec![cancel(why)];
                    vec![entry, Entry { ready: at, first, then, is_barrier: false, ..empty }]
                }
            }
        }
    }

    /// A call is given up for a race. What the client gets does not change.
    pub(super) fn race_cancel(&self, line: &Line, call: &OpenCall, spot: &Spot, why: &Why) {
        let state = self.state();
        if era_of(&state, call).is_modern() {
            self.tell(Dir::Tap, "cancel", spot, &why.with("the exchange at the server is closed"), None);
            line.tell(Way::Up, Errand::Close);
            return;
        }
        let notice = Bytes::from(text::cancelled(&call.id, None));
        self.tell(Dir::C2s, "cancel", spot, why, Some(notice.clone()));
        if let Ok(post) = self.post(&state, &notice, call.stream, None) {
            post.after(|_| {});
        }
    }

    /// The exchange of a call that was given up ends on both sides.
    pub(super) fn end_for_client(
        &self,
        line: &Line,
        gets: ClientGets,
        spot: &Spot,
        (stream, error): (u64, Bytes),
        why: &Why,
    ) {
        let (client, last_words) = match gets {
            ClientGets::Nothing => (Ending::Close, None),
            ClientGets::Reset => (Ending::Reset, None),
            ClientGets::Error => {
                self.tell(Dir::S2c, "answer", spot, &why.with("the call was given up"), Some(error.clone()));
                (Ending::Close, Some((stream, error)))
            }
        };
        line.cut(CutOrder { client, server: Ending::Close, last_words, is_cancel: true });
    }

    fn disconnect(&self, state: &mut State, on: &Filter, cut: Cut, why: &Why) -> Result<Applied, Refused> {
        let mut done = Vec::new();
        if on.is_empty() {
            for line in state.lines.values() {
                let target = format!("connection {}", line.conn);
                let spot = Spot { stream: None, conn: Some(line.conn), target: target.clone() };
                self.tell(Dir::Tap, "disconnect", &spot, &why.with(cut_words(cut)), None);
                line.cut(cut_order(cut));
                done.push(target);
            }
        }
        let calls = if on.is_empty() { Vec::new() } else { open_calls(state, on) };
        for call in calls {
            let line = state.line_of(&call);
            let Some((line, stream)) = line.zip(call.stream) else { continue };
            let spot = Spot::of(stream, call.conn, Some(&call.id));
            self.tell(Dir::Tap, "disconnect", &spot, &why.with(cut_words(cut)), None);
            line.cut(cut_order(cut));
            done.push(format!("id {}", call.id));
        }
        if done.is_empty() {
            return Err(Refused::NotFound("no open call or connection is picked".to_owned()));
        }
        Ok(to(done))
    }

    fn retry(&self, state: &mut State, on: &Filter, retry: &Retry, why: &Why) -> Result<Applied, Refused> {
        let book = state.engine.book();
        let is_meant = |call: &&OpenCall| call.sender == Dir::C2s && !call.is_ours && picks(on, call);
        let call = book.newest_first().find(is_meant).cloned();
        let call = call.ok_or_else(|| Refused::NotFound("no call is picked".to_owned()))?;
        let id = book.fresh_id(state.own_before + 1);
        let tool = call.target.as_deref().filter(|_| call.method == methods::TOOLS_CALL);
        let subject = Subject {
            client: None,
            user_agent: None,
            server: None,
            transport: Transport::Http,
            method: &call.method,
            tool,
        };
        let contract = state.policy.contract(&subject);
        let (class, reason) = retry::class(&call, contract);
        let text = retry::again(&call, retry, contract, &id)?;
        state.own_before += 1;
        let spot = Spot::of(call.stream.unwrap_or_default(), None, Some(&call.id));
        let why = why.with(&format!("{}: {}", class.as_str(), reason.as_str()));
        let stream = self.send_beside(state, "retry", &text, &spot, &why)?;
        let sent_as = if retry.has_same_id { &call.id } else { &id };
        Ok(to([format!("id {sent_as}"), format!("stream {stream}")]))
    }

    fn send(
        &self,
        state: &mut State,
        side: Side,
        text: &str,
        stream: Option<u64>,
        why: &Why,
    ) -> Result<Applied, Refused> {
        let text = text::own_message(text).map_err(|error| Refused::Invalid(error.0))?;
        if side == Side::Server {
            let spot = Spot { stream: None, conn: None, target: "server".to_owned() };
            let stream = self.send_beside(state, "send", &text, &spot, why)?;
            return Ok(to([format!("stream {stream}")]));
        }
        let open = state
            .lines
            .values()
            .flat_map(|line| line.exchanges.streaming().into_iter().map(|stream| (stream, line.clone())));
        let found = open.filter(|(open, _)| stream.is_none_or(|stream| stream == *open)).max_by_key(|o| o.0);
        let (stream, line) =
            found.ok_or_else(|| Refused::NotFound("no event stream to the client is open".to_owned()))?;
        let spot = Spot { stream: Some(stream), conn: Some(line.conn), target: "client".to_owned() };
        self.tell(Dir::S2c, "send", &spot, why, Some(text.clone()));
        line.tell(Way::Down, Errand::Send(stream, text));
        Ok(to([format!("stream {stream}")]))
    }

    fn release_some(
        &self,
        state: &mut State,
        (which, in_reverse): (Which, bool),
        after: Option<&Filter>,
        why: &Why,
    ) -> Result<Applied, Refused> {
        if let Some(after) = after {
            let is_there = match which {
                Which::One(number) => state.holds.find(number).is_some(),
                Which::All => state.holds.iter().next().is_some(),
            };
            if !is_there {
                return Err(not_held(which));
            }
            state.holds.promise(which, in_reverse, after.clone());
            return Ok(Applied::default());
        }
        let taken = state.holds.take(which, in_reverse);
        if taken.is_empty() {
            return Err(not_held(which));
        }
        let done: Vec<String> = taken.iter().map(|held| held.item.target.clone()).collect();
        self.release(taken, &|_| why.clone());
        Ok(to(done))
    }

    /// Tells held messages what becomes of them.
    fn settle(
        &self,
        state: &mut State,
        which: Which,
        what: &str,
        fate: &Fate,
        why: &Why,
    ) -> Result<Applied, Refused> {
        let taken = state.holds.take(which, false);
        if taken.is_empty() {
            return Err(not_held(which));
        }
        for held in &taken {
            let (dir, sent) = match fate {
                Fate::Pass(Some(text)) => (held.dir, Some(text.clone())),
                _ => (Dir::Tap, None),
            };
            if !what.is_empty() {
                self.tell(dir, what, &super::spot_of(held), why, sent);
            }
            super::settle(held, fate.clone());
        }
        Ok(to(taken.iter().map(|held| held.item.target.clone())))
    }

    /// A request of midwire's own, whose answer is recorded under an exchange of its own. Returns
    /// its number.
    pub(super) fn send_beside(
        &self,
        state: &mut State,
        what: &str,
        text: &Bytes,
        spot: &Spot,
        why: &Why,
    ) -> Result<u64, Refused> {
        let stream = self.next_stream()?;
        let own = Spot { stream: Some(stream), conn: None, target: spot.target.clone() };
        if let Some(message) = Message::read(text) {
            let book = state.engine.book_mut();
            book.note(place(Dir::C2s, stream, 0, None, None), &message);
            if let Some(id) = &message.id {
                book.mark_ours(id);
            }
        }
        self.tell(Dir::C2s, what, &own, why, Some(text.clone()));
        let hands = self.tap_hands();
        self.post(state, text, spot.stream, Some(stream))?.after(move |_| {
            if let Some(hands) = &hands {
                hands.end_stream(stream);
            }
        });
        Ok(stream)
    }
}

fn arm(state: &mut State, rule: &Rule, by: By) -> Result<Applied, Refused> {
    if matches!(rule.effect, Effect::Process(_)) {
        return Err(no_process());
    }
    let rule = state.engine.arm(rule.clone(), by);
    Ok(Applied { rule: Some(rule), ..Applied::default() })
}

fn no_process() -> Refused {
    Refused::NotHere(
        "the tap on HTTP has not started the server, so it does nothing to its process".to_owned(),
    )
}

fn not_held(which: Which) -> Refused {
    Refused::NotFound(match which {
        Which::One(number) => format!("no message is held under {number}"),
        Which::All => "nothing is held".to_owned(),
    })
}

fn to(what: impl IntoIterator<Item = String>) -> Applied {
    Applied { to: what.into_iter().collect(), ..Applied::default() }
}

fn says(call: &OpenCall) -> String {
    call.target.as_ref().map_or_else(|| call.method.clone(), |target| format!("{} {target}", call.method))
}

/// The revision in which a call is given up. ours: without any word of one, the revision that the
/// specification assumes of a request without the version header.
fn era_of(state: &State, call: &OpenCall) -> Era {
    call.era.or(state.engine.book().era()).unwrap_or(Era::V2025_03_26)
}

fn open_calls(state: &State, on: &Filter) -> Vec<OpenCall> {
    state.engine.book().open().iter().filter(|call| !call.is_ours && picks(on, call)).cloned().collect()
}

/// Whether a filter picks a call, by its request.
fn picks(on: &Filter, call: &OpenCall) -> bool {
    let message = call.text.as_ref().and_then(Message::read);
    let place =
        place(call.sender, call.stream.unwrap_or_default(), call.conn.unwrap_or_default(), None, call.era);
    let len = call.text.as_ref().map_or(0, Bytes::len);
    on.matches(&Passing { place, message: message.as_ref(), call: Some(call), len })
}

/// The order that a cut comes to.
pub(in crate::proxy::http) fn cut_order(cut: Cut) -> CutOrder {
    let how = if cut.is_reset { Ending::Reset } else { Ending::Close };
    let (client, server) = match cut.side {
        None => (how, how),
        Some(Side::Client) => (how, Ending::Keep),
        Some(Side::Server) => (Ending::Keep, how),
    };
    CutOrder { client, server, last_words: None, is_cancel: false }
}

/// A cut in words.
pub(in crate::proxy::http) fn cut_words(cut: Cut) -> &'static str {
    match (cut.side, cut.is_reset) {
        (None, false) => "both sides are closed",
        (None, true) => "both sides are reset",
        (Some(Side::Client), false) => "the client's side is closed",
        (Some(Side::Client), true) => "the client's side is reset",
        (Some(Side::Server), false) => "the server's side is closed",
        (Some(Side::Server), true) => "the server's side is reset",
    }
}

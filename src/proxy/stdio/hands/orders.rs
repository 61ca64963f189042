//! Orders, one by one.

use bytes::Bytes;

use super::item::{Item, Why, back, place};
use super::state::State;
use crate::command::book::OpenCall;
use crate::command::message::{Message, Passing};
use crate::command::{
    Answer, Applied, By, Cancel, ClientGets, Command, Cut, Effect, Flow, OpenRequest, Process, Refused,
    Retry, Rule, Side, Status, Which, retry, text,
};
use crate::event::{Dir, Transport};
use crate::filter::Filter;
use crate::machine::buffer::Buffer;
use crate::machine::policy::Subject;
use crate::machine::policy::contract::Contract;
use crate::proxy::hold::Held;
use crate::spec::methods;
use crate::time::Ms;
use crate::wire::jsonrpc::Kind;

impl State {
    /// Carries one order out.
    pub(super) fn obey(&mut self, command: &Command, by: By) -> Result<Applied, Refused> {
        let why = Why::ordered(by);
        match command {
            Command::Arm(rule) => self.arm(rule, by),
            Command::Disarm(which) => self.disarm(*which, &why),
            Command::Cancel { on, cancel } => self.cancel_open(on, cancel, &why),
            Command::Disconnect { on, cut } => self.disconnect_now(on, *cut, &why),
            Command::Process(process) => self.process_now(*process, &why),
            Command::Retry { on, retry } => self.retry(on, retry, &why),
            Command::Send { to, text, stream } => self.send(*to, text, *stream, &why),
            Command::Release { which, in_reverse, after } => {
                self.release_held(*which, *in_reverse, after.as_ref(), &why)
            }
            Command::Edit { held, text } => self.edit_held(*held, text, &why),
            Command::Drop(which) => {
                let held = self.holds.take(*which, false);
                self.each_held(*which, held, |state, held| {
                    state.tell(&why, "drop", &held.item.target, &format!("held as {}", held.number));
                    state.forget(&held);
                })
            }
            Command::AnswerHeld { held, answer } => self.answer_held(*held, answer, &why),
            Command::Extend { held, by } => {
                let found = self.holds.find(*held).ok_or_else(|| no_held(*held))?;
                found.due = found.due.plus(*by);
                Ok(to(vec![found.item.target.clone()]))
            }
            Command::Flow(flow) => self.flow(*flow, &why),
            Command::Status => Ok(Applied { status: Some(self.status()), ..Applied::default() }),
        }
    }

    fn arm(&mut self, rule: &Rule, by: By) -> Result<Applied, Refused> {
        can_be(&rule.effect)?;
        let number = self.engine.arm(rule.clone(), by);
        Ok(Applied { rule: Some(number), ..Applied::default() })
    }

    fn disarm(&mut self, which: Which, why: &Why) -> Result<Applied, Refused> {
        let gone = self.engine.disarm(which);
        let is_meant = |rule: u64| match which {
            Which::One(number) => rule == number,
            Which::All => true,
        };
        if let Which::One(number) = which {
            let works_on = self.way(Dir::C2s).has_of(number)
                || self.way(Dir::S2c).has_of(number)
                || self.holds.iter().any(|held| held.rule == number)
                || self.watches.iter().any(|watch| watch.is_of(number))
                || self.floods.iter().any(|flood| flood.why.rule == Some(number));
            if gone.is_empty() && !works_on {
                return Err(Refused::NotFound(format!("rule {number}")));
            }
        }
        let held = self.holds.take_if(|held| is_meant(held.rule));
        self.release(held, why, "its rule is disarmed");
        let watches: Vec<_> =
            self.watches.extract_if(.., |watch| watch.rule().is_some_and(is_meant)).collect();
        for (dir, item) in watches.into_iter().filter_map(super::watch::Watch::into_parked) {
            self.pass(dir, item);
        }
        self.floods.retain(|flood| !flood.why.rule.is_some_and(is_meant));
        let now = self.now();
        for dir in [Dir::C2s, Dir::S2c] {
            for item in self.way_mut(dir).disarm(&is_meant, now) {
                self.pass(dir, Item { is_swapped: false, delay: Ms(0), ..item });
            }
        }
        Ok(to(gone.into_iter().map(|rule| format!("rule {rule}")).collect()))
    }

    /// Open calls that a filter picks, oldest first.
    fn open(&self, on: &Filter) -> Vec<OpenCall> {
        self.engine.book().open().iter().filter(|call| picks(on, call)).cloned().collect()
    }

    fn cancel_open(&mut self, on: &Filter, cancel: &Cancel, why: &Why) -> Result<Applied, Refused> {
        if cancel.client_gets == ClientGets::Reset {
            return Err(no_reset());
        }
        let calls: Vec<OpenCall> = self.open(on).into_iter().filter(|call| !call.is_cancelled).collect();
        if calls.is_empty() {
            return Err(Refused::NotFound(format!("an open call `{on}`")));
        }
        let (mut done, mut refused) = (Vec::new(), None);
        for call in calls {
            match self.give_up(&call, cancel, why) {
                Ok(()) => done.push(format!("id {}", call.id)),
                Err(words) => refused = Some(Refused::NotHere(words)),
            }
        }
        match refused {
            Some(refused) if done.is_empty() => Err(refused),
            _ => Ok(to(done)),
        }
    }

    fn disconnect_now(&mut self, on: &Filter, cut: Cut, why: &Why) -> Result<Applied, Refused> {
        if cut.is_reset {
            return Err(no_reset());
        }
        if !on.is_empty() && self.open(on).is_empty() {
            return Err(Refused::NotFound(format!("an open call `{on}`")));
        }
        let sides = [(Side::Client, Dir::S2c, "client"), (Side::Server, Dir::C2s, "server")];
        let meant = sides.into_iter().filter(|(side, dir, _)| {
            cut.side.is_none_or(|only| only == *side) && !self.way(*dir).is_closed()
        });
        let meant: Vec<String> = meant.map(|(_, _, name)| name.to_owned()).collect();
        if meant.is_empty() {
            return Err(Refused::NotFound("a pipe that is not cut yet".to_owned()));
        }
        self.cut(cut, why, "");
        Ok(to(meant))
    }

    fn process_now(&mut self, process: Process, why: &Why) -> Result<Applied, Refused> {
        if self.notices.is_none() {
            return Err(Refused::NotFound("the server is not running".to_owned()));
        }
        if process == Process::CloseStdin && self.way(Dir::C2s).is_closed() {
            return Err(Refused::NotFound("the server's stdin is closed already".to_owned()));
        }
        if process == Process::Restart && self.way(Dir::C2s).is_finishing {
            return Err(Refused::NotHere("the client has ended; a new server would have nobody".to_owned()));
        }
        self.process(process, why);
        Ok(to(vec!["server".to_owned()]))
    }

    fn retry(&mut self, on: &Filter, retry: &Retry, why: &Why) -> Result<Applied, Refused> {
        let book = self.engine.book();
        let call =
            book.newest_first().find(|call| call.sender == Dir::C2s && !call.is_ours && picks(on, call));
        let call = call.cloned().ok_or_else(|| Refused::NotFound(format!("a call `{on}`")))?;
        if self.way(Dir::C2s).is_closed() {
            return Err(Refused::NotFound("the server's stdin is closed".to_owned()));
        }
        let id = self.engine.book().fresh_id(self.fresh + 1);
        let contract = self.contract(&call);
        let (class, reason) = retry::class(&call, contract);
        let body = retry::again(&call, retry, contract, &id)?;
        self.fresh += 1;
        let words = format!("of id {}, {}: {}", call.id, class.as_str(), reason.as_str());
        let own = if retry.has_same_id { &call.id } else { &id };
        let about = format!("id {own}");
        let item = Item::own(&body, "retry", &about, why, &words);
        if !retry.has_same_id
            && let Some(message) = Message::read(&body)
        {
            self.engine.book_mut().note(place(Dir::C2s), &message);
            self.engine.book_mut().mark_ours(&id);
        }
        self.pass(Dir::C2s, item);
        Ok(to(vec![format!("id {}", call.id), about]))
    }

    /// What is declared about the tool of a call.
    fn contract(&self, call: &OpenCall) -> Option<&Contract> {
        let (policy, server) = &self.policy;
        policy.contract(&Subject {
            client: None,
            user_agent: None,
            server: Some(server),
            transport: Transport::Stdio,
            method: &call.method,
            tool: call.target.as_deref().filter(|_| call.method == methods::TOOLS_CALL),
        })
    }

    fn send(&mut self, side: Side, text: &str, stream: Option<u64>, why: &Why) -> Result<Applied, Refused> {
        if stream.is_some() {
            return Err(Refused::NotHere("on stdio there are no streams".to_owned()));
        }
        let body = text::own_message(text).map_err(|error| Refused::Invalid(error.0))?;
        let dir = if side == Side::Server { Dir::C2s } else { Dir::S2c };
        if self.way(dir).is_closed() {
            return Err(Refused::NotFound("that pipe is closed".to_owned()));
        }
        let message = Message::read(&body);
        let about = super::item::target(dir, message.as_ref(), None);
        if let Some(message) = &message {
            let place = place(dir);
            let book = self.engine.book_mut();
            let id = message.id.as_ref().filter(|_| message.kind == Kind::Request);
            let is_taken =
                id.is_some_and(|id| book.open().iter().any(|call| call.sender == dir && call.id == *id));
            book.note(place, message);
            book.end(place, message);
            if let Some(id) = id.filter(|_| !is_taken) {
                book.mark_ours(id);
            }
        }
        self.pass(dir, Item::own(&body, "send", &about, why, ""));
        Ok(to(vec![about]))
    }

    fn release_held(
        &mut self,
        which: Which,
        in_reverse: bool,
        after: Option<&Filter>,
        why: &Why,
    ) -> Result<Applied, Refused> {
        if let Some(after) = after {
            let meant =
                self.holds.iter().filter(|held| which == Which::All || which == Which::One(held.number));
            let meant: Vec<String> = meant.map(|held| held.item.target.clone()).collect();
            if meant.is_empty() {
                return Err(nothing_held(which));
            }
            self.holds.promise(which, in_reverse, after.clone());
            return Ok(to(meant));
        }
        let held = self.holds.take(which, in_reverse);
        self.each_held(which, held, |state, held| {
            let why = why.clone();
            state.release(vec![held], &why, "as it is");
        })
    }

    fn edit_held(&mut self, number: u64, text: &str, why: &Why) -> Result<Applied, Refused> {
        let body = text::own_message(text).map_err(|error| Refused::Invalid(error.0))?;
        let held = self.holds.take(Which::One(number), false);
        self.each_held(Which::One(number), held, |state, mut held| {
            let ending: &[u8] = if held.item.bytes.ends_with(b"\r\n") { b"\r\n" } else { b"\n" };
            held.item.bytes = Bytes::from([&body[..], ending].concat());
            held.item.tickets.clear();
            let words = format!("held as {number}");
            let sent = Some(held.item.bytes.clone());
            held.item.event = Some(why.inject("edit", &held.item.target, &words, sent));
            state.release(vec![held], why, "edited");
        })
    }

    fn answer_held(&mut self, number: u64, answer: &Answer, why: &Why) -> Result<Applied, Refused> {
        let found = self.holds.find(number).ok_or_else(|| no_held(number))?;
        let seen = found.item.seen.as_deref().filter(|seen| seen.message.kind == Kind::Request);
        let call = seen.and_then(|seen| seen.call.clone());
        let call = call.ok_or_else(|| Refused::Invalid("only a request can be answered".to_owned()))?;
        let text = text::answer(&call.id, answer).ok_or_else(no_status)?;
        let dir = found.dir;
        self.holds.take(Which::One(number), false);
        self.answer_for(dir, &call, &text, why);
        Ok(to(vec![format!("id {}", call.id)]))
    }

    /// Does something to each of those that were held, or says that there are none.
    fn each_held(
        &mut self,
        which: Which,
        held: Vec<Held<Item>>,
        mut act: impl FnMut(&mut State, Held<Item>),
    ) -> Result<Applied, Refused> {
        if held.is_empty() {
            return Err(nothing_held(which));
        }
        let targets = held.iter().map(|held| held.item.target.clone()).collect();
        for held in held {
            act(self, held);
        }
        Ok(to(targets))
    }

    /// A held message is dropped: a request of it is open no longer.
    fn forget(&mut self, held: &Held<Item>) {
        let Some(seen) = held.item.seen.as_deref().filter(|seen| seen.message.kind == Kind::Request) else {
            return;
        };
        let Some(call) = &seen.call else { return };
        if let Some(end) = Message::read(&Bytes::from(text::error(&call.id, text::OWN_CODE, ""))) {
            self.engine.book_mut().end(place(back(held.dir)), &end);
        }
    }

    fn flow(&mut self, flow: Flow, why: &Why) -> Result<Applied, Refused> {
        let (buffer, words) = match flow {
            Flow::PassThrough => (None, "nothing is dropped".to_owned()),
            Flow::Bounded(limit) => {
                let buffer = Buffer::new(limit).map_err(|error| Refused::Invalid(error.to_string()))?;
                (Some(buffer), format!("at most {limit} messages wait"))
            }
        };
        self.tell(why, "flow", "direction s2c", &words);
        self.way_mut(Dir::S2c).bound(buffer);
        Ok(to(vec!["direction s2c".to_owned()]))
    }

    fn status(&self) -> Status {
        let open = self.engine.book().open().iter().map(|call| OpenRequest {
            id: call.id.to_string(),
            says: [Some(call.method.as_str()), call.target.as_deref()]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join(" "),
            stream: None,
        });
        Status {
            rules: self.engine.armed().cloned().collect(),
            held: self.holds.status(self.now()),
            open: open.collect(),
        }
    }
}

/// Whether an effect can be on pipes at all.
fn can_be(effect: &Effect) -> Result<(), Refused> {
    match effect {
        Effect::Header { .. } => Err(Refused::NotHere("stdio has no headers".to_owned())),
        Effect::Compress => Err(Refused::NotHere("stdio has no compression".to_owned())),
        Effect::Answer(Answer::Status(_)) => Err(no_status()),
        Effect::Disconnect { cut: Cut { is_reset: true, .. }, .. }
        | Effect::Cancel(Cancel { client_gets: ClientGets::Reset, .. }) => Err(no_reset()),
        Effect::Answer(answer @ Answer::Result(json)) => {
            let _ = answer;
            text::one_line(json).map(drop).map_err(|error| Refused::Invalid(error.0))
        }
        Effect::Duplicate { copies: 0 | 1 } => {
            Err(Refused::Invalid("a duplicate passes at least 2 times".to_owned()))
        }
        _ => Ok(()),
    }
}

fn picks(on: &Filter, call: &OpenCall) -> bool {
    let message = Message {
        kind: Kind::Request,
        id: Some(call.id.clone()),
        method: Some(call.method.clone()),
        target: call.target.clone(),
        token: call.token.clone(),
        cancels: None,
        era: call.era,
        code: None,
        text: call.text.clone().unwrap_or_default(),
    };
    let len = message.text.len();
    on.matches(&Passing { place: place(call.sender), message: Some(&message), call: Some(call), len })
}

fn to(to: Vec<String>) -> Applied {
    Applied { to, ..Applied::default() }
}

fn no_held(number: u64) -> Refused {
    Refused::NotFound(format!("a held message {number}"))
}

fn nothing_held(which: Which) -> Refused {
    match which {
        Which::One(number) => no_held(number),
        Which::All => Refused::NotFound("nothing is held".to_owned()),
    }
}

fn no_reset() -> Refused {
    Refused::NotHere("a pipe has no reset; say close".to_owned())
}

fn no_status() -> Refused {
    Refused::NotHere("stdio has no statuses; answer with an error".to_owned())
}

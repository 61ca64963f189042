//! A message on its way out, and what goes with it.

use bytes::Bytes;

use crate::command::book::OpenCall;
use crate::command::engine::Decision;
use crate::command::message::{Message, Passing, Place};
use crate::command::{By, Cancel, Cut, Process, Rate};
use crate::event::tape::Ticket;
use crate::event::{Dir, Transport, What};
use crate::time::{Mono, Ms};
use crate::wire::jsonrpc::Id;

/// Who wanted something, and for what rule.
#[derive(Debug, Clone)]
pub(super) struct Why {
    pub(super) by: &'static str,
    /// Number of the rule; `None`: an order of its own.
    pub(super) rule: Option<u64>,
    cause: Option<String>,
}

impl Why {
    /// An order of its own.
    pub(super) fn ordered(by: By) -> Why {
        Why { by: by.as_str(), rule: None, cause: None }
    }

    /// Nobody asked for it at this moment: it follows from something else.
    pub(super) fn own() -> Why {
        Why { by: "midwire", rule: None, cause: None }
    }

    /// A rule that met a message.
    pub(super) fn met(decision: &Decision) -> Why {
        let name = decision.name.as_ref().map(|name| format!(" \"{name}\"")).unwrap_or_default();
        let cause = format!("rule {}{name}, seed {}, hit {}", decision.rule, decision.seed, decision.hit);
        Why { by: decision.by.as_str(), rule: Some(decision.rule), cause: Some(cause) }
    }

    /// The same, about one call where the target says only which side it is done to.
    pub(super) fn about(&self, id: &Id) -> Why {
        let words = [self.cause.clone(), Some(format!("id {id}"))];
        let cause = words.into_iter().flatten().collect::<Vec<_>>().join(": ");
        Why { cause: Some(cause), ..self.clone() }
    }

    /// The event of an effect; `more`: a few words beside the cause.
    pub(super) fn inject(&self, what: &str, target: &str, more: &str, sent: Option<Bytes>) -> What {
        let words = [self.cause.as_deref().unwrap_or_default(), more];
        let words: Vec<&str> = words.into_iter().filter(|words| !words.is_empty()).collect();
        What::Inject {
            what: what.to_owned(),
            target: target.to_owned(),
            by: self.by.to_owned(),
            cause: (!words.is_empty()).then(|| words.join(": ")),
            sent,
        }
    }
}

/// A whole line on its way to the receiver, or a piece of one that is not looked at.
#[derive(Debug)]
pub(super) struct Item {
    /// As it is written, with its ending.
    pub(super) bytes: Bytes,
    /// The receiver is between two lines after it.
    pub(super) ends_line: bool,
    /// Its places on the tape, told when it has been written.
    pub(super) tickets: Vec<Ticket>,
    /// Told right before its first byte is written.
    pub(super) event: Option<What>,
    /// What it is, in the words of an event: `id 7`.
    pub(super) target: String,
    /// What it says; `None`: no message, or one of midwire's own.
    pub(super) seen: Option<Box<Seen>>,
    /// Rules that made it wait.
    pub(super) rules: Vec<u64>,
    /// It waits this long before its turn.
    pub(super) delay: Ms,
    /// It waits for the next of its direction.
    pub(super) is_swapped: bool,
    /// It is written in pieces of so many bytes, so long apart.
    pub(super) slice: Option<(usize, Ms)>,
    /// What begins with it in its direction.
    pub(super) begins: Vec<Begin>,
    /// What happens once it has been written.
    pub(super) then: Vec<Then>,
}

impl Item {
    pub(super) fn new(bytes: Bytes, ends_line: bool, target: String) -> Item {
        Item {
            bytes,
            ends_line,
            tickets: Vec::new(),
            event: None,
            target,
            seen: None,
            rules: Vec::new(),
            delay: Ms(0),
            is_swapped: false,
            slice: None,
            begins: Vec::new(),
            then: Vec::new(),
        }
    }

    /// A message of midwire's own, told as an effect.
    pub(super) fn own(text: &[u8], what: &str, target: &str, why: &Why, more: &str) -> Item {
        let bytes = Bytes::from([text, b"\n"].concat());
        let event = why.inject(what, target, more, Some(bytes.clone()));
        Item { event: Some(event), ..Item::new(bytes, true, target.to_owned()) }
    }
}

/// A message that was read, where it stands and its call.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) place: Place,
    pub(super) message: Message,
    pub(super) call: Option<OpenCall>,
}

impl Seen {
    pub(super) fn passing(&self) -> Passing<'_> {
        let len = self.message.text.len();
        Passing { place: self.place, message: Some(&self.message), call: self.call.as_ref(), len }
    }
}

/// What lasts in a direction from a message on.
#[derive(Debug, Clone, Copy)]
pub(super) enum Begin {
    Throttle { rule: u64, rate: Rate },
    Gather { rule: u64, bytes: usize, ms: Ms },
}

/// What follows a message that has been written.
#[derive(Debug)]
pub(super) enum Then {
    /// Another one passes, so much later.
    Pass(Dir, Box<Item>, Ms),
    /// A call is given up.
    GiveUp(Box<OpenCall>, Cancel, Why),
    /// A cancel that a race waits for is out.
    CancelOut(Id),
    Cut(Cut, Why),
    Process(Process, Why),
    Flood(Flood),
}

/// Progress that nobody asked for.
#[derive(Debug)]
pub(super) struct Flood {
    pub(super) dir: Dir,
    pub(super) token: Id,
    pub(super) target: String,
    pub(super) left: u32,
    pub(super) gap_ns: u64,
    pub(super) next: Mono,
    pub(super) value: u64,
    pub(super) why: Why,
}

/// The place of everything that goes this way.
pub(super) fn place(dir: Dir) -> Place {
    Place { dir, transport: Transport::Stdio, stream: None, conn: None, status: None, era: None }
}

/// The other way.
pub(super) fn back(dir: Dir) -> Dir {
    if dir == Dir::C2s { Dir::S2c } else { Dir::C2s }
}

/// What a message is about, in the words of an event.
pub(super) fn target(dir: Dir, message: Option<&Message>, call: Option<&OpenCall>) -> String {
    let id = message.and_then(|message| message.id.as_ref().or(message.cancels.as_ref()));
    match id.or(call.map(|call| &call.id)) {
        Some(id) => format!("id {id}"),
        None if dir == Dir::C2s => "direction c2s".to_owned(),
        None => "direction s2c".to_owned(),
    }
}

/// What a message is, in words for a person.
pub(super) fn says(dir: Dir, seen: Option<&Seen>) -> String {
    let way = if dir == Dir::C2s { "c2s" } else { "s2c" };
    let Some(seen) = seen else { return format!("{way} line") };
    let passing = seen.passing();
    let id = target(dir, Some(&seen.message), seen.call.as_ref());
    let words = [way, passing.kind(), &id, passing.method().unwrap_or_default()];
    let words = words.into_iter().chain(passing.target()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

/// The same of a message that was read.
pub(super) fn target_of(seen: Option<&Seen>) -> String {
    seen.map_or_else(
        || "line".to_owned(),
        |seen| target(seen.place.dir, Some(&seen.message), seen.call.as_ref()),
    )
}

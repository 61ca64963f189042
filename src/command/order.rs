//! An order as it is written: a verb and members, before their meaning is known. What the doors
//! have in common.

use super::verbs::{Kind, Member, Verb, one_of};
use super::{Times, Which};
use crate::filter::Filter;
use crate::time::Ms;
use crate::wire::json::Document;

/// A verb and its members.
#[derive(Debug, Clone)]
pub(super) struct Order {
    pub(super) verb: &'static Verb,
    pub(super) members: Vec<Said>,
}

/// A member as it was said.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Said {
    /// Its name.
    pub(super) name: String,
    /// What stands there.
    pub(super) value: Given,
    /// Where, in bytes of the text that holds the order.
    pub(super) at: usize,
}

/// A value as a door gives it.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Given {
    Text(String),
    Whole(i128),
    Real(f64),
    Flag(bool),
    List(Vec<String>),
    /// An object or a list of JSON, as it stands.
    Json(String),
}

/// What is wrong with an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wrong {
    /// Where, in bytes of the text; `None`: of the order as a whole.
    pub(super) at: Option<usize>,
    /// What, and what is allowed.
    pub(super) why: String,
}

/// A value whose kind is right.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Filter(Filter),
    Text(String),
    Whole(i128),
    Share(f64),
    Span(Ms),
    Flag(bool),
    Choice(&'static str),
    Which(Which),
    Times(Times),
    Sets(Vec<(String, String)>),
}

/// The members of an order, each known to its verb and right in kind.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) verb: &'static Verb,
    members: Vec<(&'static Member, Value, usize)>,
}

impl Wrong {
    pub(super) fn whole(why: impl Into<String>) -> Wrong {
        Wrong { at: None, why: why.into() }
    }
}

/// The verb of this name.
pub(super) fn verb(name: &str, at: usize) -> Result<&'static Verb, Wrong> {
    Verb::find(name).ok_or_else(|| {
        let names: Vec<&str> = super::verbs::VERBS.iter().map(|verb| verb.name).collect();
        Wrong { at: Some(at), why: format!("no verb `{name}`; there are {}", names.join(", ")) }
    })
}

impl Known {
    pub(super) fn new(order: &Order) -> Result<Known, Wrong> {
        let verb = order.verb;
        let mut members: Vec<(&'static Member, Value, usize)> = Vec::new();
        for said in &order.members {
            let wrong = |why| Wrong { at: Some(said.at), why };
            let member = verb.members().find(|member| member.name == said.name);
            let member = member.ok_or_else(|| {
                let names: Vec<&str> = verb.members().map(|member| member.name).collect();
                let takes = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
                wrong(format!("`{}` takes no `{}`; it takes {takes}", verb.name, said.name))
            })?;
            let value = read(member.kind, &said.value).map_err(|why| {
                let allowed = why.unwrap_or_else(|| format!("give {}", member.kind.allowed()));
                wrong(format!("`{}`: {allowed}", member.name))
            })?;
            let before = members.iter_mut().find(|(known, ..)| known.name == member.name);
            match (before, value) {
                (None, value) => members.push((member, value, said.at)),
                (Some((_, Value::Sets(sets), _)), Value::Sets(more)) => sets.extend(more),
                (Some(_), _) => return Err(wrong(format!("`{}` is said twice", member.name))),
            }
        }
        Ok(Known { verb, members })
    }

    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.members.iter().find(|(member, ..)| member.name == name).map(|(_, value, _)| value)
    }

    /// The first of these that was said, with its place.
    pub(super) fn first_of(&self, names: &[&str]) -> Option<(&'static str, usize)> {
        let is_one = |member: &Member| names.contains(&member.name);
        self.members.iter().find(|(member, ..)| is_one(member)).map(|(member, _, at)| (member.name, *at))
    }

    /// The one of these that was said.
    pub(super) fn only_of(&self, names: &[&str]) -> Result<Option<&'static str>, Wrong> {
        let mut said = self.members.iter().filter(|(member, ..)| names.contains(&member.name));
        let first = said.next().map(|(member, ..)| member.name);
        match said.next() {
            Some((member, _, at)) => {
                let why = format!("`{}`: only one of {}", member.name, one_of(names));
                Err(Wrong { at: Some(*at), why })
            }
            None => Ok(first),
        }
    }

    /// It lacks something.
    pub(super) fn lacks(&self, what: &str) -> Wrong {
        Wrong::whole(format!("`{}` needs {what}", self.verb.name))
    }

    /// What was said in this place cannot be so.
    pub(super) fn wrong(&self, name: &str, why: &str) -> Wrong {
        let at = self.first_of(&[name]).map(|(_, at)| at);
        Wrong { at, why: format!("`{name}`: {why}") }
    }

    pub(super) fn text(&self, name: &str) -> Option<String> {
        match self.get(name) {
            Some(Value::Text(text)) => Some(text.clone()),
            _ => None,
        }
    }

    pub(super) fn filter(&self, name: &str) -> Option<Filter> {
        match self.get(name) {
            Some(Value::Filter(filter)) => Some(filter.clone()),
            _ => None,
        }
    }

    pub(super) fn span(&self, name: &str) -> Option<Ms> {
        match self.get(name) {
            Some(Value::Span(span)) => Some(*span),
            _ => None,
        }
    }

    /// A whole number; its kind has seen to it that it fits.
    pub(super) fn whole<T: TryFrom<i128>>(&self, name: &str) -> Option<T> {
        match self.get(name) {
            Some(Value::Whole(number)) => T::try_from(*number).ok(),
            _ => None,
        }
    }

    pub(super) fn choice(&self, name: &str) -> Option<&'static str> {
        match self.get(name) {
            Some(Value::Choice(word)) => Some(word),
            _ => None,
        }
    }

    pub(super) fn which(&self, name: &str) -> Option<Which> {
        match self.get(name) {
            Some(Value::Which(which)) => Some(*which),
            _ => None,
        }
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        self.get(name) == Some(&Value::Flag(true))
    }
}

/// Reads a value; an error may say more than what the kind allows.
fn read(kind: Kind, given: &Given) -> Result<Value, Option<String>> {
    let text = match given {
        Given::Text(text) => Some(text.as_str()),
        _ => None,
    };
    let whole = match given {
        Given::Whole(number) => Some(*number),
        Given::Text(text) => text.parse::<i128>().ok(),
        _ => None,
    };
    match kind {
        Kind::Filter => {
            let parsed = Filter::parse(text.ok_or(None)?);
            parsed.map(Value::Filter).map_err(|error| Some(format!("filter, {error}")))
        }
        Kind::Text => text.map(|text| Value::Text(text.to_owned())).ok_or(None),
        Kind::Line => {
            let line = text.filter(|text| !text.contains(['\n', '\r']));
            line.map(|text| Value::Text(text.to_owned())).ok_or(None)
        }
        Kind::Json => {
            let json = match given {
                Given::Json(json) => Some(json.as_str()),
                _ => text,
            };
            json.and_then(json_text).map(Value::Text).ok_or(None)
        }
        Kind::Whole(least, most) => {
            whole.filter(|number| (least..=most).contains(number)).map(Value::Whole).ok_or(None)
        }
        Kind::Share => {
            let share = match given {
                Given::Real(share) => Some(*share),
                Given::Whole(0) => Some(0.0),
                Given::Whole(1) => Some(1.0),
                Given::Text(text) => text.parse::<f64>().ok(),
                _ => None,
            };
            share.filter(|share| (0.0..=1.0).contains(share)).map(Value::Share).ok_or(None)
        }
        Kind::Span => {
            let plain = whole.and_then(|number| u64::try_from(number).ok()).map(Ms);
            plain.or_else(|| text.and_then(Ms::from_words)).map(Value::Span).ok_or(None)
        }
        Kind::Flag => match given {
            Given::Flag(flag) => Ok(Value::Flag(*flag)),
            Given::Text(text) => text.parse().map(Value::Flag).map_err(|_| None),
            _ => Err(None),
        },
        Kind::Choice(words) => {
            words.iter().find(|word| Some(**word) == text).map(|word| Value::Choice(word)).ok_or(None)
        }
        Kind::Which if text == Some("all") => Ok(Value::Which(Which::All)),
        Kind::Which => {
            let number = whole.and_then(|number| u64::try_from(number).ok());
            number.map(|number| Value::Which(Which::One(number))).ok_or(None)
        }
        Kind::Times if text == Some("always") => Ok(Value::Times(Times::Always)),
        Kind::Times => {
            let number = whole.and_then(|number| u64::try_from(number).ok()).filter(|number| *number > 0);
            number.map(|number| Value::Times(Times::Only(number))).ok_or(None)
        }
        Kind::Sets => {
            let sets = match given {
                Given::Text(text) => std::slice::from_ref(text),
                Given::List(list) => list,
                _ => return Err(None),
            };
            let sets: Result<Vec<_>, _> = sets.iter().map(|set| pointer_and_json(set)).collect();
            sets.map(Value::Sets).map_err(Some)
        }
    }
}

/// JSON in one line; `None`: it is none.
fn json_text(text: &str) -> Option<String> {
    Document::new(text.to_owned().into())?;
    // Within strings of JSON no line end stands as it is.
    Some(text.trim().replace(['\n', '\r'], " "))
}

fn pointer_and_json(set: &str) -> Result<(String, String), String> {
    let (pointer, json) = set.split_once('=').ok_or("give POINTER=JSON, such as /params/x=1")?;
    let pointer = match pointer.strip_prefix('#') {
        Some(fragment) => from_fragment(fragment).ok_or("the escapes after # are those of a URI")?,
        None => pointer.to_owned(),
    };
    let is_pointer = pointer.is_empty() || pointer.starts_with('/');
    let has_bad_escape = pointer.split('~').skip(1).any(|rest| !rest.starts_with(['0', '1']));
    if !is_pointer || has_bad_escape {
        return Err(format!("`{pointer}` is no JSON pointer, such as /params/arguments/x"));
    }
    if json.is_empty() {
        return Ok((pointer, String::new()));
    }
    let json = json_text(json).ok_or_else(|| format!("`{json}` is no JSON; text stands in \"quotes\""))?;
    Ok((pointer, json))
}

/// A pointer as it stands before the `=`. What has an `=` or a `%` itself, or begins like the other
/// form, has the form of a URI fragment (RFC 6901 §6).
pub(super) fn pointer_text(pointer: &str) -> String {
    if !pointer.contains('=') {
        return pointer.to_owned();
    }
    format!("#{}", pointer.replace('%', "%25").replace('=', "%3D"))
}

fn from_fragment(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next()?, rest.next()?];
            if !digits.iter().all(u8::is_ascii_hexdigit) {
                return None;
            }
            bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

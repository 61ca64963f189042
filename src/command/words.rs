//! Orders as a person types them: `VERB name=value …` in one line.
//!
//! A value with spaces stands in quotes: `'…'` as it is, or `"…"` in which `\"` and `\\` are escapes.
//! Quotes that do not begin a value mean themselves, so `arguments={"x":1}` needs none. A flag stands
//! alone (`reverse`), and so may what [`Verb::bare`](super::verbs::Verb::bare) lists (`release 3`).

use std::fmt;

use super::order::{Given, Order, Said, Wrong, verb};
use super::verbs::{Kind, Verb};
use super::{Command, Rule, read, write};

/// Why an order cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {why}")]
pub struct WordsError {
    /// Where, in characters from 1.
    pub column: usize,
    /// Why, and what is allowed.
    pub why: String,
}

/// Reads one order.
///
/// # Errors
/// When it cannot be read: where, why, and what is allowed.
pub fn parse(line: &str) -> Result<Command, WordsError> {
    order(line).and_then(|order| read::command(&order)).map_err(|wrong| {
        let at = wrong.at.unwrap_or_else(|| line.len() - line.trim_start().len());
        let before = line.get(..at).unwrap_or(line);
        WordsError { column: before.chars().count() + 1, why: wrong.why }
    })
}

/// The line of an order whose words a shell has taken apart; a single word is the line itself.
#[must_use]
pub fn line_of(words: &[String]) -> String {
    if let [line] = words {
        return line.clone();
    }
    let quoted = words.iter().map(|word| match word.split_once('=') {
        Some((name, value)) if !name.contains(char::is_whitespace) => format!("{name}={}", quoted(value)),
        _ => quoted(word),
    });
    quoted.collect::<Vec<_>>().join(" ")
}

impl fmt::Display for Command {
    /// In words that [`parse`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print(&write::order(self), f)
    }
}

impl fmt::Display for Rule {
    /// In words that [`parse`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print(&write::order(&Command::Arm(self.clone())), f)
    }
}

fn print(order: &Order, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str(order.verb.name)?;
    for said in &order.members {
        let is_bare = order.verb.bare.first() == Some(&said.name.as_str());
        let texts = match &said.value {
            Given::Flag(true) => {
                write!(f, " {}", said.name)?;
                continue;
            }
            Given::Text(text) | Given::Json(text) => vec![text.clone()],
            Given::Whole(number) => vec![number.to_string()],
            Given::Real(number) => vec![number.to_string()],
            Given::Flag(false) => vec!["false".to_owned()],
            Given::List(texts) => texts.clone(),
        };
        for text in texts {
            if is_bare && is_plain(&text) && !text.contains('=') {
                write!(f, " {text}")?;
            } else {
                write!(f, " {}={}", said.name, quoted(&text))?;
            }
        }
    }
    Ok(())
}

fn is_plain(text: &str) -> bool {
    !text.is_empty() && !text.contains(char::is_whitespace) && !text.starts_with(['\'', '"'])
}

fn quoted(text: &str) -> String {
    if is_plain(text) {
        text.to_owned()
    } else if !text.contains('\'') {
        format!("'{text}'")
    } else {
        format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
    }
}

fn order(line: &str) -> Result<Order, Wrong> {
    let mut words = Words { line, at: 0 };
    let (first, at) = words.name().ok_or_else(|| Wrong::whole("an order begins with a verb"))?;
    let verb = verb(first, at)?;
    words.space()?;
    let mut members: Vec<Said> = Vec::new();
    while let Some((name, at)) = words.name() {
        let said = if words.rest().starts_with('=') {
            words.at += 1;
            Said { name: name.to_owned(), value: Given::Text(words.value()?), at }
        } else {
            words.at = at;
            let text = words.value()?;
            alone(verb, &members, text, at)?
        };
        members.push(said);
    }
    Ok(Order { verb, members })
}

/// A word without a name: a flag, or the next of those that may stand so.
fn alone(verb: &'static Verb, members: &[Said], text: String, at: usize) -> Result<Said, Wrong> {
    let flag = verb.members().find(|member| member.kind == Kind::Flag && member.name == text);
    if let Some(flag) = flag {
        return Ok(Said { name: flag.name.to_owned(), value: Given::Flag(true), at });
    }
    let is_said = |name: &str| members.iter().any(|said| said.name == name);
    if let Some(name) = verb.bare.iter().find(|name| !is_said(name)) {
        return Ok(Said { name: (*name).to_owned(), value: Given::Text(text), at });
    }
    let names: Vec<String> = verb
        .members()
        .map(|member| match member.kind {
            Kind::Flag => member.name.to_owned(),
            _ => format!("{}=", member.name),
        })
        .collect();
    let takes = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
    Err(Wrong { at: Some(at), why: format!("`{text}` has no name; `{}` takes {takes}", verb.name) })
}

/// A line while it is read.
struct Words<'a> {
    line: &'a str,
    /// In bytes.
    at: usize,
}

impl<'a> Words<'a> {
    fn rest(&self) -> &'a str {
        self.line.get(self.at..).unwrap_or_default()
    }

    /// What stands before the next space or `=`, with its place; what it is is seen from what
    /// follows. `None`: the line is over.
    fn name(&mut self) -> Option<(&'a str, usize)> {
        let rest = self.rest();
        let trimmed = rest.trim_start();
        self.at += rest.len() - trimmed.len();
        let is_end = |c: char| c.is_whitespace() || c == '=';
        let name = trimmed.split(is_end).next().unwrap_or_default();
        let at = self.at;
        self.at += name.len();
        (!trimmed.is_empty()).then_some((name, at))
    }

    /// Nothing but a space may follow.
    fn space(&self) -> Result<(), Wrong> {
        match self.rest().chars().next() {
            Some(c) if !c.is_whitespace() => {
                Err(Wrong { at: Some(self.at), why: format!("`{c}` where a space should be") })
            }
            _ => Ok(()),
        }
    }

    fn value(&mut self) -> Result<String, Wrong> {
        let (start, rest) = (self.at, self.rest());
        let Some(quote) = rest.chars().next().filter(|c| matches!(c, '\'' | '"')) else {
            let text = rest.split(char::is_whitespace).next().unwrap_or_default();
            self.at += text.len();
            return Ok(text.to_owned());
        };
        let mut text = String::new();
        let mut chars = rest.char_indices().skip(1).peekable();
        while let Some((at, c)) = chars.next() {
            if c == quote {
                self.at = start + at + c.len_utf8();
                self.space()?;
                return Ok(text);
            }
            match chars.peek() {
                Some((_, next @ ('"' | '\\'))) if quote == '"' && c == '\\' => {
                    text.push(*next);
                    chars.next();
                }
                _ => text.push(c),
            }
        }
        Err(Wrong { at: Some(start), why: format!("the {quote} is not closed") })
    }
}

#[cfg(test)]
mod tests;

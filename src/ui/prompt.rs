//! The line in which a filter or a command is typed.

use ratatui::style::Style;
use tui_textarea::{CursorMove, Input, TextArea};

use super::filtering::Filter;
use super::pick::Mode;
use crate::command::verbs::{self, Verb};
use crate::command::words;
use crate::config::keys::Action;

/// What is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A filter, and what it will do.
    Filter(Mode),
    /// The name of an action.
    Command,
    /// An order to the tap.
    Order,
}

/// The line while it is typed.
#[derive(Debug)]
pub(super) struct Prompt {
    kind: Kind,
    area: TextArea<'static>,
    /// A filter that picks what an order is about.
    target: Option<String>,
}

/// How the typed text reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing is typed.
    Empty,
    /// It can be used.
    Valid,
    /// It cannot: from which column on (from 1), and why.
    Invalid {
        /// The column, from 1.
        column: usize,
        /// What is wrong and what to do.
        why: String,
    },
}

impl Prompt {
    /// A line that begins with a text, the cursor behind it.
    #[must_use]
    pub(super) fn new(kind: Kind, text: &str) -> Prompt {
        let mut prompt = Prompt { kind, area: TextArea::default(), target: None };
        prompt.set_text(text);
        prompt
    }

    /// An order about what this filter picks: the tab key puts it in.
    #[must_use]
    pub(super) fn about(mut self, target: Option<String>) -> Prompt {
        self.target = target;
        self
    }

    fn set_text(&mut self, text: &str) {
        let line: String = text.chars().filter(|c| !c.is_control()).collect();
        self.area = TextArea::new(vec![line]);
        self.area.set_cursor_line_style(Style::default());
        self.area.move_cursor(CursorMove::End);
    }

    /// What is typed.
    #[must_use]
    pub(super) fn kind(&self) -> Kind {
        self.kind
    }

    /// A filter is typed.
    #[must_use]
    pub(super) fn is_filter(&self) -> bool {
        matches!(self.kind, Kind::Filter(_))
    }

    /// The text so far.
    #[must_use]
    pub(super) fn text(&self) -> &str {
        self.area.lines().first().map_or("", |line| line.as_str())
    }

    /// Column of the cursor, from 0, in characters.
    #[must_use]
    pub(super) fn cursor(&self) -> usize {
        let cursor = self.area.cursor();
        cursor.1
    }

    /// Takes a key that edits.
    pub(super) fn input(&mut self, input: Input) {
        self.area.input(input);
        // A line stays one line, whatever was pasted into it.
        if self.area.lines().len() > 1 {
            let joined = self.area.lines().join(" ");
            self.set_text(&joined);
        }
    }

    /// Puts text in at the cursor.
    pub(super) fn paste(&mut self, text: &str) {
        let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        self.area.insert_str(line);
    }

    /// The tab key: the other mode of a filter, or the rest of a command's name.
    pub(super) fn tab(&mut self) {
        match self.kind {
            Kind::Filter(Mode::Only) => self.kind = Kind::Filter(Mode::Mark),
            Kind::Filter(Mode::Mark) => self.kind = Kind::Filter(Mode::Only),
            Kind::Command => {
                let common = common_prefix(&self.completions());
                if common.len() > self.text().len() {
                    self.set_text(&common);
                }
            }
            Kind::Order => self.complete_order(),
        }
    }

    /// The rest of the last word; behind a whole verb, what it is about.
    fn complete_order(&mut self) {
        let text = self.text().to_owned();
        let begun = text.rfind(char::is_whitespace).map_or(0, |at| at + 1);
        let (before, word) = text.split_at_checked(begun).unwrap_or((&text, ""));
        let words = verbs::completions(&text);
        let names: Vec<&str> = words.iter().map(String::as_str).collect();
        let common = common_prefix(&names);
        let whole = if common.len() > word.len() { common } else { word.to_owned() };
        let verb = Verb::find(&whole).filter(|_| begun == 0 && (names.len() < 2 || whole == word));
        let Some(verb) = verb else { return self.set_text(&format!("{before}{whole}")) };
        let is_about = verb.members().any(|member| member.name == "on");
        match self.target.as_deref().filter(|_| is_about) {
            Some(target) => self.set_text(&format!("{whole} on='{target}' ")),
            None => self.set_text(&format!("{whole} ")),
        }
    }

    /// The names of actions that begin with the text.
    #[must_use]
    pub(super) fn completions(&self) -> Vec<&'static str> {
        let names = Action::ALL.iter().map(|action| action.name());
        names.filter(|name| name.starts_with(self.text())).collect()
    }

    /// How the text reads.
    #[must_use]
    pub(super) fn verdict(&self) -> Verdict {
        let text = self.text().trim();
        if text.is_empty() {
            return Verdict::Empty;
        }
        match self.kind {
            Kind::Filter(_) => match Filter::parse(self.text()) {
                Ok(_) => Verdict::Valid,
                Err((column, why)) => Verdict::Invalid { column, why },
            },
            Kind::Order => match words::parse(self.text()) {
                Ok(_) => Verdict::Valid,
                Err(error) => Verdict::Invalid { column: error.column, why: error.why },
            },
            Kind::Command if Action::from_name(text).is_some() => Verdict::Valid,
            Kind::Command => {
                let names = self.completions();
                let why = if names.is_empty() { "no such action".to_owned() } else { names.join(" ") };
                Verdict::Invalid { column: 1, why }
            }
        }
    }
}

fn common_prefix(names: &[&str]) -> String {
    let Some((first, rest)) = names.split_first() else { return String::new() };
    let is_common = |len: usize| {
        let head = first.get(..len);
        head.is_some() && rest.iter().all(|name| name.get(..len) == head)
    };
    let len = (0..=first.len()).rev().find(|len| is_common(*len)).unwrap_or(0);
    first.get(..len).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_completed_as_far_as_it_is_certain() {
        let mut prompt = Prompt::new(Kind::Command, "zoo");
        assert_eq!(prompt.verdict(), Verdict::Invalid { column: 1, why: "zoom-in zoom-out".to_owned() });
        prompt.tab();
        assert_eq!(prompt.text(), "zoom-");
        prompt.paste("in");
        assert_eq!(prompt.verdict(), Verdict::Valid);
        let prompt = Prompt::new(Kind::Command, "zzz");
        assert_eq!(prompt.verdict(), Verdict::Invalid { column: 1, why: "no such action".to_owned() });
    }

    #[test]
    fn whatever_is_pasted_stays_one_line() {
        let mut prompt = Prompt::new(Kind::Filter(Mode::Only), "a");
        prompt.paste("b\nc\x1b[2J");
        assert_eq!(prompt.text(), "ab c [2J");
    }
}

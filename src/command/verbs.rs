//! The verbs: the one table from which orders are read, printed, explained and completed.

mod page;
mod table;

pub use self::page::{completions, expectations_page, explain, page};
pub(super) use self::table::SPOILS;
pub use self::table::{EXPECTATIONS, RULE, VERBS, VERDICTS};

/// What a verb may do, and what it takes.
#[derive(Debug)]
pub struct Verb {
    /// Its name in every place.
    pub name: &'static str,
    /// What it does, in one sentence without a full stop.
    pub does: &'static str,
    /// What is its own to say.
    pub own: &'static [Member],
    /// Members that may stand without their name, in this order.
    pub bare: &'static [&'static str],
    /// Whether it waits for messages.
    pub waits: Waits,
}

/// Whether an order waits for the messages that it is meant for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waits {
    /// It is done at once.
    Never,
    /// It is a rule.
    Always,
    /// It is a rule; with `held`, it is done at once to a held message.
    UnlessHeld,
    /// It is done at once, or is a rule with `when=next` or with anything that only rules have.
    IfNext,
}

/// Something that a verb takes.
#[derive(Debug)]
pub struct Member {
    /// Its name in words, recipes and JSON.
    pub name: &'static str,
    /// What may stand there.
    pub kind: Kind,
    /// What holds when it is left out.
    pub default: &'static str,
    /// What it means.
    pub means: &'static str,
}

/// What may stand in a member.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// A filter (`docs/filter.md`).
    Filter,
    /// Text.
    Text,
    /// Text without a line end.
    Line,
    /// JSON text; in JSON also an object or a list as it is.
    Json,
    /// A whole number from the first to the second, both included.
    Whole(i128, i128),
    /// A number from 0 to 1.
    Share,
    /// A time: whole milliseconds, or a whole number with `ms`, `s`, `m` or `h`.
    Span,
    /// Yes when it is there; in words its name alone.
    Flag,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A number, or `all`.
    Which,
    /// A number above 0, or `always`.
    Times,
    /// `POINTER=JSON`, which may be given several times; in recipes and JSON a list.
    Sets,
}

impl Kind {
    /// What stands for a value in a table, such as `N`.
    pub(super) fn placeholder(self) -> String {
        match self {
            Kind::Filter => "FILTER".to_owned(),
            Kind::Text | Kind::Line => "TEXT".to_owned(),
            Kind::Json => "JSON".to_owned(),
            Kind::Whole(..) => "N".to_owned(),
            Kind::Share => "0…1".to_owned(),
            Kind::Span => "TIME".to_owned(),
            Kind::Flag => "true|false".to_owned(),
            Kind::Choice(words) => words.join("|"),
            Kind::Which => "N|all".to_owned(),
            Kind::Times => "N|always".to_owned(),
            Kind::Sets => "POINTER=JSON".to_owned(),
        }
    }

    /// What may stand there, in words for an error or a table.
    #[must_use]
    pub fn allowed(self) -> String {
        match self {
            Kind::Filter => "a filter".to_owned(),
            Kind::Text => "text".to_owned(),
            Kind::Line => "text without a line end".to_owned(),
            Kind::Json => "JSON".to_owned(),
            Kind::Whole(least, most) if most >= i128::from(u32::MAX) => {
                if least <= -i128::from(u32::MAX) {
                    "a whole number".to_owned()
                } else {
                    format!("a whole number from {least}")
                }
            }
            Kind::Whole(least, most) => format!("a whole number from {least} to {most}"),
            Kind::Share => "a number from 0 to 1".to_owned(),
            Kind::Span => "a time such as 300, 300ms or 5s".to_owned(),
            Kind::Flag => "true or false".to_owned(),
            Kind::Choice(words) => one_of(words),
            Kind::Which => "a number, or all".to_owned(),
            Kind::Times => "a whole number from 1, or always".to_owned(),
            Kind::Sets => "POINTER=JSON; nothing after the = removes".to_owned(),
        }
    }
}

/// `a, b or c`
pub(super) fn one_of(words: &[&str]) -> String {
    match words.split_last() {
        Some((last, before)) if !before.is_empty() => format!("{} or {last}", before.join(", ")),
        _ => words.concat(),
    }
}

impl Verb {
    /// The verb of this name.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Verb> {
        VERBS.iter().find(|verb| verb.name == name)
    }

    /// All that it takes, its own first.
    pub fn members(&self) -> impl Iterator<Item = &'static Member> {
        let rule = if self.waits == Waits::Never { &[] } else { RULE };
        self.own.iter().chain(rule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_said_once() {
        for (at, verb) in VERBS.iter().enumerate() {
            assert!(VERBS.iter().skip(at + 1).all(|other| other.name != verb.name), "{}", verb.name);
            let names: Vec<&str> = verb.members().map(|member| member.name).collect();
            for (at, name) in names.iter().enumerate() {
                assert!(!names.iter().skip(at + 1).any(|other| other == name), "{} {name}", verb.name);
            }
            assert!(verb.bare.iter().all(|bare| names.contains(bare)), "{}", verb.name);
        }
    }

    #[test]
    fn a_line_is_completed_by_what_may_stand_there() {
        let cases: [(&str, &[&str]); 7] = [
            ("dis", &["disconnect", "disarm"]),
            ("nothing", &[]),
            (
                "race ",
                &[
                    "cancel", "answer", "first=", "margin=", "on=", "name=", "skip=", "times=", "chance=",
                    "seed=",
                ],
            ),
            ("race on='x' m", &["margin="]),
            ("race first=", &["first=cancel", "first=answer"]),
            ("retry on='id:7' su", &["sure"]),
            ("status ", &[]),
        ];
        for (line, expected) in cases {
            assert_eq!(completions(line), expected, "{line}");
        }
    }

    #[test]
    fn the_tables_of_the_pages_are_these() {
        let docs = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/hands.md")).unwrap();
        assert!(docs.contains(&page()), "docs/hands.md should hold this table:\n{}", page());
        let docs = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/recipes.md")).unwrap();
        let page = expectations_page();
        assert!(docs.contains(&page), "docs/recipes.md should hold this table:\n{page}");
    }
}

//! One language to pick events and calls: parse, print, evaluate.
//!
//! `method:tools/call dur>500ms -is:error` — terms stand side by side and all must hold; `or`,
//! `not` (or a leading `-`) and brackets join them otherwise. A term is `field:value`, a field
//! compared by `== != < <= > >=` or `contains`, a field alone (it has one), `is:` with a word, or
//! plain text, which is looked for in method, target, id and detail. Case is ignored.
//!
//! What a field is of an event or a call is said by [`Fields`]; this room knows neither.

pub mod field;

mod parse;
mod print;

use std::borrow::Cow;

pub use field::{Field, Is};
pub use parse::FilterError;

/// A filter: a question that an event or a call answers with yes or no.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter(Expr);

/// An expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Expr {
    /// All of these; none at all is always true.
    All(Vec<Expr>),
    /// At least one of these.
    Any(Vec<Expr>),
    Not(Box<Expr>),
    /// Text that is looked for, in lower case.
    Word(String),
    Is(Is),
    /// It has this field.
    Has(Field),
    Compare(Field, Op, Literal),
}

/// How a field is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Contains,
}

/// What a field is compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Literal {
    /// Text, in lower case.
    Text(String),
    /// A whole number; a duration in nanoseconds, a size in bytes.
    Number(i128),
}

/// What a field holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value<'a> {
    /// Text.
    Text(Cow<'a, str>),
    /// A whole number; a duration in nanoseconds, a size in bytes.
    Number(i128),
}

/// Something that a filter can be asked about.
pub trait Fields {
    /// What a field holds; `None`: it has none.
    fn field(&self, field: Field) -> Option<Value<'_>>;
    /// Whether a word of `is:` holds.
    fn is(&self, word: Is) -> bool;
    /// Whether its text (method, target, id, detail) contains this, which is in lower case.
    fn has_text(&self, lower: &str) -> bool;
}

impl Filter {
    /// Reads a filter. Empty text picks everything.
    ///
    /// # Errors
    /// When it cannot be read: where, why, and what may have been meant.
    pub fn parse(text: &str) -> Result<Filter, FilterError> {
        parse::parse(text).map(Filter)
    }

    /// Whether it picks this.
    #[must_use]
    pub fn matches(&self, item: &impl Fields) -> bool {
        holds(&self.0, item)
    }

    /// It picks everything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        matches!(&self.0, Expr::All(terms) if terms.is_empty())
    }
}

impl Default for Filter {
    /// It picks everything.
    fn default() -> Filter {
        Filter(Expr::All(Vec::new()))
    }
}

impl std::fmt::Display for Filter {
    /// In its plainest form, which parses to the same filter.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        print::print(&self.0, f)
    }
}

fn holds(expr: &Expr, item: &impl Fields) -> bool {
    match expr {
        Expr::All(terms) => terms.iter().all(|term| holds(term, item)),
        Expr::Any(terms) => terms.iter().any(|term| holds(term, item)),
        Expr::Not(term) => !holds(term, item),
        Expr::Word(lower) => item.has_text(lower),
        Expr::Is(word) => item.is(*word),
        Expr::Has(field) => item.field(*field).is_some(),
        // A field that is not there compares with nothing, not even as different.
        Expr::Compare(field, op, literal) => {
            item.field(*field).is_some_and(|value| compare(&value, *op, literal))
        }
    }
}

fn compare(value: &Value<'_>, op: Op, literal: &Literal) -> bool {
    let order = match (value, literal) {
        (Value::Text(text), Literal::Text(lower)) if op == Op::Contains => {
            return contains_ignoring_case(text, lower);
        }
        (Value::Text(text), Literal::Text(lower)) => {
            let folded = text.chars().flat_map(char::to_lowercase);
            folded.cmp(lower.chars())
        }
        (Value::Number(number), Literal::Number(other)) => number.cmp(other),
        _ => return false,
    };
    match op {
        Op::Equal => order.is_eq(),
        Op::NotEqual => order.is_ne(),
        Op::Less => order.is_lt(),
        Op::LessOrEqual => order.is_le(),
        Op::Greater => order.is_gt(),
        Op::GreaterOrEqual => order.is_ge(),
        Op::Contains => false,
    }
}

/// Whether `text` contains `lower`, which is in lower case, when its own case is ignored.
#[must_use]
pub fn contains_ignoring_case(text: &str, lower: &str) -> bool {
    if text.is_ascii() {
        let (text, lower) = (text.as_bytes(), lower.as_bytes());
        return lower.is_empty() || text.windows(lower.len()).any(|part| part.eq_ignore_ascii_case(lower));
    }
    text.to_lowercase().contains(lower)
}

#[cfg(test)]
mod tests;

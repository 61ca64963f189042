//! Expression to text that parses to the same expression.

use std::fmt::{Formatter, Result, Write as _};

use super::field::{Field, Holds};
use super::parse::{DURATIONS, SIZES};
use super::{Expr, Literal, Op};

pub(super) fn print(expr: &Expr, f: &mut Formatter<'_>) -> Result {
    match expr {
        Expr::Any(terms) => join(terms, " or ", f),
        Expr::All(terms) => join(terms, " ", f),
        Expr::Not(term) => {
            f.write_char('-')?;
            tight(term, f)
        }
        Expr::Word(text) => text_of(text, is_plain_word(text), f),
        Expr::Is(word) => write!(f, "is:{}", word.as_str()),
        Expr::Has(field) => f.write_str(field.as_str()),
        Expr::Compare(field, op, literal) => {
            f.write_str(field.as_str())?;
            f.write_str(sign(*op))?;
            match literal {
                Literal::Text(text) => text_of(text, is_plain_value(text), f),
                Literal::Number(number) => number_of(*field, *number, f),
            }
        }
    }
}

/// Terms side by side; those that hold several themselves in brackets.
fn join(terms: &[Expr], between: &str, f: &mut Formatter<'_>) -> Result {
    for (nth, term) in terms.iter().enumerate() {
        if nth > 0 {
            f.write_str(between)?;
        }
        tight(term, f)?;
    }
    Ok(())
}

fn tight(term: &Expr, f: &mut Formatter<'_>) -> Result {
    if matches!(term, Expr::All(_) | Expr::Any(_)) {
        f.write_char('(')?;
        print(term, f)?;
        return f.write_char(')');
    }
    print(term, f)
}

fn sign(op: Op) -> &'static str {
    match op {
        Op::Equal => ":",
        Op::NotEqual => "!=",
        Op::Less => "<",
        Op::LessOrEqual => "<=",
        Op::Greater => ">",
        Op::GreaterOrEqual => ">=",
        Op::Contains => " contains ",
    }
}

/// A word that reads as one without quotes.
fn is_plain_word(text: &str) -> bool {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/' | '-');
    let is_other = ["and", "or", "not", "contains"].contains(&text) || Field::from_name(text).is_some();
    !text.is_empty() && text.chars().all(is_name) && !text.starts_with('-') && !is_other
}

fn is_plain_value(text: &str) -> bool {
    let is_bad = |c: char| c.is_whitespace() || matches!(c, '(' | ')' | '"');
    !text.is_empty() && !text.chars().any(is_bad)
}

fn text_of(text: &str, is_plain: bool, f: &mut Formatter<'_>) -> Result {
    if is_plain {
        return f.write_str(text);
    }
    f.write_char('"')?;
    for c in text.chars() {
        if matches!(c, '"' | '\\') {
            f.write_char('\\')?;
        }
        f.write_char(c)?;
    }
    f.write_char('"')
}

/// In the largest unit that leaves it whole.
fn number_of(field: Field, number: i128, f: &mut Formatter<'_>) -> Result {
    let units: &[(&str, i128)] = match field.holds() {
        Holds::Duration => &DURATIONS,
        Holds::Size => &SIZES,
        _ => return write!(f, "{number}"),
    };
    let fits = |(_, factor): &&(&str, i128)| number % factor == 0 && number / factor != 0;
    match units.iter().find(fits).or(units.last()) {
        Some((unit, factor)) => write!(f, "{}{unit}", number / factor),
        None => write!(f, "{number}"),
    }
}

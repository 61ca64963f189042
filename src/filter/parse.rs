//! Text to expression.

use super::field::{Field, Holds, Is};
use super::{Expr, Literal, Op};

/// How deep brackets and `not` may be nested. ours: more than anybody types.
const DEPTH_LIMIT: usize = 64;

/// Why a filter cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {why}")]
pub struct FilterError {
    /// Where, in characters from 1.
    pub column: usize,
    /// Why, and what may have been meant.
    pub why: String,
}

/// Operators, longer ones first.
pub(super) const OPS: [(&str, Op); 8] = [
    ("==", Op::Equal),
    ("!=", Op::NotEqual),
    ("<=", Op::LessOrEqual),
    (">=", Op::GreaterOrEqual),
    ("<", Op::Less),
    (">", Op::Greater),
    (":", Op::Equal),
    ("=", Op::Equal),
];

/// Units of durations, in nanoseconds.
pub(super) const DURATIONS: [(&str, i128); 6] = [
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// Units of sizes, in bytes.
pub(super) const SIZES: [(&str, i128); 7] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1_000),
    ("B", 1),
];

struct Parser {
    text: Vec<char>,
    at: usize,
    depth: usize,
}

pub(super) fn parse(text: &str) -> Result<Expr, FilterError> {
    let mut parser = Parser { text: text.chars().collect(), at: 0, depth: 0 };
    let expr = parser.any()?;
    match parser.peek() {
        Some(')') => Err(parser.fail("this bracket closes nothing; put text with brackets into quotes")),
        _ => Ok(expr),
    }
}

impl Parser {
    fn fail(&self, why: impl Into<String>) -> FilterError {
        fail_at(self.at, why)
    }

    /// The next character after white space.
    fn peek(&mut self) -> Option<char> {
        while self.text.get(self.at).is_some_and(|c| c.is_whitespace()) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn any(&mut self) -> Result<Expr, FilterError> {
        self.depth += 1;
        if self.depth > DEPTH_LIMIT {
            return Err(self.fail("brackets are nested too deep"));
        }
        let mut either = vec![self.all()?];
        while self.keyword("or") {
            if self.peek().is_none_or(|c| c == ')') {
                return Err(self.fail("a term is missing after `or`"));
            }
            either.push(self.all()?);
        }
        self.depth -= 1;
        let is_dangling = either.len() > 1 && either.contains(&Expr::All(Vec::new()));
        if is_dangling {
            return Err(self.fail("a term is missing beside `or`"));
        }
        Ok(one_or(either, Expr::Any))
    }

    fn all(&mut self) -> Result<Expr, FilterError> {
        let mut terms = Vec::new();
        loop {
            let is_and = !terms.is_empty() && self.keyword("and");
            match self.peek() {
                None | Some(')') if is_and => return Err(self.fail("a term is missing after `and`")),
                None | Some(')') => break,
                _ if self.is_keyword("or") => break,
                _ => terms.push(self.term()?),
            }
        }
        Ok(one_or(terms, Expr::All))
    }

    fn term(&mut self) -> Result<Expr, FilterError> {
        match self.peek() {
            Some('(') => {
                let start = self.at;
                self.at += 1;
                let inner = self.any()?;
                if self.peek() != Some(')') {
                    return Err(fail_at(
                        start,
                        "this bracket is not closed; put text with brackets into quotes",
                    ));
                }
                self.at += 1;
                Ok(inner)
            }
            Some('-') if self.text.get(self.at + 1).is_some_and(|c| !c.is_whitespace() && *c != ')') => {
                self.at += 1;
                self.negated()
            }
            Some('"') => Ok(Expr::Word(self.quoted()?)),
            _ if self.keyword("not") => self.negated(),
            _ => self.comparison(),
        }
    }

    fn negated(&mut self) -> Result<Expr, FilterError> {
        self.depth += 1;
        if self.depth > DEPTH_LIMIT {
            return Err(self.fail("`not` is nested too deep"));
        }
        if self.peek().is_none_or(|c| c == ')') {
            return Err(self.fail("a term is missing after `not`"));
        }
        let term = self.term()?;
        self.depth -= 1;
        Ok(Expr::Not(Box::new(term)))
    }

    /// `field op value`, a field alone, or a plain word.
    fn comparison(&mut self) -> Result<Expr, FilterError> {
        let start = self.at;
        let name = self.run(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.');
        let after_name = self.at;
        let op = if name.is_empty() { None } else { self.operator(&name) };
        let Some(op) = op else {
            self.at = after_name;
            let is_whole = self.text.get(self.at).is_none_or(|c| c.is_whitespace() || *c == ')' || *c == '(');
            if is_whole && let Some(field) = Field::from_name(&name) {
                return Ok(Expr::Has(field));
            }
            self.at = start;
            let word = self.run(|c| !c.is_whitespace() && c != '(' && c != ')');
            return Ok(Expr::Word(word.to_lowercase()));
        };
        if name.eq_ignore_ascii_case("is") && op == Op::Equal {
            return self.is_word();
        }
        let Some(field) = Field::from_name(&name) else {
            let names: Vec<&str> = Field::names().chain(["is"]).collect();
            let why = format!("no field `{name}`{}; put plain text into quotes", meant(&name, &names));
            return Err(fail_at(start, why));
        };
        self.value(field, op)
    }

    /// The operator after a name; spaces may stand around it, but not around a colon.
    fn operator(&mut self, name: &str) -> Option<Op> {
        let is_here = |at: usize, sign: &str| {
            sign.chars().enumerate().all(|(nth, c)| self.text.get(at + nth) == Some(&c))
        };
        if is_here(self.at, ":") {
            // `file:///a` is a word, as long as no field has this name.
            if is_here(self.at, "://") && Field::from_name(name).is_none() {
                return None;
            }
            self.at += 1;
            return Some(Op::Equal);
        }
        let mut at = self.at;
        while self.text.get(at).is_some_and(|c| c.is_whitespace()) {
            at += 1;
        }
        let is_far = at > self.at;
        let found = OPS.iter().find(|(sign, _)| *sign != ":" && is_here(at, sign));
        if let Some((sign, op)) = found {
            if is_far && Field::from_name(name).is_none() {
                return None;
            }
            self.at = at + sign.len();
            return Some(*op);
        }
        if is_far && Field::from_name(name).is_some() {
            self.at = at;
            if self.keyword("contains") {
                return Some(Op::Contains);
            }
        }
        None
    }

    fn is_word(&mut self) -> Result<Expr, FilterError> {
        let start = self.at;
        let (word, _) = self.value_text()?;
        Is::from_name(&word).map(Expr::Is).ok_or_else(|| {
            let words: Vec<&str> = Is::ALL.iter().map(|(_, name)| *name).collect();
            fail_at(start, format!("`is:` takes {}{}", words.join(", "), meant(&word, &words)))
        })
    }

    fn value(&mut self, field: Field, op: Op) -> Result<Expr, FilterError> {
        self.peek();
        let start = self.at;
        let (text, _) = self.value_text()?;
        let name = field.as_str();
        let is_ordered = !matches!(op, Op::Equal | Op::NotEqual | Op::Contains);
        let literal = match field.holds() {
            Holds::Text if is_ordered => {
                return Err(fail_at(
                    start,
                    format!("`{name}` is text: compare it with :, ==, != or contains"),
                ));
            }
            Holds::Text => Literal::Text(text.to_lowercase()),
            _ if op == Op::Contains => {
                return Err(fail_at(start, format!("`{name}` is no free text: contains does not fit")));
            }
            Holds::Word(words) => {
                let lower = text.to_lowercase();
                if !words.contains(&lower.as_str()) {
                    let why = format!("`{name}` is one of {}{}", words.join(", "), meant(&lower, words));
                    return Err(fail_at(start, why));
                }
                if is_ordered && field != Field::Era {
                    return Err(fail_at(start, format!("`{name}` has no order: compare it with : or !=")));
                }
                Literal::Text(lower)
            }
            Holds::Number => text
                .parse()
                .map(Literal::Number)
                .map_err(|_| fail_at(start, format!("`{name}` is a whole number, not `{text}`")))?,
            Holds::Duration => quantity(&text, &DURATIONS)
                .map(Literal::Number)
                .ok_or_else(|| fail_at(start, format!("`{text}` is no duration: write 250ms, 2s or 1.5m")))?,
            Holds::Size => quantity(&text, &SIZES)
                .or_else(|| text.parse().ok())
                .map(Literal::Number)
                .ok_or_else(|| fail_at(start, format!("`{text}` is no size: write 100, 64KiB or 1MB")))?,
        };
        Ok(Expr::Compare(field, op, literal))
    }

    /// A value: quoted, or up to white space or a bracket.
    fn value_text(&mut self) -> Result<(String, bool), FilterError> {
        if self.text.get(self.at) == Some(&'"') {
            return self.quoted_as_is().map(|text| (text, true));
        }
        let text = self.run(|c| !c.is_whitespace() && c != '(' && c != ')');
        if text.is_empty() {
            return Err(self.fail("a value is missing; write \"\" for an empty one"));
        }
        Ok((text, false))
    }

    fn quoted(&mut self) -> Result<String, FilterError> {
        self.quoted_as_is().map(|text| text.to_lowercase())
    }

    /// Text in quotes; a backslash keeps the next character.
    fn quoted_as_is(&mut self) -> Result<String, FilterError> {
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        loop {
            let next = self.text.get(self.at).copied();
            self.at += 1;
            match next {
                Some('"') => return Ok(text),
                Some('\\') => {
                    text.extend(self.text.get(self.at));
                    self.at += 1;
                }
                Some(c) => text.push(c),
                None => return Err(fail_at(start, "this quote is not closed")),
            }
        }
    }

    fn run(&mut self, is_part: impl Fn(char) -> bool) -> String {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let run: String = rest.iter().copied().take_while(|c| is_part(*c)).collect();
        self.at += run.chars().count();
        run
    }

    fn is_keyword(&self, word: &str) -> bool {
        let end = self.at + word.len();
        let is_here = self
            .text
            .get(self.at..end)
            .is_some_and(|here| here.iter().zip(word.chars()).all(|(a, b)| a.eq_ignore_ascii_case(&b)));
        is_here && self.text.get(end).is_none_or(|c| c.is_whitespace() || *c == '(' || *c == ')')
    }

    fn keyword(&mut self, word: &str) -> bool {
        self.peek();
        let is_here = self.is_keyword(word);
        if is_here {
            self.at += word.len();
        }
        is_here
    }
}

fn fail_at(at: usize, why: impl Into<String>) -> FilterError {
    FilterError { column: at + 1, why: why.into() }
}

fn one_or(mut terms: Vec<Expr>, join: impl Fn(Vec<Expr>) -> Expr) -> Expr {
    match terms.pop() {
        Some(only) if terms.is_empty() => only,
        Some(last) => {
            terms.push(last);
            join(terms)
        }
        None => Expr::All(Vec::new()),
    }
}

/// A number with a unit, as a whole number of the smallest unit.
fn quantity(text: &str, units: &[(&str, i128)]) -> Option<i128> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(end)?;
    let (_, factor) = units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit))?;
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let whole: i128 = if whole.is_empty() && !part.is_empty() { 0 } else { whole.parse().ok()? };
    let digits = u32::try_from(part.len()).ok().filter(|digits| *digits <= 12)?;
    let part: i128 = if part.is_empty() { 0 } else { part.parse().ok()? };
    let of_part = part.checked_mul(*factor)? / 10_i128.checked_pow(digits)?;
    whole.checked_mul(*factor)?.checked_add(of_part)
}

/// The known word nearest to what was typed, if one is near.
fn meant(typed: &str, known: &[&str]) -> String {
    let lower = typed.to_lowercase();
    let nearest = known.iter().map(|word| (distance(&lower, word), word)).min();
    match nearest {
        Some((distance, word)) if distance <= 2 && distance < word.len() => {
            format!(": did you mean `{word}`?")
        }
        _ => String::new(),
    }
}

/// How many letters have to be changed, added or left out to make one word of the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().take(64).enumerate() {
        let mut next = vec![i + 1];
        for (j, (to, pair)) in b.iter().zip(row.windows(2)).enumerate() {
            let left = next.get(j).copied().unwrap_or(0);
            let (diagonal, above) = (pair.first().copied().unwrap_or(0), pair.last().copied().unwrap_or(0));
            next.push((diagonal + usize::from(from != *to)).min(left + 1).min(above + 1));
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

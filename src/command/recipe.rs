//! A recipe: the faults that a tap arms at its start, and what is expected to follow from them. One
//! TOML file (`docs/recipes.md`).

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::order::{Given, Known, Order, Said, Wrong, verb};
use super::verbs::{EXPECTATIONS, Verb};
use super::{Rule, read};
use crate::time::Ms;

/// What stands at the top of a recipe.
const TOP: &str = "seed, [[fault]], [[expect]]";

/// What a tap does by itself, and what a check expects of the recording.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Recipe {
    /// From which faults without a seed of their own draw; `None`: 0.
    pub seed: Option<u64>,
    /// What is armed, in this order.
    pub faults: Vec<Rule>,
    /// What is expected.
    pub expectations: Vec<Expectation>,
}

/// Something that is expected of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expectation {
    /// The fault that it follows from; `None`: of the recording as a whole.
    pub fault: Option<String>,
    /// What.
    pub that: That,
    /// Where it stands.
    pub place: Place,
}

/// A place in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Place {
    /// From 1.
    pub line: usize,
    /// In characters from 1.
    pub column: usize,
}

/// What is expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum That {
    /// The fault was done this often.
    Hits {
        /// At least.
        least: u64,
        /// At most.
        most: Option<u64>,
    },
    /// Each call that the fault met is made again with an id that is new.
    RetriesWithNewId {
        /// This soon after the fault.
        within: Option<Ms>,
    },
    /// No call that the fault met is made again.
    NoRetry,
    /// Nothing was done twice.
    NoDuplicateEffect,
    /// The client closes its side.
    ClientCloses {
        /// This soon after the fault.
        within: Option<Ms>,
    },
    /// The client gives up each call that the fault met.
    ClientCancels {
        /// This soon after the fault.
        within: Option<Ms>,
    },
    /// Each call that the fault met gets an answer.
    Answered {
        /// This soon after the fault.
        within: Option<Ms>,
    },
    /// The race of each call that the fault met ends so.
    Verdict(&'static str),
    /// There is no finding of this rule; `None`: none that fails a check.
    NoFinding {
        /// Its id.
        rule: Option<String>,
    },
    /// There is a finding of this rule.
    Finding {
        /// Its id.
        rule: String,
    },
}

/// What is wrong with a recipe.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}:{}: {why}", place.line, place.column)]
pub struct RecipeError {
    /// Where.
    pub place: Place,
    /// What, and what is allowed.
    pub why: String,
}

impl Recipe {
    /// Reads the text of a recipe.
    ///
    /// # Errors
    /// When it is none: where, what is wrong, and what is allowed.
    pub fn parse(text: &str) -> Result<Recipe, RecipeError> {
        let reading = Reading { text };
        let table = DeTable::parse(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            reading.refuse(at, error.message().replace('\n', " "))
        })?;
        reading.recipe(table.get_ref())
    }
}

impl std::fmt::Display for Expectation {
    /// In words, as reports say them.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(fault) = &self.fault {
            write!(f, "after \"{fault}\": ")?;
        }
        let soon = |within: &Option<Ms>| match within {
            Some(Ms(ms)) => format!(" within {ms} ms"),
            None => String::new(),
        };
        match &self.that {
            That::Hits { least: 1, most: None } => f.write_str("it is done"),
            That::Hits { least, most: None } => write!(f, "it is done {least} times or more"),
            That::Hits { least, most: Some(most) } => write!(f, "it is done {least} to {most} times"),
            That::RetriesWithNewId { within } => {
                write!(f, "the client retries with a new id{}", soon(within))
            }
            That::NoRetry => f.write_str("the client does not retry"),
            That::NoDuplicateEffect => f.write_str("nothing is done twice"),
            That::ClientCloses { within } => write!(f, "the client closes its side{}", soon(within)),
            That::ClientCancels { within } => write!(f, "the client gives the call up{}", soon(within)),
            That::Answered { within } => write!(f, "the call is answered{}", soon(within)),
            That::Verdict(verdict) => write!(f, "the race ends as {verdict}"),
            That::NoFinding { rule: None } => f.write_str("nothing is found that fails"),
            That::NoFinding { rule: Some(rule) } => write!(f, "no finding of {rule}"),
            That::Finding { rule } => write!(f, "a finding of {rule}"),
        }
    }
}

/// A recipe while it is read.
struct Reading<'a> {
    text: &'a str,
}

impl Reading<'_> {
    fn place(&self, at: usize) -> Place {
        let before = self.text.get(..at).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Place { line, column }
    }

    fn refuse(&self, at: usize, why: impl Into<String>) -> RecipeError {
        RecipeError { place: self.place(at), why: why.into() }
    }

    fn recipe(&self, table: &DeTable<'_>) -> Result<Recipe, RecipeError> {
        let mut recipe = Recipe::default();
        for (key, value) in table {
            match key.get_ref().as_ref() {
                "seed" => {
                    let seed = match given(value.get_ref()) {
                        Some(Given::Whole(number)) => u64::try_from(number).ok(),
                        _ => None,
                    };
                    let why = "`seed`: give a whole number from 0";
                    recipe.seed = Some(seed.ok_or_else(|| self.refuse(value.span().start, why))?);
                }
                "fault" => {
                    for table in self.tables(value, "fault")? {
                        let rule = self.fault(table)?;
                        let is_taken =
                            |name| recipe.faults.iter().any(|other| other.name.as_ref() == Some(name));
                        if let Some(name) = rule.name.as_ref().filter(|name| is_taken(name)) {
                            let why = format!("`name`: another fault is called \"{name}\"");
                            return Err(self.refuse(at_member(table, "name"), why));
                        }
                        recipe.faults.push(rule);
                    }
                }
                "expect" => {
                    for table in self.tables(value, "expect")? {
                        recipe.expectations.push(self.expectation(table)?);
                    }
                }
                other => {
                    let why = format!("nothing is called `{other}`; there are {TOP}");
                    return Err(self.refuse(key.span().start, why));
                }
            }
        }
        names_are_known(&recipe)?;
        Ok(recipe)
    }

    fn tables<'t, 'd>(
        &self,
        value: &'t Spanned<DeValue<'d>>,
        name: &str,
    ) -> Result<Vec<&'t Spanned<DeValue<'d>>>, RecipeError> {
        let why = format!("`{name}` is a list of tables: [[{name}]]");
        match value.get_ref() {
            DeValue::Array(items) if items.iter().all(|item| item.get_ref().is_table()) => {
                Ok(items.iter().collect())
            }
            _ => Err(self.refuse(value.span().start, why)),
        }
    }

    /// The order that a table holds; `word` is the member with its verb.
    fn order(
        &self,
        table: &Spanned<DeValue<'_>>,
        word: &str,
        find: impl Fn(&str, usize) -> Result<&'static Verb, Wrong>,
    ) -> Result<Order, RecipeError> {
        let start = table.span().start;
        let DeValue::Table(members) = table.get_ref() else { return Err(self.refuse(start, "not a table")) };
        let wrong = |wrong: Wrong| self.refuse(wrong.at.unwrap_or(start), wrong.why);
        let (mut verb, mut said) = (None, Vec::new());
        for (key, value) in members {
            let (name, at) = (key.get_ref().as_ref(), value.span().start);
            if name == word {
                let text =
                    value.get_ref().as_str().ok_or_else(|| self.refuse(at, format!("`{word}` is a text")))?;
                verb = Some(find(text, at).map_err(wrong)?);
            } else {
                let value = given(value.get_ref()).ok_or_else(|| {
                    self.refuse(at, format!("`{name}` is a text, a number, true, false or a list of texts"))
                })?;
                said.push(Said { name: name.to_owned(), value, at });
            }
        }
        let verb = verb.ok_or_else(|| self.refuse(start, format!("`{word}` is missing")))?;
        Ok(Order { verb, members: said })
    }

    fn fault(&self, table: &Spanned<DeValue<'_>>) -> Result<Rule, RecipeError> {
        let wrong = |wrong: Wrong| self.refuse(wrong.at.unwrap_or(table.span().start), wrong.why);
        let order = self.order(table, "do", verb)?;
        let rule = read::rule(&order).map_err(wrong)?;
        if rule
            .name
            .as_ref()
            .is_some_and(|name| name.contains(['"', '\\']) || name.contains(char::is_control))
        {
            let why = "`name`: no quotes, backslashes or control characters";
            return Err(self.refuse(at_member(table, "name"), why));
        }
        Ok(rule)
    }

    fn expectation(&self, table: &Spanned<DeValue<'_>>) -> Result<Expectation, RecipeError> {
        let wrong = |wrong: Wrong| self.refuse(wrong.at.unwrap_or(table.span().start), wrong.why);
        let order = self.order(table, "that", |name, at| {
            EXPECTATIONS.iter().find(|verb| verb.name == name).ok_or_else(|| {
                let names: Vec<&str> = EXPECTATIONS.iter().map(|verb| verb.name).collect();
                let why = format!(
                    "nothing that can be expected is called `{name}`; there are {}",
                    names.join(", ")
                );
                Wrong { at: Some(at), why }
            })
        })?;
        let known = Known::new(&order).map_err(wrong)?;
        let within = known.span("within");
        let that = match known.verb.name {
            "hits" => {
                let least: u64 = known.whole("least").unwrap_or(1);
                let most = known.whole("most");
                if most.is_some_and(|most: u64| most < least) {
                    return Err(wrong(known.wrong("most", "is below `least`")));
                }
                That::Hits { least, most }
            }
            "retries-with-new-id" => That::RetriesWithNewId { within },
            "no-retry" => That::NoRetry,
            "no-duplicate-effect" => That::NoDuplicateEffect,
            "client-closes" => That::ClientCloses { within },
            "client-cancels" => That::ClientCancels { within },
            "answered" => That::Answered { within },
            "verdict" => That::Verdict(known.choice("is").ok_or_else(|| wrong(known.lacks("`is`")))?),
            "finding" => {
                That::Finding { rule: known.text("rule").ok_or_else(|| wrong(known.lacks("`rule`")))? }
            }
            _ => That::NoFinding { rule: known.text("rule") },
        };
        let needs_fault =
            known.verb.members().any(|member| member.name == "fault" && member.default == "needed");
        if needs_fault && known.get("fault").is_none() {
            return Err(wrong(known.lacks("`fault`: the name of the fault that it follows from")));
        }
        let place = self.place(at_member(table, "fault"));
        Ok(Expectation { fault: known.text("fault"), that, place })
    }
}

fn names_are_known(recipe: &Recipe) -> Result<(), RecipeError> {
    let names: Vec<&str> = recipe.faults.iter().filter_map(|rule| rule.name.as_deref()).collect();
    for expectation in &recipe.expectations {
        if let Some(fault) = expectation.fault.as_deref().filter(|fault| !names.contains(fault)) {
            let there = if names.is_empty() { "none has a name".to_owned() } else { names.join(", ") };
            let why = format!("no fault is called \"{fault}\"; there are: {there}");
            return Err(RecipeError { place: expectation.place, why });
        }
    }
    Ok(())
}

/// Where a member of a table stands; the table itself where it has none.
fn at_member(table: &Spanned<DeValue<'_>>, name: &str) -> usize {
    let DeValue::Table(members) = table.get_ref() else { return table.span().start };
    let member = members.iter().find(|(key, _)| key.get_ref() == name);
    member.map_or(table.span().start, |(_, value)| value.span().start)
}

fn given(value: &DeValue<'_>) -> Option<Given> {
    Some(match value {
        DeValue::String(text) => Given::Text(text.to_string()),
        DeValue::Integer(number) => Given::Whole(i128::from_str_radix(number.as_str(), number.radix()).ok()?),
        DeValue::Float(number) => Given::Real(number.as_str().parse().ok()?),
        DeValue::Boolean(flag) => Given::Flag(*flag),
        DeValue::Array(items) => {
            let texts = items.iter().map(|item| item.get_ref().as_str().map(str::to_owned));
            Given::List(texts.collect::<Option<_>>()?)
        }
        DeValue::Datetime(_) | DeValue::Table(_) => return None,
    })
}

#[cfg(test)]
mod tests;

//! JSON Schema, as tools and forms use it: is a schema sound, and does a value fit it.
//!
//! Nothing is ever fetched, and whatever is in doubt is no answer: an unknown dialect, references
//! other than `#` and `#/…`, nested ids, patterns that the linear engine does not know, and schemas
//! or values that could be made to work long (see `weight`).

mod weight;

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use serde_json::Value;

use super::case::short;
use crate::spec::era::Era;
use weight::Weight;

/// A longer schema is not looked into. ours: the largest of real tools have a tenth of it.
const SCHEMA_BYTES: usize = 64 << 10;

/// A longer value is not checked. ours.
const VALUE_BYTES: usize = 1 << 20;

/// Compiled size of one pattern. ours: a length limit of a few hundred fits, a bomb does not.
const PATTERN_BYTES: usize = 64 << 10;

/// Verdicts that are kept before all are forgotten. ours: more tools than one session has.
const KEPT: usize = 512;

/// A schema that values can be checked against.
#[derive(Debug)]
pub(super) struct Schema {
    /// One for each dialect that it may be written in.
    validators: Vec<Validator>,
    weight: Weight,
}

/// What is wrong with a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SchemaFault {
    /// Its `$schema` is none that is known here.
    Dialect(String),
    /// It breaks the rules of its dialect: how.
    Broken(String),
}

/// What was found out about texts, by their content, so that the same text is judged once.
#[derive(Debug)]
pub(super) struct Kept<T> {
    by_text: HashMap<u64, T>,
}

impl<T> Default for Kept<T> {
    fn default() -> Kept<T> {
        Kept { by_text: HashMap::new() }
    }
}

impl<T> Kept<T> {
    /// What `judge` says about a schema in an era, now or earlier.
    pub(super) fn get(&mut self, schema: &str, era: Option<Era>, judge: impl FnOnce() -> T) -> &T {
        if self.by_text.len() >= KEPT {
            self.by_text.clear();
        }
        let key = BuildHasherDefault::<DefaultHasher>::default().hash_one((schema, drafts_of(era).len()));
        self.by_text.entry(key).or_insert_with(judge)
    }
}

impl Schema {
    /// Makes a schema ready; `schema` is its JSON text. `None`: nothing can be said by it.
    pub(super) fn compile(schema: &str, era: Option<Era>) -> Option<Schema> {
        let value = read(schema)?;
        let weight = weight::weigh(&value)?;
        let drafts = dialect(&value, era).ok()?;
        let patterns = || PatternOptions::regex().size_limit(PATTERN_BYTES);
        let options =
            jsonschema::options().offline().should_validate_formats(false).with_pattern_options(patterns());
        let validators: Vec<_> =
            drafts.iter().filter_map(|draft| options.clone().with_draft(*draft).build(&value).ok()).collect();
        (!validators.is_empty()).then_some(Schema { validators, weight })
    }

    /// What is wrong with a value, given as JSON text; `None`: it fits, or nobody can tell.
    pub(super) fn first_error(&self, value: &str) -> Option<String> {
        if value.len() > VALUE_BYTES {
            return None;
        }
        let instance: Value = serde_json::from_str(value).ok()?;
        if !self.weight.allows(&instance, value.len()) {
            return None;
        }
        let mut first = None;
        for validator in &self.validators {
            // In one dialect that it may be written in, the value fits.
            let error = validator.validate(&instance).err()?;
            first.get_or_insert(words(&error));
        }
        first
    }
}

/// What is wrong with a schema, given as JSON text, by the meta-schema of its dialect; `None`: nothing,
/// or nobody can tell.
pub(super) fn fault(schema: &str, era: Option<Era>) -> Option<SchemaFault> {
    let value = read(schema)?;
    let drafts = match dialect(&value, era) {
        Ok(drafts) => drafts,
        Err(name) => return Some(SchemaFault::Dialect(short(&name))),
    };
    let mut first = None;
    for draft in drafts {
        let errors = meta(*draft)?;
        let broken = errors.iter_errors(&value).find(|error| {
            // Formats are advice.
            !matches!(error.kind(), ValidationErrorKind::Format { .. })
        })?;
        first.get_or_insert(SchemaFault::Broken(words(&broken)));
    }
    first
}

/// What is wrong, and where.
fn words(error: &ValidationError<'_>) -> String {
    let text = match error.kind() {
        ValidationErrorKind::AnyOf { .. } | ValidationErrorKind::OneOfNotValid { .. } => {
            format!("{} fits none of its alternatives", short(&error.instance().to_string()))
        }
        _ => short(&error.to_string()),
    };
    let place = error.instance_path().to_string();
    if place.is_empty() { text } else { format!("{}: {text}", short(&place)) }
}

fn read(schema: &str) -> Option<Value> {
    if schema.len() > SCHEMA_BYTES {
        return None;
    }
    serde_json::from_str(schema).ok().filter(|value| weight::depth(value) <= weight::DEPTH)
}

/// The dialects that a schema may be written in; an error holds one that is not known.
fn dialect(schema: &Value, era: Option<Era>) -> Result<&'static [Draft], String> {
    let Some(named) = schema.get("$schema") else { return Ok(drafts_of(era)) };
    let Some(name) = named.as_str() else { return Err(named.to_string()) };
    let bare = name.trim_end_matches('#');
    let bare = bare.strip_prefix("https://").or_else(|| bare.strip_prefix("http://")).unwrap_or(bare);
    Ok(match bare {
        "json-schema.org/draft/2020-12/schema" => &[Draft::Draft202012],
        "json-schema.org/draft/2019-09/schema" => &[Draft::Draft201909],
        "json-schema.org/draft-07/schema" => &[Draft::Draft7],
        "json-schema.org/draft-06/schema" => &[Draft::Draft6],
        "json-schema.org/draft-04/schema" => &[Draft::Draft4],
        _ => return Err(name.to_owned()),
    })
}

/// A schema that names no dialect is of 2020-12 since 2025-11-25 (spec basic/index#json-schema-usage);
/// before, nobody said, and generators wrote either of two.
fn drafts_of(era: Option<Era>) -> &'static [Draft] {
    if era.is_some_and(|era| era >= Era::V2025_11_25) {
        &[Draft::Draft202012]
    } else {
        &[Draft::Draft202012, Draft::Draft7]
    }
}

/// The meta-schema of a dialect.
fn meta(draft: Draft) -> Option<jsonschema::meta::MetaValidator<'static>> {
    Some(match draft {
        Draft::Draft4 => jsonschema::draft4::meta::validator(),
        Draft::Draft6 => jsonschema::draft6::meta::validator(),
        Draft::Draft7 => jsonschema::draft7::meta::validator(),
        Draft::Draft201909 => jsonschema::draft201909::meta::validator(),
        Draft::Draft202012 => jsonschema::draft202012::meta::validator(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests;

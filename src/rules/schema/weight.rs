//! How much work a schema can be made to do.
//!
//! A few lines of references that each name the next one twice unfold to more steps than there is
//! time for, and a reference to itself need never end. So a schema is weighed before it is used: what
//! it unfolds to, how often it comes back to itself, and how deep.

use std::collections::HashMap;

use serde_json::Value;

/// Levels of nesting, references followed. ours: what a small stack bears.
pub(super) const DEPTH: usize = 48;

/// Levels of a value, where the schema comes back to itself. ours: depths multiply.
const LOOP_DEPTH: usize = 16;

/// Steps that a schema may unfold to. ours.
const NODES: u64 = 20_000;

/// Steps of one check: what the schema unfolds to for each part of the value. ours: a tenth of a
/// second.
const STEPS: u64 = 4_000_000;

/// Bytes that patterns may have to read in one check, in all. ours.
const PATTERN_BYTES: usize = 512 << 10;

/// What a schema unfolds to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Weight {
    nodes: u64,
    /// How often it comes back to a part of itself.
    loops: u64,
    height: usize,
    patterns: usize,
}

impl Weight {
    /// A value of this many bytes can be checked in good time.
    pub(super) fn allows(self, value: &Value, bytes: usize) -> bool {
        let depth = depth(value);
        if depth > DEPTH || (self.loops > 0 && depth > LOOP_DEPTH) {
            return false;
        }
        let rounds = u32::try_from(depth).ok().and_then(|depth| self.loops.max(1).checked_pow(depth));
        let steps = rounds.and_then(|rounds| rounds.checked_mul(self.nodes)?.checked_mul(count(value)));
        steps.is_some_and(|steps| steps <= STEPS) && self.patterns.saturating_mul(bytes) <= PATTERN_BYTES
    }
}

/// Weighs a schema; `None`: it is too heavy, has no end, or refers to what is not in it.
pub(super) fn weigh(root: &Value) -> Option<Weight> {
    let mut scale = Scale { root, known: HashMap::new(), in_place: HashMap::new(), patterns: 0 };
    let weight = scale.weigh(root, 0)?;
    let is_light = weight.nodes <= NODES && weight.height <= DEPTH;
    is_light.then_some(Weight { patterns: scale.patterns, ..weight })
}

/// Levels of nesting.
pub(super) fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

fn count(value: &Value) -> u64 {
    match value {
        Value::Array(items) => 1 + items.iter().map(count).sum::<u64>(),
        Value::Object(members) => 1 + members.values().map(count).sum::<u64>(),
        _ => 1,
    }
}

struct Scale<'a> {
    root: &'a Value,
    /// By the place of the schema in memory; `None`: it is being weighed.
    known: HashMap<usize, Option<Weight>>,
    /// Whether following what applies to the same value is done with, by the place of the schema.
    in_place: HashMap<usize, bool>,
    patterns: usize,
}

/// A schema inside another one.
struct Part<'a> {
    schema: &'a Value,
    /// It applies to the same value, not to a part of it.
    is_in_place: bool,
}

impl<'a> Scale<'a> {
    fn weigh(&mut self, schema: &'a Value, depth: usize) -> Option<Weight> {
        let place = std::ptr::from_ref(schema).addr();
        match self.known.get(&place) {
            Some(Some(weight)) => return Some(*weight),
            Some(None) => return Some(Weight { nodes: 1, loops: 1, ..Weight::default() }),
            None if depth > DEPTH => return None,
            None => {}
        }
        self.known.insert(place, None);
        self.comes_to_an_end(schema, 0).then_some(())?;
        let mut sum = Weight { nodes: self.own(schema), ..Weight::default() };
        for part in self.parts(schema)? {
            let weight = self.weigh(part.schema, depth + 1)?;
            sum.nodes = sum.nodes.saturating_add(weight.nodes);
            sum.loops = sum.loops.saturating_add(weight.loops);
            sum.height = sum.height.max(weight.height + 1);
        }
        self.known.insert(place, Some(sum));
        Some(sum)
    }

    /// What applies to the same value does not come back to itself.
    fn comes_to_an_end(&mut self, schema: &'a Value, depth: usize) -> bool {
        let place = std::ptr::from_ref(schema).addr();
        if let Some(is_done) = self.in_place.get(&place) {
            return *is_done;
        }
        self.in_place.insert(place, false);
        let parts = if depth > DEPTH { None } else { self.parts(schema) };
        let ends = parts.is_some_and(|parts| {
            let mut same = parts.into_iter().filter(|part| part.is_in_place);
            same.all(|part| self.comes_to_an_end(part.schema, depth + 1))
        });
        if ends {
            self.in_place.insert(place, true);
        }
        ends
    }

    /// Steps of a schema's own words.
    fn own(&mut self, schema: &Value) -> u64 {
        let Value::Object(members) = schema else { return 1 };
        let mut steps = 1;
        for (name, value) in members {
            let len = match value {
                Value::Array(items) => items.len(),
                Value::Object(members) => members.len(),
                _ => 1,
            };
            steps += len as u64;
            self.patterns += match name.as_str() {
                "pattern" => 1,
                "patternProperties" => len,
                _ => 0,
            };
        }
        steps
    }

    /// The schemas that one applies; `None`: a reference leads out of it, or its base is not clear.
    fn parts(&self, schema: &'a Value) -> Option<Vec<Part<'a>>> {
        let Value::Object(members) = schema else { return Some(Vec::new()) };
        let mut parts = Vec::new();
        let is_root = std::ptr::eq(schema, self.root);
        for (name, value) in members {
            let is_in_place = matches!(
                name.as_str(),
                "allOf"
                    | "anyOf"
                    | "oneOf"
                    | "not"
                    | "if"
                    | "then"
                    | "else"
                    | "dependentSchemas"
                    | "dependencies"
            );
            let mut add = |schema| parts.push(Part { schema, is_in_place });
            match name.as_str() {
                "$ref" => {
                    let schema = self.resolve(value.as_str()?)?;
                    parts.push(Part { schema, is_in_place: true });
                }
                "$dynamicRef" | "$recursiveRef" => return None,
                "$id" | "id" if value.is_string() && !is_root => return None,
                "allOf" | "anyOf" | "oneOf" | "prefixItems" => value.as_array()?.iter().for_each(add),
                "items" if value.is_array() => value.as_array()?.iter().for_each(add),
                "not"
                | "if"
                | "then"
                | "else"
                | "items"
                | "additionalItems"
                | "contains"
                | "additionalProperties"
                | "propertyNames"
                | "unevaluatedItems"
                | "unevaluatedProperties" => {
                    add(value);
                }
                "properties" | "patternProperties" | "dependentSchemas" | "dependencies" => {
                    value.as_object()?.values().filter(|value| !value.is_array()).for_each(add);
                }
                _ => {}
            }
        }
        Some(parts)
    }

    fn resolve(&self, reference: &str) -> Option<&'a Value> {
        let pointer = reference.strip_prefix('#')?;
        if pointer.contains('%') {
            return None;
        }
        self.root.pointer(pointer)
    }
}

//! Each tool by itself: members, name, schemas (TOOL-01, 02, 15, 16).

use crate::rules::Severity;
use crate::rules::book::{Book, On};
use crate::rules::case::{Case, short};
use crate::rules::findings::Out;
use crate::rules::listing::{items, say, string_fault};
use crate::rules::schema::{self, Kept, SchemaFault};
use crate::spec::lists::ListKind;
use crate::wire::json::Value;

/// Characters of a tool name, at most.
const NAME_CHARS: usize = 128;

/// The members of a tool that hold a schema.
const SCHEMAS: [&str; 2] = ["inputSchema", "outputSchema"];

const LIST: &[On] = &[On::ResultOf("tools/list")];

pub(super) fn rules(book: &mut Book) {
    book.rule("TOOL-01", LIST, whole);
    book.rule("TOOL-02", LIST, well_named);
    let mut kept = Kept::default();
    book.rule("TOOL-15", LIST, move |case: &Case<'_>, out: &mut Out<'_>| sound(&mut kept, case, out));
    book.rule("TOOL-16", LIST, local);
}

fn whole(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(result) = case.result() else { return };
    let mut faults = Vec::new();
    match result.get("tools") {
        Some(tools) if tools.is_array() => {}
        Some(_) => faults.push("tools is no array".to_owned()),
        None => faults.push("there is no array of tools".to_owned()),
    }
    for (name, tool) in items(case, ListKind::Tools) {
        let fault = string_fault(tool, "name").or_else(|| {
            let schema = match tool.get("inputSchema") {
                Some(schema) if schema.is_object() => schema,
                Some(schema) => {
                    return Some(format!("inputSchema is {}, not an object", short(schema.raw())));
                }
                None => return Some("inputSchema is missing".to_owned()),
            };
            match schema.get("type") {
                Some(kind) if kind.is_text("object") => None,
                Some(kind) => Some(format!("inputSchema is of type {}, not \"object\"", short(kind.raw()))),
                None => Some("inputSchema has no type \"object\"".to_owned()),
            }
        });
        faults.extend(fault.map(|fault| format!("{name}: {fault}")));
    }
    say(case, out, Severity::Error, &faults);
}

fn well_named(case: &Case<'_>, out: &mut Out<'_>) {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-' | '.');
    let mut faults = Vec::new();
    for (_, tool) in items(case, ListKind::Tools) {
        let Some(name) = tool.get("name").and_then(Value::text) else { continue };
        let length = name.chars().count();
        if length == 0 {
            faults.push("a tool has an empty name".to_owned());
        } else if length > NAME_CHARS {
            faults.push(format!("the name {} has {length} characters", short(&name)));
        } else if let Some(odd) = name.chars().find(|char| !is_plain(*char)) {
            faults.push(format!("the name {} holds {odd:?}", short(&name)));
        }
    }
    say(case, out, Severity::Warning, &faults);
}

fn sound(kept: &mut Kept<Option<SchemaFault>>, case: &Case<'_>, out: &mut Out<'_>) {
    let (mut broken, mut unknown) = (Vec::new(), Vec::new());
    for (name, tool) in items(case, ListKind::Tools) {
        for member in SCHEMAS {
            let Some(schema) = tool.get(member).filter(|schema| schema.is_object()) else { continue };
            let text = schema.raw();
            match kept.get(text, case.era(), || schema::fault(text, case.era())) {
                Some(SchemaFault::Broken(how)) => broken.push(format!("{member} of {name}: {how}")),
                Some(SchemaFault::Dialect(dialect)) => {
                    unknown.push(format!("{member} of {name} is of the unknown dialect {dialect}"));
                }
                None => {}
            }
        }
    }
    say(case, out, Severity::Warning, &broken);
    say(case, out, Severity::Hint, &unknown);
}

fn local(case: &Case<'_>, out: &mut Out<'_>) {
    let mut faults = Vec::new();
    for (name, tool) in items(case, ListKind::Tools) {
        for schema in SCHEMAS.iter().filter_map(|member| tool.get(member)) {
            let text = schema.raw();
            if !(text.contains("\"$ref\"") && text.contains("http")) {
                continue;
            }
            let mut found = Refs::default();
            found.look(schema);
            let mut far = found.refs.iter().filter(|far| {
                let document = far.split('#').next().unwrap_or_default();
                !found.ids.iter().any(|id| id.trim_end_matches('#') == document)
            });
            faults.extend(far.next().map(|far| format!("a schema of {name} refers to {}", short(far))));
        }
    }
    say(case, out, Severity::Hint, &faults);
}

/// References of a schema to the network, and the names that its parts have there.
#[derive(Default)]
struct Refs {
    refs: Vec<String>,
    ids: Vec<String>,
}

impl Refs {
    fn look(&mut self, schema: Value<'_>) {
        let mut open = vec![schema];
        while let Some(value) = open.pop() {
            open.extend(value.items());
            for (name, value) in value.members() {
                match &*name {
                    "const" | "enum" | "default" | "examples" => continue,
                    "$ref" => self.refs.extend(web(value)),
                    "$id" => self.ids.extend(web(value)),
                    _ => {}
                }
                open.push(value);
            }
        }
    }
}

/// A URI of the web.
fn web(value: Value<'_>) -> Option<String> {
    let text = value.text()?;
    (text.starts_with("https://") || text.starts_with("http://")).then(|| text.into_owned())
}

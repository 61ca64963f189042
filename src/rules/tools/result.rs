//! What a tool gives back: content blocks and structured content (TOOL-06..11, 14).

use crate::model::Definition;
use crate::rules::Severity;
use crate::rules::book::{Book, On};
use crate::rules::case::{Case, short};
use crate::rules::findings::Out;
use crate::rules::listing::{base64_fault, is_complete, listed, say, string_fault};
use crate::rules::schema::{Kept, Schema};
use crate::spec::era::Era;
use crate::spec::lists::ListKind;
use crate::wire::json::Value;

const CALL: &[On] = &[On::ResultOf("tools/call")];

pub(super) fn rules(book: &mut Book) {
    book.rule("TOOL-06", CALL, structured);
    let mut kept = Kept::default();
    book.rule("TOOL-07", CALL, move |case: &Case<'_>, out: &mut Out<'_>| conforms(&mut kept, case, out));
    book.rule("TOOL-08", CALL, text_too);
    book.rule("TOOL-09", CALL, object_only);
    book.rule("TOOL-10", CALL, content);
    book.rule("TOOL-11", &[On::ResultOf("tools/call"), On::ResultOf("prompts/get")], media);
    book.rule("TOOL-14", CALL, unknown_tool);
}

/// The whole result of a tool that did not fail.
fn success<'a>(case: &Case<'a>) -> Option<Value<'a>> {
    let result = case.result().filter(|_| is_complete(case))?;
    let is_error = result.get("isError").and_then(Value::bool) == Some(true);
    (!is_error && result.is_object()).then_some(result)
}

/// The output schema of the called tool, as its caller was told it, while that is current.
fn output_schema<'a>(case: &Case<'a>) -> Option<(Definition<'a>, Value<'a>)> {
    let known = case.model.definition(case.seen.call?).filter(|known| known.is_current)?;
    Some((known, known.value.get("outputSchema").filter(|schema| schema.is_object())?))
}

fn structured(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(result) = success(case).filter(|result| result.get("structuredContent").is_none()) else {
        return;
    };
    let Some((known, _)) = output_schema(case) else { return };
    let subject = case.subject();
    let draft = with_row(out.draft(case), case, known);
    draft.gather(out, (case.seen.scope, case.call().and_then(|call| call.target)), |times| {
        let often = if times == 1 { String::new() } else { format!(", {times} times by now") };
        let brings = result.members().map(|(name, _)| short(&name)).collect::<Vec<_>>().join(", ");
        format!("the tool has an outputSchema, and the result of {subject} has no structuredContent (it has {brings}){often}")
    });
}

fn conforms(kept: &mut Kept<Option<Schema>>, case: &Case<'_>, out: &mut Out<'_>) {
    let Some(content) = success(case).and_then(|result| result.get("structuredContent")) else { return };
    let Some((known, schema)) = output_schema(case) else { return };
    let (text, era) = (schema.raw(), case.era());
    let ready = kept.get(text, era, || Schema::compile(text, era));
    let Some(error) = ready.as_ref().and_then(|schema| schema.first_error(content.raw())) else { return };
    let subject = case.subject();
    let draft = with_row(out.draft(case), case, known);
    draft.say(out, format!("structuredContent of {subject} does not fit its outputSchema: {error}"));
}

fn text_too(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(result) = success(case).filter(|result| result.get("structuredContent").is_some()) else {
        return;
    };
    let Some(content) = result.get("content").filter(|content| content.is_array()) else { return };
    if content.items().any(|block| block.get("type").is_some_and(|kind| kind.is_text("text"))) {
        return;
    }
    let subject = case.subject();
    out.gather(case, (case.seen.scope, case.call().and_then(|call| call.target)), |times| {
        let often = if times == 1 { String::new() } else { format!(" ({times} results)") };
        format!("{subject} gave structuredContent and no text, which older clients cannot read{often}")
    });
}

fn object_only(case: &Case<'_>, out: &mut Out<'_>) {
    let content = case.result().and_then(|result| result.get("structuredContent"));
    let Some(content) = content.filter(|content| !content.is_object()) else { return };
    let fault = format!("structuredContent is {}, not an object", short(content.raw()));
    say(case, out, Severity::Error, &[fault]);
}

fn content(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(result) = case.result().filter(|result| result.is_object() && is_complete(case)) else { return };
    let (mut wrong, mut early) = (Vec::new(), Vec::new());
    match result.get("content") {
        Some(content) if content.is_array() => {
            for (idx, block) in content.items().enumerate() {
                match block_fault(block, case.era()) {
                    Some((fault, false)) => wrong.push(format!("block {}: {fault}", idx + 1)),
                    Some((fault, true)) => early.push(format!("block {}: {fault}", idx + 1)),
                    None => {}
                }
            }
        }
        Some(content) => wrong.push(format!("content is {}, not an array", short(content.raw()))),
        None => wrong.push("the result has no content".to_owned()),
    }
    say(case, out, Severity::Error, &wrong);
    say(case, out, Severity::Warning, &early);
}

/// What is wrong with a content block, and whether it is only ahead of its era.
pub(in crate::rules) fn block_fault(block: Value<'_>, era: Option<Era>) -> Option<(String, bool)> {
    let Some(kind) = block.get("type").and_then(Value::text) else {
        let is_object = block.is_object();
        return Some((if is_object { "it has no type" } else { "it is no object" }.to_owned(), false));
    };
    let since = match &*kind {
        "text" | "image" | "resource" => return None,
        "audio" => Era::V2025_03_26,
        "resource_link" => Era::V2025_06_18,
        _ => return Some((format!("there is no type {}", short(&kind)), false)),
    };
    let era = era.filter(|era| *era < since)?;
    Some((format!("type {kind} came with {}, here is {}", since.as_str(), era.as_str()), true))
}

fn media(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(result) = case.result() else { return };
    let of_tool = result.get("content").into_iter().flat_map(Value::items);
    let messages = result.get("messages").into_iter().flat_map(Value::items);
    let of_prompt = messages.filter_map(|message| message.get("content"));
    let mut faults = Vec::new();
    for (idx, block) in of_tool.chain(of_prompt).enumerate() {
        let is_media = |kind: Value<'_>| kind.is_text("image") || kind.is_text("audio");
        if block.get("type").is_some_and(is_media) {
            let fault = base64_fault(block, "data").or_else(|| string_fault(block, "mimeType"));
            faults.extend(fault.map(|fault| format!("block {}: {fault}", idx + 1)));
        }
    }
    say(case, out, Severity::Error, &faults);
}

fn unknown_tool(case: &Case<'_>, out: &mut Out<'_>) {
    let result = case.result().and_then(|result| result.get("isError")).and_then(Value::bool);
    let Some(call) = case.call().filter(|_| result == Some(true)) else { return };
    let Some(name) = call.target.map(|target| case.model.text(target)) else { return };
    let is_absent = listed(case, ListKind::Tools)
        .is_some_and(|tools| tools.is_current() && tools.definition(name).is_none());
    if is_absent {
        let subject = case.subject();
        out.gather(case, (case.seen.scope, call.target), |times| {
            let often = if times == 1 { String::new() } else { format!(", {times} times by now") };
            format!("{subject} names a tool that is not in the list, and was answered by a failing result, not by an error{often}")
        });
    }
}

/// A finding with the page that defines the tool as evidence.
fn with_row(
    draft: crate::rules::findings::Draft,
    case: &Case<'_>,
    known: Definition<'_>,
) -> crate::rules::findings::Draft {
    match case.model.row(known.row) {
        Some(row) => draft.and_event(row.n),
        None => draft,
    }
}

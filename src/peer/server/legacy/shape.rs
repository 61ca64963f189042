//! Answers in the shape of an older revision.
//!
//! Handlers answer as 2026-07-28 has it. What a revision does not know is left out here, at the
//! end, or said in words where leaving it out would lose what the caller asked for.

use serde_json::{Map, Value, json};

use crate::peer::server::core::{Answer, Ended};
use crate::peer::server::message::{Refusal, Request};
use crate::spec::codes;
use crate::spec::era::Era;
use crate::spec::methods;

/// Members of tools, prompts, resources and templates, and the revision that brought them.
const LISTED: &[(&str, Era)] = &[
    ("annotations", Era::V2025_03_26),
    ("title", Era::V2025_06_18),
    ("outputSchema", Era::V2025_06_18),
    ("icons", Era::V2025_11_25),
];

/// Members of a result that no legacy revision has.
const MODERN: [&str; 3] = ["resultType", "ttlMs", "cacheScope"];

/// Kinds of content and the revision that brought them; the others were there from the start.
const CONTENT: &[(&str, Era)] = &[("audio", Era::V2025_03_26), ("resource_link", Era::V2025_06_18)];

/// What a handler gave back, as this revision has it; the modern one has it as it is.
pub(in crate::peer::server) fn answer(era: Era, request: &Request, given: Answer) -> Answer {
    if era.is_modern() {
        return given;
    }
    match given {
        Ok(given) => Ok(result(era, &request.method, given)),
        Err(Ended::Refused(given)) => {
            let is_call = request.method == methods::TOOLS_CALL;
            if is_call && given.code == codes::MISSING_REQUIRED_CLIENT_CAPABILITY {
                // There is no error for it; the model is told.
                return Err(Ended::Failed(given.message));
            }
            Err(Ended::Refused(refusal(&request.method, given)))
        }
        Err(ended) => Err(ended),
    }
}

/// A result as this revision has it.
pub(super) fn result(era: Era, method: &str, mut result: Map<String, Value>) -> Map<String, Value> {
    for name in MODERN {
        result.remove(name);
    }
    match method {
        methods::TOOLS_CALL => {
            let is_known = era >= Era::V2025_06_18;
            result.retain(|name, value| name != "structuredContent" || (is_known && value.is_object()));
            blocks(era, result.get_mut("content"));
        }
        methods::PROMPTS_GET => {
            let messages = result.get_mut("messages").and_then(Value::as_array_mut);
            for message in messages.into_iter().flatten() {
                if let Some(content) = message.get_mut("content") {
                    block(era, content);
                }
            }
        }
        _ => {
            for listed in ["tools", "prompts", "resources", "resourceTemplates"] {
                let items = result.get_mut(listed).and_then(Value::as_array_mut);
                // Resources had annotations from the start; tools had none.
                let had_annotations = listed != "tools";
                for item in items.into_iter().flatten().filter_map(Value::as_object_mut) {
                    item.retain(|name, value| is_listed(era, name, value, had_annotations));
                }
            }
        }
    }
    result
}

/// The revision has this member of a listed thing.
fn is_listed(era: Era, name: &str, value: &Value, had_annotations: bool) -> bool {
    let brought = LISTED.iter().find(|(member, _)| *member == name);
    let is_known = brought.is_none_or(|(_, since)| era >= *since);
    match name {
        "annotations" => is_known || had_annotations,
        // Until 2026-07-28 structured content is an object, and so is what its schema describes.
        "outputSchema" => is_known && value.get("type").is_some_and(|kind| kind == "object"),
        _ => is_known,
    }
}

fn blocks(era: Era, content: Option<&mut Value>) {
    for one in content.and_then(Value::as_array_mut).into_iter().flatten() {
        block(era, one);
    }
}

/// One piece of content; a kind that the revision does not know becomes a text that says what it
/// was.
fn block(era: Era, content: &mut Value) {
    let kind = content.get("type").and_then(Value::as_str).unwrap_or_default();
    let Some((_, since)) = CONTENT.iter().find(|(name, _)| *name == kind) else { return };
    if era >= *since {
        return;
    }
    let about = ["uri", "mimeType"].into_iter().filter_map(|name| content.get(name)?.as_str());
    let about = about.collect::<Vec<_>>().join(", ");
    let text = format!("[{kind}: {about}; revision {} has no such content]", era.as_str());
    *content = json!({ "type": "text", "text": text });
}

/// What the server says in its answer to `initialize` that it can do, from what it says in
/// `server/discover`.
pub(super) fn capabilities(era: Era, mut capabilities: Map<String, Value>) -> Map<String, Value> {
    capabilities.remove("extensions");
    if era < Era::V2025_03_26 {
        // It completes all the same; that revision declares it nowhere.
        capabilities.remove("completions");
    }
    capabilities.insert("logging".to_owned(), json!({}));
    if era == Era::V2025_11_25 {
        let calls = json!({ "tools": { "call": {} } });
        capabilities.insert("tasks".to_owned(), json!({ "list": {}, "cancel": {}, "requests": calls }));
    }
    capabilities
}

/// An error as this revision has it. Its status is 200 where it answers a request: a legacy client
/// takes 404 for the end of its session and 400 for its own fault in the transport.
pub(super) fn refusal(method: &str, refusal: Refusal) -> Refusal {
    let code = match refusal.code {
        codes::INVALID_PARAMS if method == methods::RESOURCES_READ => codes::RESOURCE_NOT_FOUND,
        // What a client cannot do is a matter of the session, agreed on at its start.
        codes::MISSING_REQUIRED_CLIENT_CAPABILITY => codes::INVALID_REQUEST,
        code => code,
    };
    let data = refusal.data.filter(|_| refusal.code != codes::MISSING_REQUIRED_CLIENT_CAPABILITY);
    Refusal { code, data, status: 200, ..refusal }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Era::{V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25};

    const ERAS: [Era; 4] = [V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25];

    fn object(value: Value) -> Map<String, Value> {
        serde_json::from_value(value).unwrap()
    }

    /// In which of the four revisions the value at a pointer is there.
    fn eras_of(method: &str, whole: &Value, pointer: &str) -> Vec<Era> {
        let has =
            |era: &Era| Value::Object(result(*era, method, object(whole.clone()))).pointer(pointer).is_some();
        ERAS.into_iter().filter(has).collect()
    }

    #[test]
    fn a_member_is_told_from_the_revision_on_that_brought_it() {
        let tool = json!({ "resultType": "complete", "ttlMs": 1, "cacheScope": "public", "nextCursor": "n", "tools": [
            { "name": "a", "title": "A", "inputSchema": {}, "annotations": {}, "icons": [], "outputSchema": { "type": "object" } },
            { "name": "b", "outputSchema": { "type": "array" } },
        ]});
        let resource =
            json!({ "resources": [{ "uri": "a:b", "annotations": {}, "title": "A", "icons": [] }] });
        let call = json!({ "content": [], "structuredContent": { "a": 1 }, "isError": true });
        let list = json!({ "content": [], "structuredContent": [1] });
        let cases: [(&str, &Value, &str, &[Era]); 18] = [
            ("tools/list", &tool, "/resultType", &[]),
            ("tools/list", &tool, "/ttlMs", &[]),
            ("tools/list", &tool, "/cacheScope", &[]),
            ("tools/list", &tool, "/nextCursor", &ERAS),
            ("tools/list", &tool, "/tools/0/name", &ERAS),
            ("tools/list", &tool, "/tools/0/inputSchema", &ERAS),
            ("tools/list", &tool, "/tools/0/annotations", &ERAS[1..]),
            ("tools/list", &tool, "/tools/0/title", &ERAS[2..]),
            ("tools/list", &tool, "/tools/0/outputSchema", &ERAS[2..]),
            ("tools/list", &tool, "/tools/0/icons", &ERAS[3..]),
            ("tools/list", &tool, "/tools/1/outputSchema", &[]),
            ("resources/list", &resource, "/resources/0/annotations", &ERAS),
            ("resources/list", &resource, "/resources/0/title", &ERAS[2..]),
            ("resources/list", &resource, "/resources/0/icons", &ERAS[3..]),
            ("tools/call", &call, "/structuredContent", &ERAS[2..]),
            ("tools/call", &call, "/isError", &ERAS),
            ("tools/call", &list, "/structuredContent", &[]),
            ("resources/read", &json!({ "contents": [], "ttlMs": 0 }), "/contents", &ERAS),
        ];
        for (method, whole, pointer, eras) in cases {
            assert_eq!(eras_of(method, whole, pointer), eras, "{method} {pointer}");
        }
    }

    #[test]
    fn content_that_a_revision_does_not_know_is_told_in_words() {
        let audio = json!({ "type": "audio", "data": "AA==", "mimeType": "audio/wav" });
        let link = json!({ "type": "resource_link", "uri": "a:b", "name": "b" });
        let text = json!({ "type": "text", "text": "t" });
        for (content, since) in [(&audio, V2025_03_26), (&link, V2025_06_18), (&text, V2024_11_05)] {
            for era in ERAS {
                let called = result(era, "tools/call", object(json!({ "content": [content] })));
                let got = result(era, "prompts/get", object(json!({ "messages": [{ "content": content }] })));
                assert_eq!(called["content"][0] == *content, era >= since, "{content} {era:?}");
                assert_eq!(got["messages"][0]["content"], called["content"][0]);
                if era < since {
                    assert_eq!(called["content"][0]["type"], "text");
                }
            }
        }
    }

    #[test]
    fn capabilities_and_errors_are_those_of_the_revision() {
        let modern =
            json!({ "tools": { "listChanged": true }, "completions": {}, "extensions": { "x/y": {} } });
        for era in ERAS {
            let mut told = capabilities(era, object(modern.clone()));
            assert_eq!(told.remove("tasks").is_some(), era == V2025_11_25);
            let mut expected = object(json!({ "tools": { "listChanged": true }, "logging": {} }));
            if era > V2024_11_05 {
                expected.insert("completions".to_owned(), json!({}));
            }
            assert_eq!(told, expected, "{era:?}");
        }
        let cases = [
            ("resources/read", -32602, -32002),
            ("tools/call", -32602, -32602),
            ("tools/call", -32021, -32600),
            ("nonsense", -32601, -32601),
            ("tools/call", -32603, -32603),
        ];
        for (method, code, expected) in cases {
            let told = refusal(method, Refusal::new(None, code, "why").with_data(json!({ "a": 1 })));
            assert_eq!((told.code, told.status), (expected, 200), "{method} {code}");
            assert_eq!(told.data.is_some(), code != -32021);
        }
    }
}

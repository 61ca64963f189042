//! Features that were not agreed on in the handshake (VER-19).

use crate::rules::book::{Book, On};
use crate::rules::case::{Case, count, short};
use crate::rules::findings::Out;

pub(super) fn rules(book: &mut Book) {
    book.rule("VER-19", &[On::Request], not_negotiated);
}

/// The capability of its receiver that a request needs, as a path.
fn needed(method: &str) -> Option<&'static [&'static str]> {
    Some(match method {
        "resources/subscribe" | "resources/unsubscribe" => &["resources", "subscribe"],
        "logging/setLevel" => &["logging"],
        "completion/complete" => &["completions"],
        "sampling/createMessage" => &["sampling"],
        "elicitation/create" => &["elicitation"],
        "roots/list" => &["roots"],
        _ => match method.split_once('/')?.0 {
            "tools" => &["tools"],
            "prompts" => &["prompts"],
            "resources" => &["resources"],
            "tasks" => &["tasks"],
            _ => return None,
        },
    })
}

fn not_negotiated(case: &Case<'_>, out: &mut Out<'_>) {
    let method = case.method();
    let Some(path) = needed(method) else { return };
    let (declared, receiver) = if case.is_from_client() {
        (case.server_capabilities(), "server")
    } else {
        (case.client_capabilities(), "client")
    };
    let Some(declared) = declared else { return };
    let is_declared = declared.at(path).is_some_and(|value| value.bool() != Some(false));
    if !is_declared {
        out.gather(case, (case.seen.scope, path), |times| {
            let capability = path.join(".");
            let last = short(method);
            format!("{} of {last} to a {receiver} without {capability}", count(times, "request"))
        });
    }
}

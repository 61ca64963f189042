//! A resource that depends on who reads it, and asks.

use serde_json::json;

use super::{Family, private, text};
use crate::peer::server::prompts;

const GREETING: &str = "greeting://reader";

pub(super) const FAMILY: Family = Family {
    list: |_| {
        let description = "Asks for a name first; needs the client capability elicitation";
        vec![json!({
            "uri": GREETING, "name": "greeting", "description": description, "mimeType": "text/plain",
        })]
    },
    templates: Vec::new,
    is_known: |_, uri| uri == GREETING,
    read: |uri, ctx| {
        Box::pin(async move {
            let name = prompts::ask_name(ctx).await?;
            Ok(private(text(uri, "text/plain", &format!("Hello, {name}"))))
        })
    },
    suggest: |_, _, _| None,
};

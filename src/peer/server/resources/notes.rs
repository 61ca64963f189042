//! Notes: resources that clients can change.

use serde_json::json;

use super::{Family, missing, text};
use crate::peer::server::store;

const TEMPLATE: &str = "notes://{name}";
const MIME_TYPE: &str = "text/plain";

pub(super) const FAMILY: Family = Family {
    list: |core| {
        let entry = |name: String| {
            let size = core.store.note(&name).map_or(0, |text| text.len());
            json!({ "uri": store::uri(&name), "name": name, "mimeType": MIME_TYPE, "size": size })
        };
        core.store.names().into_iter().map(entry).collect()
    },
    templates: || {
        let description = "A note; the tool note_write changes it";
        vec![json!({
            "uriTemplate": TEMPLATE, "name": "note", "description": description, "mimeType": MIME_TYPE,
        })]
    },
    is_known: |_, uri| store::name(uri).is_some(),
    read: |uri, ctx| {
        Box::pin(async move {
            let note = store::name(uri).and_then(|name| ctx.core().store.note(name));
            note.map(|note| text(uri, MIME_TYPE, &note)).ok_or_else(|| missing(ctx.request(), uri))
        })
    },
    suggest: |core, template, variable| {
        (template == TEMPLATE && variable == "name").then(|| core.store.names())
    },
};

//! Resources of the suite.

use serde_json::json;

use crate::peer::server::catalogue::cached;
use crate::peer::server::resources::{Family, PNG, missing, text};

const TEXT: &str = "test://static-text";
/// Watched by scenarios of the older revisions.
const WATCHED: &str = "test://watched-resource";
const BINARY: &str = "test://static-binary";

pub(in crate::peer::server) const FAMILY: Family = Family {
    list: |_| {
        vec![
            json!({ "uri": TEXT, "name": "static-text", "mimeType": "text/plain" }),
            json!({ "uri": BINARY, "name": "static-binary", "mimeType": "image/png" }),
            json!({ "uri": WATCHED, "name": "watched-resource", "mimeType": "text/plain" }),
        ]
    },
    templates: || {
        vec![json!({
            "uriTemplate": "test://template/{id}/data", "name": "data", "mimeType": "application/json",
        })]
    },
    is_known: |_, uri| [TEXT, BINARY, WATCHED].contains(&uri) || id(uri).is_some(),
    read: |uri, ctx| {
        Box::pin(async move {
            if uri == BINARY {
                let blob = json!({ "uri": uri, "mimeType": "image/png", "blob": PNG });
                return Ok(cached(json!({ "contents": [blob] })));
            }
            if uri == TEXT {
                return Ok(text(uri, "text/plain", "This is the content of the static text resource."));
            }
            if uri == WATCHED {
                return Ok(text(uri, "text/plain", "This resource is watched."));
            }
            let Some(id) = id(uri) else { return Err(missing(ctx.request(), uri)) };
            let data = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
            Ok(text(uri, "application/json", &data.to_string()))
        })
    },
    suggest: |_, _, _| None,
};

/// The variable of the template in a URI.
fn id(uri: &str) -> Option<&str> {
    let id = uri.strip_prefix("test://template/")?.strip_suffix("/data")?;
    (!id.is_empty() && !id.contains('/')).then_some(id)
}

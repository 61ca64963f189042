//! Resources that never change: bytes, one that takes its time, and one that comes and goes.

use serde_json::json;

use super::{Family, missing, text};
use crate::peer::server::catalogue::cached;
use crate::peer::server::store::Extra;
use crate::time::Ms;

const PIXEL: &str = "pixel://red";
const EXTRA: &str = "extra://resource";
const SLOW: &str = "slow://";
const SLOW_TEMPLATE: &str = "slow://{ms}";

/// One red pixel as PNG, in Base64.
pub(in crate::peer::server) const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";

/// Longest time that reading may take, ms: one hour. ours.
const LONGEST_MS: u64 = 3_600_000;

/// Steps in which a slow resource tells progress.
const STEPS: u32 = 4;

pub(super) const FAMILY: Family = Family {
    list: |core| {
        let mut list = vec![json!({ "uri": PIXEL, "name": "pixel", "mimeType": "image/png" })];
        if core.store.has(Extra::Resource) {
            list.push(json!({ "uri": EXTRA, "name": "extra", "mimeType": "text/plain" }));
        }
        list
    },
    templates: || {
        let description = "Takes so many milliseconds to read, and tells progress";
        vec![json!({
            "uriTemplate": SLOW_TEMPLATE, "name": "slow", "description": description, "mimeType": "text/plain",
        })]
    },
    is_known: |core, uri| {
        uri == PIXEL || (uri == EXTRA && core.store.has(Extra::Resource)) || slowness(uri).is_some()
    },
    read: |uri, ctx| {
        Box::pin(async move {
            match (uri, slowness(uri)) {
                (PIXEL, _) => {
                    Ok(cached(json!({ "contents": [{ "uri": uri, "mimeType": "image/png", "blob": PNG }] })))
                }
                (EXTRA, _) => Ok(text(uri, "text/plain", "here today")),
                (_, Some(Ms(ms))) => {
                    for step in 1..=STEPS {
                        ctx.sleep(Ms(ms / u64::from(STEPS))).await?;
                        ctx.progress(step.into(), STEPS.into(), "reading").await?;
                    }
                    Ok(text(uri, "text/plain", &format!("read in {ms} ms")))
                }
                _ => Err(missing(ctx.request(), uri)),
            }
        })
    },
    suggest: |_, template, variable| {
        let suggestions = || ["100", "1000", "10000"].map(str::to_owned).to_vec();
        (template == SLOW_TEMPLATE && variable == "ms").then(suggestions)
    },
};

/// How long the resource of this URI takes.
fn slowness(uri: &str) -> Option<Ms> {
    let digits = uri.strip_prefix(SLOW).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
    digits.parse().ok().filter(|ms| *ms <= LONGEST_MS).map(Ms)
}

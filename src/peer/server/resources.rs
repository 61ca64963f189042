//! Resources and their templates. A file holds a family of them.

mod asking;
pub(super) mod ledger;
mod notes;
mod plain;

pub(super) use self::plain::PNG;

use serde_json::{Map, Value, json};

use super::catalogue::{cached, page};
use super::conformance;
use super::core::{Answer, Context, Core, Ended, Running, object};
use super::message::{Refusal, Request};

/// Resources that belong together.
#[derive(Debug, Clone, Copy)]
pub(super) struct Family {
    /// Their entries in `resources/list`, in an order of their own.
    pub(super) list: fn(&Core) -> Vec<Value>,
    /// Their entries in `resources/templates/list`.
    pub(super) templates: fn() -> Vec<Value>,
    /// A URI is, or may come to be, of this family.
    pub(super) is_known: fn(&Core, &str) -> bool,
    /// Reads the resource of a URI of this family.
    pub(super) read: for<'a> fn(&'a str, &'a mut Context) -> Running<'a>,
    /// Values for a variable of one of its templates; `None`: it has no such variable.
    pub(super) suggest: fn(&Core, template: &str, variable: &str) -> Option<Vec<String>>,
}

/// The families, in the order of the lists.
fn families(core: &Core) -> impl Iterator<Item = &'static Family> {
    let of_suite = core.options.conformance.then_some(&conformance::FAMILY);
    [&notes::FAMILY, &plain::FAMILY, &ledger::FAMILY, &asking::FAMILY].into_iter().chain(of_suite)
}

/// `resources/list`.
pub(super) fn list(request: &Request, ctx: &Context) -> Answer {
    let core = ctx.core();
    let all = families(core).flat_map(|family| (family.list)(core)).collect();
    page(request, ctx, "resources", all)
}

/// `resources/templates/list`.
pub(super) fn templates(request: &Request, ctx: &Context) -> Answer {
    let all = families(ctx.core()).flat_map(|family| (family.templates)()).collect();
    page(request, ctx, "resourceTemplates", all)
}

/// A URI is, or may come to be, that of a resource.
pub(super) fn is_known(core: &Core, uri: &str) -> bool {
    families(core).any(|family| (family.is_known)(core, uri))
}

/// `resources/read`.
pub(super) async fn read(request: &Request, ctx: &mut Context) -> Answer {
    let refuse = |text: &str| Ended::Refused(Refusal::params(&request.id, text));
    let uri = request.string_at(&["uri"]).ok_or_else(|| refuse("uri is the URI of a resource"))?;
    let core = ctx.core().clone();
    let Some(family) = families(&core).find(|family| (family.is_known)(&core, &uri)) else {
        return Err(missing(request, &uri));
    };
    (family.read)(&uri, ctx).await
}

/// Values for a variable of a template; `None`: there is no such template or variable.
pub(super) fn suggest(core: &Core, template: &str, variable: &str) -> Option<Vec<String>> {
    families(core).find_map(|family| (family.suggest)(core, template, variable))
}

/// RES-02, RES-06: a resource that does not exist is an error, never an empty list.
pub(super) fn missing(request: &Request, uri: &str) -> Ended {
    let refusal = Refusal::params(&request.id, format!("no resource {uri:?}; resources/list names them"));
    Ended::Refused(refusal.with_data(json!({ "uri": uri })))
}

/// A result with one text.
pub(super) fn text(uri: &str, mime_type: &str, text: &str) -> Map<String, Value> {
    cached(json!({ "contents": [{ "uri": uri, "mimeType": mime_type, "text": text }] }))
}

/// A result that holds for this reader and this moment only.
pub(super) fn private(result: Map<String, Value>) -> Map<String, Value> {
    let mut result = result;
    result.extend(object(json!({ "ttlMs": 0, "cacheScope": "private" })));
    result
}

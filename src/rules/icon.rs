//! Icons (ICO-01).

use crate::rules::book::{Book, On};
use crate::rules::case::{Case, count, short};
use crate::rules::findings::Out;
use crate::spec::meta;
use crate::wire::json::Value;

pub(super) fn rules(book: &mut Book) {
    book.rule("ICO-01", &[On::Result], odd_source);
}

/// The list that a method answers with, whose items may have icons.
fn list_of(method: &str) -> Option<&'static str> {
    Some(match method {
        "tools/list" => "tools",
        "prompts/list" => "prompts",
        "resources/list" => "resources",
        "resources/templates/list" => "resourceTemplates",
        _ => return None,
    })
}

/// A source with a scheme that no client should load. A source without any is not judged.
fn is_odd(source: &str) -> bool {
    let Some((scheme, _)) = source.split_once(':') else { return false };
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    is_scheme && !["https", "http", "data"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
}

/// The first odd source among the icons of an item.
fn odd_icon(item: Value<'_>) -> Option<String> {
    let sources = item.get("icons")?.items().filter_map(|icon| icon.get("src")?.text());
    sources.into_iter().find(|source| is_odd(source)).map(|source| short(&source))
}

fn odd_source(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(result) = case.result().filter(|_| case.is_from_server()) else { return };
    let items = list_of(case.method()).and_then(|name| result.get(name));
    let own = [result.get("serverInfo"), case.meta(meta::SERVER_INFO)];
    let all = own.into_iter().flatten().chain(items.into_iter().flat_map(Value::items));
    let mut odd = all.filter_map(|item| {
        let name = item.get("name").and_then(Value::text).unwrap_or_default();
        odd_icon(item).map(|source| (short(&name), source))
    });
    if let Some((name, source)) = odd.next() {
        out.gather(case, case.seen.scope, |times| {
            let results = count(times, "result");
            format!("{results} with an icon that no client should load; last: {source} of {name}")
        });
    }
}

//! Roots: what the client names as such (ROO-01).

use super::{answered, answers, words};
use crate::rules::book::Book;
use crate::rules::case::{Case, short};
use crate::rules::findings::Out;
use crate::wire::json::Value;

const LIST: &str = "roots/list";

pub(super) fn rules(book: &mut Book) {
    book.rule("ROO-01", &answered(LIST), not_a_file);
}

fn not_a_file(case: &Case<'_>, out: &mut Out<'_>) {
    for answer in answers(case, LIST) {
        let roots = answer.value.get("roots").into_iter().flat_map(Value::items);
        let mut uris = roots.filter_map(|root| root.get("uri")?.text());
        if let Some(uri) = uris.find(|uri| !uri.starts_with("file://")) {
            out.say(
                case,
                format!("{} was answered with the root {:?}", words(case, &answer.key), short(&uri)),
            );
        }
    }
}

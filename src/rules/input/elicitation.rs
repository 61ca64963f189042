//! Elicitation: what a person is asked, and what comes back (ELI-01..08).

use super::{answered, answers, asked, asks, form, say, words};
use crate::rules::Severity;
use crate::rules::book::{Book, On, SightKind};
use crate::rules::case::{Case, short};
use crate::rules::findings::Out;
use crate::spec::era::Era;
use crate::wire::json::Value;

const CREATE: &str = "elicitation/create";
const COMPLETE: &str = "notifications/elicitation/complete";

/// The code that asks for URLs to be visited first. spec 2025-11-25 client/elicitation
const URL_REQUIRED: i64 = -32042;

/// Words in the names of what nobody should type into a form, each a sequence.
const SECRETS: [&[&str]; 12] = [
    &["password"],
    &["passwd"],
    &["passphrase"],
    &["secret"],
    &["token"],
    &["apikey"],
    &["api", "key"],
    &["private", "key"],
    &["card", "number"],
    &["cvv"],
    &["cvc"],
    &["pin", "code"],
];

pub(super) fn rules(book: &mut Book) {
    book.rule("ELI-01", &asked(CREATE), incomplete);
    book.rule("ELI-02", &asked(CREATE), not_absolute);
    book.rule("ELI-03", &asked(CREATE), not_https);
    book.rule("ELI-04", &asked(CREATE), asks_for_secret);
    book.rule("ELI-05", &answered(CREATE), unfit_content);
    book.rule("ELI-06", &answered(CREATE), needless_content);
    book.rule("ELI-07", &[On::Sight(SightKind::InputRequired), On::NotificationOf(COMPLETE)], of_the_past);
    book.rule("ELI-08", &[On::Error], no_urls);
}

fn text<'a>(params: Option<Value<'a>>, name: &str) -> Option<std::borrow::Cow<'a, str>> {
    params?.get(name)?.text()
}

/// It leads to a URL; before 2025-11-25 there were only forms.
fn is_url(case: &Case<'_>, params: Option<Value<'_>>) -> bool {
    case.era() >= Some(Era::V2025_11_25) && text(params, "mode").as_deref() == Some("url")
}

fn incomplete(case: &Case<'_>, out: &mut Out<'_>) {
    for ask in asks(case, CREATE) {
        let lack = if text(ask.params, "message").is_none() {
            "has no message".to_owned()
        } else if is_url(case, ask.params) {
            if text(ask.params, "url").is_some() {
                continue;
            }
            "has no url".to_owned()
        } else {
            let schema = ask.params.and_then(|params| params.get("requestedSchema"));
            let Some(schema) = schema.filter(|schema| schema.is_object()) else {
                say(case, out, &ask.key, &format!("{} has no requestedSchema", words(case, &ask.key)));
                continue;
            };
            let has_lists = case.era() >= Some(Era::V2025_11_25);
            let Some(name) = form::nested(schema, has_lists) else { continue };
            format!("asks for {:?}, which is no simple value", short(&name))
        };
        say(case, out, &ask.key, &format!("{} {lack}", words(case, &ask.key)));
    }
}

fn not_absolute(case: &Case<'_>, out: &mut Out<'_>) {
    for ask in asks(case, CREATE).into_iter().filter(|ask| is_url(case, ask.params)) {
        if let Some(url) = text(ask.params, "url").filter(|url| split(url).is_none()) {
            let sentence =
                format!("{} leads to {:?}, which is no absolute URL", words(case, &ask.key), short(&url));
            say(case, out, &ask.key, &sentence);
        }
    }
}

fn not_https(case: &Case<'_>, out: &mut Out<'_>) {
    for ask in asks(case, CREATE).into_iter().filter(|ask| is_url(case, ask.params)) {
        let Some(url) = text(ask.params, "url") else { continue };
        let is_open =
            |(scheme, host): (&str, &str)| scheme.eq_ignore_ascii_case("http") && !is_loopback(host);
        if split(&url).is_some_and(is_open) {
            let sentence = format!("{} leads to {}, which is not HTTPS", words(case, &ask.key), short(&url));
            say(case, out, &ask.key, &sentence);
        }
    }
}

/// Scheme and host of an absolute URL; the host is empty for schemes that have none.
fn split(url: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = url.split_once(':')?;
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    let is_scheme =
        scheme.starts_with(|first: char| first.is_ascii_alphabetic()) && scheme.bytes().all(is_letter);
    let is_clean = !rest.is_empty() && !rest.contains(|c: char| c.is_whitespace() || c.is_control());
    let is_web = ["http", "https"].iter().any(|web| scheme.eq_ignore_ascii_case(web));
    let authority =
        rest.strip_prefix("//").map(|rest| rest.split(['/', '?', '#']).next().unwrap_or_default());
    let host = authority.map_or("", |authority| {
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        match host.strip_prefix('[') {
            Some(inside) => inside.split(']').next().unwrap_or_default(),
            None => host.split(':').next().unwrap_or_default(),
        }
    });
    (is_scheme && is_clean && !(is_web && host.is_empty())).then_some((scheme, host))
}

fn is_loopback(host: &str) -> bool {
    let name = host.to_ascii_lowercase();
    name == "localhost"
        || name.ends_with(".localhost")
        || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn asks_for_secret(case: &Case<'_>, out: &mut Out<'_>) {
    for ask in asks(case, CREATE).into_iter().filter(|ask| !is_url(case, ask.params)) {
        let properties = ask.params.and_then(|params| params.at(&["requestedSchema", "properties"]));
        let is_secret = |(name, property): &(std::borrow::Cow<'_, str>, Value<'_>)| {
            names_secret(name) || text(Some(*property), "title").is_some_and(|title| names_secret(&title))
        };
        if let Some((name, _)) = properties.into_iter().flat_map(Value::members).find(is_secret) {
            let sentence = format!("{} asks for {:?} in a form", words(case, &ask.key), short(&name));
            say(case, out, &ask.key, &sentence);
        }
    }
}

/// Whether the words of a name, in any spelling (`apiKey`, `api_key`, `API key`), name a secret.
fn names_secret(name: &str) -> bool {
    let mut spaced = String::new();
    let mut was_lower = false;
    for letter in name.chars() {
        if (letter.is_uppercase() && was_lower) || !letter.is_alphanumeric() {
            spaced.push(' ');
        }
        if letter.is_alphanumeric() {
            spaced.extend(letter.to_lowercase());
        }
        was_lower = letter.is_lowercase() || letter.is_numeric();
    }
    let words: Vec<&str> = spaced.split_whitespace().collect();
    SECRETS.iter().any(|secret| words.windows(secret.len()).any(|window| window == *secret))
}

fn action_is(answer: Value<'_>, action: &str) -> bool {
    answer.get("action").is_some_and(|value| value.is_text(action))
}

fn unfit_content(case: &Case<'_>, out: &mut Out<'_>) {
    for answer in answers(case, CREATE).into_iter().filter(|answer| action_is(answer.value, "accept")) {
        let Some(asked) = answer.asked.filter(|asked| !is_url(case, Some(*asked))) else { continue };
        let Some(schema) = asked.get("requestedSchema") else { continue };
        let misfit = match answer.value.get("content").filter(|content| !content.is_null()) {
            Some(content) => form::misfit(schema, content),
            None if schema.get("properties").is_none_or(Value::is_empty) => None,
            None => Some("there is no content".to_owned()),
        };
        if let Some(misfit) = misfit {
            say(case, out, &answer.key, &format!("{} was accepted, but {misfit}", words(case, &answer.key)));
        }
    }
}

fn needless_content(case: &Case<'_>, out: &mut Out<'_>) {
    for answer in answers(case, CREATE) {
        let content = answer.value.get("content").filter(|content| !content.is_null());
        let (is_url, is_accepted) = (is_url(case, answer.asked), action_is(answer.value, "accept"));
        if content.is_none() || (is_accepted && !is_url) {
            continue;
        }
        let draft = out.draft(case);
        let (draft, why) = if is_url {
            (draft, "leads to a URL")
        } else {
            (draft.at_most(Severity::Hint), "was not accepted")
        };
        draft.say(out, format!("{} {why}, and its answer has content", words(case, &answer.key)));
    }
}

fn of_the_past(case: &Case<'_>, out: &mut Out<'_>) {
    if case.method() == COMPLETE {
        out.gather(case, case.seen.scope, |_| format!("the server sent {COMPLETE}"));
        return;
    }
    let has_id = |params: Value<'_>| params.get("elicitationId").is_some();
    for ask in asks(case, CREATE).into_iter().filter(|ask| ask.params.is_some_and(has_id)) {
        out.say(case, format!("{} carries an elicitationId", words(case, &ask.key)));
    }
}

fn no_urls(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(error) = case.error() else { return };
    if error.get("code").and_then(Value::integer) != Some(URL_REQUIRED) {
        return;
    }
    let list = error.at(&["data", "elicitations"]).filter(|list| list.is_array() && !list.is_empty());
    let is_whole = |entry: Value<'_>| {
        text(Some(entry), "mode").as_deref() == Some("url") && text(Some(entry), "elicitationId").is_some()
    };
    let lack = match list {
        None => "names no URL that must be visited",
        Some(list) if list.items().all(is_whole) => return,
        Some(_) => "has an entry without mode `url` or without an elicitationId",
    };
    out.say(case, format!("the error {URL_REQUIRED} to {} {lack}", case.subject()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absolute_url_has_a_scheme_and_on_the_web_a_host() {
        let cases = [
            ("https://example.com/a?b", Some(("https", "example.com"))),
            ("HTTP://user@127.0.0.1:80/", Some(("HTTP", "127.0.0.1"))),
            ("http://[::1]:80/x", Some(("http", "::1"))),
            ("mailto:a@example.com", Some(("mailto", ""))),
            ("https:///path", None),
            ("//example.com", None),
            ("example.com/a", None),
            ("/a:b", None),
            ("https://exa mple.com", None),
            ("", None),
        ];
        for (url, expected) in cases {
            assert_eq!(split(url), expected, "{url}");
        }
        for (host, expected) in
            [("localhost", true), ("127.9.9.9", true), ("::1", true), ("127.example.com", false)]
        {
            assert_eq!(is_loopback(host), expected, "{host}");
        }
    }

    #[test]
    fn secrets_are_known_by_whole_words() {
        for name in
            ["password", "userPassword", "API key", "api_key", "apiKey", "Card Number", "github-token"]
        {
            assert!(names_secret(name), "{name}");
        }
        for name in ["tokens", "maxTokens", "passwordless", "secretary", "key", "card", "tokenizer", ""] {
            assert!(!names_secret(name), "{name}");
        }
    }
}

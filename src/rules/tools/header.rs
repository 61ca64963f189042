//! Arguments that are mirrored into HTTP headers: `x-mcp-header` (TOOL-12, 13).

use crate::event::Transport;
use crate::rules::Severity;
use crate::rules::book::{Book, On};
use crate::rules::case::{Case, short};
use crate::rules::findings::Out;
use crate::rules::listing::{items, say};
use crate::spec::annotations::Annotations;
use crate::spec::lists::ListKind;

/// Words of a name that tell of a secret.
const SECRETS: [&str; 10] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "secrets",
    "token",
    "credential",
    "credentials",
    "apikey",
    "pin",
];

/// Words before `token` that make it a place in a list, a count or a mark.
const HARMLESS: [&str; 9] =
    ["page", "next", "continuation", "max", "min", "sync", "cursor", "stop", "progress"];

/// Words before `key` that make it a secret.
const KEYS: [&str; 7] = ["api", "private", "secret", "access", "signing", "encryption", "ssh"];

pub(super) fn rules(book: &mut Book) {
    book.rule("TOOL-12", &[On::ResultOf("tools/list")], valid);
    book.rule("TOOL-13", &[On::ResultOf("tools/list")], harmless);
}

fn valid(case: &Case<'_>, out: &mut Out<'_>) {
    let level = if case.transport() == Transport::Stdio { Severity::Hint } else { Severity::Error };
    let faults = items(case, ListKind::Tools).filter_map(|(name, tool)| {
        let fault = Annotations::of(tool).fault?;
        Some(format!("{name} has {fault}"))
    });
    say(case, out, level, &faults.collect::<Vec<_>>());
}

fn harmless(case: &Case<'_>, out: &mut Out<'_>) {
    let mut faults = Vec::new();
    for (name, tool) in items(case, ListKind::Tools) {
        for property in Annotations::of(tool).params.iter().filter_map(|param| param.path.last()) {
            if is_secret(property) {
                faults.push(format!("{} of {name} is mirrored into a header", short(property)));
            }
        }
    }
    say(case, out, Severity::Hint, &faults);
}

/// The name of a property tells of a secret.
fn is_secret(name: &str) -> bool {
    let words = words(name);
    words.iter().enumerate().any(|(idx, word)| {
        let before = idx.checked_sub(1).and_then(|before| words.get(before)).map_or("", String::as_str);
        match word.as_str() {
            "token" => !HARMLESS.contains(&before),
            "key" => KEYS.contains(&before),
            word => SECRETS.contains(&word),
        }
    })
}

/// The words of a name, in lower case: `apiKey`, `api_key` and `API-KEY` alike.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for char in name.chars() {
        if !char.is_alphanumeric() || (char.is_uppercase() && was_lower) {
            words.push(String::new());
        }
        if let (true, Some(word)) = (char.is_alphanumeric(), words.last_mut()) {
            word.extend(char.to_lowercase());
        }
        was_lower = char.is_lowercase();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::is_secret;

    #[test]
    fn names_of_secrets_are_told_from_their_likes() {
        for (name, expected) in [
            ("password", true),
            ("userPassword", true),
            ("API_KEY", true),
            ("apiKey", true),
            ("access-token", true),
            ("token", true),
            ("clientSecret", true),
            ("region", false),
            ("key", false),
            ("sortKey", false),
            ("pageToken", false),
            ("max_tokens", false),
            ("next_token", false),
            ("keyboard", false),
            ("spin", false),
        ] {
            assert_eq!(is_secret(name), expected, "{name}");
        }
    }
}

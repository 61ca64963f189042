//! The table of verbs as pages, help and completions.

use std::fmt::Write as _;

use super::{EXPECTATIONS, Kind, Member, RULE, VERBS, Verb, Waits};

/// The table as it stands in `docs/hands.md`.
#[must_use]
pub fn page() -> String {
    let mut page = String::from("| verb | what it does | what it takes |\n|---|---|---|\n");
    for verb in VERBS {
        let takes: Vec<String> =
            verb.own.iter().filter(|member| member.name != "when").map(in_page).collect();
        let rule = match verb.waits {
            Waits::Never => "",
            Waits::Always => "rule",
            Waits::UnlessHeld => "rule, or `held`",
            Waits::IfNext => "now, or rule",
        };
        let takes = [takes.join("; "), rule.to_owned()].into_iter().filter(|part| !part.is_empty());
        let _ =
            writeln!(page, "| `{}` | {} | {} |", verb.name, verb.does, takes.collect::<Vec<_>>().join("; "));
    }
    page.push_str("\nWhat every rule takes beside its own:\n\n| member | what stands there | left out | meaning |\n|---|---|---|---|\n");
    for member in RULE {
        let allowed = member.kind.allowed();
        let _ = writeln!(page, "| `{}` | {allowed} | {} | {} |", member.name, member.default, member.means);
    }
    page
}

/// The table of what can be expected, as it stands in `docs/recipes.md`.
#[must_use]
pub fn expectations_page() -> String {
    let mut page = String::from("| `that` | holds when | what it takes |\n|---|---|---|\n");
    for one in EXPECTATIONS {
        let takes: Vec<String> = one.own.iter().map(in_page).collect();
        let _ = writeln!(page, "| `{}` | {} | {} |", one.name, one.does, takes.join("; "));
    }
    page
}

fn in_page(member: &Member) -> String {
    let name = match member.kind {
        Kind::Flag => format!("`{}`", member.name),
        kind => format!("`{}={}`", member.name, kind.placeholder().replace('|', "\\|")),
    };
    format!("{name} {} ({})", member.means, member.default)
}

/// What may stand after `midwire ctl TAP`, for a person: each verb in one line, or all about one.
#[must_use]
pub fn explain(only: Option<&Verb>) -> String {
    let mut text = String::new();
    for verb in VERBS.iter().filter(|verb| only.is_none_or(|one| one.name == verb.name)) {
        let _ = writeln!(text, "{:12} {}", verb.name, verb.does);
        if only.is_some() {
            for member in verb.members() {
                let what = format!("{} [{}]", member.kind.allowed(), member.default);
                let _ = writeln!(text, "  {:15} {}: {what}", member.name, member.means);
            }
        }
    }
    text
}

/// The words that may stand next in a line that ends here: verbs, or what the verb takes that has
/// not been said, with `=` where a value follows.
#[must_use]
pub fn completions(line: &str) -> Vec<String> {
    let mut words = line.split_whitespace();
    let first = words.next().unwrap_or_default();
    let is_at_verb = !line.trim_start().contains(char::is_whitespace);
    let Some(verb) = Verb::find(first).filter(|_| !is_at_verb) else {
        let fits = VERBS.iter().filter(|verb| is_at_verb && verb.name.starts_with(first));
        return fits.map(|verb| verb.name.to_owned()).collect();
    };
    let open = if line.ends_with(char::is_whitespace) {
        ""
    } else {
        line.rsplit(char::is_whitespace).next().unwrap_or_default()
    };
    if let Some((name, start)) = open.split_once('=') {
        let kind = verb.members().find(|member| member.name == name).map(|member| member.kind);
        let Some(Kind::Choice(choices)) = kind else { return Vec::new() };
        let fits = choices.iter().filter(|word| word.starts_with(start));
        return fits.map(|word| format!("{name}={word}")).collect();
    }
    let said: Vec<&str> = words.map(|word| word.split('=').next().unwrap_or_default()).collect();
    let is_new = |member: &&Member| {
        member.name.starts_with(open) && (member.name == open || !said.contains(&member.name))
    };
    let word = |member: &'static Member| match member.kind {
        Kind::Flag => member.name.to_owned(),
        _ => format!("{}=", member.name),
    };
    let members = verb.members().filter(is_new).map(word);
    let bare =
        verb.members().filter(|member| verb.bare.contains(&member.name) && !said.contains(&member.name));
    let choices = bare.filter_map(|member| match member.kind {
        Kind::Choice(words) => Some(words),
        _ => None,
    });
    let choices = choices.flatten().filter(|word| word.starts_with(open)).map(|word| (*word).to_owned());
    choices.chain(members).collect()
}

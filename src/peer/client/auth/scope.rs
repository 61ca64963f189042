//! Which scopes are asked for.

/// A scope that makes a server give refresh tokens.
const OFFLINE: &str = "offline_access";

/// Scopes in the order in which they were first wanted, each once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Scopes(Vec<String>);

impl Scopes {
    /// Scopes as they stand in a field or a parameter.
    pub(super) fn read(text: &str) -> Scopes {
        Scopes::default().with(text.split_ascii_whitespace())
    }

    /// These and those.
    pub(super) fn with<'a>(mut self, more: impl IntoIterator<Item = &'a str>) -> Scopes {
        for scope in more {
            if !self.0.iter().any(|known| known == scope) {
                self.0.push(scope.to_owned());
            }
        }
        self
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// All of `other` are among these.
    pub(super) fn covers(&self, other: &Scopes) -> bool {
        other.0.iter().all(|scope| self.0.contains(scope))
    }

    /// The value of the parameter; `None`: it is left out.
    pub(super) fn parameter(&self) -> Option<String> {
        (!self.0.is_empty()).then(|| self.0.join(" "))
    }
}

/// What the choice rests on.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Wishes<'a> {
    /// What the person wants.
    pub(super) given: Option<&'a str>,
    /// What the server has just asked for.
    pub(super) challenged: Option<&'a str>,
    /// What its metadata names.
    pub(super) resource_supports: Option<&'a [String]>,
    /// What the authorization server names.
    pub(super) issuer_supports: Option<&'a [String]>,
    /// Tokens can be renewed.
    pub(super) can_renew: bool,
}

/// The scopes to ask for. First those of the person, else those of the challenge, else all that the
/// metadata of the server names, else none. What was asked for before stays in, so that a step up
/// loses nothing, and what is challenged is always in. `offline_access` only where the authorization
/// server names it, and beside others: alone it would take the place of the server's own choice.
/// // spec 2026-07-28 basic/authorization: scope selection, step-up, refresh tokens
pub(super) fn choose(before: &Scopes, wishes: Wishes<'_>) -> Scopes {
    let challenged = wishes.challenged.map(Scopes::read).unwrap_or_default();
    let first = match (wishes.given, wishes.resource_supports) {
        (Some(given), _) => Scopes::read(given),
        (None, Some(supported)) if challenged.0.is_empty() => {
            Scopes::default().with(supported.iter().map(String::as_str))
        }
        _ => Scopes::default(),
    };
    let is_first = before.0.is_empty();
    let chosen = if is_first { first } else { before.clone() };
    // A person who names scopes is not overruled at first; a step up is what the server needs.
    let adds = !is_first || wishes.given.is_none();
    let chosen = if adds { chosen.with(challenged.iter()) } else { chosen };
    let is_named = wishes.issuer_supports.is_some_and(|scopes| scopes.iter().any(|scope| scope == OFFLINE));
    if is_named && wishes.can_renew && !chosen.0.is_empty() { chosen.with([OFFLINE]) } else { chosen }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asked for before; of the person; challenged; of the server; of the issuer; chosen.
    type Row = (
        &'static str,
        Option<&'static str>,
        Option<&'static str>,
        Option<&'static str>,
        Option<&'static str>,
        &'static str,
    );

    #[test]
    fn scopes_are_chosen_in_the_order_of_the_specification() {
        let texts = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let rows: [Row; 13] = [
            ("", None, None, None, None, ""),
            ("", None, Some("a b"), Some("x y"), None, "a b"),
            ("", None, None, Some("x y"), None, "x y"),
            ("", None, Some(" "), Some("x y"), None, "x y"),
            ("", Some("p"), Some("a"), Some("x"), None, "p"),
            ("", None, Some("a a b"), None, None, "a b"),
            ("a", None, Some("w"), Some("x"), None, "a w"),
            ("a", Some("a"), Some("w"), None, None, "a w"),
            ("a w", None, Some("w a"), None, None, "a w"),
            ("a", None, None, Some("x"), None, "a"),
            ("", None, Some("a"), None, Some("a offline_access"), "a offline_access"),
            ("", None, Some("a"), None, Some("a"), "a"),
            ("", None, None, None, Some("offline_access"), ""),
        ];
        for (before, given, challenged, resource, issuer, chosen) in rows {
            let (resource, issuer) = (resource.map(texts), issuer.map(texts));
            let wishes = Wishes {
                given,
                challenged,
                resource_supports: resource.as_deref(),
                issuer_supports: issuer.as_deref(),
                can_renew: true,
            };
            assert_eq!(choose(&Scopes::read(before), wishes), Scopes::read(chosen), "{before} {wishes:?}");
        }
        let offline = texts("offline_access");
        let wishes = Wishes { challenged: Some("a"), issuer_supports: Some(&offline), ..Wishes::default() };
        assert_eq!(choose(&Scopes::default(), wishes).parameter().as_deref(), Some("a"));
        assert_eq!(Scopes::default().parameter(), None);
    }
}

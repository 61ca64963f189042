//! What a server says when it refuses a request for want of authorization: `WWW-Authenticate`.

use hyper::header::{HeaderMap, WWW_AUTHENTICATE};

/// A refusal that authorization may overcome.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Challenge {
    /// HTTP status: 401, or 403 for want of a scope.
    pub status: u16,
    /// Schemes that are offered, as they are written; empty: the server says nothing of it.
    pub schemes: Vec<String>,
    /// Scopes that the request needs (RFC 6750 §3).
    pub scope: Option<String>,
    /// `error` of the Bearer challenge.
    pub error: Option<String>,
    /// Where the metadata of the protected resource is (RFC 9728 §5.1).
    pub resource_metadata: Option<String>,
}

impl Challenge {
    /// What the fields of an answer with this status say; `None`: it is about something else.
    pub(in crate::peer::client) fn read(status: u16, fields: &HeaderMap) -> Option<Challenge> {
        if !matches!(status, 401 | 403) {
            return None;
        }
        let mut challenge = Challenge { status, ..Challenge::default() };
        for value in fields.get_all(WWW_AUTHENTICATE) {
            let text = String::from_utf8_lossy(value.as_bytes());
            for (scheme, params) in parse(&text) {
                if scheme.eq_ignore_ascii_case("bearer") {
                    challenge.take(params);
                }
                challenge.schemes.push(scheme);
            }
        }
        // A 403 of another kind (a foreign origin, no permission) is final: spec 2026-07-28
        // basic/authorization, section on scope challenge handling.
        let is_final = status == 403 && challenge.error.as_deref() != Some("insufficient_scope");
        (!is_final).then_some(challenge)
    }

    fn take(&mut self, params: Vec<(String, String)>) {
        for (name, value) in params {
            let place = match name.to_ascii_lowercase().as_str() {
                "scope" => &mut self.scope,
                "error" => &mut self.error,
                "resource_metadata" => &mut self.resource_metadata,
                _ => continue,
            };
            // The first counts, should a name come twice.
            place.get_or_insert(value);
        }
    }

    /// A bearer token would do: it is offered, or nothing is said.
    pub(super) fn takes_bearer(&self) -> bool {
        self.schemes.is_empty() || self.schemes.iter().any(|scheme| scheme.eq_ignore_ascii_case("bearer"))
    }
}

/// The challenges of one field value, each a scheme with its parameters (RFC 9110 §11.6.1). What
/// cannot be read is passed over.
fn parse(text: &str) -> Vec<(String, Vec<(String, String)>)> {
    let mut challenges: Vec<(String, Vec<(String, String)>)> = Vec::new();
    let mut rest = text.trim_start_matches(is_gap);
    while !rest.is_empty() {
        let (word, after) = token(rest);
        if word.is_empty() {
            // A character that belongs nowhere.
            rest = rest.trim_start_matches(|c: char| !is_token(c) && !is_gap(c)).trim_start_matches(is_gap);
            continue;
        }
        let unspaced = after.trim_start_matches([' ', '\t']);
        if let (Some(value), Some((_, params))) = (unspaced.strip_prefix('='), challenges.last_mut()) {
            let (value, after) = param_value(value.trim_start_matches([' ', '\t']));
            params.push((word.to_owned(), value));
            rest = after;
        } else {
            challenges.push((word.to_owned(), Vec::new()));
            rest = after;
        }
        rest = rest.trim_start_matches(is_gap);
    }
    challenges
}

fn is_gap(c: char) -> bool {
    matches!(c, ' ' | '\t' | ',')
}

fn is_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c)
}

fn token(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c| !is_token(c)).unwrap_or(text.len()))
}

/// A quoted string without its quotes and escapes, or what stands up to the next gap.
fn param_value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let (value, rest) = text.split_at(text.find(is_gap).unwrap_or(text.len()));
        return (value.to_owned(), rest);
    };
    let mut value = String::new();
    let mut chars = quoted.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => break,
            '\\' => value.extend(chars.next()),
            c => value.push(c),
        }
    }
    (value, chars.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(values: &[&str]) -> HeaderMap {
        let mut fields = HeaderMap::new();
        for value in values {
            fields.append(WWW_AUTHENTICATE, value.parse().unwrap());
        }
        fields
    }

    /// Field values; schemes; `scope`, `error`, `resource_metadata`.
    type Row = (&'static [&'static str], &'static [&'static str], [Option<String>; 3]);

    #[test]
    fn challenges_as_servers_write_them() {
        let some = |text: &str| Some(text.to_owned());
        let rows: [Row; 11] = [
            (&[], &[], [None, None, None]),
            (&["Bearer"], &["Bearer"], [None, None, None]),
            (
                &[r#"Bearer scope="a b", resource_metadata="https://h/p", error="x""#],
                &["Bearer"],
                [some("a b"), some("x"), some("https://h/p")],
            ),
            (&[r#"bearer SCOPE = "a",error=x"#], &["bearer"], [some("a"), some("x"), None]),
            (
                &[r#"Basic realm="scope=\"no\"", Bearer scope=a"#],
                &["Basic", "Bearer"],
                [some("a"), None, None],
            ),
            (
                &[r#"Bearer scope="a", Basic realm="r", scope="no""#],
                &["Bearer", "Basic"],
                [some("a"), None, None],
            ),
            (&["Negotiate abc==, Bearer error=e"], &["Negotiate", "Bearer"], [None, some("e"), None]),
            (&["Basic realm=x", "Bearer scope=a"], &["Basic", "Bearer"], [some("a"), None, None]),
            (&[r#"Bearer scope="a\"b\\c""#], &["Bearer"], [some("a\"b\\c"), None, None]),
            (&[r#"Bearer scope="never closed"#], &["Bearer"], [some("never closed"), None, None]),
            (&["Bearer scope=a, scope=b, ;; error=e"], &["Bearer"], [some("a"), some("e"), None]),
        ];
        for (values, schemes, [scope, error, resource_metadata]) in rows {
            let schemes = schemes.iter().map(ToString::to_string).collect();
            let expected = Challenge { status: 401, schemes, scope, error, resource_metadata };
            assert_eq!(Challenge::read(401, &fields(values)), Some(expected), "{values:?}");
        }
    }

    #[test]
    fn only_what_authorization_may_overcome_is_a_challenge() {
        let step_up = r#"Bearer error="insufficient_scope", scope="w""#;
        let rows = [
            (200, "Bearer", false),
            (400, "Bearer error=invalid_request", false),
            (401, "Bearer", true),
            (401, "Basic realm=x", true),
            (403, "Bearer", false),
            (403, "Bearer error=invalid_token", false),
            (403, step_up, true),
        ];
        for (status, value, is_challenge) in rows {
            let read = Challenge::read(status, &fields(&[value]));
            assert_eq!(read.is_some(), is_challenge, "{status} {value}");
        }
        for (values, takes) in [(&[][..], true), (&["Basic realm=x"], false), (&["Basic", "bearer"], true)] {
            assert_eq!(Challenge::read(401, &fields(values)).unwrap().takes_bearer(), takes, "{values:?}");
        }
    }
}

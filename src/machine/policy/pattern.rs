//! Names with wildcards, as a policy writes them.

use serde::Deserialize;

/// A name in which `*` stands for any text; ASCII letters compare without case.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Pattern(String);

impl Pattern {
    /// The pattern that is written so.
    #[must_use]
    pub fn new(text: &str) -> Pattern {
        Pattern(text.to_owned())
    }

    /// As it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The whole name is what the pattern says.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        let (pattern, name) = (self.0.as_bytes(), name.as_bytes());
        let (mut at, mut in_name) = (0, 0);
        // Where to go on when the text taken by the latest `*` has to grow.
        let mut retry = None;
        while let Some(byte) = name.get(in_name) {
            match pattern.get(at) {
                Some(b'*') => {
                    at += 1;
                    retry = Some((at, in_name));
                }
                Some(wanted) if wanted.eq_ignore_ascii_case(byte) => {
                    at += 1;
                    in_name += 1;
                }
                _ => match retry {
                    Some((after, taken)) => {
                        (at, in_name) = (after, taken + 1);
                        retry = Some((after, taken + 1));
                    }
                    None => return false,
                },
            }
        }
        pattern.iter().skip(at).all(|byte| *byte == b'*')
    }
}

/// Any of the patterns matches the name.
pub(super) fn any(patterns: &[Pattern], name: &str) -> bool {
    patterns.iter().any(|pattern| pattern.matches(name))
}

/// The name is one of those listed; nothing listed means every name, also one that is not known.
pub(super) fn any_or_all(patterns: &[Pattern], name: Option<&str>) -> bool {
    patterns.is_empty() || name.is_some_and(|name| any(patterns, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text_and_letters_have_no_case() {
        let cases = [
            ("cursor-vscode", "Cursor-VSCode", true),
            ("cursor-vscode", "cursor-vscode2", false),
            ("gemini-cli-mcp-client*", "gemini-cli-mcp-client-files", true),
            ("gemini-cli-mcp-client*", "gemini-cli-mcp-client", true),
            ("*inspector*", "mcp-inspector", true),
            ("*a*b", "aab ab", true),
            ("*a*b", "aab abc", false),
            ("*.example.com/mcp", "https://a.example.com/mcp", true),
            ("größe*", "größer", true),
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("a*", "", false),
            ("**", "x", true),
        ];
        for (pattern, name, is_match) in cases {
            assert_eq!(Pattern::new(pattern).matches(name), is_match, "{pattern:?} {name:?}");
        }
    }

    #[test]
    fn nothing_listed_means_every_name() {
        assert!(any_or_all(&[], None));
        assert!(any_or_all(&[Pattern::new("a")], Some("A")));
        assert!(!any_or_all(&[Pattern::new("a")], None));
        assert!(!any(&[], "a"));
    }
}

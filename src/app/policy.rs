//! The policy file: read once, before anything is judged.

use std::path::Path;

use anyhow::{Context, anyhow};

use crate::machine::policy::Policy;

/// Reads a policy file; `docs/policy.md` says what may stand in it.
///
/// # Errors
/// When it cannot be read, or holds what no policy has; the error names the line.
pub fn load(path: &Path) -> anyhow::Result<Policy> {
    let file = path.display();
    let text = std::fs::read_to_string(path).with_context(|| {
        format!("cannot read the policy {file}; give --policy a file as in docs/policy.md")
    })?;
    parse(&text)
        .map_err(|(line, what)| anyhow!("{file}:{line}: {what}; docs/policy.md says what may stand there"))
}

/// What is wrong is told with its line, from 1.
fn parse(text: &str) -> Result<Policy, (usize, String)> {
    toml::from_str(text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        (before.matches('\n').count() + 1, error.message().replace('\n', " "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Ms;

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        assert_eq!(parse("[limits]\ngrace_ms = 800").unwrap().limits.grace, Some(Ms(800)));
        let cases = [
            ("\nallow_legasy = []", 2, "unknown field `allow_legasy`"),
            ("[[clocks]]\nidle_ms = 3\n", 1, "missing field `name`"),
            ("[limits]\n\nping_ms = 'soon'", 3, "invalid type"),
            ("[limits\n", 1, "table"),
        ];
        for (text, line, said) in cases {
            let (at, what) = parse(text).unwrap_err();
            assert!(at == line && what.contains(said) && !what.contains('\n'), "{text}: {at} {what}");
        }
    }
}

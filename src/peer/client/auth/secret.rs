//! Text that is never shown.

use std::fmt;

/// What takes the place of a secret in a text for people.
const MASK: &str = "***";

/// A token, a password or a key: it can be sent, and neither printed nor logged.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes charge of a secret.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// The secret itself, for what goes to whom it is meant for.
    pub(super) fn expose(&self) -> &str {
        &self.0
    }

    /// A foreign text without this secret, should it repeat it.
    #[must_use]
    pub fn mask(&self, text: &str) -> String {
        if self.0.is_empty() { text.to_owned() } else { text.replace(&self.0, MASK) }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_shows_nowhere() {
        let secret = Secret::new("s3cret");
        assert_eq!(format!("{secret:?} {:?}", Some(&secret)), "*** Some(***)");
        assert_eq!(secret.mask("bad token s3cret, s3cret"), "bad token ***, ***");
        assert_eq!(Secret::new("").mask("whole"), "whole");
    }
}

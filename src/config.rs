//! Settings, key map and theme files: read once, at the start.
//!
//! This room knows what a person may configure and says exactly what is wrong with a file: which
//! file, which line, which values are allowed. It knows nothing of screens or traffic. Nothing
//! here has to be configured: without any file everything has a sensible value.

pub mod chord;
pub mod colour;
pub mod keys;
pub mod settings;
pub mod theme;

use std::path::PathBuf;

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}; {advice}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
        /// What to do about it.
        advice: &'static str,
    },
    /// The file is not TOML.
    #[error("{file}:{line}: {what}")]
    Syntax {
        /// The file, or the name of a built-in theme.
        file: String,
        /// The line, from 1.
        line: usize,
        /// What the parser said.
        what: String,
    },
    /// A name or a value in the file is not one of those allowed.
    #[error("{file}:{line}: unknown {what} `{found}`; use {allowed}")]
    NotAllowed {
        /// The file, or the name of a built-in theme.
        file: String,
        /// The line, from 1.
        line: usize,
        /// What kind of thing it is, such as `role` or `colour`.
        what: &'static str,
        /// What stands there.
        found: String,
        /// What may stand there.
        allowed: String,
    },
    /// No theme of this name is built in, and no file of this name exists.
    #[error("unknown theme `{name}`; use one of {allowed}, or the path of a theme file ending in .toml")]
    UnknownTheme {
        /// The name asked for.
        name: String,
        /// The built-in names.
        allowed: String,
    },
}

/// Line of a byte offset, from 1.
fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|b| *b == b'\n').count() + 1
}

/// Parses a TOML file into its table with the place of every part.
fn parse_toml<'a>(file: &str, text: &'a str) -> Result<toml::de::DeTable<'a>, ConfigError> {
    toml::de::DeTable::parse(text).map(toml::Spanned::into_inner).map_err(|error| ConfigError::Syntax {
        file: file.to_owned(),
        line: line_of(text, error.span().map_or(0, |span| span.start)),
        what: error.message().to_owned(),
    })
}

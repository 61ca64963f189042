//! The settings file: `config.toml` in the user's configuration folder. It may be absent.

use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::chord::Chord;
use super::colour::Depth;
use super::keys::{Action, KeyMap};
use super::{ConfigError, line_of, parse_toml};

/// What a person may set, with the values in force when nothing is set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// Built-in theme or path of a theme file; `None`: by the terminal's background.
    pub theme: Option<String>,
    /// Colours to use; `None`: by the environment.
    pub colour: Option<Depth>,
    /// Draw with ASCII only; `None`: by the locale.
    pub ascii: Option<bool>,
    /// Mouse on from the start.
    pub mouse: bool,
    /// The key map.
    pub keys: KeyMap,
}

/// The names allowed at the top of the file.
const NAMES: &str = "theme, color, ascii, mouse, [keys]";

impl Settings {
    /// The path of the settings file: `$XDG_CONFIG_HOME/midwire/config.toml`, or what the platform
    /// has in its place; `None` when there is no home folder.
    #[must_use]
    pub fn default_path() -> Option<PathBuf> {
        let folders = etcetera::choose_base_strategy().ok()?;
        Some(folders.config_dir().join("midwire").join("config.toml"))
    }

    /// Reads the settings file; an absent file means that nothing is set.
    ///
    /// # Errors
    /// When the file exists and cannot be read, or holds something that is not allowed.
    pub fn load(path: &Path) -> Result<Settings, ConfigError> {
        match std::fs::read_to_string(path) {
            Ok(text) => Settings::parse(&path.display().to_string(), &text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Settings::default()),
            Err(source) => Err(ConfigError::Unreadable {
                path: path.to_owned(),
                source,
                advice: "make it readable, or remove it to use the defaults",
            }),
        }
    }

    /// Reads the text of a settings file. `file` is named in errors.
    ///
    /// # Errors
    /// When the text is not TOML or holds something that is not allowed.
    pub fn parse(file: &str, text: &str) -> Result<Settings, ConfigError> {
        let table = parse_toml(file, text)?;
        let reading = Reading { file, text };
        let mut settings = Settings::default();
        for (key, value) in &table {
            match key.get_ref().as_ref() {
                "theme" => settings.theme = Some(reading.string(value)?).filter(|name| name != "auto"),
                "color" | "colour" => {
                    let name = reading.word(value);
                    settings.colour = Depth::from_name(&name)
                        .map_err(|_| reading.refuse(value.span().start, "color", &name, Depth::NAMES))?;
                }
                "ascii" => {
                    settings.ascii = match reading.word(value).as_str() {
                        "auto" => None,
                        _ => Some(reading.boolean(value, "true, false or \"auto\"")?),
                    };
                }
                "mouse" => settings.mouse = reading.boolean(value, "true or false")?,
                "keys" => reading.keys(value, &mut settings.keys)?,
                other => return Err(reading.refuse(key.span().start, "setting", other, NAMES)),
            }
        }
        Ok(settings)
    }
}

/// One settings file while it is read.
struct Reading<'a> {
    file: &'a str,
    text: &'a str,
}

impl Reading<'_> {
    fn refuse(&self, offset: usize, what: &'static str, found: &str, allowed: &str) -> ConfigError {
        ConfigError::NotAllowed {
            file: self.file.to_owned(),
            line: line_of(self.text, offset),
            what,
            found: found.to_owned(),
            allowed: allowed.to_owned(),
        }
    }

    /// The value as it is written, without quotation marks.
    fn word(&self, value: &Spanned<DeValue<'_>>) -> String {
        self.text.get(value.span()).unwrap_or_default().trim_matches(['"', '\'']).to_owned()
    }

    fn string(&self, value: &Spanned<DeValue<'_>>) -> Result<String, ConfigError> {
        let text = value.get_ref().as_str().map(str::to_owned);
        text.ok_or_else(|| self.refuse(value.span().start, "value", &self.word(value), "a string"))
    }

    fn boolean(&self, value: &Spanned<DeValue<'_>>, allowed: &str) -> Result<bool, ConfigError> {
        match value.get_ref() {
            DeValue::Boolean(is_set) => Ok(*is_set),
            _ => Err(self.refuse(value.span().start, "value", &self.word(value), allowed)),
        }
    }

    fn keys(&self, value: &Spanned<DeValue<'_>>, keys: &mut KeyMap) -> Result<(), ConfigError> {
        let DeValue::Table(table) = value.get_ref() else {
            return Err(self.refuse(value.span().start, "value", &self.word(value), "a table: [keys]"));
        };
        self.bind_all(table, keys)
    }

    fn bind_all(&self, table: &DeTable<'_>, keys: &mut KeyMap) -> Result<(), ConfigError> {
        for (key, value) in table {
            let sequence = Chord::parse_sequence(key.get_ref().as_ref()).ok_or_else(|| {
                let allowed = "one such as x, G, f5, enter, ctrl-n, alt-x or \"] x\"";
                self.refuse(key.span().start, "key", key.get_ref().as_ref(), allowed)
            })?;
            let name = self.string(value)?;
            let action = match name.as_str() {
                "none" => None,
                other => Some(Action::from_name(other).ok_or_else(|| {
                    let names: Vec<_> = Action::ALL.iter().map(|action| action.name()).collect();
                    let allowed = format!("none, {}", names.join(", "));
                    self.refuse(value.span().start, "action", other, &allowed)
                })?),
            };
            keys.bind(sequence, action);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::keys::Lookup;

    #[test]
    fn an_absent_file_sets_nothing() {
        let settings = Settings::load(Path::new("/nowhere/config.toml")).unwrap();
        assert_eq!(settings, Settings::default());
    }

    #[test]
    fn every_setting_is_read() {
        let text = "theme = 'light'\ncolor = 16\nascii = true\nmouse = true\n[keys]\nctrl-n = 'down'\n'] x' = 'fit'\nj = 'none'\n";
        let settings = Settings::parse("c.toml", text).unwrap();
        assert_eq!(settings.theme.as_deref(), Some("light"));
        assert_eq!(settings.colour, Some(Depth::Sixteen));
        assert_eq!(settings.ascii, Some(true));
        assert!(settings.mouse);
        let lookup = |keys: &str| settings.keys.lookup(&Chord::parse_sequence(keys).unwrap());
        assert_eq!(lookup("ctrl-n"), Lookup::Is(Action::Down));
        assert_eq!(lookup("] x"), Lookup::Is(Action::Fit));
        assert_eq!(lookup("j"), Lookup::Nothing);
        let auto = Settings::parse("c.toml", "theme = 'auto'\ncolor = 'auto'\nascii = 'auto'").unwrap();
        assert_eq!(auto, Settings::default());
    }

    #[test]
    fn what_is_wrong_is_said_with_file_line_and_allowed_values() {
        let cases = [
            ("thme = 'x'", "c.toml:1: unknown setting `thme`; use theme, color, ascii, mouse, [keys]"),
            ("\ncolor = 'lots'", "c.toml:2: unknown color `lots`; use auto, none, 8, 16, 256, true"),
            ("mouse = 'no'", "c.toml:1: unknown value `no`; use true or false"),
            ("theme = 3", "c.toml:1: unknown value `3`; use a string"),
            ("[keys]\nx = 'dwn'", "c.toml:2: unknown action `dwn`; use none, down,"),
            ("[keys]\nentr = 'down'", "c.toml:2: unknown key `entr`; use one such as x,"),
            ("keys = 1", "c.toml:1: unknown value `1`; use a table: [keys]"),
            ("x = [", "c.toml:1: "),
        ];
        for (text, expected) in cases {
            let said = Settings::parse("c.toml", text).unwrap_err().to_string();
            assert!(said.starts_with(expected), "{text:?} said {said:?}");
        }
    }
}

//! Themes: what each semantic role looks like. The only place that knows colours.
//!
//! A theme file is TOML: one table for each role, such as `ok = { fg = "#7dcfff", ansi = "cyan" }`.
//! `fg` and `bg` are for terminals with 256 colours or more, `ansi` and `ansi_bg` for those with
//! fewer; `bold`, `dim`, `italic`, `underline` and `reverse` add to either. Roles that a file
//! leaves out come from the built-in theme that `base` names (`dark` without it).

use std::path::Path;

use ratatui::style::{Color, Modifier, Style};
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::colour::{self, Depth};
use super::{ConfigError, line_of, parse_toml};

/// Defines the roles once: the variant, its name in files, and its meaning.
macro_rules! roles {
    ($($variant:ident $name:literal $doc:literal,)*) => {
        /// What something on the screen means; a theme gives each role its looks.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Role { $(#[doc = $doc] $variant,)* }

        impl Role {
            /// Every role, in the order of their definition.
            pub const ALL: &'static [Role] = &[$(Role::$variant),*];

            /// Its name in theme files.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Role::$variant => $name),* }
            }
        }
    };
}

roles! {
    Text "text" "Ordinary text.",
    Muted "muted" "Less important text, such as units and hints.",
    Faint "faint" "Lines, ticks and empty space.",
    Title "title" "Headings and the name of what is open.",
    Bar "bar" "The top line.",
    Selection "selection" "The chosen line.",
    Key "key" "Keys in hints, and the view that is open.",
    Found "found" "What a search or a filter in mark mode has hit.",
    Ok "ok" "Answered, valid, in health.",
    Warn "warn" "Deserves a look: findings of middle weight, a recording that was cut.",
    Error "error" "Answered with an error, invalid, lost.",
    Cancelled "cancelled" "Given up by the client, by cancel or by disconnect.",
    Late "late" "Came after the client had given up.",
    Open "open" "Waiting for an answer.",
    Input "input" "Waits for input from the client.",
    Progress "progress" "Progress of a call.",
    Client "client" "What comes from the client.",
    Server "server" "What comes from the server.",
    Midwire "midwire" "What midwire itself did or says.",
    JsonKey "json-key" "A member name in a JSON tree.",
    JsonString "json-string" "A JSON string.",
    JsonNumber "json-number" "A JSON number.",
    JsonWord "json-word" "true, false, null, and counts of members.",
}

/// The built-in themes: name and file.
pub const BUILT_IN: [(&str, &str); 4] = [
    ("dark", include_str!("../../themes/dark.toml")),
    ("light", include_str!("../../themes/light.toml")),
    ("high-contrast", include_str!("../../themes/high-contrast.toml")),
    ("no-colour", include_str!("../../themes/no-colour.toml")),
];

/// The looks of every role at one depth of colour.
#[derive(Debug, Clone, PartialEq)]
pub struct Theme {
    /// Name of the built-in theme, or path of the file.
    pub name: String,
    styles: Vec<Style>,
}

impl Theme {
    /// The looks of a role.
    #[must_use]
    pub fn style(&self, role: Role) -> Style {
        self.styles.get(role as usize).copied().unwrap_or_default()
    }

    /// The theme of a built-in name, or of a file (a name that ends in `.toml` or holds a `/`).
    /// Without colours the built-in `no-colour` is taken whatever the name, after the file has
    /// been checked.
    ///
    /// # Errors
    /// When no such theme exists, or its file is wrong.
    pub fn load(name: &str, depth: Depth) -> Result<Theme, ConfigError> {
        let is_file = Path::new(name).extension().is_some_and(|ext| ext == "toml") || name.contains('/');
        let theme = if is_file {
            let text = std::fs::read_to_string(name).map_err(|source| ConfigError::Unreadable {
                path: name.into(),
                source,
                advice: "pass --theme with the path of a theme file, or dark, light, high-contrast, no-colour",
            })?;
            Theme::parse(name, &text, depth)?
        } else {
            let (_, text) = BUILT_IN.iter().find(|(n, _)| *n == name).ok_or_else(|| {
                ConfigError::UnknownTheme { name: name.to_owned(), allowed: built_in_names() }
            })?;
            Theme::parse(name, text, depth)?
        };
        if depth == Depth::None && name != "no-colour" { Theme::load("no-colour", depth) } else { Ok(theme) }
    }

    /// The built-in theme that suits the terminal's background, as far as `COLORFGBG` tells it:
    /// `light` on a light background, `dark` otherwise.
    pub fn auto_name(env: impl Fn(&str) -> Option<String>) -> &'static str {
        let background = env("COLORFGBG").and_then(|value| value.rsplit(';').next()?.parse::<u8>().ok());
        if matches!(background, Some(7 | 9..=15)) { "light" } else { "dark" }
    }

    /// Reads the text of a theme file. `file` is named in errors.
    ///
    /// # Errors
    /// When the text is not TOML, or names a role, member or colour that does not exist.
    pub fn parse(file: &str, text: &str, depth: Depth) -> Result<Theme, ConfigError> {
        let table = parse_toml(file, text)?;
        let reading = Reading { file, text, depth };
        let mut styles = match table.get("base") {
            Some(base) => reading.base(base)?,
            None if BUILT_IN.iter().any(|(name, _)| *name == file) => vec![Style::default(); Role::ALL.len()],
            None => Theme::load("dark", depth)?.styles,
        };
        for (key, value) in table.iter().filter(|(key, _)| key.get_ref().as_ref() != "base") {
            let role =
                Role::ALL.iter().find(|role| role.name() == key.get_ref().as_ref()).ok_or_else(|| {
                    let names: Vec<_> = Role::ALL.iter().map(|role| role.name()).collect();
                    reading.refuse(key.span().start, "role", key.get_ref().as_ref(), names.join(", "))
                })?;
            if let Some(style) = styles.get_mut(*role as usize) {
                *style = reading.style(value)?;
            }
        }
        Ok(Theme { name: file.to_owned(), styles })
    }
}

fn built_in_names() -> String {
    BUILT_IN.map(|(name, _)| name).join(", ")
}

/// One theme file while it is read.
struct Reading<'a> {
    file: &'a str,
    text: &'a str,
    depth: Depth,
}

/// The members of a role, for error messages.
const MEMBERS: &str = "fg, bg, ansi, ansi_bg, bold, dim, italic, underline, reverse";

impl Reading<'_> {
    fn refuse(&self, offset: usize, what: &'static str, found: &str, allowed: String) -> ConfigError {
        let line = line_of(self.text, offset);
        ConfigError::NotAllowed { file: self.file.to_owned(), line, what, found: found.to_owned(), allowed }
    }

    fn base(&self, value: &Spanned<DeValue<'_>>) -> Result<Vec<Style>, ConfigError> {
        let name = value.get_ref().as_str().unwrap_or_default();
        if !BUILT_IN.iter().any(|(built_in, _)| *built_in == name) {
            return Err(self.refuse(value.span().start, "base", name, built_in_names()));
        }
        Ok(Theme::load(name, self.depth)?.styles)
    }

    fn style(&self, value: &Spanned<DeValue<'_>>) -> Result<Style, ConfigError> {
        let DeValue::Table(table) = value.get_ref() else {
            let found = self.text.get(value.span()).unwrap_or_default();
            return Err(self.refuse(value.span().start, "look", found, format!("a table of {MEMBERS}")));
        };
        let mut style = Style::default();
        for (key, value) in table {
            style = self.member(style, key, value, table)?;
        }
        Ok(style)
    }

    fn member(
        &self,
        style: Style,
        key: &Spanned<DeString<'_>>,
        value: &Spanned<DeValue<'_>>,
        table: &DeTable<'_>,
    ) -> Result<Style, ConfigError> {
        let has_few = self.depth < Depth::Indexed;
        match key.get_ref().as_ref() {
            name @ ("fg" | "ansi") => {
                let colour = self.colour(value)?;
                let is_used = (name == "ansi") == (has_few && table.contains_key("ansi"));
                Ok(if is_used { style.fg(colour) } else { style })
            }
            name @ ("bg" | "ansi_bg") => {
                let colour = self.colour(value)?;
                let is_used = (name == "ansi_bg") == (has_few && table.contains_key("ansi_bg"));
                Ok(if is_used { style.bg(colour) } else { style })
            }
            "bold" => self.modifier(style, value, Modifier::BOLD),
            "dim" => self.modifier(style, value, Modifier::DIM),
            "italic" => self.modifier(style, value, Modifier::ITALIC),
            "underline" => self.modifier(style, value, Modifier::UNDERLINED),
            "reverse" => self.modifier(style, value, Modifier::REVERSED),
            other => Err(self.refuse(key.span().start, "member", other, MEMBERS.to_owned())),
        }
    }

    fn colour(&self, value: &Spanned<DeValue<'_>>) -> Result<Color, ConfigError> {
        let raw = self.text.get(value.span()).unwrap_or_default().trim_matches(['"', '\'']);
        let parsed = colour::parse(raw).ok_or_else(|| {
            let allowed = format!("#rrggbb, 0 to 255, default, {}", colour::NAMES.join(", "));
            self.refuse(value.span().start, "colour", raw, allowed)
        })?;
        Ok(colour::reduce(parsed, self.depth))
    }

    fn modifier(
        &self,
        style: Style,
        value: &Spanned<DeValue<'_>>,
        which: Modifier,
    ) -> Result<Style, ConfigError> {
        match value.get_ref() {
            DeValue::Boolean(true) => Ok(style.add_modifier(which)),
            DeValue::Boolean(false) => Ok(style.remove_modifier(which)),
            _ => {
                let found = self.text.get(value.span()).unwrap_or_default();
                Err(self.refuse(value.span().start, "value", found, "true or false".to_owned()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_theme_gives_every_role_a_place_and_loads_at_every_depth() {
        for (name, text) in BUILT_IN {
            for depth in [Depth::None, Depth::Eight, Depth::Sixteen, Depth::Indexed, Depth::True] {
                assert!(Theme::load(name, depth).is_ok(), "{name} at {depth:?}");
            }
            let table = parse_toml(name, text).unwrap();
            for role in Role::ALL {
                assert!(table.contains_key(role.name()), "{name} lacks {}", role.name());
            }
        }
    }

    #[test]
    fn without_colours_no_role_has_one() {
        for name in ["dark", "light", "high-contrast", "no-colour"] {
            let theme = Theme::load(name, Depth::None).unwrap();
            for role in Role::ALL {
                let style = theme.style(*role);
                assert_eq!((style.fg, style.bg), (None, None), "{name} {role:?}");
            }
            assert!(theme.style(Role::Selection).add_modifier.contains(Modifier::REVERSED), "{name}");
        }
    }

    #[test]
    fn few_colours_take_the_ansi_members() {
        let text = "ok = { fg = \"#123456\", ansi = \"cyan\", bold = true }";
        let few = Theme::parse("t.toml", text, Depth::Sixteen).unwrap().style(Role::Ok);
        let many = Theme::parse("t.toml", text, Depth::True).unwrap().style(Role::Ok);
        assert_eq!(few.fg, Some(Color::Indexed(6)));
        assert_eq!(many.fg, Some(Color::Rgb(0x12, 0x34, 0x56)));
        assert!(few.add_modifier.contains(Modifier::BOLD));
    }

    #[test]
    fn a_short_file_takes_the_rest_from_its_base() {
        let theme = Theme::parse("t.toml", "base = \"light\"\nok = { fg = 3 }", Depth::True).unwrap();
        let light = Theme::load("light", Depth::True).unwrap();
        assert_eq!(theme.style(Role::Ok).fg, Some(Color::Indexed(3)));
        assert_eq!(theme.style(Role::Error), light.style(Role::Error));
    }

    #[test]
    fn what_is_wrong_is_said_with_file_line_and_allowed_values() {
        let cases = [
            ("\nokk = { fg = \"red\" }", "t.toml:2: unknown role `okk`; use text, muted,"),
            (
                "ok = { fg = \"redd\" }",
                "t.toml:1: unknown colour `redd`; use #rrggbb, 0 to 255, default, black,",
            ),
            ("# x\n\nok = { colour = \"red\" }", "t.toml:3: unknown member `colour`; use fg, bg,"),
            ("ok = { bold = 1 }", "t.toml:1: unknown value `1`; use true or false"),
            ("ok = \"red\"", "t.toml:1: unknown look `\"red\"`; use a table of fg,"),
            ("base = \"dusk\"", "t.toml:1: unknown base `dusk`; use dark, light, high-contrast, no-colour"),
            ("ok = {", "t.toml:1: "),
        ];
        for (text, expected) in cases {
            let said = Theme::parse("t.toml", text, Depth::True).unwrap_err().to_string();
            assert!(said.starts_with(expected), "{text:?} said {said:?}");
        }
        let said = Theme::load("dusk", Depth::True).unwrap_err().to_string();
        assert!(said.starts_with("unknown theme `dusk`; use one of dark, light,"), "{said}");
        let said = Theme::load("/nowhere/x.toml", Depth::True).unwrap_err().to_string();
        assert!(said.starts_with("cannot read /nowhere/x.toml: "), "{said}");
    }

    #[test]
    fn a_light_background_asks_for_the_light_theme() {
        let env = |value: &'static str| move |name: &str| (name == "COLORFGBG").then(|| value.to_owned());
        assert_eq!(Theme::auto_name(env("0;15")), "light");
        assert_eq!(Theme::auto_name(env("15;default;0")), "dark");
        assert_eq!(Theme::auto_name(|_| None), "dark");
    }
}

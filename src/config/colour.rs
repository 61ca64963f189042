//! How many colours the terminal has, and colours written as text.

use ratatui::style::Color;

/// How many colours may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// No colours: bold, reverse and underline only.
    None,
    /// The eight colours that the terminal defines.
    Eight,
    /// Those and their bright forms.
    Sixteen,
    /// The fixed palette of 256.
    Indexed,
    /// 24 bits.
    True,
}

impl Depth {
    /// The names allowed in settings and on the command line.
    pub const NAMES: &'static str = "auto, none, 8, 16, 256, true";

    /// The depth of a name; `Ok(None)` for `auto`.
    ///
    /// # Errors
    /// Returns the name when it is not one of [`Depth::NAMES`].
    pub fn from_name(name: &str) -> Result<Option<Depth>, String> {
        match name {
            "auto" => Ok(None),
            "none" => Ok(Some(Depth::None)),
            "8" => Ok(Some(Depth::Eight)),
            "16" => Ok(Some(Depth::Sixteen)),
            "256" => Ok(Some(Depth::Indexed)),
            "true" => Ok(Some(Depth::True)),
            other => Err(other.to_owned()),
        }
    }

    /// What the environment says, in this order: `NO_COLOR`, `CLICOLOR_FORCE`, no terminal,
    /// `COLORTERM`, `TERM`. A flag or a setting comes before all of these and is not asked here.
    pub fn detect(env: impl Fn(&str) -> Option<String>, is_terminal: bool) -> Depth {
        let set = |name: &str| env(name).filter(|value| !value.is_empty());
        if set("NO_COLOR").is_some() {
            return Depth::None;
        }
        let is_forced = set("CLICOLOR_FORCE").is_some_and(|value| value != "0");
        if !is_terminal && !is_forced {
            return Depth::None;
        }
        let by_term = match (set("COLORTERM").as_deref(), set("TERM").as_deref()) {
            (Some("truecolor" | "24bit"), _) => Depth::True,
            (_, None | Some("dumb" | "unknown" | "vt100" | "vt102" | "vt220")) => Depth::None,
            (_, Some(term)) if term.contains("direct") || term.contains("truecolor") => Depth::True,
            (_, Some(term)) if term.contains("256color") => Depth::Indexed,
            (_, Some("linux" | "cons25")) => Depth::Eight,
            _ => Depth::Sixteen,
        };
        if is_forced { by_term.max(Depth::Eight) } else { by_term }
    }
}

/// Whether drawings must do with ASCII, by the locale: `LC_ALL`, then `LC_CTYPE`, then `LANG`. A
/// locale that is set and does not name UTF-8 means ASCII; so does the Linux console, whose font
/// lacks the drawing glyphs; with no locale at all UTF-8 is assumed.
pub fn wants_ascii(env: impl Fn(&str) -> Option<String>) -> bool {
    if env("TERM").as_deref() == Some("linux") {
        return true;
    }
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .find_map(|name| env(name).filter(|value| !value.is_empty()));
    locale.is_some_and(|value| {
        let value = value.to_ascii_lowercase();
        !(value.contains("utf-8") || value.contains("utf8"))
    })
}

/// The names of the sixteen colours that a terminal defines, in palette order.
pub(super) const NAMES: [&str; 16] = [
    "black",
    "red",
    "green",
    "yellow",
    "blue",
    "magenta",
    "cyan",
    "white",
    "bright-black",
    "bright-red",
    "bright-green",
    "bright-yellow",
    "bright-blue",
    "bright-magenta",
    "bright-cyan",
    "bright-white",
];

/// A colour as a theme file writes it: `#rrggbb`, `0`–`255`, `default`, or a name of [`NAMES`].
pub(super) fn parse(text: &str) -> Option<Color> {
    if text == "default" {
        return Some(Color::Reset);
    }
    if let Some(hex) = text.strip_prefix('#') {
        let is_hex = hex.len() == 6 && hex.bytes().all(|b| b.is_ascii_hexdigit());
        let rgb = u32::from_str_radix(hex, 16).ok().filter(|_| is_hex)?;
        let [_, red, green, blue] = rgb.to_be_bytes();
        return Some(Color::Rgb(red, green, blue));
    }
    if let Some(index) = NAMES.iter().position(|name| *name == text) {
        return u8::try_from(index).ok().map(Color::Indexed);
    }
    text.parse::<u8>().ok().map(Color::Indexed)
}

/// The colour that comes nearest at this depth.
pub(super) fn reduce(colour: Color, depth: Depth) -> Color {
    match (colour, depth) {
        (_, Depth::None) => Color::Reset,
        (Color::Rgb(red, green, blue), Depth::Indexed) => Color::Indexed(nearest_256(red, green, blue)),
        (Color::Rgb(red, green, blue), Depth::Sixteen) => Color::Indexed(nearest_16(red, green, blue)),
        (Color::Rgb(red, green, blue), Depth::Eight) => Color::Indexed(nearest_16(red, green, blue) % 8),
        (Color::Indexed(index), Depth::Eight) if index < 16 => Color::Indexed(index % 8),
        (Color::Indexed(index), Depth::Eight | Depth::Sixteen) if index >= 16 => {
            let (red, green, blue) = rgb_of(index);
            reduce(Color::Rgb(red, green, blue), depth)
        }
        (other, _) => other,
    }
}

/// The levels of the 6×6×6 cube in the palette of 256.
const CUBE: [u8; 6] = [0, 95, 135, 175, 215, 255];

/// Index in the 6×6×6 cube or the grey ramp, whichever lies nearer.
fn nearest_256(red: u8, green: u8, blue: u8) -> u8 {
    nearest(16..=255, (red, green, blue))
}

/// The usual values of the sixteen colours; terminals may define others.
const ANSI: [(u8, u8, u8); 16] = [
    (0, 0, 0),
    (205, 49, 49),
    (13, 188, 121),
    (229, 229, 16),
    (36, 114, 200),
    (188, 63, 188),
    (17, 168, 205),
    (229, 229, 229),
    (102, 102, 102),
    (241, 76, 76),
    (35, 209, 139),
    (245, 245, 67),
    (59, 142, 234),
    (214, 112, 214),
    (41, 184, 219),
    (255, 255, 255),
];

fn nearest_16(red: u8, green: u8, blue: u8) -> u8 {
    nearest(0..=15, (red, green, blue))
}

fn nearest(among: std::ops::RangeInclusive<u8>, to: (u8, u8, u8)) -> u8 {
    among.min_by_key(|index| distance(rgb_of(*index), to)).unwrap_or_default()
}

fn rgb_of(index: u8) -> (u8, u8, u8) {
    let level = |step: u8| CUBE.get(usize::from(step)).copied().unwrap_or(255);
    match index {
        0..=15 => ANSI.get(usize::from(index)).copied().unwrap_or((255, 255, 255)),
        16..=231 => {
            let cell = index - 16;
            (level(cell / 36), level(cell / 6 % 6), level(cell % 6))
        }
        232..=255 => {
            let grey = 8 + 10 * (index - 232);
            (grey, grey, grey)
        }
    }
}

fn distance(a: (u8, u8, u8), b: (u8, u8, u8)) -> u32 {
    let square = |x: u8, y: u8| u32::from(x.abs_diff(y)).pow(2);
    square(a.0, b.0) + square(a.1, b.1) + square(a.2, b.2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(pairs: &'static [(&'static str, &'static str)]) -> impl Fn(&str) -> Option<String> {
        move |name| pairs.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned())
    }

    #[test]
    fn the_environment_is_asked_in_the_stated_order() {
        type Environment = &'static [(&'static str, &'static str)];
        let cases: [(Environment, bool, Depth); 10] = [
            (&[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1"), ("COLORTERM", "truecolor")], true, Depth::None),
            (&[("NO_COLOR", ""), ("COLORTERM", "truecolor")], true, Depth::True),
            (&[("COLORTERM", "truecolor")], false, Depth::None),
            (&[("CLICOLOR_FORCE", "1"), ("COLORTERM", "truecolor")], false, Depth::True),
            (&[("CLICOLOR_FORCE", "1"), ("TERM", "dumb")], false, Depth::Eight),
            (&[("CLICOLOR_FORCE", "0"), ("TERM", "xterm")], false, Depth::None),
            (&[("TERM", "xterm-256color")], true, Depth::Indexed),
            (&[("TERM", "xterm")], true, Depth::Sixteen),
            (&[("TERM", "linux")], true, Depth::Eight),
            (&[], true, Depth::None),
        ];
        for (pairs, is_terminal, expected) in cases {
            assert_eq!(Depth::detect(env(pairs), is_terminal), expected, "{pairs:?} terminal {is_terminal}");
        }
    }

    #[test]
    fn a_locale_without_utf_8_asks_for_ascii() {
        assert!(!wants_ascii(env(&[])));
        assert!(!wants_ascii(env(&[("LANG", "de_DE.UTF-8")])));
        assert!(wants_ascii(env(&[("LANG", "C")])));
        assert!(wants_ascii(env(&[("LC_ALL", "POSIX"), ("LANG", "en_US.utf8")])));
        assert!(!wants_ascii(env(&[("LC_ALL", ""), ("LANG", "en_US.utf8")])));
        assert!(wants_ascii(env(&[("TERM", "linux"), ("LANG", "en_US.utf8")])));
    }

    #[test]
    fn colours_are_read_and_reduced() {
        assert_eq!(parse("#ff0000"), Some(Color::Rgb(255, 0, 0)));
        assert_eq!(parse("bright-blue"), Some(Color::Indexed(12)));
        assert_eq!(parse("231"), Some(Color::Indexed(231)));
        assert_eq!(parse("default"), Some(Color::Reset));
        for bad in ["#ff00", "#gggggg", "#+12345", "256", "blu", ""] {
            assert_eq!(parse(bad), None, "{bad}");
        }
        assert_eq!(reduce(Color::Rgb(255, 0, 0), Depth::Indexed), Color::Indexed(196));
        assert_eq!(reduce(Color::Rgb(240, 70, 70), Depth::Sixteen), Color::Indexed(9));
        assert_eq!(reduce(Color::Rgb(240, 70, 70), Depth::Eight), Color::Indexed(1));
        assert_eq!(reduce(Color::Indexed(12), Depth::Eight), Color::Indexed(4));
        assert_eq!(reduce(Color::Rgb(1, 2, 3), Depth::None), Color::Reset);
        assert_eq!(reduce(Color::Rgb(1, 2, 3), Depth::True), Color::Rgb(1, 2, 3));
    }
}

//! JSON strings, written fast. A message in a string has a quote every few bytes, so what counts
//! is that an escape costs no branch.

/// Set in [`FORM`] where a backslash goes before the byte.
const BACKSLASH: u16 = 0x100;

/// Set in [`FORM`] where the byte needs a longer look.
const HARD: u16 = 0x200;

/// What stands for a byte in a JSON string: the low byte, perhaps after a backslash.
const FORM: [u16; 256] = {
    let mut form = [0; 256];
    let mut byte: u16 = 0;
    while byte < 256 {
        form[byte as usize] = if byte < 0x20 { HARD } else { byte };
        byte += 1;
    }
    form[0x08] = BACKSLASH | b'b' as u16;
    form[0x09] = BACKSLASH | b't' as u16;
    form[0x0a] = BACKSLASH | b'n' as u16;
    form[0x0c] = BACKSLASH | b'f' as u16;
    form[0x0d] = BACKSLASH | b'r' as u16;
    form[b'"' as usize] = BACKSLASH | b'"' as u16;
    form[b'\\' as usize] = BACKSLASH | b'\\' as u16;
    form[0x7f] = HARD;
    form[C1_LEAD as usize] = HARD;
    form
};

/// First byte of U+0080 to U+00BF in UTF-8.
const C1_LEAD: u8 = 0xc2;

/// Bytes that are escaped at one time.
const CHUNK: usize = 32;

/// Appends `text` as a JSON string with its quotes.
///
/// ours: DEL and the C1 control characters are escaped too, although JSON does not ask for it, so
/// that printing a recording cannot drive a terminal.
pub(super) fn push_string(out: &mut Vec<u8>, text: &str) {
    out.reserve(text.len() + text.len() / 4 + 2);
    out.push(b'"');
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        let chunk = rest.get(..CHUNK).unwrap_or(rest);
        let taken = if push_easy(out, chunk) { chunk.len() } else { push_hard(out, rest, chunk.len()) };
        rest = rest.get(taken..).unwrap_or_default();
    }
    out.push(b'"');
}

/// Appends a chunk, unless a byte of it is hard. The masks hold for any chunk of at most [`CHUNK`]
/// bytes, and only spare the bounds checks.
fn push_easy(out: &mut Vec<u8>, chunk: &[u8]) -> bool {
    let (mut escaped, mut len, mut all) = ([0; 2 * CHUNK], 0, 0);
    for &byte in chunk {
        let form = FORM[usize::from(byte)];
        all |= form;
        escaped[len & (2 * CHUNK - 1)] = b'\\';
        len += usize::from(form & BACKSLASH != 0);
        escaped[len & (2 * CHUNK - 1)] = (form & 0xff) as u8;
        len += 1;
    }
    let is_easy = all & HARD == 0;
    if is_easy {
        out.extend_from_slice(&escaped[..len]);
    }
    is_easy
}

/// Appends at least `len` bytes of `text`, each with a longer look; returns how many.
fn push_hard(out: &mut Vec<u8>, text: &[u8], len: usize) -> usize {
    let mut taken = 0;
    while let Some(&byte) = text.get(taken).filter(|_| taken < len) {
        let form = FORM[usize::from(byte)];
        taken += 1;
        if form & HARD == 0 {
            if form & BACKSLASH != 0 {
                out.push(b'\\');
            }
            out.push((form & 0xff) as u8);
        } else if byte != C1_LEAD {
            push_code(out, byte);
        } else if let Some(&c1) = text.get(taken).filter(|&&next| next < 0xa0) {
            push_code(out, c1);
            taken += 1;
        } else {
            out.push(byte);
        }
    }
    taken
}

/// Appends `\u00XX`.
fn push_code(out: &mut Vec<u8>, code: u8) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.extend_from_slice(&[
        b'\\',
        b'u',
        b'0',
        b'0',
        HEX[usize::from(code >> 4)],
        HEX[usize::from(code & 15)],
    ]);
}

/// Appends a whole number in decimal.
pub(super) fn push_number(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut from = digits.len();
    loop {
        from -= 1;
        digits[from] = b'0' + u8::try_from(number % 10).unwrap_or(0);
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[from..]);
}

/// Appends nanoseconds as milliseconds: exact, with as many digits after the point as it takes.
pub(super) fn push_ms(out: &mut Vec<u8>, ns: u64) {
    push_number(out, ns / 1_000_000);
    let mut fraction = ns % 1_000_000;
    if fraction == 0 {
        return;
    }
    out.push(b'.');
    let mut unit = 100_000;
    while fraction > 0 {
        out.push(b'0' + u8::try_from(fraction / unit).unwrap_or(0));
        fraction %= unit;
        unit /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn string(text: &str) -> String {
        let mut out = Vec::new();
        push_string(&mut out, text);
        String::from_utf8(out).unwrap()
    }

    fn ms(ns: u64) -> String {
        let mut out = Vec::new();
        push_ms(&mut out, ns);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn strings_are_escaped_as_json_and_for_terminals() {
        for (text, json) in [
            ("", r#""""#),
            ("plain", r#""plain""#),
            ("a\"b\\c\n", r#""a\"b\\c\n""#),
            ("\u{8}\t\u{c}\r\u{0}\u{1b}", r#""\b\t\f\r\u0000\u001b""#),
            ("\u{7f}\u{80}\u{9b}\u{a0}é\u{2028}🙂", "\"\\u007f\\u0080\\u009b\u{a0}é\u{2028}🙂\""),
        ] {
            assert_eq!(string(text), json);
        }
    }

    #[test]
    fn milliseconds_are_exact_and_short() {
        for (ns, text) in [
            (0, "0"),
            (1, "0.000001"),
            (999_999, "0.999999"),
            (1_000_000, "1"),
            (1_500_000, "1.5"),
            (12_000_100, "12.0001"),
            (u64::MAX, "18446744073709.551615"),
        ] {
            assert_eq!(ms(ns), text);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_back_by_any_json_reader(text in ".{0,90}|[a-z\"]{60,100}|[\\x00-\\xff]{0,90}") {
            prop_assert_eq!(serde_json::from_str::<String>(&string(&text)).unwrap(), text);
        }
    }
}

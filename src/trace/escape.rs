//! JSON strings, written fast: runs of harmless bytes are copied whole.

/// What a byte needs in a JSON string: 0 nothing, `u` a `\u00XX`, [`LEAD`] a look at the next
/// byte, anything else that letter after a backslash.
const NEEDS: [u8; 256] = {
    let mut needs = [0; 256];
    let mut byte = 0;
    while byte < 0x20 {
        needs[byte] = b'u';
        byte += 1;
    }
    needs[0x08] = b'b';
    needs[0x09] = b't';
    needs[0x0a] = b'n';
    needs[0x0c] = b'f';
    needs[0x0d] = b'r';
    needs[b'"' as usize] = b'"';
    needs[b'\\' as usize] = b'\\';
    needs[0x7f] = b'u';
    needs[0xc2] = LEAD;
    needs
};

/// First byte of U+0080 to U+00BF.
const LEAD: u8 = 1;

/// Appends `text` as a JSON string with its quotes.
///
/// ours: DEL and the C1 control characters are escaped too, although JSON does not ask for it, so
/// that printing a recording cannot drive a terminal.
pub(super) fn push_string(out: &mut Vec<u8>, text: &str) {
    out.reserve(text.len() + text.len() / 4 + 2);
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut rest = bytes;
    let mut from = 0;
    while let Some(&byte) = rest.get(from) {
        let need = NEEDS[usize::from(byte)];
        if need == 0 {
            from += 1;
            continue;
        }
        if need == LEAD {
            match rest.get(from + 1) {
                Some(&c1) if c1 < 0xa0 => {
                    out.extend_from_slice(&rest[..from]);
                    push_code(out, c1);
                    rest = &rest[from + 2..];
                    from = 0;
                }
                _ => from += 2,
            }
            continue;
        }
        out.extend_from_slice(&rest[..from]);
        if need == b'u' {
            push_code(out, byte);
        } else {
            out.extend_from_slice(&[b'\\', need]);
        }
        rest = &rest[from + 1..];
        from = 0;
    }
    out.extend_from_slice(rest);
    out.push(b'"');
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
        fn any_text_is_read_back_by_any_json_reader(text in ".{0,60}|\\PC{0,20}|[\\x00-\\xff]{0,60}") {
            prop_assert_eq!(serde_json::from_str::<String>(&string(&text)).unwrap(), text);
        }
    }
}

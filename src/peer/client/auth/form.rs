//! `application/x-www-form-urlencoded`: queries and bodies of OAuth.

use std::fmt::Write as _;

/// Name and value pairs, encoded.
pub(super) fn encode(pairs: &[(&str, &str)]) -> String {
    let pairs: Vec<String> =
        pairs.iter().map(|(name, value)| format!("{}={}", component(name), component(value))).collect();
    pairs.join("&")
}

/// One name or value: everything but letters, digits and `-._~` as `%XX`.
pub(super) fn component(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// The pairs of a query, decoded, in order; `None`: it is none, or no UTF-8.
pub(super) fn decode(query: &str) -> Option<Vec<(String, String)>> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((plain(name)?, plain(value)?))
        })
        .collect()
}

fn plain(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'+' => b' ',
            b'%' => hex(bytes.next()?)? << 4 | hex(bytes.next()?)?,
            other => other,
        });
    }
    String::from_utf8(decoded).ok()
}

fn hex(digit: u8) -> Option<u8> {
    u8::try_from(char::from(digit).to_digit(16)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_comes_back() {
        for text in ["", "plain", "a b&c=d", "http://h/ü?x#y", "100% + 1", "~-._"] {
            let encoded = encode(&[("n", text)]);
            assert!(encoded.is_ascii() && !encoded.contains([' ', '#', '+']), "{encoded}");
            assert_eq!(decode(&encoded), Some(vec![("n".to_owned(), text.to_owned())]), "{encoded}");
        }
    }

    #[test]
    fn queries_as_others_write_them() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let rows = [
            ("code=a%2fb&state=x+y", Some(vec![pair("code", "a/b"), pair("state", "x y")])),
            ("&&flag&a=b=c", Some(vec![pair("flag", ""), pair("a", "b=c")])),
            ("", Some(vec![])),
            ("a=%", None),
            ("a=%4", None),
            ("a=%zz", None),
            ("a=%ff", None),
        ];
        for (query, pairs) in rows {
            assert_eq!(decode(query), pairs, "{query}");
        }
    }
}

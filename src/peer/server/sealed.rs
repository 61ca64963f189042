//! State that a client carries for the server: it can be read and kept, but not changed.
//!
//! A modern server remembers nothing between requests, so what an interrupted request needs to go
//! on travels in `requestState` and comes back. The seal proves that it is what was given out.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Bytes of the key and of a seal.
const KEY_BYTES: usize = 32;
/// Bytes that SHA-256 takes at a time (FIPS 180-4).
const BLOCK_BYTES: usize = 64;

/// The key of one server, or of several that share it. What was sealed under another key does not
/// open.
pub(super) struct Seal([u8; KEY_BYTES]);

impl std::fmt::Debug for Seal {
    /// A key is not shown.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seal")
    }
}

impl Seal {
    /// The seal of those who know this text; `None`: of this server alone, until it ends.
    pub(super) fn new(shared: Option<&[u8]>) -> Seal {
        Seal(shared.map_or_else(random, |text| Sha256::digest(text).into()))
    }

    /// Text that opens to this state.
    pub(super) fn close(&self, state: &Value) -> String {
        let state = state.to_string();
        let seal = hmac(&self.0, state.as_bytes());
        format!("{}.{}", URL_SAFE_NO_PAD.encode(state), URL_SAFE_NO_PAD.encode(seal))
    }

    /// The state that was closed into this text; `None`: it was not, or not by this key.
    pub(super) fn open(&self, text: &str) -> Option<Value> {
        let (state, seal) = text.split_once('.')?;
        let state = URL_SAFE_NO_PAD.decode(state).ok()?;
        let seal = URL_SAFE_NO_PAD.decode(seal).ok()?;
        let expected = hmac(&self.0, &state);
        // Every byte is looked at, so that the time taken does not tell how many are right.
        let differences = expected.iter().zip(&seal).fold(0, |sum, (a, b)| sum | (a ^ b));
        if seal.len() != KEY_BYTES || differences != 0 {
            return None;
        }
        serde_json::from_slice(&state).ok()
    }
}

/// Bytes that nobody can guess.
pub(super) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        // Interrupted or not ready yet: there is nothing better to do than to ask again.
        filled += rustix::rand::getrandom(rest, rustix::rand::GetRandomFlags::empty()).unwrap_or(0);
    }
    bytes
}

/// A name that nobody can guess: `KIND-` and 32 hexadecimal digits.
pub(super) fn handle(kind: &str) -> String {
    format!("{kind}-{:032x}", u128::from_be_bytes(random()))
}

/// HMAC-SHA-256 (RFC 2104) under a key shorter than a block.
fn hmac(key: &[u8; KEY_BYTES], text: &[u8]) -> [u8; KEY_BYTES] {
    let padded = |pad: u8| {
        let mut block = [pad; BLOCK_BYTES];
        for (place, byte) in block.iter_mut().zip(key) {
            *place ^= byte;
        }
        block
    };
    let inner = Sha256::new().chain_update(padded(0x36)).chain_update(text).finalize();
    Sha256::new().chain_update(padded(0x5c)).chain_update(inner).finalize().into()
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use serde_json::json;

    use super::*;

    #[test]
    fn the_seal_is_that_of_the_standard() {
        // RFC 4231, test case 1, its key of 20 bytes filled up with zeros as the standard does.
        let mut key = [0; KEY_BYTES];
        key[..20].fill(0x0b);
        let hex = hmac(&key, b"Hi There").iter().fold(String::new(), |mut hex, byte| {
            write!(hex, "{byte:02x}").unwrap();
            hex
        });
        assert_eq!(hex, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    }

    #[test]
    fn only_what_was_closed_opens() {
        let seal = Seal::new(None);
        let state = json!({ "asked": ["name"], "round": 1 });
        let text = seal.close(&state);
        assert_eq!(seal.open(&text), Some(state.clone()));
        let other = Seal::new(None).close(&state);
        let (body, end) = text.split_once('.').unwrap();
        let longer = format!("{body}x.{end}");
        for forged in ["", ".", "a.b", body, end, &format!("{body}."), &longer, &other] {
            assert_eq!(seal.open(forged), None, "{forged}");
        }
    }

    #[test]
    fn those_who_share_a_key_open_what_the_others_closed() {
        let [one, two, three] = ["a key", "a key", "b key"].map(|key| Seal::new(Some(key.as_bytes())));
        let text = one.close(&json!({ "round": 2 }));
        assert_eq!(two.open(&text), Some(json!({ "round": 2 })));
        assert_eq!(three.open(&text), None);
        assert_eq!(Seal::new(None).open(&text), None);
    }
}

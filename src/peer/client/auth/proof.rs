//! What ties an answer to its request: the proof key of the code (RFC 7636) and the state.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use super::error::AuthError;
use super::secret::Secret;

/// Random bytes of one value: 256 bits, which nobody guesses (RFC 7636 §7.1).
const RANDOM_BYTES: usize = 32;

/// One authorization request's own values.
#[derive(Debug)]
pub(super) struct Proof {
    /// Goes with the code to the token endpoint, and nowhere before.
    pub(super) verifier: Secret,
    /// Comes back with the answer.
    pub(super) state: String,
}

impl Proof {
    /// New ones.
    ///
    /// # Errors
    /// When the system gives no random numbers.
    pub(super) fn new() -> Result<Proof, AuthError> {
        Ok(Proof { verifier: Secret::new(random()?), state: random()? })
    }

    /// What the authorization request says of the verifier, by the method S256.
    pub(super) fn challenge(&self) -> String {
        challenge(self.verifier.expose())
    }
}

fn challenge(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(verifier))
}

/// A text that nobody guesses.
///
/// # Errors
/// When the system gives no random numbers.
pub(super) fn random() -> Result<String, AuthError> {
    let mut bytes = [0; RANDOM_BYTES];
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match rustix::rand::getrandom(rest, rustix::rand::GetRandomFlags::empty()) {
            Ok(more) if more > 0 => filled += more,
            _ => return Err(AuthError::NoRandom),
        }
    }
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_challenge_is_that_of_rfc_7636() {
        // Appendix B.
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        assert_eq!(challenge(verifier), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }

    #[test]
    fn every_request_has_its_own_values() {
        let (a, b) = (Proof::new().unwrap(), Proof::new().unwrap());
        assert!(a.verifier != b.verifier && a.state != b.state && a.state != a.verifier.expose());
        // RFC 7636 §4.1: 43 to 128 characters.
        assert_eq!(a.verifier.expose().len(), 43);
        assert!(!format!("{a:?}").contains(a.verifier.expose()));
    }
}

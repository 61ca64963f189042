//! A client that proves itself by its private key: a signed assertion of its own for each request
//! (RFC 7523 §3, signed by ES256 of RFC 7518 §3.4).

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};

use super::error::AuthError;
use super::proof;
use super::secret::Secret;

/// How long an assertion is good, in seconds. ours: it is used at once, and clocks differ a little.
const GOOD_FOR_S: i64 = 120;

/// A private key on the curve P-256.
pub struct ClientKey {
    pair: EcdsaKeyPair,
    random: SystemRandom,
}

impl fmt::Debug for ClientKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientKey")
    }
}

impl ClientKey {
    /// A key in PKCS #8, as PEM.
    ///
    /// # Errors
    /// When it is none of P-256.
    pub fn from_pem(pem: &Secret) -> Result<ClientKey, AuthError> {
        let bad = |why| AuthError::BadKey { why };
        let der = PrivatePkcs8KeyDer::from_pem_slice(pem.expose().as_bytes())
            .map_err(|_| bad("it is no PEM with a PRIVATE KEY (PKCS #8)"))?;
        let random = SystemRandom::new();
        let pair =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der.secret_pkcs8_der(), &random);
        Ok(ClientKey { pair: pair.map_err(|_| bad("it is not on the curve P-256"))?, random })
    }

    /// What the client says of itself to one authorization server; `now_s`: Unix time in seconds.
    ///
    /// # Errors
    /// When the system gives no random numbers.
    pub(super) fn assertion(&self, client: &str, issuer: &str, now_s: i64) -> Result<Secret, AuthError> {
        let claims = json!({
            "iss": client,
            "sub": client,
            "aud": issuer,
            "iat": now_s,
            "exp": now_s.saturating_add(GOOD_FOR_S),
            "jti": proof::random()?,
        });
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&json!({ "alg": "ES256", "typ": "JWT" })), part(&claims));
        let signature = self.pair.sign(&self.random, signed.as_bytes()).map_err(|_| AuthError::NoRandom)?;
        Ok(Secret::new(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))))
    }
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::STANDARD;
    use ring::signature::{ECDSA_P256_SHA256_FIXED, KeyPair, UnparsedPublicKey};

    use super::*;

    fn pem(der: &[u8]) -> Secret {
        let text = STANDARD.encode(der);
        Secret::new(format!("-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----\n"))
    }

    #[test]
    fn an_assertion_is_signed_and_each_is_another() {
        let random = SystemRandom::new();
        let der = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let key = ClientKey::from_pem(&pem(der.as_ref())).unwrap();
        let assertion = key.assertion("c", "https://as.example", 1000).unwrap();
        let (signed, signature) = assertion.expose().rsplit_once('.').unwrap();
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key.pair.public_key().as_ref());
        public.verify(signed.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap()).unwrap();
        let read =
            |part: &str| -> Value { serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap() };
        let (head, claims) = signed.split_once('.').unwrap();
        assert_eq!(read(head), json!({ "alg": "ES256", "typ": "JWT" }));
        let mut claims = read(claims);
        assert!(claims["jti"].take().as_str().unwrap().len() > 30);
        let expected = json!({
            "iss": "c", "sub": "c", "aud": "https://as.example", "iat": 1000, "exp": 1120, "jti": null,
        });
        assert_eq!(claims, expected);
        assert_ne!(key.assertion("c", "https://as.example", 1000).unwrap(), assertion);
    }

    #[test]
    fn what_is_no_key_is_refused_without_being_shown() {
        for (text, word) in
            [(Secret::new(""), "no PEM"), (Secret::new("s3cret"), "no PEM"), (pem(b"s3cret"), "P-256")]
        {
            let error = ClientKey::from_pem(&text).unwrap_err().to_string();
            assert!(error.contains(word) && !error.contains("s3cret"), "{error}");
        }
    }
}

//! What an authorization server says of itself (RFC 8414, `OpenID` Connect Discovery).

use serde::Deserialize;

use super::error::AuthError;
use super::places;

/// The members that a client needs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(super) struct IssuerMetadata {
    pub(super) issuer: String,
    pub(super) authorization_endpoint: Option<String>,
    pub(super) token_endpoint: Option<String>,
    pub(super) registration_endpoint: Option<String>,
    pub(super) scopes_supported: Option<Vec<String>>,
    pub(super) grant_types_supported: Option<Vec<String>>,
    pub(super) token_endpoint_auth_methods_supported: Option<Vec<String>>,
    pub(super) code_challenge_methods_supported: Vec<String>,
    pub(super) client_id_metadata_document_supported: bool,
    /// Every answer to an authorization request names its issuer (RFC 9207 §3).
    pub(super) authorization_response_iss_parameter_supported: bool,
}

/// Where the metadata of an issuer is looked for, in order.
/// // spec 2026-07-28 basic/authorization/authorization-server-discovery
pub(super) fn metadata_urls(issuer: &str) -> Vec<String> {
    let (Some(base), Some((_, path))) = (places::base(issuer), places::parts(issuer)) else {
        return Vec::new();
    };
    let path = path.trim_end_matches('/');
    let (oauth, openid) = ("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration");
    let mut urls = vec![format!("{base}{oauth}{path}"), format!("{base}{openid}{path}")];
    if !path.is_empty() {
        urls.push(format!("{base}{path}{openid}"));
    }
    urls
}

impl IssuerMetadata {
    /// Whether it is the metadata of whom was asked, letter by letter (RFC 8414 §3.3).
    ///
    /// # Errors
    /// When it is somebody else's.
    pub(super) fn check(&self, issuer: &str) -> Result<(), AuthError> {
        if self.issuer == issuer {
            return Ok(());
        }
        Err(AuthError::OtherIssuer { issuer: issuer.to_owned(), named: self.issuer.clone() })
    }

    /// Whether codes are protected by proof keys; where nothing is said of it, they are not
    /// (spec 2026-07-28 basic/authorization/security-considerations, code protection).
    ///
    /// # Errors
    /// When they are not.
    pub(super) fn check_proof_keys(&self) -> Result<(), AuthError> {
        if self.code_challenge_methods_supported.iter().any(|method| method == "S256") {
            return Ok(());
        }
        Err(AuthError::NoProofKey { issuer: self.issuer.clone() })
    }

    /// An endpoint, which has to be there and safe to go to.
    ///
    /// # Errors
    /// When it is not.
    pub(super) fn endpoint<'a>(
        &self,
        what: &'static str,
        url: Option<&'a String>,
        is_local: bool,
    ) -> Result<&'a str, AuthError> {
        let missing = || AuthError::NotOffered { issuer: self.issuer.clone(), what: what.to_owned() };
        let url = url.ok_or_else(missing)?;
        places::check(what, url, is_local)?;
        Ok(url)
    }

    /// Where tokens are fetched.
    ///
    /// # Errors
    /// As [`IssuerMetadata::endpoint`].
    pub(super) fn token_endpoint(&self, is_local: bool) -> Result<&str, AuthError> {
        self.endpoint("token endpoint", self.token_endpoint.as_ref(), is_local)
    }

    /// It may give tokens that last without a person.
    pub(super) fn offers(&self, grant_type: &str) -> bool {
        self.grant_types_supported.as_ref().is_none_or(|types| types.iter().any(|one| one == grant_type))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_looked_for_in_the_order_of_the_specification() {
        let rows: [(&str, &[&str]); 4] = [
            (
                "https://a.example/tenant1",
                &[
                    "https://a.example/.well-known/oauth-authorization-server/tenant1",
                    "https://a.example/.well-known/openid-configuration/tenant1",
                    "https://a.example/tenant1/.well-known/openid-configuration",
                ],
            ),
            (
                "https://a.example:8443",
                &[
                    "https://a.example:8443/.well-known/oauth-authorization-server",
                    "https://a.example:8443/.well-known/openid-configuration",
                ],
            ),
            (
                "https://a.example/",
                &[
                    "https://a.example/.well-known/oauth-authorization-server",
                    "https://a.example/.well-known/openid-configuration",
                ],
            ),
            ("tenant1", &[]),
        ];
        for (issuer, urls) in rows {
            assert_eq!(metadata_urls(issuer), urls, "{issuer}");
        }
    }

    #[test]
    fn an_issuer_is_compared_letter_by_letter() {
        let metadata =
            |issuer: &str| IssuerMetadata { issuer: issuer.to_owned(), ..IssuerMetadata::default() };
        for (named, is_good) in [
            ("https://a.example", true),
            ("https://a.example/", false),
            ("https://A.example", false),
            ("https://a.example:443", false),
            ("https://attacker.example", false),
            ("", false),
        ] {
            assert_eq!(metadata(named).check("https://a.example").is_ok(), is_good, "{named}");
        }
    }

    fn json(methods: &str) -> IssuerMetadata {
        serde_json::from_str(&format!(r#"{{"code_challenge_methods_supported":{methods}}}"#)).unwrap()
    }

    #[test]
    fn codes_without_proof_keys_are_not_asked_for() {
        for (methods, is_good) in [
            (json(r#"["S256"]"#), true),
            (json(r#"["plain","S256"]"#), true),
            (json(r#"["plain"]"#), false),
            (json("[]"), false),
            (serde_json::from_str(r#"{"issuer":"i"}"#).unwrap(), false),
        ] {
            assert_eq!(methods.check_proof_keys().is_ok(), is_good, "{methods:?}");
        }
    }
}

//! How a client comes to an id at an authorization server, and how it proves there who it is.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use super::assertion::ClientKey;
use super::error::AuthError;
use super::issuer::IssuerMetadata;
use super::places;
use super::secret::Secret;

/// Name that the client registers with.
const NAME: &str = "midwire";

/// Credentials that somebody has got from an authorization server.
#[derive(Debug, Clone)]
pub struct KnownClient {
    /// The client id.
    pub id: String,
    /// Its secret, where it has one.
    pub secret: Option<Secret>,
    /// Its private key, where it has one.
    pub key: Option<Arc<ClientKey>>,
    /// Issuer that it is for; `None`: the first that the server names, and from then on no other.
    pub issuer: Option<String>,
}

/// The way to a client id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Way {
    /// It is known already.
    Known,
    /// The address of a document about the client is its id.
    Document(String),
    /// Registered at this endpoint.
    Register(String),
}

/// How the client proves who it is at the token endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    /// Not at all: it is public.
    None,
    /// Id and secret as a field.
    Basic,
    /// Id and secret in the body.
    Post,
    /// A signed assertion.
    PrivateKey,
}

impl Method {
    fn as_str(self) -> &'static str {
        match self {
            Method::None => "none",
            Method::Basic => "client_secret_basic",
            Method::Post => "client_secret_post",
            Method::PrivateKey => "private_key_jwt",
        }
    }

    fn from_name(name: &str) -> Option<Method> {
        [Method::None, Method::Basic, Method::Post, Method::PrivateKey]
            .into_iter()
            .find(|method| method.as_str() == name)
    }
}

/// A client as one authorization server knows it.
#[derive(Debug, Clone)]
pub(super) struct Client {
    pub(super) id: String,
    pub(super) secret: Option<Secret>,
    pub(super) key: Option<Arc<ClientKey>>,
    pub(super) method: Method,
}

/// The way to a client id, the best first: what is known, a document, a registration.
/// // spec 2026-07-28 basic/authorization/client-registration
///
/// # Errors
/// When there is none.
pub(super) fn way(
    is_known: bool,
    document: Option<&str>,
    issuer: &IssuerMetadata,
    is_local: bool,
) -> Result<Way, AuthError> {
    if is_known {
        return Ok(Way::Known);
    }
    match (document, &issuer.registration_endpoint) {
        (Some(url), _) if issuer.client_id_metadata_document_supported => Ok(Way::Document(url.to_owned())),
        (_, endpoint @ Some(_)) => {
            let what = "registration endpoint";
            Ok(Way::Register(issuer.endpoint(what, endpoint.as_ref(), is_local)?.to_owned()))
        }
        _ => Err(AuthError::NoClientId { issuer: issuer.issuer.clone() }),
    }
}

/// The address of a document about a client; it is https and has a path.
/// // draft-ietf-oauth-client-id-metadata-document §3
#[must_use]
pub fn is_document_url(url: &str) -> bool {
    places::parts(url).is_some_and(|(origin, path)| origin.is_tls() && path.len() > 1)
}

/// How a client with a key or a secret proves who it is; the servers that say nothing take Basic
/// (RFC 8414 §2).
///
/// # Errors
/// When the server takes nothing that the client has.
pub(super) fn method(has_key: bool, has_secret: bool, issuer: &IssuerMetadata) -> Result<Method, AuthError> {
    let mut can = Vec::new();
    if has_key {
        can.push(Method::PrivateKey);
    }
    if has_secret {
        can.extend([Method::Basic, Method::Post]);
    }
    let Some(first) = can.first() else {
        // A public client has nothing to prove itself by; what the server really wants, it says.
        return Ok(Method::None);
    };
    let Some(supported) = &issuer.token_endpoint_auth_methods_supported else { return Ok(*first) };
    let takes = |method: &&Method| supported.iter().any(|name| name == method.as_str());
    let missing = || AuthError::NotOffered {
        issuer: issuer.issuer.clone(),
        what: "authentication of clients by what this one has".to_owned(),
    };
    can.iter().find(takes).copied().ok_or_else(missing)
}

/// The body of a registration (RFC 7591), of a native client without a secret where that is taken.
pub(super) fn request(issuer: &IssuerMetadata, redirect_uri: &str) -> Value {
    let supported = issuer.token_endpoint_auth_methods_supported.as_deref();
    let takes =
        |method: &&Method| supported.is_none_or(|names| names.iter().any(|name| name == method.as_str()));
    let method = [Method::None, Method::Basic, Method::Post].iter().find(takes).unwrap_or(&Method::None);
    let mut grant_types = vec!["authorization_code"];
    if issuer.offers("refresh_token") {
        grant_types.push("refresh_token");
    }
    json!({
        "client_name": NAME,
        "redirect_uris": [redirect_uri],
        "grant_types": grant_types,
        "response_types": ["code"],
        "token_endpoint_auth_method": method.as_str(),
        // Without it a redirect to this machine may be refused: spec 2026-07-28
        // basic/authorization/client-registration, application type.
        "application_type": "native",
    })
}

#[derive(Deserialize)]
struct Registered {
    client_id: String,
    client_secret: Option<String>,
    token_endpoint_auth_method: Option<String>,
}

/// The client that a registration has made; `asked` is what [`request`] has said.
///
/// # Errors
/// When the answer is none.
pub(super) fn answer(body: &[u8], asked: &Value, issuer: &str) -> Result<Client, AuthError> {
    let bad = |why: &str| AuthError::Refused {
        issuer: issuer.to_owned(),
        what: "a registration",
        error: why.to_owned(),
    };
    let registered: Registered = serde_json::from_slice(body).map_err(|_| bad("it names no client id"))?;
    let named = registered.token_endpoint_auth_method.as_deref();
    let named = named.or_else(|| asked["token_endpoint_auth_method"].as_str()).unwrap_or("none");
    let secret = registered.client_secret.filter(|secret| !secret.is_empty()).map(Secret::new);
    let method = match (Method::from_name(named), &secret) {
        (Some(Method::None), _) => Method::None,
        (Some(method @ (Method::Basic | Method::Post)), Some(_)) => method,
        (Some(Method::Basic | Method::Post), None) => return Err(bad("it gives no secret")),
        (Some(Method::PrivateKey) | None, _) => {
            return Err(bad("it wants another proof of the client than a secret"));
        }
    };
    Ok(Client { id: registered.client_id, secret, key: None, method })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn issuer(text: &Value) -> IssuerMetadata {
        serde_json::from_value(text.clone()).unwrap()
    }

    #[test]
    fn the_best_way_to_a_client_id_is_taken() {
        let (document, register) = ("https://c.example/c.json", "https://as.example/register");
        let both =
            json!({ "client_id_metadata_document_supported": true, "registration_endpoint": register });
        let only_register = json!({ "registration_endpoint": register });
        let by_document = Some(Way::Document(document.to_owned()));
        let by_register = Some(Way::Register(register.to_owned()));
        let rows = [
            (true, Some(document), both.clone(), Some(Way::Known)),
            (false, Some(document), both.clone(), by_document),
            (false, None, both, by_register.clone()),
            (false, Some(document), only_register, by_register),
            (false, Some(document), json!({}), None),
            (false, None, json!({ "registration_endpoint": "http://as.example/r" }), None),
        ];
        for (is_known, document, metadata, expected) in rows {
            assert_eq!(way(is_known, document, &issuer(&metadata), false).ok(), expected, "{metadata}");
        }
        for (url, is_one) in [
            (document, true),
            ("https://c.example/", false),
            ("https://c.example", false),
            ("http://c.example/c", false),
        ] {
            assert_eq!(is_document_url(url), is_one, "{url}");
        }
    }

    #[test]
    fn clients_prove_themselves_in_a_way_that_the_server_takes() {
        let key = json!(["client_secret_basic", "private_key_jwt"]);
        for (has_key, has_secret, takes, expected) in [
            (true, false, key.clone(), Some(Method::PrivateKey)),
            (true, true, key, Some(Method::PrivateKey)),
            (true, true, json!(["client_secret_post"]), Some(Method::Post)),
            (true, false, json!(["client_secret_post"]), None),
            (true, false, json!(null), Some(Method::PrivateKey)),
        ] {
            let metadata = issuer(&json!({ "token_endpoint_auth_methods_supported": takes }));
            assert_eq!(
                method(has_key, has_secret, &metadata).ok(),
                expected,
                "{has_key} {has_secret} {takes}"
            );
        }
        // Has a secret; what the server takes; how it is done, where it can be.
        let rows = [
            (false, json!(null), Some(Method::None)),
            (true, json!(null), Some(Method::Basic)),
            (true, json!(["client_secret_post", "client_secret_basic"]), Some(Method::Basic)),
            (true, json!(["client_secret_post"]), Some(Method::Post)),
            (true, json!(["none"]), None),
            (false, json!(["none"]), Some(Method::None)),
            (false, json!(["client_secret_basic"]), Some(Method::None)),
        ];
        for (has_secret, takes, expected) in rows {
            let metadata = issuer(&json!({ "token_endpoint_auth_methods_supported": takes }));
            assert_eq!(method(false, has_secret, &metadata).ok(), expected, "{has_secret} {takes}");
        }
    }

    #[test]
    fn a_registration_is_what_the_server_makes_of_it() {
        // What the server takes; what it answers; the method, or a word of the error.
        let rows = [
            (json!(["none"]), json!({ "client_id": "c" }), Ok(Method::None)),
            (json!(["none"]), json!({ "client_id": "c", "client_secret": "s" }), Ok(Method::None)),
            (
                json!(["client_secret_basic"]),
                json!({ "client_id": "c", "client_secret": "s" }),
                Ok(Method::Basic),
            ),
            (
                json!(["client_secret_basic"]),
                json!({ "client_id": "c", "client_secret": "s", "token_endpoint_auth_method": "client_secret_post" }),
                Ok(Method::Post),
            ),
            (json!(["client_secret_post"]), json!({ "client_id": "c" }), Err("gives no secret")),
            (
                json!(["none"]),
                json!({ "client_id": "c", "token_endpoint_auth_method": "tls_client_auth" }),
                Err("another proof"),
            ),
            (json!(["none"]), json!({ "client_secret": "s" }), Err("names no client id")),
        ];
        for (takes, body, expected) in rows {
            let metadata = issuer(&json!({ "token_endpoint_auth_methods_supported": takes }));
            let asked = request(&metadata, "http://127.0.0.1:1/callback");
            let got = answer(body.to_string().as_bytes(), &asked, "https://as.example");
            match (got, expected) {
                (Ok(client), Ok(method)) => assert_eq!(client.method, method, "{body}"),
                (Err(error), Err(word)) => assert!(error.to_string().contains(word), "{body}: {error}"),
                (got, expected) => panic!("{body}: {got:?} instead of {expected:?}"),
            }
        }
    }
}

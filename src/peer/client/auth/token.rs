//! The request for a token, and what comes of it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::header::HeaderValue;
use serde::Deserialize;

use super::error::AuthError;
use super::form;
use super::registration::{Client, Method};
use super::scope::Scopes;
use super::secret::Secret;

/// A token request: header fields and body.
#[derive(Debug)]
pub(super) struct TokenRequest {
    pub(super) authorization: Option<Secret>,
    pub(super) body: Secret,
}

/// The request of a client: the parameters of the grant, and its proof of who it is. `assertion`: a
/// signed one, for a client with a private key.
pub(super) fn request(grant: &[(&str, &str)], client: &Client, assertion: Option<&Secret>) -> TokenRequest {
    let mut pairs = grant.to_vec();
    let mut authorization = None;
    let secret = client.secret.as_ref().map_or("", Secret::expose);
    match client.method {
        Method::None => pairs.push(("client_id", &client.id)),
        Method::Post => pairs.extend([("client_id", client.id.as_str()), ("client_secret", secret)]),
        Method::Basic => {
            // RFC 6749 §2.3.1: both are encoded as in a form first.
            let both = format!("{}:{}", form::component(&client.id), form::component(secret));
            authorization = Some(Secret::new(format!("Basic {}", STANDARD.encode(both))));
        }
        Method::PrivateKey => {
            // RFC 7523 §2.2
            let kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
            let assertion = assertion.map_or("", Secret::expose);
            pairs.extend([("client_id", client.id.as_str()), ("client_assertion_type", kind)]);
            pairs.push(("client_assertion", assertion));
        }
    }
    TokenRequest { authorization, body: Secret::new(form::encode(&pairs)) }
}

/// A token as it was given.
#[derive(Debug, Clone)]
pub(super) struct Token {
    /// The field that goes with every request; its value is shown nowhere.
    pub(super) field: HeaderValue,
    pub(super) refresh: Option<Secret>,
    /// Scopes that it has; `None`: those that were asked for.
    pub(super) scope: Option<Scopes>,
}

#[derive(Deserialize)]
struct Given {
    access_token: Option<String>,
    token_type: Option<String>,
    refresh_token: Option<String>,
    scope: Option<String>,
}

/// The token of an answer.
///
/// # Errors
/// When there is none, or of a kind that is not known here.
pub(super) fn read(body: &[u8], issuer: &str) -> Result<Token, AuthError> {
    let bad = |why| AuthError::NoToken { issuer: issuer.to_owned(), why };
    let given: Given = serde_json::from_slice(body).map_err(|_| bad("the answer is no JSON object"))?;
    let is_bearer = given.token_type.is_some_and(|kind| kind.eq_ignore_ascii_case("bearer"));
    if !is_bearer {
        // RFC 6749 §7.1: a client does not use a token whose type it does not know.
        return Err(bad("its type is not Bearer"));
    }
    let access = given.access_token.filter(|token| !token.is_empty()).ok_or_else(|| bad("it is missing"))?;
    Ok(Token {
        field: bearer(&access).ok_or_else(|| bad("it has characters that cannot be sent"))?,
        refresh: given.refresh_token.filter(|token| !token.is_empty()).map(Secret::new),
        scope: given.scope.as_deref().map(Scopes::read),
    })
}

/// The field value of a token; `None`: it cannot be sent.
pub(super) fn bearer(token: &str) -> Option<HeaderValue> {
    // RFC 6750 §2.1; a space or a comma would make something else of the field.
    let is_token = |c: u8| c.is_ascii_alphanumeric() || b"-._~+/=".contains(&c);
    if token.is_empty() || !token.bytes().all(is_token) {
        return None;
    }
    let mut value = HeaderValue::from_str(&format!("Bearer {token}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[derive(Deserialize)]
struct Exchanged {
    access_token: Option<String>,
    issued_token_type: Option<String>,
}

/// What a token was exchanged for (RFC 8693 §2.2.1), which has to be of this kind.
///
/// # Errors
/// When it is not.
pub(super) fn exchanged(body: &[u8], kind: &str, issuer: &str) -> Result<Secret, AuthError> {
    let bad = |why| AuthError::NoToken { issuer: issuer.to_owned(), why };
    let given: Exchanged = serde_json::from_slice(body).map_err(|_| bad("the answer is no JSON object"))?;
    if given.issued_token_type.as_deref() != Some(kind) {
        return Err(bad("its kind is not the one that was asked for"));
    }
    given.access_token.filter(|token| !token.is_empty()).map(Secret::new).ok_or_else(|| bad("it is missing"))
}

#[derive(Deserialize)]
struct Failed {
    error: String,
    error_description: Option<String>,
}

/// The words of a refusal (RFC 6749 §5.2), without secrets; the status where there are none.
pub(super) fn refusal(status: u16, body: &[u8], secrets: &[&Secret]) -> String {
    let words = match serde_json::from_slice::<Failed>(body) {
        Ok(failed) => {
            let more = failed.error_description.map(|words| format!(" ({words})")).unwrap_or_default();
            format!("{}{more}", failed.error)
        }
        Err(_) => format!("status {status}"),
    };
    secrets.iter().fold(words, |words, secret| secret.mask(&words))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(method: Method) -> Client {
        Client { id: "c:1".to_owned(), secret: Some(Secret::new("p w")), key: None, method }
    }

    #[test]
    fn a_client_proves_itself_in_one_way_and_no_other() {
        let assertion = Secret::new("a.b.c");
        let key = "client_id=c%3A1&client_assertion_type=urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3Ajwt-bearer&client_assertion=a.b.c";
        let rows = [
            (Method::None, None, "client_id=c%3A1"),
            (Method::Post, None, "client_id=c%3A1&client_secret=p%20w"),
            (Method::Basic, Some("c%3A1:p%20w"), ""),
            (Method::PrivateKey, None, key),
        ];
        for (method, basic, more) in rows {
            let request = request(&[("grant_type", "x")], &client(method), Some(&assertion));
            let basic = basic.map(|both| Secret::new(format!("Basic {}", STANDARD.encode(both))));
            assert_eq!(request.authorization, basic, "{method:?}");
            let body = format!("grant_type=x{}{more}", if more.is_empty() { "" } else { "&" });
            assert_eq!(request.body, Secret::new(body), "{method:?}");
            let shown = format!("{request:?}");
            assert!(!shown.contains("p w") && !shown.contains("a.b.c"), "{shown}");
        }
    }

    #[test]
    fn only_bearer_tokens_that_can_be_sent_are_tokens() {
        let rows = [
            (r#"{"access_token":"t-1","token_type":"Bearer"}"#, Ok("Bearer t-1")),
            (r#"{"access_token":"t","token_type":"bearer","expires_in":3600,"x":1}"#, Ok("Bearer t")),
            (r#"{"access_token":"t"}"#, Err("not Bearer")),
            (r#"{"access_token":"t","token_type":"DPoP"}"#, Err("not Bearer")),
            (r#"{"token_type":"Bearer"}"#, Err("missing")),
            (r#"{"access_token":"","token_type":"Bearer"}"#, Err("missing")),
            (r#"{"access_token":"a\r\nX: y","token_type":"Bearer"}"#, Err("cannot be sent")),
            (r#"{"access_token":"a b","token_type":"Bearer"}"#, Err("cannot be sent")),
            ("<html>", Err("no JSON")),
        ];
        for (body, expected) in rows {
            match (read(body.as_bytes(), "i"), expected) {
                (Ok(token), Ok(field)) => {
                    assert_eq!(token.field, field, "{body}");
                    assert!(!format!("{token:?}").contains("t-1"), "{token:?}");
                }
                (Err(error), Err(word)) => assert!(error.to_string().contains(word), "{body}: {error}"),
                (got, expected) => panic!("{body}: {got:?} instead of {expected:?}"),
            }
        }
    }

    #[test]
    fn only_what_was_asked_for_is_taken_in_exchange() {
        let rows = [
            (r#"{"access_token":"j","issued_token_type":"k","token_type":"N_A"}"#, Ok("j")),
            (r#"{"access_token":"j","issued_token_type":"other"}"#, Err("kind")),
            (r#"{"access_token":"j"}"#, Err("kind")),
            (r#"{"issued_token_type":"k"}"#, Err("missing")),
            ("[]", Err("no JSON")),
        ];
        for (body, expected) in rows {
            match (exchanged(body.as_bytes(), "k", "i"), expected) {
                (Ok(token), Ok(expected)) => assert_eq!(token.expose(), expected, "{body}"),
                (Err(error), Err(word)) => assert!(error.to_string().contains(word), "{body}: {error}"),
                (got, expected) => panic!("{body}: {got:?} instead of {expected:?}"),
            }
        }
    }

    #[test]
    fn a_refusal_repeats_no_secret() {
        let body = br#"{"error":"invalid_client","error_description":"s3cret is not right"}"#;
        let secret = Secret::new("s3cret");
        assert_eq!(refusal(401, body, &[&secret]), "invalid_client (*** is not right)");
        assert_eq!(refusal(500, b"<html>s3cret", &[&secret]), "status 500");
    }
}

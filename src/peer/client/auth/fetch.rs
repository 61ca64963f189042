//! Requests to whoever is asked on the way to a token. A redirect is an answer, and never followed:
//! what it would lead to was not checked.

use bytes::Bytes;
use hyper::Method;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use serde_json::Value;
use tokio::time::timeout;

use super::error::AuthError;
use super::token::TokenRequest;
use crate::peer::PeerError;
use crate::peer::client::desk::Desk;
use crate::peer::client::http::{Link, RawAnswer};
use crate::spec::headers;
use crate::time::Ms;

/// Longest wait for one answer. ours: these servers are asked a few small questions.
const LIMIT: Ms = Ms(20_000);

/// A document, or anything else that a GET brings.
///
/// # Errors
/// When nothing comes.
pub(super) async fn get(what: &'static str, url: &str) -> Result<RawAnswer, AuthError> {
    ask(what, Method::GET, url, Vec::new(), Bytes::new()).await
}

/// Posts a token request.
///
/// # Errors
/// When nothing comes.
pub(super) async fn post_token(url: &str, request: &TokenRequest) -> Result<RawAnswer, AuthError> {
    let mut fields = vec![(CONTENT_TYPE.to_string(), "application/x-www-form-urlencoded".to_owned())];
    if let Some(own) = &request.authorization {
        fields.push((AUTHORIZATION.to_string(), own.expose().to_owned()));
    }
    let body = Bytes::copy_from_slice(request.body.expose().as_bytes());
    ask("a token", Method::POST, url, fields, body).await
}

/// Posts a JSON body.
///
/// # Errors
/// When nothing comes.
pub(super) async fn post_json(what: &'static str, url: &str, body: &Value) -> Result<RawAnswer, AuthError> {
    let fields = vec![(CONTENT_TYPE.to_string(), headers::JSON.to_owned())];
    ask(what, Method::POST, url, fields, Bytes::from(body.to_string())).await
}

async fn ask(
    what: &'static str,
    method: Method,
    url: &str,
    mut fields: Vec<(String, String)>,
    body: Bytes,
) -> Result<RawAnswer, AuthError> {
    let failed = |why: String| AuthError::Unreadable { what, url: bare(url), why };
    fields.push((ACCEPT.to_string(), headers::JSON.to_owned()));
    let told = |error: PeerError| match error {
        PeerError::Connect { source, .. } => source.to_string(),
        other => other.to_string(),
    };
    let link = Link::new(url, Desk::new()).map_err(|error| failed(told(error)))?;
    match timeout(LIMIT.into(), link.raw(method, &fields, body)).await {
        Ok(answer) => answer.map_err(|error| failed(told(error))),
        Err(_) => Err(failed("no answer came in time".to_owned())),
    }
}

/// A URL without its query, which may hold what nobody else should see.
fn bare(url: &str) -> String {
    url.split('?').next().unwrap_or_default().to_owned()
}

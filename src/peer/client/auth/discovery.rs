//! Who gives tokens for a server, as it and they say themselves.

use bytes::Bytes;

use super::error::AuthError;
use super::issuer::{self, IssuerMetadata};
use super::resource::{self, ResourceMetadata};
use super::{Auth, Challenge, State, fetch, places};

impl Auth {
    /// What the server says of itself.
    pub(super) async fn resource(&self, challenge: &Challenge) -> Result<ResourceMetadata, AuthError> {
        const WHAT: &str = "the metadata of the server";
        let urls = match &challenge.resource_metadata {
            Some(url) => {
                places::check(WHAT, url, self.is_local)?;
                vec![url.clone()]
            }
            None => resource::metadata_urls(&self.server),
        };
        let body = first(WHAT, &urls).await?;
        let failed =
            |why: &str| AuthError::Unreadable { what: WHAT, url: urls.join(", "), why: why.to_owned() };
        let metadata: ResourceMetadata =
            serde_json::from_slice(&body).map_err(|error| failed(&error.to_string()))?;
        let known_as = self.settings.resource.as_deref().unwrap_or(&self.server);
        if !resource::covers(&metadata.resource, known_as) {
            let (named, server) = (metadata.resource, known_as.to_owned());
            return Err(AuthError::OtherResource { named, server });
        }
        if metadata.authorization_servers.is_empty() {
            return Err(failed("it names no authorization server"));
        }
        Ok(metadata)
    }

    /// What the authorization server says of itself: the one that the client is known at, or else
    /// the first that the server names.
    pub(super) async fn issuer(
        &self,
        state: &State,
        resource: &ResourceMetadata,
    ) -> Result<IssuerMetadata, AuthError> {
        const WHAT: &str = "the metadata of the authorization server";
        let named = &resource.authorization_servers;
        let own = self.settings.client.as_ref().and_then(|client| client.issuer.as_ref());
        let issuer = match own.or(state.bound.as_ref()) {
            Some(own) if named.contains(own) => own.clone(),
            Some(own) => {
                return Err(AuthError::OtherServer { own: own.clone(), others: named.join(", ") });
            }
            None => named.first().cloned().unwrap_or_default(),
        };
        places::check("the authorization server", &issuer, self.is_local)?;
        let urls = issuer::metadata_urls(&issuer);
        let body = first(WHAT, &urls).await?;
        let metadata: IssuerMetadata = serde_json::from_slice(&body).map_err(|error| {
            AuthError::Unreadable { what: WHAT, url: urls.join(", "), why: error.to_string() }
        })?;
        metadata.check(&issuer)?;
        Ok(metadata)
    }
}

/// The first document that is there.
async fn first(what: &'static str, urls: &[String]) -> Result<Bytes, AuthError> {
    let mut why = "it is nowhere".to_owned();
    for url in urls {
        let answer = fetch::get(what, url).await?;
        if answer.status == 200 {
            return Ok(answer.body);
        }
        why = format!("status {}", answer.status);
    }
    Err(AuthError::Unreadable { what, url: urls.join(", "), why })
}

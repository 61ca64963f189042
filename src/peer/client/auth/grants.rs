//! The ways to a token: renewed, on behalf of a person, or on behalf of the client itself.

use super::error::AuthError;
use super::issuer::IssuerMetadata;
use super::proof::Proof;
use super::registration::{self, Client, KnownClient, Way};
use super::scope::Scopes;
use super::secret::Secret;
use super::token::{self, Token};
use super::{Asked, Auth, IdentityProvider, Refresh, State, fetch, form, places, redirect};
use crate::time::wall_now;

/// The grant of an assertion (RFC 7523 §2.1).
const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/// The kind of assertion that an identity provider gives for another application.
/// // draft-ietf-oauth-identity-assertion-authz-grant
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";

impl Auth {
    /// Renews the token; false: it cannot be renewed.
    pub(super) async fn renew(&self, state: &mut State, asked: &Asked<'_>) -> Result<bool, AuthError> {
        let is_same = |refresh: &Refresh| {
            refresh.issuer == asked.issuer.issuer && refresh.resource == asked.resource.resource
        };
        let Some(refresh) = state.refresh.take().filter(is_same) else { return Ok(false) };
        let Some(client) = state.clients.get(&asked.issuer.issuer).cloned() else { return Ok(false) };
        let grant = [("grant_type", "refresh_token"), ("refresh_token", refresh.token.expose())];
        match self.token(&grant, &client, asked, &[&refresh.token]).await {
            Ok(token) => {
                let scopes = self.held().scopes.clone();
                // RFC 6749 §6: the old one stays good where no new one is given.
                let renewing = token.refresh.clone().unwrap_or_else(|| refresh.token.clone());
                state.refresh = Some(Refresh { token: renewing, ..refresh });
                self.keep(token, scopes);
                Ok(true)
            }
            Err(AuthError::Refused { .. } | AuthError::NoToken { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// A token on behalf of a person, who signs in.
    pub(super) async fn by_code(
        &self,
        state: &mut State,
        asked: &Asked<'_>,
        scopes: &Scopes,
    ) -> Result<Token, AuthError> {
        let issuer = asked.issuer;
        issuer.check_proof_keys()?;
        let page = issuer.endpoint(
            "authorization endpoint",
            issuer.authorization_endpoint.as_ref(),
            self.is_local,
        )?;
        if state.door.is_none() {
            state.door = self.settings.opener.door().await?;
        }
        let State { door: Some(door), .. } = &*state else {
            let scope = scopes.parameter().map(|scope| format!(" for {scope}")).unwrap_or_default();
            return Err(AuthError::NobodyThere { issuer: issuer.issuer.clone(), scope });
        };
        let redirect_uri = door.redirect_uri().to_owned();
        let client = self.client(state, issuer, &redirect_uri).await?;
        let (proof, scope) = (Proof::new()?, scopes.parameter());
        let challenge = proof.challenge();
        let mut query = vec![
            ("response_type", "code"),
            ("client_id", &client.id),
            ("redirect_uri", &redirect_uri),
            ("state", &proof.state),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("resource", &asked.resource.resource),
        ];
        query.extend(scope.as_deref().map(|scope| ("scope", scope)));
        let separator = if page.contains('?') { '&' } else { '?' };
        let url = format!("{page}{separator}{}", form::encode(&query));
        let Some(door) = &state.door else { unreachable!("it was there") };
        let answer = door.ask(&url, &proof.state).await?;
        let code = redirect::code(&answer, &proof.state, issuer)?;
        let grant = [
            ("grant_type", "authorization_code"),
            ("code", code.expose()),
            ("redirect_uri", &redirect_uri),
            ("code_verifier", proof.verifier.expose()),
        ];
        self.token(&grant, &client, asked, &[&code, &proof.verifier]).await
    }

    /// A token on behalf of the client itself.
    pub(super) async fn by_credentials(
        &self,
        state: &mut State,
        asked: &Asked<'_>,
        scopes: &Scopes,
    ) -> Result<Token, AuthError> {
        let has_proof = |client: &KnownClient| client.secret.is_some() || client.key.is_some();
        if !self.settings.client.as_ref().is_some_and(has_proof) {
            return Err(AuthError::NoClientId { issuer: asked.issuer.issuer.clone() });
        }
        let client = self.client(state, asked.issuer, "").await?;
        let scope = scopes.parameter();
        let mut grant = vec![("grant_type", "client_credentials")];
        grant.extend(scope.as_deref().map(|scope| ("scope", scope)));
        self.token(&grant, &client, asked, &[]).await
    }

    /// A token for an assertion of somebody else.
    pub(super) async fn by_assertion(
        &self,
        state: &mut State,
        asked: &Asked<'_>,
        scopes: &Scopes,
        assertion: &Secret,
    ) -> Result<Token, AuthError> {
        if self.settings.client.is_none() {
            return Err(AuthError::NoClientId { issuer: asked.issuer.issuer.clone() });
        }
        let client = self.client(state, asked.issuer, "").await?;
        let scope = scopes.parameter();
        let mut grant = vec![("grant_type", JWT_BEARER), ("assertion", assertion.expose())];
        grant.extend(scope.as_deref().map(|scope| ("scope", scope)));
        self.token(&grant, &client, asked, &[assertion]).await
    }

    /// The assertion that an identity provider gives for a person who has signed in there: for this
    /// authorization server and this resource only.
    pub(super) async fn exchanged(
        &self,
        asked: &Asked<'_>,
        scopes: &Scopes,
        provider: &IdentityProvider,
    ) -> Result<Secret, AuthError> {
        places::check("the identity provider", &provider.token_endpoint, self.is_local)?;
        let scope = scopes.parameter();
        let mut grant = vec![
            ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
            ("requested_token_type", ID_JAG),
            ("audience", &asked.issuer.issuer),
            ("resource", &asked.resource.resource),
            ("subject_token", provider.id_token.expose()),
            ("subject_token_type", "urn:ietf:params:oauth:token-type:id_token"),
        ];
        grant.extend(scope.as_deref().map(|scope| ("scope", scope)));
        let method = registration::Method::None;
        let client = Client { id: provider.client_id.clone(), secret: None, key: None, method };
        let answer =
            fetch::post_token(&provider.token_endpoint, &token::request(&grant, &client, None)).await?;
        if answer.status == 200 {
            return token::exchanged(&answer.body, ID_JAG, &provider.token_endpoint);
        }
        let error = token::refusal(answer.status, &answer.body, &[&provider.id_token]);
        Err(AuthError::Refused { issuer: provider.token_endpoint.clone(), what: "an assertion", error })
    }

    /// The client as the authorization server knows it, or comes to know it.
    async fn client(
        &self,
        state: &mut State,
        issuer: &IssuerMetadata,
        redirect_uri: &str,
    ) -> Result<Client, AuthError> {
        let known = self.settings.client.as_ref();
        let document = self.settings.metadata_url.as_deref();
        let way = registration::way(known.is_some(), document, issuer, self.is_local)?;
        if let Some(client) = state.clients.get(&issuer.issuer) {
            return Ok(client.clone());
        }
        let client = match (way, known) {
            (Way::Known, Some(known)) => {
                state.bound = Some(issuer.issuer.clone());
                let method = registration::method(known.key.is_some(), known.secret.is_some(), issuer)?;
                let (secret, key) = (known.secret.clone(), known.key.clone());
                Client { id: known.id.clone(), secret, key, method }
            }
            (Way::Document(url), _) => {
                Client { id: url, secret: None, key: None, method: registration::Method::None }
            }
            (Way::Register(endpoint), _) => register(issuer, &endpoint, redirect_uri).await?,
            (Way::Known, None) => unreachable!("what is known is there"),
        };
        state.clients.insert(issuer.issuer.clone(), client.clone());
        Ok(client)
    }

    /// Fetches a token for the server. `secrets`: what no text may repeat, beside those of the client.
    async fn token(
        &self,
        grant: &[(&str, &str)],
        client: &Client,
        asked: &Asked<'_>,
        secrets: &[&Secret],
    ) -> Result<Token, AuthError> {
        let issuer = asked.issuer;
        let endpoint = issuer.token_endpoint(self.is_local)?;
        let mut pairs = grant.to_vec();
        // RFC 8707 §2: the token is for this server and no other.
        pairs.push(("resource", &asked.resource.resource));
        let own = match &client.key {
            Some(key) => Some(key.assertion(&client.id, &issuer.issuer, wall_now().timestamp())?),
            None => None,
        };
        let request = token::request(&pairs, client, own.as_ref());
        let answer = fetch::post_token(endpoint, &request).await?;
        if answer.status == 200 {
            return token::read(&answer.body, &issuer.issuer);
        }
        let secrets: Vec<&Secret> = secrets.iter().copied().chain(&client.secret).collect();
        let error = token::refusal(answer.status, &answer.body, &secrets);
        Err(AuthError::Refused { issuer: issuer.issuer.clone(), what: "a token", error })
    }
}

/// Registers the client.
async fn register(issuer: &IssuerMetadata, endpoint: &str, redirect_uri: &str) -> Result<Client, AuthError> {
    let request = registration::request(issuer, redirect_uri);
    let answer = fetch::post_json("a client id", endpoint, &request).await?;
    if matches!(answer.status, 200 | 201) {
        return registration::answer(&answer.body, &request, &issuer.issuer);
    }
    let error = token::refusal(answer.status, &answer.body, &[]);
    Err(AuthError::Refused { issuer: issuer.issuer.clone(), what: "a registration", error })
}

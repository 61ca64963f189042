//! Authorization of the client on HTTP (spec 2026-07-28 `basic/authorization`): OAuth 2.1.
//!
//! A server that wants it refuses a request with a [`Challenge`]. `Auth::admit` then finds out who
//! gives tokens (`resource`, `issuer`), comes to a client id there (`registration`), has somebody say
//! yes (`opener`, `redirect`), and fetches the token (`token`). What is decided on the way is decided
//! by pure functions; this file puts them in order. Everything is found out anew for each challenge,
//! as a server may trust another authorization server by then.
//!
//! Tokens and secrets live in memory only, travel by https or on this machine, go nowhere but to
//! whom they are meant for, and are never shown.

mod assertion;
mod challenge;
mod discovery;
mod error;
mod fetch;
mod form;
mod grants;
mod issuer;
mod opener;
mod places;
mod proof;
mod redirect;
mod registration;
mod resource;
mod scope;
mod secret;
mod token;

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hyper::header::HeaderValue;

pub use self::assertion::ClientKey;
pub use self::challenge::Challenge;
pub use self::error::AuthError;
pub use self::opener::{Opener, Tell};
pub use self::registration::{KnownClient, is_document_url};
pub use self::secret::Secret;

use self::issuer::IssuerMetadata;
use self::opener::Door;
use self::registration::Client;
use self::resource::ResourceMetadata;
use self::scope::{Scopes, Wishes};
use self::token::Token;

/// Most times that one request is answered with a wider token before the refusal counts.
/// // spec 2026-07-28 basic/authorization, step-up: "no more than a few times"
const STEP_UPS: u32 = 2;

/// How a client comes to tokens.
#[derive(Debug, Clone, Default)]
pub struct AuthSettings {
    /// A token at hand; no other is fetched.
    pub bearer: Option<Secret>,
    /// Credentials at hand.
    pub client: Option<KnownClient>,
    /// Address of the document that describes the client, which is its id where that is taken.
    pub metadata_url: Option<String>,
    /// Scopes to ask for instead of those that the server names.
    pub scope: Option<String>,
    /// What the server is known as, where that is not its URL: behind a proxy.
    pub resource: Option<String>,
    /// On whose behalf tokens are fetched.
    pub grant: Grant,
    /// Who says yes.
    pub opener: Opener,
}

/// On whose behalf tokens are fetched.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Grant {
    /// On behalf of a person, who signs in.
    #[default]
    Code,
    /// On behalf of the client itself, by its secret or key.
    ClientCredentials,
    /// On behalf of whom this assertion names, which somebody has made whom the authorization server
    /// trusts (RFC 7523 §2.1).
    Assertion(Secret),
    /// On behalf of a person who has signed in with an identity provider that the authorization server
    /// trusts: it is asked for such an assertion.
    CrossApp(IdentityProvider),
}

/// Where a person has signed in (extension `io.modelcontextprotocol/enterprise-managed-authorization`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentityProvider {
    /// Where it exchanges tokens.
    pub token_endpoint: String,
    /// The client that the person has signed in to.
    pub client_id: String,
    /// What it says of the person.
    pub id_token: Secret,
}

/// The authorization of a client at one server. Clients that take each other's place share it.
#[derive(Debug)]
pub struct Auth {
    server: String,
    is_local: bool,
    settings: AuthSettings,
    held: Mutex<Held>,
    /// Locked while a token is fetched, so that one is fetched for all calls that wait.
    state: tokio::sync::Mutex<State>,
}

/// The token of now.
#[derive(Debug, Default)]
struct Held {
    field: Option<HeaderValue>,
    /// Scopes that it has, as far as is known.
    scopes: Scopes,
    /// How many there were; tells whether a refused request had the token of now.
    number: u64,
}

#[derive(Debug, Default)]
struct State {
    /// All that was asked for so far.
    requested: Scopes,
    /// By issuer: one's credentials are nothing to another.
    clients: HashMap<String, Client>,
    /// Whom the known client belongs to, once it was used.
    bound: Option<String>,
    refresh: Option<Refresh>,
    door: Option<Door>,
}

/// What renews a token.
#[derive(Debug)]
struct Refresh {
    issuer: String,
    resource: String,
    token: Secret,
}

/// What was tried for one request.
#[derive(Debug, Default)]
pub(super) struct Tries {
    is_renewed: bool,
    is_fetched: bool,
    step_ups: u32,
}

/// Whom a token is asked of, and for what.
struct Asked<'a> {
    issuer: &'a IssuerMetadata,
    resource: &'a ResourceMetadata,
}

impl Auth {
    /// The authorization at the server with this URL.
    ///
    /// # Errors
    /// When a token is at hand that cannot be sent there.
    pub fn new(server: &str, settings: AuthSettings) -> Result<Auth, AuthError> {
        let is_local = places::parts(server).is_some_and(|(origin, _)| origin.is_loopback());
        let mut held = Held::default();
        if let Some(bearer) = &settings.bearer {
            places::check("the server", server, is_local)?;
            held.field = Some(token::bearer(bearer.expose()).ok_or(AuthError::TokenRefused {
                scope: String::new(),
                hint: "it has characters that cannot be sent",
            })?);
        }
        let (held, state) = (Mutex::new(held), tokio::sync::Mutex::default());
        Ok(Auth { server: server.to_owned(), is_local, settings, held, state })
    }

    /// Its tokens are for the server with this URL.
    pub(super) fn is_for(&self, url: &str) -> bool {
        let origin = |url: &str| places::parts(url).map(|(origin, _)| origin);
        origin(url).is_some() && origin(url) == origin(&self.server)
    }

    /// A poisoned lock is still good: no step can stop midway.
    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value of `Authorization`, once there is a token.
    pub(super) fn field(&self) -> Option<HeaderValue> {
        self.held().field.clone()
    }

    /// How many tokens there were; goes up with each.
    pub(super) fn number(&self) -> u64 {
        self.held().number
    }

    /// Sees to it that a refused request can be made again: with a token, a new one or a wider one.
    /// `used`: the number that stood when the request went out.
    ///
    /// # Errors
    /// When there is no token to be had, or none that would help.
    pub(super) async fn admit(
        &self,
        challenge: &Challenge,
        used: u64,
        tries: &mut Tries,
    ) -> Result<(), AuthError> {
        let mut state = self.state.lock().await;
        if self.number() != used {
            // Another call has seen to it meanwhile.
            return Ok(());
        }
        self.may_try(challenge, tries)?;
        let resource = self.resource(challenge).await?;
        let issuer = self.issuer(&state, &resource).await?;
        // Before anybody is bothered.
        issuer.token_endpoint(self.is_local)?;
        let asked = Asked { issuer: &issuer, resource: &resource };
        if challenge.status == 401 && !tries.is_renewed {
            tries.is_renewed = true;
            if self.renew(&mut state, &asked).await? {
                return Ok(());
            }
        }
        match challenge.status {
            401 => tries.is_fetched = true,
            _ => tries.step_ups += 1,
        }
        let wishes = Wishes {
            given: self.settings.scope.as_deref(),
            challenged: challenge.scope.as_deref(),
            resource_supports: resource.scopes_supported.as_deref(),
            issuer_supports: issuer.scopes_supported.as_deref(),
            can_renew: issuer.offers("refresh_token") && self.settings.grant == Grant::Code,
        };
        let scopes = scope::choose(&state.requested, wishes);
        let token = match &self.settings.grant {
            Grant::Code => self.by_code(&mut state, &asked, &scopes).await?,
            Grant::ClientCredentials => self.by_credentials(&mut state, &asked, &scopes).await?,
            Grant::Assertion(assertion) => self.by_assertion(&mut state, &asked, &scopes, assertion).await?,
            Grant::CrossApp(provider) => {
                let assertion = self.exchanged(&asked, &scopes, provider).await?;
                self.by_assertion(&mut state, &asked, &scopes, &assertion).await?
            }
        };
        state.requested = scopes.clone();
        state.refresh = token.refresh.clone().map(|token| Refresh {
            issuer: issuer.issuer.clone(),
            resource: resource.resource.clone(),
            token,
        });
        self.keep(token, scopes);
        Ok(())
    }

    fn keep(&self, token: Token, asked: Scopes) {
        let mut held = self.held();
        held.scopes = token.scope.unwrap_or(asked);
        held.field = Some(token.field);
        held.number += 1;
    }

    /// Whether another token can help at all.
    fn may_try(&self, challenge: &Challenge, tries: &Tries) -> Result<(), AuthError> {
        let scope = challenge.scope.as_ref().map(|scope| format!(" (it wants {scope})")).unwrap_or_default();
        let refused = |hint| Err(AuthError::TokenRefused { scope: scope.clone(), hint });
        if !challenge.takes_bearer() {
            return Err(AuthError::Scheme { schemes: challenge.schemes.join(", ") });
        }
        if self.settings.bearer.is_some() {
            return refused("give another one, or let one be fetched");
        }
        places::check("the server", &self.server, self.is_local)?;
        let challenged = challenge.scope.as_deref().map(Scopes::read).unwrap_or_default();
        if challenge.status == 401 && tries.is_fetched {
            return refused("which its authorization server has just given for it");
        }
        if challenge.status == 403 && self.held().field.is_some() && self.held().scopes.covers(&challenged) {
            return refused("which has all scopes that are wanted");
        }
        if tries.step_ups >= STEP_UPS {
            return refused("wider ones were not granted");
        }
        Ok(())
    }
}

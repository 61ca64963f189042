//! How the client comes to a token, by its command line.

use std::io::IsTerminal as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, ensure};

use crate::cli::args::auth::{AuthArgs, GrantArg};
use crate::cli::say;
use crate::peer::client::auth::{
    Auth, AuthSettings, ClientKey, Grant, IdentityProvider, KnownClient, Opener, Secret, is_document_url,
};

/// The authorization at a server; `None`: none is wanted.
pub(super) fn of(args: &AuthArgs, url: &str) -> anyhow::Result<Option<Arc<Auth>>> {
    if args.no_auth {
        return Ok(None);
    }
    if let Some(document) = &args.client_metadata_url {
        ensure!(is_document_url(document), "--client-metadata-url {document} is no https URL with a path");
    }
    let secret = |name: &Option<String>| name.as_deref().map(from_environment).transpose();
    let client = match &args.client_id {
        None => None,
        Some(id) => Some(KnownClient {
            id: id.clone(),
            secret: secret(&args.client_secret_env)?,
            key: args.client_key.as_deref().map(key).transpose()?,
            issuer: args.issuer.clone(),
        }),
    };
    let id_token = secret(&args.id_token_env)?;
    let grant = match (args.grant, secret(&args.assertion_env)?, (id_token, &args.idp, &args.idp_client_id)) {
        (_, Some(assertion), _) => Grant::Assertion(assertion),
        (_, _, (Some(id_token), Some(idp), Some(client_id))) => Grant::CrossApp(IdentityProvider {
            token_endpoint: idp.clone(),
            client_id: client_id.clone(),
            id_token,
        }),
        (GrantArg::Code, ..) => Grant::Code,
        (GrantArg::ClientCredentials, ..) => {
            ensure!(
                args.client_secret_env.is_some() || args.client_key.is_some(),
                "--grant client-credentials needs --client-id and --client-secret-env or --client-key"
            );
            Grant::ClientCredentials
        }
    };
    let settings = AuthSettings {
        bearer: secret(&args.bearer_env)?,
        client,
        metadata_url: args.client_metadata_url.clone(),
        scope: args.scope.clone(),
        resource: args.resource.clone(),
        grant,
        opener: opener(args.redirect_port),
    };
    Ok(Some(Arc::new(Auth::new(url, settings)?)))
}

/// A person is there where the address can be read: on a terminal.
fn opener(port: u16) -> Opener {
    if std::io::stderr().is_terminal() {
        Opener::Person { tell: Arc::new(say), port }
    } else {
        Opener::Nobody
    }
}

fn key(path: &Path) -> anyhow::Result<Arc<ClientKey>> {
    let file = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read the client key {file}"))?;
    Ok(Arc::new(ClientKey::from_pem(&Secret::new(text))?))
}

fn from_environment(name: &str) -> anyhow::Result<Secret> {
    let text = std::env::var(name)
        .with_context(|| format!("the environment variable {name} with a secret cannot be read"))?;
    let text = text.trim();
    ensure!(!text.is_empty(), "the environment variable {name} is empty");
    Ok(Secret::new(text))
}

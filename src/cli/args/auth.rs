//! Arguments of the reference client about authorization.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// How the client comes to a token. Secrets stand in the environment, never on a command line.
#[derive(Debug, Args)]
#[command(next_help_heading = "Authorization")]
pub(in crate::cli) struct AuthArgs {
    /// Environment variable with a token at hand; no other is fetched
    #[arg(long, value_name = "NAME", conflicts_with_all = ["client_id", "client_metadata_url", "grant", "peer"])]
    pub(in crate::cli) bearer_env: Option<String>,
    /// Client id that the authorization server has given
    #[arg(long, value_name = "ID", conflicts_with = "peer")]
    pub(in crate::cli) client_id: Option<String>,
    /// Environment variable with the secret of that client
    #[arg(long, value_name = "NAME", requires = "client_id")]
    pub(in crate::cli) client_secret_env: Option<String>,
    /// File with the private key of that client (PEM, P-256), which proves it instead of a secret
    #[arg(long, value_name = "FILE", requires = "client_id")]
    pub(in crate::cli) client_key: Option<PathBuf>,
    /// Authorization server that the client id is for; default: the first that the server names
    #[arg(long, value_name = "URL", requires = "client_id")]
    pub(in crate::cli) issuer: Option<String>,
    /// Address (https) of a document about the client, which is its id where that is taken
    #[arg(long, value_name = "URL")]
    pub(in crate::cli) client_metadata_url: Option<String>,
    /// Scopes to ask for, instead of those that the server names
    #[arg(long, value_name = "SCOPES")]
    pub(in crate::cli) scope: Option<String>,
    /// What the server is known as, where that is not its URL: behind a tap or another proxy
    #[arg(long, value_name = "URI", conflicts_with = "peer")]
    pub(in crate::cli) resource: Option<String>,
    /// On whose behalf: a person signs in with a browser, or the client does by its secret or key
    #[arg(long, value_enum, default_value_t = GrantArg::Code)]
    pub(in crate::cli) grant: GrantArg,
    /// Environment variable with an assertion (JWT) of somebody whom the authorization server trusts;
    /// nobody signs in
    #[arg(long, value_name = "NAME", requires = "client_id", conflicts_with_all = ["grant", "bearer_env"])]
    pub(in crate::cli) assertion_env: Option<String>,
    /// Environment variable with an ID token of a person, for which --idp gives such an assertion
    #[arg(long, value_name = "NAME", requires_all = ["client_id", "idp", "idp_client_id"],
        conflicts_with_all = ["grant", "bearer_env", "assertion_env"])]
    pub(in crate::cli) id_token_env: Option<String>,
    /// Token endpoint of the identity provider
    #[arg(long, value_name = "URL", requires = "id_token_env")]
    pub(in crate::cli) idp: Option<String>,
    /// Client id that the ID token was given to
    #[arg(long, value_name = "ID", requires = "id_token_env")]
    pub(in crate::cli) idp_client_id: Option<String>,
    /// Port of this machine to which the browser brings the answer; default: any free one
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    pub(in crate::cli) redirect_port: u16,
    /// Fetch no token: what a server that wants one answers is the answer
    #[arg(long, conflicts_with_all = ["bearer_env", "client_id", "client_metadata_url", "grant"])]
    pub(in crate::cli) no_auth: bool,
}

/// On whose behalf tokens are fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum GrantArg {
    /// A person's
    Code,
    /// The client's own
    ClientCredentials,
}

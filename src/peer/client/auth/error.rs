//! Why a server cannot be called with authorization.

use thiserror::Error;

/// Why there is no token, or none that helps. No text of it holds a secret.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AuthError {
    /// A place that a secret would go to, or come from, without TLS.
    #[error("{what} {url} is not used: tokens travel by https only, or by http on this machine")]
    NotSafe {
        /// What it is.
        what: &'static str,
        /// Where it is.
        url: String,
    },
    /// The server wants something else than a bearer token.
    #[error("the server wants {schemes} and no bearer token, which is all that is known here")]
    Scheme {
        /// What it offers.
        schemes: String,
    },
    /// A document cannot be had.
    #[error("{what} cannot be read from {url}: {why}")]
    Unreadable {
        /// What is missing.
        what: &'static str,
        /// Where it was looked for; several places stand one after the other.
        url: String,
        /// What came instead.
        why: String,
    },
    /// The metadata speaks of another server. // RFC 9728 §3.3
    #[error(
        "the metadata is for {named}, not for {server}: no token is fetched; behind a proxy, --resource \
         names what the server is known as"
    )]
    OtherResource {
        /// Whom the metadata names.
        named: String,
        /// Whom it should name.
        server: String,
    },
    /// The metadata of an authorization server names another issuer. // RFC 8414 §3.3
    #[error("the authorization server {issuer} calls itself {named}: its metadata is not used")]
    OtherIssuer {
        /// Who was asked.
        issuer: String,
        /// Who answered.
        named: String,
    },
    /// No proof key can be used, without which a code can be stolen.
    #[error("the authorization server {issuer} does not say that it checks S256 proof keys (PKCE)")]
    NoProofKey {
        /// Who it is.
        issuer: String,
    },
    /// Credentials are for one authorization server, and the server now names another one.
    #[error("the client id is registered with {own}, but the server trusts {others}; register there")]
    OtherServer {
        /// Where the client is known.
        own: String,
        /// What the server names.
        others: String,
    },
    /// The authorization server does not do what is needed.
    #[error("the authorization server {issuer} offers no {what}")]
    NotOffered {
        /// Who it is.
        issuer: String,
        /// What is missing.
        what: String,
    },
    /// No way to a client id.
    #[error(
        "the authorization server {issuer} registers no clients by itself: give --client-id (and \
         --client-secret-env), or --client-metadata-url where it takes one"
    )]
    NoClientId {
        /// Who it is.
        issuer: String,
    },
    /// Somebody has to sign in, and nobody is there.
    #[error(
        "the server wants authorization by {issuer}{scope}, and nobody can sign in here: run this on a \
         terminal, or give a token with --bearer-env, or --grant client-credentials"
    )]
    NobodyThere {
        /// Who would ask.
        issuer: String,
        /// Scopes that are wanted, in words.
        scope: String,
    },
    /// Nobody signed in.
    #[error("nobody has signed in: {why}")]
    NotSignedIn {
        /// What happened instead.
        why: String,
    },
    /// The answer to the authorization request is not to be believed.
    #[error("the answer of the authorization server {issuer} is not used: {why}")]
    Forged {
        /// Who was asked.
        issuer: String,
        /// What is wrong.
        why: &'static str,
    },
    /// The authorization server says no.
    #[error("the authorization server {issuer} refuses {what}: {error}")]
    Refused {
        /// Who it is.
        issuer: String,
        /// What was asked for.
        what: &'static str,
        /// Its code and its words.
        error: String,
    },
    /// A token answer that is none.
    #[error("the authorization server {issuer} gives no usable token: {why}")]
    NoToken {
        /// Who it is.
        issuer: String,
        /// What is wrong.
        why: &'static str,
    },
    /// The server does not take the token that was given.
    #[error("the server refuses the token{scope}; {hint}")]
    TokenRefused {
        /// Scopes that it wants, in words.
        scope: String,
        /// What to do.
        hint: &'static str,
    },
    /// A private key that cannot be used.
    #[error("the client key cannot be used: {why}")]
    BadKey {
        /// What is wrong.
        why: &'static str,
    },
    /// No random numbers, without which nothing is secret.
    #[error("the system gives no random numbers")]
    NoRandom,
}

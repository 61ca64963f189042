//! Tokens for which nobody signs in: by a key, by an assertion, by way of an identity provider.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use midwire::peer::client::Outcome;
use midwire::peer::client::auth::{AuthSettings, ClientKey, Grant, IdentityProvider, KnownClient, Secret};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use serde_json::{Value, json};

use crate::world::{Heard, Manner, World};
use crate::{call, check_conduct, client, known};

fn key() -> Arc<ClientKey> {
    let der = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new()).unwrap();
    let text = STANDARD.encode(der.as_ref());
    let pem = format!("-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----\n");
    Arc::new(ClientKey::from_pem(&Secret::new(pem)).unwrap())
}

fn provider(token_endpoint: String) -> Grant {
    let id_token = Secret::new("ID.TOKEN.OF-ADA");
    Grant::CrossApp(IdentityProvider { token_endpoint, client_id: "idp-client".to_owned(), id_token })
}

async fn start(exchange: Value) -> Arc<World> {
    let takes = ["client_secret_basic", "private_key_jwt"];
    let issuer = json!({ "token_endpoint_auth_methods_supported": takes });
    World::start(Manner { secret: "pw", issuer, exchange, ..Manner::default() }).await
}

#[tokio::test]
async fn nobody_signs_in_where_the_client_or_somebody_else_vouches() {
    let assertion = || Grant::Assertion(Secret::new("MADE.BY.IDP"));
    let by_key = || KnownClient { key: Some(key()), ..known(None, None) };
    let world = start(json!({})).await;
    // The client; the grant; its type; whether an identity provider is asked.
    let rows = [
        (by_key(), Grant::ClientCredentials, "client_credentials", 0),
        (known(Some("pw"), None), assertion(), "urn:ietf:params:oauth:grant-type:jwt-bearer", 0),
        (by_key(), assertion(), "urn:ietf:params:oauth:grant-type:jwt-bearer", 0),
        (
            known(Some("pw"), None),
            provider(world.exchange()),
            "urn:ietf:params:oauth:grant-type:jwt-bearer",
            1,
        ),
    ];
    for (known, grant, grant_type, exchanges) in rows {
        let name = format!("{known:?} {grant:?}");
        let before = world.heard().len();
        let settings = AuthSettings { client: Some(known), grant, ..AuthSettings::default() };
        let report = call(&client(&world, settings)).await.unwrap();
        assert!(matches!(report.outcome, Outcome::Complete(_)), "{name}: {report:?}");
        let heard = world.heard().split_off(before);
        let at =
            |path: &str| heard.iter().filter(|heard| heard.path == path).map(Heard::form).collect::<Vec<_>>();
        let tokens = at("/token");
        assert_eq!(tokens.len(), 1, "{name}");
        assert_eq!(tokens[0]["grant_type"], grant_type, "{name}");
        assert_eq!((at("/exchange").len(), world.count("/authorize")), (exchanges, 0), "{name}");
        check_conduct(&world);
    }
}

#[tokio::test]
async fn an_identity_provider_is_not_believed_either() {
    let other = json!({ "issued_token_type": "urn:ietf:params:oauth:token-type:access_token" });
    // What the provider answers, or where it is; words of the error; requests for the token.
    let rows = [
        (other, None, "its kind is not the one"),
        (json!({ "access_token": null }), None, "it is missing"),
        (json!({}), Some("http://192.0.2.1/exchange"), "https only"),
        (json!({ "access_token": "MADE.BY.OTHERS" }), None, "refuses a token: unsupported_grant_type"),
    ];
    for (exchange, place, words) in rows {
        let world = start(exchange).await;
        let place = place.map_or_else(|| world.exchange(), str::to_owned);
        let (client_of, grant) = (Some(known(Some("pw"), None)), provider(place));
        let settings = AuthSettings { client: client_of, grant, ..AuthSettings::default() };
        let error = call(&client(&world, settings)).await.unwrap_err().to_string();
        assert!(error.contains(words) && !error.contains("ADA"), "{error}");
        assert!(world.secrets().is_empty(), "{error}");
    }
}

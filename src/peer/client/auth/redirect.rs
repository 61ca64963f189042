//! The answer to an authorization request, which comes by a redirect.

use super::error::AuthError;
use super::form;
use super::issuer::IssuerMetadata;
use super::secret::Secret;

/// The code of an answer that is to be believed: `query` is what stands behind the `?` of the redirect.
/// Who answers is looked at before what is said, so that words of a stranger are neither acted on nor
/// shown. // spec 2026-07-28 basic/authorization, authorization response validation; RFC 9207 §2.4
///
/// # Errors
/// When it is not to be believed, or says no.
pub(super) fn code(query: &str, state: &str, asked: &IssuerMetadata) -> Result<Secret, AuthError> {
    let forged = |why| AuthError::Forged { issuer: asked.issuer.clone(), why };
    let pairs = form::decode(query).ok_or_else(|| forged("it cannot be read"))?;
    let only = |name: &str| {
        let mut values = pairs.iter().filter(|(own, _)| own == name).map(|(_, value)| value.as_str());
        match (values.next(), values.next()) {
            // RFC 6749 §3.1: a parameter comes once.
            (Some(_), Some(_)) => Err(forged("a parameter comes twice")),
            (value, _) => Ok(value),
        }
    };
    if only("state")? != Some(state) {
        return Err(forged("its state is not that of the request"));
    }
    match only("iss")? {
        Some(named) if named != asked.issuer => return Err(forged("it names another issuer")),
        None if asked.authorization_response_iss_parameter_supported => {
            return Err(forged("it does not name its issuer, which it always does by its metadata"));
        }
        _ => {}
    }
    if let Some(error) = only("error")? {
        let words = only("error_description")?.map(|words| format!(" ({words})")).unwrap_or_default();
        let (issuer, error) = (asked.issuer.clone(), format!("{error}{words}"));
        return Err(AuthError::Refused { issuer, what: "authorization", error });
    }
    match only("code")? {
        Some(code) if !code.is_empty() => Ok(Secret::new(code)),
        _ => Err(forged("it has neither a code nor an error")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_believed_by_their_state_and_issuer() {
        let good = "https%3A%2F%2Fas.example";
        // Issuers are always named; query; the code, or a word of the error.
        let rows: [(bool, String, Result<&str, &str>); 17] = [
            (false, "code=c&state=s".into(), Ok("c")),
            (false, format!("code=c&state=s&iss={good}"), Ok("c")),
            (true, format!("state=s&iss={good}&code=c%2Bd"), Ok("c+d")),
            (true, "code=c&state=s".into(), Err("does not name its issuer")),
            (true, format!("code=c&state=s&iss={good}%2F"), Err("another issuer")),
            (true, "code=c&state=s&iss=HTTPS%3A%2F%2Fas.example".into(), Err("another issuer")),
            (false, "code=c&state=s&iss=https%3A%2F%2Fevil.example".into(), Err("another issuer")),
            (false, "code=c&state=s&iss=".into(), Err("another issuer")),
            (false, "code=c&state=other".into(), Err("its state")),
            (false, "code=c".into(), Err("its state")),
            (false, "code=c&state=s&state=s".into(), Err("twice")),
            (false, "code=c&code=d&state=s".into(), Err("twice")),
            (false, "code=&state=s".into(), Err("neither")),
            (false, "state=s".into(), Err("neither")),
            (false, "code=%zz&state=s".into(), Err("cannot be read")),
            (
                false,
                "error=access_denied&error_description=no+way&state=s".into(),
                Err("access_denied (no way)"),
            ),
            // Words of a stranger are not shown.
            (
                true,
                "error=access_denied&state=s&iss=https%3A%2F%2Fevil.example".into(),
                Err("another issuer"),
            ),
        ];
        for (is_named, query, expected) in rows {
            let asked = IssuerMetadata {
                issuer: "https://as.example".to_owned(),
                authorization_response_iss_parameter_supported: is_named,
                ..IssuerMetadata::default()
            };
            match (code(&query, "s", &asked), expected) {
                (Ok(code), Ok(expected)) => assert_eq!(code.expose(), expected, "{query}"),
                (Err(error), Err(word)) => assert!(error.to_string().contains(word), "{query}: {error}"),
                (got, expected) => panic!("{query}: {got:?} instead of {expected:?}"),
            }
        }
    }
}

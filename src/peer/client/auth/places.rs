//! Which URLs are gone to, and when two of them are the same place.

use hyper::Uri;

use super::error::AuthError;

/// Scheme, host and port of a URL; two are equal when they are the same place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Origin {
    scheme: String,
    host: String,
    port: u16,
}

/// The place and the path of an absolute URL; `None`: it is none of http or https, or names a user
/// or a fragment.
pub(super) fn parts(url: &str) -> Option<(Origin, String)> {
    if url.contains('#') {
        return None;
    }
    let uri: Uri = url.parse().ok()?;
    let authority = uri.authority()?;
    if authority.as_str().contains('@') {
        return None;
    }
    let scheme = uri.scheme_str()?.to_ascii_lowercase();
    let default = match scheme.as_str() {
        "http" => 80,
        "https" => 443,
        _ => return None,
    };
    let (host, port) = (authority.host().to_ascii_lowercase(), authority.port_u16().unwrap_or(default));
    Some((Origin { scheme, host, port }, uri.path().to_owned()))
}

impl Origin {
    /// On this machine, by its name or its number.
    pub(super) fn is_loopback(&self) -> bool {
        let host = self.host.trim_start_matches('[').trim_end_matches(']');
        host == "localhost" || host.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
    }

    pub(super) fn is_tls(&self) -> bool {
        self.scheme == "https"
    }
}

/// A URL without its path, as it is written.
pub(super) fn base(url: &str) -> Option<String> {
    let uri: Uri = url.parse().ok()?;
    Some(format!("{}://{}", uri.scheme_str()?, uri.authority()?))
}

/// Whether a secret may go there. `is_local`: the server itself is on this machine; one that is not
/// has no business here (spec 2026-07-28 basic/authorization/security-considerations: requests that
/// a server makes the client send).
///
/// # Errors
/// When it may not.
pub(super) fn check(what: &'static str, url: &str, is_local: bool) -> Result<(), AuthError> {
    let is_safe =
        parts(url).is_some_and(|(origin, _)| if origin.is_loopback() { is_local } else { origin.is_tls() });
    if is_safe { Ok(()) } else { Err(AuthError::NotSafe { what, url: url.to_owned() }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_the_same_whatever_their_spelling() {
        let rows = [
            ("http://h/a", "HTTP://H:80/b", true),
            ("https://h", "https://h:443/", true),
            ("https://h", "http://h:443", false),
            ("https://h", "https://h:8443", false),
            ("https://h", "https://h.evil.example", false),
        ];
        for (a, b, is_same) in rows {
            assert_eq!(parts(a).unwrap().0 == parts(b).unwrap().0, is_same, "{a} {b}");
        }
        for bad in ["", "/a", "ftp://h/", "https://h/#x", "https://user@h/", "https://good@evil/", "h:1"] {
            assert_eq!(parts(bad), None, "{bad}");
        }
    }

    #[test]
    fn secrets_go_nowhere_in_the_clear() {
        // URL; for a server on this machine; for one elsewhere.
        let rows = [
            ("https://h/x", true, true),
            ("http://h/x", false, false),
            ("http://localhost:1/x", true, false),
            ("http://127.0.0.1:1/x", true, false),
            ("http://127.3.0.1:1/x", true, false),
            ("http://[::1]:1/x", true, false),
            ("https://localhost:1/x", true, false),
            ("http://localhost.evil.example/x", false, false),
            ("http://127.0.0.1.evil.example/x", false, false),
            ("file:///etc/passwd", false, false),
            ("https://user:pw@h/", false, false),
        ];
        for (url, here, elsewhere) in rows {
            assert_eq!(check("it", url, true).is_ok(), here, "{url}");
            assert_eq!(check("it", url, false).is_ok(), elsewhere, "{url}");
        }
    }
}

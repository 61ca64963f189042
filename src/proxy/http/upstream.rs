//! The server's URL.

use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use hyper::Uri;

use crate::proxy::ProxyError;

/// Where the server is: the origin that connections go to, and the path that clients are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upstream {
    is_tls: bool,
    host: String,
    port: u16,
    path: String,
}

impl Upstream {
    /// Whether it is spoken to over TLS.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        self.is_tls
    }

    /// Host name or address, without brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Path and query of the URL. Only for telling clients: what they send passes as it is.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What a `Host` field names: the port only when it is not the scheme's own.
    #[must_use]
    pub fn authority(&self) -> String {
        let host = if self.host.parse::<Ipv6Addr>().is_ok() {
            format!("[{}]", self.host)
        } else {
            self.host.clone()
        };
        let own = if self.is_tls { 443 } else { 80 };
        if self.port == own { host } else { format!("{host}:{}", self.port) }
    }

    /// Scheme and authority, as an `Origin` field has it.
    #[must_use]
    pub fn origin(&self) -> String {
        format!("{}://{}", if self.is_tls { "https" } else { "http" }, self.authority())
    }

    /// Whether it is on this machine by name or address.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        let is_address = self.host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
        is_address || self.host.eq_ignore_ascii_case("localhost")
    }
}

impl FromStr for Upstream {
    type Err = ProxyError;

    fn from_str(url: &str) -> Result<Upstream, ProxyError> {
        let bad = |why| ProxyError::BadUpstream { url: url.to_owned(), why };
        let uri: Uri = url.parse().map_err(|_| bad("it is not a URL"))?;
        let is_tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(bad("it does not begin with http:// or https://")),
        };
        let authority = uri.authority().ok_or(bad("it names no host"))?;
        if authority.as_str().contains('@') {
            return Err(bad("it holds a user name, which the tap does not send"));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() {
            return Err(bad("it names no host"));
        }
        let port = match authority.port_u16() {
            Some(0) => return Err(bad("port 0 cannot be connected to")),
            Some(port) => port,
            None if authority.as_str().ends_with(authority.host()) => {
                if is_tls {
                    443
                } else {
                    80
                }
            }
            None => return Err(bad("the port is not a number up to 65535")),
        };
        let path = uri.path_and_query().map_or("/", |p| p.as_str()).to_owned();
        Ok(Upstream { is_tls, host: host.to_owned(), port, path })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        let cases = [
            ("http://127.0.0.1:8000/mcp?a=b", "127.0.0.1:8000", "http://127.0.0.1:8000", "/mcp?a=b", true),
            ("https://example.com/mcp", "example.com", "https://example.com", "/mcp", false),
            ("https://example.com:443", "example.com", "https://example.com", "/", false),
            ("http://[::1]:90/", "[::1]:90", "http://[::1]:90", "/", true),
            ("http://LOCALHOST", "LOCALHOST", "http://LOCALHOST", "/", true),
            (
                "http://localhost.example.com:8080",
                "localhost.example.com:8080",
                "http://localhost.example.com:8080",
                "/",
                false,
            ),
        ];
        for (url, authority, origin, path, is_loopback) in cases {
            let upstream: Upstream = url.parse().unwrap();
            assert_eq!(upstream.authority(), authority, "{url}");
            assert_eq!(upstream.origin(), origin, "{url}");
            assert_eq!(upstream.path(), path, "{url}");
            assert_eq!(upstream.is_loopback(), is_loopback, "{url}");
        }
    }

    #[test]
    fn a_url_that_cannot_be_used_says_why() {
        let cases = [
            ("", "not a URL"),
            ("127.0.0.1:8000", "does not begin with http"),
            ("ftp://x/", "does not begin with http"),
            ("http://a b/", "not a URL"),
            ("http://u:p@x/", "user name"),
            ("http://x:0/", "port 0"),
            ("http://x:99999/", "port"),
        ];
        for (url, why) in cases {
            let error = url.parse::<Upstream>().unwrap_err().to_string();
            assert!(error.contains(why) && error.contains("--upstream"), "{url}: {error}");
        }
    }
}

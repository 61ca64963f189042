//! What a server says of itself as a protected resource (RFC 9728).

use serde::Deserialize;

use super::places;

const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// The members that a client needs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct ResourceMetadata {
    /// The identifier of the server.
    pub(super) resource: String,
    /// Issuers that it trusts.
    #[serde(default)]
    pub(super) authorization_servers: Vec<String>,
    /// Scopes for what everybody needs of it.
    pub(super) scopes_supported: Option<Vec<String>>,
}

/// Where the metadata is looked for when the server does not say: for its path, then for all of its
/// host. // spec 2026-07-28 basic/authorization/authorization-server-discovery
pub(super) fn metadata_urls(server: &str) -> Vec<String> {
    let (Some(base), Some((_, path))) = (places::base(server), places::parts(server)) else {
        return Vec::new();
    };
    let root = format!("{base}{WELL_KNOWN}");
    if path.trim_matches('/').is_empty() { vec![root] } else { vec![format!("{root}{path}"), root] }
}

/// Whether metadata for `resource` is metadata for the server: the same place, and its path or one
/// above it. // RFC 9728 §3.3; an identifier may be that of a whole host
pub(super) fn covers(resource: &str, server: &str) -> bool {
    if resource == server {
        return true;
    }
    let (Some((origin, path)), Some((own, own_path))) = (places::parts(resource), places::parts(server))
    else {
        return false;
    };
    let climbs = |path: &str| {
        path.split('/')
            .any(|part| matches!(part.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | ".."))
    };
    let path = path.trim_end_matches('/');
    let is_above = own_path.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    origin == own && !resource.contains('?') && !climbs(path) && !climbs(&own_path) && is_above
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_looked_for_at_the_path_first() {
        let rows: [(&str, &[&str]); 4] = [
            (
                "https://h:1/a/mcp",
                &[
                    "https://h:1/.well-known/oauth-protected-resource/a/mcp",
                    "https://h:1/.well-known/oauth-protected-resource",
                ],
            ),
            ("https://h/", &["https://h/.well-known/oauth-protected-resource"]),
            ("https://h", &["https://h/.well-known/oauth-protected-resource"]),
            ("no url", &[]),
        ];
        for (server, urls) in rows {
            assert_eq!(metadata_urls(server), urls, "{server}");
        }
    }

    #[test]
    fn metadata_of_another_resource_is_not_of_this_server() {
        let server = "https://h/team/mcp";
        let rows = [
            ("https://h/team/mcp", true),
            ("HTTPS://H:443/team/mcp", true),
            ("https://h/team/mcp/", true),
            ("https://h/team", true),
            ("https://h", true),
            ("https://h/", true),
            ("https://h/tea", false),
            ("https://h/team/mcp2", false),
            ("https://h/team/mcp/more", false),
            ("https://h/team/../other", false),
            ("https://h/%2E%2e", false),
            ("https://h/team?x=1", false),
            ("https://h/team#x", false),
            ("http://h/team/mcp", false),
            ("https://h:8443/team/mcp", false),
            ("https://evil.example/team/mcp", false),
            ("https://h@evil.example/team/mcp", false),
            ("", false),
        ];
        for (resource, is_it) in rows {
            assert_eq!(covers(resource, server), is_it, "{resource}");
        }
        assert!(!covers("https://h/a", "https://h/a/../b"));
    }
}

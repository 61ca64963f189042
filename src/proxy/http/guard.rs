//! Whether a request was meant for the tap: the check against DNS rebinding.
//!
//! Needed only where the tap must put the server's name in place of its own, because then the
//! server cannot judge any more what the client had sent.

use std::net::{IpAddr, SocketAddr};

use hyper::http::uri::Authority;

use super::answer::OwnAnswer;

/// Knows the names of the tap.
#[derive(Debug)]
pub(super) struct Guard {
    listen: SocketAddr,
    /// Beside the loopback names and the address itself: host names, with or without a port.
    names: Vec<String>,
}

impl Guard {
    pub(super) fn new(listen: SocketAddr, names: Vec<String>) -> Guard {
        Guard { listen, names }
    }

    /// `hosts` and `origins`: all values of these fields. Refused are a `Host` that does not name
    /// the tap (421) and an `Origin` that is not the tap's own (403).
    pub(super) fn judge<'a>(
        &self,
        mut hosts: impl Iterator<Item = &'a str>,
        mut origins: impl Iterator<Item = &'a str>,
    ) -> Result<(), OwnAnswer> {
        let host = hosts.next();
        if hosts.next().is_some() || !host.is_some_and(|host| self.is_own(host)) {
            return Err(OwnAnswer::misdirected(host.unwrap_or("nothing"), self.listen));
        }
        match origins.find(|origin| !self.is_own_origin(origin)) {
            Some(foreign) => Err(OwnAnswer::foreign_origin(foreign, self.listen)),
            None => Ok(()),
        }
    }

    fn is_own_origin(&self, origin: &str) -> bool {
        origin.strip_prefix("http://").is_some_and(|authority| self.is_own(authority))
    }

    fn is_own(&self, authority: &str) -> bool {
        if self.names.iter().any(|name| name.eq_ignore_ascii_case(authority)) {
            return true;
        }
        let Ok(parsed) = authority.parse::<Authority>() else { return false };
        let host = parsed.host().trim_start_matches('[').trim_end_matches(']');
        if parsed.port_u16().unwrap_or(80) != self.listen.port() || authority.contains('@') {
            return false;
        }
        match host.parse::<IpAddr>() {
            // An address cannot be rebound; where all addresses are listened on, any may be ours.
            Ok(ip) => ip.is_loopback() || ip == self.listen.ip() || self.listen.ip().is_unspecified(),
            Err(_) => {
                host.eq_ignore_ascii_case("localhost")
                    || self.names.iter().any(|name| name.eq_ignore_ascii_case(host))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_taps_own_host_and_origin_pass() {
        let local = "127.0.0.1:8080";
        let open = "0.0.0.0:8080";
        let cases: &[(&str, &[&str], &[&str], u16)] = &[
            (local, &["127.0.0.1:8080"], &[], 200),
            (local, &["localhost:8080"], &["http://localhost:8080"], 200),
            (local, &["LocalHost:8080"], &["http://127.0.0.1:8080"], 200),
            (local, &["[::1]:8080"], &[], 200),
            (local, &["tap.test:8080"], &["http://tap.test:8080"], 200),
            (local, &["gate.test:9"], &[], 200),
            (local, &[], &[], 421),
            (local, &["127.0.0.1:8080", "evil.test:8080"], &[], 421),
            (local, &["127.0.0.1"], &[], 421),
            (local, &["127.0.0.1:8081"], &[], 421),
            (local, &["evil.test:8080"], &[], 421),
            (local, &["localhost.evil.test:8080"], &[], 421),
            (local, &["user@localhost:8080"], &[], 421),
            (local, &["192.0.2.1:8080"], &[], 421),
            (local, &["\u{7f}"], &[], 421),
            (local, &["localhost:8080"], &["null"], 403),
            (local, &["localhost:8080"], &["https://localhost:8080"], 403),
            (local, &["localhost:8080"], &["http://evil.test"], 403),
            (local, &["localhost:8080"], &["http://localhost:8080", "http://evil.test"], 403),
            (local, &["localhost:8080"], &["http://localhost:8080.evil.test"], 403),
            (open, &["192.0.2.1:8080"], &[], 200),
            (open, &["evil.test:8080"], &[], 421),
        ];
        for (listen, hosts, origins, expected) in cases {
            let names = vec!["tap.test".to_owned(), "gate.test:9".to_owned()];
            let guard = Guard::new(listen.parse().unwrap(), names);
            let judged = guard.judge(hosts.iter().copied(), origins.iter().copied());
            assert_eq!(
                judged.map_or_else(|a| a.status(), |()| 200),
                *expected,
                "{listen} {hosts:?} {origins:?}"
            );
        }
        let plain = Guard::new("127.0.0.1:80".parse().unwrap(), Vec::new());
        assert!(plain.judge(["localhost"].into_iter(), ["http://localhost"].into_iter()).is_ok());
    }
}

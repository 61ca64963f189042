//! The few bytes that the tap changes, and the many that it does not.

use std::fmt::Write;

use super::fixture::*;

/// Sends `answer` for a GET of `path`, in pieces of `cut` bytes; returns what the client got.
fn answered(tap: &Tap, server: &std::net::TcpListener, path: &str, answer: &str, cut: usize) -> String {
    let client = tap.connect();
    send(&client, format!("GET {path} HTTP/1.1\r\nHost: localhost:{}\r\n\r\n", tap.address.port()));
    let peer = accept(server);
    read_head(&peer);
    for part in answer.as_bytes().chunks(cut) {
        send(&peer, part);
    }
    drop(peer);
    let mut got = String::new();
    std::io::Read::read_to_string(&mut (&client), &mut got).unwrap();
    got
}

fn chunked(head: &str, parts: &[&str]) -> String {
    let mut out = format!("HTTP/1.1 200 OK\r\n{head}Transfer-Encoding: chunked\r\n\r\n");
    for part in parts {
        write!(out, "{:x}\r\n{part}\r\n", part.len()).unwrap();
    }
    out + "0\r\n\r\n"
}

const SSE: &str = "Content-Type: text/event-stream; charset=utf-8\r\n";

#[test]
fn an_absolute_endpoint_stays_in_the_path() {
    let server = listen();
    let tap = Tap::before(&server);
    let (from, to) = (
        format!("http://{}", server.local_addr().unwrap()),
        format!("http://localhost:{}", tap.address.port()),
    );
    let first =
        format!(": hi\n\nevent: endpoint\r\ndata: {from}/messages?id=1\r\n\r\ndata: {from}/ not this\n\n");
    let rest = "data: 2\n\n";
    for cut in [1, 7, 1 << 20] {
        let got = answered(&tap, &server, "/sse", &chunked(SSE, &[&first, rest]), cut);
        let (head, body) = got.split_once("\r\n\r\n").unwrap();
        assert_eq!(head, chunked(SSE, &[]).split_once("\r\n\r\n").unwrap().0);
        let expected = first.replacen(&format!("{from}/messages"), &format!("{to}/messages"), 1) + rest;
        assert_eq!(unchunked(body), expected, "cut {cut}");
    }
    // To the end of the connection, without chunks.
    let plain = format!("HTTP/1.0 200 OK\r\n{SSE}\r\nevent: endpoint\ndata: {from}\n\nx");
    let got = answered(&tap, &server, "/sse", &plain, 1 << 20);
    assert_eq!(got, plain.replace(&from, &to));
    let told = short(&tap.finish());
    let injected: Vec<_> =
        told.iter().filter(|t| t.contains("inject rewrite url of the endpoint event")).collect();
    assert_eq!(injected.len(), 4);
    assert!(
        told.iter().any(|t| t.contains(&format!("data: {from}/messages"))),
        "the recording has what was sent"
    );
}

/// Undoes chunked coding.
fn unchunked(mut body: &str) -> String {
    let mut out = String::new();
    loop {
        let (size, rest) = body.split_once("\r\n").unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            assert_eq!(rest, "\r\n");
            return out;
        }
        let (data, rest) = rest.split_at(size);
        out.push_str(data);
        body = rest.strip_prefix("\r\n").unwrap();
    }
}

#[test]
fn every_other_stream_and_body_passes_verbatim() {
    let server = listen();
    let mut with_rewrite = options(&format!("http://{}", server.local_addr().unwrap()));
    with_rewrite.rewrites_origin = true;
    let from = format!("http://{}", server.local_addr().unwrap());
    let metadata = "/.well-known/oauth-protected-resource";
    let long = format!("{{\"resource\":\"{from}\",\"pad\":\"{}\"}}", "x".repeat(300_000));
    let cases = [
        ("/sse", chunked(SSE, &["event: endpoint\ndata: /messages\n\n", "data: x\n\n"])),
        ("/sse", chunked(SSE, &["event: endpoint\ndata: http://elsewhere.test/\n\n"])),
        ("/sse", chunked(SSE, &[": ping\n\n", ": ping\n\n", "event: endpoint\n"])),
        ("/sse", chunked(SSE, &["id: 1\ndata:\n\n", "data: 2\n\n"])),
        ("/sse", chunked(&format!("{SSE}Content-Encoding: gzip\r\n"), &["event: endpoint\n\n"])),
        ("/x", chunked("Content-Type: text/plain\r\n", &[&format!("event: endpoint\ndata: {from}\n\n")])),
        (
            "/x",
            format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{{\"resource\":\"{from}\"}}",
                from.len() + 15
            ),
        ),
        (metadata, chunked("", &["{\"resource\":\"http://elsewhere.test/\"}"])),
        (metadata, chunked("", &["not json"])),
        (metadata, chunked("", &[&long])),
        (metadata, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned()),
        (metadata, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\ncut".to_owned()),
        ("/x", "HTTP/1.1 401 No\r\nWWW-Authenticate:  Bearer\r\nContent-Length: 0\r\n\r\n".to_owned()),
    ];
    for with in [options(&from), with_rewrite] {
        let tap = Tap::with(with);
        for (path, answer) in &cases {
            let cut = if answer.len() > 10_000 { 1 << 20 } else { 3 };
            assert_eq!(&answered(&tap, &server, path, answer, cut), answer, "{path}");
        }
        let injected = short(&tap.finish()).iter().filter(|t| t.contains("inject")).count();
        assert_eq!(injected, 0);
    }
}

#[test]
fn oauth_metadata_names_the_tap_only_on_request() {
    let server = listen();
    let from = format!("http://{}", server.local_addr().unwrap());
    let challenge = format!(
        "HTTP/1.1 401 Unauthorized\r\nx: 1\r\nWWW-Authenticate: Bearer resource_metadata=\"{from}/.well-known/oauth-protected-resource\"\r\nContent-Length: 0\r\n\r\n"
    );
    let body = format!("{{ \"resource\" : \"{from}/mcp\", \"authorization_servers\":[\"{from}\"] }}");
    let metadata = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nA: b\r\n\r\n{body}", body.len());
    for rewrites_origin in [false, true] {
        let mut options = options(&from);
        options.rewrites_origin = rewrites_origin;
        let tap = Tap::with(options);
        let to =
            if rewrites_origin { format!("http://localhost:{}", tap.address.port()) } else { from.clone() };
        let path = "/.well-known/oauth-protected-resource/mcp";
        for cut in [5, 1 << 20] {
            assert_eq!(answered(&tap, &server, "/mcp", &challenge, cut), challenge.replace(&from, &to));
            let got = answered(&tap, &server, path, &metadata, cut);
            let (head, got_body) = got.split_once("\r\n\r\n").unwrap();
            assert_eq!(got_body, body.replacen(&from, &to, 1));
            assert!(head.contains(&format!("Content-Length: {}\r\n", got_body.len())), "{head}");
        }
        let injected = short(&tap.finish()).iter().filter(|t| t.contains("inject rewrite")).count();
        assert_eq!(injected, if rewrites_origin { 4 } else { 0 });
    }
}

//! Bytes in are bytes out, whatever they are.

use std::io::{Read, Write};
use std::net::Shutdown;

use midwire::event::{Dir, What};
use sha2::{Digest, Sha256};

use super::fixture::*;

/// Bytes without a pattern, the same in every run (xorshift).
fn random(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    std::iter::repeat_with(next).flatten().take(len).collect()
}

/// What passes both ways in each of these must be the very bytes, heads included.
#[test]
fn every_form_of_message_passes_verbatim() {
    let cases: &[(&str, &str, &str)] = &[
        (
            "order, case and repetition of fields",
            "POST /a/../b?x=%2F&&y HTTP/1.1\r\nhOST: h\r\nX-b: 2\r\nx-A: 1\r\nX-b:  3 \r\nContent-length: 2\r\n\r\nhi",
            "HTTP/1.1 200 Fine So Far\r\nx-Z: 1\r\nSet-Cookie: a\r\nX-Y:\r\nset-cookie: b\r\nCONTENT-LENGTH: 3\r\n\r\nyes",
        ),
        (
            "chunks with extensions and trailers",
            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTrailer: T\r\n\r\n3;a=b\r\nabc\r\n01\r\nd\r\n0\r\nT: v\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nA\r\n0123456789\r\n000\r\nT: w\r\n\r\n",
        ),
        (
            "no body in answers that have none",
            "HEAD / HTTP/1.1\r\nHost: h\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n",
        ),
        ("204", "DELETE /mcp HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 204 No Content\r\n\r\n"),
        (
            "304",
            "GET / HTTP/1.1\r\nHost: h\r\n\r\n",
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
        ),
        (
            "interim answers",
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx",
            "HTTP/1.1 103 Early Hints\r\nLink: </s>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n",
        ),
        (
            "HTTP/1.0 with keep-alive",
            "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
            "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx",
        ),
        ("line feeds alone", "GET / HTTP/1.1\nHost: h\n\n", "HTTP/1.1 200 OK\nContent-Length: 1\n\nx"),
        (
            "unknown method and target",
            "BREW coffee:pot HTTP/1.1\r\nHost: h\r\n\r\n",
            "HTTP/1.1 418 Teapot\r\nContent-Length: 0\r\n\r\n",
        ),
        ("not HTTP at all", "hello there\r\n\r\n", "220 who are you\r\n"),
        (
            "bytes outside UTF-8 in a field",
            "GET / HTTP/1.1\r\nHost: h\r\nX: \u{e4}\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: \u{df}\r\n\r\n",
        ),
        (
            "compressed",
            "POST / HTTP/1.1\r\nHost: h\r\nAccept-Encoding: gzip\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Type: text/event-stream\r\nContent-Length: 4\r\n\r\n\u{1f}\u{8b}\u{0}",
        ),
    ];
    let server = listen();
    let tap = Tap::before(&server);
    for (what, request, answer) in cases {
        let client = tap.connect();
        send(&client, request);
        let peer = accept(&server);
        expect(&peer, request);
        send(&peer, answer);
        expect(&client, answer);
        println!("{what}: the same");
    }
    // Several on one connection, cut at every byte.
    let (client, mut peer) = (tap.connect(), None);
    for (what, request, answer) in &cases[..6] {
        request.as_bytes().chunks(1).for_each(|byte| send(&client, byte));
        let peer = peer.get_or_insert_with(|| accept(&server));
        expect(peer, request);
        answer.as_bytes().chunks(1).for_each(|byte| send(peer, byte));
        expect(&client, answer);
        println!("{what}: the same byte by byte");
    }
    let all = tap.finish();
    let heads = all.iter().filter(|i| matches!(i.what, What::Request(_))).count();
    assert_eq!(heads, cases.len() - 1 + 6, "all but the one that is not HTTP are read as requests");
}

#[test]
fn a_client_that_asks_for_leave_gets_it_from_the_server() {
    let server = listen();
    let tap = Tap::before(&server);
    let client = tap.connect();
    let head = "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n";
    send(&client, head);
    let peer = accept(&server);
    expect(&peer, head);
    send(&peer, "HTTP/1.1 100 Continue\r\n\r\n");
    expect(&client, "HTTP/1.1 100 Continue\r\n\r\n");
    send(&client, "abc");
    expect(&peer, "abc");
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    send(&peer, answer);
    expect(&client, answer);
    let told = short(&tap.finish());
    assert_eq!(told, ["1/1 POST /", "1/1 100", "1/1 C2s body abc", "1/1 200", "1/1 server Eof"]);
}

/// Only what is with its receiver is told to be handed on.
#[test]
fn the_tape_knows_what_was_handed_on() {
    let server = listen();
    let tap = Tap::before(&server);
    let client = tap.connect();
    let request = "POST / HTTP/1.1\r\nContent-Length: 1\r\n\r\nx";
    send(&client, request);
    let peer = accept(&server);
    expect(&peer, request);
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\ny";
    send(&peer, answer);
    expect(&client, answer);
    drop(client);
    expect_eof(&peer);
    let (all, handed_on) = tap.finish_with_tickets();
    let bytes = all.iter().filter(|i| !matches!(i.what, What::ClientClosed { .. }));
    let told: Vec<_> = handed_on.iter().map(|(ticket, _)| *ticket).collect();
    assert_eq!(bytes.map(|i| i.ticket).collect::<Vec<_>>(), told);
    assert_eq!(handed_on.len(), 4);
}

/// Pipelined requests are answered in their order, and an upgraded connection is a tunnel.
#[test]
fn pipelines_and_tunnels_pass() {
    let server = listen();
    let tap = Tap::before(&server);
    let client = tap.connect();
    let requests = "HEAD /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\n\r\nGET /3 HTTP/1.1\r\nUpgrade: x\r\n\r\n";
    send(&client, requests);
    let peer = accept(&server);
    expect(&peer, requests);
    let answers = "HTTP/1.1 200 A\r\nContent-Length: 7\r\n\r\nHTTP/1.1 200 B\r\nContent-Length: 1\r\n\r\nb\
        HTTP/1.1 101 C\r\n\r\nfrom server";
    send(&peer, answers);
    expect(&client, answers);
    send(&client, "GET / from client");
    expect(&peer, "GET / from client");
    let told = short(&tap.finish());
    let expected = [
        "1/1 HEAD /1",
        "1/2 GET /2",
        "1/3 GET /3",
        "1/1 200",
        "1/1 server Eof",
        "1/2 200",
        "1/2 S2c body b",
        "1/2 server Eof",
        "1/3 101",
        "1/3 S2c body from server",
        "1/3 C2s body GET / from client",
    ];
    assert_eq!(told, expected);
}

/// 8 MB of random bytes each way at once, sized and chunked, with the copy on the tape.
#[test]
fn random_bodies_arrive_with_the_same_hash_both_ways() {
    for is_chunked in [false, true] {
        let server = listen();
        let tap = Tap::before(&server);
        let (up, down) = (random(8 << 20, 1), random(8 << 20, 2));
        let frame = |start: &str, body: &[u8]| {
            if !is_chunked {
                let head = format!("{start}\r\nContent-Length: {}\r\n\r\n", body.len());
                return [head.as_bytes(), body].concat();
            }
            let mut out = format!("{start}\r\nTransfer-Encoding: chunked\r\n\r\n").into_bytes();
            let mut sizes = (1usize..).map(|n| n * 7919 % 60_000 + 1);
            let mut rest = body;
            while !rest.is_empty() {
                let (chunk, after) = rest.split_at(sizes.next().unwrap().min(rest.len()));
                write!(out, "{:X}\r\n", chunk.len()).unwrap();
                out.extend_from_slice(chunk);
                out.extend_from_slice(b"\r\n");
                rest = after;
            }
            out.extend_from_slice(b"0\r\n\r\n");
            out
        };
        let request = frame("POST /mcp HTTP/1.1\r\nHost: h", &up);
        let answer = frame("HTTP/1.1 200 OK", &down);

        let client = tap.connect();
        let sender = client.try_clone().unwrap();
        let sent = request.clone();
        let sending = std::thread::spawn(move || send(&sender, sent));
        let peer = accept(&server);
        let peer_sender = peer.try_clone().unwrap();
        let answered = answer.clone();
        let answering = std::thread::spawn(move || {
            send(&peer_sender, answered);
            peer_sender.shutdown(Shutdown::Write).unwrap();
        });
        let hash_of = |mut from: &std::net::TcpStream, len: usize| {
            let mut got = vec![0; len];
            from.read_exact(&mut got).unwrap();
            Sha256::digest(got)
        };
        let request_len = request.len();
        let at_server = std::thread::spawn(move || (hash_of(&peer, request_len), peer));
        assert_eq!(hash_of(&client, answer.len()), Sha256::digest(&answer));
        assert_eq!(at_server.join().unwrap().0, Sha256::digest(&request));
        sending.join().unwrap();
        answering.join().unwrap();
        expect_eof(&client);

        let all = tap.finish();
        let recorded = |dir: Dir| {
            let mut hash = Sha256::new();
            for item in all.iter().filter(|i| i.dir == dir) {
                if let What::Body(bytes) = &item.what {
                    hash.update(bytes);
                }
            }
            hash.finalize()
        };
        assert_eq!(recorded(Dir::C2s), Sha256::digest(&up));
        assert_eq!(recorded(Dir::S2c), Sha256::digest(&down));
    }
}

//! Every way in which one side can end arrives as the same at the other, and is recorded.

use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use super::fixture::*;

const REQUEST: &str = "POST /mcp HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}";
const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
const EVENT: &str = "9\r\ndata: 1\n\n\r\n";
const LAST: &str = "0\r\n\r\n";

/// How soon the other side must know that one has left.
const SOON: Duration = Duration::from_millis(100);

/// How far an exchange has come when somebody leaves.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Stage {
    /// Nothing was answered yet.
    BeforeHead,
    /// The answer has begun.
    MidBody,
    /// The answer was complete.
    Idle,
}

const STAGES: [Stage; 3] = [Stage::BeforeHead, Stage::MidBody, Stage::Idle];

/// A client and a server joined by a tap, and what the recording must begin with.
fn joined_at(stage: Stage) -> (Tap, TcpStream, TcpStream, Vec<String>) {
    let server = listen();
    let tap = Tap::before(&server);
    let client = tap.connect();
    send(&client, REQUEST);
    let peer = accept(&server);
    expect(&peer, REQUEST);
    let mut told = vec!["1/1 POST /mcp {}"];
    if stage != Stage::BeforeHead {
        let answer = format!("{HEAD}{EVENT}");
        send(&peer, &answer);
        expect(&client, &answer);
        told.extend(["1/1 200", "1/1 sse data: 1\n\n"]);
    }
    if stage == Stage::Idle {
        send(&peer, LAST);
        expect(&client, LAST);
        told.push("1/1 server Eof");
    }
    (tap, client, peer, told.into_iter().map(str::to_owned).collect())
}

/// The exchange that an end is recorded for: none when it was complete.
fn place(stage: Stage) -> &'static str {
    if stage == Stage::Idle { "1/-" } else { "1/1" }
}

#[test]
fn a_client_that_closes_is_seen_by_the_server_at_once() {
    for stage in STAGES {
        let (tap, client, peer, mut told) = joined_at(stage);
        let left = Instant::now();
        drop(client);
        expect_eof(&peer);
        assert!(left.elapsed() < SOON, "{stage:?}: {:?}", left.elapsed());
        told.push(format!("{} client Eof", place(stage)));
        // As without a tap: what the server still writes is refused by a reset.
        if stage != Stage::Idle {
            expect_refusal(&peer);
        }
        let all = short(&tap.finish());
        assert_eq!(all[..told.len()], told, "{stage:?}");
    }
}

#[test]
fn a_client_that_stops_sending_still_gets_its_answer() {
    for stage in STAGES {
        let (tap, client, peer, mut told) = joined_at(stage);
        let left = Instant::now();
        client.shutdown(Shutdown::Write).unwrap();
        expect_eof(&peer);
        assert!(left.elapsed() < SOON, "{stage:?}: {:?}", left.elapsed());
        told.push(format!("{} client HalfClose", place(stage)));
        if stage != Stage::Idle {
            let rest =
                if stage == Stage::BeforeHead { format!("{HEAD}{LAST}") } else { format!("{EVENT}{LAST}") };
            send(&peer, &rest);
            expect(&client, &rest);
            told.push(if stage == Stage::BeforeHead { "1/1 200" } else { "1/1 sse data: 1\n\n" }.to_owned());
            told.push("1/1 server Eof".to_owned());
        }
        drop(peer);
        expect_eof(&client);
        told.push("1/- server Eof".to_owned());
        assert_eq!(short(&tap.finish()), told, "{stage:?}");
    }
}

#[test]
fn a_client_that_resets_resets_the_server() {
    for stage in STAGES {
        let (tap, client, peer, mut told) = joined_at(stage);
        let left = Instant::now();
        reset(client);
        expect_reset(&peer);
        assert!(left.elapsed() < SOON, "{stage:?}: {:?}", left.elapsed());
        told.push(format!("{} client Reset", place(stage)));
        assert_eq!(short(&tap.finish()), told, "{stage:?}");
    }
}

#[test]
fn a_server_that_closes_closes_the_client_and_one_that_stops_sending_still_hears_it() {
    for stage in STAGES {
        let (tap, client, peer, mut told) = joined_at(stage);
        peer.shutdown(Shutdown::Write).unwrap();
        expect_eof(&client);
        told.push(format!("{} server Eof", place(stage)));
        send(&client, "GET /late HTTP/1.1\r\n\r\n");
        expect(&peer, "GET /late HTTP/1.1\r\n\r\n");
        told.push("1/2 GET /late".to_owned());
        // A full close after that refuses what the client still sends, as without a tap.
        drop(peer);
        expect_refusal(&client);
        let all = short(&tap.finish());
        assert_eq!(all[..told.len()], told, "{stage:?}");
    }
}

#[test]
fn a_server_that_resets_resets_the_client() {
    for stage in STAGES {
        let (tap, client, peer, mut told) = joined_at(stage);
        reset(peer);
        expect_reset(&client);
        told.push(format!("{} server Reset", place(stage)));
        assert_eq!(short(&tap.finish()), told, "{stage:?}");
    }
}

#[test]
fn a_client_that_resets_is_noticed_while_the_server_takes_nothing() {
    let server = listen();
    let tap = Tap::before(&server);
    let client = tap.connect();
    send(&client, "POST / HTTP/1.1\r\nContent-Length: 100000000\r\n\r\n");
    let peer = accept(&server);
    // Fill every buffer on the way.
    client.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
    let block = vec![b'x'; 1 << 20];
    while std::io::Write::write(&mut &client, &block).is_ok() {}
    reset(client);
    expect_reset(&peer);
    drop(tap);
}

#[test]
fn an_answer_that_only_the_end_delimits_is_complete_at_the_end() {
    let server = listen();
    let tap = Tap::before(&server);
    let client = tap.connect();
    send(&client, "GET / HTTP/1.0\r\n\r\n");
    let peer = accept(&server);
    expect(&peer, "GET / HTTP/1.0\r\n\r\n");
    send(&peer, "HTTP/1.0 200 OK\r\n\r\nall of it");
    drop(peer);
    expect(&client, "HTTP/1.0 200 OK\r\n\r\nall of it");
    expect_eof(&client);
    drop(client);
    let told = short(&tap.finish());
    assert_eq!(told[..4], ["1/1 GET /", "1/1 200", "1/1 S2c body all of it", "1/1 server Eof"]);
}

#[test]
fn a_client_that_says_nothing_reaches_no_server() {
    let server = listen();
    let tap = Tap::before(&server);
    let client = tap.connect();
    client.shutdown(Shutdown::Write).unwrap();
    expect_eof(&client);
    server.set_nonblocking(true).unwrap();
    assert!(server.accept().is_err());
    assert_eq!(short(&tap.finish()), ["1/- client Eof"]);
}

#[test]
fn a_head_that_breaks_off_passes_as_it_came_and_is_recorded() {
    let (begun_request, begun_answer) = ("POST /mcp HTT", "HTTP/1.1 200 OK\r\nConte");
    for rewrites_origin in [false, true] {
        let server = listen();
        let mut options = options(&format!("http://{}", server.local_addr().unwrap()));
        options.rewrites_origin = rewrites_origin;
        let tap = Tap::with(options);
        let client = tap.connect();
        send(&client, begun_request);
        let peer = accept(&server);
        client.shutdown(Shutdown::Write).unwrap();
        expect(&peer, begun_request);
        expect_eof(&peer);
        send(&peer, begun_answer);
        drop(peer);
        expect(&client, begun_answer);
        expect_eof(&client);
        let told = [
            format!("1/- C2s body {begun_request}"),
            "1/- client HalfClose".to_owned(),
            format!("1/- S2c body {begun_answer}"),
            "1/- server Eof".to_owned(),
        ];
        assert_eq!(short(&tap.finish()), told, "rewriting: {rewrites_origin}");
    }
}

#[test]
fn what_a_client_says_in_a_tunnel_before_it_is_granted_is_recorded() {
    let connect = "CONNECT h:1 HTTP/1.1\r\n\r\n";
    let granted = "HTTP/1.1 200 OK\r\n\r\n";
    let server = listen();
    let tap = Tap::before(&server);
    let client = tap.connect();
    send(&client, format!("{connect}early"));
    let peer = accept(&server);
    expect(&peer, format!("{connect}early"));
    send(&peer, granted);
    expect(&client, granted);
    send(&client, "late");
    expect(&peer, "late");
    let told = short(&tap.finish());
    let expected = ["1/1 CONNECT h:1 ", "1/1 200", "1/1 C2s body early", "1/1 C2s body late"];
    assert_eq!(told[..4].iter().map(|t| t.trim_end()).collect::<Vec<_>>(), expected.map(str::trim_end));
}

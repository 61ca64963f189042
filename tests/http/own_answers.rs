//! What the tap answers itself, and what it does not let pass.

use std::net::Shutdown;

use midwire::event::tape::Tape;
use midwire::event::{Dir, What};
use midwire::proxy::ProxyError;
use midwire::proxy::http::{Hands, HttpOptions, HttpTap, Upstream};
use midwire::time::Clock;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::fixture::*;

/// An address on which nobody listens.
fn nobody() -> String {
    listen().local_addr().unwrap().to_string()
}

#[test]
fn a_server_that_is_down_is_a_502_of_the_tap_and_may_come_later() {
    let address = nobody();
    let tap = Tap::with(options(&format!("http://{address}")));
    for (request, is_head) in [
        ("POST /mcp HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}", false),
        ("HEAD /mcp HTTP/1.1\r\nHost: h\r\n\r\n", true),
        ("POST /mcp HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n", false),
    ] {
        let client = tap.connect();
        // A client that sends head and body apart gets the answer all the same.
        request.as_bytes().chunks(50).for_each(|part| send(&client, part));
        let head = read_head(&client);
        assert!(head.starts_with("HTTP/1.1 502 Bad Gateway\r\n"), "{head}");
        let mut body = String::new();
        std::io::Read::read_to_string(&mut (&client), &mut body).unwrap();
        let is_clear =
            body.contains(&format!("cannot reach the server at http://{address}")) && body.ends_with('\n');
        assert!(is_clear || is_head && body.is_empty(), "{body}");
    }
    let server = std::net::TcpListener::bind(&address).unwrap();
    let client = tap.connect();
    send(&client, "GET /now HTTP/1.1\r\n\r\n");
    expect(&accept(&server), "GET /now HTTP/1.1\r\n\r\n");
    let all = tap.finish();
    let told = short(&all);
    assert_eq!(told[..3], ["1/1 POST /mcp {}", "1/1 inject answer exchange 1", "1/1 502"]);
    let injected: Vec<_> = all.iter().filter(|i| matches!(i.what, What::Inject { .. })).collect();
    assert!(injected.iter().all(|i| i.dir == Dir::Tap) && injected.len() == 3);
}

#[test]
fn a_server_on_this_machine_judges_host_and_origin_itself() {
    let server = listen();
    let tap = Tap::before(&server);
    let client = tap.connect();
    let request = "GET / HTTP/1.1\r\nHost: evil.test\r\nOrigin: http://evil.test\r\n\r\n";
    send(&client, request);
    expect(&accept(&server), request);
}

/// A machine's own name that is not a loopback one, so that the tap must judge.
fn elsewhere() -> Option<(std::net::TcpListener, String)> {
    let probe = std::net::UdpSocket::bind("0.0.0.0:0").ok()?;
    probe.connect("192.0.2.1:9").ok()?;
    let ip = probe.local_addr().ok()?.ip();
    let server = std::net::TcpListener::bind((ip, 0)).ok().filter(|_| !ip.is_loopback())?;
    let authority = server.local_addr().ok()?.to_string();
    Some((server, authority))
}

#[test]
fn for_a_server_elsewhere_the_tap_judges_and_renames() {
    let Some((server, authority)) = elsewhere() else {
        println!("this machine has no other address; the guard's own table covers the cases");
        return;
    };
    let mut options = options(&format!("http://{authority}/mcp"));
    options.allowed_hosts = vec!["tap.test".to_owned()];
    let tap = Tap::with(options);
    let own = tap.address.to_string();
    let port = tap.address.port();
    let refused = [
        (format!("Host: evil.test:{port}\r\n"), "421"),
        (String::new(), "421"),
        (format!("Host: {own}\r\nHost: {own}\r\n"), "421"),
        (format!("Host: {own}\r\nOrigin: http://evil.test\r\n"), "403"),
        (format!("Host: {own}\r\nOrigin: null\r\n"), "403"),
    ];
    for (fields, status) in &refused {
        let client = tap.connect();
        send(&client, format!("POST / HTTP/1.1\r\n{fields}Content-Length: 2\r\n\r\n{{}}"));
        assert!(read_head(&client).starts_with(&format!("HTTP/1.1 {status}")), "{fields}");
    }
    // The head comes in two writes and is renamed all the same; nothing else in it changes.
    let client = tap.connect();
    send(&client, format!("POST /mcp HTTP/1.1\r\na: 1\r\nhOst: {own}\r\nOri"));
    send(&client, format!("gin: http://tap.test:{port}\r\nContent-Length: 2\r\n\r\n{{}}"));
    let renamed = until("the connection that passes", || {
        let peer = accept(&server);
        let head = read_first(&peer);
        (!head.is_empty()).then_some((peer, head))
    });
    let expected = format!(
        "POST /mcp HTTP/1.1\r\na: 1\r\nhOst: {authority}\r\nOrigin: http://{authority}\r\nContent-Length: 2\r\n\r\n"
    );
    assert_eq!(renamed.1, expected);
    expect(&renamed.0, "{}");
    // A refusal behind an open exchange waits for its answer.
    send(&client, format!("GET / HTTP/1.1\r\nHost: evil.test:{port}\r\n\r\n"));
    send(&renamed.0, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    expect(&client, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    assert!(read_head(&client).starts_with("HTTP/1.1 421"));
    let told = short(&tap.finish());
    assert_eq!(
        told[..4],
        [
            "-/- inject rewrite Host and Origin of every request",
            "1/1 POST / {}",
            "1/1 inject answer exchange 1",
            "1/1 421",
        ]
    );
}

/// A head, or nothing when the connection ends first.
fn read_first(peer: &std::net::TcpStream) -> String {
    let mut first = [0];
    if peer.peek(&mut first).unwrap_or(0) == 0 { String::new() } else { read_head(peer) }
}

#[test]
fn a_client_that_half_closes_still_gets_the_taps_answer() {
    let tap = Tap::with(options(&format!("http://{}", nobody())));
    let client = tap.connect();
    send(&client, "POST /mcp HTTP/1.1\r\nContent-Length: 5\r\n\r\nhal");
    client.shutdown(Shutdown::Write).unwrap();
    assert!(read_head(&client).starts_with("HTTP/1.1 502"));
}

async fn bind(options: HttpOptions) -> Result<HttpTap, ProxyError> {
    let (tape, _) = Tape::new(Clock::start(), 1 << 20);
    HttpTap::bind(options, tape.clone(), Hands::new(tape, 0), TaskTracker::new(), CancellationToken::new())
        .await
}

#[tokio::test]
async fn what_cannot_start_says_why_and_what_to_do() {
    let taken = listen();
    let mut in_use = options("http://127.0.0.1:1");
    in_use.listen = taken.local_addr().unwrap();
    let error = bind(in_use.clone()).await.unwrap_err().to_string();
    assert!(error.contains(&in_use.listen.to_string()) && error.contains("pass --listen"), "{error}");

    let mut open = options("http://127.0.0.1:1");
    open.listen = "0.0.0.0:0".parse().unwrap();
    let error = bind(open.clone()).await.unwrap_err().to_string();
    assert!(error.contains("--listen-anywhere"), "{error}");
    open.is_open_to_network = true;
    assert!(bind(open).await.is_ok());

    let mut itself = options("http://127.0.0.1:1");
    itself.listen = nobody().parse().unwrap();
    itself.upstream = format!("http://localhost:{}/mcp", itself.listen.port()).parse().unwrap();
    let error = bind(itself).await.unwrap_err().to_string();
    assert!(error.contains("the tap itself") && error.contains("--upstream"), "{error}");

    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty.pem");
    std::fs::write(&empty, "").unwrap();
    for path in [empty, folder.path().join("missing.pem")] {
        let mut tls = options("https://localhost:1");
        tls.extra_ca = Some(path.clone());
        let error = bind(tls).await.unwrap_err().to_string();
        assert!(error.contains(path.to_str().unwrap()) && error.contains("--ca"), "{error}");
    }
    assert!("mailto:x".parse::<Upstream>().is_err());
}

#[tokio::test]
async fn clients_are_told_the_url_to_use() {
    let tap = bind(options("http://127.0.0.1:1/some/mcp?x=1")).await.unwrap();
    assert_eq!(tap.client_url(), format!("http://{}/some/mcp?x=1", tap.address()));
    assert!(tap.probe().await.is_err());
}

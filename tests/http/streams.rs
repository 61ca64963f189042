//! Streams keep their pace and their order, and a slow reader slows the server.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use midwire::event::What;

use super::fixture::*;

const SSE_HEAD: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

fn chunk(data: &str) -> String {
    format!("{:x}\r\n{data}\r\n", data.len())
}

/// The server sends event k + 1 only when the client has confirmed event k.
#[test]
fn each_event_is_at_the_client_before_the_next_is_sent() {
    for method in ["POST", "GET"] {
        let server = listen();
        let tap = Tap::before(&server);
        let client = tap.connect();
        send(&client, format!("{method} /mcp HTTP/1.1\r\nContent-Length: 0\r\n\r\n"));
        let peer = accept(&server);
        read_head(&peer);
        let (confirm, confirmed) = mpsc::channel();
        let serving = std::thread::spawn(move || {
            send(&peer, SSE_HEAD);
            for k in 0..1000 {
                send(&peer, chunk(&format!("data: {k}\n\n")));
                assert_eq!(confirmed.recv_timeout(LIMIT), Ok(k));
            }
            send(&peer, "0\r\n\r\n");
            peer
        });
        expect(&client, SSE_HEAD);
        for k in 0..1000 {
            expect(&client, chunk(&format!("data: {k}\n\n")));
            confirm.send(k).unwrap();
        }
        expect(&client, "0\r\n\r\n");
        drop(serving.join().unwrap());
        let told = short(&tap.finish());
        let events: Vec<_> = told.iter().filter(|t| t.starts_with("1/1 sse ")).collect();
        assert_eq!(events.len(), 1000, "{method}");
        assert_eq!(events[999], "1/1 sse data: 999\n\n");
    }
}

/// 6 clients that keep their connections, 10,000 calls each: on the tape every answer stands
/// after its request, and every request has one.
#[test]
fn no_answer_stands_before_its_request() {
    const CLIENTS: u64 = 6;
    const CALLS: u64 = 10_000;
    let server = listen();
    let tap = Tap::before(&server);
    let accepting = std::thread::spawn(move || {
        for _ in 0..CLIENTS {
            let peer = accept(&server);
            std::thread::spawn(move || answer_each(&peer, CALLS));
        }
    });
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let client = tap.connect();
            std::thread::spawn(move || {
                for call in 0..CALLS {
                    let body = format!("{{\"id\":{call}}}");
                    send(&client, format!("POST / HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}", body.len()));
                    expect(
                        &client,
                        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()),
                    );
                }
            })
        })
        .collect();
    for client in clients {
        client.join().unwrap();
    }
    accepting.join().unwrap();

    let mut open = std::collections::HashMap::new();
    let mut answered = 0;
    for item in tap.finish() {
        let Some(stream) = item.stream else { continue };
        match item.what {
            What::Request(head) => assert!(open.insert(stream, head.body).is_none()),
            What::Body(body) => assert_eq!(open.get(&stream), Some(&Some(body)), "exchange {stream}"),
            What::ServerClosed { .. } => {
                assert!(open.remove(&stream).is_some(), "answer {stream} before its request");
                answered += 1;
            }
            What::ResponseHead { .. } => assert!(open.contains_key(&stream), "head of {stream}"),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((answered, open.len()), (CLIENTS * CALLS, 0));
}

/// Answers each request with its own body.
fn answer_each(mut peer: &TcpStream, calls: u64) {
    let mut buf = Vec::new();
    let mut room = [0; 4096];
    for _ in 0..calls {
        let (head, len) = loop {
            if let Some(at) = buf.windows(4).position(|w| w == b"\r\n\r\n") {
                let head = text(&buf[..at]);
                let len: usize = head.rsplit(": ").next().unwrap().parse().unwrap();
                if buf.len() >= at + 4 + len {
                    break (at + 4, len);
                }
            }
            match peer.read(&mut room).unwrap() {
                0 => return,
                n => buf.extend_from_slice(&room[..n]),
            }
        };
        let body: Vec<u8> = buf.drain(..head + len).skip(head).collect();
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {len}\r\n\r\n{}", text(&body));
        peer.write_all(answer.as_bytes()).unwrap();
    }
}

/// A client that does not read: the server is held back by the tap as it would be by the client,
/// and the gauge says so.
#[test]
fn a_reader_that_sleeps_holds_the_server_back() {
    const TOTAL: usize = 100 << 20;
    let server = listen();
    let tap = Tap::before(&server);
    let client = tap.connect();
    send(&client, "GET /big HTTP/1.1\r\n\r\n");
    let peer = accept(&server);
    read_head(&peer);
    let taken = Arc::new(AtomicU64::new(0));
    let counted = taken.clone();
    let serving = std::thread::spawn(move || {
        send(&peer, format!("HTTP/1.1 200 OK\r\nContent-Length: {TOTAL}\r\n\r\n"));
        let block = vec![b'x'; 64 << 10];
        for _ in 0..TOTAL / block.len() {
            send(&peer, &block);
            counted.fetch_add(block.len() as u64, Ordering::Relaxed);
        }
        peer
    });
    // The server stands still when nothing was taken for a while.
    let mut last = u64::MAX;
    let stood_at = until("a server that stands still", || {
        std::thread::sleep(Duration::from_millis(200));
        let now = taken.load(Ordering::Relaxed);
        (std::mem::replace(&mut last, now) == now).then_some(now)
    });
    // Both sockets' own buffers, which exist without a tap as well, and what the tap adds.
    assert!(stood_at < 16 << 20, "the tap took {stood_at} bytes");
    let head_len = read_head(&client).len();
    assert!(head_len > 0);
    let copied = std::io::copy(&mut (&client).take(TOTAL as u64), &mut std::io::sink()).unwrap();
    assert_eq!(copied, TOTAL as u64);
    drop(serving.join().unwrap());
    let gauges: Vec<_> = tap
        .finish()
        .into_iter()
        .filter_map(|item| match item.what {
            What::Queue(queue) => Some((item.stream, item.at, queue)),
            _ => None,
        })
        .collect();
    assert!(gauges.iter().all(|(stream, ..)| *stream == Some(1)));
    assert!(gauges.iter().any(|(.., queue)| queue.bytes > 0));
    assert!(gauges.iter().any(|(.., queue)| queue.blocked_ms >= 200), "{gauges:?}");
    let pauses = gauges.windows(2).map(|pair| pair[1].1.ns_since(pair[0].1));
    assert!(pauses.min().is_none_or(|pause| pause >= 100_000_000), "at most ten a second");
}

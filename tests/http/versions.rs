//! HTTP/2 on either side, and TLS on the server's.

use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::client::conn::http2;
use hyper::header::HeaderMap;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use midwire::proxy::http::HttpOptions;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::sync::mpsc;

use super::fixture::*;

type AnyBody = BoxBody<Bytes, std::convert::Infallible>;
type Reply = Response<AnyBody>;
type Frames = mpsc::Sender<Frame<Bytes>>;

/// A body that the test feeds frame by frame.
fn fed() -> (Frames, AnyBody) {
    let (feed, mut frames) = mpsc::channel(1);
    let stream = futures_util::stream::poll_fn(move |cx| frames.poll_recv(cx).map(|f| f.map(Ok)));
    (feed, BodyExt::boxed(StreamBody::new(stream)))
}

fn whole(bytes: impl Into<Bytes>) -> AnyBody {
    Full::new(bytes.into()).boxed()
}

fn data(text: &'static str) -> Frame<Bytes> {
    Frame::data(Bytes::from_static(text.as_bytes()))
}

/// What an HTTP/2 server of a test got: the request, and where to put the answer.
type Asked = (Request<Incoming>, tokio::sync::oneshot::Sender<Reply>);

/// Serves HTTP/2 on a thread of its own; requests come out of the channel.
fn h2_server(tls: Option<Arc<rustls::ServerConfig>>) -> (u16, mpsc::Receiver<Asked>) {
    let (asks, asked) = mpsc::channel(16);
    let listener = listen();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        run(async move {
            listener.set_nonblocking(true).unwrap();
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                let asks = asks.clone();
                let service = service_fn(move |request| {
                    let asks = asks.clone();
                    async move {
                        let (answer, answered) = tokio::sync::oneshot::channel();
                        asks.send((request, answer)).await.map_err(|_| "the test is over")?;
                        answered.await.map_err(|_| "no answer")
                    }
                });
                let mut builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                builder.auto_date_header(false);
                match tls.clone() {
                    None => drop(connections.spawn(async move {
                        let _ = builder.serve_connection(TokioIo::new(socket), service).await;
                    })),
                    Some(config) => drop(connections.spawn(async move {
                        let socket = tokio_rustls::TlsAcceptor::from(config).accept(socket).await.unwrap();
                        let _ = builder.serve_connection(TokioIo::new(socket), service).await;
                    })),
                }
            }
        });
    });
    (port, asked)
}

fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(LIMIT, test).await.expect("in time") })
}

struct Client {
    sender: http2::SendRequest<AnyBody>,
    _connection: tokio::task::JoinSet<()>,
}

/// A client that speaks HTTP/2 from the first byte.
async fn h2_client(tap: &Tap) -> Client {
    let socket = tokio::net::TcpStream::connect(tap.address).await.unwrap();
    let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(socket)).await.unwrap();
    let mut running = tokio::task::JoinSet::new();
    running.spawn(async move {
        let _ = connection.await;
    });
    Client { sender, _connection: running }
}

fn post(tap: &Tap, path: &str, body: AnyBody) -> Request<AnyBody> {
    let uri = format!("http://localhost:{}{path}", tap.address.port());
    Request::post(uri).header("x-a", "1").header("x-a", "2").body(body).unwrap()
}

fn with_http2(port: u16) -> HttpOptions {
    HttpOptions { is_upstream_http2: true, ..options(&format!("http://127.0.0.1:{port}")) }
}

/// The next data of a body.
async fn next_data(body: &mut Incoming) -> Bytes {
    body.frame().await.unwrap().unwrap().into_data().unwrap()
}

#[test]
fn frames_and_trailers_pass_one_by_one_between_http2_and_http2() {
    let (port, mut asked) = h2_server(None);
    let tap = Tap::with(with_http2(port));
    run(async {
        let mut client = h2_client(&tap).await;
        let (feed_up, up) = fed();
        let sent = client.sender.send_request(post(&tap, "/mcp?a=b", up));
        let ((mut request, answer), sent) = {
            let mut sent = Box::pin(sent);
            tokio::select! {
                asked = asked.recv() => (asked.unwrap(), sent),
                _ = &mut sent => panic!("answered by nobody"),
            }
        };
        assert_eq!(request.uri().path_and_query().unwrap(), "/mcp?a=b");
        assert_eq!(request.uri().authority().unwrap().port_u16(), Some(tap.address.port()));
        let values: Vec<_> = request.headers().get_all("x-a").iter().collect();
        assert_eq!(values, ["1", "2"]);
        feed_up.send(data("up 1")).await.unwrap();
        assert_eq!(next_data(request.body_mut()).await, "up 1");

        let (feed_down, down) = fed();
        answer
            .send(Response::builder().header("content-type", "text/event-stream").body(down).unwrap())
            .unwrap();
        let mut response = sent.await.unwrap();
        let names: Vec<_> = response.headers().keys().map(hyper::header::HeaderName::as_str).collect();
        assert_eq!(names, ["content-type"], "nothing is added");
        // Each frame arrives before the next is sent, while the request goes on.
        for text in ["data: 1\n\n", "data: 2\n\n"] {
            feed_down.send(data(text)).await.unwrap();
            assert_eq!(next_data(response.body_mut()).await, text);
            feed_up.send(data("up")).await.unwrap();
            assert_eq!(next_data(request.body_mut()).await, "up");
        }
        let mut trailers = HeaderMap::new();
        trailers.insert("x-end", "1".parse().unwrap());
        feed_down.send(Frame::trailers(trailers.clone())).await.unwrap();
        drop((feed_down, feed_up));
        assert_eq!(response.body_mut().frame().await.unwrap().unwrap().into_trailers().unwrap(), trailers);
    });
    let told = short(&tap.finish());
    let expected = [
        "1/1 POST /mcp?a=b",
        "1/1 C2s body up 1",
        "1/1 200",
        "1/1 sse data: 1\n\n",
        "1/1 C2s body up",
        "1/1 sse data: 2\n\n",
        "1/1 C2s body up",
        "1/1 server Eof",
    ];
    assert_eq!(told[..expected.len()], expected);
}

/// The stream of a client that leaves it is reset at the server at once, before the head and in
/// the middle, and the others on the connection go on.
#[test]
fn a_stream_that_the_client_leaves_is_reset_at_the_server() {
    let (port, mut asked) = h2_server(None);
    let tap = Tap::with(with_http2(port));
    run(async {
        let mut client = h2_client(&tap).await;
        for is_begun in [false, true] {
            let mut sent = Box::pin(client.sender.send_request(post(&tap, "/leave", whole("x"))));
            let (_request, answer) = tokio::select! {
                asked = asked.recv() => asked.unwrap(),
                _ = &mut sent => panic!("answered by nobody"),
            };
            let mut answer = Some(answer);
            let mut feed = None;
            if is_begun {
                let (feeding, down) = fed();
                answer.take().unwrap().send(Response::new(down)).unwrap();
                drop(sent.await.unwrap());
                feed = Some(feeding);
            } else {
                drop(sent);
            }
            let seen = async {
                match (&mut answer, &feed) {
                    (Some(answer), _) => answer.closed().await,
                    (_, Some(feed)) => feed.closed().await,
                    _ => unreachable!("one of them is there"),
                }
            };
            tokio::time::timeout(Duration::from_millis(100), seen).await.expect("seen at once");
        }
        let mut sent = Box::pin(client.sender.send_request(post(&tap, "/stay", whole("x"))));
        let (_request, answer) = tokio::select! {
            asked = asked.recv() => asked.unwrap(),
            _ = &mut sent => panic!("answered by nobody"),
        };
        answer.send(Response::new(whole("still here"))).unwrap();
        assert_eq!(sent.await.unwrap().collect().await.unwrap().to_bytes(), "still here");
    });
    let told = short(&tap.finish());
    let left: Vec<_> = told.iter().filter(|t| t.contains("client Reset")).collect();
    assert_eq!(left[..2], ["1/1 client Reset", "1/2 client Reset"]);
}

/// Two streams at once reach an HTTP/1.1 server on two connections, and one that is left closes
/// its own.
#[test]
fn streams_reach_an_http1_server_each_on_a_connection() {
    let server = listen();
    let tap = Tap::before(&server);
    let (done, is_done) = tokio::sync::oneshot::channel::<()>();
    std::thread::scope(|scope| {
        let tap = &tap;
        let client = scope.spawn(move || {
            run(async {
                let mut client = h2_client(tap).await;
                let first = client.sender.send_request(post(tap, "/1", whole("one")));
                let second = client.sender.clone().send_request(post(tap, "/2", whole("two")));
                let (first, second) = tokio::join!(first, second);
                let body = first.unwrap().collect().await.unwrap().to_bytes();
                let mut second = second.unwrap();
                assert_eq!(next_data(second.body_mut()).await, "begin");
                drop(second);
                is_done.await.unwrap();
                body
            })
        });
        let peers = [accept(&server), accept(&server)];
        let [first, second] = peers.map(|peer| {
            let head = read_head(&peer);
            assert!(head.contains(&format!("host: localhost:{}\r\n", tap.address.port())), "{head}");
            assert!(!head.contains("transfer-encoding"), "a known length stays known: {head}");
            (head.starts_with("POST /1 HTTP/1.1\r\n"), peer)
        });
        let (first, second) = if first.0 { (first.1, second.1) } else { (second.1, first.1) };
        expect(&first, "one");
        expect(&second, "two");
        send(&first, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes");
        send(&second, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegin");
        expect_eof(&second);
        first.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        assert!((&first).read(&mut [0]).is_err(), "the other connection stays open");
        done.send(()).unwrap();
        assert_eq!(client.join().unwrap(), "yes");
    });
    let told = short(&tap.finish());
    assert_eq!(told.iter().filter(|t| t.ends_with("client Reset")).count(), 1, "{told:?}");
    assert_eq!(told.iter().filter(|t| t.ends_with("server Eof")).count(), 1, "{told:?}");
}

#[test]
fn an_http1_client_reaches_an_http2_server() {
    let (port, mut asked) = h2_server(None);
    let tap = Tap::with(with_http2(port));
    let client = tap.connect();
    send(&client, "POST /mcp HTTP/1.1\r\nHost: me\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\n{}");
    run(async {
        let (request, answer) = asked.recv().await.unwrap();
        assert_eq!(request.uri(), "http://me/mcp");
        assert_eq!(request.into_body().collect().await.unwrap().to_bytes(), "{}");
        answer.send(Response::builder().status(202).body(whole("ok")).unwrap()).unwrap();
    });
    expect(&client, "HTTP/1.1 202 Accepted\r\ncontent-length: 2\r\n\r\nok");
    drop(client);
    let told = short(&tap.finish());
    assert_eq!(
        told[..5],
        ["1/1 POST /mcp", "1/1 C2s body {}", "1/1 202", "1/1 S2c body ok", "1/1 server Eof"]
    );
}

#[test]
fn http2_is_known_from_its_first_bytes_however_they_come() {
    let tap = Tap::with(options(&format!("http://{}", listen().local_addr().unwrap())));
    let client = tap.connect();
    for byte in "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_bytes().chunks(1) {
        send(&client, byte);
    }
    send(&client, [0, 0, 0, 4, 0, 0, 0, 0, 0]);
    let mut frame = [0; 9];
    (&client).read_exact(&mut frame).unwrap();
    assert_eq!(frame[3], 4, "the first frame of an HTTP/2 server is SETTINGS");
}

#[test]
fn an_http2_server_that_is_down_is_a_502_of_the_tap() {
    let port = listen().local_addr().unwrap().port();
    let tap = Tap::with(with_http2(port));
    run(async {
        let mut client = h2_client(&tap).await;
        let response = client.sender.send_request(post(&tap, "/", whole(""))).await.unwrap();
        assert_eq!(response.status(), 502);
        let body = response.collect().await.unwrap().to_bytes();
        assert!(text(&body).contains("cannot reach the server"));
    });
    assert!(short(&tap.finish()).contains(&"1/1 inject answer exchange 1".to_owned()));
}

/// A certificate for `localhost`, and the options of a tap that trusts it; the folder holds it.
fn certified(
    port_of: impl FnOnce(Arc<rustls::ServerConfig>) -> u16,
    alpn: &[&str],
) -> (HttpOptions, tempfile::TempDir) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    let port = port_of(Arc::new(config));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ca.pem");
    std::fs::write(&path, made.cert.pem()).unwrap();
    let options = HttpOptions { extra_ca: Some(path), ..options(&format!("https://localhost:{port}/mcp")) };
    (options, folder)
}

/// Over TLS the relay passes the same bytes, but for `Host`, and the same ends.
#[test]
fn a_tls_server_gets_the_same_bytes_under_its_own_name() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let mut config = None;
    let (options, _folder) = certified(
        |made| {
            config = Some(made);
            port
        },
        &["h2", "http/1.1"],
    );
    let serving = std::thread::spawn(move || {
        let connection = rustls::ServerConnection::new(config.unwrap()).unwrap();
        let mut peer = rustls::StreamOwned::new(connection, accept(&server));
        let mut got = Vec::new();
        // Ends with the half-close of the client, after which the answer still goes through.
        peer.read_to_end(&mut got).unwrap();
        peer.write_all(b"HTTP/1.1 200 OK\r\nX-y: z\r\nContent-Length: 2\r\n\r\nok").unwrap();
        peer.conn.send_close_notify();
        peer.flush().unwrap();
        text(&got)
    });
    let tap = Tap::with(options);
    let client = tap.connect();
    let request =
        |host: &str| format!("POST /mcp HTTP/1.1\r\nx-Q: 1\r\nHoSt: {host}\r\nContent-Length: 2\r\n\r\n{{}}");
    send(&client, request(&tap.address.to_string()));
    client.shutdown(std::net::Shutdown::Write).unwrap();
    expect(&client, "HTTP/1.1 200 OK\r\nX-y: z\r\nContent-Length: 2\r\n\r\nok");
    expect_eof(&client);
    assert_eq!(serving.join().unwrap(), request(&format!("localhost:{port}")));
    let told = short(&tap.finish());
    assert_eq!(
        told[1..],
        [
            "1/1 POST /mcp {}",
            "1/1 client HalfClose",
            "1/1 200",
            "1/1 S2c body ok",
            "1/1 server Eof",
            "1/- server Eof",
        ]
    );
}

/// Over TLS the server is asked for what the client speaks.
#[test]
fn a_tls_server_is_asked_for_http2_when_the_client_speaks_it() {
    let mut asked = None;
    let (options, _folder) = certified(
        |config| {
            let (port, asks) = h2_server(Some(config));
            asked = Some(asks);
            port
        },
        &["h2", "http/1.1"],
    );
    let mut asked = asked.unwrap();
    let authority = options.upstream.authority();
    let tap = Tap::with(options);
    run(async {
        let mut client = h2_client(&tap).await;
        let mut sent = Box::pin(client.sender.send_request(post(&tap, "/mcp", whole("x"))));
        let (request, answer) = tokio::select! {
            asked = asked.recv() => asked.unwrap(),
            _ = &mut sent => panic!("answered by nobody"),
        };
        assert_eq!(request.uri().to_string(), format!("https://{authority}/mcp"));
        answer.send(Response::new(whole("ok"))).unwrap();
        assert_eq!(sent.await.unwrap().collect().await.unwrap().to_bytes(), "ok");
        // The guard judges here as well.
        let mut foreign = post(&tap, "/mcp", whole("x"));
        foreign.headers_mut().insert("origin", "http://evil.test".parse().unwrap());
        assert_eq!(client.sender.send_request(foreign).await.unwrap().status(), 403);
    });
}

#[test]
fn a_tls_server_that_nobody_vouches_for_is_a_502() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let mut config = None;
    let (mut options, _folder) = certified(
        |made| {
            config = Some(made);
            port
        },
        &[],
    );
    options.extra_ca = None;
    let serving = std::thread::spawn(move || {
        let connection = rustls::ServerConnection::new(config.unwrap()).unwrap();
        let mut peer = rustls::StreamOwned::new(connection, accept(&server));
        assert!(peer.read(&mut [0]).is_err());
    });
    let tap = Tap::with(options);
    let client = tap.connect();
    send(&client, format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", tap.address));
    assert!(read_head(&client).starts_with("HTTP/1.1 502"));
    let mut body = String::new();
    (&client).read_to_string(&mut body).unwrap();
    assert!(body.contains("certificate"), "{body}");
    serving.join().unwrap();
}

/// Orders are for requests and exchanges on HTTP/2 as well; other streams go on.
#[test]
fn orders_hold_answer_give_up_and_cut_streams_of_http2() {
    use midwire::command::{
        Answer, By, Cancel, ClientGets, Command, Effect, Rule, TakesOrders, Times, Which,
    };
    use midwire::filter::Filter;
    let call = |id: u32| {
        format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"t{id}\",\"_meta\":{{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"}}}}}}"
        )
    };
    let on = |text: &str| Filter::parse(text).unwrap();
    let arm = |filter: &str, effect| {
        let (on, times) = (on(filter), Times::Only(1));
        Command::Arm(Rule { name: None, on, skip: 0, times, chance: 1.0, seed: None, effect })
    };
    let (port, mut asked) = h2_server(None);
    let tap = Tap::with(with_http2(port));
    let order = |command: &Command| tap.hands.order(command, By::Ctl).unwrap();
    order(&arm("tool:t1", Effect::Hold { limit: None }));
    order(&arm("tool:t2", Effect::Answer(Answer::Error { code: 5, message: "m".to_owned() })));
    run(async {
        let client = h2_client(&tap).await;
        let (mut one, mut two, mut three) =
            (client.sender.clone(), client.sender.clone(), client.sender.clone());
        let held = one.send_request(post(&tap, "/mcp", whole(call(1))));
        let answered = two.send_request(post(&tap, "/mcp", whole(call(2)))).await.unwrap();
        let body = answered.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(body, "{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":5,\"message\":\"m\"}}");
        tokio::pin!(held);
        while order(&Command::Status).status.unwrap().held.is_empty() {
            tokio::select! {
                answer = &mut held => panic!("{answer:?} before it was released"),
                () = tokio::task::yield_now() => {}
            }
        }
        order(&Command::Release { which: Which::One(1), in_reverse: false, after: None });
        let (answer, (request, reply)) = tokio::join!(&mut held, async {
            let (request, reply) = asked.recv().await.unwrap();
            let text = request.into_body().collect().await.unwrap().to_bytes();
            reply.send(Response::new(whole("{}"))).unwrap();
            (text, ())
        });
        let () = reply;
        assert_eq!(request, call(1));
        assert_eq!(answer.unwrap().into_body().collect().await.unwrap().to_bytes(), "{}");
        // A stream that is given up ends for both, and the client gets the error that was asked for.
        let streaming = three.send_request(post(&tap, "/mcp", whole(call(3))));
        let (answer, feed) = tokio::join!(streaming, async {
            let (_, reply) = asked.recv().await.unwrap();
            let (feed, body) = fed();
            let event_stream = Response::builder().header("content-type", "text/event-stream");
            reply.send(event_stream.body(body).unwrap()).unwrap();
            feed.send(data(": hi\n\n")).await.unwrap();
            feed
        });
        let mut body = answer.unwrap().into_body();
        assert_eq!(next_data(&mut body).await, ": hi\n\n");
        let cancel = Cancel { reason: None, client_gets: ClientGets::Error };
        order(&Command::Cancel { on: on("tool:t3"), cancel });
        let last = next_data(&mut body).await;
        assert!(
            last.starts_with(b"event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":3,\"error\""),
            "{last:?}"
        );
        assert!(body.collect().await.unwrap().to_bytes().is_empty());
        feed.closed().await;
    });
    let injected: Vec<String> = short(&tap.finish()).into_iter().filter(|t| t.contains("inject")).collect();
    assert_eq!(
        injected,
        [
            "1/1 inject hold id 1",
            "1/2 inject answer id 2",
            "1/1 inject release id 1",
            "1/3 inject cancel id 3",
            "1/3 inject answer id 3"
        ]
    );
}

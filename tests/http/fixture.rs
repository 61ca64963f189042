//! A tap on a thread of its own, and peers that are plain sockets.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use midwire::event::What;
use midwire::event::tape::{Closer, Tape, Taped, Ticket};
use midwire::proxy::http::{Hands, HttpOptions, HttpTap};
use midwire::time::{Clock, Mono};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// No test waits longer than this for one thing.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

/// Body bytes that the tape may hold: more than any test moves.
const TAPE_BYTES: usize = 1 << 30;

/// What was put on a tape, and what was handed on when.
type Recorded = (Vec<Taped>, Vec<(Ticket, Mono)>);

/// A running tap and all that it put on its tape.
pub(crate) struct Tap {
    pub(crate) address: SocketAddr,
    pub(crate) hands: Arc<Hands>,
    closer: Closer,
    stop: CancellationToken,
    server: Option<JoinHandle<()>>,
    recorder: Option<JoinHandle<Recorded>>,
}

pub(crate) fn options(upstream: &str) -> HttpOptions {
    HttpOptions {
        upstream: upstream.parse().unwrap(),
        listen: "127.0.0.1:0".parse().unwrap(),
        is_open_to_network: false,
        allowed_hosts: Vec::new(),
        rewrites_origin: false,
        is_upstream_http2: false,
        extra_ca: None,
    }
}

impl Tap {
    /// A tap in front of a server on this machine.
    pub(crate) fn before(server: &TcpListener) -> Tap {
        Tap::with(options(&format!("http://{}", server.local_addr().unwrap())))
    }

    pub(crate) fn with(options: HttpOptions) -> Tap {
        let (tape, mut reader) = Tape::new(Clock::start(), TAPE_BYTES);
        let closer = reader.closer();
        let recorder = std::thread::spawn(move || {
            let (mut all, mut handed_on) = (Vec::new(), Vec::new());
            loop {
                let batch = reader.wait(LIMIT);
                all.extend(batch.items);
                handed_on.extend(batch.handed_on);
                if batch.is_end {
                    return (all, handed_on);
                }
            }
        });
        let hands = Hands::new(tape.clone(), 7);
        let orders = hands.clone();
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let (tell, told) = std::sync::mpsc::channel();
        let server = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let tracker = TaskTracker::new();
                let tap = HttpTap::bind(options, tape, hands, tracker.clone(), stopped).await.unwrap();
                tell.send(tap.address()).unwrap();
                tap.serve().await;
                tracker.close();
                tracker.wait().await;
            });
        });
        let address = told.recv_timeout(LIMIT).unwrap();
        Tap { address, hands: orders, closer, stop, server: Some(server), recorder: Some(recorder) }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        connect(self.address)
    }

    /// Stops the tap and returns what it recorded, in order.
    pub(crate) fn finish(self) -> Vec<Taped> {
        self.finish_with_tickets().0
    }

    /// The same, and the tickets of all that was handed on.
    pub(crate) fn finish_with_tickets(mut self) -> (Vec<Taped>, Vec<(Ticket, Mono)>) {
        self.stop.cancel();
        self.server.take().unwrap().join().unwrap();
        self.closer.close();
        self.recorder.take().unwrap().join().unwrap()
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.set_write_timeout(Some(LIMIT)).unwrap();
    stream
}

pub(crate) fn listen() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

/// The next connection, or a failed test.
pub(crate) fn accept(server: &TcpListener) -> TcpStream {
    server.set_nonblocking(true).unwrap();
    let stream = until("a connection at the server", || server.accept().ok()).0;
    stream.set_nonblocking(false).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.set_write_timeout(Some(LIMIT)).unwrap();
    stream
}

/// Waits for a condition, with a limit.
pub(crate) fn until<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(start.elapsed() < LIMIT, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

pub(crate) fn send(mut to: &TcpStream, bytes: impl AsRef<[u8]>) {
    to.write_all(bytes.as_ref()).unwrap();
}

/// Expects exactly these bytes next.
pub(crate) fn expect(mut from: &TcpStream, bytes: impl AsRef<[u8]>) {
    let mut got = vec![0; bytes.as_ref().len()];
    from.read_exact(&mut got).unwrap_or_else(|e| panic!("{e} instead of {:?}", text(bytes.as_ref())));
    assert_eq!(text(&got), text(bytes.as_ref()));
}

/// Expects an orderly end next.
pub(crate) fn expect_eof(mut from: &TcpStream) {
    let mut byte = [0];
    match from.read(&mut byte) {
        Ok(0) => {}
        other => panic!("{other:?} instead of the end"),
    }
}

/// Expects a reset, after whatever may still come.
pub(crate) fn expect_reset(mut from: &TcpStream) {
    let mut bytes = [0; 1024];
    loop {
        match from.read(&mut bytes) {
            Ok(1..) => {}
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return,
            other => panic!("{other:?} instead of a reset"),
        }
    }
}

/// Expects that what is written is refused soon: the other end has closed in full.
pub(crate) fn expect_refusal(mut to: &TcpStream) {
    let error = until("a refused write", || to.write_all(b"x").err());
    let kinds = [std::io::ErrorKind::BrokenPipe, std::io::ErrorKind::ConnectionReset];
    assert!(kinds.contains(&error.kind()), "{error}");
}

/// Reads a head up to its empty line.
pub(crate) fn read_head(mut from: &TcpStream) -> String {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        from.read_exact(&mut byte).unwrap_or_else(|e| panic!("{e} after {:?}", text(&head)));
        head.push(byte[0]);
    }
    text(&head)
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Ends a connection by a reset.
pub(crate) fn reset(stream: TcpStream) {
    socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
    drop(stream);
}

/// The recording in short, one word for each event, without gauges: what a test compares.
pub(crate) fn short(items: &[Taped]) -> Vec<String> {
    let number = |n: Option<u64>| n.map_or("-".to_owned(), |n| n.to_string());
    let tell = |item: &Taped| {
        let what = match &item.what {
            What::Request(head) => {
                let body = head.body.as_ref().map_or(String::new(), |b| format!(" {}", text(b)));
                format!("{} {}{body}", head.method, head.path)
            }
            What::ResponseHead { status, .. } => status.to_string(),
            What::Body(bytes) => format!("{:?} body {}", item.dir, text(bytes)),
            What::SseChunk(bytes) => format!("sse {}", text(bytes)),
            What::ClientClosed { how } => format!("client {:?}", how.unwrap()),
            What::ServerClosed { how, .. } => format!("server {:?}", how.unwrap()),
            What::Inject { what, target, .. } => format!("inject {what} {target}"),
            What::Queue(_) => return None,
            other => format!("{other:?}"),
        };
        Some(format!("{}/{} {what}", number(item.conn), number(item.stream)))
    };
    items.iter().filter_map(tell).collect()
}

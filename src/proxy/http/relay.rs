//! One HTTP/1.1 connection of a client, joined to one of the server, byte for byte.
//!
//! The two directions end apart: a client that shuts its sending side still gets its answer, and
//! a server that does so still gets the request. What ends as a reset on one side ends as a reset
//! on the other.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use super::Shared;
use super::answer::OwnAnswer;
use super::answers::Answers;
use super::dial::{Link, Speech};
use super::exchanges::Exchanges;
use super::hands::line::{CutOrder, Ending, Errand, Line, Way};
use super::lane::{self, LaneEnd, ReadBuffer, Receiver, Watch};
use super::requests::{Refused, Requests, outlives_client};
use super::translate;
use crate::event::{Close, Dir, What};
use crate::wire::http1::Asked;

/// Send buffer of a connection to a client; see the receive buffer on the other side.
const SEND_BUFFER_BYTES: usize = 256 << 10;

/// How a connection begins that speaks HTTP/2; no method is called that. // RFC 9113 §3.4
const HTTP2_MARK: &[u8] = b"PRI ";

/// After an answer of its own, the tap reads on this long, so that what a client was still
/// sending does not reset the connection and take the answer with it.
const LINGER: Duration = Duration::from_secs(1);

/// After a call was given up by order, the server is listened to this long. ours: what it says all
/// the same is worth knowing, and a server that says nothing more is not waited for.
const CANCEL_LINGER: Duration = Duration::from_secs(2);

/// How a pair of connections ended.
#[derive(Debug)]
enum PairEnd {
    /// Both sides have ended their sending.
    Orderly,
    /// The client reset, so the server gets a reset.
    ClientReset,
    /// The server reset, so the client gets a reset.
    ServerReset,
    /// The tap answers the last request itself.
    Refused(Refused),
    /// It was cut by order.
    Cut(CutOrder),
}

/// The two halves of a client's connection.
struct Client {
    from: OwnedReadHalf,
    to: OwnedWriteHalf,
}

/// Serves one connection of a client to its end.
pub(super) async fn run(shared: Arc<Shared>, down: TcpStream, conn: u64) {
    // Neither can fail on an open socket; a connection that is gone already shows at the read.
    let _ = down.set_nodelay(true);
    let _ = SockRef::from(&down).set_send_buffer_size(SEND_BUFFER_BYTES);
    let ends = down.local_addr().ok().zip(down.peer_addr().ok());
    let (from, to) = down.into_split();
    let mut client = Client { from, to };
    let first = match read_first(&mut client.from).await {
        Ok(first) if !first.is_empty() => first,
        ended => {
            let how = if ended.is_ok() { Close::Eof } else { Close::Reset };
            shared.tape.push_http(Dir::C2s, None, Some(conn), What::ClientClosed { how: Some(how) });
            return;
        }
    };
    let is_http2 = first.starts_with(HTTP2_MARK);
    if is_http2 || shared.dialer.is_http2() {
        let speech = if is_http2 { Speech::Http2 } else { Speech::Http1 };
        let from = std::io::Cursor::new(first).chain(client.from);
        translate::run(shared, tokio::io::join(from, client.to), speech, conn).await;
    } else {
        relay(shared, client, first, ends, conn).await;
    }
}

/// The first bytes of a connection, enough of them to tell HTTP/2 from all that came before it.
async fn read_first(from: &mut OwnedReadHalf) -> io::Result<Bytes> {
    let mut buffer = ReadBuffer::default();
    let mut first = buffer.read(from).await?;
    while !first.is_empty() && first.len() < HTTP2_MARK.len() && HTTP2_MARK.starts_with(&first) {
        let more = buffer.read(from).await?;
        if more.is_empty() {
            break;
        }
        first = [first, more].concat().into();
    }
    Ok(first)
}

async fn relay(
    shared: Arc<Shared>,
    client: Client,
    first: Bytes,
    ends: Option<(SocketAddr, SocketAddr)>,
    conn: u64,
) {
    let exchanges = Arc::new(Exchanges::default());
    let told = Arc::new(Line::new(conn, exchanges.clone()));
    let _known = shared.hands.begin(told.clone());
    let mut requests = Requests::new(shared.clone(), told.clone(), ends);
    let mut answers = Answers::new(shared.clone(), told.clone());
    let link = shared.dialer.connect(Speech::Http1).await;
    requests.joined(link.as_ref().ok().and_then(|(link, _)| link.local_addr()));
    let mut client = Some(client);
    let mut pair = Pair { line: &told, requests: &mut requests, answers: &mut answers };
    let end = match link {
        Ok((Link::Plain(server), _)) => {
            let (mut from, mut to) = server.into_split();
            let end = pair.run(&mut client, (&mut from, &mut to), first).await;
            close(from, to, end.resets_server());
            end
        }
        Ok((Link::Tls(server), _)) => {
            let (mut from, mut to) = tokio::io::split(*server);
            let end = pair.run(&mut client, (&mut from, &mut to), first).await;
            if end.resets_server() {
                reset(from.unsplit(to).get_ref().0);
            }
            end
        }
        Err(error) => {
            requests.refuse_all(OwnAnswer::unreachable(shared.policy.server_origin(), &error));
            let refused = match &mut client {
                Some(client) => read_refused(&mut client.from, &mut requests, first).await,
                None => None,
            };
            refused.map_or(PairEnd::Orderly, PairEnd::Refused)
        }
    };
    let Some(mut client) = client else { return };
    if let PairEnd::Refused(refused) = &end {
        refused.answer.record(&shared.tape, refused.stream, conn);
        // A client that is gone misses only the answer of the tap.
        let _ = give_answer(&mut client, refused).await;
    }
    if matches!(end, PairEnd::Cut(_)) {
        until_left(&mut client.from, &mut requests).await;
    }
    close(client.from, client.to, end.resets_client());
}

/// The server is gone by order: the client is waited for, which nobody answers any more.
async fn until_left(from: &mut OwnedReadHalf, requests: &mut Requests) {
    let mut buffer = ReadBuffer::default();
    loop {
        match buffer.read(from).await {
            Ok(chunk) if !chunk.is_empty() => drop(requests.see(chunk)),
            ended => {
                requests.ended(if ended.is_ok() { Close::Eof } else { Close::Reset });
                return;
            }
        }
    }
}

impl PairEnd {
    fn resets_server(&self) -> bool {
        match self {
            PairEnd::ClientReset => true,
            PairEnd::Cut(order) => order.server == Ending::Reset,
            _ => false,
        }
    }

    fn resets_client(&self) -> bool {
        match self {
            PairEnd::ServerReset => true,
            PairEnd::Cut(order) => order.client == Ending::Reset,
            _ => false,
        }
    }
}

/// The next connection end of this socket is a reset.
fn reset(socket: &TcpStream) {
    // Fails only on a socket that is reset already.
    let _ = SockRef::from(socket).set_linger(Some(Duration::ZERO));
}

/// Closes both halves at once, without the FIN that dropping the sending half alone would send
/// before a reset.
fn close(from: OwnedReadHalf, to: OwnedWriteHalf, as_reset: bool) {
    if as_reset {
        reset(from.as_ref());
    }
    to.forget();
    drop(from);
}

/// The watches of both directions and what they share.
struct Pair<'a> {
    line: &'a Line,
    requests: &'a mut Requests,
    answers: &'a mut Answers,
}

impl Pair<'_> {
    /// The whole life of the two joined connections, but for closing what is still there.
    async fn run<R: AsyncRead + Unpin, W: Receiver>(
        &mut self,
        client: &mut Option<Client>,
        (from, to): (&mut R, &mut W),
        first: Bytes,
    ) -> PairEnd {
        let Some(joined) = client.as_mut() else { return PairEnd::Orderly };
        let end = self.join(joined, from, to, first).await;
        if let PairEnd::Cut(order) = &end {
            if order.client != Ending::Keep
                && let Some(client) = client.take()
            {
                close(client.from, client.to, order.client == Ending::Reset);
            }
            self.finish_cut(order, from).await;
        }
        end
    }

    /// Moves bytes both ways until both directions have ended or one side was reset.
    async fn join<R: AsyncRead + Unpin, W: Receiver>(
        &mut self,
        client: &mut Client,
        server_from: &mut R,
        server_to: &mut W,
        first: Bytes,
    ) -> PairEnd {
        let mut up_end = None;
        let mut down_end = None;
        let (mut cut, mut is_kept) = (None, false);
        let exchanges = &self.line.exchanges;
        {
            let up = lane::run(&mut client.from, server_to, self.requests, first);
            let down = lane::run(server_from, &mut client.to, self.answers, Bytes::new());
            tokio::pin!(up, down);
            while cut.is_none() && !is_over(up_end.as_ref(), down_end.as_ref(), (exchanges, is_kept)) {
                // The lanes are kept over the turns of this loop, so none is cancelled here. The
                // client's comes first: what it sent before it left still reaches the server.
                tokio::select! {
                    biased;
                    end = &mut up, if up_end.is_none() => {
                        is_kept = matches!(end, LaneEnd::Eof) && outlives_client(exchanges);
                        up_end = Some(end);
                    }
                    end = &mut down, if down_end.is_none() => down_end = Some(end),
                    () = exchanges.settled.notified(), if up_end.is_some() => {}
                    order = self.line.until_cut() => cut = Some(order),
                }
            }
        }
        if let Some(order) = cut {
            self.begin_cut(&order, client, server_to).await;
            return PairEnd::Cut(order);
        }
        if is_kept && down_end.is_some() && !exchanges.is_settled() {
            // The server knows nothing of it, and still answers.
            self.listen_to(server_from).await;
            return PairEnd::Orderly;
        }
        match (up_end, down_end) {
            (Some(LaneEnd::Refused(refused)), _) => PairEnd::Refused(refused),
            (Some(LaneEnd::SenderReset), _) => PairEnd::ClientReset,
            (_, Some(LaneEnd::ReceiverGone)) => {
                self.requests.client_left(Close::Reset);
                PairEnd::ClientReset
            }
            (_, Some(LaneEnd::SenderReset)) => PairEnd::ServerReset,
            (Some(LaneEnd::ReceiverGone), _) => {
                self.answers.ended(Close::Reset);
                PairEnd::ServerReset
            }
            _ => PairEnd::Orderly,
        }
    }
}

impl Pair<'_> {
    /// Begins to do to both sides what a cut orders.
    async fn begin_cut<W: Receiver>(&mut self, order: &CutOrder, client: &mut Client, server_to: &mut W) {
        self.line.tell(Way::Up, Errand::Forget);
        self.line.tell(Way::Down, Errand::Forget);
        let last_words =
            order.last_words.as_ref().map(|(stream, text)| self.answers.last_words(*stream, text));
        if order.server == Ending::Close {
            // It may be gone already.
            let _ = server_to.shutdown().await;
        }
        if let Some(last_words) = last_words {
            // A client that takes nothing does not keep the server open.
            let _ = tokio::time::timeout(LINGER, client.to.write_all(&last_words)).await;
        }
    }

    /// Records what the server still says after a cut. The client has been closed before.
    async fn finish_cut<R: AsyncRead + Unpin>(&mut self, order: &CutOrder, from: &mut R) {
        let is_told = if order.is_cancel {
            tokio::time::timeout(CANCEL_LINGER, self.listen_to(from)).await.is_ok()
        } else if order.server == Ending::Keep {
            self.listen_to(from).await;
            true
        } else {
            false
        };
        if !is_told {
            self.answers.mute();
            self.answers.ended(if order.server == Ending::Reset { Close::Reset } else { Close::Eof });
        }
    }

    /// Records what the server says until it has answered all or ends; nothing of it passes.
    async fn listen_to<R: AsyncRead + Unpin>(&mut self, from: &mut R) {
        let mut buffer = ReadBuffer::default();
        self.answers.mute();
        while !self.line.exchanges.is_settled() {
            match buffer.read(from).await {
                Ok(chunk) if !chunk.is_empty() => drop(self.answers.see(chunk)),
                ended => {
                    self.answers.ended(if ended.is_ok() { Close::Eof } else { Close::Reset });
                    return;
                }
            }
        }
    }
}

/// Whether the pair of directions has nothing more to do.
/// `is_kept`: the end of the client is kept from the server.
fn is_over(up: Option<&LaneEnd>, down: Option<&LaneEnd>, (exchanges, is_kept): (&Exchanges, bool)) -> bool {
    match (up, down) {
        (Some(LaneEnd::SenderReset), _) | (_, Some(LaneEnd::SenderReset | LaneEnd::ReceiverGone)) => true,
        (Some(LaneEnd::Refused(_)), None) => exchanges.is_settled(),
        (Some(_), None) if is_kept => exchanges.is_settled(),
        // The server may have said something before it went: the other direction reads it.
        (up, down) => up.is_some() && down.is_some(),
    }
}

/// Reads on until the first request is whole, which no server gets.
async fn read_refused(from: &mut OwnedReadHalf, requests: &mut Requests, first: Bytes) -> Option<Refused> {
    let mut buffer = ReadBuffer::default();
    let mut chunk = first;
    loop {
        if let Some(refused) = requests.see(chunk).refused {
            return Some(refused);
        }
        match buffer.read(from).await {
            Ok(next) if !next.is_empty() => chunk = next,
            ended => {
                requests.ended(if ended.is_ok() { Close::Eof } else { Close::Reset });
                return requests.refuse_now();
            }
        }
    }
}

async fn give_answer(client: &mut Client, refused: &Refused) -> io::Result<()> {
    let wire = refused.answer.wire(refused.asked != Asked::Head);
    client.to.write_all(wire.as_bytes()).await?;
    client.to.shutdown().await?;
    let drain = async {
        let mut buffer = ReadBuffer::default();
        while !buffer.read(&mut client.from).await?.is_empty() {}
        Ok(())
    };
    tokio::time::timeout(LINGER, drain).await.unwrap_or(Ok(()))
}

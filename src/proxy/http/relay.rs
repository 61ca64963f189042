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
use super::lane::{self, LaneEnd, ReadBuffer, Receiver, Watch};
use super::requests::{Refused, Requests};
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
    mut client: Client,
    first: Bytes,
    ends: Option<(SocketAddr, SocketAddr)>,
    conn: u64,
) {
    let exchanges = Arc::new(Exchanges::default());
    let mut requests = Requests::new(shared.clone(), exchanges.clone(), conn, ends);
    let mut answers = Answers::new(shared.clone(), exchanges.clone(), conn);
    let link = shared.dialer.connect(Speech::Http1).await;
    requests.joined(link.as_ref().ok().and_then(|(link, _)| link.local_addr()));
    let pair = Pair { exchanges: &exchanges, requests: &mut requests, answers: &mut answers };
    let end = match link {
        Ok((Link::Plain(server), _)) => {
            let (mut from, mut to) = server.into_split();
            let end = pair.join(&mut client, &mut from, &mut to, first).await;
            close(from, to, matches!(end, PairEnd::ClientReset));
            end
        }
        Ok((Link::Tls(server), _)) => {
            let (mut from, mut to) = tokio::io::split(*server);
            let end = pair.join(&mut client, &mut from, &mut to, first).await;
            if matches!(end, PairEnd::ClientReset) {
                reset(from.unsplit(to).get_ref().0);
            }
            end
        }
        Err(error) => {
            requests.refuse_all(OwnAnswer::unreachable(shared.policy.server_origin(), &error));
            match read_refused(&mut client.from, &mut requests, first).await {
                Some(refused) => PairEnd::Refused(refused),
                None => PairEnd::Orderly,
            }
        }
    };
    if let PairEnd::Refused(refused) = &end {
        refused.answer.record(&shared.tape, refused.stream, conn);
        // A client that is gone misses only the answer of the tap.
        let _ = give_answer(&mut client, refused).await;
    }
    close(client.from, client.to, matches!(end, PairEnd::ServerReset));
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
    exchanges: &'a Exchanges,
    requests: &'a mut Requests,
    answers: &'a mut Answers,
}

impl Pair<'_> {
    /// Moves bytes both ways until both directions have ended or one side was reset.
    async fn join<R: AsyncRead + Unpin, W: Receiver>(
        self,
        client: &mut Client,
        server_from: &mut R,
        server_to: &mut W,
        first: Bytes,
    ) -> PairEnd {
        let mut up_end = None;
        let mut down_end = None;
        {
            let up = lane::run(&mut client.from, server_to, self.requests, first);
            let down = lane::run(server_from, &mut client.to, self.answers, Bytes::new());
            tokio::pin!(up, down);
            while !is_over(up_end.as_ref(), down_end.as_ref(), self.exchanges) {
                // The lanes are kept over the turns of this loop, so none is cancelled here. The
                // client's comes first: what it sent before it left still reaches the server.
                tokio::select! {
                    biased;
                    end = &mut up, if up_end.is_none() => up_end = Some(end),
                    end = &mut down, if down_end.is_none() => down_end = Some(end),
                    () = self.exchanges.settled.notified(), if up_end.is_some() => {}
                }
            }
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

/// Whether the pair of directions has nothing more to do.
fn is_over(up: Option<&LaneEnd>, down: Option<&LaneEnd>, exchanges: &Exchanges) -> bool {
    match (up, down) {
        (Some(LaneEnd::SenderReset), _) | (_, Some(LaneEnd::SenderReset | LaneEnd::ReceiverGone)) => true,
        (Some(LaneEnd::Refused(_)), None) => exchanges.is_settled(),
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

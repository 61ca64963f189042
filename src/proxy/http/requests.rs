//! The client's direction of a connection: requests, on their way to the tape and the server.

mod gathered;

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};

pub(super) use self::gathered::{LIMIT_BYTES, outlives_client, woken};
use super::Shared;
use super::answer::OwnAnswer;
use super::exchanges::{Exchange, Exchanges};
use super::forward::Forward;
use super::hands::Then;
use super::hands::line::{Line, Way};
use super::hands::outbox::{Entry, Outbox};
use super::lane::{Sight, Watch};
use super::policy::{HOLD_LIMIT_BYTES, Upward, Wish};
use super::{joined, peer_state};
use crate::event::tape::Ticket;
use crate::event::{Close, Dir, Headers, RequestHead, What};
use crate::wire::http1::{Asked, Decoder, Head, Part, Piece, Side, Start};

/// A request that the tap answers itself.
#[derive(Debug)]
pub(super) struct Refused {
    /// Number of its exchange.
    pub(super) stream: u64,
    /// What it asked for.
    pub(super) asked: Asked,
    /// What to answer.
    pub(super) answer: OwnAnswer,
}

/// Watches the requests of one connection.
#[derive(Debug)]
pub(super) struct Requests {
    shared: Arc<Shared>,
    exchanges: Arc<Exchanges>,
    conn: u64,
    /// Our address and the client's.
    ends: Option<(SocketAddr, SocketAddr)>,
    /// Our address on the connection to the server.
    local: Option<SocketAddr>,
    decoder: Decoder,
    /// The request that is being read.
    stream: Option<u64>,
    /// Its head, until the end of the read shows whether its whole body came with it.
    head: Option<RequestHead>,
    /// Pieces of its body in this read.
    body: Vec<Bytes>,
    /// Places on the tape of what has not been handed on yet.
    tickets: Vec<Ticket>,
    /// Beginning of a head that may change and so waits until it is whole.
    held: BytesMut,
    /// Nothing passes: every request is answered with this.
    refuses_all: Option<OwnAnswer>,
    refused: Option<Refused>,
    /// Body bytes of the refused request that were taken.
    refused_bytes: usize,
    left: Option<Close>,
    line: Arc<Line>,
    /// There was an order, so messages are known before they pass.
    is_active: bool,
    /// Whether the beginning of a head that is being read was held; `None`: none is being read.
    head_is_held: Option<bool>,
    /// A request that is waited for until it is whole.
    gathered: Option<gathered::Gathered>,
    /// What waits to pass.
    outbox: Outbox,
    /// Places on the tape of what is being written on.
    out: Vec<Ticket>,
    /// What is done when that has passed.
    then: Vec<Then>,
    /// The server is to be told that nothing more comes.
    is_ending: bool,
    /// Requests that never pass and that nobody answered.
    dropped: Vec<u64>,
    /// Until when each rule that delays holds back the next.
    delays: Vec<(u64, crate::time::Mono)>,
}

impl Requests {
    pub(super) fn new(
        shared: Arc<Shared>,
        line: Arc<Line>,
        ends: Option<(SocketAddr, SocketAddr)>,
    ) -> Requests {
        Requests {
            shared,
            exchanges: line.exchanges.clone(),
            conn: line.conn,
            ends,
            local: None,
            decoder: Decoder::new(Side::Requests),
            stream: None,
            head: None,
            body: Vec::new(),
            tickets: Vec::new(),
            held: BytesMut::new(),
            refuses_all: None,
            refused: None,
            refused_bytes: 0,
            left: None,
            line,
            is_active: false,
            head_is_held: None,
            gathered: None,
            outbox: Outbox::strict(),
            out: Vec::new(),
            then: Vec::new(),
            is_ending: false,
            dropped: Vec::new(),
            delays: Vec::new(),
        }
    }

    /// The connection to the server stands; `local` is our address on it.
    pub(super) fn joined(&mut self, local: Option<SocketAddr>) {
        self.local = local;
    }

    /// From now on no request passes.
    pub(super) fn refuse_all(&mut self, answer: OwnAnswer) {
        self.refuses_all = Some(answer);
    }

    /// The client left in this manner. Told once, but a reset also after a half-close.
    pub(super) fn client_left(&mut self, how: Close) {
        if matches!(self.left, Some(Close::Eof | Close::Reset)) {
            return;
        }
        self.left = Some(how);
        let what = || What::ClientClosed { how: Some(how) };
        let mut streams = self.exchanges.streams();
        streams.extend(&self.dropped);
        if streams.is_empty() {
            self.shared.tape.push_http(Dir::C2s, None, Some(self.conn), what());
        }
        for stream in streams {
            self.shared.tape.push_http(Dir::C2s, Some(stream), Some(self.conn), what());
        }
    }

    fn push(&mut self, what: What) {
        let ticket = self.shared.tape.push_http(Dir::C2s, self.stream, Some(self.conn), what);
        self.tickets.push(ticket);
    }

    /// Puts what is known of the current request on the tape.
    fn tell(&mut self, is_complete: bool) {
        let body = joined(&mut self.body);
        match self.head.take() {
            Some(mut head) if is_complete => {
                if let (Some(stream), Some(text)) = (self.stream, &body) {
                    self.exchanges.note(stream, |exchange| exchange.text = Some(text.clone()));
                }
                head.body = body;
                self.push(What::Request(head));
            }
            Some(head) => {
                self.push(What::Request(head));
                if let Some(body) = body {
                    self.push(What::Body(body));
                }
            }
            None => {
                if let Some(body) = body {
                    self.push(What::Body(body));
                }
            }
        }
    }

    /// A head is whole. Returns what to write on for it; `None`: the request does not pass.
    fn begin(&mut self, head: &Head, raw: Bytes) -> Option<Bytes> {
        self.tell(false);
        let stream = self.shared.next_stream();
        self.stream = Some(stream);
        let Start::Request { method, target } = &head.start else { unreachable!("this side reads requests") };
        let asked = Asked::from_method(method);
        self.head = Some(RequestHead {
            method: method.clone(),
            path: target.clone(),
            headers: Headers(head.fields.clone()),
            body: None,
        });
        let upward = match &self.refuses_all {
            Some(answer) => Upward::Refuse(answer.clone()),
            None => self.shared.policy.request(head),
        };
        let raw = match upward {
            Upward::Pass => raw,
            Upward::Head(edited) => edited,
            Upward::Refuse(answer) => {
                self.refused = Some(Refused { stream, asked, answer });
                // A client that waits for leave to send its body gets the answer instead.
                self.refused_bytes = if head.get("expect").is_some() { usize::MAX } else { 0 };
                return None;
            }
        };
        if let Some(local) = self.local {
            self.shared.callers.note(local, stream, self.conn);
        }
        let wish = self.shared.policy.wish(head);
        let own_origin =
            if wish == Wish::Nothing { String::new() } else { self.shared.policy.own_origin(head) };
        self.exchanges.begin(Exchange {
            stream,
            asked,
            wish,
            own_origin,
            head: if self.head_is_held == Some(false) { head.raw.clone() } else { raw.clone() },
            text: None,
            on_answer: Vec::new(),
            is_streaming: false,
        });
        Some(raw)
    }

    /// What to write on for one piece; `None`: it is the first of a refused request.
    fn take(&mut self, piece: Piece) -> Option<Bytes> {
        let raw = piece.raw;
        match piece.part {
            Part::HeadStart => {
                let is_held =
                    self.shared.policy.edits_requests() || self.refuses_all.is_some() || self.is_active;
                if *self.head_is_held.get_or_insert(is_held) {
                    self.held.extend_from_slice(&raw);
                    return Some(Bytes::new());
                }
            }
            Part::Framing => return Some(self.gather(raw, None)),
            Part::Head(head) => {
                // A head that was held is written on from `head`.
                self.held.clear();
                let raw = if self.head_is_held == Some(true) { head.raw.clone() } else { raw };
                let passes = self.begin(&head, raw);
                let is_whole = self.head_is_held.take() != Some(false);
                return passes.map(|passes| self.wait_for_body(&head, passes, is_whole));
            }
            Part::Data(data) => {
                self.body.push(data.clone());
                return Some(self.gather(raw, Some(&data)));
            }
            Part::End => {
                self.tell(true);
                let passes = self.gathered_whole(raw);
                self.stream = None;
                return Some(passes);
            }
            Part::Opaque(data) => return self.take_opaque(data, raw),
        }
        Some(raw)
    }

    /// Bytes of a tunnel, or bytes that are not HTTP/1.x, which pass unless the tap has to judge
    /// each request.
    fn take_opaque(&mut self, data: Bytes, raw: Bytes) -> Option<Bytes> {
        self.tell(false);
        self.stream = self.exchanges.oldest().map(|e| e.stream);
        let is_judged = self.shared.policy.edits_requests() && !self.exchanges.is_tunnel();
        let answer = self.refuses_all.clone().or_else(|| is_judged.then(OwnAnswer::unreadable));
        if answer.is_some() {
            self.stream = Some(self.shared.next_stream());
        }
        self.push(What::Body(data));
        let Some(answer) = answer else { return Some(raw) };
        let stream = self.stream.unwrap_or_default();
        self.refused = Some(Refused { stream, asked: Asked::Other, answer });
        self.refused_bytes = usize::MAX;
        None
    }

    /// The head that is being read will not be completed: what came of it goes on the tape as it
    /// is. Returns what of it has not been written on.
    fn give_up_head(&mut self) -> Bytes {
        let begun = self.decoder.take_unfinished_head();
        if !begun.is_empty() {
            self.push(What::Body(begun));
        }
        self.head_is_held = None;
        std::mem::take(&mut self.held).freeze()
    }

    /// What passes of a piece: at once, or behind what waits.
    fn pass(&mut self, forward: &mut Forward, raw_len: usize, passes: Bytes) {
        if !self.is_active {
            forward.push(raw_len, &passes);
        } else if !passes.is_empty() {
            self.outbox.push(Entry::raw(self.stream, passes));
        }
    }

    /// The request that is being refused, whether all of it has come or not.
    pub(super) fn refuse_now(&mut self) -> Option<Refused> {
        self.tell(false);
        self.tickets.clear();
        self.refused.take()
    }

    /// Takes the rest of a refused request, so that it is on the tape whole.
    fn take_refused(&mut self, rest: &mut Bytes) -> Option<Refused> {
        let mut is_complete = self.refused_bytes > HOLD_LIMIT_BYTES;
        while !is_complete && let Some(piece) = self.decoder.next(rest, Asked::Other) {
            self.refused_bytes += piece.raw.len();
            match piece.part {
                Part::Data(data) => self.body.push(data),
                Part::End => is_complete = true,
                _ => {}
            }
        }
        is_complete |= self.refused_bytes > HOLD_LIMIT_BYTES;
        if !is_complete {
            return None;
        }
        self.tell(true);
        self.tickets.clear();
        self.refused.take()
    }
}

impl Watch for Requests {
    fn see(&mut self, chunk: Bytes) -> Sight {
        self.is_active |= self.shared.hands.is_active();
        let mut rest = chunk.clone();
        let mut forward = Forward::new(chunk);
        if self.exchanges.is_tunnel() && !self.decoder.is_opaque() {
            // A client may speak in the tunnel before it knows that there is one.
            self.stream = self.exchanges.oldest().map(|e| e.stream);
            let held = self.give_up_head();
            self.decoder.become_tunnel();
            self.pass(&mut forward, 0, held);
        }
        while self.refused.is_none()
            && let Some(piece) = self.decoder.next(&mut rest, Asked::Other)
        {
            let raw_len = piece.raw.len();
            let passes = self.take(piece).unwrap_or_default();
            self.pass(&mut forward, raw_len, passes);
        }
        if self.refused.is_some() {
            let forward = if self.is_active { self.flush() } else { forward.finish() };
            return Sight { forward, refused: self.take_refused(&mut rest), ends: false };
        }
        if self.gathered.is_none() {
            self.tell(false);
        }
        if !self.is_active {
            return Sight { forward: forward.finish(), refused: None, ends: false };
        }
        let tickets = std::mem::take(&mut self.tickets);
        if let Some(last) = self.outbox.last() {
            last.tickets.extend(tickets);
        }
        self.advance()
    }

    fn passed(&mut self) {
        for ticket in self.tickets.drain(..).chain(self.out.drain(..)) {
            self.shared.tape.handed_on(ticket);
        }
    }

    /// A server that takes no more is seen in the gauge of its own answers only.
    fn is_blocked(&mut self, _waiting_bytes: usize) {}

    fn ended(&mut self, how: Close) -> Bytes {
        let unsent = self.give_up_gathering();
        self.tell(false);
        let held = [unsent, self.give_up_head()].concat();
        let how = match (how, self.ends) {
            (Close::Eof, Some((local, peer))) => peer_state::of_fin(local, peer),
            (how, _) => how,
        };
        self.client_left(how);
        if how != Close::HalfClose {
            self.forget();
        }
        if self.is_active && !held.is_empty() {
            self.outbox.push(Entry::raw(self.stream, held.into()));
            return Bytes::new();
        }
        held.into()
    }

    fn takes_more(&self) -> bool {
        self.outbox.len_bytes() < LIMIT_BYTES
    }

    async fn woken(&self) {
        woken(&self.shared, &self.line, Way::Up, self.outbox.next_due()).await;
    }

    fn advance(&mut self) -> Sight {
        let forward = self.flush();
        let refused = if self.is_active { self.refused.take() } else { None };
        Sight { forward, refused, ends: std::mem::take(&mut self.is_ending) }
    }

    fn done(&mut self) {
        for then in self.then.drain(..) {
            self.shared.hands.then(&self.line, then);
        }
    }

    fn is_drained(&self) -> bool {
        self.outbox.is_empty()
    }

    fn keeps_end(&self) -> bool {
        outlives_client(&self.exchanges)
    }
}

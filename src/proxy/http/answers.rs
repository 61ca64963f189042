//! The server's direction of a connection: answers, on their way to the tape and the client.

mod known;

use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use self::known::Known;
use super::exchanges::{Exchange, Exchanges};
use super::forward::Forward;
use super::gauge::Gauge;
use super::hands::line::{Line, Way};
use super::lane::{Sight, Watch};
use super::origin::{self, Beginning, Rewrite};
use super::policy::{Downward, HOLD_LIMIT_BYTES, Policy, is_event_stream, rewrite_event};
use super::requests::{LIMIT_BYTES, woken};
use super::{Shared, heads, joined};
use crate::event::tape::Ticket;
use crate::event::{Close, Dir, Headers, What};
use crate::wire::http1::{Decoder, Head, Part, Piece, Side, Start};

/// What is being done to the body that is being read.
#[derive(Debug)]
enum Treatment {
    /// It passes as it is.
    Pass,
    /// Its first event is waited for.
    FirstEvent { raw: BytesMut, data: BytesMut },
    /// It passes in chunks of ours, because its own no longer fit.
    OwnChunks,
    /// All of it is waited for, behind its head.
    Whole { head: Bytes, raw: BytesMut, data: BytesMut },
    /// It is cut into events, each of which is known before it passes.
    Events,
    /// It is one message, which is known before its head passes.
    Message { head: Bytes, raw: BytesMut, data: BytesMut },
    /// Nothing of it passes: something else has taken its place.
    Replaced,
}

/// Watches the answers of one connection.
#[derive(Debug)]
pub(super) struct Answers {
    shared: Arc<Shared>,
    exchanges: Arc<Exchanges>,
    conn: u64,
    decoder: Decoder,
    /// The exchange whose answer is being read, or comes next.
    exchange: Option<Exchange>,
    /// The exchange that the bytes being written on belong to; it may be complete already.
    written: Option<u64>,
    /// Whether the head of that answer has been read.
    is_begun: bool,
    is_event_stream: bool,
    is_chunked: bool,
    treatment: Treatment,
    body: Vec<Bytes>,
    tickets: Vec<Ticket>,
    gauge: Gauge,
    /// Whether the beginning of a head that is being read was held; `None`: none is being read.
    head_is_held: Option<bool>,
    /// What is known and done after the first order.
    known: Known,
}

impl Answers {
    pub(super) fn new(shared: Arc<Shared>, line: Arc<Line>) -> Answers {
        Answers {
            shared,
            exchanges: line.exchanges.clone(),
            conn: line.conn,
            head_is_held: None,
            known: Known::new(line),
            decoder: Decoder::new(Side::Answers),
            exchange: None,
            written: None,
            is_begun: false,
            is_event_stream: false,
            is_chunked: false,
            treatment: Treatment::Pass,
            body: Vec::new(),
            tickets: Vec::new(),
            gauge: Gauge::default(),
        }
    }

    fn push(&mut self, what: What) {
        let stream = self.exchange.as_ref().map(|e| e.stream);
        let ticket = self.shared.tape.push_http(Dir::S2c, stream, Some(self.conn), what);
        self.tickets.push(ticket);
        self.written = stream;
    }

    /// Puts the bytes of the body in this read on the tape.
    fn tell(&mut self) {
        if let Some(body) = joined(&mut self.body) {
            self.push(if self.is_event_stream { What::SseChunk(body) } else { What::Body(body) });
        }
    }

    fn tell_rewrite(&self, target: &str, rewrite: &Rewrite) {
        let stream = self.exchange.as_ref().map(|e| e.stream);
        self.shared.tape.push_http(Dir::Tap, stream, Some(self.conn), rewrite_event(target, rewrite));
    }

    /// A head is whole. Returns what to write on for it.
    fn begin(&mut self, head: &Head, raw: Bytes) -> Bytes {
        self.tell();
        let Start::Answer { status } = head.start else { unreachable!("this side reads answers") };
        self.is_event_stream = is_event_stream(head.get("content-type"));
        self.is_chunked = head.get("transfer-encoding").is_some();
        self.push(What::ResponseHead { status, headers: Headers(head.fields.clone()) });
        // A head that may change was held, and is written on whole.
        let was_held = self.head_is_held.take();
        let raw = if was_held == Some(true) { head.raw.clone() } else { raw };
        if head.is_interim() {
            return raw;
        }
        self.is_begun = true;
        let is_plain = head.get("content-encoding").is_none_or(|v| v.eq_ignore_ascii_case("identity"));
        let can_cut = self.is_event_stream && is_plain && head.get("content-length").is_none();
        self.known.begin(status, self.exchange.as_ref(), can_cut);
        let Some(exchange) = &self.exchange else { return raw };
        if self.is_event_stream {
            self.exchanges.note(exchange.stream, |exchange| exchange.is_streaming = true);
        }
        match Policy::answer(exchange.wish, head) {
            Downward::Pass => {}
            Downward::FirstEvent => {
                self.treatment = Treatment::FirstEvent { raw: BytesMut::new(), data: BytesMut::new() };
            }
            Downward::Whole => {
                let (raw, data) = (BytesMut::new(), BytesMut::new());
                self.treatment = Treatment::Whole { head: head.raw.clone(), raw, data };
                return Bytes::new();
            }
        }
        let raw = match self.shared.policy.answer_head(head, &exchange.own_origin) {
            Some((edited, rewrite)) => {
                self.tell_rewrite("resource_metadata of www-authenticate", &rewrite);
                edited
            }
            None => raw,
        };
        if self.known.is_active && was_held != Some(false) { self.begin_known(head, raw) } else { raw }
    }

    /// The answer is complete.
    fn end(&mut self) {
        self.tell();
        self.end_known();
        self.exchanges.end_oldest();
        self.exchange = self.exchanges.oldest();
        self.is_begun = false;
        self.is_event_stream = false;
    }

    /// What to write on for one piece.
    fn take(&mut self, piece: Piece) -> Bytes {
        let raw = piece.raw;
        match piece.part {
            Part::HeadStart => {
                // The whole head comes again with its last piece.
                let is_held = self.shared.policy.edits_answer_heads() || self.known.is_active;
                if *self.head_is_held.get_or_insert(is_held) { Bytes::new() } else { raw }
            }
            Part::Head(head) => self.begin(&head, raw),
            Part::Data(data) => {
                self.body.push(data.clone());
                self.treat(raw, &data)
            }
            Part::Framing => self.treat(raw, &[]),
            Part::End => {
                let out = self.treat_end(raw);
                self.end();
                out
            }
            Part::Opaque(data) => {
                self.tell();
                self.push(What::Body(data.clone()));
                // A head that turned out not to be one was held, and comes again whole.
                if self.head_is_held.take() == Some(true) { data } else { raw }
            }
        }
    }

    /// What to write on for bytes of a body, `data`, or of its framing.
    fn treat(&mut self, raw_piece: Bytes, data_piece: &[u8]) -> Bytes {
        match &mut self.treatment {
            Treatment::Pass => raw_piece,
            Treatment::Replaced => Bytes::new(),
            Treatment::Events => {
                self.cut_events(data_piece);
                Bytes::new()
            }
            Treatment::Message { raw, data, .. } => {
                raw.extend_from_slice(&raw_piece);
                data.extend_from_slice(data_piece);
                if data.len() > LIMIT_BYTES { self.give_up_holding() } else { Bytes::new() }
            }
            Treatment::OwnChunks => own_chunk(data_piece, self.is_chunked),
            Treatment::FirstEvent { raw, data } => {
                raw.extend_from_slice(&raw_piece);
                data.extend_from_slice(data_piece);
                self.look_at_first_event()
            }
            Treatment::Whole { raw, data, .. } => {
                raw.extend_from_slice(&raw_piece);
                data.extend_from_slice(data_piece);
                if data.len() > HOLD_LIMIT_BYTES { self.give_up_holding() } else { Bytes::new() }
            }
        }
    }

    fn look_at_first_event(&mut self) -> Bytes {
        let Treatment::FirstEvent { raw, data } = &mut self.treatment else { return Bytes::new() };
        let shared = self.shared.clone();
        let server_origin = shared.policy.server_origin();
        match origin::look_at_beginning(data, server_origin) {
            Beginning::Incomplete if data.len() <= HOLD_LIMIT_BYTES => Bytes::new(),
            // Chunks of ours can only begin where one of the server's has ended.
            Beginning::Comments if !self.decoder.is_between_chunks() => Bytes::new(),
            Beginning::Comments => {
                data.clear();
                raw.split().freeze()
            }
            Beginning::Incomplete | Beginning::Other => self.give_up_holding(),
            Beginning::Endpoint(place) => {
                let own_origin = self.exchange.as_ref().map_or("", |e| e.own_origin.as_str());
                let (data, rewrite) = origin::rewrite_url_at(data, place, server_origin, own_origin);
                self.treatment = Treatment::OwnChunks;
                self.tell();
                self.tell_rewrite("url of the endpoint event", &rewrite);
                own_chunk(&data, self.is_chunked)
            }
        }
    }

    /// What was held passes as it came, and so does all that follows.
    fn give_up_holding(&mut self) -> Bytes {
        match std::mem::replace(&mut self.treatment, Treatment::Pass) {
            Treatment::FirstEvent { raw, .. } => raw.freeze(),
            Treatment::Whole { head, raw, .. } | Treatment::Message { head, raw, .. } => {
                [head, raw.freeze()].concat().into()
            }
            Treatment::Events => self.known.unfinished(),
            Treatment::Pass | Treatment::OwnChunks | Treatment::Replaced => Bytes::new(),
        }
    }

    /// What to write on at the end of a body; `raw` are the last bytes of its framing.
    fn treat_end(&mut self, raw: Bytes) -> Bytes {
        match std::mem::replace(&mut self.treatment, Treatment::Pass) {
            Treatment::Pass => raw,
            Treatment::Events => {
                self.finish_events();
                Bytes::new()
            }
            Treatment::Message { head, raw: mut held, data } => {
                held.extend_from_slice(&raw);
                self.pass_answer(head, &held.freeze(), &data.freeze());
                Bytes::new()
            }
            Treatment::OwnChunks if self.is_chunked => Bytes::from_static(b"0\r\n\r\n"),
            Treatment::OwnChunks | Treatment::Replaced => Bytes::new(),
            Treatment::FirstEvent { raw: mut held, .. } => {
                held.extend_from_slice(&raw);
                held.freeze()
            }
            Treatment::Whole { head, raw: mut held, data } => {
                let own_origin = self.exchange.as_ref().map_or("", |e| e.own_origin.as_str());
                let server_origin = self.shared.policy.server_origin();
                if let Some((body, rewrite)) = origin::rewrite_resource(&data, server_origin, own_origin) {
                    self.tell();
                    self.tell_rewrite("resource of the protected-resource metadata", &rewrite);
                    return [heads::set_length(&head, body.len()), body].concat().into();
                }
                held.extend_from_slice(&raw);
                [head, held.freeze()].concat().into()
            }
        }
    }
}

/// One chunk, or the bytes alone where the end of the connection ends the body.
fn own_chunk(data: &[u8], is_chunked: bool) -> Bytes {
    if data.is_empty() || !is_chunked {
        return Bytes::copy_from_slice(data);
    }
    let size = format!("{:x}\r\n", data.len());
    [size.as_bytes(), data, b"\r\n"].concat().into()
}

impl Watch for Answers {
    fn see(&mut self, chunk: Bytes) -> Sight {
        self.known.is_active |= self.shared.hands.is_active();
        if !self.is_begun {
            self.exchange = self.exchanges.oldest();
        }
        self.begin_to_cut();
        let mut rest = chunk.clone();
        let mut forward = Forward::new(chunk);
        loop {
            let asked = self.exchange.as_ref().map(|e| e.asked).unwrap_or_default();
            let Some(piece) = self.decoder.next(&mut rest, asked) else { break };
            let raw_len = piece.raw.len();
            let passes = self.take(piece);
            self.pass(&mut forward, raw_len, passes);
        }
        self.tell();
        if self.decoder.is_opaque() {
            self.exchanges.become_tunnel();
        }
        if !self.known.is_active {
            return Sight { forward: forward.finish(), refused: None, ends: false };
        }
        let tickets = std::mem::take(&mut self.tickets);
        self.known.attach(tickets);
        self.advance()
    }

    fn passed(&mut self) {
        for ticket in self.tickets.drain(..).chain(self.known.passed()) {
            self.shared.tape.handed_on(ticket);
        }
        self.gauge.release(&self.shared.tape, self.conn);
    }

    fn is_blocked(&mut self, waiting_bytes: usize) {
        self.gauge.block(&self.shared.tape, self.conn, self.written, waiting_bytes);
    }

    fn ended(&mut self, how: Close) -> Bytes {
        let mut held = self.give_up_holding();
        let begun = self.decoder.take_unfinished_head();
        if !begun.is_empty() {
            self.push(What::Body(begun.clone()));
            if self.head_is_held.take() == Some(true) {
                held = begun;
            }
        }
        if self.decoder.finish() && how == Close::Eof {
            self.end();
        }
        let what = || What::ServerClosed { how: Some(how), exit_code: None, signal: None };
        let streams = self.exchanges.streams();
        if streams.is_empty() {
            self.shared.tape.push_http(Dir::S2c, None, Some(self.conn), what());
        }
        for stream in streams {
            self.shared.tape.push_http(Dir::S2c, Some(stream), Some(self.conn), what());
        }
        self.held_to_pass(held)
    }

    fn takes_more(&self) -> bool {
        self.known.waiting_bytes() < LIMIT_BYTES
    }

    async fn woken(&self) {
        woken(&self.shared, &self.known.line, Way::Down, self.known.next_due()).await;
    }

    fn advance(&mut self) -> Sight {
        Sight { forward: self.flush(), refused: None, ends: false }
    }

    fn done(&mut self) {
        for then in self.known.done() {
            self.shared.hands.then(&self.known.line, then);
        }
    }

    fn is_drained(&self) -> bool {
        self.known.is_drained()
    }

    fn keeps_end(&self) -> bool {
        false
    }
}

//! HTTP/1.x as it passes: messages cut into pieces, while every byte stays in its place.
//!
//! The pieces of one connection direction, put one after another, are exactly the bytes that were
//! given: whoever forwards may forward the pieces, or the bytes without waiting for the pieces.
//! Nothing is refused here. What cannot be read as HTTP/1.x becomes `Part::Opaque` to the end.
//!
//! Source: RFC 9112 (framing, §6; chunked, §7.1), read the way a lenient peer would.

use bytes::{Bytes, BytesMut};

/// Longest head that is looked for; what is longer is opaque.
pub const HEAD_LIMIT_BYTES: usize = 256 << 10;

/// Longest line of chunk framing (size and extensions) or trailers that is looked for.
const FRAMING_LIMIT_BYTES: usize = 64 << 10;

/// Which of the two kinds of messages comes on this direction of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Requests.
    Requests,
    /// Answers.
    Answers,
}

/// What was asked, as far as it decides whether the answer has a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Asked {
    /// Any method but the two below.
    #[default]
    Other,
    /// `HEAD`: the answer has no body, whatever its fields say.
    Head,
    /// `CONNECT`: a 2xx answer turns the connection into a tunnel.
    Connect,
}

impl Asked {
    /// What a request with this method asks for.
    #[must_use]
    pub fn from_method(method: &str) -> Asked {
        match method {
            "HEAD" => Asked::Head,
            "CONNECT" => Asked::Connect,
            _ => Asked::Other,
        }
    }
}

/// The first line of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// Of a request.
    Request {
        /// Method, such as `POST`.
        method: String,
        /// Target as sent.
        target: String,
    },
    /// Of an answer.
    Answer {
        /// Status code.
        status: u16,
    },
}

/// The head of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The first line.
    pub start: Start,
    /// The last digit of the version: 1 in `HTTP/1.1`.
    pub minor: u8,
    /// Fields in the order sent, names in the case sent, values without the blanks around them
    /// (bytes outside UTF-8 replaced).
    pub fields: Vec<(String, String)>,
    /// The whole head as sent, with the empty line that ends it.
    pub raw: Bytes,
}

impl Head {
    /// The first value of a field; names compare without case.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
    }

    /// All values of a field, in order.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.fields.iter().filter(move |(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
    }

    /// An answer that only announces another one (1xx, but not the switch of protocols).
    #[must_use]
    pub fn is_interim(&self) -> bool {
        matches!(self.start, Start::Answer { status } if (100..200).contains(&status) && status != 101)
    }
}

/// What a piece means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// A beginning of a head that is not complete yet.
    HeadStart,
    /// The last bytes of a head, which is now known whole.
    Head(Box<Head>),
    /// Bytes of the body.
    Data(Bytes),
    /// Chunk sizes, their line ends and trailers: bytes that are neither head nor body.
    Framing,
    /// The message is complete.
    End,
    /// Bytes of a tunnel, or bytes that are not HTTP/1.x; at the turn, what was taken for the
    /// beginning of a head is told again.
    Opaque(Bytes),
}

/// A run of bytes and its meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The bytes as they passed; empty where only a meaning is told.
    pub raw: Bytes,
    /// What they mean.
    pub part: Part,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Head,
    Sized(u64),
    ChunkSize,
    Chunk(u64),
    ChunkEnd,
    Trailers,
    Complete,
    UntilClose,
    Opaque,
}

/// Cuts one direction of a connection into pieces; any chunking gives the same messages.
#[derive(Debug)]
pub struct Decoder {
    side: Side,
    state: State,
    /// The line or head that is not complete yet; its bytes have been given out already.
    partial: BytesMut,
}

impl Decoder {
    /// A decoder at the beginning of a connection.
    #[must_use]
    pub fn new(side: Side) -> Decoder {
        Decoder { side, state: State::Head, partial: BytesMut::new() }
    }

    /// From here on the connection is a tunnel.
    pub fn become_tunnel(&mut self) {
        self.state = State::Opaque;
    }

    /// Whether nothing but opaque bytes will come.
    #[must_use]
    pub fn is_opaque(&self) -> bool {
        self.state == State::Opaque
    }

    /// Whether no chunk is cut here: framing of another kind may go on from this place.
    #[must_use]
    pub fn is_between_chunks(&self) -> bool {
        match self.state {
            State::ChunkSize => self.partial.is_empty(),
            state => !matches!(state, State::Chunk(_) | State::ChunkEnd | State::Trailers),
        }
    }

    /// What came of a head that will not be completed, because the connection ends or becomes a
    /// tunnel here; empty where no head was begun.
    pub fn take_unfinished_head(&mut self) -> Bytes {
        match self.state {
            State::Head => std::mem::take(&mut self.partial).freeze(),
            _ => Bytes::new(),
        }
    }

    /// The connection ended here. `true`: that was the proper end of a message whose length only
    /// the end of the connection tells.
    pub fn finish(&mut self) -> bool {
        std::mem::replace(&mut self.state, State::Opaque) == State::UntilClose
    }

    /// Takes the next piece off the front of `chunk`; `None` when all of it is taken. `asked` is
    /// what the answer at this place answers to; it does not matter for requests.
    pub fn next(&mut self, chunk: &mut Bytes, asked: Asked) -> Option<Piece> {
        if self.state == State::Complete {
            self.state = State::Head;
            return Some(Piece { raw: Bytes::new(), part: Part::End });
        }
        if chunk.is_empty() {
            return None;
        }
        Some(match self.state {
            State::Head => self.head(chunk, asked),
            State::Sized(left) => {
                let (data, left) = take(chunk, left);
                self.state = if left == 0 { State::Complete } else { State::Sized(left) };
                data_piece(data)
            }
            State::Chunk(left) => {
                let (data, left) = take(chunk, left);
                self.state = if left == 0 { State::ChunkEnd } else { State::Chunk(left) };
                data_piece(data)
            }
            State::ChunkSize | State::ChunkEnd | State::Trailers => self.framing(chunk),
            State::UntilClose => data_piece(std::mem::take(chunk)),
            State::Opaque | State::Complete => opaque_piece(std::mem::take(chunk)),
        })
    }

    fn head(&mut self, chunk: &mut Bytes, asked: Asked) -> Piece {
        if self.partial.is_empty() {
            // A peer may send an empty line before a message (RFC 9112 §2.2).
            let blank = chunk.iter().take_while(|b| matches!(b, b'\r' | b'\n')).count();
            if blank > 0 {
                return Piece { raw: chunk.split_to(blank), part: Part::Framing };
            }
            if let Some(len) = head_len(chunk, 0) {
                let raw = chunk.split_to(len);
                return self.head_read(raw.clone(), raw, asked);
            }
        }
        let before = self.partial.len();
        self.partial.extend_from_slice(chunk);
        // The end may have begun up to three bytes back.
        match head_len(&self.partial, before.saturating_sub(3)) {
            Some(len) => {
                let whole = std::mem::take(&mut self.partial).freeze().slice(..len);
                let raw = chunk.split_to(len - before);
                self.head_read(raw, whole, asked)
            }
            None if self.partial.len() > HEAD_LIMIT_BYTES => {
                self.state = State::Opaque;
                let whole = std::mem::take(&mut self.partial).freeze();
                Piece { raw: std::mem::take(chunk), part: Part::Opaque(whole) }
            }
            None => Piece { raw: std::mem::take(chunk), part: Part::HeadStart },
        }
    }

    /// `raw`: the bytes to give out now; `whole`: the head from its first byte.
    fn head_read(&mut self, raw: Bytes, whole: Bytes, asked: Asked) -> Piece {
        let Some(head) = parse_head(self.side, whole.clone()) else {
            self.state = State::Opaque;
            return Piece { raw, part: Part::Opaque(whole) };
        };
        self.state = state_after(&head, asked);
        Piece { raw, part: Part::Head(Box::new(head)) }
    }

    /// One line of chunk framing, or as much of it as is there.
    fn framing(&mut self, chunk: &mut Bytes) -> Piece {
        let Some(at) = memchr::memchr(b'\n', chunk) else {
            self.partial.extend_from_slice(chunk);
            if self.partial.len() > FRAMING_LIMIT_BYTES {
                self.state = State::Opaque;
            }
            return Piece { raw: std::mem::take(chunk), part: Part::Framing };
        };
        let raw = chunk.split_to(at + 1);
        let next = if self.partial.is_empty() {
            after_line(self.state, &raw)
        } else {
            self.partial.extend_from_slice(&raw);
            after_line(self.state, &std::mem::take(&mut self.partial))
        };
        self.state = next;
        if next == State::Complete {
            self.state = State::Head;
            return Piece { raw, part: Part::End };
        }
        Piece { raw, part: Part::Framing }
    }
}

fn data_piece(data: Bytes) -> Piece {
    Piece { raw: data.clone(), part: Part::Data(data) }
}

fn opaque_piece(data: Bytes) -> Piece {
    Piece { raw: data.clone(), part: Part::Opaque(data) }
}

/// Up to `left` bytes off the front, and how many are still to come after them.
fn take(chunk: &mut Bytes, left: u64) -> (Bytes, u64) {
    let here = usize::try_from(left).map_or(chunk.len(), |left| left.min(chunk.len()));
    (chunk.split_to(here), left - here as u64)
}

/// Length of the head with its empty line, when it is there; the search begins at `from`.
fn head_len(bytes: &[u8], from: usize) -> Option<usize> {
    let mut rest = from;
    while let Some(at) = memchr::memchr(b'\n', bytes.get(rest..)?) {
        let after = rest + at + 1;
        match bytes.get(after..) {
            Some([b'\n', ..]) => return Some(after + 1),
            Some([b'\r', b'\n', ..]) => return Some(after + 2),
            _ => rest = after,
        }
    }
    None
}

/// What follows a line of chunk framing.
fn after_line(state: State, line: &[u8]) -> State {
    let text = line.trim_ascii();
    match state {
        State::ChunkEnd => {
            if text.is_empty() {
                State::ChunkSize
            } else {
                State::Opaque
            }
        }
        State::Trailers => {
            if text.is_empty() {
                State::Complete
            } else {
                State::Trailers
            }
        }
        _ => {
            let size = text.split(|b| *b == b';').next().unwrap_or_default().trim_ascii();
            let size = std::str::from_utf8(size).ok().filter(|s| !s.starts_with('+'));
            match size.and_then(|s| u64::from_str_radix(s, 16).ok()) {
                Some(0) => State::Trailers,
                Some(len) => State::Chunk(len),
                None => State::Opaque,
            }
        }
    }
}

/// How the body after this head is framed (RFC 9112 §6.3).
fn state_after(head: &Head, asked: Asked) -> State {
    if let Start::Answer { status } = head.start {
        match (status, asked) {
            (101, _) | (200..300, Asked::Connect) => return State::Opaque,
            (100..200, _) => return State::Head,
            (204 | 304, _) | (_, Asked::Head) => return State::Complete,
            _ => {}
        }
    }
    let is_answer = matches!(head.start, Start::Answer { .. });
    if let Some(coding) = head.all("transfer-encoding").last() {
        let last = coding.rsplit(',').next().unwrap_or_default().trim();
        return if last.eq_ignore_ascii_case("chunked") { State::ChunkSize } else { State::UntilClose };
    }
    let mut lengths = head.all("content-length").flat_map(|v| v.split(',')).map(str::trim);
    match lengths.next() {
        None if is_answer => State::UntilClose,
        None | Some("0") => State::Complete,
        Some(first) => {
            let is_number = !first.is_empty() && first.bytes().all(|b| b.is_ascii_digit());
            match first.parse().ok().filter(|_| is_number && lengths.all(|other| other == first)) {
                Some(0) => State::Complete,
                Some(len) => State::Sized(len),
                None => State::Opaque,
            }
        }
    }
}

fn parse_head(side: Side, raw: Bytes) -> Option<Head> {
    let mut lines = raw.split(|b| *b == b'\n').map(|l| l.strip_suffix(b"\r").unwrap_or(l));
    let (start, minor) = parse_start(side, lines.next()?)?;
    let mut fields: Vec<(String, String)> = Vec::with_capacity(16);
    for line in lines.take_while(|l| !l.is_empty()) {
        if let [b' ' | b'\t', ..] = line {
            // A folded line belongs to the value before it (RFC 9112 §5.2).
            let value = &mut fields.last_mut()?.1;
            value.push(' ');
            value.push_str(&text(line.trim_ascii()));
            continue;
        }
        let colon = memchr::memchr(b':', line)?;
        let (name, value) = line.split_at_checked(colon)?;
        fields.push((text(name), text(value.get(1..)?.trim_ascii())));
    }
    Some(Head { start, minor, fields, raw })
}

fn parse_start(side: Side, line: &[u8]) -> Option<(Start, u8)> {
    let line = std::str::from_utf8(line).ok()?;
    match side {
        Side::Requests => {
            let (method, rest) = line.split_once(' ')?;
            let (target, version) = rest.rsplit_once(' ')?;
            let is_token = !method.is_empty() && method.bytes().all(|b| b.is_ascii_graphic());
            let start = Start::Request { method: method.to_owned(), target: target.trim().to_owned() };
            is_token.then_some((start, parse_minor(version)?))
        }
        Side::Answers => {
            let (version, rest) = line.split_once(' ')?;
            let status = rest.split(' ').next()?;
            let is_status = status.len() == 3 && status.bytes().all(|b| b.is_ascii_digit());
            let start = Start::Answer { status: status.parse().ok().filter(|_| is_status)? };
            Some((start, parse_minor(version)?))
        }
    }
}

fn parse_minor(version: &str) -> Option<u8> {
    match version.strip_prefix("HTTP/1.")?.as_bytes() {
        [digit @ b'0'..=b'9'] => Some(digit - b'0'),
        _ => None,
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests;

//! Exchanges that orders are for: what becomes of a request before it passes, and of an exchange
//! that is given up or cut.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Either, Full};
use hyper::body::{Frame, Incoming};
use hyper::header::CONTENT_LENGTH;
use hyper::{Request, Response};

use super::body::{RequestBody, ResponseBody};
use super::{Ended, Place, Teller};
use crate::command::message::Message;
use crate::event::{Close, Dir, What};
use crate::proxy::http::answer::OwnAnswer;
use crate::proxy::http::exchanges::{Exchange, Exchanges};
use crate::proxy::http::hands::line::{CutOrder, Ending, Errand, Fate, Line, Way};
use crate::proxy::http::hands::orders::{cut_order, cut_words};
use crate::proxy::http::hands::plan::Plan;
use crate::proxy::http::hands::{self, LineGuard, Spot, Then, body};
use crate::proxy::http::policy::Wish;
use crate::spec::era::Era;
use crate::spec::headers;
use crate::wire::http1::{Asked, Head, Start};

/// What became of a request.
pub(super) enum Met {
    /// It passes.
    Passes(Box<Request<RequestBody>>),
    /// The tap answers it.
    Answered(Box<OwnAnswer>),
    /// Its exchange is cut.
    Cut(CutOrder),
}

/// One exchange that orders may find.
#[derive(Debug)]
pub(super) struct Steered {
    place: Place,
    stream: u64,
    era: Option<Era>,
    line: Arc<Line>,
    _known: LineGuard,
}

impl Steered {
    /// An exchange has begun with this head.
    pub(super) fn begin(place: &Place, stream: u64, head: &Head) -> Steered {
        let exchanges = Arc::new(Exchanges::default());
        exchanges.begin(Exchange {
            stream,
            asked: Asked::Other,
            wish: Wish::Nothing,
            own_origin: String::new(),
            head: raw_head(head),
            text: None,
            on_answer: Vec::new(),
            is_streaming: false,
        });
        let line = Arc::new(Line::new(place.conn, exchanges));
        let known = place.shared.hands.begin(line.clone());
        let era = head.get(headers::PROTOCOL_VERSION).and_then(Era::from_name);
        Steered { place: place.clone(), stream, era, line, _known: known }
    }

    pub(super) fn line(&self) -> &Arc<Line> {
        &self.line
    }

    /// A request comes, and passes as the rules let it.
    pub(super) async fn request(&self, request: Request<Incoming>) -> Met {
        let (shared, conn, stream) = (&self.place.shared, self.place.conn, self.stream);
        if !shared.hands.is_active() {
            let (tape, body) = (shared.tape.clone(), request);
            let request = body.map(|body| RequestBody::new(body, tape, conn, stream));
            return Met::Passes(Box::new(request));
        }
        let (mut parts, incoming) = request.into_parts();
        let Ok(collected) = incoming.collect().await else {
            return Met::Cut(CutOrder {
                client: Ending::Reset,
                server: Ending::Close,
                last_words: None,
                is_cancel: false,
            });
        };
        let text = collected.to_bytes();
        if !text.is_empty() {
            shared.tape.push_http(Dir::C2s, Some(stream), Some(conn), What::Body(text.clone()));
        }
        self.line.exchanges.note(stream, |exchange| {
            exchange.text = Some(text.clone());
            shared.hands.keep_head(stream, exchange.head.clone());
        });
        match self.meet(&text).await {
            Ok(None) => Met::Passes(Box::new(Request::from_parts(parts, known(text)))),
            Ok(Some(other)) => {
                if parts.headers.contains_key(CONTENT_LENGTH) {
                    parts.headers.insert(CONTENT_LENGTH, other.len().into());
                }
                Met::Passes(Box::new(Request::from_parts(parts, known(other))))
            }
            Err(met) => *met,
        }
    }

    /// What the rules make of a request: another text, or something in its place.
    async fn meet(&self, text: &Bytes) -> Result<Option<Bytes>, Box<Met>> {
        let (hands, conn, stream) = (&self.place.shared.hands, self.place.conn, self.stream);
        let message = Message::read(text);
        let place = hands::place(Dir::C2s, stream, conn, None, self.era);
        let (call, decisions) = match &message {
            Some(message) => hands.meet(place, message, |_| true),
            None => hands.meet_other(place, text.len(), |_| true),
        };
        let id = message.as_ref().and_then(|message| message.id.as_ref());
        let spot = Spot::of(stream, Some(conn), id);
        let mut plan = hands.plan(Dir::C2s, &spot, decisions, text);
        if let Some((answer, why)) = plan.answer.take() {
            let answer = OwnAnswer::ordered(id, &answer, spot.ordered(&why));
            return Err(Box::new(Met::Answered(Box::new(answer))));
        }
        if let Some((cut, why)) = plan.cut_now() {
            hands.then(&self.line, Then::Cut(cut_order(cut), spot.clone(), why.with(cut_words(cut))));
        }
        self.refuse_rest(&plan, &spot);
        if plan.is_dropped {
            return Err(Box::new(Met::Cut(self.line.until_cut().await)));
        }
        let mut other = plan.text.take();
        if let Some((_, ms)) = plan.delay {
            tokio::select! {
                order = self.line.until_cut() => return Err(Box::new(Met::Cut(order))),
                () = tokio::time::sleep(Duration::from_millis(ms.0)) => {}
            }
        }
        if let Some(hold) = plan.hold {
            let says = hands::says("c2s", message.as_ref());
            let held = hands.hold((&self.line, Way::Up), &spot, hold, (says, text));
            match self.until_settled(held).await? {
                Fate::Pass(text) => other = text.or(other),
                Fate::Answer(answer, by) => {
                    let answer = OwnAnswer::ordered(id, &answer, spot.by(by));
                    return Err(Box::new(Met::Answered(Box::new(answer))));
                }
                Fate::Drop | Fate::Until(_) => {
                    return Err(Box::new(Met::Cut(self.line.until_cut().await)));
                }
            }
        }
        if let Some((cancel, why)) = plan.cancel.take()
            && let Some(call) = call
        {
            hands.then(&self.line, Then::Cancel(Box::new(call), cancel, why));
        }
        Ok(other)
    }

    /// Waits for what becomes of the request that is held under this number.
    async fn until_settled(&self, (number, mut due): (u64, crate::time::Mono)) -> Result<Fate, Box<Met>> {
        let hands = &self.place.shared.hands;
        loop {
            for errand in self.line.errands(Way::Up) {
                match errand {
                    Errand::Fate(held, Fate::Until(later)) if held == number => due = later,
                    Errand::Fate(held, fate) if held == number => return Ok(fate),
                    _ => {}
                }
            }
            let wait = Duration::from_nanos(due.ns_since(hands.now()));
            tokio::select! {
                order = self.line.until_cut() => return Err(Box::new(Met::Cut(order))),
                () = self.line.told(Way::Up) => {}
                () = tokio::time::sleep(wait) => hands.release_due(),
            }
        }
    }

    /// Says of each effect that it is not there for HTTP/2.
    fn refuse_rest(&self, plan: &Plan, spot: &Spot) {
        let hands = &self.place.shared.hands;
        let words = "not done: what is joined with HTTP/2 cannot do this";
        for (what, why) in &plan.on_answer {
            hands.tell(Dir::Tap, what.name(), spot, &why.with(words), None);
        }
        for why in &plan.copies {
            hands.tell(Dir::Tap, "duplicate", spot, &why.with(words), None);
        }
    }

    /// The exchange ends by order before its answer has begun.
    pub(super) async fn cut(
        &self,
        teller: &mut Teller,
        order: &CutOrder,
    ) -> Result<Response<Either<ResponseBody, Full<Bytes>>>, Ended> {
        if order.client == Ending::Keep {
            // Its client is waited for, which nobody answers any more.
            return std::future::pending().await;
        }
        teller.server_ended(if order.client == Ending::Reset { Close::Reset } else { Close::Eof });
        let Some((_, text)) = &order.last_words else { return Err(Ended::Cut) };
        let mut response = Response::new(Either::Right(Full::from(text.clone())));
        let json = hyper::header::HeaderValue::from_static(headers::JSON);
        response.headers_mut().insert(hyper::header::CONTENT_TYPE, json);
        Ok(response)
    }

    /// The exchange ends by order within its answer.
    pub(super) fn cut_within(
        &self,
        teller: &mut Teller,
        order: &CutOrder,
        server: Option<Incoming>,
        is_event_stream: bool,
    ) {
        let how = if order.client == Ending::Reset { Close::Reset } else { Close::Eof };
        let Some(mut server) = server.filter(|_| order.server == Ending::Keep) else {
            teller.server_ended(how);
            return;
        };
        // The server goes on without its client, and what it says is recorded.
        teller.is_over = true;
        let (place, stream) = (self.place.clone(), self.stream);
        let (tracker, stop) = (place.shared.tracker.clone(), place.shared.stop.clone());
        tracker.spawn(async move {
            let mut teller = Teller { place, stream, is_over: false };
            loop {
                let frame = tokio::select! {
                    () = stop.cancelled() => None,
                    frame = server.frame() => frame,
                };
                let data = match frame {
                    Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
                    Some(Err(_)) => return teller.server_ended(Close::Reset),
                    None => return teller.server_ended(Close::Eof),
                };
                let what = if is_event_stream { What::SseChunk(data) } else { What::Body(data) };
                teller.push(Dir::S2c, what);
            }
        });
    }
}

fn known(text: Bytes) -> RequestBody {
    RequestBody::Known(Some(text).filter(|text| !text.is_empty()))
}

/// The head as it would be on HTTP/1.1, for requests of midwire's own.
fn raw_head(head: &Head) -> Bytes {
    let Start::Request { method, target } = &head.start else { return Bytes::new() };
    let mut raw = BytesMut::from(format!("{method} {target} HTTP/1.1\r\n").as_bytes());
    for (name, value) in &head.fields {
        raw.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }
    raw.extend_from_slice(b"\r\n");
    raw.freeze()
}

/// What a body gives when it is asked for its next frame.
type Polled = Poll<Option<Result<Frame<Bytes>, Ended>>>;

/// Waits for the order that cuts an answer, and ends it so.
pub(super) struct Cutting {
    waiting: Option<Pin<Box<dyn Future<Output = CutOrder> + Send>>>,
    order: Option<CutOrder>,
    last_words: Option<Bytes>,
}

impl std::fmt::Debug for Cutting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cutting").field("order", &self.order).finish_non_exhaustive()
    }
}

impl Cutting {
    pub(super) fn wait(line: Arc<Line>) -> Cutting {
        let waiting = Box::pin(async move { line.until_cut().await });
        Cutting { waiting: Some(waiting), order: None, last_words: None }
    }

    pub(super) fn is_cut(&self) -> bool {
        self.order.is_some()
    }

    /// The order, when it has just come.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Option<CutOrder> {
        let Poll::Ready(order) = self.waiting.as_mut()?.as_mut().poll(cx) else { return None };
        self.waiting = None;
        self.last_words = order.last_words.as_ref().map(|(_, text)| body::event(text));
        self.order = Some(order.clone());
        Some(order)
    }

    /// How the answer goes on after the order.
    pub(super) fn end(&mut self) -> Option<Polled> {
        let order = self.order.as_ref()?;
        Some(match (order.client, self.last_words.take()) {
            (_, Some(text)) => Poll::Ready(Some(Ok(Frame::data(text)))),
            // It is woken when its client leaves.
            (Ending::Keep, None) => Poll::Pending,
            (Ending::Close, None) => Poll::Ready(None),
            (Ending::Reset, None) => Poll::Ready(Some(Err(Ended::Cut))),
        })
    }
}

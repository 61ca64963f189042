//! What a person does to exchanges: what each side sees of it, and what is recorded.

use std::collections::BTreeMap;
use std::net::{TcpListener, TcpStream};

use midwire::command::{
    Answer, By, Cancel, ClientGets, Command, Cut, CutAt, Effect, Key, RaceOrder, Rate, Refused, Retry, Rule,
    Side, Spoil, TakesOrders, Times, Which,
};
use midwire::event::tape::{Taped, Ticket};
use midwire::event::{Dir, Event, What};
use midwire::filter::Filter;
use midwire::model::Model;
use midwire::time::{Mono, Ms};

use super::fixture::*;

const SSE_HEAD: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
const MODERN: &str = "2026-07-28";
const LEGACY: &str = "2025-11-25";
const END: &str = "0\r\n\r\n";

fn call(era: &str, id: u32) -> String {
    let meta = if era == MODERN {
        format!("\"io.modelcontextprotocol/protocolVersion\":\"{era}\",")
    } else {
        String::new()
    };
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"slow\",\"arguments\":{{\"n\":{id}}},\"_meta\":{{{meta}\"progressToken\":\"t{id}\"}}}}}}"
    )
}

fn post(era: &str, body: &str) -> String {
    let session =
        if era == LEGACY { "Mcp-Session-Id: s1\r\n" } else { "Mcp-Method: tools/call\r\nMcp-Name: slow\r\n" };
    format!(
        "POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nMCP-Protocol-Version: {era}\r\n{session}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn result(id: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"resultType\":\"complete\",\"content\":[]}}}}")
}

fn progress(n: u32) -> String {
    format!(
        "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{{\"progressToken\":\"t7\",\"progress\":{n}}}}}"
    )
}

fn json(body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn chunk(data: &str) -> String {
    format!("{:x}\r\n{data}\r\n", data.len())
}

fn event(message: &str) -> String {
    chunk(&format!("data: {message}\n\n"))
}

fn own_event(message: &str) -> String {
    chunk(&format!("event: message\ndata: {message}\n\n"))
}

fn on(text: &str) -> Filter {
    Filter::parse(text).unwrap()
}

fn rule(filter: &str, effect: Effect) -> Command {
    Command::Arm(Rule {
        name: Some("r".to_owned()),
        on: on(filter),
        skip: 0,
        times: Times::Only(1),
        chance: 1.0,
        seed: None,
        effect,
    })
}

/// A tap, a client with a request under way, and the server that has read it.
struct Scene {
    server: TcpListener,
    tap: Tap,
    client: TcpStream,
}

impl Scene {
    fn new(orders: &[Command]) -> Scene {
        let server = listen();
        let tap = Tap::before(&server);
        for order in orders {
            tap.hands.order(order, By::Ctl).unwrap();
        }
        let client = tap.connect();
        Scene { server, tap, client }
    }

    fn order(&self, command: &Command) -> Vec<String> {
        self.tap.hands.order(command, By::Ctl).unwrap().to
    }

    /// The client asks, and the server gets it as it was.
    fn ask(&self, era: &str) -> TcpStream {
        let request = post(era, &call(era, 7));
        send(&self.client, &request);
        let peer = accept(&self.server);
        expect(&peer, &request);
        peer
    }
}

fn injected(items: &[Taped]) -> Vec<String> {
    let tell = |item: &Taped| match &item.what {
        What::Inject { what, target, by, sent, .. } => {
            let sent = sent.as_ref().map_or(String::new(), |sent| format!(" {}", text(sent)));
            Some(format!("{:?} {what} {target} {by}{sent}", item.dir))
        }
        _ => None,
    };
    items.iter().filter_map(tell).collect()
}

fn model((items, handed_on): &(Vec<Taped>, Vec<(Ticket, Mono)>)) -> Model {
    let out: BTreeMap<Ticket, Mono> = handed_on.iter().copied().collect();
    let mut model = Model::new();
    for (n, item) in items.iter().enumerate() {
        let event = Event {
            n: n as u64 + 1,
            at: item.at,
            out: out.get(&item.ticket).copied(),
            dir: item.dir,
            transport: item.transport,
            stream: item.stream,
            conn: item.conn,
            what: item.what.clone(),
        };
        model.fold(&event, u32::try_from(n).unwrap());
    }
    model
}

fn cancel(gets: ClientGets) -> Cancel {
    Cancel { reason: Some("enough".to_owned()), client_gets: gets }
}

/// Modern: the exchange at the server is closed, and nothing is sent. Legacy: a POST of its own.
#[test]
fn a_cancel_is_the_signal_of_its_era() {
    for era in [MODERN, LEGACY] {
        for gets in [ClientGets::Nothing, ClientGets::Error, ClientGets::Reset] {
            for is_begun in [false, true] {
                let scene = Scene::new(&[Command::Status]);
                let peer = scene.ask(era);
                if is_begun {
                    send(&peer, SSE_HEAD);
                    send(&peer, event(&progress(1)));
                    expect(&scene.client, format!("{SSE_HEAD}{}", event(&progress(1))));
                }
                let done = scene.order(&Command::Cancel { on: on("id:7"), cancel: cancel(gets) });
                assert_eq!(done, ["id 7"]);
                let notice = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":7,\"reason\":\"enough\"}}";
                if era == LEGACY {
                    let other = accept(&scene.server);
                    let head = read_head(&other);
                    assert!(head.contains("\r\nMcp-Session-Id: s1\r\n"), "{head}");
                    assert!(head.contains(&format!("\r\nContent-Length: {}\r\n", notice.len())), "{head}");
                    expect(&other, notice);
                    send(&other, "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n");
                    expect_eof(&other);
                }
                expect_eof(&peer);
                let error = "{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":-32000,\"message\":\"cancelled by midwire\"}}";
                match (gets, is_begun) {
                    (ClientGets::Nothing, _) => expect_eof(&scene.client),
                    (ClientGets::Reset, _) => expect_reset(&scene.client),
                    (ClientGets::Error, true) => {
                        expect(&scene.client, format!("{}{END}", own_event(error)));
                        expect_eof(&scene.client);
                    }
                    (ClientGets::Error, false) => {
                        let head = read_head(&scene.client);
                        assert!(
                            head.starts_with("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"),
                            "{head}"
                        );
                        expect(&scene.client, error);
                        expect_eof(&scene.client);
                    }
                }
                drop(peer);
                let case = format!("{era} {gets:?} begun {is_begun}");
                let all = scene.tap.finish();
                let mut expected = vec![if era == MODERN {
                    "Tap cancel id 7 ctl".to_owned()
                } else {
                    format!("C2s cancel id 7 ctl {notice}")
                }];
                if gets == ClientGets::Error {
                    expected.push(format!("S2c answer id 7 ctl {error}"));
                }
                assert_eq!(injected(&all), expected, "{case}");
                let requests = all.iter().filter(|item| matches!(item.what, What::Request(_))).count();
                assert_eq!(requests, 1, "{case}");
                assert!(!all.iter().any(|item| matches!(item.what, What::ClientClosed { .. })), "{case}");
            }
        }
    }
}

#[test]
fn what_must_not_be_cancelled_is_refused() {
    let scene = Scene::new(&[Command::Status]);
    let body = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\"}}";
    send(&scene.client, post(LEGACY, body));
    let peer = accept(&scene.server);
    expect(&peer, post(LEGACY, body));
    let order = |filter: &str| {
        let order = Command::Cancel { on: on(filter), cancel: Cancel::default() };
        scene.tap.hands.order(&order, By::Ctl)
    };
    assert!(matches!(order("id:1"), Err(Refused::NotHere(_))));
    assert!(matches!(order("id:2"), Err(Refused::NotFound(_))));
    send(&peer, json(&result("1")));
    expect(&scene.client, json(&result("1")));
    assert!(injected(&scene.tap.finish()).is_empty());
}

/// A call that was under way before the first order is known all the same.
#[test]
fn a_call_from_before_the_first_order_is_found() {
    let scene = Scene::new(&[]);
    let peer = scene.ask(MODERN);
    send(&peer, SSE_HEAD);
    send(&peer, event(&progress(1)));
    expect(&scene.client, format!("{SSE_HEAD}{}", event(&progress(1))));
    scene.order(&rule("kind:progress", Effect::Drop));
    for n in 2..4 {
        send(&peer, event(&progress(n)));
    }
    expect(&scene.client, event(&progress(3)));
    scene.order(&Command::Cancel { on: on("tool:slow"), cancel: Cancel::default() });
    expect_eof(&peer);
    expect_eof(&scene.client);
}

/// Each moment of a cut, each side, closed and reset: what passes before, and how both ends end.
#[test]
fn a_cut_comes_at_its_moment_on_its_side() {
    let first = format!("{SSE_HEAD}{}", event(&progress(1)));
    let second = event(&progress(2));
    let half_event = format!("data: {}\n\n", progress(1));
    let begin = |len: usize| chunk(half_event.get(..len).unwrap());
    let (half, ten) = (begin(half_event.len() / 2), begin(10));
    let moments = [
        ("kind:progress", CutAt::Now, SSE_HEAD.to_owned()),
        ("kind:request", CutAt::AfterEvents(1), first.clone()),
        ("kind:progress", CutAt::AfterEvents(1), format!("{first}{second}")),
        ("kind:request", CutAt::BeforeFinal, format!("{first}{second}")),
        ("kind:request", CutAt::MidEvent, format!("{SSE_HEAD}{half}")),
        ("kind:request", CutAt::AfterBytes(10), format!("{SSE_HEAD}{ten}")),
    ];
    for (filter, at, passes) in &moments {
        for side in [None, Some(Side::Client), Some(Side::Server)] {
            for is_reset in [false, true] {
                let cut = Cut { side, is_reset };
                let scene = Scene::new(&[rule(filter, Effect::Disconnect { cut, at: *at })]);
                let peer = scene.ask(MODERN);
                let case = format!("{filter} {at:?} {cut:?}");
                send(&peer, format!("{SSE_HEAD}{}{second}{}", event(&progress(1)), event(&result("7"))));
                if side == Some(Side::Client) {
                    send(&peer, END);
                }
                // A reset may overtake what passed before it.
                if !(is_reset && side != Some(Side::Server)) {
                    expect(&scene.client, passes);
                }
                match (side, is_reset) {
                    (Some(Side::Server), _) => {}
                    (_, true) => expect_reset(&scene.client),
                    (_, false) => expect_eof(&scene.client),
                }
                match (side, is_reset) {
                    (Some(Side::Client), _) | (_, false) => expect_eof(&peer),
                    (_, true) => expect_reset(&peer),
                }
                let all = scene.tap.finish();
                assert_eq!(injected(&all), ["Tap disconnect id 7 ctl"], "{case}");
            }
        }
    }
}

/// The request is cut in place of passing; the whole connection by an order without a filter.
#[test]
fn a_request_or_all_connections_are_cut() {
    let cut = Cut { side: None, is_reset: false };
    let scene = Scene::new(&[rule("tool:slow", Effect::Disconnect { cut, at: CutAt::Now })]);
    send(&scene.client, post(MODERN, &call(MODERN, 7)));
    expect_eof(&scene.client);
    expect_eof(&accept(&scene.server));
    let other = scene.tap.connect();
    send(&other, post(MODERN, &call(MODERN, 8)));
    let peer = accept(&scene.server);
    expect(&peer, post(MODERN, &call(MODERN, 8)));
    scene.order(&Command::Disconnect { on: on(""), cut });
    expect_eof(&other);
    expect_eof(&peer);
    assert_eq!(injected(&scene.tap.finish()), ["Tap disconnect id 7 ctl", "Tap disconnect connection 2 ctl"]);
}

/// What becomes of a request that is held, and of an answer.
#[test]
fn what_is_held_passes_as_it_is_told() {
    let edited = call(MODERN, 7).replace("\"n\":7", "\"n\":99");
    let answer = Answer::Error { code: -32001, message: "no".to_owned() };
    let error = "{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":-32001,\"message\":\"no\"}}";
    let hold = |filter: &str| rule(filter, Effect::Hold { limit: None });
    let first = "Tap hold id 7 ctl".to_owned();
    // A request.
    let fates = [
        (
            Command::Release { which: Which::All, in_reverse: false, after: None },
            Some(call(MODERN, 7)),
            "Tap release id 7 ctl".to_owned(),
        ),
        (
            Command::Edit { held: 1, text: edited.clone() },
            Some(edited.clone()),
            format!("C2s edit id 7 ctl {edited}"),
        ),
        (Command::AnswerHeld { held: 1, answer }, None, "Tap answer id 7 ctl".to_owned()),
        (Command::Disarm(Which::All), Some(call(MODERN, 7)), "Tap release id 7 ctl".to_owned()),
    ];
    for (order, passes, told) in fates {
        let scene = Scene::new(&[hold("kind:request")]);
        send(&scene.client, post(MODERN, &call(MODERN, 7)));
        let status = until("the held request", || {
            let applied = scene.tap.hands.order(&Command::Status, By::Ctl).unwrap();
            applied.status.filter(|status| !status.held.is_empty())
        });
        assert_eq!(status.held[0].says, "c2s request id 7 tools/call slow");
        assert_eq!(status.held[0].text, call(MODERN, 7));
        scene.order(&order);
        if let Some(body) = passes {
            let peer = accept(&scene.server);
            let head = read_head(&peer);
            assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
            expect(&peer, &body);
            send(&peer, json(&result("7")));
            expect(&scene.client, json(&result("7")));
        } else {
            read_head(&scene.client);
            expect(&scene.client, error);
        }
        assert_eq!(injected(&scene.tap.finish()), [first.clone(), told], "{order:?}");
    }
    // An answer, alone in its body and as an event that later ones pass.
    let other = result("7").replace("[]", "[1]");
    let fates = [
        (
            Command::Release { which: Which::One(1), in_reverse: false, after: None },
            Some(result("7")),
            "Tap release id 7 ctl".to_owned(),
        ),
        (
            Command::Edit { held: 1, text: other.clone() },
            Some(other.clone()),
            format!("S2c edit id 7 ctl {other}"),
        ),
        (Command::Drop(Which::All), None, "Tap drop id 7 ctl".to_owned()),
    ];
    for (order, passes, told) in fates {
        for is_stream in [false, true] {
            let scene = Scene::new(&[hold("kind:result")]);
            let peer = scene.ask(MODERN);
            if is_stream {
                send(&peer, format!("{SSE_HEAD}{}{}{END}", event(&result("7")), event(&progress(9))));
                expect(&scene.client, format!("{SSE_HEAD}{}", event(&progress(9))));
            } else {
                send(&peer, json(&result("7")));
            }
            until("the held answer", || {
                let applied = scene.tap.hands.order(&Command::Status, By::Ctl).unwrap();
                applied.status.filter(|status| !status.held.is_empty())
            });
            scene.order(&order);
            match (&passes, is_stream) {
                (Some(body), true) => expect(&scene.client, format!("{}{END}", event(body))),
                (Some(body), false) => {
                    let head = read_head(&scene.client);
                    assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
                    expect(&scene.client, body);
                }
                (None, true) => expect(&scene.client, END),
                (None, false) => {}
            }
            assert_eq!(injected(&scene.tap.finish()), [first.clone(), told.clone()], "{order:?} {is_stream}");
        }
    }
}

/// Nobody waits for what is held when a side is gone, and the end of the tap forgets nothing.
#[test]
fn what_is_held_is_lost_with_its_connection_and_told() {
    for leaves in [true, false] {
        let scene = Scene::new(&[rule("kind:request", Effect::Hold { limit: None })]);
        send(&scene.client, post(MODERN, &call(MODERN, 7)));
        until("the held request", || {
            let applied = scene.tap.hands.order(&Command::Status, By::Ctl).unwrap();
            applied.status.filter(|status| !status.held.is_empty())
        });
        let peer = accept(&scene.server);
        if leaves {
            drop(scene.client);
            expect_eof(&peer);
        }
        let all = scene.tap.finish();
        assert_eq!(injected(&all), ["Tap hold id 7 ctl", "Tap lost id 7 midwire"]);
        let has_left =
            all.iter().any(|item| matches!(item.what, What::ClientClosed { .. }) && item.stream == Some(1));
        assert_eq!(has_left, leaves);
    }
    let scene = Scene::new(&[rule("kind:request", Effect::Hold { limit: Some(Ms(30)) })]);
    scene.ask(MODERN);
    assert_eq!(injected(&scene.tap.finish()), ["Tap hold id 7 ctl", "Tap release id 7 midwire"]);
}

/// What each effect makes of a stream of two values of progress and the result.
#[test]
fn effects_change_what_they_are_meant_for_and_nothing_else() {
    let (one, two, last) = (event(&progress(1)), event(&progress(2)), event(&result("7")));
    let same = format!("{SSE_HEAD}{one}{two}{last}{END}");
    let wrong = result("1000007");
    let edited = result("7").replace("[]", "[1]");
    let set = vec![("/result/content".to_owned(), "[1]".to_owned())];
    let text = Answer::Error { code: 1, message: "m".to_owned() };
    let error = "{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":1,\"message\":\"m\"}}";
    let whole = result("7");
    let truncated = whole.get(..whole.len() - whole.len().div_ceil(3)).unwrap();
    let cases: Vec<(&str, Effect, String, &str)> = vec![
        ("id:99", Effect::Drop, same.clone(), ""),
        ("kind:progress", Effect::Drop, format!("{SSE_HEAD}{two}{last}{END}"), "Tap drop id 7 ctl"),
        ("kind:progress", Effect::Swap, format!("{SSE_HEAD}{two}{one}{last}{END}"), "Tap swap id 7 ctl"),
        ("kind:result", Effect::Swap, same.clone(), "Tap swap id 7 ctl"),
        (
            "kind:progress",
            Effect::Delay { ms: Ms(60), jitter: Ms(0) },
            format!("{SSE_HEAD}{two}{last}{one}{END}"),
            "Tap delay id 7 ctl",
        ),
        (
            "kind:result",
            Effect::Edit { set },
            format!("{SSE_HEAD}{one}{two}{}{END}", event(&edited)),
            "S2c edit id 7 ctl",
        ),
        (
            "kind:result",
            Effect::Duplicate { copies: 3 },
            format!("{SSE_HEAD}{one}{two}{last}{}{}{END}", own_event(&result("7")), own_event(&result("7"))),
            "S2c duplicate id 7 ctl",
        ),
        (
            "kind:result",
            Effect::Answer(text),
            format!("{SSE_HEAD}{one}{two}{}{END}", event(error)),
            "S2c answer id 7 ctl",
        ),
        (
            "kind:request",
            Effect::Spoil(Spoil::WrongId),
            format!("{SSE_HEAD}{one}{two}{}{END}", event(&wrong)),
            "S2c spoil id 7 ctl",
        ),
        (
            "kind:request",
            Effect::Spoil(Spoil::Truncate),
            format!("{SSE_HEAD}{one}{two}{}{END}", event(truncated)),
            "S2c spoil id 7 ctl",
        ),
        (
            "kind:result",
            Effect::Spoil(Spoil::DuplicateFinal),
            format!("{SSE_HEAD}{one}{two}{last}{}{END}", own_event(&result("7"))),
            "S2c spoil id 7 ctl",
        ),
        (
            "kind:result",
            Effect::Spoil(Spoil::ProgressAfterFinal),
            format!("{SSE_HEAD}{one}{two}{last}{}{END}", own_event(&progress(3))),
            "S2c spoil id 7 ctl",
        ),
        (
            "kind:progress",
            Effect::Slice { bytes: 60, gap: Ms(1) },
            format!("{SSE_HEAD}{}{two}{last}{END}", sliced(&format!("data: {}\n\n", progress(1)), 60)),
            "Tap slice id 7 ctl",
        ),
        ("kind:progress", Effect::Buffer { bytes: 1 << 20, ms: Ms(50) }, same.clone(), "Tap buffer id 7 ctl"),
        ("kind:progress", Effect::Throttle(Rate::Messages(50)), same.clone(), "Tap throttle id 7 ctl"),
        (
            "kind:head",
            Effect::Header { name: "X-Test".to_owned(), value: Some("y".to_owned()) },
            same.replacen("\r\n\r\n", "\r\nX-Test: y\r\n\r\n", 1),
            "Tap header id 7 ctl",
        ),
    ];
    for (filter, effect, passes, told) in cases {
        let case = format!("{filter} {effect:?}");
        let scene = Scene::new(&[rule(filter, effect)]);
        let peer = scene.ask(MODERN);
        for part in [SSE_HEAD, &one, &two, &last, END] {
            send(&peer, part);
        }
        expect(&scene.client, &passes);
        let all = scene.tap.finish();
        let injected = injected(&all);
        assert!(injected.first().map_or("", String::as_str).starts_with(told), "{case}: {injected:?}");
        assert_eq!(injected.is_empty(), told.is_empty(), "{case}");
        let read: String = all
            .iter()
            .filter_map(|item| match &item.what {
                What::SseChunk(bytes) => Some(super::fixture::text(bytes)),
                _ => None,
            })
            .collect();
        let whole: String =
            [progress(1), progress(2), result("7")].map(|m| format!("data: {m}\n\n")).concat();
        assert_eq!(read, whole, "{case}: what was read is recorded as it was");
    }
}

fn sliced(text: &str, bytes: usize) -> String {
    text.as_bytes().chunks(bytes).map(|piece| chunk(&super::fixture::text(piece))).collect()
}

/// An answer in the server's place, which never hears of the request.
#[test]
fn the_tap_answers_in_the_place_of_the_server() {
    let cases = [
        (Answer::Status(401), "HTTP/1.1 401 Unauthorized\r\n", "\r\nWWW-Authenticate: Bearer\r\n"),
        (Answer::Status(403), "HTTP/1.1 403 Forbidden\r\n", ""),
        (Answer::Status(404), "HTTP/1.1 404 Not Found\r\n", ""),
        (Answer::Status(405), "HTTP/1.1 405 Method Not Allowed\r\n", "\r\nAllow: POST\r\n"),
        (Answer::Status(429), "HTTP/1.1 429 Too Many Requests\r\n", "\r\nRetry-After: 1\r\n"),
        (Answer::Status(503), "HTTP/1.1 503 Service Unavailable\r\n", "\r\nRetry-After: 1\r\n"),
        (
            Answer::Error { code: 1, message: "m".to_owned() },
            "HTTP/1.1 200 OK\r\n",
            "\r\nContent-Type: application/json\r\n",
        ),
        (Answer::Malformed, "HTTP/1.1 200 OK\r\n", "\r\nContent-Type: application/json\r\n"),
        (Answer::Oversized(100_000), "HTTP/1.1 200 OK\r\n", ""),
    ];
    for (answer, start, field) in cases {
        let scene = Scene::new(&[rule("kind:request", Effect::Answer(answer.clone()))]);
        send(&scene.client, post(MODERN, &call(MODERN, 7)));
        let head = read_head(&scene.client);
        assert!(head.starts_with(start) && head.contains(field), "{answer:?}: {head}");
        let len: usize =
            head.split("Content-Length: ").nth(1).unwrap().split("\r\n").next().unwrap().parse().unwrap();
        let mut body = vec![0; len];
        std::io::Read::read_exact(&mut &scene.client, &mut body).unwrap();
        expect_eof(&scene.client);
        let peer = accept(&scene.server);
        expect_eof(&peer);
        assert_eq!(injected(&scene.tap.finish()), ["Tap answer id 7 ctl"], "{answer:?}");
    }
}

#[test]
fn a_retry_is_an_exchange_of_its_own() {
    let retry = |is_sure, has_same_id| Retry { key: Key::Same, arguments: None, has_same_id, is_sure };
    for has_same_id in [false, true] {
        let scene = Scene::new(&[Command::Status]);
        let peer = scene.ask(MODERN);
        send(&peer, json(&result("7")));
        expect(&scene.client, json(&result("7")));
        let order = |is_sure| Command::Retry { on: on("tool:slow"), retry: retry(is_sure, has_same_id) };
        let refused = scene.tap.hands.order(&order(false), By::Ctl).unwrap_err();
        assert!(matches!(refused, Refused::Unsafe(_)), "{refused}");
        let done = scene.order(&order(true));
        let id = if has_same_id { "7" } else { "\"midwire-7-1\"" };
        assert_eq!(done, [format!("id {id}"), "stream 2".to_owned()]);
        let other = accept(&scene.server);
        let head = read_head(&other);
        assert!(head.contains("\r\nMcp-Name: slow\r\n") && head.contains("Connection: close"), "{head}");
        let mut body = call(MODERN, 7).replace("\"id\":7", &format!("\"id\":{id}"));
        if !has_same_id {
            body = body.replace("\"t7\"", "\"midwire-7-1\"");
        }
        expect(&other, &body);
        send(&other, json(&result(id)));
        expect_eof(&other);
        // Nothing of it reaches the client, whose connection goes on.
        send(&scene.client, post(MODERN, &call(MODERN, 8)));
        expect(&peer, post(MODERN, &call(MODERN, 8)));
        send(&peer, json(&result("8")));
        expect(&scene.client, json(&result("8")));
        let all = scene.tap.finish_with_tickets();
        assert_eq!(injected(&all.0), [format!("C2s retry id 7 ctl {body}")]);
        let model = model(&all);
        let ours: Vec<_> = model.calls().iter().filter(|call| call.is_injected).collect();
        assert!(ours.iter().all(|call| call.state.is_answered()), "{ours:?}");
    }
}

#[test]
fn a_message_of_the_persons_own_is_sent_to_either_side() {
    let scene = Scene::new(&[Command::Status]);
    let own = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}";
    let to = |to, text: &str| Command::Send { to, text: text.to_owned(), stream: None };
    let refused = scene.tap.hands.order(&to(Side::Client, own), By::Ctl);
    assert!(matches!(refused, Err(Refused::NotFound(_))));
    assert!(matches!(scene.tap.hands.order(&to(Side::Server, "{"), By::Ctl), Err(Refused::Invalid(_))));
    let peer = scene.ask(MODERN);
    send(&peer, SSE_HEAD);
    expect(&scene.client, SSE_HEAD);
    scene.order(&to(Side::Client, own));
    expect(&scene.client, own_event(own));
    let ping = "{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}";
    scene.order(&to(Side::Server, ping));
    let other = accept(&scene.server);
    assert!(read_head(&other).contains("\r\nMcp-Method: ping\r\n"));
    expect(&other, ping);
    send(&other, json("{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"result\":{}}"));
    expect_eof(&other);
    let all = scene.tap.finish();
    assert_eq!(injected(&all), [format!("S2c send client ctl {own}"), format!("C2s send server ctl {ping}")]);
}

/// Both orders of a cancel and an answer, 20 times each, in both eras and both forms of an answer.
#[test]
fn a_race_has_the_order_that_was_asked_for() {
    let orders = [
        (RaceOrder::CancelFirst { margin: Ms(5) }, "crossed"),
        (RaceOrder::AnswerFirst { margin: Ms(5) }, "complete_won"),
    ];
    for era in [MODERN, LEGACY] {
        for (order, verdict) in orders {
            for is_stream in [false, true] {
                let all = race(era, order, is_stream, 20);
                let model = model(&all);
                let calls = model.calls();
                assert_eq!(calls.len(), 20);
                for (at, call) in calls.iter().enumerate() {
                    let idx = midwire::model::CallIdx(u32::try_from(at).unwrap());
                    let race = model.race(idx).map(|race| (race.verdict.as_str(), race.is_injected));
                    assert_eq!(race, Some((verdict, true)), "{era} {order:?} stream {is_stream}: {call:?}");
                }
            }
        }
    }
}

fn race(era: &str, order: RaceOrder, is_stream: bool, times: u32) -> (Vec<Taped>, Vec<(Ticket, Mono)>) {
    let server = listen();
    let tap = Tap::before(&server);
    let Command::Arm(race) = rule("kind:request", Effect::Race(order)) else { unreachable!() };
    tap.hands.order(&Command::Arm(Rule { times: Times::Always, ..race }), By::Ctl).unwrap();
    for id in 1..=times {
        let client = tap.connect();
        let request = post(era, &call(era, id));
        send(&client, &request);
        let peer = accept(&server);
        expect(&peer, &request);
        let answer = if is_stream {
            format!("{SSE_HEAD}{}{END}", event(&result(&id.to_string())))
        } else {
            json(&result(&id.to_string()))
        };
        send(&peer, &answer);
        if era == LEGACY {
            let other = accept(&server);
            read_head(&other);
            send(&other, "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n");
        } else {
            expect_eof(&peer);
        }
        expect(&client, &answer);
    }
    tap.finish_with_tickets()
}

/// After the first order, exchanges that nothing is meant for still pass byte for byte.
#[test]
fn what_is_not_meant_passes_byte_for_byte() {
    let big = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"{}\"}}", "x".repeat(9 << 20));
    let exchanges: Vec<(String, String)> = vec![
        (post(MODERN, &call(MODERN, 1)), json(&result("1"))),
        ("GET /mcp HTTP/1.1\r\nhOST: y\r\n\r\n".to_owned(), format!("{SSE_HEAD}{}{}{END}", chunk(": hi\n\n"), chunk("data: x\r\n\r\nid: 5\ndata\n\n"))),
        ("POST /mcp HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"a\":\r\n3;x=y\r\n1} \r\n0\r\nT: u\r\n\r\n".to_owned(), "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n".to_owned()),
        (post(LEGACY, "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]"), json("not json")),
        (post(LEGACY, &call(LEGACY, 2)), json(&big)),
        ("DELETE /mcp HTTP/1.1\r\n\r\n".to_owned(), "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno".to_owned()),
    ];
    let scene = Scene::new(&[rule("tool:nothing-is-called-so", Effect::Drop)]);
    let mut peer = None;
    for (request, answer) in &exchanges {
        send(&scene.client, request);
        let peer = peer.get_or_insert_with(|| accept(&scene.server));
        expect(peer, request);
        let (to, answer_sent) = (peer.try_clone().unwrap(), answer.clone());
        let sending = std::thread::spawn(move || send(&to, answer_sent));
        expect(&scene.client, answer);
        sending.join().unwrap();
    }
    let all = scene.tap.finish();
    assert!(injected(&all).is_empty());
    assert!(all.iter().any(|item| item.dir == Dir::S2c));
}

/// Orders of every kind come and go in a random order while exchanges run: each of those that
/// nothing is meant for passes byte for byte and in its order, and nothing hangs.
#[test]
fn orders_come_and_go_and_what_is_not_meant_loses_nothing() {
    for seed in 1..=3 {
        let server = listen();
        let tap = Tap::before(&server);
        let serving = std::thread::spawn(move || {
            let mut peers = Vec::new();
            for _ in 0..4 {
                let peer = accept(&server);
                peers.push(std::thread::spawn(move || serve_each(&peer)));
            }
            for peer in peers {
                peer.join().unwrap();
            }
        });
        let clients: Vec<_> = (0..4)
            .map(|_| {
                let client = tap.connect();
                std::thread::spawn(move || {
                    for id in 0..150 {
                        let body = call(MODERN, id).replace("slow", "steady");
                        send(&client, post(MODERN, &body));
                        let id = id.to_string();
                        let events = [event(&progress(1)), event(&progress(2)), event(&result(&id))];
                        expect(&client, format!("{SSE_HEAD}{}{END}", events.concat()));
                    }
                })
            })
            .collect();
        let mut draw = seed;
        while !clients.iter().all(std::thread::JoinHandle::is_finished) {
            draw = midwire::command::engine::mix(draw);
            // What is meant is never there, but for what only changes the time.
            let (never, all) = ("tool:other", "kind:progress");
            let order = match draw % 10 {
                0 => rule(never, Effect::Drop),
                1 => rule(never, Effect::Hold { limit: None }),
                2 => rule(all, Effect::Slice { bytes: usize::MAX, gap: Ms(0) }),
                3 => rule("kind:result", Effect::Delay { ms: Ms(1), jitter: Ms(1) }),
                4 => rule(all, Effect::Throttle(Rate::Messages(100_000))),
                5 => Command::Disarm(Which::All),
                6 => Command::Cancel { on: on(never), cancel: Cancel::default() },
                7 => Command::Release { which: Which::All, in_reverse: true, after: Some(on(all)) },
                8 => rule("kind:result", Effect::Hold { limit: Some(Ms(1)) }),
                _ => Command::Status,
            };
            // Whether it finds something does not matter here.
            let _ = tap.hands.order(&order, By::Ctl);
            std::thread::yield_now();
        }
        for client in clients {
            client.join().unwrap();
        }
        serving.join().unwrap();
        drop(tap.finish());
    }
}

/// Answers each request with two values of progress and the result, until the client leaves.
fn serve_each(peer: &TcpStream) {
    for id in 0..150 {
        let body = call(MODERN, id).replace("slow", "steady");
        expect(peer, post(MODERN, &body));
        let id = id.to_string();
        for part in [SSE_HEAD, &event(&progress(1)), &event(&progress(2)), &event(&result(&id)), END] {
            send(peer, part);
        }
    }
}

/// The cancel of a call is kept from the server: its answer comes too late.
#[test]
fn an_answer_can_be_made_late() {
    let scene = Scene::new(&[rule("kind:request", Effect::Spoil(Spoil::Late))]);
    let peer = scene.ask(MODERN);
    drop(scene.client);
    until("the end of the client", || {
        (scene.tap.hands.order(&Command::Status, By::Ctl).is_ok()).then_some(())
    });
    send(&peer, json(&result("7")));
    expect_eof(&peer);
    let all = scene.tap.finish();
    let at = |what: &dyn Fn(&What) -> bool| all.iter().position(|item| what(&item.what));
    let left = at(&|what| matches!(what, What::ClientClosed { .. }));
    let answered = at(&|what| matches!(what, What::Body(_)));
    assert!(left < answered && left.is_some(), "{:?}", short(&all));
}

/// The same recipe, seed and traffic: the same effects at the same messages.
#[test]
fn a_seed_repeats_itself() {
    let play = || {
        let scene = Scene::new(&[]);
        let Command::Arm(drop) = rule("kind:progress", Effect::Drop) else { unreachable!() };
        let sometimes = Rule { times: Times::Always, chance: 0.5, seed: Some(3), ..drop };
        scene.order(&Command::Arm(sometimes));
        let peer = scene.ask(MODERN);
        send(&peer, SSE_HEAD);
        for n in 0..40 {
            send(&peer, event(&progress(n)));
        }
        send(&peer, format!("{}{END}", event(&result("7"))));
        expect(&scene.client, SSE_HEAD);
        let mut passed = String::new();
        while !passed.ends_with("\r\n\r\n0\r\n\r\n") && !passed.ends_with(END) {
            let mut byte = [0];
            std::io::Read::read_exact(&mut &scene.client, &mut byte).unwrap();
            passed.push(char::from(byte[0]));
        }
        (passed, injected(&scene.tap.finish()).len())
    };
    let first = play();
    assert_eq!(first, play());
    assert!((5..35).contains(&first.1), "{} of 40", first.1);
}

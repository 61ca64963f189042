//! Calls given up, sent again, and raced against their answers.

use midwire::command::TakesOrders;
use midwire::command::book::{Book, OpenCall};
use midwire::command::message::{Message, Place};
use midwire::event::{Dir, Transport};
use serde_json::json;

use crate::rig::{ERAS, Over, Rig, short, shorts};

fn told(over: &Over) -> Vec<(&str, &str)> {
    over.injects.iter().map(|(what, target)| (what.as_str(), target.as_str())).collect()
}

#[test]
fn a_call_is_given_up_as_its_era_wants_it() {
    for era in ERAS {
        for (gets, client, injects) in [
            ("nothing", &["ok 8 b"][..], &[("cancel", "id 7")][..]),
            ("error", &["error 7 -32000", "ok 8 b"], &[("cancel", "id 7"), ("answer", "id 7")]),
        ] {
            let mut rig = Rig::start(era);
            assert!(rig.order("status").status.unwrap().open.is_empty());
            rig.call(7, "silent", &json!({}));
            rig.wait_until("the call is open", |rig| rig.order("status").status.unwrap().open.len() == 1);
            let applied = rig.order(&format!("cancel on='tool:silent' client={gets} reason=enough"));
            assert_eq!(applied.to, ["id 7"], "{era} {gets}");
            rig.wait_until("it is told", |rig| rig.injects().len() == injects.len());
            rig.echo(8, "b");
            rig.wait_for_client(client.len());
            let over = rig.end();
            let mut found = told(&over);
            found.sort_by_key(|(what, _)| *what != "cancel");
            assert_eq!(found, injects, "{era} {gets}");
            assert_eq!(shorts(&over.server), ["call 7", "cancel 7", "call 8 b"], "{era} {gets}");
            assert_eq!(shorts(&over.client), client, "{era} {gets}");
            assert!(over.server[1].contains("\"reason\":\"enough\""), "{}", over.server[1]);
        }
    }
}

#[test]
fn a_handshake_is_not_given_up() {
    let mut rig = Rig::start_with(ERAS[0], "cat > got");
    rig.order("status");
    rig.write(&json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": ERAS[0] } }));
    rig.wait_until("it is open", |rig| rig.order("status").status.unwrap().open.len() == 1);
    let refused = rig.try_order("cancel on='id:1'").unwrap_err().to_string();
    assert!(refused.contains("must not cancel `initialize`"), "{refused}");
    assert_eq!(rig.end().injects, []);
}

#[test]
fn a_late_answer_to_a_call_that_was_answered_goes_to_nobody() {
    // A server that looks at no cancel.
    let server = r#"tee got | while read -r line; do case "$line" in *cancelled*) echo '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t7","progress":1}}'; echo '{"jsonrpc":"2.0","id":7,"result":{}}'; echo '{"jsonrpc":"2.0","id":8,"result":{}}';; esac; done"#;
    let mut rig = Rig::start_with(ERAS[1], server);
    rig.order("status");
    rig.call(7, "x", &json!({}));
    rig.call(8, "x", &json!({}));
    rig.wait_until("both are open", |rig| rig.order("status").status.unwrap().open.len() == 2);
    rig.order("cancel on='id:7' client=error");
    rig.wait_for_client(2);
    let over = rig.end();
    assert_eq!(shorts(&over.client), ["error 7 -32000", "ok 8"]);
    let swallowed = told(&over).into_iter().filter(|(what, _)| *what == "swallow").count();
    assert_eq!(swallowed, 2, "{:?}", over.injects);
}

#[test]
fn a_cancel_kept_from_the_server_makes_a_late_answer() {
    let mut rig = Rig::start(ERAS[1]);
    rig.order("spoil on='kind:request' how=late");
    rig.call(7, "silent", &json!({ "ms": 100 }));
    rig.wait_until("the call is open", |rig| !rig.server_lines().is_empty());
    rig.cancel(7);
    rig.wait_for_client(1);
    let over = rig.end();
    assert_eq!(shorts(&over.server), ["call 7"]);
    assert!(short(&over.client[0]).starts_with("ok 7"), "{:?}", over.client);
    assert_eq!(told(&over), [("spoil", "id 7")]);
}

#[test]
fn a_call_is_sent_again_and_the_client_does_not_see_it() {
    for era in ERAS {
        let mut rig = Rig::start(era);
        rig.order("status");
        rig.echo(7, "a");
        rig.wait_for_client(1);
        let refused = rig.try_order("retry on='id:7'").unwrap_err().to_string();
        assert!(refused.contains("no contract"), "{refused}");
        let applied = rig.order("retry on='id:7' sure");
        assert_eq!(applied.to.len(), 2, "{applied:?}");
        rig.wait_until("its answer is there", |rig| {
            rig.count("swallow") >= 1 && rig.order("status").status.unwrap().open.is_empty()
        });
        let before = rig.client_lines().len();
        rig.echo(8, "b");
        rig.wait_until("the next is answered", |rig| {
            rig.client_lines().last().is_some_and(|line| short(line) == "ok 8 b")
        });
        assert_eq!(rig.client_lines().len(), before + 1, "{era}");
        let over = rig.end();
        assert_eq!(over.server.len(), 3, "{era}: {:?}", over.server);
        assert!(short(&over.server[1]).starts_with("call \"midwire-"), "{:?}", over.server);
        let fresh = serde_json::from_str::<serde_json::Value>(&over.server[1]).unwrap();
        assert_eq!(fresh["params"]["_meta"]["progressToken"], fresh["id"], "{era}");
        assert!(over.client.iter().all(|line| !line.contains("midwire-7")), "{:?}", over.client);
    }
}

#[test]
fn a_call_is_sent_again_with_its_own_id_as_a_fault() {
    let mut rig = Rig::start_with(ERAS[1], "tee got");
    rig.order("status");
    rig.echo(7, "a");
    rig.wait_for_client(1);
    rig.order("retry on='id:7' same_id sure");
    rig.wait_for_client(2);
    let over = rig.end();
    assert_eq!(over.server[0], over.server[1]);
    assert_eq!(told(&over), [("retry", "id 7")]);
}

#[test]
fn a_persons_own_messages_reach_either_side() {
    let mut rig = Rig::start(ERAS[1]);
    rig.order(r#"send to=client text='{"jsonrpc":"2.0","method":"notifications/x"}'"#);
    rig.wait_for_client(1);
    rig.order(r#"send to=server text='{"jsonrpc":"2.0","id":"mine","method":"no/such"}'"#);
    rig.wait_until("the answer is for nobody", |rig| rig.count("swallow") == 1);
    rig.echo(8, "b");
    rig.wait_for_client(2);
    let over = rig.end();
    assert_eq!(shorts(&over.client), ["notifications/x null", "ok 8 b"]);
    assert_eq!(shorts(&over.server), ["no/such \"mine\"", "call 8 b"]);
}

/// When a message was written on: by its text in what was read or sent.
fn out(over: &Over, dir: Dir, text: &str) -> u64 {
    let item = over.taped.iter().find(|item| {
        let bytes = match &item.what {
            midwire::event::What::Bytes { bytes, .. } => Some(bytes),
            midwire::event::What::Inject { sent, .. } => sent.as_ref(),
            _ => None,
        };
        item.dir == dir && bytes.is_some_and(|bytes| String::from_utf8_lossy(bytes).contains(text))
    });
    let item = item.unwrap_or_else(|| panic!("no {text} in {dir:?}"));
    over.out.get(&item.ticket.0).unwrap_or_else(|| panic!("{text} was never written")).0
}

/// Answers a call when it is told that the call is given up.
const STUBBORN: &str = r#"sed -u -n 's/.*"requestId":\([0-9]*\).*/{"jsonrpc":"2.0","id":\1,"result":{}}/p'"#;

#[test]
fn both_orders_of_a_race_are_forged_every_time() {
    for (first, does_client_cancel) in
        [("cancel", false), ("cancel", true), ("answer", false), ("answer", true)]
    {
        let name = format!("{first} first, the client cancels: {does_client_cancel}");
        let is_stubborn = first == "cancel" && does_client_cancel;
        let server = format!("tee got | {STUBBORN}");
        let mut rig = if is_stubborn { Rig::start_with(ERAS[1], &server) } else { Rig::start(ERAS[1]) };
        rig.order(&format!("race on='tool:silent' first={first} margin=3ms times=always"));
        for id in 10..30u32 {
            rig.call(id, "silent", &json!({ "ms": if does_client_cancel { 100 } else { 2 } }));
            if does_client_cancel {
                rig.cancel(id);
            }
        }
        rig.wait_for_client(20);
        let is_cancel = |line: &String| line.contains("notifications/cancelled");
        let cancels = |rig: &Rig| rig.server_lines().iter().filter(|line| is_cancel(line)).count();
        rig.wait_until("all cancels are out", |rig| cancels(rig) == 20);
        let over = rig.end();
        for id in 10..30 {
            let cancel = out(&over, Dir::C2s, &format!("\"requestId\":{id}"));
            let answer = out(&over, Dir::S2c, &format!("\"id\":{id},"));
            let (before, after) = if first == "cancel" { (cancel, answer) } else { (answer, cancel) };
            assert!(after >= before + 3_000_000, "{name}, id {id}: {before} {after}");
        }
        let races = over.injects.iter().filter(|(what, _)| what == "race").count();
        assert!(races >= 20, "{name}: {races}");
    }
}

/// A call as the book of a tap has it.
fn open_call(id: u32) -> OpenCall {
    let text = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "silent" } });
    let message = Message::read(&text.to_string().into()).unwrap();
    let place = Place {
        dir: Dir::C2s,
        transport: Transport::Stdio,
        stream: None,
        conn: None,
        status: None,
        era: None,
    };
    let mut book = Book::default();
    book.note(place, &message).unwrap().clone()
}

#[test]
fn calls_from_before_the_first_order_are_known_once_they_are_told() {
    let mut rig = Rig::start(ERAS[1]);
    rig.call(7, "silent", &json!({}));
    rig.call(8, "silent", &json!({ "ms": 300 }));
    rig.wait_until("both are out", |rig| rig.server_lines().len() == 2);
    assert!(!rig.hands.knows());
    assert!(rig.try_order("cancel on='id:7'").is_err(), "nothing is known of it");
    rig.wait_for_client(1);
    // The recording was read before the answer of 8 came.
    rig.hands.seed(vec![open_call(7), open_call(8)]);
    assert!(rig.hands.knows());
    let open = rig.order("status").status.unwrap().open;
    assert_eq!(open.iter().map(|call| call.id.as_str()).collect::<Vec<_>>(), ["7"]);
    assert_eq!(rig.order("cancel on='id:7'").to, ["id 7"]);
    let over = rig.end();
    assert_eq!(shorts(&over.server), ["call 7", "call 8", "cancel 7"]);
}

//! What a server refuses and ignores, and that its table keeps one end per request.

use std::collections::HashMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use Transport::{Http, Stdio};

/// An id as JSON has it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Id {
    Int(i64),
    Str(String),
}

fn id(value: &Value) -> Option<Id> {
    match value {
        Value::Number(number) => number.as_i64().map(Id::Int),
        Value::String(text) => Some(Id::Str(text.clone())),
        _ => None,
    }
}

fn call(id_value: &Value) -> Incoming<'static, Id> {
    Incoming {
        id: id(id_value),
        token: Token::None,
        method: "tools/call",
        transport: Stdio,
        era: Era::V2026_07_28,
        idle: Ms(500),
        max: Ms(2000),
    }
}

fn started(request: Incoming<'static, Id>) -> Coordinator<Id, &'static str> {
    let mut table = Coordinator::default();
    table.start(request, Ms(0)).unwrap();
    table
}

/// A notification as its reader takes it apart.
fn notify(table: &mut Coordinator<Id, &'static str>, method: &str, params: &Value) -> CancelEffect {
    let request_id = params.get("requestId").and_then(id);
    let reason = params.get("reason").and_then(Value::as_str);
    table.notified(&Notification { method, request_id: request_id.as_ref(), reason })
}

#[test]
fn a_request_that_cannot_be_taken_leaves_no_trace() {
    for bad in [json!(null), json!(true), json!(1.5), json!([]), json!({})] {
        let mut table: Coordinator<Id, ()> = Coordinator::default();
        assert_eq!(table.start(call(&bad), Ms(0)), Err(Refusal::BadId), "{bad}");
        let with_token = Incoming { token: Token::Bad, ..call(&json!(1)) };
        assert_eq!(table.start(with_token, Ms(0)), Err(Refusal::BadToken), "{bad}");
        assert!(table.get(&Id::Int(1)).is_none());
    }
    let mut table = started(Incoming { token: Token::Is(Id::Int(9)), ..call(&json!(1)) });
    let taken = [
        (call(&json!(1)), Err(Refusal::TrackedId)),
        (Incoming { token: Token::Is(Id::Int(9)), ..call(&json!(2)) }, Err(Refusal::TokenInUse)),
        (Incoming { idle: Ms(0), ..call(&json!(2)) }, Err(Refusal::Limits(BadLimits::NoIdle))),
        (
            Incoming { max: Ms(499), ..call(&json!(2)) },
            Err(Refusal::Limits(BadLimits::MaximumBelowIdle { idle: 500, max: 499 })),
        ),
        (Incoming { token: Token::Is(Id::Str("9".to_owned())), ..call(&json!("1")) }, Ok(())),
        (Incoming { max: Ms(500), ..call(&json!(2)) }, Ok(())),
    ];
    for (request, expected) in taken {
        let wanted = request.id.clone().unwrap();
        let was_known = table.get(&wanted).is_some();
        assert_eq!(table.start(request, Ms(0)), expected);
        assert_eq!(table.get(&wanted).is_some(), was_known || expected.is_ok());
    }
}

#[test]
fn an_id_is_free_again_when_its_request_is_over_and_forgotten() {
    let mut table = started(call(&json!(1)));
    assert!(!table.forget(&Id::Int(1)) && !table.forget(&Id::Int(2)));
    table.complete(&Id::Int(1), "done").unwrap();
    assert_eq!(table.start(call(&json!(1)), Ms(1)), Err(Refusal::TrackedId));
    assert!(table.forget(&Id::Int(1)));
    assert_eq!(table.complete(&Id::Int(1), "late"), Err(Refusal::Unknown));
    assert_eq!(table.start(call(&json!(1)), Ms(1)), Ok(()));
}

#[test]
fn what_is_no_cancel_of_a_running_request_is_ignored() {
    const CANCELLED: &str = methods::CANCELLED;
    let malformed = [
        ("notifications/progress", json!({"requestId": 1})),
        (CANCELLED, Value::Null),
        (CANCELLED, json!([1])),
        (CANCELLED, json!({})),
        (CANCELLED, json!({"requestId": null})),
        (CANCELLED, json!({"requestId": true})),
        (CANCELLED, json!({"requestId": 1.5})),
        (CANCELLED, json!({"requestId": []})),
        (CANCELLED, json!({"requestId": {}})),
        (CANCELLED, json!({"requestId": "1"})),
        (CANCELLED, json!({"requestId": 2})),
    ];
    for (method, params) in malformed {
        let mut table = started(call(&json!(1)));
        assert_eq!(notify(&mut table, method, &params), CancelEffect::Ignored, "{method} {params}");
        assert_eq!(table.get(&Id::Int(1)).unwrap().life.state(), ServerState::InProgress);
    }
    let params = json!({"requestId": 1, "reason": "enough"});
    let mut completed = started(call(&json!(1)));
    completed.complete(&Id::Int(1), "done").unwrap();
    assert_eq!(notify(&mut completed, CANCELLED, &params), CancelEffect::Ignored);
    assert_eq!(completed.complete(&Id::Int(1), "other"), Ok(Completion::Stored(&"done")));
}

#[test]
fn the_signal_that_ends_a_request_is_the_one_of_its_transport_and_era() {
    let cases = [
        (Stdio, Era::V2026_07_28, CancelEffect::Cancelled, CancelEffect::Ignored),
        (Stdio, Era::V2025_06_18, CancelEffect::Cancelled, CancelEffect::Ignored),
        (Http, Era::V2026_07_28, CancelEffect::Ignored, CancelEffect::Cancelled),
        (Http, Era::V2025_03_26, CancelEffect::Cancelled, CancelEffect::Ignored),
    ];
    for (transport, era, by_notification, by_disconnect) in cases {
        let start = || started(Incoming { transport, era, ..call(&json!(1)) });
        let params = json!({"requestId": 1, "reason": 7});
        let mut table = start();
        assert_eq!(notify(&mut table, methods::CANCELLED, &params), by_notification, "{transport:?}");
        assert_eq!(table.get(&Id::Int(1)).unwrap().life.reason(), None, "a reason is a string");
        assert_eq!(start().disconnected(&Id::Int(1)), by_disconnect, "{transport:?}");
        assert_eq!(start().disconnected(&Id::Int(2)), CancelEffect::Ignored);
    }
}

#[test]
fn only_told_progress_restarts_the_idle_clock() {
    let mut table = started(Incoming { token: Token::Is(Id::Int(9)), ..call(&json!(1)) });
    let steps =
        [(1.0, 450, true, 950), (1.0, 940, false, 950), (0.5, 941, false, 950), (2.0, 942, true, 1442)];
    for (value, now, is_told, next) in steps {
        assert_eq!(table.progress(&Id::Int(1), value, Ms(now)), is_told);
        assert_eq!(table.get(&Id::Int(1)).unwrap().deadlines.next_at(), Ms(next));
    }
    assert!(!table.progress(&Id::Int(2), 1.0, Ms(0)));
    let mut without_token = started(call(&json!(1)));
    assert!(!without_token.progress(&Id::Int(1), 1.0, Ms(100)));
    assert_eq!(without_token.get(&Id::Int(1)).unwrap().deadlines.next_at(), Ms(500));
}

#[test]
fn a_server_ends_its_running_subscriptions_and_nothing_else() {
    let listen = |transport| Incoming { method: methods::LISTEN, transport, ..call(&json!("L")) };
    let key = Id::Str("L".to_owned());
    assert_eq!(started(listen(Stdio)).end_listen(&key, "bye"), Ok(Signal::ResultAndNotification));
    let mut http = started(listen(Http));
    assert_eq!(http.end_listen(&key, "bye"), Ok(Signal::ResultAndClose));
    assert_eq!(http.end_listen(&key, "again"), Err(Refusal::Over));
    assert_eq!(http.get(&key).unwrap().life.response(), Some(&"bye"));
    assert_eq!(http.end_listen(&Id::Int(1), "bye"), Err(Refusal::Unknown));
    let mut plain = started(call(&json!(1)));
    assert_eq!(plain.end_listen(&Id::Int(1), "bye"), Err(Refusal::NotAListen));
    assert_eq!(plain.get(&Id::Int(1)).unwrap().life.state(), ServerState::InProgress);
}

#[test]
fn a_cancel_that_cannot_be_honoured_is_noted() {
    let mut table = started(call(&json!(1)));
    table.make_unstoppable(&Id::Int(1));
    let effect = notify(&mut table, methods::CANCELLED, &json!({"requestId": 1}));
    assert_eq!(effect, CancelEffect::NotHonoured);
    assert_eq!(table.complete(&Id::Int(1), "done"), Ok(Completion::Suppressed));
    assert!(table.get(&Id::Int(1)).unwrap().life.is_cancel_unhonoured());
}

proptest! {
    /// Any order of events on any few requests, over both transports: each ends at most once, by
    /// its first terminal event, and its response is given out at most once.
    #[test]
    fn every_request_has_one_end(events in prop::collection::vec((0u8..6, 0i64..3, any::<bool>()), 0..60)) {
        let mut table: Coordinator<Id, usize> = Coordinator::default();
        let mut ends: HashMap<Id, ServerState> = HashMap::new();
        let mut given_out: HashMap<Id, usize> = HashMap::new();
        for (at, (event, number, is_http)) in events.into_iter().enumerate() {
            let key = Id::Int(number);
            let now = Ms(u64::try_from(at).unwrap());
            match event {
                0 => {
                    let transport = if is_http { Http } else { Stdio };
                    let is_new = table.start(Incoming { transport, ..call(&json!(number)) }, now).is_ok();
                    prop_assert_eq!(is_new, !ends.contains_key(&key));
                    ends.entry(key.clone()).or_insert(ServerState::InProgress);
                }
                1 => {
                    table.progress(&key, f64::from(u32::try_from(at).unwrap()), now);
                }
                2 => {
                    let request_id = Some(&key);
                    table.notified(&Notification { method: methods::CANCELLED, request_id, reason: None });
                }
                3 => {
                    table.disconnected(&key);
                }
                4 => {
                    if table.complete(&key, at).is_ok_and(|completion| completion.is_emitted()) {
                        *given_out.entry(key.clone()).or_default() += 1;
                    }
                }
                _ => {
                    if table.forget(&key) {
                        prop_assert_ne!(ends.remove(&key), Some(ServerState::InProgress));
                        given_out.remove(&key);
                    }
                }
            }
            if let Some(tracked) = table.get(&key) {
                let before = ends.insert(key.clone(), tracked.life.state());
                prop_assert!(before == Some(ServerState::InProgress) || before == Some(tracked.life.state()));
                let times = given_out.get(&key).copied().unwrap_or(0);
                prop_assert_eq!(times, usize::from(tracked.life.state() == ServerState::Completed));
            }
        }
    }
}

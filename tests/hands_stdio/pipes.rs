//! What is done to the pipes and to the server's process.

use midwire::event::What;
use serde_json::json;

use crate::rig::{ERAS, Rig, shorts};

fn told(injects: &[(String, String)]) -> Vec<(&str, &str)> {
    injects.iter().map(|(what, target)| (what.as_str(), target.as_str())).collect()
}

/// Progress, however often it is told.
const MANY: &str = "progress \"t7\"";

#[test]
fn the_clients_side_is_cut_at_its_moment() {
    // A rule; what the client still gets of the call `slow`, which tells progress.
    let cases: [(&str, &[&str]); 6] = [
        ("disconnect on='kind:request' side=client at=before-final", &[MANY]),
        ("disconnect on='kind:request' side=client after_messages=2", &["progress \"t7\""; 2]),
        ("disconnect on='kind:request' side=client at=mid-event", &["no message"]),
        ("disconnect on='kind:request' side=client after_bytes=30", &["no message"]),
        ("disconnect on='kind:progress' side=client times=1", &[]),
        ("disconnect on='kind:result' side=client times=1", &[MANY]),
    ];
    for era in ERAS {
        for (order, client) in cases {
            let mut rig = Rig::start(era);
            rig.order(order);
            rig.call(7, "slow", &json!({ "steps": 5, "step_ms": 120 }));
            rig.wait_until("the client sees the end", Rig::is_client_ended);
            let over = rig.end();
            let mut got = shorts(&over.client);
            if client == [MANY] {
                got.dedup();
            }
            assert_eq!(got, client, "{era} {order}");
            if order.contains("after_bytes") {
                assert_eq!(over.client[0].len(), 30, "{era} {order}");
            }
            assert_eq!(told(&over.injects)[0], ("disconnect", "client"), "{era} {order}");
            assert_eq!(over.outcome.exit_code, Some(0), "{era} {order}");
        }
    }
}

#[test]
fn the_servers_side_is_cut_and_the_server_ends() {
    for (order, targets) in [
        ("disconnect side=server", &["server"][..]),
        ("disconnect", &["client", "server"]),
        ("close-stdin", &["server"]),
    ] {
        let mut rig = Rig::start(ERAS[1]);
        rig.echo(7, "a");
        rig.wait_for_client(1);
        assert_eq!(rig.order(order).to, targets, "{order}");
        let over = rig.over();
        assert_eq!(over.outcome.exit_code, Some(0), "{order}");
        let found: Vec<&str> = over.injects.iter().map(|(_, target)| target.as_str()).collect();
        assert_eq!(found, targets, "{order}");
        assert_eq!(shorts(&over.client), ["ok 7 a"], "{order}");
    }
}

#[test]
fn the_process_is_killed_stopped_and_goes_on() {
    let mut rig = Rig::start(ERAS[1]);
    rig.echo(6, "x");
    rig.wait_for_client(1);
    rig.order("stop");
    rig.wait_until("it is told", |rig| rig.count("stop") == 1);
    rig.echo(7, "a");
    rig.order("continue");
    rig.wait_for_client(2);
    rig.order("kill on='kind:request id:8'");
    rig.call(8, "silent", &json!({}));
    let over = rig.over();
    assert_eq!(over.outcome.signal, Some(9));
    assert_eq!(told(&over.injects), [("stop", "server"), ("continue", "server"), ("kill", "server")]);
    let signals: Vec<&str> = over
        .taped
        .iter()
        .filter_map(|item| match &item.what {
            What::Signal { signal, .. } => Some(signal.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(signals, ["SIGSTOP", "SIGCONT", "SIGKILL"]);
}

#[test]
fn a_server_is_started_again_between_the_same_pipes() {
    let mut rig = Rig::start(ERAS[1]);
    rig.echo(7, "a");
    rig.wait_for_client(1);
    rig.call(8, "silent", &json!({}));
    rig.wait_until("the call is out", |rig| rig.server_lines().len() == 2);
    for round in 1..=3u32 {
        rig.order("restart");
        rig.echo(10 + round, "b");
        rig.wait_for_client(1 + round as usize);
    }
    let over = rig.end();
    let spawns = over.taped.iter().filter(|item| matches!(item.what, What::Spawn { .. })).count();
    assert_eq!(spawns, 4);
    let ends = over.taped.iter().filter(|item| matches!(item.what, What::ServerClosed { .. })).count();
    assert_eq!(ends, 4);
    assert_eq!(shorts(&over.client), ["ok 7 a", "ok 11 b", "ok 12 b", "ok 13 b"]);
    assert_eq!(over.outcome.exit_code, Some(0));
}

#[test]
fn a_bounded_queue_gives_up_progress_and_no_answer() {
    let mut rig = Rig::start(ERAS[1]);
    rig.order("flow bounded=4");
    rig.order("throttle on='kind:progress' messages=0 times=always");
    let stalled = rig.order("status").status.unwrap().rules[0].number;
    rig.call(7, "flood", &json!({ "n": 500 }));
    rig.echo(8, "b");
    rig.wait_until("the server has said all", |rig| rig.order("status").status.unwrap().open.is_empty());
    rig.order(&format!("disarm {stalled}"));
    let has = |rig: &Rig, start: &str| shorts(&rig.client_lines()).iter().any(|line| line.starts_with(start));
    rig.wait_until("both answers are there", |rig| has(rig, "ok 7") && has(rig, "ok 8"));
    let over = rig.end();
    let queues: Vec<_> = over
        .taped
        .iter()
        .filter_map(|item| match item.what {
            What::Queue(queue) => Some(queue),
            _ => None,
        })
        .collect();
    let last = queues.last().unwrap();
    assert_eq!((last.capacity, last.refused), (Some(4), 0), "{queues:?}");
    assert!(queues.iter().all(|queue| queue.events <= 4), "{queues:?}");
}

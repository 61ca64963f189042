//! Messages that are held: released, changed, dropped, answered, and never forgotten.

use crate::rig::{ERAS, Rig, shorts};

fn whats(injects: &[(String, String)]) -> Vec<&str> {
    injects.iter().map(|(what, _)| what.as_str()).collect()
}

/// A tap that holds the calls 7, 8 and 9.
fn holding() -> Rig {
    let mut rig = Rig::start(ERAS[1]);
    rig.order("hold on='tool:echo kind:request' times=3");
    for (id, text) in [(7, "a"), (8, "b"), (9, "c")] {
        rig.echo(id, text);
    }
    rig.wait_until("all are held", |rig| rig.count("hold") == 3);
    rig
}

#[test]
fn held_messages_pass_as_they_are_told() {
    let edited = "edit held=2 text='{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"tools/call\",\"params\":{\"name\":\"echo\",\"arguments\":{\"text\":\"z\"}}}'";
    // Orders; what reaches the server, and what is told after the holds.
    let cases: [(&[&str], &[&str], &[&str]); 7] = [
        (&["release"], &["call 7 a", "call 8 b", "call 9 c"], &["release"; 3]),
        (&["release reverse"], &["call 9 c", "call 8 b", "call 7 a"], &["release"; 3]),
        (&["release 2", "release"], &["call 8 b", "call 7 a", "call 9 c"], &["release"; 3]),
        (&["drop held=1", "release"], &["call 8 b", "call 9 c"], &["drop", "release", "release"]),
        (&["drop held=all"], &[], &["drop"; 3]),
        (
            &["answer held=1 error=-5", "release"],
            &["call 8 b", "call 9 c"],
            &["answer", "release", "release"],
        ),
        (
            &[edited, "release"],
            &["call 8 z", "call 7 a", "call 9 c"],
            &["release", "edit", "release", "release"],
        ),
    ];
    for (orders, server, injects) in cases {
        let rig = holding();
        let held = rig.order("status").status.unwrap().held;
        assert_eq!(held.iter().map(|held| held.number).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(held[0].says, "c2s request id 7 tools/call echo");
        for order in orders {
            let before = rig.server_lines().len();
            rig.order(order);
            let is_out = order.starts_with("release 2") || order.starts_with("edit");
            rig.wait_until("it is out", |rig| !is_out || rig.server_lines().len() > before);
        }
        rig.wait_until("the rest is out", |rig| rig.server_lines().len() == server.len());
        assert_eq!(rig.order("status").status.unwrap().held, []);
        let over = rig.end();
        assert_eq!(shorts(&over.server), server, "{orders:?}");
        let mut found = whats(&over.injects).split_off(3);
        let mut expected = injects.to_vec();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{orders:?}");
    }
}

#[test]
fn a_release_waits_for_another_message() {
    let mut rig = holding();
    rig.order("release 1 after='kind:cancel'");
    rig.echo(10, "d");
    rig.wait_until("others pass", |rig| rig.server_lines().len() == 1);
    rig.cancel(10);
    rig.wait_until("it follows", |rig| rig.server_lines().len() == 3);
    assert_eq!(shorts(&rig.server_lines()), ["call 10 d", "cancel 10", "call 7 a"]);
    rig.order("extend held=2 more=60s");
    let held = rig.order("status").status.unwrap().held;
    assert!(held[0].released_in.0 > 60_000, "{held:?}");
    rig.end();
}

#[test]
fn a_rule_that_is_disarmed_lets_go_of_what_it_holds_and_of_nothing_else() {
    let mut rig = Rig::start(ERAS[1]);
    let first = rig.order("hold on='id:7' times=always").rule.unwrap();
    rig.order("hold on='id:8' times=always");
    let slow = rig.order("delay on='kind:request id:9' ms=60s").rule.unwrap();
    for (id, text) in [(7, "a"), (8, "b"), (9, "c")] {
        rig.echo(id, text);
    }
    rig.wait_until("all wait", |rig| rig.count("hold") == 2 && rig.count("delay") == 1);
    rig.order(&format!("disarm {first}"));
    rig.wait_until("the first passes", |rig| rig.server_lines().len() == 1);
    rig.order(&format!("disarm {slow}"));
    rig.wait_until("the third passes", |rig| rig.server_lines().len() == 2);
    assert_eq!(shorts(&rig.server_lines()), ["call 7 a", "call 9 c"]);
    rig.order("disarm all");
    rig.wait_until("the second passes", |rig| rig.server_lines().len() == 3);
    rig.wait_for_client(3);
    assert_eq!(rig.order("status").status.unwrap().rules, []);
    rig.end();
}

#[test]
fn what_is_held_when_the_client_ends_is_released_and_when_the_server_ends_is_lost() {
    let over = holding().end();
    assert_eq!(shorts(&over.server), ["call 7 a", "call 8 b", "call 9 c"]);
    assert_eq!(whats(&over.injects), ["hold", "hold", "hold", "release", "release", "release"]);
    let rig = holding();
    rig.order("kill");
    let over = rig.over();
    assert_eq!(shorts(&over.server), [""; 0]);
    assert_eq!(whats(&over.injects), ["hold", "hold", "hold", "kill", "lost", "lost", "lost"]);
}

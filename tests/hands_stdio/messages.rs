//! What is done to single messages.

use midwire::event::Dir;

use crate::rig::{ERAS, Rig, bytes, shorts, sorted};

/// An order; what is told of it; what the server gets, in order; what the client gets, sorted.
type Case = (&'static str, &'static [&'static str], &'static [&'static str], &'static [&'static str]);

const BOTH: &[&str] = &["call 7 a", "call 8 b"];
const ANSWERS: &[&str] = &["ok 7 a", "ok 8 b"];

const CASES: [Case; 24] = [
    ("drop on='kind:request id:7'", &["drop"], &["call 8 b"], &["ok 8 b"]),
    ("drop on='kind:result id:7'", &["drop"], BOTH, &["ok 8 b"]),
    (
        "duplicate on='kind:result id:7' copies=3",
        &["duplicate"; 2],
        BOTH,
        &["ok 7 a", "ok 7 a", "ok 7 a", "ok 8 b"],
    ),
    ("swap on='kind:request id:7'", &["swap"], &["call 8 b", "call 7 a"], ANSWERS),
    (
        "edit on='kind:request id:7' set='/params/arguments/text=\"z\"'",
        &["edit"],
        &["call 7 z", "call 8 b"],
        &["ok 7 z", "ok 8 b"],
    ),
    ("edit on='kind:result id:7' set='/result/content/0/text=\"z\"'", &["edit"], BOTH, &["ok 7 z", "ok 8 b"]),
    ("edit on='kind:request id:7' set='/no/such=1'", &["edit"], BOTH, ANSWERS),
    ("answer on='kind:request id:7' error=-32603", &["answer"], &["call 8 b"], &["error 7 -32603", "ok 8 b"]),
    ("answer on='kind:request id:7' result={}", &["answer"], &["call 8 b"], &["ok 7", "ok 8 b"]),
    ("answer on='kind:request id:7' malformed", &["answer"], &["call 8 b"], &["no message", "ok 8 b"]),
    (
        "answer on='kind:request id:7' oversized=200000",
        &["answer"],
        &["call 8 b"],
        &["ok 7 200000 bytes", "ok 8 b"],
    ),
    ("answer on='kind:result id:7' error=-1", &["answer"], BOTH, &["error 7 -1", "ok 8 b"]),
    ("spoil on='kind:request id:7' how=truncate", &["spoil"], BOTH, &["no message", "ok 8 b"]),
    ("spoil on='kind:request id:7' how=wrong-id", &["spoil"], BOTH, &["ok 1000007 a", "ok 8 b"]),
    ("spoil on='kind:result id:7' how=wrong-id-type", &["spoil"], BOTH, &["ok \"7\" a", "ok 8 b"]),
    ("spoil on='kind:request id:7' how=duplicate-final", &["spoil"], BOTH, &["ok 7 a", "ok 7 a", "ok 8 b"]),
    (
        "spoil on='kind:request id:7' how=progress-after-final",
        &["spoil"],
        BOTH,
        &["ok 7 a", "ok 8 b", "progress \"t7\""],
    ),
    ("hold on='kind:request id:7' limit=300ms", &["hold", "release"], &["call 8 b", "call 7 a"], ANSWERS),
    ("delay on='kind:result id:7' ms=20 jitter=10", &["delay"], BOTH, ANSWERS),
    ("slice on='kind:request id:7' bytes=50 gap=2ms", &["slice"], BOTH, ANSWERS),
    ("throttle on='kind:result id:7' bytes=20000", &["throttle"], BOTH, ANSWERS),
    ("throttle on='kind:request id:7' messages=50", &["throttle"], BOTH, ANSWERS),
    ("buffer on='kind:request id:7' bytes=100000 ms=30ms", &["buffer"], BOTH, ANSWERS),
    (
        "flood on='kind:request id:7' per_s=1000 count=2",
        &["flood"; 2],
        BOTH,
        &["ok 7 a", "ok 8 b", "progress \"t7\"", "progress \"t7\""],
    ),
];

#[test]
fn each_effect_is_on_the_wire_and_in_the_trace_and_nothing_else_has_changed() {
    for era in ERAS {
        for (order, injects, server, client) in CASES {
            let mut rig = Rig::start(era);
            rig.order(order);
            rig.echo(7, "a");
            rig.wait_until("the first has met its rule", |rig| {
                !rig.injects().is_empty() || rig.client_lines().iter().any(|line| line.contains("\"id\":7"))
            });
            rig.echo(8, "b");
            rig.wait_for_client(client.len());
            let over = rig.end();
            let name = format!("{era} {order}");
            let told: Vec<&str> = over.injects.iter().map(|(what, _)| what.as_str()).collect();
            assert_eq!(told, injects, "{name}");
            assert_eq!(shorts(&over.server), server, "{name}");
            assert_eq!(sorted(&over.client), client, "{name}");
            // The other call passed byte for byte.
            let is_other = |line: &&String| line.contains("\"id\":8");
            let said = bytes(&over.taped, Dir::S2c);
            let other = over.client.iter().find(is_other).unwrap();
            assert!(said.contains(other.as_str()), "{name}: {other}");
            let asked = bytes(&over.taped, Dir::C2s);
            let other = over.server.iter().find(is_other).unwrap();
            assert!(asked.contains(other.as_str()), "{name}: {other}");
        }
    }
}

#[test]
fn stacked_effects_add_up() {
    let mut rig = Rig::start(ERAS[1]);
    rig.order("delay on='kind:request id:7' ms=30");
    rig.order("delay on='kind:request id:7' ms=40");
    rig.order("edit on='kind:request id:7' set='/params/arguments/text=\"z\"'");
    rig.order("duplicate on='kind:result id:7'");
    rig.echo(7, "a");
    rig.wait_for_client(2);
    let over = rig.end();
    assert_eq!(shorts(&over.client), ["ok 7 z", "ok 7 z"]);
    let told: Vec<&str> = over.injects.iter().map(|(what, _)| what.as_str()).collect();
    assert_eq!(told, ["delay", "delay", "edit", "duplicate"]);
    let call = over.taped.iter().find(|item| item.dir == Dir::C2s).unwrap();
    let edit = over
        .taped
        .iter()
        .find(|item| {
            crate::rig::injects(std::slice::from_ref(item)).first().is_some_and(|(what, _)| what == "edit")
        })
        .unwrap();
    let waited = edit.at.ns_since(call.at) / 1_000_000;
    assert!(waited >= 70, "{waited} ms");
}

#[test]
fn what_pipes_do_not_have_is_refused() {
    let rig = Rig::start(ERAS[1]);
    for (order, expected) in [
        ("header field=X value=1", "no headers"),
        ("compress", "no compression"),
        ("answer on='kind:request' status=503", "no statuses"),
        ("disconnect reset", "no reset"),
        ("disconnect at=mid-event reset", "no reset"),
        ("cancel on='id:7' client=reset", "no reset"),
        ("cancel on='id:7'", "id:7"),
        ("disarm 9", "rule 9"),
        ("release 3", "held message 3"),
        ("release", "nothing is held"),
        ("retry on='id:7'", "id:7"),
        ("send to=server text=[]", "one JSON object"),
        ("send to=client stream=3 text={}", "no streams"),
    ] {
        let refused = rig.try_order(order).expect_err(order).to_string();
        assert!(refused.contains(expected), "{order}: {refused}");
    }
    assert_eq!(rig.end().injects, []);
}

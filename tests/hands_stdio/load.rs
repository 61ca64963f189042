//! Under load: what is not meant is never lost, changed or put in another order, and nothing hangs.

use std::collections::BTreeSet;

use midwire::event::Dir;
use proptest::prelude::*;
use serde_json::json;

use crate::rig::{ERAS, Rig, bytes};

/// Orders that end by themselves or with their disarming, each for a part of the calls.
fn any_order() -> impl Strategy<Value = String> {
    let on = prop_oneof![
        Just("id:3".to_owned()),
        (0..40u32).prop_map(|id| format!("id:{id} dir:c2s")),
        (0..40u32).prop_map(|id| format!("id:{id} dir:s2c")),
    ];
    let what = prop_oneof![
        Just("hold"),
        Just("hold limit=5ms"),
        Just("drop"),
        Just("duplicate"),
        Just("swap"),
        Just("delay ms=3 jitter=3"),
        Just("slice bytes=7"),
        Just("throttle bytes=100000"),
        Just("throttle messages=0"),
        Just("buffer bytes=500 ms=5ms"),
        Just("edit set='/x=1'"),
        Just("spoil how=duplicate-final"),
        Just("cancel"),
        Just("race first=cancel"),
        Just("race first=answer margin=2ms"),
        Just("flood per_s=1000 count=3"),
        Just("answer error=-1"),
    ];
    let rule = (what, on, any::<bool>()).prop_map(|(what, on, always)| {
        let (verb, rest) = what.split_once(' ').unwrap_or((what, ""));
        let times = if always { "always" } else { "1" };
        format!("{verb} on='{on}' times={times} {rest}")
    });
    let now = prop_oneof![
        Just("release"),
        Just("release reverse"),
        Just("disarm all"),
        Just("disarm 1"),
        Just("status"),
        Just("cancel on='id:5' client=error"),
        Just("stop"),
        Just("continue"),
        Just("retry on='id:4' sure"),
    ];
    prop_oneof![3 => rule, 2 => now.prop_map(str::to_owned)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn orders_in_any_order_neither_hang_nor_touch_what_they_are_not_for(
        orders in prop::collection::vec(any_order(), 1..12),
    ) {
        let mut rig = Rig::start_with(ERAS[1], "tee got");
        let mut orders_left = orders.iter();
        // Calls 100 and above are nobody's target.
        for round in 0..40u32 {
            if round % 3 == 0
                && let Some(order) = orders_left.next()
            {
                let _ = rig.try_order(order);
            }
            rig.echo(round, "meant");
            rig.echo(100 + round, "free");
        }
        for order in ["continue", "flow", "disarm all", "release"] {
            let _ = rig.try_order(order);
        }
        let free = |lines: &[String]| -> Vec<String> {
            lines.iter().filter(|line| line.contains("\"free\"")).cloned().collect()
        };
        let over = rig.end();
        let sent: Vec<String> = (0..40).map(|round| 100 + round).map(|id: u32| id.to_string()).collect();
        let ids = |lines: &[String]| -> Vec<String> {
            let values = lines.iter().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
            values.map(|value| value["id"].to_string()).collect()
        };
        prop_assert_eq!(ids(&free(&over.server)), sent.clone(), "server, {:?}", orders);
        prop_assert_eq!(ids(&free(&over.client)), sent, "client, {:?}", orders);
        let read: BTreeSet<String> = bytes(&over.taped, Dir::C2s).lines().map(str::to_owned).collect();
        for line in free(&over.server) {
            prop_assert!(read.contains(line.trim_end()), "{} was changed", line);
        }
    }
}

#[test]
fn rules_come_and_go_in_a_stream_of_calls_and_nothing_else_moves() {
    let mut rig = Rig::start_with(ERAS[1], "tee got");
    for round in 0..300u32 {
        if round % 10 == 0 {
            rig.order("hold on='id:9999'");
            rig.order("delay on='kind:request id:5' ms=1 times=always");
        }
        if round % 10 == 5 {
            rig.order("disarm all");
        }
        rig.echo(100 + round, "free");
    }
    rig.wait_for_client(300);
    let over = rig.end();
    assert_eq!(over.client.concat(), bytes(&over.taped, Dir::C2s));
    assert_eq!(over.server.concat(), bytes(&over.taped, Dir::C2s));
    assert_eq!(over.injects, []);
}

#[test]
fn without_an_order_every_byte_passes_and_without_a_rule_too() {
    let lines =
        ["{\"a\":1}\r\n", "not JSON\n", "\n", "[1,2]\n", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\"}\n"];
    for order in [None, Some("status")] {
        let mut rig = Rig::start_with(ERAS[1], "tee got");
        // An order in the middle of a line waits for its end.
        rig.write_line("{\"begun\":");
        if let Some(order) = order {
            rig.wait_until("the beginning is out", |rig| rig.server_lines().len() == 1);
            rig.order(order);
            rig.order(r#"send to=server text='{"own":1}'"#);
        }
        rig.write_line("true}\n");
        for line in lines.iter().cycle().take(200) {
            rig.write_line(line);
        }
        rig.write_line(&format!("\"{}\"\n", "x".repeat(3 << 20)));
        rig.write_line("no end");
        let over = rig.end();
        let all = bytes(&over.taped, Dir::C2s);
        let got = over.server.concat().replace("{\"own\":1}\n", "");
        assert!(got == all, "{order:?}: {} of {} bytes", got.len(), all.len());
        assert!(over.server[0] == "{\"begun\":true}\n", "{order:?}: {:?}", over.server[0]);
    }
}

#[test]
fn the_same_seed_meets_the_same_messages() {
    let met = || {
        let mut rig = Rig::start_with(ERAS[1], "cat > got");
        rig.order("drop on='kind:request' chance=0.4 times=always seed=7");
        for id in 0..60 {
            rig.call(id, "x", &json!({}));
        }
        rig.end().injects
    };
    let first = met();
    assert!((10..40).contains(&first.len()), "{}", first.len());
    assert_eq!(first, met());
}

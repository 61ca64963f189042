//! Orders to the tap: the line in which they are typed, and what is held and armed.

use super::{SIZES, Stage, fates, name};
use crate::command::{ArmedRule, By, Command as Order, HeldMessage, Status, words};
use crate::time::Ms;
use crate::ui::msg::{Command, Feed, Msg};

fn status() -> Status {
    let held = |number, says: &str| HeldMessage {
        number,
        says: says.to_owned(),
        stream: Some(number),
        held: Ms(2_800),
        released_in: Ms(27_200),
        text: r#"{"jsonrpc":"2.0","id":7,"method":"tools/call"}"#.to_owned(),
    };
    let Ok(Order::Arm(rule)) = words::parse("delay on='tool:slow kind:result' ms=300") else { panic!() };
    Status {
        rules: vec![ArmedRule { number: 1, rule, hits: 12, by: By::Viewer }],
        held: vec![held(3, "c2s request id 7 tools/call slow"), held(5, "s2c result id 6")],
        open: Vec::new(),
    }
}

fn live(size: (u16, u16)) -> Stage {
    let mut stage = Stage::on(size, Feed::Live, &fates());
    stage.tell(Msg::Hands(Some(status())));
    stage
}

#[test]
fn faults_at_every_size() {
    for size in SIZES {
        let mut stage = live(size);
        for (view, keys) in [("faults", "5"), ("order_verbs", "2 g x"), ("order_members", "\"cancel\" tab")] {
            stage.keys(keys);
            insta::assert_snapshot!(name(view, size), stage.screen());
        }
    }
}

/// What keys ask of the tap.
#[test]
fn keys_give_orders() {
    let order = |words: &str| vec![Command::Order(words.to_owned())];
    let cases: &[(&str, Vec<Command>)] = &[
        ("5 g a", order("release 3")),
        ("5 g j a", order("release 5")),
        ("5 g d", order("drop held=3")),
        ("5 G d", order("disarm 1")),
        ("5 g w", order("extend held=3 more=30s")),
        ("5 A", order("release all")),
        ("2 A", order("release all")),
        ("R", order("release all reverse")),
        ("Z", order("disarm all")),
        (
            "5 g e enter",
            order(r#"edit held=3 text="{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\"}""#),
        ),
        ("2 g x \"cancel\" tab enter", order("cancel on='id:1 stream:1'")),
        ("2 g x \"canc\" tab enter", order("cancel on='id:1 stream:1'")),
        ("2 g x \"delay on=slow m\" tab \"300\" enter", order("delay on=slow ms=300")),
        ("2 g x \"nonsense\" enter", Vec::new()),
        ("2 g x esc", Vec::new()),
        ("2 a", Vec::new()),
    ];
    for (keys, asked) in cases {
        let mut stage = live((120, 36));
        stage.keys(keys);
        assert_eq!(stage.asked, *asked, "{keys}\n{}", stage.screen());
        for command in asked {
            let Command::Order(words) = command else { panic!() };
            assert!(words::parse(words).is_ok(), "{words}");
        }
    }
}

#[test]
fn what_is_held_shows_on_every_view_and_takes_no_keys() {
    let mut stage = live((120, 36));
    for view in ["2", "3", "4", "5"] {
        let screen = stage.keys(view).screen();
        assert!(screen.contains("HOLD 2") && screen.contains("ARMED 1"), "{screen}");
    }
}

#[test]
fn a_recording_takes_no_orders() {
    for (feed, expected) in [(Feed::Whole, "only a running tap"), (Feed::Live, "this tap takes no orders")] {
        let mut stage = Stage::on((120, 36), feed, &fates());
        let screen = stage.keys("x").screen();
        assert!(screen.contains(expected), "{screen}");
        assert_eq!(stage.keys("A Z").asked, []);
    }
}

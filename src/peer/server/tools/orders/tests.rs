//! What cancels leave behind: holds and runs, on both transports and in every way of answering.

use serde_json::{Value, json};

use crate::peer::faults::{Fault, Faults};
use crate::peer::server::shop::Stand;
use crate::peer::server::wire::{BOTH, When, Wire};
use crate::peer::server::{AnswerMode, ServerOptions};
use crate::spec::transport::Transport;
use crate::time::{Ms, TimerClock};

const HELD: Option<bool> = Some(false);
const LEAKED: Option<bool> = Some(true);
const GONE: Option<bool> = None;

/// Faults, how long the release takes; then what is held at which time after the cancel at 200.
type Row = (&'static [Fault], u64, &'static [(u64, Option<bool>)]);

const ENDINGS: [Row; 5] = [
    (&[], 100, &[(299, HELD), (301, GONE)]),
    (&[], 4999, &[(5198, HELD), (5200, GONE)]),
    (&[], 60_000, &[(5199, HELD), (5201, LEAKED), (70_000, LEAKED)]),
    (&[Fault::CleanupUnshielded], 100, &[(201, LEAKED), (70_000, LEAKED)]),
    (&[Fault::CleanupOverruns], 60_000, &[(5201, HELD), (65_199, HELD), (65_201, GONE)]),
];

/// What is held: `None` nothing; else whether it is leaked.
fn held(wire: &Wire) -> Option<bool> {
    let held = wire.core.shop.holds.list();
    assert!(held.len() < 2);
    held.first().map(|held| held.is_leaked)
}

/// Paused time goes on to this moment of the clock.
async fn go_to(clock: &TimerClock, at: u64) {
    tokio::time::sleep_until(clock.instant(Ms(at)).unwrap()).await;
}

#[tokio::test(start_paused = true)]
async fn a_hold_is_released_after_a_cancel_within_the_limit_of_its_cleanup() {
    for transport in BOTH {
        for (faults, release, expected) in ENDINGS {
            let faults = Faults::with(faults.iter().copied()).into();
            let mut wire = Wire::start(transport, ServerOptions { faults, ..ServerOptions::default() });
            let clock = TimerClock::start();
            let arguments = json!({ "title": "Momo", "release_ms": release });
            assert!(wire.give_up("order_book", arguments, When::After(Ms(200))).await, "it is not answered");
            assert_eq!(clock.now(), Ms(200));
            for (at, state) in expected {
                go_to(&clock, *at).await;
                assert_eq!(held(&wire), *state, "{transport:?}, release {release}, at {at}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_hold_is_released_when_the_order_is_paid() {
    for transport in BOTH {
        let mut wire = Wire::start(transport, ServerOptions::default());
        let clock = TimerClock::start();
        let result = wire.call("order_book", json!({ "title": "Momo" })).await;
        assert_eq!((clock.now(), held(&wire)), (Ms(30_100), None), "{result}");
        let listed = wire.call("list_holds", json!({})).await;
        assert_eq!(listed["structuredContent"], json!({ "holds": [] }));
        let overran = wire.call("order_book", json!({ "payment_ms": 0, "release_ms": 6000 })).await;
        assert_eq!(overran["isError"], true);
        let listed = wire.call("list_holds", json!({})).await;
        let hold = json!({ "hold": 2, "title": "any", "request": "3", "leaked": true });
        assert_eq!(listed["structuredContent"], json!({ "holds": [hold] }));
    }
}

#[tokio::test(start_paused = true)]
async fn whether_a_disconnect_reaches_the_handler_depends_on_the_way_of_answering() {
    let rows = [
        (AnswerMode::Auto, true),
        (AnswerMode::Sse, true),
        (AnswerMode::Json, true),
        (AnswerMode::JsonDeaf, false),
        (AnswerMode::LegacyStateless, false),
    ];
    for (mode, is_told) in rows {
        let mut wire = Wire::start(Transport::Http, ServerOptions { mode, ..ServerOptions::default() });
        let clock = TimerClock::start();
        assert!(wire.give_up("order_book", json!({}), When::After(Ms(200))).await);
        go_to(&clock, 1000).await;
        assert_eq!(held(&wire).is_none(), is_told, "{mode:?}");
        go_to(&clock, 30_200).await;
        assert_eq!(held(&wire), None, "{mode:?}: the order went on to its end");
    }
}

/// Waits until the only run has ended: how far it got, and how.
async fn run_ended(wire: &Wire) -> (u32, Stand) {
    let ended = async {
        loop {
            let runs = wire.core.shop.index.runs();
            if let [run] = &runs[..]
                && run.stand != Stand::Running
                && wire.core.shop.index.is_online()
            {
                return (run.done, run.stand);
            }
            tokio::time::sleep(Ms(1).into()).await;
        }
    };
    tokio::time::timeout(Ms(60_000).into(), ended).await.unwrap()
}

// Threads keep the time of the machine, so this one cannot be paused.
#[tokio::test]
async fn work_on_a_thread_stops_where_it_looks_for_the_cancel() {
    const MANY: u32 = 3000;
    let sse = AnswerMode::Sse;
    let all = [
        (Transport::Stdio, sse, "rebuild_index", MANY, Stand::Stopped),
        (Transport::Http, sse, "rebuild_index", MANY, Stand::Stopped),
        (Transport::Stdio, sse, "rebuild_index_blind", 20, Stand::Discarded),
        (Transport::Http, sse, "rebuild_index_blind", 20, Stand::Discarded),
        (Transport::Http, AnswerMode::LegacyStateless, "rebuild_index", 20, Stand::Finished),
    ];
    for (transport, mode, tool, titles, stand) in all {
        let mut wire = Wire::start(transport, ServerOptions { mode, ..ServerOptions::default() });
        let arguments = json!({ "titles": titles, "title_ms": 10 });
        assert!(wire.give_up(tool, arguments, When::Progress).await, "nothing of the call after its cancel");
        let (done, found) = run_ended(&wire).await;
        assert_eq!((found, done < titles), (stand, stand == Stand::Stopped), "{transport:?} {tool}");
        assert!(done < titles || stand != Stand::Stopped);
        let status = wire.call("index_status", json!({})).await;
        assert_eq!(status["structuredContent"]["search"], "online");
        assert_eq!(status["structuredContent"]["runs"][0]["state"], stand.as_str());
    }
}

#[tokio::test]
async fn work_on_a_thread_that_is_wanted_is_answered() {
    let mut wire = Wire::start(Transport::Stdio, ServerOptions::default());
    for tool in ["rebuild_index", "rebuild_index_blind"] {
        let result = wire.call(tool, json!({ "titles": 2, "title_ms": 1 })).await;
        assert_eq!(result["content"][0]["text"], "2 of 2 titles indexed");
    }
    let taken = wire.core.shop.workers.acquire_many(64).await.unwrap();
    let core = wire.core.clone();
    let result: Value = Wire::to(Transport::Stdio, &core).call("rebuild_index", json!({})).await;
    assert_eq!(result["isError"], true, "no thread is free");
    drop(taken);
}

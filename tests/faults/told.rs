//! What the server tells about its work: recorded in order, never on the wire, and proof for the
//! verdict of a race.

use std::process::Command;

use midwire::event::{Dir, What};
use midwire::machine::policy::Policy;
use midwire::model::race::{Reason, Verdict};
use midwire::model::{CallIdx, Stage};
use midwire::peer::client::{CallOptions, Outcome, raw};
use midwire::peer::faults::Fault;
use midwire::peer::server::ServerOptions;
use midwire::time::Ms;
use serde_json::json;

use crate::rig::{Judged, MIDWIRE, On, Rig};
use crate::scenes;

/// Calls `silent`, gives up, and then makes a call that is answered.
async fn give_up(rig: Rig) -> Judged {
    let options = CallOptions { cancel_after: Some(Ms(50)), ..CallOptions::default() };
    let report = rig.client.call("silent", &raw(&json!({})), &options, |_| {}).await.unwrap();
    assert!(matches!(report.outcome, Outcome::GivenUp(_)), "{report:?}");
    let (arguments, options) = (raw(&json!({ "text": "hello" })), CallOptions::default());
    let report = rig.client.call("echo", &arguments, &options, |_| {}).await.unwrap();
    assert!(matches!(report.outcome, Outcome::Complete(_)));
    rig.end(&Policy::default(), 1).await
}

#[tokio::test]
async fn the_verdict_of_a_race_is_decided_by_what_the_server_told() {
    for (name, rig) in
        [("stdio", Rig::stdio(&["--telemetry"])), ("http", Rig::http(ServerOptions::default()).await)]
    {
        let judged = give_up(rig).await;
        assert!(judged.is_whole());
        let race = judged.model.race(CallIdx(0)).unwrap();
        assert_eq!((race.verdict, race.reason), (Verdict::CancelWon, Reason::Telemetry), "{name}");
        let of = |id: u64| -> Vec<_> {
            let told = judged.told();
            told.into_iter().filter(|(_, line)| line["request"] == json!(id)).collect()
        };
        let stages = |id: u64| -> Vec<_> {
            of(id).into_iter().map(|(_, line)| line["stage"].as_str().unwrap().to_owned()).collect()
        };
        let names = |stages: &[Stage]| stages.iter().map(|stage| stage.as_str()).collect::<Vec<_>>();
        assert_eq!(stages(1), names(&[Stage::HandlerStart, Stage::CancelSeen]), "{name}");
        assert_eq!(stages(2), names(&[Stage::HandlerStart, Stage::Done]), "{name}");
        // Over HTTP each is told about the exchange that it belongs to.
        let streams = [of(1), of(2)].map(|told| told.first().and_then(|(stream, _)| *stream));
        let expected = if name == "http" { [Some(1), Some(2)] } else { [None, None] };
        assert_eq!(streams, expected, "{name}");
        assert!(judged.grave().is_empty(), "{:?}", judged.said());
    }
}

#[tokio::test]
async fn an_answer_inside_the_window_is_late_when_the_server_had_told_that_it_saw_the_cancel() {
    let on = On::Stdio(&[]);
    let mut rig = Rig::start(on, &[Fault::LateAnswer]).await;
    scenes::gives_up_silence(&mut rig).await;
    let judged = rig.end(&Policy::default(), 1).await;
    let race = judged.model.race(CallIdx(0)).unwrap();
    assert_eq!((race.verdict, race.reason), (Verdict::LateResponse, Reason::Telemetry));
    let margin_ns = race.margin_ns.and_then(|margin| u64::try_from(margin).ok()).unwrap();
    assert!(margin_ns < race.window_ns, "by the time alone, the two would have crossed");
}

#[tokio::test]
async fn an_ordinary_client_sees_no_byte_of_it() {
    let judged = give_up(Rig::stdio(&["--telemetry"])).await;
    let bytes: Vec<u8> = judged
        .events
        .iter()
        .filter(|event| event.dir == Dir::S2c)
        .filter_map(
            |event| if let What::Bytes { bytes, .. } = &event.what { Some(bytes.to_vec()) } else { None },
        )
        .flatten()
        .collect();
    let text = String::from_utf8(bytes).unwrap();
    assert!(!judged.told().is_empty());
    assert!(text.lines().count() == 1 && text.contains("hello") && !text.contains("stage"), "{text}");
}

#[test]
fn the_environment_of_a_server_is_touched_only_when_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let tell = "test -S \"$MIDWIRE_TELEMETRY\" && echo a socket || echo ${MIDWIRE_TELEMETRY-nothing}";
    for (option, expected) in [(None, "nothing\n"), (Some("--telemetry"), "a socket\n")] {
        let ran = Command::new(MIDWIRE)
            .arg("stdio")
            .args(option)
            .args(["--record", "off", "--", "sh", "-c", tell])
            .env("MIDWIRE_STATE_DIR", folder.path())
            .env_remove("MIDWIRE_TELEMETRY")
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&ran.stdout), expected, "{ran:?}");
    }
    let left = std::fs::read_dir(folder.path().join("run")).unwrap().count();
    assert_eq!(left, 0, "no socket stays behind");
}

#[test]
fn a_server_that_has_nobody_to_tell_serves_all_the_same() {
    let ran = Command::new(MIDWIRE)
        .args(["serve", "stdio", "--telemetry"])
        .env_remove("MIDWIRE_TELEMETRY")
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    assert!(ran.status.success() && ran.stdout.is_empty());
    assert!(String::from_utf8_lossy(&ran.stderr).contains("nobody to tell"), "{ran:?}");
}

//! Every fault by its scene: with it its rules fire, without it nothing worth a warning is found.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use midwire::machine::policy::Policy;
use midwire::peer::faults::Fault::{self, *};
use midwire::peer::server::AnswerMode::{Auto, Sse};
use midwire::rules::catalogue;
use midwire::time::Ms;
use tokio::sync::Semaphore;

use crate::rig::On::{self, Http, Lively, Old, Stdio, Untold};
use crate::rig::{self, Judged, Rig};
use crate::scenes::{self, Scene};

/// One fault on one transport.
struct Row {
    fault: Fault,
    on: On,
    scene: Scene,
    /// The policy that both recordings are judged under.
    policy: &'static str,
    /// Rules that the scene itself breaks: what it takes to show a fault of the other side.
    brings: &'static [&'static str],
    /// Faults without which this one does not show, and which both recordings have.
    beside: &'static [Fault],
    /// How many times as long everything is taken to have lasted.
    stretch: u64,
    /// The rules of the fault that fire here; `None`: all that are for this transport.
    fires: Option<&'static [&'static str]>,
}

const fn row(fault: Fault, on: On, scene: Scene, policy: &'static str) -> Row {
    Row { fault, on, scene, policy, brings: &[], beside: &[], stretch: 1, fires: None }
}

impl Row {
    const fn bringing(self, brings: &'static [&'static str]) -> Row {
        Row { brings, ..self }
    }

    /// The rules of the fault that are for this transport.
    fn rules(&self) -> impl Iterator<Item = &'static str> {
        let is_for = |rule: &&str| match self.fires {
            Some(fires) => fires.contains(rule),
            None => catalogue::find(rule).unwrap().is_for(self.on.transport()),
        };
        self.fault.rules().iter().copied().filter(is_for)
    }

    const fn firing(self, fires: &'static [&'static str]) -> Row {
        Row { fires: Some(fires), ..self }
    }

    const fn beside(self, beside: &'static [Fault]) -> Row {
        Row { beside, ..self }
    }

    const fn stretched(self, stretch: u64) -> Row {
        Row { stretch, ..self }
    }
}

/// What the tools with effects do.
const EFFECTS: &str = r#"
[[contracts]]
tools = ["charge_account"]
side_effect = "effect"
key = "/idempotency_key"
receipt = "/structuredContent/receipt"
"#;

/// The limit that the server has.
const SHORT_CLEANUP: &str = "limits.cleanup_ms = 1000";

/// An order changes something, and has no key.
const ORDERS: &str = r#"
[[contracts]]
tools = ["order_book"]
side_effect = "effect"
"#;

/// How long the client of the scenes waits.
const SHORT_CLOCK: &str = r#"
[[clocks]]
name = "the client of this scene"
idle_ms = 400
max_ms = 500
"#;

/// A pipe that is not read is no matter here.
const UNHURRIED: &str = "limits.write_blocked_ms = 60000";

const ROWS: &[Row] = &[
    row(LateAnswer, Stdio(&[]), scenes::gives_up_silence, "").firing(&["CAN-05"]),
    row(LateAnswer, Stdio(&["--era", "legacy"]), scenes::gives_up_in_a_session, "").firing(&["CAN-17"]),
    row(ProgressAfterCancel, Stdio(&[]), scenes::gives_up_steps, ""),
    row(WorksOn, Http(Auto), scenes::gives_up_work, ""),
    row(CancelsCalls, Stdio(&[]), scenes::echo, ""),
    row(NeverAnswers, Http(Auto), scenes::steps, "limits.max_ms = 300"),
    row(AnswersTwice, Stdio(&[]), scenes::steps, ""),
    row(AnswersNotifications, Stdio(&[]), scenes::gives_up, ""),
    row(IdAsText, Stdio(&[]), scenes::echo, ""),
    row(IdAsText, Http(Auto), scenes::echo, ""),
    row(StrayAnswer, Stdio(&[]), scenes::echo, ""),
    row(AsksClient, Stdio(&[]), scenes::steps, ""),
    row(AsksClient, Http(Sse), scenes::steps, ""),
    row(CleanupUnshielded, Stdio(&[]), scenes::gives_up_order, SHORT_CLEANUP),
    row(CleanupUnshielded, Http(Auto), scenes::gives_up_order, SHORT_CLEANUP),
    row(CleanupOverruns, Http(Auto), scenes::gives_up_order, SHORT_CLEANUP),
    row(ProgressStands, Stdio(&[]), scenes::steps, ""),
    row(ProgressStands, Http(Auto), scenes::steps, ""),
    row(ProgressAfterAnswer, Stdio(&[]), scenes::steps, ""),
    row(StrayToken, Stdio(&[]), scenes::steps, ""),
    row(StrayToken, Http(Auto), scenes::steps, ""),
    row(NoKeySupport, Stdio(&[]), scenes::charges_again, EFFECTS),
    row(NoKeySupport, Http(Auto), scenes::charges_again, EFFECTS),
    row(CheckThenAct, Stdio(&[]), scenes::charges_twice_at_once, EFFECTS),
    row(CheckThenAct, Http(Auto), scenes::charges_twice_at_once, EFFECTS),
    row(MemoryLedger, Http(Auto), scenes::charges_across_a_restart, EFFECTS),
    row(AliasResults, Stdio(&[]), scenes::charges_again, EFFECTS),
    row(AliasResults, Http(Auto), scenes::charges_again, EFFECTS),
    row(NoFingerprint, Stdio(&[]), scenes::charges_other, EFFECTS).bringing(&["REL-10"]),
    row(NoFingerprint, Http(Auto), scenes::charges_other, EFFECTS).bringing(&["REL-10"]),
    row(CrashAfterEffect, Stdio(&[]), scenes::charges, EFFECTS),
    row(DropResponseAfterCommit, Http(Sse), scenes::charges, EFFECTS),
    row(FinalLost, Http(Sse), scenes::steps, ""),
    row(TornEvent, Http(Sse), scenes::steps, ""),
    row(NoBufferingHeader, Http(Sse), scenes::steps, ""),
    row(Bursts, Http(Auto), scenes::long_steps, ""),
    row(EventIds, Http(Sse), scenes::steps, ""),
    row(MintsSession, Http(Auto), scenes::steps, ""),
    row(TwinTools, Stdio(&[]), scenes::lists, ""),
    row(TwinTools, Http(Auto), scenes::lists, ""),
    row(Prints, Stdio(&[]), scenes::steps, ""),
    row(Unbounded, Stdio(&[]), scenes::rests, UNHURRIED).stretched(10),
    row(EventBeforeAck, Stdio(&[]), scenes::listens, ""),
    row(EventBeforeAck, Http(Auto), scenes::listens, ""),
    row(TagOfOtherType, Stdio(&[]), scenes::listens, ""),
    row(TagOfOtherType, Http(Auto), scenes::listens, ""),
    row(Untagged, Stdio(&[]), scenes::listens, ""),
    row(Untagged, Http(Auto), scenes::listens, ""),
    row(EarlyHandle, Stdio(&[]), scenes::reports, ""),
    row(EarlyHandle, Http(Auto), scenes::reports, ""),
    row(TaskChanges, Stdio(&[]), scenes::reports, ""),
    row(TaskChanges, Http(Auto), scenes::reports, ""),
    row(PostsCancel, Http(Auto), scenes::gives_up_silence, ""),
    row(NoMaximum, Stdio(&[]), scenes::reaches_maximum, SHORT_CLOCK),
    row(NoMaximum, Http(Auto), scenes::reaches_maximum, SHORT_CLOCK),
    row(CommentsCount, Lively, scenes::hears_comments, SHORT_CLOCK),
    row(SharedToken, Stdio(&[]), scenes::two_at_once, ""),
    row(SharedToken, Old, scenes::two_at_once_in_a_session, ""),
    row(ReusesId, Stdio(&[]), scenes::two_at_once, ""),
    row(ReusesId, Http(Auto), scenes::two_at_once_signed_in, ""),
    row(SlowReader, Http(Auto), scenes::floods, "limits.write_blocked_ms = 500"),
    row(RetriesWithoutKey, Untold, scenes::gives_up_charge, EFFECTS),
    row(RetriesUnsafe, Untold, scenes::gives_up_order, ORDERS),
    row(KeyForTwo, Stdio(&[]), scenes::charges_two, EFFECTS),
    row(KeyForTwo, Http(Auto), scenes::charges_two, EFFECTS),
    row(FinishesAnyway, Http(Auto), scenes::cancels_report, ""),
    row(AbandonsTask, Http(Auto), scenes::cancels_report, "").stretched(20),
    row(CarelessReconnect, Http(Auto), scenes::keeps_listening, "").beside(&[FinalLost]).stretched(50),
    row(OtherParamHeader, Http(Auto), scenes::mirrors_argument, ""),
    row(NoBackoff, Stdio(&[]), scenes::listens_in_vain, "").bringing(&["SUB-01"]),
    row(NoBackoff, Http(Auto), scenes::listens_in_vain, "").bringing(&["SUB-01"]),
    row(Downgrades, Stdio(&[]), scenes::finds_era, ""),
    row(Downgrades, Http(Auto), scenes::finds_era, ""),
    row(FallsBackAnywhere, Stdio(&["--era", "legacy"]), scenes::finds_era, "allow_legacy = []"),
    row(OpensGet, Http(Auto), scenes::steps, ""),
    row(Resumes, Http(Auto), scenes::steps, ""),
    row(NoVersionHeader, Http(Auto), scenes::steps, ""),
    row(OtherVersionHeader, Http(Auto), scenes::steps, ""),
    row(NoMethodHeader, Http(Auto), scenes::steps, ""),
    row(NoNameHeader, Http(Auto), scenes::steps, ""),
    row(OtherNameHeader, Http(Auto), scenes::steps, ""),
    row(IgnoresEof, Stdio(&[]), scenes::echo, "limits.exit_ms = 1000"),
];

/// Recordings that are made at once: each takes three processes or two.
const AT_ONCE: usize = 4;

/// What was wrong with one row, in words.
async fn judge(row: &Row, places: &Semaphore) -> Option<String> {
    let _place = places.acquire().await.unwrap();
    let policy: Policy = toml::from_str(row.policy).unwrap();
    let play = async |faults: &[Fault]| -> Judged {
        let mut rig = Rig::start(row.on, &[faults, row.beside].concat()).await;
        let tap = rig.tap();
        let scene = (row.scene)(&mut rig);
        if row.fault == NeverAnswers {
            // The recording ends while the call waits.
            let end = async {
                tokio::time::sleep(Ms(700).into()).await;
                rig::end_tap(tap);
            };
            tokio::join!(scene, end);
        } else {
            scene.await;
        }
        rig.end(&policy, row.stretch).await
    };
    let (with, without) = (play(&[row.fault]).await, play(&[]).await);
    let fired: BTreeSet<&str> = with.findings.iter().map(|finding| finding.rule).collect();
    let lacking: Vec<_> = row.rules().filter(|rule| !fired.contains(rule)).collect();
    let mut wrong = String::new();
    if !lacking.is_empty() {
        writeln!(wrong, "{lacking:?} did not fire, but {:#?}", with.said()).unwrap();
    }
    if !with.is_whole() || !without.is_whole() {
        writeln!(wrong, "a recording is not whole").unwrap();
    }
    let mut without_it = without.grave();
    without_it.retain(|said| !row.brings.iter().any(|rule| said.starts_with(rule)));
    if !without_it.is_empty() {
        writeln!(wrong, "without it: {without_it:#?}").unwrap();
    }
    (!wrong.is_empty()).then(|| format!("{} on {:?}: {wrong}", row.fault, row.on))
}

#[test]
fn every_fault_has_a_row_on_each_transport_that_it_names() {
    for fault in Fault::ALL.iter().filter(|fault| !fault.rules().is_empty()) {
        let rows = ROWS.iter().filter(|row| row.fault == *fault);
        let transports: BTreeSet<_> = rows.map(|row| format!("{:?}", row.on.transport())).collect();
        let wanted = fault.transport().map(|transport| format!("{transport:?}"));
        assert!(!transports.is_empty(), "no row for {fault}");
        let firing = ROWS.iter().filter(|row| row.fault == *fault).flat_map(Row::rules);
        assert_eq!(firing.collect::<BTreeSet<_>>(), fault.rules().iter().copied().collect(), "{fault}");
        assert!(
            wanted.is_none_or(|wanted| transports == BTreeSet::from([wanted])),
            "{fault}: {transports:?}"
        );
    }
}

#[tokio::test]
async fn with_a_fault_its_rules_fire_and_without_it_nothing_is_found() {
    let only = std::env::var("FAULT").ok();
    let rows = ROWS.iter().filter(|row| only.as_ref().is_none_or(|name| row.fault.as_str() == name));
    let places = Semaphore::new(AT_ONCE);
    let judged = futures_util::future::join_all(rows.map(|row| judge(row, &places))).await;
    let wrong: Vec<String> = judged.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{} rows:\n{}", wrong.len(), wrong.join("\n"));
}

//! The tour keeps what it promises, in the time that it promises.

use super::*;
use crate::peer::client::Outcome;
use crate::peer::server::{ServerOptions, serve_pipes};
use crate::time::{Ms, TimerClock};

#[expect(clippy::disallowed_methods, reason = "a test lets its servers end with the runtime")]
#[expect(clippy::unnecessary_wraps, reason = "the tour asks for it")]
fn connect() -> Result<Client, PeerError> {
    let (client_side, server_in) = tokio::io::duplex(1 << 16);
    let (server_out, client_read) = tokio::io::duplex(1 << 16);
    tokio::spawn(serve_pipes(ServerOptions::default(), server_in, server_out, CancellationToken::new()));
    Ok(Client::over_pipes(client_read, client_side))
}

/// A call, told short.
fn told(report: &Report) -> String {
    match &report.outcome {
        Outcome::Complete(result) if result.get().contains("\"isError\":true") => "tool error".to_owned(),
        Outcome::Complete(_) => format!("complete {}", report.progress),
        Outcome::InputRequired(_) => "input".to_owned(),
        Outcome::Error { code, .. } => format!("error {code}"),
        Outcome::GivenUp(reason) => format!("{} {}", reason.as_str(), report.progress),
        other => format!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn every_chapter_shows_what_it_says_in_a_minute_and_a_half() {
    let mut said = Vec::new();
    let clock = TimerClock::start();
    let cancel = CancellationToken::new();
    let say = |text: &str| said.push(text.to_owned());
    let reports = run(connect, TourOptions::default(), &cancel, say).await.unwrap();
    let elapsed = clock.now();
    assert!(Ms(80_000) < elapsed && elapsed < Ms(100_000), "{elapsed:?}");
    let told: Vec<String> = reports.iter().map(told).collect();
    let expected = [
        "complete 0",
        "complete 0",
        "complete 6",
        "cancelled by the user 3",
        "connection dropped 0",
        "complete 0",
        "complete 1000",
        "complete 6",
        "complete 5",
        "complete 4",
        "complete 3",
        "complete 2",
        "complete 1",
        "tool error",
        "error -32602",
        "idle timeout 0",
        "maximum timeout 7",
        "input",
        "complete 0",
    ];
    assert_eq!(told, expected);
    let ids: Vec<String> = reports.iter().map(|report| report.id.to_string()).collect();
    let rising: Vec<String> = (1..=reports.len()).map(|id| id.to_string()).collect();
    assert_eq!(ids, rising, "no id twice");
    assert_eq!(said.len(), CHAPTERS.len() + 2);
    assert_eq!(
        (said.first().map(String::as_str), said.last().map(String::as_str)),
        (Some(WELCOME), Some(OVER))
    );
}

#[test]
fn what_is_said_fits_three_lines_of_78_columns() {
    for text in CHAPTERS.iter().map(|chapter| chapter.text).chain([WELCOME, OVER, AGAIN]) {
        assert_eq!(text.lines().count(), 3, "{text}");
        for line in text.lines() {
            assert!(line.is_ascii() && line.len() <= 78, "{} columns: {line}", line.len());
        }
    }
    for (k, chapter) in CHAPTERS.iter().enumerate() {
        assert!(chapter.text.starts_with(&format!("{} ", k + 1)));
    }
}

#[tokio::test(start_paused = true)]
async fn it_goes_round_again_and_ends_at_once_when_cancelled() {
    let cancel = CancellationToken::new();
    let mut rounds = 0;
    let say = |text: &str| {
        if text == AGAIN {
            rounds += 1;
            if rounds == 2 {
                cancel.cancel();
            }
        }
    };
    let options = TourOptions { speed: 10.0, rounds: None };
    let reports = run(connect, options, &cancel, say).await.unwrap();
    assert_eq!((rounds, reports.len()), (2, 19));
    let stopped = CancellationToken::new();
    stopped.cancel();
    let clock = TimerClock::start();
    run(connect, TourOptions::default(), &stopped, |_| {}).await.unwrap();
    assert_eq!(clock.now(), Ms(0));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_cannot_be_made_ends_it_with_that_error() {
    let failing = || Err(PeerError::Gone);
    let error = run(failing, TourOptions::default(), &CancellationToken::new(), |_| {}).await.unwrap_err();
    assert!(matches!(error, PeerError::Gone));
}

//! Streams, their readers and writers, and what is kept for a client that comes back.

use super::*;
use crate::time::TimerClock;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    text: String,
    may_leave: bool,
    is_last: bool,
}

impl Carried for Line {
    fn leave(&self) -> Option<Bytes> {
        self.may_leave.then(|| Bytes::from(self.text.clone()))
    }

    fn is_last(&self) -> bool {
        self.is_last
    }

    fn size(&self) -> usize {
        self.text.len()
    }
}

fn line(text: impl Into<String>) -> Line {
    Line { text: text.into(), may_leave: true, is_last: false }
}

fn last(text: &str) -> Line {
    Line { is_last: true, ..line(text) }
}

fn stream() -> Arc<Stream<Line>> {
    Stream::new(7)
}

const QUIET: Ms = Ms(1000);

/// All that comes until the stream is quiet or over, as `number:text`.
async fn all(reader: &mut Reader<Line>) -> Vec<String> {
    let mut got = Vec::new();
    loop {
        match reader.next(QUIET).await {
            Read::Event(number, text, _) => got.push(format!("{number}:{}", String::from_utf8_lossy(&text))),
            Read::Quiet => return got,
            Read::Over => {
                got.push("over".to_owned());
                return got;
            }
        }
    }
}

fn cue(name: &str) -> Kind<Key> {
    Kind::Latest(name.to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_reader_gets_what_is_said_in_order_and_the_end_after_the_last() {
    let stream = stream();
    let mut reader = stream.read();
    for text in ["a", "b"] {
        assert!(stream.say(Kind::Log, line(text)).await);
    }
    assert!(stream.say(Kind::Final, last("c")).await);
    assert!(!stream.say(Kind::Log, line("late")).await, "nothing follows the last");
    assert!(stream.is_over());
    assert_eq!(all(&mut reader).await, ["1:a", "2:b", "3:c", "over"]);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_comes_back_gets_what_it_missed_and_then_the_rest() {
    for (after, expected) in [
        (0, vec!["1:a", "2:b", "3:c", "4:d", "over"]),
        (1, vec!["2:b", "3:c", "4:d", "over"]),
        (2, vec!["3:c", "4:d", "over"]),
        (9, vec!["3:c", "4:d", "over"]),
    ] {
        let stream = stream();
        let mut reader = stream.read();
        stream.say(Kind::Log, line("a")).await;
        stream.say(Kind::Log, line("b")).await;
        assert_eq!(all(&mut reader).await, ["1:a", "2:b"]);
        drop(reader);
        assert!(!stream.is_attached());
        stream.say(Kind::Log, line("c")).await;
        stream.say(Kind::Final, last("d")).await;
        assert_eq!(all(&mut stream.resume(after)).await, expected, "after {after}");
        // And once more, for the connection may break again.
        assert_eq!(all(&mut stream.resume(3)).await, ["4:d", "over"]);
    }
}

#[tokio::test(start_paused = true)]
async fn what_may_not_leave_any_more_takes_no_number() {
    let stream = stream();
    let mut reader = stream.read();
    stream.say(Kind::Log, Line { may_leave: false, ..line("a") }).await;
    stream.say(Kind::Log, line("b")).await;
    stream.say(Kind::Final, Line { may_leave: false, ..last("c") }).await;
    assert_eq!(all(&mut reader).await, ["1:b", "over"]);
}

#[tokio::test(start_paused = true)]
async fn a_second_reader_takes_over() {
    let stream = stream();
    let mut first = stream.read();
    let mut second = stream.read();
    stream.say(Kind::Log, line("a")).await;
    assert_eq!(all(&mut first).await, ["over"]);
    drop(first);
    assert!(stream.is_attached(), "the first is out already");
    assert_eq!(all(&mut second).await, ["1:a"]);
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_is_let_go_gets_what_waits_and_may_come_back() {
    let stream = stream();
    let mut reader = stream.read();
    stream.say(Kind::Log, line("a")).await;
    stream.let_go();
    assert_eq!(all(&mut reader).await, ["1:a", "over"]);
    drop(reader);
    stream.say(Kind::Final, last("b")).await;
    assert_eq!(all(&mut stream.resume(1)).await, ["2:b", "over"]);
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_slows_the_writer_and_no_reader_does_not() {
    let most = u64::try_from(WAITING_MOST).unwrap();
    let writes = async |stream: &Stream<Line>| {
        let mut said = 0;
        while said < 3 * most
            && tokio::time::timeout(Ms(10).into(), stream.say(Kind::Log, line(said.to_string())))
                .await
                .is_ok()
        {
            said += 1;
        }
        said
    };
    let attached = stream();
    let mut reader = attached.read();
    assert_eq!(writes(&attached).await, most, "the writer waits");
    assert_eq!(reader.next(QUIET).await, Read::Event(1, Bytes::from("0"), false));
    assert!(attached.say(Kind::Log, line("more")).await, "there is room for one");

    let alone = stream();
    assert_eq!(writes(&alone).await, 3 * most);
    assert_eq!(all(&mut alone.read()).await.len(), WAITING_MOST, "the oldest were dropped");
}

#[tokio::test(start_paused = true)]
async fn a_writer_that_waits_goes_on_when_the_reader_leaves() {
    let stream = stream();
    let reader = stream.read();
    for k in 0..WAITING_MOST {
        stream.say(Kind::Log, line(k.to_string())).await;
    }
    let (said, ()) = tokio::join!(stream.say(Kind::Final, last("answer")), async { drop(reader) });
    assert!(said);
    let got = all(&mut stream.read()).await;
    assert_eq!(got[got.len() - 2..], [format!("{WAITING_MOST}:answer"), "over".to_owned()]);
}

#[tokio::test(start_paused = true)]
async fn cues_are_merged_while_nobody_reads_and_promises_are_not() {
    let stream = stream();
    for _ in 0..10 * WAITING_MOST {
        assert!(stream.say_now(cue("tools"), line("tools")));
        assert!(stream.say_now(cue("prompts"), line("prompts")));
    }
    assert_eq!(all(&mut stream.read()).await, ["1:tools", "2:prompts"]);
    for k in 0..WAITING_MOST {
        assert!(stream.say_now(Kind::Final, line(k.to_string())));
    }
    assert!(!stream.say_now(Kind::Final, line("one too many")));
    assert!(!stream.say_now(Kind::Log, line("it is over")));
    let got = all(&mut stream.read()).await;
    assert_eq!((got.len(), got.last().unwrap().as_str()), (WAITING_MOST + 1, "over"));
}

#[tokio::test(start_paused = true)]
async fn what_is_kept_is_bounded_by_number_and_by_bytes() {
    for (size, count, expected) in
        [(1, KEPT_MOST + 50, KEPT_MOST), (KEPT_BYTES / 4, 20, 4), (2 * KEPT_BYTES, 3, 0)]
    {
        let stream = stream();
        let mut reader = stream.read();
        for _ in 0..count {
            stream.say(Kind::Log, line("x".repeat(size))).await;
            assert!(matches!(reader.next(QUIET).await, Read::Event(..)));
        }
        drop(reader);
        assert_eq!(stream.size(), expected * size);
        stream.say(Kind::Final, line("more")).await;
        assert_eq!(stream.size(), expected * size + 4);
        assert_eq!(all(&mut stream.resume(0)).await.len(), expected + 1, "{size} bytes each");
    }
}

#[tokio::test(start_paused = true)]
async fn silence_is_told_in_time() {
    let stream = stream();
    let mut reader = stream.read();
    let clock = TimerClock::start();
    assert_eq!((reader.next(QUIET).await, clock.now()), (Read::Quiet, QUIET));
    stream.end();
    assert_eq!((reader.next(QUIET).await, clock.now()), (Read::Over, QUIET));
}

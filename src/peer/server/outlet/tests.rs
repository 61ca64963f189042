//! What is given up, and what never is, as a reader falls behind.

use bytes::Bytes;
use futures_util::poll;

use super::*;

/// What a message is in these tables: the name of a token, or `=` for what is not given up; a number.
fn message(name: &str) -> Outgoing {
    let (sort, status) = match name.chars().next() {
        Some('=') => (Sort::Final, None),
        Some('F') => (Sort::Final, Some(200)),
        Some('L') => (Sort::Log, None),
        _ => (Sort::Progress(Id::Str(name.chars().take(1).collect::<String>().into())), None),
    };
    Outgoing { live: None, body: Bytes::from(name.to_owned()), status, sort }
}

fn drain(flow: &mut Outflow) -> Vec<String> {
    std::iter::from_fn(|| flow.try_recv())
        .map(|outgoing| String::from_utf8(outgoing.body.to_vec()).unwrap())
        .collect()
}

#[tokio::test]
async fn before_a_reader_that_rests_the_newest_progress_waits_and_every_answer() {
    // Pushed, what waits then, and how much was given up.
    let cases: &[(&[&str], &[&str], u64)] = &[
        (&["A1", "B1", "A2"], &["A1", "B1", "A2"], 0),
        (&["A1", "B1", "A2", "B2"], &["B1", "A2", "B2"], 1),
        (&["A1", "B1", "A2", "B2", "B3", "A3"], &["A2", "B3", "A3"], 3),
        (&["A1", "B1", "A2", "B2", "B3", "A3", "F1", "F2", "F3"], &["F1", "F2", "F3"], 6),
        (&["F1", "F2", "F3", "A9"], &["F1", "F2", "F3"], 1),
        (&["A1", "A2", "A3", "A4", "A5", "A6", "F1"], &["A6", "F1"], 5),
        (&["L1", "L2", "L3", "L4"], &["L2", "L3", "L4"], 1),
        (&["L1", "=1", "A1", "=2"], &["=1", "A1", "=2"], 1),
    ];
    for (pushed, waiting, dropped) in cases {
        let (outlet, mut flow) = outlet(Some(3));
        for name in *pushed {
            assert_eq!(outlet.send(message(name)).await, Ok(()), "{pushed:?}");
        }
        let level = outlet.level();
        assert_eq!((level.waiting, level.capacity, level.counters.dropped()), (waiting.len(), 3, *dropped));
        assert_eq!(drain(&mut flow), *waiting, "{pushed:?}");
    }
}

#[tokio::test]
async fn an_answer_without_room_waits_or_ends_the_channel_where_the_bound_was_given() {
    for bound in [None, Some(CAPACITY)] {
        let (outlet, mut flow) = outlet(bound);
        for _ in 0..CAPACITY {
            outlet.send(message("F1")).await.unwrap();
        }
        let last = outlet.send(message("F2"));
        let mut last = pin!(last);
        let now = poll!(&mut last);
        if bound.is_none() {
            assert!(now.is_pending() && !outlet.refused().is_cancelled());
            assert!(flow.recv().await.is_some());
            assert_eq!(last.await, Ok(()));
            assert_eq!(drain(&mut flow).last().map(String::as_str), Some("F2"));
            continue;
        }
        assert_eq!(now, std::task::Poll::Ready(Err(Closed)));
        assert!(outlet.refused().is_cancelled());
        assert_eq!(outlet.level().counters.refused, 1);
        assert_eq!(outlet.send(message("A1")).await, Err(Closed), "nothing comes after that");
        // What waits is still owed, and then it is over although there are writers.
        let mut count = 0;
        while flow.recv().await.is_some() {
            count += 1;
        }
        assert_eq!(count, CAPACITY);
    }
}

#[tokio::test]
async fn what_is_no_answer_waits_for_room_whatever_the_bound() {
    let (outlet, mut flow) = outlet(Some(2));
    outlet.send(message("=1")).await.unwrap();
    outlet.send(message("=2")).await.unwrap();
    let mut third = pin!(outlet.send(message("=3")));
    assert!(poll!(&mut third).is_pending());
    assert!(poll!(pin!(outlet.has_room())).is_pending());
    assert!(outlet.try_send(message("=4")).is_err());
    assert!(flow.recv().await.is_some());
    assert_eq!(third.await, Ok(()));
    assert_eq!(drain(&mut flow), ["=2", "=3"]);
    assert_eq!(outlet.has_room().await, Ok(()));
}

#[tokio::test]
async fn a_flood_can_wait_until_its_step_is_taken() {
    let (outlet, mut flow) = outlet(None);
    let (a, b) = (Id::Str("A".into()), Id::Str("B".into()));
    outlet.send(message("A1")).await.unwrap();
    outlet.send(message("=1")).await.unwrap();
    assert_eq!(outlet.is_taken(&b).await, Ok(()));
    let mut taken = pin!(outlet.is_taken(&a));
    assert!(poll!(&mut taken).is_pending());
    assert!(flow.recv().await.is_some());
    assert_eq!(taken.await, Ok(()));
}

#[tokio::test]
async fn each_end_learns_that_the_other_is_gone() {
    let (outlet, mut flow) = outlet(None);
    let other = outlet.clone();
    outlet.send(message("A1")).await.unwrap();
    drop(outlet);
    assert!(flow.recv().await.is_some());
    {
        let mut next = pin!(flow.recv());
        assert!(poll!(&mut next).is_pending(), "there is another writer");
        drop(other);
        assert!(next.await.is_none());
    }
    let (outlet, flow) = super::outlet(None);
    for _ in 0..CAPACITY {
        outlet.send(message("F1")).await.unwrap();
    }
    let mut waits = pin!(outlet.send(message("F2")));
    assert!(poll!(&mut waits).is_pending());
    drop(flow);
    assert_eq!(waits.await, Err(Closed));
    for name in ["A1", "L1", "=1"] {
        assert_eq!(outlet.send(message(name)).await, Err(Closed));
    }
}

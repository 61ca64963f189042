//! The queue, push by push.

use proptest::prelude::*;

use super::*;

type Texts = Buffer<&'static str, String>;

/// Pushes `A1` (progress of A), `F1` (a response), `l1` (a log message), `~X1` (the latest of X) or
/// `!X1` (the last of X).
fn push(buffer: &mut Texts, text: &'static str) -> Result<(), Refused<String>> {
    let kind = match text.split_at(1) {
        ("F", _) => Kind::Final,
        ("l", _) => Kind::Log,
        ("~", rest) => Kind::Latest(rest.split_at(1).0),
        ("!", rest) => Kind::Last(rest.split_at(1).0),
        (token, _) => Kind::Progress(token),
    };
    buffer.push(kind, text.to_owned())
}

fn shown(buffer: &Texts) -> String {
    buffer.waiting().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join(" ")
}

/// What is pushed; the queue, the number dropped and the wish to refetch after it; whether refused.
type Row = (&'static str, &'static str, u64, bool, bool);

fn check(capacity: usize, rows: &[Row]) -> Texts {
    let mut buffer = Buffer::new(capacity).unwrap();
    for &(text, queue, dropped, needs_refetch, is_refused) in rows {
        let refused = push(&mut buffer, text).err();
        assert_eq!(refused, is_refused.then(|| Refused(text.to_owned())), "{text}");
        let after = (shown(&buffer), buffer.counters().dropped(), buffer.needs_refetch());
        assert_eq!(after, (queue.to_owned(), dropped, needs_refetch), "{text}");
    }
    buffer
}

#[test]
fn the_vectors_of_the_bounded_queue_hold() {
    let buffer = check(
        3,
        &[
            ("A1", "A1", 0, false, false),
            ("B1", "A1 B1", 0, false, false),
            ("A2", "A1 B1 A2", 0, false, false),
            ("B2", "B1 A2 B2", 1, true, false),
            ("B3", "B1 A2 B3", 2, true, false),
            ("A3", "A2 B3 A3", 3, true, false),
            ("F1", "B3 A3 F1", 4, true, false),
            ("F2", "A3 F1 F2", 5, true, false),
            ("F3", "F1 F2 F3", 6, true, false),
            ("A9", "F1 F2 F3", 7, true, false),
            ("F4", "F1 F2 F3", 7, true, true),
        ],
    );
    let counters = Counters { coalesced: 1, evicted: 5, discarded: 1, refused: 1 };
    assert_eq!(buffer.counters(), counters);
}

#[test]
fn updates_of_one_token_take_one_place() {
    for (updates, dropped) in [(6, 5), (20, 19)] {
        let mut buffer: Texts = Buffer::new(3).unwrap();
        for _ in 0..updates {
            push(&mut buffer, "A1").unwrap();
        }
        assert_eq!((buffer.waiting().len(), buffer.counters().dropped()), (1, dropped));
        push(&mut buffer, "F1").unwrap();
        assert_eq!((buffer.waiting().len(), buffer.counters().dropped()), (2, dropped));
    }
}

#[test]
fn other_messages_are_merged_dropped_or_kept_as_their_kind_says() {
    check(
        3,
        &[
            ("~X1", "~X1", 0, false, false),
            ("l1", "~X1 l1", 0, false, false),
            ("l1", "~X1 l1 l1", 0, false, false),
            ("~X2", "~X2 l1 l1", 1, false, false),
            ("A1", "~X2 l1 A1", 2, true, false),
            ("~Y1", "~X2 A1 ~Y1", 3, true, false),
            ("!X3", "!X3 A1 ~Y1", 4, true, false),
            ("~X4", "!X3 ~Y1 ~X4", 5, true, false),
            ("l2", "!X3 ~Y1 ~X4", 6, true, false),
            ("~Z1", "!X3 ~Y1 ~X4", 6, true, true),
            ("!Y2", "!X3 !Y2 ~X4", 7, true, false),
            ("F1", "!X3 !Y2 ~X4", 7, true, true),
        ],
    );
}

#[test]
fn only_a_refetch_clears_the_wish_for_one() {
    let mut buffer = check(2, &[("A1", "A1", 0, false, false), ("A2", "A2", 1, true, false)]);
    assert_eq!(buffer.pop().map(|(_, text)| text).as_deref(), Some("A2"));
    assert!(buffer.pop().is_none() && buffer.needs_refetch());
    buffer.refetched();
    assert!(!buffer.needs_refetch());
}

#[test]
fn a_queue_has_room_for_two_at_least() {
    for capacity in [0, 1] {
        assert_eq!(Texts::new(capacity).err(), Some(TooSmall(capacity)));
    }
    assert_eq!(Texts::new(2).unwrap().capacity(), 2);
}

fn kind() -> impl Strategy<Value = Kind<u8>> {
    prop_oneof![
        (0u8..3).prop_map(Kind::Progress),
        Just(Kind::Log),
        (0u8..3).prop_map(Kind::Latest),
        (3u8..5).prop_map(Kind::Last),
        Just(Kind::Final),
    ]
}

proptest! {
    /// Whatever is pushed and taken: the bound holds, every message is accounted for, and one that
    /// may not be dropped is queued, delivered, replaced by a newer of its key, or refused loudly.
    #[test]
    fn a_final_is_queued_delivered_or_refused(
        capacity in 2usize..6,
        steps in prop::collection::vec(prop::option::weighted(0.7, kind()), 0..80),
    ) {
        let mut buffer = Buffer::new(capacity).unwrap();
        let (mut kept, mut refused, mut delivered) = (Vec::new(), Vec::new(), Vec::new());
        let mut pushed = 0u64;
        for step in steps {
            match step {
                None => delivered.extend(buffer.pop().map(|(_, number)| number)),
                Some(kind) => {
                    let was_full = buffer.waiting().len() == capacity;
                    let before: Vec<u64> = buffer.waiting().map(|(_, number)| *number).collect();
                    match buffer.push(kind, pushed) {
                        Ok(()) if matches!(kind, Kind::Final | Kind::Last(_)) => kept.push(pushed),
                        Ok(()) => {}
                        Err(Refused(number)) => {
                            prop_assert!(was_full && !kind.is_droppable());
                            prop_assert!(buffer.waiting().map(|(_, number)| *number).eq(before));
                            refused.push(number);
                        }
                    }
                    pushed += 1;
                }
            }
            prop_assert!(buffer.waiting().len() <= capacity);
        }
        let counters = buffer.counters();
        let waiting: Vec<u64> = buffer.waiting().map(|(_, number)| *number).collect();
        let seen = u64::try_from(waiting.len() + delivered.len() + refused.len()).unwrap();
        prop_assert_eq!(pushed, seen + counters.dropped());
        prop_assert_eq!(counters.refused, u64::try_from(refused.len()).unwrap());
        for number in kept {
            prop_assert!(waiting.contains(&number) || delivered.contains(&number));
        }
    }
}

//! Who sees what of a task, and for how long.

use serde_json::json;

use super::*;

const TERMS: Terms = Terms { ttl: Ms(1000), poll: Ms(10) };

fn store() -> Store {
    let store = Store::new(TimerClock::start());
    assert!(store.start("t", "ann", TERMS, true).unwrap().is_some());
    store
}

#[tokio::test(start_paused = true)]
async fn a_task_is_there_for_its_owner_until_its_time_is_over() {
    let store = store();
    let unknown = TaskRefusal::Unknown;
    // Owner, id, declared; the refusal.
    let rows = [
        ("ann", "t", true, None),
        ("ann", "t", false, Some(TaskRefusal::NotDeclared)),
        ("ann", "x", true, Some(unknown)),
        ("bob", "t", true, Some(unknown)),
        ("bob", "t", false, Some(TaskRefusal::NotDeclared)),
    ];
    for (owner, id, is_declared, expected) in rows {
        assert_eq!(store.get(id, owner, is_declared).err(), expected, "{owner} {id}");
        let answers = object(json!({ "question-1": {} }));
        assert_eq!(store.update(id, owner, is_declared, answers).err(), expected, "{owner} {id}");
        if expected.is_some() {
            assert!(store.cancel(id, owner, is_declared).is_err(), "{owner} {id}");
        }
    }
    assert!(!store.step("t", |step| (step.task.is_cancel_requested(), false)).unwrap().0);
    tokio::time::sleep(Ms(999).into()).await;
    assert!(store.get("t", "ann", true).is_ok());
    tokio::time::sleep(Ms(1).into()).await;
    assert_eq!(store.get("t", "ann", true), Err(unknown));
    assert!(store.step("t", |_| ((), false)).is_none(), "its worker learns it");
    assert!(!store.is_known("t", "ann"));
}

#[tokio::test(start_paused = true)]
async fn a_question_is_asked_until_it_is_answered_and_its_key_never_comes_again() {
    let store = store();
    let ask = |count: usize| {
        let question = json!({ "method": "elicitation/create", "params": {} });
        store.step("t", |step| (step.ask(vec![question; count]), true)).unwrap().0
    };
    let state = || store.get("t", "ann", true).unwrap().state;
    let open = || state()["inputRequests"].as_object().map(|open| open.keys().cloned().collect::<Vec<_>>());
    let update = |key: &str| {
        let answers = object(json!({ key: { "action": "accept" } }));
        store.update("t", "ann", true, answers).unwrap().is_some()
    };
    let keys = ask(2);
    assert_eq!((open(), state()["status"].as_str()), (Some(keys.clone()), Some("input_required")));
    assert!(!update("question-9"), "nobody asked");
    assert!(update(&keys[1]));
    assert!(!update(&keys[1]), "answered before");
    assert_eq!(open(), Some(vec![keys[0].clone()]));
    let take = || store.step("t", |step| (step.take(&keys), false)).unwrap().0;
    assert_eq!(take(), None);
    assert!(update(&keys[0]));
    assert_eq!((state()["status"].as_str(), open_is_absent(&state())), (Some("working"), true));
    assert_eq!(take().unwrap().len(), 2);
    let more = ask(1);
    assert!(!keys.contains(&more[0]));
    // The wish to cancel takes the questions back.
    store.step("t", |step| (step.withdraw(), true));
    assert_eq!(state()["status"], "working");
}

fn open_is_absent(state: &Map<String, Value>) -> bool {
    !state.contains_key("inputRequests")
}

#[tokio::test(start_paused = true)]
async fn there_is_a_most() {
    let store = store();
    for k in 1..MOST {
        assert!(store.start(&k.to_string(), "ann", TERMS, true).unwrap().is_some());
    }
    assert_eq!(store.start("more", "ann", TERMS, true), Ok(None));
    tokio::time::sleep(Ms(1000).into()).await;
    assert!(store.start("more", "ann", TERMS, true).unwrap().is_some(), "the others are over");
}

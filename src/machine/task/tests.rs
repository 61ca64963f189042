//! A wish to cancel and the work that may or may not heed it.

use proptest::prelude::*;

use super::*;
use TaskState::{Cancelled, Completed, Failed, InputRequired, Working};

/// What happens to a task.
#[derive(Debug, Clone, Copy)]
enum Step {
    Wish,
    Checkpoint,
    Finish,
    Fail,
    Ask,
    Give,
}
use Step::{Ask, Checkpoint, Fail, Finish, Give, Wish};

fn run(steps: &[Step]) -> Tasks<&'static str, &'static str> {
    let mut tasks = Tasks::default();
    tasks.start("t", true).unwrap();
    for step in steps {
        take(&mut tasks, *step);
    }
    tasks
}

fn take(tasks: &mut Tasks<&'static str, &'static str>, step: Step) {
    if let Wish = step {
        assert_eq!(tasks.cancel(&"t", true), Ok(()), "a wish is always answered");
        return;
    }
    let task = tasks.worker(&"t").unwrap();
    match step {
        Checkpoint => task.checkpoint(),
        Finish => task.complete("result"),
        Fail => task.fail("error"),
        Ask => task.ask_input(),
        Give => task.give_input(),
        Wish => false,
    };
}

#[test]
fn a_task_ends_as_its_worker_says_first() {
    let cases = [
        (&[Wish][..], Working, None),
        (&[Wish, Checkpoint], Cancelled, None),
        (&[Wish, Finish, Checkpoint], Completed, Some("result")),
        (&[Wish, Fail, Checkpoint], Failed, Some("error")),
        (&[Wish, Checkpoint, Finish], Cancelled, None),
        (&[Checkpoint], Working, None),
        (&[Finish, Fail], Completed, Some("result")),
        (&[Finish, Wish, Checkpoint], Completed, Some("result")),
        (&[Ask], InputRequired, None),
        (&[Ask, Wish, Checkpoint], InputRequired, None),
        (&[Ask, Wish, Give, Checkpoint], Cancelled, None),
        (&[Ask, Finish], InputRequired, None),
        (&[Give, Finish], Completed, Some("result")),
    ];
    for (steps, state, outcome) in cases {
        let tasks = run(steps);
        let task = tasks.get(&"t", true).unwrap();
        assert_eq!((task.state(), task.outcome().copied()), (state, outcome), "{steps:?}");
    }
    assert!(run(&[Wish]).get(&"t", true).unwrap().is_cancel_requested());
    assert!(!run(&[Finish, Wish]).get(&"t", true).unwrap().is_cancel_requested());
}

#[test]
fn refusals_have_the_codes_of_the_extension() {
    let mut tasks = run(&[]);
    let refused = |refusal: TaskRefusal| (refusal, refusal.code());
    assert_eq!(tasks.cancel(&"x", true).map_err(refused), Err((TaskRefusal::Unknown, -32602)));
    assert_eq!(tasks.get(&"x", true).map(Task::state), Err(TaskRefusal::Unknown));
    let undeclared = Err((TaskRefusal::NotDeclared, -32021));
    assert_eq!(tasks.start("y", false).map_err(refused), undeclared);
    assert_eq!(tasks.cancel(&"t", false).map_err(refused), undeclared);
    assert_eq!(tasks.get(&"t", false).map(Task::state).map_err(refused), undeclared.map(|()| Working));
    assert!(tasks.get(&"y", true).is_err(), "a refused task does not exist");
    assert!(TaskRefusal::NotDeclared.to_string().contains(EXTENSION));
    assert_eq!(tasks.start("t", true), Err(TaskRefusal::TrackedId));
}

#[test]
fn a_forgotten_task_is_unknown() {
    let mut tasks = run(&[Finish]);
    assert!(tasks.forget(&"t") && !tasks.forget(&"t"));
    assert_eq!(tasks.cancel(&"t", true), Err(TaskRefusal::Unknown));
}

proptest! {
    /// In any order, a task ends once and stays so, and ends as cancelled only after a wish.
    #[test]
    fn the_first_end_of_a_task_wins(
        steps in prop::collection::vec(prop::sample::select(vec![Wish, Checkpoint, Finish, Fail, Ask, Give]), 0..20),
    ) {
        let (mut tasks, mut before, mut is_wished) = (run(&[]), Working, false);
        for step in steps {
            take(&mut tasks, step);
            is_wished |= matches!(step, Wish);
            let task = tasks.get(&"t", true).unwrap();
            prop_assert!(!before.is_terminal() || task.state() == before);
            prop_assert!(task.state() != Cancelled || is_wished);
            prop_assert_eq!(task.outcome().is_some(), matches!(task.state(), Completed | Failed));
            before = task.state();
        }
    }
}
